/* SPDX-License-Identifier: Apache-2.0 */
#pragma once
/*
 * An HTTP/1.1 server that sends responses which the test has set, and keeps the last request. A
 * script is used for all requests until the next script. Asserts instead of handling errors.
 * Thread: any.
 */
#include <pthread.h>
#include <stdbool.h>
#include <stddef.h>

#include "loopback_server.h"

/* What happens to the connection after the script. */
enum scripted_server_end {
        SCRIPT_KEEPS, /* the next request is served */
        SCRIPT_CLOSES,
        SCRIPT_HANGS /* the connection stays open, but nothing more is sent */
};

struct scripted_server {
        struct loopback_server base;
        pthread_mutex_t mu;
        pthread_cond_t cond; /* signalled for each request */
        /* guarded by mu */
        char script[4096];   /* the bytes of each response */
        char first[16][512]; /* the first n_first responses, which keep the connection */
        unsigned n_first;
        unsigned n_requests;          /* since the script was set */
        char required[64];            /* a request without this text gets 401; "" = no such check */
        enum scripted_server_end end; /* what happens to the connection after the script */
        size_t n_filler;              /* at least this many bytes, in chunks, follow the script */
        char request[8192];           /* the last one, head and body */
};

void scripted_server_start(struct scripted_server *server);
void scripted_server_stop(struct scripted_server *server); /* after its clients are freed */

/* Sets a new script, and resets everything that the functions below set or count. */
__attribute__((format(printf, 3, 4))) void scripted_server_set(struct scripted_server *server,
                                                               enum scripted_server_end end,
                                                               const char *format, ...);
/*
 * A script that is one response with this body. Each header ends with "\r\n". Keeps the connection.
 */
void scripted_server_set_response(struct scripted_server *server, const char *status,
                                  const char *headers, const char *body);
/* Adds a response that is sent before those of the script; each is sent once. At most 16. */
void scripted_server_add_first(struct scripted_server *server, const char *status,
                               const char *headers, const char *body);
/* From now on a request without this text gets 401. */
void scripted_server_require(struct scripted_server *server, const char *text);
/* From now on at least n bytes, in chunks, follow each response of the script. */
void scripted_server_add_filler(struct scripted_server *server, size_t n);

bool scripted_server_got(struct scripted_server *server,
                         const char *text); /* whether the last request contains the text */
unsigned scripted_server_n_requests(struct scripted_server *server);
/* Waits until at least n requests have come since the script was set (patience.h). */
void scripted_server_await_requests(struct scripted_server *server, unsigned n);

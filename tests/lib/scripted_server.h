/* SPDX-License-Identifier: Apache-2.0 */
#pragma once
/*
 * An HTTP/1.1 server that responds what the test has scripted, and remembers the last request. A
 * script stays until the next one. Asserts instead of handling errors. Thread: any.
 */
#include <pthread.h>
#include <stdbool.h>
#include <stddef.h>

#include "loopback_server.h"

enum scripted_server_end {
        SCRIPT_KEEPS,
        SCRIPT_CLOSES,
        SCRIPT_HANGS
}; /* hangs: open, but silent */

struct scripted_server {
        struct loopback_server base;
        pthread_mutex_t mu;
        pthread_cond_t cond; /* a request came */
        /* guarded by mu */
        char script[4096];   /* the bytes of each response */
        char first[16][512]; /* those of the first n_first responses; the connection is kept */
        unsigned n_first;
        unsigned n_requests;          /* since the script was set */
        char required[64];            /* a request without this text gets 401; "" = none does */
        enum scripted_server_end end; /* what happens to the connection after the script */
        size_t n_filler;              /* so many bytes in chunks follow the script */
        char request[8192];           /* the last one, head and body */
};

void scripted_server_start(struct scripted_server *server);
void scripted_server_stop(struct scripted_server *server); /* clients are gone by then */

/* Sets a new script, and resets everything that the functions below set or count. */
__attribute__((format(printf, 3, 4))) void scripted_server_set(struct scripted_server *server,
                                                               enum scripted_server_end end,
                                                               const char *format, ...);
/* A script of one response with this body; headers end with "\r\n" each. The connection is kept. */
void scripted_server_set_response(struct scripted_server *server, const char *status,
                                  const char *headers, const char *body);
/* Adds one to the first responses, after which those of the script come. */
void scripted_server_add_first(struct scripted_server *server, const char *status,
                               const char *headers, const char *body);
void scripted_server_require(struct scripted_server *server, const char *text);
void scripted_server_add_filler(struct scripted_server *server, size_t n);

bool scripted_server_got(struct scripted_server *server,
                         const char *text); /* in the last request */
unsigned scripted_server_n_requests(struct scripted_server *server);
void scripted_server_await_requests(struct scripted_server *server, unsigned n);

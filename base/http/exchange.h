/* SPDX-License-Identifier: Apache-2.0 */
#pragma once
/*
 * An exchange: one request, from its submission to the call of on_done.
 *
 *      submitted   it is in the engine's mailbox
 *      delayed     it waits until request.not_before (is_delayed)
 *      active      it is in a pool and has a curl handle
 *      ended       on_done has been called
 *
 * Every state except the first and the last may be skipped. Thread: the engine's, for every
 * function here except hf__exchange_new and hf__exchange_free.
 */
#include <curl/curl.h>
#include <stdbool.h>
#include <stdint.h>

#include "base/http/command.h"
#include "base/http/engine.h"
#include "base/strbuf.h"
#include "base/timer_heap.h"

struct hf__avoided;
struct hf__pool;

struct hf__exchange {
        /* immutable after submission */
        struct hf__http_engine *engine;
        struct hf__http_tls *tls; /* owned reference; NULL = the system's CAs */
        /* The strings of `request`, and its body unless keeps_body is set, are in the same memory
         * block, after this struct. request.headers is not used: the next member replaces it. */
        struct hf__http_request request;
        struct curl_slist *headers; /* in the same memory block; curl must never free it */
        uint64_t id;
        hf_nsec head_deadline; /* HF_NSEC_NEVER = none */
        bool is_read;          /* GET or HEAD, which may be sent twice */

        /* guarded by engine->mu */
        struct hf__exchange *next_in_bucket;
        bool cancel_posted; /* cancel_command is in the mailbox, so do not free the exchange */

        /* owned by the mailbox while posted */
        struct hf__http_command submit_command, cancel_command;

        /* the engine's thread only, from here on */
        /* Due no later than the earliest of deadline, head_deadline (until head_done),
         * connect_deadline and not_before (while is_delayed). It stays as it is when curl gets a
         * connection, which ends connect_deadline. */
        struct hf__timer timer;
        hf_nsec connect_deadline;          /* HF_NSEC_NEVER = none, or curl has a connection */
        struct hf__exchange *next, **link; /* in engine->exchanges; *link points to this exchange */
        bool is_delayed;
        bool ended; /* on no list any more; kept only until cancel_command is taken */

        /* used while curl processes the request */
        struct hf__pool *pool;         /* NULL = not active */
        hf_nsec activated_at;          /* when it was given to curl */
        CURL *easy;                    /* NULL = none */
        struct hf__avoided *avoided;   /* owned; NULL = no address */
        bool left_out_silent;          /* an address was refused because it was silent */
        bool takes_silent;             /* no other address was left: take also silent ones */
        struct curl_slist *connect_to; /* owned, freed by curl_slist_free_all; NULL = none */
        char *url_override;            /* owned, freed by curl_free; NULL = none */
        bool may_have_sent;            /* curl has a connection and may have begun to send */
        hf_nsec sent_at;
        /* Finds the connection's socket (has_local_port in exchange.c): curl does not tell which
         * socket a running request uses. 0 = unknown. */
        int local_port;

        /* the response */
        int forced_outcome; /* set when a callback of curl ends the transfer; 0 = curl's result
                               decides */
        /* As in struct hf__http_result. They describe the first handshake that was lost or, if none
         * was, the last failure. */
        bool other_ca, no_such_host;
        int os_error, verify_error;
        bool head_done;
        int code;       /* status of the response; set together with head_done */
        int block_code; /* status of the header block that is being received */
        uint32_t retry_after_s;
        char *fence_echo; /* owned */
        struct hf__strbuf body;
        char error_text[CURL_ERROR_SIZE];
};

/* Copies request. NULL = out of memory. Thread: any. */
struct hf__exchange *hf__exchange_new(struct hf__http_engine *engine,
                                      const struct hf__http_request *request);
/* Frees an exchange that was never submitted or has ended. */
void hf__exchange_free(struct hf__exchange *x);

/* The functions below that end x call its on_done. Then they free x, unless cancel_command is in
 * the mailbox. So do not use x after a call that may have ended it. */

/* Starts x, delays it, or ends it if no time is left or the engine is stopping. */
void hf__exchange_start(struct hf__exchange *x);
/* Passes x to curl, or ends it on failure. */
void hf__exchange_activate(struct hf__exchange *x);
/* Removes x from curl and activates it again, which may end x. Call it only if nothing of x was
 * sent. */
void hf__exchange_restart(struct hf__exchange *x);
/* Recomputes the timer. Call it after head_done or is_delayed has changed. */
void hf__exchange_set_timer(struct hf__exchange *x);
/* Called when the timer is due. */
void hf__exchange_on_timer(struct hf__exchange *x);
/* Called when curl has finished with x. */
void hf__exchange_on_curl_done(struct hf__exchange *x, CURLcode result);
/* Ends x with outcome. x may be in any state except submitted and ended. */
void hf__exchange_abort(struct hf__exchange *x, int outcome);
/* CURLOPT_PREREQFUNCTION: curl has a connection for the exchange ctx and is about to send. */
int hf__exchange_on_prereq(void *ctx, char *peer, char *local, int peer_port, int local_port);

/* SPDX-License-Identifier: Apache-2.0 */
#pragma once
/*
 * The internals that rest.c (the client), rest_request.c (requests) and rest_watch.c (watches)
 * share.
 *
 * Ownership: a request or a watch is one struct on the heap. The HTTP engine owns it from the
 * moment the engine accepts it until the engine reports its end; no other pointer to it exists. The
 * engine's thread ("hf-rest") runs all callbacks, decides whether to retry, calls the user's final
 * callback and frees the struct. Other threads know the struct only by the engine's request id.
 * hf_client_cancel passes that id to the engine, and the end is reported on the engine's thread as
 * usual. A retry keeps the id, so that it can be canceled at any time. If the engine does not
 * accept the first try, the thread that created the struct frees it, and no callback is called. A
 * retry that the engine does not accept is not made: the engine's thread ends the request or the
 * watch with the result of the last try.
 *
 * Therefore no lock is needed here. The client itself is immutable after its creation, with two
 * exceptions: the bearer token has its own lock (bearer.c), and the index of the server at which
 * requests begin is atomic (rest_servers.c). Freeing the client frees the engine, which first ends
 * all requests and watches.
 */
#include <holdfast/client_port.h>

#include "client/rest_servers.h"

struct hf__bearer;
struct hf__http_engine;
struct hf__http_request;
struct hf__http_result;
struct hf__http_tls;
struct hf__token;

struct hf__rest {
        struct hf_client base;          /* must be the first member */
        struct hf__http_engine *engine; /* owned */
        struct hf__http_tls *tls;       /* owned; NULL = plain http */
        struct hf__bearer *bearer;      /* owned */
        struct hf__rest_servers servers;
        char *user_agent; /* owned; the whole header line */
        hf_nsec timeout;  /* for requests without a deadline, and the response header of a watch */
};

#define HF__REST_MAX_URL   ((size_t)16 << 10)
#define HF__REST_N_HEADERS 6 /* up to three of hf__rest_init_request, the others the caller's */

/* Initializes a request for the engine: method GET, lane, TLS, and the headers that all requests
 * share. `headers` has room for HF__REST_N_HEADERS pointers, and must stay valid until the request
 * is submitted. token may be NULL. */
void hf__rest_init_request(const struct hf__rest *rest, enum hf_lane lane,
                           const struct hf__token *token, const char **headers,
                           struct hf__http_request *ret_request);
/* Returns the error of a request that got no complete HTTP response (result->outcome is not 0).
 * `what` names the request: "GET https://...". */
int hf__rest_fail(const struct hf__http_result *result, const char *what,
                  struct hf_status *ret_status);

/* SPDX-License-Identifier: Apache-2.0 */
#pragma once
/*
 * Inside the REST client: what rest.c (the client), rest_request.c (requests) and rest_watch.c
 * (watches) share.
 *
 * The model. A request or a watch is one struct on the heap. Its owner is the HTTP engine, from the
 * moment the engine accepts it until the engine reports its end; nobody else has a pointer to it.
 * The engine's thread ("hf-rest") runs all of its callbacks, decides whether there is another try,
 * calls the user's last callback and frees the struct. Every other thread knows it by the engine's
 * request id only; hf_client_cancel passes that id to the engine, and the end comes on the engine's
 * thread as always. Another try keeps the id, so that it can be cancelled at any time. A struct
 * that the engine does not accept is freed by the thread that made it, and no callback comes.
 *
 * Therefore nothing here needs a lock. The client itself is immutable once it is made, but for the
 * bearer token, which has a lock of its own (bearer.c). Freeing the client frees the engine, which
 * first ends everything that is under way.
 */
#include <holdfast/client_port.h>

struct hf__bearer;
struct hf__http_engine;
struct hf__http_request;
struct hf__http_result;
struct hf__http_tls;
struct hf__token;

struct hf__rest {
        struct hf_client base;          /* first, so that the client is the struct */
        struct hf__http_engine *engine; /* owned */
        struct hf__http_tls *tls;       /* owned; NULL = plain http */
        struct hf__bearer *bearer;      /* owned */
        char *server;     /* owned; "https://host:port/prefix" without a slash at its end */
        char *user_agent; /* owned; the whole header line */
        hf_nsec timeout;  /* of requests without a deadline */
};

#define HF__REST_MAX_URL   ((size_t)16 << 10)
#define HF__REST_N_HEADERS 6 /* room for the headers that prepare sets and those of a request */

/*
 * Begins the engine's request: method GET, lane, TLS, and the headers that all have in common.
 * `headers` has room for HF__REST_N_HEADERS and must live until the request is submitted. token may
 * be NULL.
 */
void hf__rest_prepare(const struct hf__rest *rest, enum hf_lane lane, const struct hf__token *token,
                      const char **headers, struct hf__http_request *ret_request);
/* The error of an exchange that brought no complete HTTP response (result->outcome is not 0).
 * `what` names the request: "GET https://...". */
int hf__rest_failure(const struct hf__http_result *result, const char *what,
                     struct hf_status *ret_status);

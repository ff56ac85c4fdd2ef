/* SPDX-License-Identifier: Apache-2.0 */
#pragma once
/*
 * Inside the REST client: what its making (rest.c), its calls (rest_call.c) and its watches
 * (rest_watch.c) share. Everything here is immutable once the client is made, but for the bearer
 * token, which sees to itself; what is under way belongs to the HTTP engine, whose request ids are
 * the client's ids.
 */
#include <holdfast/client_port.h>

struct hf__bearer;
struct hf__http_engine;
struct hf__http_request;
struct hf__http_result;
struct hf__http_tls;
struct hf__token;

struct hf__rest {
        struct hf_client base;
        struct hf__http_engine *engine; /* owned */
        struct hf__http_tls *tls;       /* owned; NULL = plain http */
        struct hf__bearer *bearer;      /* owned */
        char *server;     /* owned; "https://host:port/prefix" without a slash at its end */
        char *user_agent; /* owned; the whole header line */
        hf_nsec timeout;
};

/* Begins a request: lane, TLS and the headers common to all, of which there are at most
 * HF__REST_N_HEADERS. token may be NULL. */
#define HF__REST_N_HEADERS 6
void hf__rest_prepare(const struct hf__rest *rest, enum hf_lane lane, const struct hf__token *token,
                      const char **headers, struct hf__http_request *ret_request);
/* The error and words of an exchange that brought no HTTP answer (result->outcome is not 0). */
int hf__rest_failure(const struct hf__http_result *result, const char *what,
                     struct hf_status *ret_status);

/* rest_call.c */
int hf__rest_request(struct hf_client *client, const struct hf_request *request,
                     hf_response_fn done, void *ctx, uint64_t *ret_id);
/* rest_watch.c */
int hf__rest_watch(struct hf_client *client, const struct hf_watch_spec *spec, hf_event_fn on_event,
                   hf_watch_end_fn on_end, void *ctx, uint64_t *ret_id);

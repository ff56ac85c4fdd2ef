/* SPDX-License-Identifier: Apache-2.0 */
#pragma once
/*
 * The curl handle of a request, and the options that are set on it. Handles are kept for further
 * requests. Thread: the engine's, for every function here except hf__curl_options_done, which runs
 * when that thread does not, and hf__curl_options_may_share, which is pure.
 */
#include <curl/curl.h>
#include <stdbool.h>
#include <stddef.h>

struct hf__exchange;
struct hf__http_engine;
struct hf__http_request;

#define HF__HTTP_N_IDLE 64

/* Handles that no request uses at the moment. Their only option is NOSIGNAL (curl_options.c). */
struct hf__curl_options {
        CURL *idle[HF__HTTP_N_IDLE]; /* owned */
        size_t n_idle;
};

/* Sets x->easy to a handle with all options of x. After an error x->easy may be NULL or set; if it
 * is set, it must be released as after a success. */
CURLcode hf__curl_options_acquire_handle(struct hf__exchange *x);
/* Keeps x->easy for a later request or frees it, and sets it to NULL. The handle must have been
 * removed from its multi handle. */
void hf__curl_options_release_handle(struct hf__exchange *x);
/* Whether a request can share a connection with others. This is a guess that is made before the
 * connection exists. */
bool hf__curl_options_may_share(const struct hf__http_request *request);
/* Frees all kept handles. */
void hf__curl_options_done(struct hf__http_engine *engine);

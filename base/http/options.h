/* SPDX-License-Identifier: Apache-2.0 */
#pragma once
/*
 * The curl handle of a request, and the options that are set on it. Handles and parsed URLs are
 * kept for further requests. Thread: the engine's, for every function here except hf__options_done,
 * which runs when that thread does not, and hf__options_may_share, which is pure.
 */
#include <curl/curl.h>
#include <stdbool.h>
#include <stddef.h>

struct hf__exchange;
struct hf__http_engine;
struct hf__http_request;

/*
 * A URL that is used again and again. Parsing a URL, resetting a handle and setting the same
 * options again take a noticeable part of libcurl's time for a small request. So a URL is parsed
 * once, and a handle keeps its options for further requests to the same URL.
 */
struct hf__http_url {
        char *text;    /* owned */
        CURLU *parsed; /* owned */
};

/* A handle that no request uses at the moment. */
struct hf__http_idle {
        CURL *easy; /* owned */
        /* The URL whose request options are still set on the handle; NULL = none are set. */
        const struct hf__http_url *url;
};

#define HF__HTTP_N_IDLE 64
#define HF__HTTP_N_URLS 32

/* Handles and URLs that are kept for later requests. */
struct hf__options {
        struct hf__http_idle idle[HF__HTTP_N_IDLE];
        size_t n_idle;
        struct hf__http_url urls[HF__HTTP_N_URLS]; /* never removed while the engine runs */
        size_t n_urls;
};

/* Sets x->easy to a handle with all options of x. After an error x->easy may be NULL or set; if it
 * is set, it must be released as after a success. */
CURLcode hf__options_acquire_handle(struct hf__exchange *x);
/* Keeps x->easy for a later request or frees it, and sets it to NULL. The handle must have been
 * removed from its multi handle. */
void hf__options_release_handle(struct hf__exchange *x);
/* Whether a request can share a connection with others. This is a guess that is made before the
 * connection exists. */
bool hf__options_may_share(const struct hf__http_request *request);
/* Frees all handles and URLs. */
void hf__options_done(struct hf__http_engine *engine);

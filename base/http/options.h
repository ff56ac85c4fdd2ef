/* SPDX-License-Identifier: Apache-2.0 */
#pragma once
/*
 * What curl is told about a request: its easy handle and the handle's options. Handles and parsed
 * URLs are kept for further requests. Thread: the engine's, for every function here but
 * hf__options_done, which runs after its end.
 */
#include <curl/curl.h>
#include <stdbool.h>
#include <stddef.h>

struct hf__exchange;
struct hf__http_engine;
struct hf__http_request;

/*
 * A URL that recurs. Of the time that a request takes in libcurl, a tenth goes into taking its URL
 * to pieces and putting it together again, and as much into forgetting the options of a handle and
 * setting the same ones again. So the first is done once per URL, the second once per handle.
 */
struct hf__http_url {
        char *text;    /* owned */
        CURLU *parsed; /* owned */
};

/* A handle that is in no use. */
struct hf__http_idle {
        CURL *easy; /* owned */
        /* The handle has the options of requests to this URL; NULL = it has none. */
        const struct hf__http_url *url;
};

#define HF__HTTP_N_IDLE 64
#define HF__HTTP_N_URLS 32

/* What is kept. */
struct hf__options {
        struct hf__http_idle idle[HF__HTTP_N_IDLE];
        size_t n_idle;
        struct hf__http_url urls[HF__HTTP_N_URLS]; /* never removed while the engine runs */
        size_t n_urls;
};

/* Sets x->easy to a handle with all options of x. After an error x->easy may be set as well. */
CURLcode hf__options_take_handle(struct hf__exchange *x);
/* Takes x->easy back. It is in no multi handle any more. */
void hf__options_give_handle(struct hf__exchange *x);
/* Whether a request can share a connection with others, as far as that is known before there is a
 * connection. */
bool hf__options_shares(const struct hf__http_request *request);
/* Frees all handles and URLs. */
void hf__options_done(struct hf__http_engine *engine);

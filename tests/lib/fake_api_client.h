/* SPDX-License-Identifier: Apache-2.0 */
#pragma once
/*
 * An hf_client of the fake API server (fake_api.h) with configurable faults: a mode determines what
 * happens to its requests, and holds keep requests, pages or events back. A held request waits
 * until the test ends the hold, or until its cancellation or deadline.
 *
 * Thread: any.
 */
#include "fake_api.h"

enum fake_api_mode {
        FAKE_API_RESPONDS,
        FAKE_API_HANGS,         /* requests and events are held */
        FAKE_API_REFUSES,       /* requests fail with the error that the test gives */
        FAKE_API_LOSES_REPLIES, /* writes are applied, but get no response */
};

struct fake_api_client {
        struct hf_client base; /* first */
        struct fake_api *api;
        /* guarded by api->mu */
        enum fake_api_mode mode;
        bool mode_is_of_writes; /* reads and watches are served as usual */
        int refuse_error;
        unsigned n_refuse; /* the number of requests to refuse before FAKE_API_RESPONDS; 0 = all */
        bool ignores_fences; /* behaves like a server without fences; a test may set it */
        bool holds_requests, holds_pages, holds_events;
        unsigned n_callbacks; /* running now */
};

/* Freed with hf_client_free(&client->base), before its server. */
struct fake_api_client *fake_api_client_new(struct fake_api *api);

void fake_api_client_set_mode(struct fake_api_client *client, enum fake_api_mode mode);
void fake_api_client_set_write_mode(struct fake_api_client *client, enum fake_api_mode mode);
/* Refuses the next n requests (0: all, until the mode is set again) with this error. */
void fake_api_client_refuse(struct fake_api_client *client, int error, unsigned n);
void fake_api_client_refuse_writes(struct fake_api_client *client, int error, unsigned n);
void fake_api_client_hold_requests(struct fake_api_client *client, bool hold);
/* Holds all pages but the first of each list. */
void fake_api_client_hold_pages(struct fake_api_client *client, bool hold);
void fake_api_client_hold_events(struct fake_api_client *client, bool hold);

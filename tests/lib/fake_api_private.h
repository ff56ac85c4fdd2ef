/* SPDX-License-Identifier: Apache-2.0 */
#pragma once
/*
 * What the two halves of the fake API server share: fake_api.c serves what fake_api_client.c takes
 * in. All of it is guarded by fake_api.mu. Requests and watches are appended by any thread, and
 * removed and freed by the server's thread only.
 */
#include "fake_api_client.h"

#define FAKE_API_STILL_OPEN INT32_MIN /* a watch that has no end yet */

struct fake_api_request {
        struct fake_api_request *next;
        struct fake_api_client *client;
        uint64_t id;
        unsigned list_number;      /* of a list: which of all */
        struct hf_request request; /* its texts are those below */
        char *ns, *name, *plural, *body;
        struct hf_fence fence;
        struct fake_page page;
        hf_response_fn done;
        void *ctx;
        bool is_canceled, is_applied; /* applied: its reply is lost */
};

/* An event that is not in the history. */
struct fake_api_event {
        struct fake_api_event *next;
        enum hf_event_type type;
        struct hf__buf *text;
        uint64_t revision;
};

struct fake_api_watch {
        struct fake_api_watch *next;
        struct fake_api_client *client;
        uint64_t id;
        char *prefix;                 /* of the keys that it watches */
        bool is_of_one;               /* the prefix is a whole key */
        uint64_t from;                /* it has seen all up to this revision */
        size_t next_commit;           /* where it reads on in the history */
        struct fake_api_event *extra; /* sent before those of the history */
        bool wants_bookmarks, bookmark_is_due;
        int end; /* FAKE_API_STILL_OPEN, or the error to end with */
        const char *end_message;
        hf_event_fn on_event;
        hf_watch_end_fn on_end;
        void *ctx;
};

/* The fake's own code runs between these two: with the mutex, and behind the shield. */
void fake_api_lock(struct fake_api *api);
void fake_api_unlock(struct fake_api *api);
void fake_api_signal_and_unlock(struct fake_api *api);

/* Appends an event that is not in the history. Takes the reference to text. */
void fake_api_watch_append(struct fake_api_watch *watch, enum hf_event_type type,
                           struct hf__buf *text, uint64_t revision);
bool fake_api_watch_covers(const struct fake_api_watch *watch, const char *key);

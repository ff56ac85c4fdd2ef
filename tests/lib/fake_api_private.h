/* SPDX-License-Identifier: Apache-2.0 */
#pragma once
/*
 * The structs that fake_api.c (which serves requests and watches) and fake_api_client.c (which
 * queues them) share. fake_api.mu guards all of them. Any thread may append requests and watches;
 * only the server's thread removes and frees them.
 */
#include "fake_api_client.h"

#define FAKE_API_STILL_OPEN INT32_MIN /* a watch that has no end yet */

struct fake_api_request {
        struct fake_api_request *next;
        struct fake_api_client *client;
        uint64_t id;
        unsigned list_number;      /* for a list: its number since the start */
        struct hf_request request; /* its strings are the copies below */
        char *ns, *name, *plural, *body;
        struct hf_fence fence;
        struct fake_page page;
        hf_response_fn done;
        void *ctx;
        bool is_canceled, is_applied; /* applied: the response will be lost */
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
        char *prefix;                 /* of the watched keys */
        bool is_of_one;               /* the prefix is a whole key */
        uint64_t from;                /* the watch has got all events up to this revision */
        size_t next_commit;           /* the index of the first commit that was not looked at */
        struct fake_api_event *extra; /* events that are sent before those of the history */
        bool wants_bookmarks, bookmark_is_due;
        int end; /* FAKE_API_STILL_OPEN, or the error to end with */
        const char *end_message;
        hf_event_fn on_event;
        hf_watch_end_fn on_end;
        void *ctx;
};

/*
 * Lock and unlock mu, and call fake_api_shield.enter and leave. All code of the fake that runs
 * after fake_api_new and fake_api_client_new runs in between.
 */
void fake_api_lock(struct fake_api *api);
void fake_api_unlock(struct fake_api *api);
void fake_api_signal_and_unlock(struct fake_api *api);

/* Appends an event that is not in the history. Takes over the reference to text. */
void fake_api_watch_append(struct fake_api_watch *watch, enum hf_event_type type,
                           struct hf__buf *text, uint64_t revision);
bool fake_api_watch_covers(const struct fake_api_watch *watch, const char *key);

/* SPDX-License-Identifier: Apache-2.0 */
#pragma once
/*
 * Sources of the reflector: its active list requests and watches, and the queue of their messages.
 *
 * The callbacks of a source run on the client's threads, or on the reflector's while it starts the
 * source. They append messages to the queue, and the reflector takes them in order. The last
 * message of a source is embedded in the source. Once that message is in the queue and the start
 * has returned, the client never uses the source again, and the reflector frees both.
 */
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include <holdfast/client.h>

#include "client/resource_version.h"

struct hf__buf;
struct hf__reflector_source;

/* A watch event, or the end of a source. */
struct hf__reflector_message {
        struct hf__reflector_message *next;
        struct hf__reflector_source *source; /* borrowed */
        bool is_last;                        /* this message reports the end of the source */
        enum hf_event_type type;             /* for an event */
        /* owned; for an event the transformed object (NULL for a bookmark), for a list its body */
        struct hf__buf *object;
        char resource_version[HF__RESOURCE_VERSION_MAX]; /* for an event */
};

struct hf__reflector_source {
        /* immutable once it is started */
        struct hf_informer *informer;
        uint64_t id;   /* the client's id, to cancel it */
        bool is_probe; /* a list in parallel to a watch; threads wait for it (informer_barrier.c) */
        hf_nsec started_at;
        /* guarded by the informer's mu */
        bool lost; /* an event could not be queued, so the watch must be abandoned */
        /* The client's callback writes these; the reflector reads them after it took `last`. */
        struct hf__reflector_message last;
        int error; /* as in hf_response and hf_watch_end_fn */
        struct hf_status status;
        /* the reflector's thread only */
        size_t n_events;
};

/* Guarded by the informer's mu. */
struct hf__reflector_queue {
        struct hf__reflector_message *first, **tail;
        size_t n_bytes; /* total size of the queued events */
};

/* Makes an empty queue. */
void hf__reflector_queue_init(struct hf__reflector_queue *queue);

/* ---- thread: the reflector's ---- */

/* Starts a list, or a watch after last_sync_version. The reflector owns *ret_source, and counts it
 * in n_sources until its last message. Returns 0, -ENOMEM or an error of the client; after an
 * error there is no source. Called without the lock. */
int hf__reflector_source_list(struct hf_informer *informer, const char *query, bool is_probe,
                              struct hf__reflector_source **ret_source);
int hf__reflector_source_watch(struct hf_informer *informer,
                               struct hf__reflector_source **ret_source);
/* Cancels the reflector's watch, if it has one, and clears the pointer to it. Later messages of the
 * watch are ignored; its last message frees it. Called without the lock. */
void hf__reflector_abandon_watch(struct hf_informer *informer);

/* Removes the next message from the queue. NULL: the queue is empty. */
struct hf__reflector_message *hf__reflector_queue_pop_locked(struct hf_informer *informer);
/* Frees a message. The last message of a source also frees the source, so the reflector's list and
 * watch must no longer point to it. */
void hf__reflector_message_free(struct hf_informer *informer,
                                struct hf__reflector_message *message);

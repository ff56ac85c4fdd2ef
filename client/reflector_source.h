/* SPDX-License-Identifier: Apache-2.0 */
#pragma once
/*
 * Sources of the reflector: list requests and watches under way, and the queue of messages from
 * them.
 *
 * A source's callbacks run on the client's threads. They post messages, and the reflector takes
 * them in order. The last message of a source is part of the source; once it is taken the client
 * never touches the source again, and the reflector frees it.
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
        bool is_last;                        /* the end of the source */
        enum hf_event_type type;             /* of an event */
        /* owned; of an event the transformed object (NULL for a bookmark), of a list its body */
        struct hf__buf *object;
        char resource_version[HF__RESOURCE_VERSION_MAX]; /* of an event */
};

struct hf__reflector_source {
        /* immutable once it is started */
        struct hf_informer *informer;
        uint64_t id;   /* the client's, for cancelling */
        bool is_probe; /* a list for waiting threads, beside a watch */
        hf_nsec started_at;
        /* guarded by the informer's mu */
        bool lost; /* an event could not be kept: the watch is useless and must be left */
        /* written by the client's callback, read by the reflector after it took `last` */
        struct hf__reflector_message last;
        int error; /* as in hf_response and hf_watch_end_fn */
        struct hf_status status;
        /* the reflector's thread only */
        size_t n_events;
};

/* Guarded by the informer's mu. */
struct hf__reflector_queue {
        struct hf__reflector_message *first, **tail;
        size_t n_bytes;     /* of the events in it */
        bool reader_sleeps; /* the reflector waits, and no message has woken it yet */
};

void hf__reflector_queue_init(struct hf__reflector_queue *queue);

/* ---- thread: the reflector's ---- */

/*
 * Starts a list, or a watch after last_sync_version. *ret_source is owned by the reflector, which
 * counts it in n_sources until its last message. 0, or an error of the client: there is no source.
 * Called without the lock.
 */
int hf__reflector_source_list(struct hf_informer *informer, const char *query, bool is_probe,
                              struct hf__reflector_source **ret_source);
int hf__reflector_source_watch(struct hf_informer *informer,
                               struct hf__reflector_source **ret_source);
/* Cancels the reflector's watch, if it has one, and forgets it. Its messages are ignored; the last
 * one frees it. Called without the lock. */
void hf__reflector_leave_watch(struct hf_informer *informer);

/* Takes the next message. NULL: there is none. */
struct hf__reflector_message *hf__reflector_queue_pop_locked(struct hf_informer *informer);
/* Waits for a message or another signal of `wake`, until boot time `until`. */
void hf__reflector_queue_wait_locked(struct hf_informer *informer, hf_nsec until);
/* Frees a message. The last message of a source frees the source; list and watch of the reflector
 * must not point to it any more. */
void hf__reflector_message_free(struct hf_informer *informer,
                                struct hf__reflector_message *message);

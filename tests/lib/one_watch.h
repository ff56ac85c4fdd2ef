/* SPDX-License-Identifier: Apache-2.0 */
#pragma once
/*
 * One watch without a cacher: its delivery (server/cacher/watch/delivery.h), and a sink that
 * records what it gets. The test queues changes, lets the delivery run, and looks at
 * one_watch_seen. Asserts instead of handling errors. Only tests that link failing_memory.c can use
 * it. Thread: that of the test.
 */
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "server/cacher/state/cacher_state.h"
#include "server/cacher/watch/delivery.h"

/* The delivery. The test may set its members between two functions of the fixture. */
extern struct hfd_delivery one_watch;
/* Only its lock, its histories and its revision are used. */
extern struct hfd_cacher one_watch_cacher;

/* What the sink has received, and how it responds. Zeroed by set_up, apart from n_room. */
struct one_watch_seen {
        char text[4096]; /* the events: "+name@revision " */
        size_t n_text, n_events, n_calls, largest;
        size_t n_room;         /* how many further calls of `ready` say that there is room */
        bool resumes, refuses; /* `ready` resumes the watch; `events` accepts no more */
        int n_asked, n_ends, end_error, end_code;
        bool end_has_body;
        size_t n_waiting, told; /* calls of `waiting`; bytes that waited at the last call */
        bool runs_again;        /* `events` tries to deliver, too */
        bool changes;           /* the next call of `events` makes a change of ns/a */
        uint64_t last_revision; /* of the events; 0 = they did not come in a row */
};
extern struct one_watch_seen one_watch_seen;

/* cmocka's set-up and tear-down. The delivery is started, its sink has room for everything, and the
 * tear-down asserts that no memory is lost. */
int one_watch_set_up(void **state);
int one_watch_tear_down(void **state);

/* An object "namespace/name" with these labels, which are members of a JSON object. The caller owns
 * a reference. */
struct hfd_object *one_watch_make(const char *path, const char *labels, uint64_t revision);
/* Queues a change. labels or before NULL: there is no object after, or before, the change. */
void one_watch_queue(const char *path, const char *labels, const char *before, uint64_t revision);
/* Queues n bookmarks, the first one with this revision. */
void one_watch_queue_bookmarks(uint64_t first, size_t n);
/* Adds a change to the history, as one_watch_queue does to the queue; the cacher has its revision.
 */
void one_watch_remember(const char *path, uint64_t revision);
/* What the cacher does for a change: queues it, if it is watched, and adds it to the history. */
void one_watch_change(const char *path, uint64_t revision);
/* Makes the watch begin after a revision: it is not started any more. */
void one_watch_begin_after(uint64_t revision);
/* Drops the whole history. */
void one_watch_forget(void);
/* Runs the delivery, which delivers what it can. Returns whether the watch has ended. */
bool one_watch_run(void);
void one_watch_request_end(int error);
void one_watch_cancel(void);
void one_watch_select_by(const char *labels, const char *fields);

/* SPDX-License-Identifier: Apache-2.0 */
#pragma once
/*
 * Watches of the cacher of scripted_cacher.h. A sink writes what it gets into a text: "+a@11 " is
 * the object a, added at revision 11; ~ modified, - deleted, b a bookmark; "END:410 " is the end,
 * with the code of its response, or "END:canceled ".
 *
 * Asserts instead of handling errors. Thread: the test's, and those that deliver.
 */
#include <pthread.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "server/cacher/watch/watcher.h"

struct scripted_watch {
        struct hfd_watcher *watcher;
        pthread_mutex_t mu;
        /* guarded by mu */
        char text[1024];
        size_t n;
        struct hf__buf *frame; /* of the last event, if keeps_frame; owned */
        bool keeps_frame;
};

struct scripted_watch_spec {
        const char *plural; /* of the core group; NULL = configmaps */
        const char *ns, *name, *labels, *fields;
        uint64_t revision;
        bool from_now, bookmarks, in_process, keeps_frame;
        int64_t timeout_s;
};

/* Begins a watch that starts at once. */
void scripted_watch_begin(struct scripted_watch *watch, struct scripted_watch_spec spec);
/* Asserts that a watch is refused with this code and message. */
void scripted_watch_expect_refused(struct scripted_watch_spec spec, int code, const char *message);
/* Asserts what has come since the last call. */
void scripted_watch_expect(struct scripted_watch *watch, const char *text);
/* Waits until something has come. */
void scripted_watch_await(struct scripted_watch *watch);
/* Cancels the watch, unless it has ended, and frees it. */
void scripted_watch_done(struct scripted_watch *watch);

/* SPDX-License-Identifier: Apache-2.0 */
#pragma once
/*
 * The reflector of an informer: the thread that lists and watches the collection. Everything here
 * belongs to that thread; there is no lock. reflector.c describes how it works.
 */
#include <pthread.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include <holdfast/clock.h>

#include "client/resource_version.h"

struct hf__reflector_source;

#define HF__REFLECTOR_PAGE 500 /* objects in one page of a list */

struct hf__reflector {
        pthread_t thread; /* set by the thread itself when it begins */

        /* The list and the watch that it follows, at most one each; NULL = none. Owned until their
         * last message is taken. */
        struct hf__reflector_source *list, *watch;
        size_t n_sources; /* these, and abandoned ones whose last message has not come */

        /* the list */
        bool need_list;       /* the store must be listed before a watch may start */
        hf_nsec list_at;      /* boot time; a needed list does not start before */
        char *continue_token; /* owned; of the next page; NULL = no list is between two pages */
        char list_version[HF__RESOURCE_VERSION_MAX]; /* of the first page */
        uint64_t list_number; /* of the list under way, if it is a consistent one; else 0 */
        bool unpaged; /* ask for the next list in one piece: between two pages the server forgot
                         the version of the list */
        unsigned list_failures; /* in a row */

        /* the watch */
        char last_sync_version[HF__RESOURCE_VERSION_MAX]; /* the next watch begins after it */
        hf_nsec watch_at;        /* boot time; the watch does not start before */
        uint64_t watch_floor;    /* a list already brought the watch's events up to this revision */
        unsigned watch_failures; /* in a row */

        /* boot time; replaces list_at and watch_at while a thread waits at the barrier */
        hf_nsec urgent_at;
};

/* The thread's function; ctx is the struct hf_informer. Returns once `stop` is set and all sources
 * have ended. */
void *hf__reflector_run(void *ctx);

/* For assertions: whether the caller runs on the reflector's thread. */
static inline bool hf__reflector_on_thread(const struct hf__reflector *reflector) {
        return pthread_equal(reflector->thread, pthread_self()) != 0;
}

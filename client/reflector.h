/* SPDX-License-Identifier: Apache-2.0 */
#pragma once
/*
 * The reflector of an informer, which lists and watches the collection in steps. Everything here
 * belongs to the thread that runs the steps; there is no lock. reflector.c describes how it works.
 */
#include <pthread.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include <holdfast/clock.h>

#include "client/resource_version.h"

struct hf_informer;
struct hf__reflector_source;

#define HF__REFLECTOR_PAGE 500 /* objects in one page of a list */

struct hf__reflector {
        pthread_t thread; /* set by the thread itself in each step */

        /* The sources that the reflector follows, which are the requests of a list and of a watch;
         * NULL = none. Their results come as messages in a queue (reflector_source.h). A source is
         * owned until its last message was taken from there. */
        struct hf__reflector_source *list, *watch;
        size_t n_sources; /* these two, and abandoned ones whose last message was not taken yet */

        /* the list */
        bool need_list;       /* the collection must be listed before a watch may start */
        hf_nsec list_at;      /* boot time when that list is due */
        char *continue_token; /* owned; token of the next page; NULL = no further page is due */
        char list_version[HF__RESOURCE_VERSION_MAX]; /* the first page's version */
        /* The number of the current list among the informer's consistent lists. It shows a thread
         * at the barrier (informer_barrier.h) whether the list began after the thread's call. 0 =
         * the list is not consistent: its objects may be older than that call. */
        uint64_t list_number;
        /* Request the next list without paging, because the version of the previous one expired
         * between two pages. */
        bool unpaged;
        unsigned list_failures; /* consecutive */

        /* the watch */
        char last_sync_version[HF__RESOURCE_VERSION_MAX]; /* the next watch begins after it */
        hf_nsec watch_at;                                 /* boot time when the next watch is due */
        /* A probe (reflector_list.c) has stored all changes up to this revision, so watch events up
         * to it are skipped. 0 = none are. */
        uint64_t watch_floor;
        unsigned watch_failures; /* consecutive */

        /* boot time; replaces a later list_at or watch_at while a thread waits at the barrier */
        hf_nsec urgent_at;
};

/* When the next step is due. */
enum hf__reflector_next {
        HF__REFLECTOR_AGAIN, /* now */
        HF__REFLECTOR_LATER, /* at a time, unless the informer is woken before */
        HF__REFLECTOR_ENDED  /* never: `stop` is set, and all sources have ended */
};

/* Does what is due, if anything is. With HF__REFLECTOR_LATER *ret_until is the boot time of the
 * next step. Called without the informer's lock, always by the same thread. */
enum hf__reflector_next hf__reflector_step(struct hf_informer *informer, hf_nsec *ret_until);

/* For assertions: whether the caller runs on the reflector's thread. */
static inline bool hf__reflector_on_thread(const struct hf__reflector *reflector) {
        return pthread_equal(reflector->thread, pthread_self()) != 0;
}

/* SPDX-License-Identifier: Apache-2.0 */
#pragma once
/*
 * The objects of one page of a list: those that the selectors match, up to the limit.
 *
 * Thread: owner only, without any lock. The work grows with the number of objects that are
 * examined: a page ends at its limit, and the objects after it are only counted.
 */
#include "server/cacher/watch/snapshot.h"
#include "server/registry/list/read.h"
#include "server/resources/objects/object_key.h"
#include "server/storage/store.h"

struct hfd_list_page {
        struct hfd_object **objects; /* owned, with their references; in the order of paths */
        size_t n, space;
        uint64_t revision; /* of the list */
        bool more;         /* the list may continue on a next page (which can be empty) */
        /* Valid if more: the next page begins after this path (HFD_PATH_MAX bytes would do). */
        char last[2 * HF_NAME_MAX + 4];
        bool has_remaining; /* n_remaining is known: the number of objects that follow */
        size_t n_remaining;
        bool failed; /* out of memory; the page must not be used */
        /* Why a stored value of the page cannot be decrypted, a static text; its path is
         * `last`, and the page must not be used. NULL = all can. */
        const char *sealed;
        /* Borrowed from the snapshot until the page is complete: the last examined object. */
        const struct hfd_object *at;
};

/*
 * Collects a page of the objects of read->range from a snapshot, in steps: each call examines up to
 * n objects, beginning where the previous call ended. True: the page is complete, or page->failed
 * is set; the page keeps nothing of the snapshot. False: call again, with the same snapshot.
 */
bool hfd_list_page_walk(struct hfd_list_page *page, const struct hfd_read *read,
                        const struct hfd_snapshot *snapshot, size_t n);
/* Collects a page from a reply of the store, which may contain more objects than the limit. May be
 * called again with the next part of a reply. */
void hfd_list_page_from_store(struct hfd_list_page *page, const struct hfd_read *read,
                              const struct hfd_store_reply *reply);
void hfd_list_page_done(struct hfd_list_page *page);

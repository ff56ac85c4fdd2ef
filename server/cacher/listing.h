/* SPDX-License-Identifier: Apache-2.0 */
#pragma once
/*
 * One listing of everything that the store holds: pages, all at the revision of the first one, from
 * which trees are built. The reflector publishes them when the last page has arrived.
 *
 * Thread: only one operation of a listing is under way at a time, so it needs no lock; the store's
 * threads hand it over.
 */
#include <holdfast/error.h>

#include "server/cacher/object_tree.h"
#include "server/storage/keys.h"

struct hfd_cacher;

struct hfd_listing {
        struct hfd_cacher *cacher; /* borrowed */
        struct hfd_object_tree trees[HFD_RESOURCES_MAX];
        struct hfd_object_tree unreadable; /* by key; cacher_private.h */
        uint64_t revision;                 /* of the first page; 0 = no page has arrived */
        unsigned long replacement_epoch;   /* when it began; store_identity.h */
        char start[HFD_KEY_MAX];           /* the next page's first key; "" = the first page */
        void (*done)(struct hfd_listing *listing, int error, const struct hf_status *status);
};

/*
 * Lists, and calls done once, on any thread: error 0, or why it failed; status may be NULL. done
 * frees the listing. -ENOMEM: done is not called.
 */
int hfd_listing_start(struct hfd_cacher *cacher, unsigned long replacement_epoch,
                      void (*done)(struct hfd_listing *listing, int error,
                                   const struct hf_status *status));
struct hfd_listing *hfd_listing_free(struct hfd_listing *listing);

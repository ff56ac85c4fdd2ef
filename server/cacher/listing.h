/* SPDX-License-Identifier: Apache-2.0 */
#pragma once
/*
 * One listing of everything in the store. It reads page after page, all at the revision of the
 * first page, and builds trees from them. The reflector publishes the trees after the last page.
 *
 * Thread: a listing needs no lock, because only one of its requests is running at a time. The
 * thread that runs the callback of a request owns the listing.
 */
#include <holdfast/error.h>

#include "server/cacher/object_tree.h"
#include "server/storage/keys.h"

struct hfd_cacher;

struct hfd_listing {
        struct hfd_cacher *cacher; /* borrowed */
        struct hfd_object_tree trees[HFD_RESOURCES_MAX];
        struct hfd_object_tree unreadable; /* placeholders, by key; see cacher_private.h */
        uint64_t revision;                 /* of the first page; 0 = no page has arrived */
        unsigned long replacement_epoch;   /* its value at the start; see store_identity.h */
        char start[HFD_KEY_MAX]; /* the next page starts at this key; "" = the first page */
        void (*done)(struct hfd_listing *listing, int error, const struct hf_status *status);
};

/*
 * Starts a listing. When it has ended, done is called once, on any thread, and frees the listing.
 * error is 0 or the reason for the failure; status may be NULL. -ENOMEM: done is not called.
 */
int hfd_listing_start(struct hfd_cacher *cacher, unsigned long replacement_epoch,
                      void (*done)(struct hfd_listing *listing, int error,
                                   const struct hf_status *status));
struct hfd_listing *hfd_listing_free(struct hfd_listing *listing);

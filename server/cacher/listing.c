/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Lists the store page by page. The reply to the first page contains the revision at which all
 * further pages are requested. So all pages show the same state of the store, even if other clients
 * write meanwhile.
 *
 * Large pages. For each page, etcd counts all keys that follow it, so its work is the number of
 * pages times the number of keys. Pages therefore grow: each one is a few times as large as all
 * before it together, until PAGE_BYTES. So a small store is listed in a few pages, none of which is
 * much too large if the objects are large, and the work for a large one grows about as it does. A
 * page that fails is requested again, smaller each time, because it may have been too large for the
 * store's deadline or for a response.
 *
 * Invariant: only one page is requested at a time. `done` is called exactly once: after the last
 * page, or after a failure.
 */
#include "server/cacher/listing.h"

#include <assert.h>
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>

#include "server/cacher/cacher_private.h"
#include "server/cacher/stored_value.h"
#include "server/resources/object_key.h"

#define PAGE_FIRST    500 /* objects */
#define PAGE_GROWTH   4
#define PAGE_MAX      100000u /* objects */
#define PAGE_BYTES    ((size_t)64 << 20)
#define LIST_DEADLINE (30 * HF_NSEC_PER_SEC)
#define RETRIES_MAX   8 /* of one listing */

static void request_page(struct hfd_listing *listing);

/*
 * Puts one stored value into the trees. A value that is not a valid object gets a placeholder
 * (stored_value.h), and values of unknown resources are skipped. False: out of memory.
 */
static bool add_value(struct hfd_listing *listing, const struct hfd_kv *kv) {
        const char *path;
        const struct hfd_resource *resource =
                hfd_object_key_parse(listing->cacher->prefix, kv->key, &path);
        struct hfd_object *old = NULL;

        if (!resource || !kv->value)
                return true;
        struct hfd_object *object = hfd_object_new(resource, path, kv->mod_revision, kv->value);
        if (!object) {
                struct hfd_object *placeholder =
                        hfd_stored_value_placeholder(listing->cacher, resource, kv);
                return placeholder &&
                       hfd_stored_value_set_placeholder(&listing->unreadable, kv->key, placeholder);
        }
        if (hfd_object_tree_append(&listing->trees[hfd_resource_index(resource)], object, &old) !=
            0)
                return false;
        hfd_object_unref(old);
        return true;
}

/* The limit for the next page, as far as the size of the objects so far allows it. */
static size_t next_limit(const struct hfd_listing *listing) {
        size_t limit = PAGE_FIRST;

        if (listing->n_keys > 0) {
                size_t of_that_size = PAGE_BYTES / (listing->n_bytes / listing->n_keys + 1);
                limit = PAGE_GROWTH * listing->n_keys;
                limit = limit < of_that_size ? limit : of_that_size;
        }
        limit = limit < PAGE_MAX ? limit : PAGE_MAX;
        limit >>= listing->n_retries;
        return limit > 0 ? limit : 1;
}

static int add_page(struct hfd_listing *listing, const struct hfd_store_reply *reply) {
        for (size_t i = 0; i < reply->n_kvs; i++) {
                if (!add_value(listing, &reply->kvs[i]))
                        return -ENOMEM;
                listing->n_keys++;
                listing->n_bytes += reply->kvs[i].value ? reply->kvs[i].value->n : 0;
        }
        /*
         * The next page starts at the lowest possible key after the last one: no key contains a
         * byte below 0x01.
         */
        if (reply->more && reply->n_kvs)
                (void)snprintf(listing->start, sizeof listing->start, "%.*s\x01", HFD_KEY_MAX - 2,
                               reply->kvs[reply->n_kvs - 1].key);
        return 0;
}

/*
 * Whether a page that failed is requested again. If the first one found no store, the reflector
 * waits before it tries again.
 */
static bool may_retry(const struct hfd_listing *listing, int error) {
        bool unreachable = error == HF_E_UNAVAILABLE && listing->revision == 0;

        return listing->n_retries < RETRIES_MAX && !unreachable && error != HF_E_GONE &&
               error != HF_E_CANCELED;
}

static void on_page(void *ctx, const struct hfd_store_reply *reply) {
        struct hfd_listing *listing = ctx;
        int r = reply->error;

        if (r != 0 && may_retry(listing, r)) {
                listing->n_retries++;
                request_page(listing);
                return;
        }
        if (r == 0)
                r = add_page(listing, reply);
        if (r != 0) {
                listing->done(listing, r, &reply->status);
                return;
        }
        if (listing->revision == 0)
                listing->revision = reply->revision;
        hfd_reflector_progress(listing->cacher, listing->n_keys);
        if (reply->more && reply->n_kvs)
                request_page(listing);
        else
                listing->done(listing, 0, NULL);
}

static void request_page(struct hfd_listing *listing) {
        struct hfd_cacher *cacher = listing->cacher;
        char prefix[sizeof cacher->prefix + 1];

        (void)snprintf(prefix, sizeof prefix, "%s/", cacher->prefix);
        int r = hfd_store_request_list(cacher, prefix, *listing->start ? listing->start : NULL,
                                       listing->revision, next_limit(listing),
                                       hfd_cacher_now(cacher) + LIST_DEADLINE, on_page, listing);
        if (r != 0)
                listing->done(listing, r, NULL);
}

int hfd_listing_start(struct hfd_cacher *cacher, unsigned long replacement_epoch,
                      void (*done)(struct hfd_listing *listing, int error,
                                   const struct hf_status *status)) {
        struct hfd_listing *listing = calloc(1, sizeof *listing);

        assert(done);
        if (!listing)
                return -ENOMEM;
        listing->cacher = cacher;
        listing->replacement_epoch = replacement_epoch;
        listing->done = done;
        request_page(listing);
        return 0;
}

struct hfd_listing *hfd_listing_free(struct hfd_listing *listing) {
        if (!listing)
                return NULL;
        for (size_t i = 0; i < HFD_RESOURCES_MAX; i++) {
                hfd_object_tree_clear(&listing->trees[i]);
                hfd_object_tree_clear(&listing->newer[i]);
        }
        hfd_event_histories_done(&listing->histories);
        hfd_object_tree_clear(&listing->unreadable);
        free(listing);
        return NULL;
}

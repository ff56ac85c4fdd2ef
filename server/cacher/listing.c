/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Lists the store page by page. The reply to the first page contains the revision at which all
 * further pages are requested. So all pages show the same state of the store, even if other clients
 * write meanwhile.
 *
 * Invariant: only one page is requested at a time. `done` is called exactly once: after the last
 * page, or after the first failure.
 */
#include "server/cacher/listing.h"

#include <assert.h>
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>

#include "server/cacher/cacher_private.h"
#include "server/cacher/stored_value.h"
#include "server/resources/object_key.h"

#define PAGE_SIZE     500 /* objects */
#define LIST_DEADLINE (30 * HF_NSEC_PER_SEC)

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
        if (hfd_object_tree_put(&listing->trees[hfd_resource_index(resource)], object, &old) != 0)
                return false;
        hfd_object_unref(old);
        return true;
}

static int add_page(struct hfd_listing *listing, const struct hfd_store_reply *reply) {
        for (size_t i = 0; i < reply->n_kvs; i++)
                if (!add_value(listing, &reply->kvs[i]))
                        return -ENOMEM;
        /*
         * The next page starts at the lowest possible key after the last one: no key contains a
         * byte below 0x01.
         */
        if (reply->more && reply->n_kvs)
                (void)snprintf(listing->start, sizeof listing->start, "%.*s\x01", HFD_KEY_MAX - 2,
                               reply->kvs[reply->n_kvs - 1].key);
        return 0;
}

static void on_page(void *ctx, const struct hfd_store_reply *reply) {
        struct hfd_listing *listing = ctx;
        int r = reply->error;

        if (r == 0)
                r = add_page(listing, reply);
        if (r != 0) {
                listing->done(listing, r, &reply->status);
                return;
        }
        if (listing->revision == 0)
                listing->revision = reply->revision;
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
                                       listing->revision, PAGE_SIZE,
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
        for (size_t i = 0; i < HFD_RESOURCES_MAX; i++)
                hfd_object_tree_clear(&listing->trees[i]);
        hfd_object_tree_clear(&listing->unreadable);
        free(listing);
        return NULL;
}

/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Lists the store page by page. The reply to the first page contains the revision at which all
 * further pages are requested. So all pages show the same state of the store, even if other clients
 * write meanwhile.
 *
 * Large pages. For each page, etcd counts all keys of the range that follow it, so few pages mean
 * less work for it. But large objects need small pages, and the sizes are not known in advance.
 * Pages therefore grow: the first has PAGE_FIRST objects, which is a guess, and each further one
 * may have PAGE_GROWTH times as many as all before it together. The limits are PAGE_MAX and, with
 * the average size so far, PAGE_BYTES. Until a page reaches a limit, the work grows about linearly
 * with the number of keys. A page that fails may have been too large for the store's deadline or
 * for a response. So, unless may_retry forbids it, the page is requested again at half the size,
 * and all later pages of this listing are halved too.
 *
 * Two threads. The store's thread receives a page, keeps references to its values, and requests
 * the next one, unless two pages wait. The cacher's timer thread builds the trees, a few objects at
 * a time, and then requests the next page if the store's thread has not done so. So the store reads
 * one page while the previous one is built, and the thread that delivers the replies of the store
 * is free for other replies.
 *
 *      request_page -> on_page: queue the page -> request_page ...      the store's thread
 *                               hfd_listing_step: build it -> done      the timer thread
 *
 * Invariants: only one page is requested at a time. At most two pages are in the list `first`: the
 * one that is being built, and the next. `done` is called exactly once, by the timer thread, when
 * no request is running: after the last page was built, after a failure, or when the cacher stops.
 */
#include "server/cacher/sync/listing.h"

#include <assert.h>
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/thread.h"
#include "server/cacher/requests/store_request.h"
#include "server/cacher/state/cacher_state.h"
#include "server/cacher/state/stored_value.h"
#include "server/cacher/sync/listing_page.h"
#include "server/cacher/sync/slot_forms.h"
#include "server/resources/custom/custom_kind.h"
#include "server/resources/objects/object_key.h"
#include "server/resources/objects/stored_object.h"
#include "server/resources/rows/resource_table.h"

#define PAGE_FIRST    500 /* objects */
#define PAGE_GROWTH   4
#define PAGE_MAX      100000u /* objects */
#define PAGE_BYTES    ((size_t)64 << 20)
#define LIST_DEADLINE (30 * HF_NSEC_PER_SEC)
#define RETRIES_MAX   8    /* of one listing */
#define STEP_OBJECTS  1000 /* built before the timer thread checks its other work */

static void request_page(struct hfd_listing *listing);

/* ---- all listings ---- */

struct hfd_listings *hfd_listings_new(void) {
        return calloc(1, sizeof(struct hfd_listings));
}

struct hfd_listings *hfd_listings_free(struct hfd_listings *listings) {
        assert(!listings || !listings->running);
        free(listings);
        return NULL;
}

bool hfd_listings_running_locked(const struct hfd_cacher *cacher) {
        hf__mutex_assert_held(&cacher->mu);
        return cacher->listings->running != NULL;
}

size_t hfd_listings_progress_locked(const struct hfd_cacher *cacher, hf_nsec *ret_at) {
        hf__mutex_assert_held(&cacher->mu);
        *ret_at = cacher->listings->progress_at;
        return cacher->listings->n;
}

void hfd_listings_reset_locked(struct hfd_cacher *cacher) {
        hf__mutex_assert_held(&cacher->mu);
        cacher->listings->n = 0;
}

/* The running listing has received n keys so far. */
static void record_progress(struct hfd_cacher *cacher, size_t n) {
        struct hfd_listings *listings = cacher->listings;
        hf_nsec now = hfd_cacher_now(cacher);

        pthread_mutex_lock(&cacher->mu);
        listings->n = n;
        if (n > listings->n_max) {
                listings->n_max = n;
                listings->progress_at = now;
        }
        pthread_mutex_unlock(&cacher->mu);
}

/* ---- values ---- */

/*
 * Puts one stored value into the trees. A value that is not a valid object, or cannot be decrypted,
 * gets a placeholder (stored_value.h). Values of unknown resources are skipped. False: out of
 * memory.
 */
static bool add_value(struct hfd_listing *listing, const struct hfd_kv *kv) {
        const char *path;
        struct hfd_cacher *cacher = listing->cacher;
        const struct hfd_resource *resource =
                hfd_object_key_parse(cacher->prefix, cacher->table, kv->key, &path);
        struct hfd_object *old = NULL;

        assert(kv->key);
        /* No path: memory ran out while the key was looked up (hfd_object_key_parse). */
        if (!resource || !kv->value)
                return path != NULL;
        const struct hfd_resource *form = hfd_slot_form_get(cacher, resource);
        struct hfd_object *object = hfd_stored_object_new(form, path, kv);
        hfd_resource_unref(form);
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

/* ---- requests ---- */

/* The limit for the next page, in objects. */
static size_t next_limit(const struct hfd_listing *listing) {
        size_t limit = PAGE_FIRST;

        if (listing->n_keys > 0) {
                /* One byte more than the average: it is not 0 even if all values are empty. */
                size_t n_in_page_bytes = PAGE_BYTES / (listing->n_bytes / listing->n_keys + 1);
                limit = PAGE_GROWTH * listing->n_keys;
                limit = limit < n_in_page_bytes ? limit : n_in_page_bytes;
        }
        limit = limit < PAGE_MAX ? limit : PAGE_MAX;
        limit >>= listing->n_retries;
        return limit > 0 ? limit : 1;
}

/* After a failure: wakes the timer thread. No request is running any more, and no other follows. */
static void end_requests(struct hfd_listing *listing, int error, const struct hf_status *status) {
        struct hfd_cacher *cacher = listing->cacher;

        assert(error != 0);
        pthread_mutex_lock(&cacher->mu);
        if (listing->error == 0) {
                listing->error = error;
                listing->status = status ? *status : (struct hf_status){.error = error};
        }
        listing->requesting = false;
        pthread_cond_broadcast(&cacher->cond);
        pthread_mutex_unlock(&cacher->mu);
}

/*
 * Whether a page that failed is requested again, at once. If not even the first one reached the
 * store, there is no half-done work to save, and the reflector waits before it tries again. A
 * revision that is compacted (HF_E_GONE) needs a new listing.
 */
static bool may_retry(const struct hfd_listing *listing, int error) {
        bool unreachable = error == HF_E_UNAVAILABLE && listing->revision == 0;

        pthread_mutex_lock(&listing->cacher->mu);
        bool ended = listing->cacher->stopping || listing->error != 0;
        pthread_mutex_unlock(&listing->cacher->mu);

        return !ended && listing->n_retries < RETRIES_MAX && !unreachable && error != HF_E_GONE &&
               error != HF_E_CANCELED;
}

/* Writes the directory of a key, "/registry/configmaps/default/". */
static void key_directory(const char *key, char directory[HFD_KEY_MAX]) {
        const char *slash = strrchr(key, '/');

        (void)snprintf(directory, HFD_KEY_MAX, "%.*s", slash ? (int)(slash + 1 - key) : 0, key);
}

/*
 * Chooses the range of the next page, after the last key of this one. If the page lies within one
 * directory (a namespace), the next one reads the rest of this directory only, so that etcd does
 * not count all that follows it. After the rest of a directory, the range is unlimited again.
 * Returns whether anything may follow.
 */
static bool next_range(struct hfd_listing *listing, const struct hfd_store_reply *reply) {
        char first[HFD_KEY_MAX], last[HFD_KEY_MAX];

        if (*listing->directory && !reply->more) {
                if (hfd_key_prefix_end(listing->start, listing->directory) != 0)
                        return false; /* impossible: a key fits, so its directory does */
                *listing->directory = 0;
                return true;
        }
        if (!reply->more || !reply->n_kvs)
                return false;
        key_directory(reply->kvs[0].key, first);
        key_directory(reply->kvs[reply->n_kvs - 1].key, last);
        (void)snprintf(listing->directory, sizeof listing->directory, "%s",
                       strcmp(first, last) == 0 ? last : "");
        hfd_key_after(listing->start, reply->kvs[reply->n_kvs - 1].key);
        return true;
}

static void count_page(struct hfd_listing *listing, const struct hfd_store_reply *reply) {
        listing->n_keys += reply->n_kvs;
        for (size_t i = 0; i < reply->n_kvs; i++)
                listing->n_bytes += reply->kvs[i].value ? reply->kvs[i].value->n : 0;
}

/* Passes the page to the timer thread. Requests the next one, if there is one, unless two wait to
 * be built or the listing is about to end. */
static void queue_page(struct hfd_listing *listing, struct hfd_listing_page *page, bool more) {
        struct hfd_cacher *cacher = listing->cacher;

        assert(page && page->n_built == 0);
        pthread_mutex_lock(&cacher->mu);
        if (listing->first)
                listing->first->next = page; /* at most one page was waiting */
        else
                listing->first = page;
        listing->waiting = more && page != listing->first;
        listing->requesting = more && !listing->waiting && !cacher->stopping && listing->error == 0;
        listing->requested_all = !more;
        bool request = listing->requesting;
        pthread_cond_broadcast(&cacher->cond);
        pthread_mutex_unlock(&cacher->mu);
        /* If no request follows, the timer thread may have freed the listing by now. */
        if (request)
                request_page(listing);
}

static void on_page(void *ctx, const struct hfd_store_reply *reply) {
        struct hfd_listing *listing = ctx;
        int r = reply->error;

        if (r != 0 && may_retry(listing, r)) {
                listing->n_retries++;
                request_page(listing);
                return;
        }
        struct hfd_listing_page *page = r == 0 ? hfd_listing_page_new(reply) : NULL;
        if (!page) {
                end_requests(listing, r ? r : -ENOMEM, r ? &reply->status : NULL);
                return;
        }
        if (listing->revision == 0)
                listing->revision = reply->revision;
        count_page(listing, reply);
        record_progress(listing->cacher, listing->n_keys);
        queue_page(listing, page, next_range(listing, reply));
}

static void request_page(struct hfd_listing *listing) {
        struct hfd_cacher *cacher = listing->cacher;
        char prefix[sizeof cacher->prefix + 1];

        (void)snprintf(prefix, sizeof prefix, "%s/", cacher->prefix);
        int r = hfd_store_request_list(cacher, *listing->directory ? listing->directory : prefix,
                                       *listing->start ? listing->start : NULL, listing->revision,
                                       next_limit(listing), hfd_cacher_now(cacher) + LIST_DEADLINE,
                                       on_page, listing);
        if (r != 0)
                end_requests(listing, r, NULL);
}

/* ---- building, by the timer thread ---- */

bool hfd_listing_step_due_locked(struct hfd_cacher *cacher) {
        const struct hfd_listing *listing = cacher->listings->running;

        hf__mutex_assert_held(&cacher->mu);
        if (!listing)
                return false;
        if (listing->error != 0 || cacher->stopping)
                return !listing->requesting;
        return listing->first || listing->requested_all;
}

/*
 * Builds a part of the page. Each value is dropped at once, so that its memory can be reused. 0 or
 * -ENOMEM.
 */
static int build_objects(struct hfd_listing *listing, struct hfd_listing_page *page) {
        int r = 0;

        for (size_t i = 0; i < STEP_OBJECTS && page->n_built < page->n && r == 0; i++) {
                struct hfd_kv *kv = &page->kvs[page->n_built++];
                r = add_value(listing, kv) ? 0 : -ENOMEM;
                hf__buf_unref(kv->value);
        }
        return r;
}

/* Removes a page that was built. Returns whether the next page must be requested now. */
static bool remove_page(struct hfd_listing *listing) {
        struct hfd_cacher *cacher = listing->cacher;

        pthread_mutex_lock(&cacher->mu);
        struct hfd_listing_page *page = listing->first;
        assert(page);
        listing->first = page->next;
        bool request = listing->waiting && !cacher->stopping && listing->error == 0;
        listing->waiting = listing->waiting && !request;
        listing->requesting |= request;
        pthread_mutex_unlock(&cacher->mu);
        (void)hfd_listing_page_free(page);
        return request;
}

void hfd_listing_step(struct hfd_cacher *cacher) {
        pthread_mutex_lock(&cacher->mu);
        struct hfd_listing *listing = cacher->listings->running;
        struct hfd_listing_page *page = listing->first;
        if (cacher->stopping && listing->error == 0)
                listing->error = HF_E_CANCELED;
        bool end = listing->error != 0 || !page;
        /* The cacher may have begun to stop after the caller's check of
         * hfd_listing_step_due_locked. Then a request that is running still uses the listing. */
        bool later = end && listing->requesting;
        if (end && !later)
                cacher->listings->running = NULL;
        pthread_mutex_unlock(&cacher->mu);
        if (later)
                return;
        if (end) {
                assert(!listing->requesting);
                listing->done(listing, listing->error, listing->error ? &listing->status : NULL);
                return;
        }
        int r = build_objects(listing, page);
        if (r == 0 && page->n_built == page->n && remove_page(listing))
                request_page(listing);
        if (r != 0) {
                pthread_mutex_lock(&cacher->mu);
                listing->error = r;
                pthread_mutex_unlock(&cacher->mu);
        }
}

int hfd_listing_start(struct hfd_cacher *cacher, unsigned long generation,
                      void (*done)(struct hfd_listing *listing, int error,
                                   const struct hf_status *status)) {
        struct hfd_listing *listing = calloc(1, sizeof *listing);

        assert(done);
        if (!listing)
                return -ENOMEM;
        listing->cacher = cacher;
        listing->generation = generation;
        listing->done = done;
        listing->requesting = true;
        pthread_mutex_lock(&cacher->mu);
        assert(!cacher->listings->running);
        /* The timer thread builds the listing. While the cacher stops, the timer thread may have
         * ended already. */
        bool stopping = cacher->stopping;
        if (!stopping)
                cacher->listings->running = listing;
        pthread_mutex_unlock(&cacher->mu);
        if (stopping) {
                hfd_listing_free(listing);
                return HF_E_CANCELED;
        }
        request_page(listing);
        return 0;
}

struct hfd_listing *hfd_listing_free(struct hfd_listing *listing) {
        if (!listing)
                return NULL;
        while (listing->first)
                listing->first = hfd_listing_page_free(listing->first);
        for (size_t i = 0; i < hfd_cacher_slots(listing->cacher); i++) {
                hfd_object_tree_clear(&listing->trees[i]);
                hfd_object_tree_clear(&listing->newer[i]);
        }
        hfd_event_histories_done(&listing->histories);
        hfd_object_tree_clear(&listing->unreadable);
        free(listing);
        return NULL;
}

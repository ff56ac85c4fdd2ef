/* SPDX-License-Identifier: Apache-2.0 */
#pragma once
/*
 * A page of a listing that waits to be built: its keys, and references to its values. A store
 * thread makes the page in the callback of the list request, and passes it to the cacher's timer
 * thread under the cacher's lock (`first` in listing.h). The timer thread builds the objects and
 * frees the page.
 */
#include "server/storage/store.h"

struct hfd_listing_page {
        struct hfd_listing_page *next;
        size_t n, n_built;
        struct hfd_kv
                kvs[]; /* their values are owned, from n_built on; the keys follow the array */
};

/* Copies the keys of the reply, which is borrowed. The caller owns the page. NULL: out of memory.
 */
struct hfd_listing_page *hfd_listing_page_new(const struct hfd_store_reply *reply);
/* Frees the page, and the values that were not built. Returns the next page; NULL = none. Does not
 * accept NULL. */
struct hfd_listing_page *hfd_listing_page_free(struct hfd_listing_page *page);

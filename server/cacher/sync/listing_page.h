/* SPDX-License-Identifier: Apache-2.0 */
#pragma once
/* A page of a listing that waits to be built: its keys, and references to its values. */
#include "server/storage/store.h"

struct hfd_listing_page {
        struct hfd_listing_page *next;
        size_t n, n_built;
        struct hfd_kv
                kvs[]; /* their values are owned, from n_built on; the keys follow the array */
};

/* Copies the keys of the reply, which is borrowed. NULL: out of memory. */
struct hfd_listing_page *hfd_listing_page_new(const struct hfd_store_reply *reply);
/* Returns the next page. */
struct hfd_listing_page *hfd_listing_page_free(struct hfd_listing_page *page);

/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Copies a page of the store's reply, because the reply ends with its callback.
 *
 * Invariant: the page holds a reference to each value from n_built on. The code that builds an
 * object of a value takes that reference over and increments n_built.
 */
#include "server/cacher/sync/listing_page.h"

#include <assert.h>
#include <stdlib.h>
#include <string.h>

struct hfd_listing_page *hfd_listing_page_new(const struct hfd_store_reply *reply) {
        size_t n_keys = 0;

        for (size_t i = 0; i < reply->n_kvs; i++)
                n_keys += strlen(reply->kvs[i].key) + 1;
        struct hfd_listing_page *page =
                malloc(sizeof *page + reply->n_kvs * sizeof *page->kvs + n_keys);
        if (!page)
                return NULL;
        *page = (struct hfd_listing_page){.n = reply->n_kvs};
        char *key = (char *)&page->kvs[page->n];
        for (size_t i = 0; i < page->n; i++) {
                page->kvs[i] = reply->kvs[i];
                hf__buf_ref(page->kvs[i].value);
                page->kvs[i].key = key;
                key = stpcpy(key, reply->kvs[i].key) + 1;
        }
        assert(key == (char *)&page->kvs[page->n] + n_keys);
        return page;
}

struct hfd_listing_page *hfd_listing_page_free(struct hfd_listing_page *page) {
        struct hfd_listing_page *next = page->next;

        assert(page->n_built <= page->n);
        for (size_t i = page->n_built; i < page->n; i++)
                hf__buf_unref(page->kvs[i].value);
        free(page);
        return next;
}

/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The documents are in a list, the most recently used one in front. A search goes through the list,
 * which takes little time compared with making a document.
 *
 * An uncompressed text that no request uses any more is dropped when a document is looked up or
 * unpacked the next time.
 *
 * Invariant: there is at most one document of each name, and n_bytes is the sum of their compressed
 * sizes, which is at most max_bytes.
 */
#include "server/handlers/openapi/document_cache.h"

#include <assert.h>
#include <errno.h>
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/thread.h"
#include "server/handlers/gzip.h"

#define ENTRIES_MAX 1024 /* keeps a search short, however small the documents are */

struct entry {
        struct entry *next;
        char name[HFD_DOCUMENT_NAME_MAX];
        uint8_t fingerprint[HFD_DOCUMENT_FINGERPRINT];
        struct hfd_document document; /* with an owned reference */
        struct hf__buf *plain;        /* a reference to its text; NULL = it is not kept */
};

struct hfd_document_cache {
        size_t max_bytes; /* immutable */
        pthread_mutex_t mu;
        /* guarded by mu */
        struct entry *first;
        size_t n_entries, n_bytes;
};

int hfd_document_cache_new(size_t max_bytes, struct hfd_document_cache **ret_cache) {
        struct hfd_document_cache *cache = calloc(1, sizeof *cache);

        if (!cache)
                return -ENOMEM;
        cache->max_bytes = max_bytes;
        int r = hf__mutex_init(&cache->mu);
        if (r != 0) {
                free(cache);
                return r;
        }
        *ret_cache = cache;
        return 0;
}

/* Removes the entry that *place points to. The caller holds the lock, or frees the cache. */
static void remove_entry(struct hfd_document_cache *cache, struct entry **place) {
        struct entry *entry = *place;

        *place = entry->next;
        assert(cache->n_entries > 0 && cache->n_bytes >= entry->document.packed->n);
        cache->n_entries--;
        cache->n_bytes -= entry->document.packed->n;
        hf__buf_unref(entry->document.packed);
        hf__buf_unref(entry->plain);
        free(entry);
}

struct hfd_document_cache *hfd_document_cache_free(struct hfd_document_cache *cache) {
        if (!cache)
                return NULL;
        while (cache->first)
                remove_entry(cache, &cache->first);
        assert(cache->n_entries == 0 && cache->n_bytes == 0);
        (void)pthread_mutex_destroy(&cache->mu);
        free(cache);
        return NULL;
}

/* The pointer to the entry of this name; it points to NULL if there is none. */
static struct entry **find_locked(struct hfd_document_cache *cache, const char *name) {
        struct entry **place = &cache->first;

        hf__mutex_assert_held(&cache->mu);
        while (*place && strcmp((*place)->name, name) != 0)
                place = &(*place)->next;
        return place;
}

static void put_in_front_locked(struct hfd_document_cache *cache, struct entry *entry) {
        hf__mutex_assert_held(&cache->mu);
        entry->next = cache->first;
        cache->first = entry;
}

/* A request gets its reference to a text under the lock. So nobody can begin to use a text that is
 * found unshared here. */
static void drop_unused_locked(struct hfd_document_cache *cache) {
        hf__mutex_assert_held(&cache->mu);
        for (struct entry *entry = cache->first; entry; entry = entry->next)
                if (entry->plain && !hf__buf_is_shared(entry->plain))
                        entry->plain = hf__buf_unref(entry->plain);
}

bool hfd_document_cache_find(struct hfd_document_cache *cache, const char *name,
                             const uint8_t fingerprint[HFD_DOCUMENT_FINGERPRINT],
                             struct hfd_document *ret_document) {
        pthread_mutex_lock(&cache->mu);
        drop_unused_locked(cache);
        struct entry **place = find_locked(cache, name), *entry = *place;
        bool found =
                entry && memcmp(entry->fingerprint, fingerprint, sizeof entry->fingerprint) == 0;
        if (found) {
                *place = entry->next;
                put_in_front_locked(cache, entry);
                *ret_document = entry->document;
                hf__buf_ref(ret_document->packed);
        }
        pthread_mutex_unlock(&cache->mu);
        return found;
}

/* Returns the uncompressed text that the cache keeps for the document, with a reference for the
 * caller. If the cache keeps none, the caller gets `plain`, and the cache keeps it from now on,
 * unless it has replaced or removed the document meanwhile. NULL: the cache keeps none, and plain
 * is NULL. */
static struct hf__buf *share_text(struct hfd_document_cache *cache, const char *name,
                                  const struct hfd_document *document, struct hf__buf *plain) {
        pthread_mutex_lock(&cache->mu);
        struct entry *entry = *find_locked(cache, name);
        if (entry && entry->document.packed != document->packed)
                entry = NULL; /* the document has been replaced meanwhile */
        if (entry && !entry->plain)
                entry->plain = hf__buf_ref(plain);
        struct hf__buf *shared = hf__buf_ref(entry ? entry->plain : plain);
        drop_unused_locked(cache);
        pthread_mutex_unlock(&cache->mu);
        return shared;
}

struct hf__buf *hfd_document_cache_unpack(struct hfd_document_cache *cache, const char *name,
                                          const struct hfd_document *document) {
        struct hf__buf *shared = share_text(cache, name, document, NULL);

        if (shared)
                return shared;
        HF__CLEANUP(hf__buf_cleanup)
        struct hf__buf *plain = hfd_gzip_unpack(document->packed, document->n);
        return plain ? share_text(cache, name, document, plain) : NULL;
}

/* Makes room for the entry in front. The last entry was used longest ago. */
static void shrink_locked(struct hfd_document_cache *cache) {
        hf__mutex_assert_held(&cache->mu);
        while (cache->n_bytes > cache->max_bytes || cache->n_entries > ENTRIES_MAX) {
                struct entry **last = &cache->first;
                while ((*last)->next)
                        last = &(*last)->next;
                remove_entry(cache, last);
        }
}

void hfd_document_cache_add(struct hfd_document_cache *cache, const char *name,
                            const uint8_t fingerprint[HFD_DOCUMENT_FINGERPRINT],
                            const struct hfd_document *document) {
        assert(document->packed && strlen(name) < HFD_DOCUMENT_NAME_MAX);
        struct entry *entry =
                document->packed->n <= cache->max_bytes ? malloc(sizeof *entry) : NULL;
        if (!entry)
                return;
        *entry = (struct entry){.document = *document};
        (void)snprintf(entry->name, sizeof entry->name, "%s", name);
        memcpy(entry->fingerprint, fingerprint, sizeof entry->fingerprint);
        hf__buf_ref(document->packed);
        pthread_mutex_lock(&cache->mu);
        struct entry **place = find_locked(cache, name);
        if (*place)
                remove_entry(cache, place);
        put_in_front_locked(cache, entry);
        cache->n_entries++;
        cache->n_bytes += document->packed->n;
        shrink_locked(cache);
        pthread_mutex_unlock(&cache->mu);
}

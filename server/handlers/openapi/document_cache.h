/* SPDX-License-Identifier: Apache-2.0 */
#pragma once
/*
 * Keeps OpenAPI documents in compressed form, because it costs much to make one: those of custom
 * resources are made from the texts of their definitions. A document is found until what it was
 * made from changes. It is kept until a new one of its name replaces it, or newer ones need its
 * room.
 *
 * A text that was unpacked is kept while it is used, because clients that do not accept gzip would
 * otherwise each have a large copy.
 *
 * Lock: one mutex guards the list of documents; it is held only to search and change the list.
 * Thread: any. Never blocks otherwise.
 */
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "base/buf.h"

#define HFD_DOCUMENT_FINGERPRINT 32  /* bytes */
#define HFD_DOCUMENT_NAME_MAX    340 /* bytes, with the NUL: "v3/GROUP/VERSION protobuf" */
#define HFD_DOCUMENT_ETAG_MAX    67  /* bytes, with the quotes and the NUL */

struct hfd_document {
        struct hf__buf *packed;           /* a reference; gzip */
        size_t n;                         /* bytes without compression */
        char etag[HFD_DOCUMENT_ETAG_MAX]; /* with quotes */
};

struct hfd_document_cache;

/* max_bytes: of the compressed documents together. 0 or -errno. */
int hfd_document_cache_new(size_t max_bytes, struct hfd_document_cache **ret_cache);
/* Accepts NULL; returns NULL. */
struct hfd_document_cache *hfd_document_cache_free(struct hfd_document_cache *cache);

/* Finds the document of this name, if it was made from the state that the fingerprint stands for.
 * The caller owns a reference to ret_document->packed. False: it is not cached. */
bool hfd_document_cache_find(struct hfd_document_cache *cache, const char *name,
                             const uint8_t fingerprint[HFD_DOCUMENT_FINGERPRINT],
                             struct hfd_document *ret_document);
/* The text of a document that was found in the cache. Requests that use it at the same time share
 * it, as long as the document is cached. The caller owns a reference. NULL: out of memory. */
struct hf__buf *hfd_document_cache_unpack(struct hfd_document_cache *cache, const char *name,
                                          const struct hfd_document *document);
/* Keeps a document in place of the one with this name, unless memory is short or the document has
 * more than max_bytes. Takes a reference of its own. */
void hfd_document_cache_add(struct hfd_document_cache *cache, const char *name,
                            const uint8_t fingerprint[HFD_DOCUMENT_FINGERPRINT],
                            const struct hfd_document *document);

/* SPDX-License-Identifier: Apache-2.0 */
#pragma once
/*
 * Makes OpenAPI documents, as JSON or protobuf, and adds them to the cache (document_cache.h). A
 * document is made when it is first asked for, or when the index first needs its hash. That takes
 * milliseconds; time and memory are in proportion to its size. Thread: any.
 */
#include "server/handlers/openapi/document_cache.h"
#include "server/handlers/openapi/openapi.h"

/* An ETag is the hash of a document's JSON form, in quotes. */
#define HFD_DOCUMENT_HASH_DIGITS 64

/* The key of a document in the cache. */
struct hfd_document_key {
        char name[HFD_DOCUMENT_NAME_MAX];
        uint8_t fingerprint[HFD_DOCUMENT_FINGERPRINT];
};

/* Makes the key of a document that is to describe these rows. 0 or -ENOMEM. */
int hfd_document_key(const struct hfd_served_rows *rows,
                     const struct hfd_openapi_document *document, struct hfd_document_key *ret_key);
/*
 * Makes a document, whose key is `key`, and adds it to the cache. Returns it uncompressed. The
 * caller owns a reference to it and to ret_document->packed, which is NULL if memory is short.
 * NULL: out of memory; then *ret_document holds no reference, and must not be read.
 */
struct hf__buf *hfd_document_make(struct hfd_document_cache *cache,
                                  const struct hfd_served_rows *rows,
                                  const struct hfd_openapi_document *document,
                                  const struct hfd_document_key *key,
                                  struct hfd_document *ret_document);

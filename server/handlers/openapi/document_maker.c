/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Makes OpenAPI documents, and caches them.
 *
 * Invariants: a cached document is found by a fingerprint of all that can change in it while the
 * process runs: the definitions of custom resources. So it always matches the rows of the request.
 * The protobuf form is made from the JSON form, so the two do not contradict each other.
 */
#include "server/handlers/openapi/document_maker.h"

#include <errno.h>
#include <stdio.h>
#include <string.h>

#include "base/sha256.h"
#include "base/strbuf.h"
#include "server/handlers/gzip.h"
#include "server/resources/custom/custom_kind.h"
#include "server/resources/custom/served_rows.h"

_Static_assert(HFD_DOCUMENT_HASH_DIGITS < HFD_OPENAPI_HASH_MAX, "a hash fits");

int hfd_document_key(const struct hfd_served_rows *rows,
                     const struct hfd_openapi_document *document,
                     struct hfd_document_key *ret_key) {
        static const char *const names[] = {[HFD_OPENAPI_INDEX] = "index", [HFD_OPENAPI_V2] = "v2"};
        const struct hfd_resource *first = rows->of[document->first];
        const char *form = document->protobuf ? " protobuf" : "";
        struct hf__strbuf hashes = {0};

        if (document->kind == HFD_OPENAPI_V3)
                (void)snprintf(ret_key->name, sizeof ret_key->name, "v3/%s/%s%s", first->group,
                               first->version, form);
        else
                (void)snprintf(ret_key->name, sizeof ret_key->name, "%s%s", names[document->kind],
                               form);
        for (size_t i = document->first; i < document->end; i++) {
                const struct hfd_custom_version *custom = rows->of[i]->custom;
                if (custom)
                        hf__strbuf_add(&hashes, custom->kind->hash, sizeof custom->kind->hash);
        }
        int r = hashes.error;
        if (r == 0)
                hf__sha256(hashes.data ? hashes.data : "", hashes.n, ret_key->fingerprint);
        hf__strbuf_done(&hashes);
        return r;
}

/* Declared here because make_json calls it for the index, and because it calls make_json for a
 * document that is not cached. The recursion ends there: only the index asks for hashes. */
static int hash_of(void *ctx, const struct hfd_served_rows *rows,
                   const struct hfd_openapi_document *document,
                   char ret_hash[HFD_OPENAPI_HASH_MAX]);

/* Compresses a document, whose ETag is in ret_document, and caches it. The caller owns a reference
 * to ret_document->packed, which is NULL if memory is short. */
static void pack_and_cache(struct hfd_document_cache *cache, const struct hfd_document_key *key,
                           const struct hf__buf *plain, struct hfd_document *ret_document) {
        ret_document->packed = hfd_gzip_pack(plain);
        ret_document->n = plain->n;
        if (ret_document->packed)
                hfd_document_cache_add(cache, key->name, key->fingerprint, ret_document);
}

/* Makes a document as JSON, and caches it. Returns it uncompressed. The caller owns a
 * reference to it and to ret_document->packed. NULL: out of memory. */
static struct hf__buf *make_json(struct hfd_document_cache *cache,
                                 const struct hfd_served_rows *rows,
                                 const struct hfd_openapi_document *document,
                                 const struct hfd_document_key *key,
                                 struct hfd_document *ret_document) {
        struct hf__buf *plain = hfd_openapi_render(rows, document, hash_of, cache);

        if (!plain)
                return NULL;
        *ret_document = (struct hfd_document){.etag = "\""};
        hf__sha256_text(plain->data, plain->n, HFD_DOCUMENT_HASH_DIGITS, ret_document->etag + 1);
        memcpy(ret_document->etag + 1 + HFD_DOCUMENT_HASH_DIGITS, "\"", 2);
        pack_and_cache(cache, key, plain, ret_document);
        return plain;
}

/* Gets the JSON form from the cache, or makes it. Otherwise like make_json. */
static struct hf__buf *get_json(struct hfd_document_cache *cache,
                                const struct hfd_served_rows *rows,
                                const struct hfd_openapi_document *document,
                                struct hfd_document *ret_document) {
        struct hfd_document_key key;

        if (hfd_document_key(rows, document, &key) != 0)
                return NULL;
        if (!hfd_document_cache_find(cache, key.name, key.fingerprint, ret_document))
                return make_json(cache, rows, document, &key, ret_document);
        struct hf__buf *plain = hfd_gzip_unpack(ret_document->packed, ret_document->n);
        if (!plain)
                hf__buf_unref(ret_document->packed);
        return plain;
}

/*
 * The same as make_json for either form of a document. Both have the ETag of the JSON form, as in
 * kube-apiserver: the URL in the index has one hash, whatever the client accepts.
 */
struct hf__buf *hfd_document_make(struct hfd_document_cache *cache,
                                  const struct hfd_served_rows *rows,
                                  const struct hfd_openapi_document *document,
                                  const struct hfd_document_key *key,
                                  struct hfd_document *ret_document) {
        struct hfd_openapi_document as_json = *document;

        if (!document->protobuf)
                return make_json(cache, rows, document, key, ret_document);
        as_json.protobuf = false;
        struct hf__buf *json = get_json(cache, rows, &as_json, ret_document);
        if (!json)
                return NULL;
        hf__buf_unref(ret_document->packed);
        struct hf__buf *plain = hfd_openapi_to_protobuf(document, json);
        hf__buf_unref(json);
        if (plain)
                pack_and_cache(cache, key, plain, ret_document);
        return plain;
}

/* An hfd_openapi_hash_fn. The hash is the ETag without its quotes, so a document that is not cached
 * must be made. The index itself is cached, so its hashes are rarely needed: at the first request
 * for it, after a change, or after the cache has dropped it. */
static int hash_of(void *ctx, const struct hfd_served_rows *rows,
                   const struct hfd_openapi_document *document,
                   char ret_hash[HFD_OPENAPI_HASH_MAX]) {
        struct hfd_document_cache *cache = ctx;
        struct hfd_document found;
        struct hfd_document_key key;
        int r = hfd_document_key(rows, document, &key);

        if (r != 0)
                return r;
        if (!hfd_document_cache_find(cache, key.name, key.fingerprint, &found)) {
                struct hf__buf *plain = make_json(cache, rows, document, &key, &found);
                if (!plain)
                        return -ENOMEM;
                hf__buf_unref(plain);
        }
        memcpy(ret_hash, found.etag + 1, HFD_DOCUMENT_HASH_DIGITS);
        ret_hash[HFD_DOCUMENT_HASH_DIGITS] = '\0';
        hf__buf_unref(found.packed);
        return 0;
}

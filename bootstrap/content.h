/* SPDX-License-Identifier: Apache-2.0 */
#pragma once
/*
 * Contents of objects and their hashes. The content is the part of an object that a user or a
 * manifest states, without the fields that the server manages. Pure.
 *
 * An object that bootstrap writes has the annotation HF__STAMP with the hash of the manifest's
 * content. The stamp serves one purpose: if the ledger (ledger.h) has no record of a write, because
 * of a crash or a lost response, the next attempt recognises the write as bootstrap's own.
 */
#include <stddef.h>

struct hf__json;
struct hf__strbuf;

#define HF__HASH_DIGITS 32 /* half of a SHA-256 */

typedef char hf__hash[HF__HASH_DIGITS + 1]; /* hexadecimal digits; "" = none */

#define HF__STAMP "holdfast.dev/bootstrap"

/* Removes the fields that the server manages (uid, resourceVersion, times, managedFields, status
 * ...) and the stamp. */
void hf__content_strip(struct hf__json *object);
/* Computes the hash of any JSON; the order of keys does not matter. 0 or -ENOMEM. */
int hf__content_hash(const struct hf__json *json, hf__hash ret_hash);

struct hf__content_seen {
        hf__hash stamp; /* "" = the object has no stamp */
        /* hash of the content, without finalizers and ownerReferences, which belong to
         * controllers */
        hf__hash present;
};
/* Reads the stamp of an object that the server sent, and hashes its content. 0, or an error of
 * hf__json_parse: -ENOMEM, HF_E_INVALID, HF_E_TOO_LARGE. */
int hf__content_inspect(const char *object, size_t n, struct hf__content_seen *ret_seen);

/* SPDX-License-Identifier: Apache-2.0 */
#pragma once
/*
 * The layout of keys in the store, for a prefix P (--etcd-prefix, "/registry"):
 *
 *      P/<resource>/<ns>/<name>           an object: JSON without resourceVersion, or
 *                                         encrypted (sealed.h)
 *      P/<resource>/<name>                a cluster-scoped object
 *      P.holdfast/terms/<ns>/<name>       the term record of a Lease (term_record.h)
 *      P.holdfast/compact                 the revision of the next compaction, and how many
 *                                         steps it has waited (compactor.h)
 *      P.holdfast/epoch                   rewritten by a restore or a copy
 *                                         (cacher/requests/store_identity.h)
 *      P.holdfast/copying                 exists while the store is an incomplete copy (copy.h)
 *      P.holdfast/progress                written so that the watch must deliver an event
 *                                         (cacher/requests/store_lag.c)
 *
 * <resource> is the plural or, for custom resources and a few other kinds, <group>/<plural>: the
 * member `storage` of the kind's row (server/resources/resource.h).
 * '.' sorts before '/', and '/' before '0'. So one watch of [P., P0) delivers the changes of
 * objects, term records and the epoch in order, and a list of P/ returns objects only.
 *
 * Pure. Thread: any.
 */
#include <stdbool.h>
#include <stddef.h>

#define HFD_KEY_MAX 1024 /* bytes of a key, with its NUL */

/* Writes the key of the term record of the Lease ns/name. key has HFD_KEY_MAX bytes. 0 or
 * HF_E_TOO_LARGE. */
int hfd_key_term_record(char *key, const char *prefix, const char *ns, const char *name);
/* Writes the key P.holdfast/<name>. key has HFD_KEY_MAX bytes. 0 or HF_E_TOO_LARGE. */
int hfd_key_own(char *key, const char *prefix, const char *name);
bool hfd_key_is_term_record(const char *key, const char *prefix);
/*
 * Sets end to the first key after all keys that begin with prefix: the range [prefix, end) contains
 * exactly these keys. end is empty if no such key exists, because prefix is empty or all 0xff. end
 * has HFD_KEY_MAX bytes. 0 or HF_E_TOO_LARGE.
 */
int hfd_key_prefix_end(char *end, const char *prefix);
/*
 * For pages: sets next to a key that is greater than key, so that no key that fits into HFD_KEY_MAX
 * bytes lies between. next has HFD_KEY_MAX bytes and may be key itself. It is empty if no key that
 * fits can follow, because key has the greatest length and is all 0xff.
 */
void hfd_key_after(char *next, const char *key);

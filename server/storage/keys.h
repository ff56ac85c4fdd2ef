/* SPDX-License-Identifier: Apache-2.0 */
#pragma once
/*
 * The layout of keys in the store, for a prefix P (--etcd-prefix, "/registry"):
 *
 *      P/<resource>/<ns>/<name>           an object, as JSON without resourceVersion
 *      P/<resource>/<name>                a cluster-scoped object
 *      P.holdfast/terms/<ns>/<name>       the term record of a Lease (term_record.h)
 *      P.holdfast/compact                 the compactor's agreement
 *
 * <resource> is the plural; outside of the core and the coordination group it is <group>/<plural>.
 * '.' sorts before '/', and '/' before '0'. So one watch of [P., P0) sees objects and term records
 * in one order, and a list of P/ sees objects only.
 *
 * Pure. Thread: any.
 */
#include <stdbool.h>
#include <stddef.h>

#define HFD_KEY_MAX 1024 /* bytes of a key, with its NUL */

/* The key of a term record. key has HFD_KEY_MAX bytes. 0 or HF_E_TOO_LARGE. */
int hfd_key_term_record(char *key, const char *prefix, const char *ns, const char *name);
bool hfd_key_is_term_record(const char *key, const char *prefix);
/*
 * Sets end to the first key after all keys that begin with prefix, so that these are [prefix, end).
 * end is empty if no such key exists, because prefix is empty or all 0xff. end has HFD_KEY_MAX
 * bytes. 0 or HF_E_TOO_LARGE.
 */
int hfd_key_prefix_end(char *end, const char *prefix);

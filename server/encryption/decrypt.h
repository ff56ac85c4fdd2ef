/* SPDX-License-Identifier: Apache-2.0 */
#pragma once
/*
 * Decrypts the values that a store delivers, if a rule covers their keys. A list without such a
 * value is not copied. Pure. Thread: any.
 */
#include "server/encryption/encryption.h"
#include "server/storage/store.h"

/* The rules, for the keys below a prefix. Borrowed by all functions below. */
struct hfd_covered {
        const char *prefix; /* borrowed */
        struct hfd_encryption *encryption;
};

/* The rule for a key, borrowed from the encryption. NULL: none covers it. */
const struct hfd_encryption_rule *hfd_covered_rule(const struct hfd_covered *covered,
                                                   const char *key);

/*
 * If a rule covers at least one of the n kvs that have a value, *ret_kvs is a copy of all n. The
 * copy has a reference to each value. A value that a rule covers is decrypted, if it can be, and
 * its `sealed` and `stale` are set. The copy borrows the keys; the caller frees it by
 * hfd_decrypt_kvs_free. Otherwise *ret_kvs is NULL, and the caller uses kvs itself. 0 or -ENOMEM.
 */
int hfd_decrypt_kvs(const struct hfd_covered *covered, const struct hfd_kv *kvs, size_t n,
                    struct hfd_kv **ret_kvs);
void hfd_decrypt_kvs_free(struct hfd_kv *kvs, size_t n); /* accepts NULL */
/* Whether the event has a value that a rule covers. */
bool hfd_covered_event(const struct hfd_covered *covered, const struct hfd_watch_event *event);
/* The same as hfd_decrypt_kvs, for events; hfd_decrypt_events_free frees the copy. */
int hfd_decrypt_events(const struct hfd_covered *covered, const struct hfd_watch_event *events,
                       size_t n, struct hfd_watch_event **ret_events);
void hfd_decrypt_events_free(struct hfd_watch_event *events, size_t n); /* accepts NULL */

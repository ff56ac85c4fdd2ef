/* SPDX-License-Identifier: Apache-2.0 */
#pragma once
/*
 * The quotas of a namespace, in the versions on which a write is based, with the decision of each
 * quota about the write. Thread: one at a time, that of the write.
 */
#include "base/strbuf.h"
#include "server/cacher/cacher.h"
#include "server/quota/quota.h"
#include "server/storage/store.h"

/* If a namespace has more quotas than this, it refuses every create, and every update that quotas
 * may count. */
#define HFD_QUOTAS_IN_NAMESPACE_MAX 64

struct hfd_quota_charge {
        struct hfd_object *object; /* owned; NULL = it was deleted */
        /* owned; the store's key; NULL = the quota does not count the write, or was not asked */
        char *key;
        struct hf__buf *stored; /* owned; what the transaction writes; NULL = nothing */
        bool fresh;             /* the version came from the store, or the store confirmed it */
};

/* Zeroed: no quotas. */
struct hfd_quota_charges {
        struct hfd_quota_charge of[HFD_QUOTAS_IN_NAMESPACE_MAX];
        size_t n;
};

/* The decision of all quotas together about a write. Zeroed: nothing is decided yet. */
struct hfd_quota_decision {
        size_t n_changed;                 /* quotas that the transaction writes */
        struct hfd_quota_charge *refuses; /* the first quota that refuses; NULL = none */
        struct hf__strbuf why;            /* the message of that quota; the caller frees it */
};

/* The struct hfd_resource of the kind ResourceQuota. */
const struct hfd_resource *hfd_quota_resource(void);
void hfd_quota_charges_clear(struct hfd_quota_charges *charges);
/* Takes over n references to quotas, but not the array. charges must be empty. */
void hfd_quota_charges_set(struct hfd_quota_charges *charges, struct hfd_object *const *objects,
                           size_t n);
/*
 * Decides about the change for all quotas, and stops at the first one that refuses. The caller has
 * zeroed *decision. path: of the new object if it is a quota, otherwise "". A quota with this path
 * is left out: it exists, so the create will fail. 0, -ENOMEM or HF_E_TOO_LARGE (a quota's key).
 */
int hfd_quota_charges_decide(struct hfd_quota_charges *charges,
                             const struct hfd_quota_change *change, const char *prefix,
                             const char *path, struct hfd_quota_decision *decision);
/* Forgets the decisions: the transaction does not write quotas. */
void hfd_quota_charges_forget(struct hfd_quota_charges *charges);
/* The store has confirmed the version of the quota that refuses. */
void hfd_quota_charges_confirm(struct hfd_quota_charges *charges);
/*
 * Takes over the versions that a transaction has read because its compares failed. written: it
 * compared the quotas that it would have written; false: it compared the quota that refuses. NULL:
 * success. Otherwise returns the key-value from which no object can be made, because memory ran
 * out, or the value is invalid or cannot be decrypted.
 */
const struct hfd_kv *hfd_quota_charges_update(struct hfd_quota_charges *charges,
                                              struct hfd_cacher *cacher, bool written,
                                              const struct hfd_kv *kvs, size_t n);
/* Records the versions that a transaction has stored. */
void hfd_quota_charges_committed(const struct hfd_quota_charges *charges, struct hfd_cacher *cacher,
                                 uint64_t revision);

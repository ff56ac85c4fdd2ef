/* SPDX-License-Identifier: Apache-2.0 */
#pragma once
/*
 * The quotas of a namespace, in the versions on which a write is based, and what each decides
 * about it. Thread: one at a time, that of the write.
 */
#include "base/strbuf.h"
#include "server/cacher/cacher.h"
#include "server/quota/quota.h"
#include "server/storage/store.h"

/* The most quotas of a namespace with which anything can be created in it. */
#define HFD_QUOTAS_IN_NAMESPACE_MAX 64

struct hfd_quota_charge {
        struct hfd_object *object; /* owned; NULL = it was deleted */
        char *key;                 /* owned; the store's key; NULL = it does not count the write */
        struct hf__buf *stored;    /* owned; what the transaction writes; NULL = nothing */
        bool fresh;                /* the version came from the store, or the store confirmed it */
};

/* Zero = none. */
struct hfd_quota_charges {
        struct hfd_quota_charge of[HFD_QUOTAS_IN_NAMESPACE_MAX];
        size_t n;
};

/* What all of them decide. Zero = nothing yet. */
struct hfd_quota_decision {
        size_t n_changed;                 /* quotas that the transaction writes */
        struct hfd_quota_charge *refuses; /* the first one; NULL = none */
        struct hf__strbuf why;            /* if one refuses; the caller frees it */
};

/* The row of the kind ResourceQuota. */
const struct hfd_resource *hfd_quota_resource(void);
void hfd_quota_charges_clear(struct hfd_quota_charges *charges);
/* Takes over n references to quotas. charges must be empty. */
void hfd_quota_charges_set(struct hfd_quota_charges *charges, struct hfd_object *const *objects,
                           size_t n);
/*
 * Decides about the change for all quotas, and stops at the first that refuses. path is that of a
 * new quota, "" for other objects: if it is one of the quotas, the create will fail, because the
 * name exists. 0, -ENOMEM or HF_E_TOO_LARGE.
 */
int hfd_quota_charges_decide(struct hfd_quota_charges *charges,
                             const struct hfd_quota_change *change, const char *prefix,
                             const char *path, struct hfd_quota_decision *decision);
/* Forgets the decisions: the transaction does not write quotas. */
void hfd_quota_charges_forget(struct hfd_quota_charges *charges);
/* The store has confirmed the version of the quota that refuses. */
void hfd_quota_charges_confirm(struct hfd_quota_charges *charges);
/*
 * Takes over the versions that a failed transaction has read. written: it compared the quotas that
 * it would have written; false: the one that refuses. Returns the key from which no object can be
 * made, because memory ran out or its value is not a valid object; NULL = success.
 */
const struct hfd_kv *hfd_quota_charges_update(struct hfd_quota_charges *charges,
                                              struct hfd_cacher *cacher, bool written,
                                              const struct hfd_kv *kvs, size_t n);
/* Records the versions that a transaction has stored. */
void hfd_quota_charges_committed(const struct hfd_quota_charges *charges, struct hfd_cacher *cacher,
                                 uint64_t revision);

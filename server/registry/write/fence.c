/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The fence of a write, and the term record of a Lease.
 *
 * Invariant: a term that is over never becomes valid again. The term record contains the holder and
 * the acquireTime, and its mod revision is the number of the term. So if the same holder acquires
 * the Lease again, it gets another term. The holder is compared in addition to the revision,
 * because a store that was restored from a backup may assign the same revision a second time.
 */
#include "server/registry/write/fence.h"

#include <assert.h>
#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "base/json.h"
#include "server/cacher/requests/store_identity.h"

/* ---- the term record of a Lease ---- */

/* Whether two members are equal. A missing member equals an empty one, as in term records. */
static bool same_text(const struct hf__json *a, const struct hf__json *b, const char *key) {
        const char *x = hf__json_string(a, key);
        const char *y = hf__json_string(b, key);

        return strcmp(x ? x : "", y ? y : "") == 0;
}

bool hfd_write_fence_same_term(const struct hf__json *a, const struct hf__json *b) {
        const struct hf__json *x = hf__json_get(a, "spec");
        const struct hf__json *y = hf__json_get(b, "spec");

        return same_text(x, y, "holderIdentity") && same_text(x, y, "acquireTime");
}

int hfd_write_fence_term_op(struct hfd_write *w, char key[HFD_KEY_MAX], struct hfd_op *op,
                            struct hf__buf **ret_value) {
        const char *holder, *acquired;

        assert(!op->key);
        *ret_value = NULL;
        if (!w->request->resource->term_record || w->unchanged)
                return 0;
        if (hfd_key_term_record(key, w->registry->prefix, w->request->ns, hfd_write_name(w)) != 0)
                return HF_E_TOO_LARGE;
        if (!w->stored) { /* the Lease is deleted */
                *op = (struct hfd_op){.kind = HFD_DELETE, .key = key};
                return 0;
        }
        if (w->current && w->same_term)
                return 0;
        holder = hf__json_string(w->object, "spec.holderIdentity");
        acquired = hf__json_string(w->object, "spec.acquireTime");
        *ret_value = hfd_term_record_value(holder ? holder : "", acquired ? acquired : "");
        if (!*ret_value)
                return -ENOMEM;
        *op = (struct hfd_op){.kind = HFD_PUT, .key = key, .value = *ret_value};
        return 0;
}

/* ---- the fence ---- */

int hfd_write_fence_init(struct hfd_write *w) {
        assert(w->request->fence && !w->fence);
        w->fence = malloc(sizeof *w->fence);
        return w->fence ? hfd_fence_compares(w->fence, w->registry->prefix, w->request->fence)
                        : -ENOMEM;
}

/*
 * Fills in the compare of the epoch with the value that the cacher knew at the first commit of this
 * write, or at a later one if it knew none then. If the epoch changes between two attempts, the
 * second attempt must fail. If w->epoch is NULL afterwards, no value is known, and *ret_compare
 * must not be used. 0 or HF_E_TOO_LARGE.
 */
static int compare_epoch(struct hfd_write *w, char *key, struct hfd_compare *ret_compare) {
        int r = hfd_store_identity_epoch_key(w->registry->cacher, key);

        if (!w->epoch)
                w->epoch = hfd_store_identity_epoch_known(w->registry->cacher, &w->epoch_exists);
        *ret_compare = (struct hfd_compare){.key = key};
        if (w->epoch && w->epoch_exists) {
                ret_compare->kind = HFD_VALUE_EQUALS;
                ret_compare->value = w->epoch->data;
                ret_compare->n_value = w->epoch->n;
        } else {
                ret_compare->kind = HFD_MOD_EQUALS; /* revision 0: the key does not exist */
        }
        return r;
}

int hfd_write_fence_compare(struct hfd_write *w, char epoch_key[HFD_KEY_MAX],
                            struct hfd_compare *compares, size_t *n_compares, const char **reads,
                            size_t *n_reads) {
        const struct hfd_fence_compares *fence = w->fence;
        int r;

        assert(fence && fence->n_leases <= HFD_FENCE_LEASES);
        memcpy(&compares[*n_compares], fence->compares, 2 * fence->n_leases * sizeof *compares);
        *n_compares += 2 * fence->n_leases;
        for (size_t i = 0; i < fence->n_leases; i++)
                reads[(*n_reads)++] = fence->key[i];
        r = compare_epoch(w, epoch_key, &compares[*n_compares]);
        /* epoch NULL: the cacher has not read it yet, so there is nothing to compare with. */
        if (r == 0 && w->epoch) {
                ++*n_compares;
                reads[(*n_reads)++] = epoch_key;
        }
        return r;
}

/* ---- a failed transaction ---- */

/*
 * Whether the store still has the term record that the compares (revision, value) of one Lease
 * require. The value is the beginning of the record, up to the end of the holder.
 */
static bool term_holds(const struct hfd_compare compares[2], const struct hfd_store_reply *reply) {
        const struct hfd_compare *value = &compares[1];

        for (size_t i = 0; i < reply->n_kvs; i++) {
                const struct hfd_kv *kv = &reply->kvs[i];
                if (strcmp(kv->key, value->key) == 0)
                        return kv->mod_revision == compares[0].revision && kv->value &&
                               kv->value->n >= value->n_value &&
                               memcmp(kv->value->data, value->value, value->n_value) == 0;
        }
        return false;
}

static bool fence_holds(const struct hfd_write *w, const struct hfd_store_reply *reply) {
        for (size_t i = 0; i < w->fence->n_leases; i++)
                if (!term_holds(&w->fence->compares[2 * i], reply))
                        return false;
        return true;
}

/* Whether the store has another epoch than the write compared. If so, reports it to the cacher. */
static bool report_other_epoch(struct hfd_write *w, const struct hfd_store_reply *reply) {
        const struct hf__buf *found = NULL;
        char key[HFD_KEY_MAX];
        bool changed;

        if (!w->epoch || hfd_store_identity_epoch_key(w->registry->cacher, key) != 0)
                return false;
        for (size_t i = 0; i < reply->n_kvs; i++)
                if (strcmp(reply->kvs[i].key, key) == 0)
                        found = reply->kvs[i].value;
        if (!found && !w->epoch_exists)
                return false;
        if (found && w->epoch_exists && found->n == w->epoch->n &&
            memcmp(found->data, w->epoch->data, found->n) == 0)
                return false;
        /* If recording the epoch fails, the reflector reads it again: its watch ends below. */
        (void)hfd_store_identity_epoch_read(w->registry->cacher, found, &changed);
        if (changed)
                hfd_store_identity_replaced(w->registry->cacher, "the epoch key changed");
        return true;
}

bool hfd_write_fence_is_stale(struct hfd_write *w, const struct hfd_store_reply *reply) {
        assert(w->fence && reply->error == HF_E_CONFLICT);
        return report_other_epoch(w, reply) || !fence_holds(w, reply);
}

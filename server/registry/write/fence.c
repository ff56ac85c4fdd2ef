/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The fence of a write, and the term record of a Lease. The term record names holder and
 * acquireTime, and its revision is the term: so a term that is over can never hold again, also when
 * the same holder takes the Lease once more.
 */
#include "server/registry/write/fence.h"

#include <assert.h>
#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "base/json.h"
#include "server/cacher/store_identity.h"

/* ---- the term record of a Lease ---- */

static bool same_text(const struct hf__json *a, const struct hf__json *b, const char *key) {
        const char *x = hf__json_string(a, key), *y = hf__json_string(b, key);

        return strcmp(x ? x : "", y ? y : "") == 0;
}

bool hfd_write_fence_same_term(const struct hf__json *a, const struct hf__json *b) {
        const struct hf__json *x = hf__json_get(a, "spec"), *y = hf__json_get(b, "spec");

        return same_text(x, y, "holderIdentity") && same_text(x, y, "acquireTime");
}

int hfd_write_fence_term_op(struct hfd_write *w, char key[HFD_KEY_MAX], struct hfd_op *op,
                            struct hf__buf **ret_value) {
        const struct hf__json *object = w->object;

        *ret_value = NULL;
        if (!w->request->resource->term_record || w->unchanged)
                return 0;
        if (hfd_key_terms(key, w->registry->prefix, w->request->ns, hfd_write_name(w)))
                return HF_E_TOO_LARGE;
        if (!w->stored) {
                *op = (struct hfd_op){.kind = HFD_DELETE, .key = key};
                return 0;
        }
        if (w->current && w->same_term)
                return 0;
        const char *holder = hf__json_string(object, "spec.holderIdentity"),
                   *acquired = hf__json_string(object, "spec.acquireTime");
        *ret_value = hfd_term_record_value(holder ? holder : "", acquired ? acquired : "");
        *op = (struct hfd_op){.kind = HFD_PUT, .key = key, .value = *ret_value};
        return *ret_value ? 0 : -ENOMEM;
}

/* ---- the fence ---- */

int hfd_write_fence_make(struct hfd_write *w) {
        w->fence = malloc(sizeof *w->fence);
        return w->fence ? hfd_fence_compares(w->fence, w->registry->prefix, w->request->fence)
                        : -ENOMEM;
}

/* The epoch as it was at the first attempt, so that one which changes between two attempts refuses
 * the second. */
static int compare_epoch(struct hfd_write *w, char *key, struct hfd_compare *ret_compare) {
        int r = hfd_store_identity_epoch_key(w->registry->cacher, key);

        if (!w->epoch)
                w->epoch = hfd_store_identity_epoch_known(w->registry->cacher, &w->epoch_exists);
        *ret_compare =
                (struct hfd_compare){.kind = w->epoch_exists ? HFD_VALUE_EQUALS : HFD_MOD_EQUALS,
                                     .key = key};
        if (w->epoch && w->epoch_exists) {
                ret_compare->value = w->epoch->data;
                ret_compare->n_value = w->epoch->n;
        }
        return r;
}

int hfd_write_fence_compare(struct hfd_write *w, char epoch_key[HFD_KEY_MAX],
                            struct hfd_compare *compares, size_t *n_compares, const char **reads,
                            size_t *n_reads) {
        assert(w->fence);
        memcpy(&compares[*n_compares], w->fence->compares,
               2 * w->fence->n_leases * sizeof *compares);
        *n_compares += 2 * w->fence->n_leases;
        for (size_t i = 0; i < w->fence->n_leases; i++)
                reads[(*n_reads)++] = w->fence->key[i];
        int r = compare_epoch(w, epoch_key, &compares[*n_compares]);
        if (r == 0 && w->epoch) {
                ++*n_compares;
                reads[(*n_reads)++] = epoch_key;
        }
        return r;
}

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

/* Whether the store's epoch is another than the one the write compared, and what follows from that.
 */
static bool is_another_epoch(struct hfd_write *w, const struct hfd_store_reply *reply) {
        const struct hf__buf *found = NULL;
        char key[HFD_KEY_MAX];

        if (!w->epoch || hfd_store_identity_epoch_key(w->registry->cacher, key))
                return false;
        for (size_t i = 0; i < reply->n_kvs; i++)
                if (strcmp(reply->kvs[i].key, key) == 0)
                        found = reply->kvs[i].value;
        if (w->epoch_exists == (found != NULL) &&
            (!found ||
             (found->n == w->epoch->n && memcmp(found->data, w->epoch->data, found->n) == 0)))
                return false;
        if (hfd_store_identity_epoch_changed(w->registry->cacher, found))
                hfd_store_identity_replaced(w->registry->cacher, "the epoch key changed");
        return true;
}

bool hfd_write_fence_is_stale(struct hfd_write *w, const struct hfd_store_reply *reply) {
        return is_another_epoch(w, reply) || !fence_holds(w, reply);
}

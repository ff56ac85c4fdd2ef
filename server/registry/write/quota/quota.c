/* SPDX-License-Identifier: Apache-2.0 */
/*
 * A write and the quotas of its namespace. The rules of one quota are in server/quota/.
 *
 *      collect   the newest versions that this instance knows
 *      charge    each quota decides (hfd_quota_charges_decide)
 *      turn      of the writes of this instance in the namespace, one is charged at a time
 *                (quota_turn.c)
 *      confirm   before a refusal: are the versions current?
 *      commit    the caller's function; after a conflict the next attempt begins with `charge`
 *
 * Invariants: a quota refuses only on the basis of versions that the store has returned or
 * confirmed: its own, except in a dry run, and that of an object that is updated. Every
 * quota that counts the write, or will count it after its next recount (HFD_QUOTA_PENDING), is
 * compared and written in the transaction of the write, unless that is a dry run. A quota that this
 * instance does not know yet, because its watch is late, does not count.
 */
#include "server/registry/write/quota/quota.h"

#include <assert.h>
#include <stdlib.h>

#include "base/json.h"
#include "server/cacher/requests/store_request.h"
#include "server/registry/base/quota_charges.h"
#include "server/registry/write/quota_turn.h"
#include "server/registry/write/reply.h"

/* ---- the quotas of the namespace ---- */

/*
 * Creates w->quota if the namespace has quotas; otherwise it stays NULL. If it exists, the versions
 * are replaced. False: the response was sent.
 */
static bool collect_quotas(struct hfd_write *w) {
        struct hfd_object *objects[HFD_QUOTAS_IN_NAMESPACE_MAX];
        bool synced;
        size_t n = hfd_cacher_newest_in(w->registry->cacher, hfd_quota_resource(), w->request->ns,
                                        objects, HFD_QUOTAS_IN_NAMESPACE_MAX, &synced),
               n_known = n < HFD_QUOTAS_IN_NAMESPACE_MAX ? n : HFD_QUOTAS_IN_NAMESPACE_MAX;

        /* Elections must not wait for the cache. */
        if (!synced && !w->request->resource->term_record) {
                hfd_write_reply_store_error(w, HF_E_UNAVAILABLE, NULL);
                return false;
        }
        if (!w->quota && n > 0)
                w->quota = calloc(1, sizeof *w->quota);
        if (n == n_known && (n == 0 || w->quota)) {
                if (w->quota)
                        hfd_quota_charges_clear(&w->quota->charges);
                if (n > 0)
                        hfd_quota_charges_set(&w->quota->charges, objects, n);
                return true;
        }
        for (size_t i = 0; i < n_known; i++)
                hfd_object_unref(objects[i]);
        if (n > n_known)
                hfd_write_reply_forbidden(w, "the namespace has more than 64 quotas");
        else
                hfd_write_reply_no_memory(w);
        return false;
}

/* Decides again, with the versions that the quotas have now, and commits if they accept. */
static void repeat_decision(struct hfd_write *w) {
        void (*commit)(struct hfd_write * w) = w->quota->commit;

        if (hfd_write_quota_admit(w, commit))
                commit(w);
}

/* ---- confirming a refusal ---- */

static void on_confirmed(void *ctx, const struct hfd_store_reply *reply) {
        struct hfd_write *w = ctx;

        assert(w->awaiting);
        w->awaiting = false;
        if (reply->error == HF_E_CONFLICT) {
                const struct hfd_kv *unreadable =
                        hfd_quota_charges_update(&w->quota->charges, w->registry->cacher, false,
                                                 reply->kvs, reply->n_kvs);
                if (unreadable) {
                        hfd_write_reply_unreadable_kv(w, unreadable);
                        return;
                }
        } else if (reply->error) {
                /* Nothing was to be written, so the client may repeat the request. */
                int error = reply->error == HF_E_TIMEOUT ? HF_E_UNAVAILABLE : reply->error;
                hfd_write_reply_store_error(w, error, &reply->status);
                return;
        } else {
                hfd_quota_charges_confirm(&w->quota->charges);
        }
        repeat_decision(w);
}

/* Asks the store whether the quota that refuses still has that version. */
static void confirm_refusal(struct hfd_write *w, const struct hfd_quota_charge *refuses) {
        const struct hfd_compare compare = {.kind = HFD_MOD_EQUALS,
                                            .key = refuses->key,
                                            .revision = refuses->object->revision};
        const char *read = refuses->key;
        const struct hfd_txn txn = {.compares = &compare,
                                    .n_compares = 1,
                                    .get_on_failure = &read,
                                    .n_get_on_failure = 1};

        hfd_write_await(w);
        int r = hfd_store_request_txn(w->registry->cacher, &txn, w->request->deadline, on_confirmed,
                                      w);
        if (r != 0) { /* on_confirmed is not called */
                w->awaiting = false;
                hfd_write_reply_store_error(w, r, NULL);
        }
}

/* ---- turns ---- */

/* The turn has come. Other writes may have changed the quotas meanwhile. */
static void on_turn(struct hfd_write *w) {
        if (collect_quotas(w))
                repeat_decision(w);
}

/* ---- before the transaction ---- */

/* The quotas refuse an update that is based on the cacher's version of the object, which may be
 * old: reads the object from the store, and another attempt follows. */
static void refetch_object(struct hfd_write *w) {
        hfd_quota_charges_forget(&w->quota->charges);
        w->stored = hf__buf_unref(w->stored);
        hfd_write_refetch(w);
}

/* Acts on a decision. True: commit. False: as hfd_write_quota_admit. */
static bool act_on_decision(struct hfd_write *w, const struct hfd_quota_decision *decision) {
        bool dry_run = w->request->options.dry_run;

        if (decision->refuses && w->current && !w->fresh) {
                refetch_object(w);
                return false;
        }
        if (decision->refuses && !decision->refuses->fresh && !dry_run) {
                confirm_refusal(w, decision->refuses);
                return false;
        }
        if (decision->refuses) {
                hfd_write_reply_forbidden(w, decision->why.data);
                return false;
        }
        if (decision->n_changed > HFD_WRITE_QUOTAS_MAX) {
                hfd_write_reply_forbidden(w, "more than 8 quotas of the namespace count it");
                return false;
        }
        return decision->n_changed == 0 || dry_run || hfd_write_quota_turn_take(w, on_turn);
}

static int64_t now_of(const struct hfd_write *w) {
        const struct hf_clock *clock = hf_host_clock(w->registry->host);

        return clock->real(clock->ctx) / HF_NSEC_PER_SEC;
}

static enum hfd_quota_write part_written(const struct hfd_write *w) {
        enum hfd_subresource part = w->request->subresource;

        if (part == HFD_SUB_NONE)
                return HFD_QUOTA_OF_OBJECT;
        return part == HFD_SUB_RESIZE ? HFD_QUOTA_OF_RESIZE : HFD_QUOTA_OF_STATUS;
}

bool hfd_write_quota_admit(struct hfd_write *w, void (*commit)(struct hfd_write *w)) {
        const struct hfd_resource *resource = w->request->resource;
        struct hfd_quota_decision decision = {0};
        struct hfd_quota_change change;
        bool accepted = false;
        int r;

        assert(w->stored && w->object && !w->awaiting);
        if (!resource->namespaced)
                return true;
        if (!w->quota && !collect_quotas(w))
                return false;
        if (w->quota)
                w->quota->commit = commit;
        if (!w->quota ||
            !hfd_quota_change_init(&change, resource->group, resource->plural, w->object,
                                   w->created ? NULL : w->old, part_written(w), now_of(w), &r))
                return true;
        if (r == 0)
                r = hfd_quota_charges_decide(&w->quota->charges, &change, w->registry->prefix,
                                             resource == hfd_quota_resource() ? w->path : "",
                                             &decision);
        hfd_quota_change_done(&change);
        if (r != 0)
                hfd_write_reply_store_error(w, r, NULL);
        else
                accepted = act_on_decision(w, &decision);
        hf__strbuf_done(&decision.why);
        return accepted;
}

/* ---- the transaction ---- */

void hfd_write_quota_compare(const struct hfd_write *w, struct hfd_compare *compares,
                             size_t *n_compares, struct hfd_op *ops, size_t *n_ops,
                             const char **reads, size_t *n_reads) {
        for (size_t i = 0; w->quota && i < w->quota->charges.n; i++) {
                const struct hfd_quota_charge *charge = &w->quota->charges.of[i];
                if (!charge->stored)
                        continue;
                compares[(*n_compares)++] =
                        (struct hfd_compare){.kind = HFD_MOD_EQUALS,
                                             .key = charge->key,
                                             .revision = charge->object->revision};
                ops[(*n_ops)++] = (struct hfd_op){.kind = HFD_PUT,
                                                  .key = charge->key,
                                                  .value = charge->stored};
                reads[(*n_reads)++] = charge->key;
        }
}

void hfd_write_quota_committed(struct hfd_write *w, uint64_t revision) {
        if (w->quota)
                hfd_quota_charges_committed(&w->quota->charges, w->registry->cacher, revision);
}

const struct hfd_kv *hfd_write_quota_update(struct hfd_write *w, const struct hfd_kv *kvs,
                                            size_t n) {
        const struct hfd_kv *unreadable;

        if (!w->quota)
                return NULL;
        unreadable =
                hfd_quota_charges_update(&w->quota->charges, w->registry->cacher, true, kvs, n);
        /* The next attempt may write something that is not charged. */
        hfd_quota_charges_forget(&w->quota->charges);
        return unreadable;
}

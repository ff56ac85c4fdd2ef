/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The transaction of a write.
 *
 *      compares  the object's version; the fence with the epoch; for a create its namespace and
 *                the CustomResourceDefinition of its kind; the quotas that count the write
 *      writes    the object; the term record of a Lease; the quotas that count the write
 *
 * Invariant: nothing is written unless all compares hold. If one does not, the same transaction
 * reads every key that it compared, so that the next attempt needs no further request.
 */
#include "server/registry/write/steps/commit.h"

#include <assert.h>
#include <stdlib.h>
#include <string.h>

#include "base/json.h"
#include "server/cacher/requests/store_identity.h"
#include "server/cacher/requests/store_request.h"
#include "server/registry/write/checks/custom.h"
#include "server/registry/write/checks/namespace.h"
#include "server/registry/write/defer.h"
#include "server/registry/write/fence.h"
#include "server/registry/write/quota/quota.h"
#include "server/registry/write/reply.h"
#include "server/resources/forms/conversion.h"
#include "server/resources/objects/stored_object.h"

/* ---- the outcome ---- */

/*
 * Finds the object among the keys that the failed transaction has read. Returns NULL on success;
 * then *ret_object is the object, or NULL if it does not exist. Otherwise returns the entry from
 * which no object could be made: memory ran out, or its value is invalid or cannot be decrypted.
 */
static const struct hfd_kv *find_object(const struct hfd_write *w,
                                        const struct hfd_store_reply *reply,
                                        struct hfd_object **ret_object) {
        *ret_object = NULL;
        for (size_t i = 0; i < reply->n_kvs; i++)
                if (strcmp(reply->kvs[i].key, w->key) == 0) {
                        *ret_object =
                                hfd_stored_object_new(hfd_resource_stored(w->request->resource),
                                                      w->path, &reply->kvs[i]);
                        return *ret_object ? NULL : &reply->kvs[i];
                }
        return NULL;
}

/*
 * Handles a failed compare. Responds with an error if the write is fenced and its term is over or
 * the store was replaced, or if a value that the store returned is unreadable. Otherwise another
 * write has changed the object, the namespace, the CustomResourceDefinition or a quota, and another
 * attempt follows.
 */
static void retry_after_conflict(struct hfd_write *w, const struct hfd_store_reply *reply) {
        struct hfd_object *found = NULL;

        if (w->fence && hfd_write_fence_is_stale(w, reply)) {
                hfd_write_reply_stale_term(w);
                return;
        }
        const struct hfd_kv *unreadable = find_object(w, reply, &found);
        if (!unreadable)
                unreadable = hfd_write_namespace_update(w, reply->kvs, reply->n_kvs);
        if (!unreadable)
                unreadable = hfd_write_custom_update(w, reply->kvs, reply->n_kvs);
        if (!unreadable)
                unreadable = hfd_write_quota_update(w, reply->kvs, reply->n_kvs);
        if (unreadable) {
                hfd_object_unref(found);
                hfd_write_reply_unreadable_kv(w, unreadable);
                return;
        }
        w->stored = hf__buf_unref(w->stored);
        w->last = hf__buf_unref(w->last);
        w->unchanged = false;
        w->created = false;
        w->same_term = false;
        hfd_write_set_current(w, found);
        hfd_write_attempt(w);
}

/* Sends a large response, on a thread of the pool unless the pool refuses. */
static void reply_large(struct hfd_write *w) { hfd_write_reply_committed(w, w->committed_at); }

/* Copying, parsing or indenting a large object must not delay the replies to others. */
static void reply_committed(struct hfd_write *w, uint64_t revision) {
        if (!hfd_write_must_defer(w)) {
                hfd_write_reply_committed(w, revision);
                return;
        }
        w->committed_at = revision;
        hfd_write_defer(w, reply_large);
}

static void on_committed(void *ctx, const struct hfd_store_reply *reply) {
        struct hfd_write *w = ctx;

        assert(w->awaiting);
        w->awaiting = false;
        w->fence_compared = w->fence && (!reply->error || reply->error == HF_E_CONFLICT);
        if (!reply->error) {
                hfd_write_quota_committed(w, reply->revision);
                reply_committed(w, reply->revision);
        } else if (reply->error == HF_E_CONFLICT) {
                retry_after_conflict(w, reply);
        } else {
                hfd_write_reply_store_error(w, reply->error, &reply->status);
        }
}

/* ---- the transaction ---- */

/* The keys that a transaction compares besides those of the fence and the quotas: the object, its
 * namespace and its definition. */
#define N_OWN_KEYS 3
/* The keys that it writes besides the quotas: the object, and the term record of a Lease. */
#define N_OWN_OPS 2

/*
 * A transaction and the buffers of its keys. It may be on the stack, because the store copies it
 * when the transaction is started.
 */
struct commit {
        struct hfd_compare compares[N_OWN_KEYS + HFD_WRITE_FENCE_COMPARES + HFD_WRITE_QUOTAS_MAX];
        struct hfd_op ops[N_OWN_OPS + HFD_WRITE_QUOTAS_MAX];
        const char *reads[N_OWN_KEYS + HFD_WRITE_FENCE_READS + HFD_WRITE_QUOTAS_MAX];
        char term_key[HFD_KEY_MAX], ns_key[HFD_KEY_MAX], definition_key[HFD_KEY_MAX],
                epoch_key[HFD_KEY_MAX];
        struct hf__buf *term_value; /* owned; NULL = none */
        struct hfd_txn txn;
};

_Static_assert(N_OWN_KEYS + HFD_WRITE_FENCE_COMPARES + HFD_WRITE_QUOTAS_MAX <= HFD_TXN_MAX,
               "a fenced create that quotas count must fit into a transaction");

/* The common part of all transactions: the compare, the effect and the read of the object. */
static void begin_commit(struct commit *commit, const struct hfd_write *w) {
        commit->compares[0] =
                (struct hfd_compare){.kind = HFD_MOD_EQUALS,
                                     .key = w->key,
                                     .revision = w->current ? w->current->revision : 0};
        commit->ops[0] = (struct hfd_op){.kind = w->stored ? HFD_PUT : HFD_DELETE,
                                         .key = w->key,
                                         .value = w->stored};
        commit->ops[1] = (struct hfd_op){0};
        commit->reads[0] = w->key;
        commit->txn = (struct hfd_txn){.compares = commit->compares,
                                       .n_compares = 1,
                                       .ops = commit->ops,
                                       .n_ops = w->unchanged ? 0 : 1,
                                       .get_on_failure = commit->reads,
                                       .n_get_on_failure = 1,
                                       .urgent = w->request->resource->term_record};
}

/* 0, -ENOMEM or HF_E_TOO_LARGE. The caller drops term_value, also after a failure. */
static int prepare_commit(struct commit *commit, struct hfd_write *w) {
        struct hfd_txn *txn = &commit->txn;

        begin_commit(commit, w);
        int r = hfd_write_fence_term_op(w, commit->term_key, &commit->ops[1], &commit->term_value);
        if (r == 0 && commit->ops[1].key)
                txn->n_ops = 2;
        if (r == 0 && w->fence)
                r = hfd_write_fence_compare(w, commit->epoch_key, commit->compares,
                                            &txn->n_compares, commit->reads,
                                            &txn->n_get_on_failure);
        if (r == 0 &&
            hfd_write_namespace_compare(w, commit->ns_key, &commit->compares[txn->n_compares])) {
                txn->n_compares++;
                commit->reads[txn->n_get_on_failure++] = commit->ns_key;
        }
        if (r == 0 && hfd_write_custom_compare(w, commit->definition_key,
                                               &commit->compares[txn->n_compares])) {
                txn->n_compares++;
                commit->reads[txn->n_get_on_failure++] = commit->definition_key;
        }
        if (r == 0)
                hfd_write_quota_compare(w, commit->compares, &txn->n_compares, commit->ops,
                                        &txn->n_ops, commit->reads, &txn->n_get_on_failure);
        return r;
}

void hfd_write_commit(struct hfd_write *w) {
        struct commit commit;
        int r;

        assert(w->key && !w->awaiting);
        /* Exactly one effect: put, delete with or without a last state, or no change. */
        assert((w->stored != NULL) + (w->last != NULL) + w->unchanged <= 1);
        assert(w->stored || w->current);
        assert(!w->created || (w->stored && !w->current));
        if (w->request->options.dry_run) {
                hfd_write_reply_committed(w, w->current ? w->current->revision : 0);
                return;
        }
        /*
         * The store was replaced, which ends the term, but the leader may not know that yet. The
         * response says that the fence was compared, so that the leader takes it for a refusal by
         * the fence.
         */
        if (w->fence && hfd_store_identity_replacement_pending(w->registry->cacher)) {
                w->fence_compared = true;
                hfd_write_reply_stale_term(w);
                return;
        }
        r = prepare_commit(&commit, w);
        /*
         * Free the parsed JSON on the thread that allocated it, so that this thread's allocator can
         * reuse the memory. The callback runs on a thread of the store.
         */
        w->object = hf__json_free(w->object);
        w->body = hf__json_free(w->body);
        w->old = hf__json_free(w->old);
        hfd_write_await(w);
        if (r == 0)
                r = hfd_store_request_txn(w->registry->cacher, &commit.txn, w->request->deadline,
                                          on_committed, w);
        hf__buf_unref(commit.term_value);
        if (r != 0) { /* on_committed is not called */
                w->awaiting = false;
                hfd_write_reply_store_error(w, r, NULL);
        }
}

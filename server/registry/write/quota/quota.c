/* SPDX-License-Identifier: Apache-2.0 */
/*
 * A write and the quotas of its namespace. What a quota decides is in server/quota/.
 *
 *      collect   the newest versions that this instance knows
 *      charge    what each quota decides
 *      turn      of the writes of this instance in the namespace, one is charged at a time
 *      confirm   before a refusal: are the versions current?
 *      commit    commit.c; after a conflict the write goes on with `charge`
 *
 * Invariants: a refusal is based on versions that the store has returned or confirmed (a dry run is
 * the exception), of the quota and of an object that is updated. Every quota that counts the
 * write, or will count it, is compared and written in
 * its transaction. The quotas of a namespace that this instance does not know yet, because its
 * watch is late, do not count.
 */
#include "server/registry/write/quota/quota.h"

#include <assert.h>
#include <stdlib.h>

#include "base/json.h"
#include "server/cacher/requests/store_request.h"
#include "server/registry/base/quota_turns.h"
#include "server/registry/write/commit.h"
#include "server/registry/write/quota/quota_charges.h"
#include "server/registry/write/reply.h"

struct hfd_write_quota {
        struct hfd_quota_turn turn; /* first member: hfd_write_quota_done casts it back */
        struct hfd_write *w;
        enum { NO_TURN, HAS_TURN, COMPETES } turn_state;
        struct hfd_quota_charges charges;
        struct hfd_write *waiting; /* the next one to resume on this thread */
};

/* ---- the quotas of the namespace ---- */

static const char *name_of_new(const struct hfd_write *w) {
        const char *name = hf__json_string(w->object, "metadata.name");

        return name ? name : "";
}

static void forbid(struct hfd_write *w, const char *why) {
        struct hfd_response response = {0};

        hfd_response_forbidden(&response, w->request->resource, name_of_new(w), why, NULL);
        hfd_write_reply(w, &response);
}

/*
 * Creates w->quota if the namespace has quotas; otherwise it stays NULL. If it exists, the versions
 * are replaced. False: the response was sent.
 */
static bool collect(struct hfd_write *w) {
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
                forbid(w, "the namespace has more than 64 quotas");
        else
                hfd_write_reply_no_memory(w);
        return false;
}

/* ---- confirming a refusal ---- */

static void on_confirmed(void *ctx, const struct hfd_store_reply *reply) {
        struct hfd_write *w = ctx;

        assert(w->awaiting_store);
        w->awaiting_store = false;
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
        if (hfd_write_quota_admit(w))
                hfd_write_commit(w);
}

/* Asks the store whether the quota that refuses still has that version. */
static void confirm(struct hfd_write *w, const struct hfd_quota_charge *refuses) {
        const struct hfd_compare compare = {.kind = HFD_MOD_EQUALS,
                                            .key = refuses->key,
                                            .revision = refuses->object->revision};
        const char *read = refuses->key;
        const struct hfd_txn txn = {.compares = &compare,
                                    .n_compares = 1,
                                    .get_on_failure = &read,
                                    .n_get_on_failure = 1};

        hfd_write_await_store(w);
        int r = hfd_store_request_txn(w->registry->cacher, &txn, w->request->deadline, on_confirmed,
                                      w);
        if (r != 0) { /* on_confirmed is not called */
                w->awaiting_store = false;
                hfd_write_reply_store_error(w, r, NULL);
        }
}

/* ---- turns ---- */

/* False: w waits, and another thread may be using it. */
static bool take_turn(struct hfd_write *w) {
        struct hfd_write_quota *quota = w->quota;

        if (quota->turn_state != NO_TURN)
                return true;
        quota->w = w;
        quota->turn.ns = w->request->ns;
        quota->turn.deadline = w->request->deadline;
        quota->turn_state = HAS_TURN; /* before another thread may use it */
        w->on_pool = false;
        switch (hfd_quota_turns_take(&w->registry->turns, &quota->turn)) {
        case HFD_TURN_HELD: return true;
        case HFD_TURN_WAITS: return false;
        case HFD_TURN_PASSED: break;
        }
        quota->turn_state = COMPETES;
        return true;
}

struct hfd_write *hfd_write_quota_done(struct hfd_write *w) {
        struct hfd_write_quota *quota = w->quota;
        struct hfd_quota_turn *next = NULL;

        if (!quota)
                return NULL;
        if (quota->turn_state == HAS_TURN)
                next = hfd_quota_turns_leave(&w->registry->turns, &quota->turn);
        hfd_quota_charges_clear(&quota->charges);
        free(quota);
        w->quota = NULL;
        return next ? ((struct hfd_write_quota *)next)->w : NULL;
}

/* The turn has come. Others have changed the quotas meanwhile. */
static void resume_one(struct hfd_write *w) {
        struct hfd_response response = {0};

        if (hfd_registry_now(w->registry) >= w->request->deadline) {
                hfd_response_conflict(&response, w->request->resource, name_of_new(w), NULL);
                hfd_write_reply(w, &response);
                return;
        }
        if (collect(w) && hfd_write_quota_admit(w))
                hfd_write_commit(w);
}

/*
 * A write that is resumed may end at once, which resumes the next. They are resumed in a loop and
 * not one within the other, because the stacks of threads are small.
 */
void hfd_write_quota_resume(struct hfd_write *w) {
        static _Thread_local struct hfd_write *first;
        static _Thread_local bool running;

        if (!w)
                return;
        w->quota->waiting = first;
        first = w;
        if (running)
                return;
        running = true;
        while (first) {
                struct hfd_write *next = first;
                first = next->quota->waiting;
                resume_one(next);
        }
        running = false;
}

/* ---- before the transaction ---- */

/* An update was refused because of a version that only the cacher knows: the store is asked. */
static void refetch(struct hfd_write *w) {
        hfd_quota_charges_forget(&w->quota->charges);
        w->stored = hf__buf_unref(w->stored);
        hfd_write_refetch(w);
}

/* Acts on a decision. True: commit. False: as hfd_write_quota_admit. */
static bool act(struct hfd_write *w, const struct hfd_quota_decision *decision) {
        bool dry_run = w->request->options.dry_run;

        if (decision->refuses && w->current && !w->fresh) {
                refetch(w);
                return false;
        }
        if (decision->refuses && !decision->refuses->fresh && !dry_run) {
                confirm(w, decision->refuses);
                return false;
        }
        if (decision->refuses) {
                forbid(w, decision->why.data);
                return false;
        }
        if (decision->n_changed > HFD_WRITE_QUOTAS_MAX) {
                forbid(w, "more than 8 quotas of the namespace count it");
                return false;
        }
        return decision->n_changed == 0 || dry_run || take_turn(w);
}

static int64_t now_of(const struct hfd_write *w) {
        const struct hf_clock *clock = hf_host_clock(w->registry->host);

        return clock->real(clock->ctx) / HF_NSEC_PER_SEC;
}

bool hfd_write_quota_admit(struct hfd_write *w) {
        const struct hfd_resource *resource = w->request->resource;
        struct hfd_quota_decision decision = {0};
        struct hfd_quota_change change;
        bool commit = false;
        int r;

        assert(w->stored && w->object && !w->awaiting_store);
        if (!resource->namespaced)
                return true;
        if (!w->quota && !collect(w))
                return false;
        if (!w->quota ||
            !hfd_quota_change_init(&change, resource->group, resource->plural, w->object,
                                   w->created ? NULL : w->old,
                                   w->request->subresource != HFD_SUB_NONE, now_of(w), &r))
                return true;
        if (r == 0)
                r = hfd_quota_charges_decide(&w->quota->charges, &change, w->registry->prefix,
                                             resource == hfd_quota_resource() ? w->path : "",
                                             &decision);
        hfd_quota_change_done(&change);
        if (r != 0)
                hfd_write_reply_store_error(w, r, NULL);
        else
                commit = act(w, &decision);
        hf__strbuf_done(&decision.why);
        return commit;
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

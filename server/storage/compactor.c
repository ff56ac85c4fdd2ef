/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Makes one attempt per step. An attempt reads the compact key, whose value is "TARGET STEPS". If
 * the key is as this instance saw it one step ago, the attempt counts one more step in it. With the
 * last step it writes the store's current revision as the next target, and then compacts at the old
 * one. If the key has changed, another instance has written it, or this one by a write of unknown
 * outcome, and the attempt ends. The first attempt only notes the key, or creates it.
 *
 * Invariants: At most one attempt is running (`busy`), and until it ends only this attempt uses
 * `has_seen`, `seen` and `target`. The owner and the running attempt hold one reference each.
 * hfd_compactor_free sets `closed` and drops the owner's reference; an attempt that is still
 * running starts no further operation once it has seen that.
 *
 * The write compares the key's mod revision, so only one instance replaces a value, and only that
 * one compacts at the value's target. If the outcome of a write is unknown, `seen` does not change,
 * and the next attempt finds out. A compaction that fails does no harm, because a later compaction
 * at a higher revision includes it.
 */
#include "server/storage/compactor.h"

#include <assert.h>
#include <errno.h>
#include <inttypes.h>
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/thread.h"
#include "server/storage/keys.h"

#define OPERATION_TIMEOUT (10 * HF_NSEC_PER_SEC) /* for each operation of an attempt */
#define RECORD_MAX        40                     /* bytes of the key's value, with the NUL */

struct hfd_compactor {
        /* Immutable. */
        const struct hf_host *host; /* borrowed */
        struct hfd_store *store;    /* borrowed */
        hf_nsec step;               /* between two attempts; 0 = there are none */
        char key[HFD_KEY_MAX];      /* the compact key */
        /* Owner only. */
        hf_nsec due; /* boot time of the next attempt; 0 = hfd_compactor_tick was never called */
        /* Used by the callbacks of a running attempt; by the owner while none is running. */
        bool has_seen;   /* an earlier attempt has read the key */
        uint64_t seen;   /* its latest known mod revision; 0 = there was no such key */
        uint64_t target; /* the running attempt compacts here; 0 = it only writes the key */
        /* Guarded by mu. */
        pthread_mutex_t mu;
        unsigned refs;
        bool busy, closed;
};

static void compactor_unref(struct hfd_compactor *compactor) {
        unsigned left;

        pthread_mutex_lock(&compactor->mu);
        assert(compactor->refs > 0);
        left = --compactor->refs;
        assert(left > 0 || (compactor->closed && !compactor->busy));
        pthread_mutex_unlock(&compactor->mu);
        if (left == 0) {
                pthread_mutex_destroy(&compactor->mu);
                free(compactor);
        }
}

static void end_attempt(struct hfd_compactor *compactor) {
        pthread_mutex_lock(&compactor->mu);
        assert(compactor->busy);
        compactor->busy = false;
        pthread_mutex_unlock(&compactor->mu);
        compactor_unref(compactor);
}

static bool is_closed(struct hfd_compactor *compactor) {
        bool closed;

        pthread_mutex_lock(&compactor->mu);
        closed = compactor->closed;
        pthread_mutex_unlock(&compactor->mu);
        return closed;
}

static hf_nsec operation_deadline(const struct hfd_compactor *compactor) {
        return hf_now(hf_host_clock(compactor->host)) + OPERATION_TIMEOUT;
}

static void warn_of(const struct hfd_compactor *compactor, const char *what,
                    const struct hfd_store_reply *reply) {
        if (reply->error != HF_E_CANCELED)
                hf_log(&compactor->host->log, HF_LOG_WARNING, "compactor",
                       "%s %s, will try again: %s", what, compactor->key, reply->status.message);
}

static void on_compacted(void *ctx, const struct hfd_store_reply *reply) {
        struct hfd_compactor *compactor = ctx;

        /* HF_E_GONE: the store was already compacted at this revision or a later one. */
        if (reply->error != 0 && reply->error != HF_E_GONE)
                warn_of(compactor, "cannot compact the store at the revision of", reply);
        end_attempt(compactor);
}

/* Compacts at the target that has waited for all its steps, not at the current revision. So clients
 * have that long to continue a watch or a list. */
static void on_key_written(void *ctx, const struct hfd_store_reply *reply) {
        struct hfd_compactor *compactor = ctx;

        if (reply->error == 0)
                compactor->seen = reply->revision;
        else if (reply->error == HF_E_CONFLICT)
                compactor->seen = reply->n_kvs > 0 ? reply->kvs[0].mod_revision : 0;
        else
                warn_of(compactor, "cannot write the compact key", reply);
        if (reply->error != 0 || compactor->target == 0 || is_closed(compactor) ||
            compactor->store->ops->compact(compactor->store, compactor->target,
                                           operation_deadline(compactor), on_compacted,
                                           compactor) != 0)
                end_attempt(compactor);
}

/* The content of the key. */
struct record {
        uint64_t target; /* 0: there is none, or it is useless */
        unsigned n_steps;
};

/* Replaces the key's value. 0, or an error: then on_key_written is not called. */
static int write_key(struct hfd_compactor *compactor, struct record record) {
        const char *keys[] = {compactor->key};
        struct hfd_compare compare = {.kind = HFD_MOD_EQUALS,
                                      .key = compactor->key,
                                      .revision = compactor->seen};
        struct hfd_op put = {.kind = HFD_PUT, .key = compactor->key};
        struct hfd_txn txn = {.compares = &compare,
                              .n_compares = 1,
                              .ops = &put,
                              .n_ops = 1,
                              .get_on_failure = keys,
                              .n_get_on_failure = 1};
        char text[RECORD_MAX];
        int n = snprintf(text, sizeof text, "%" PRIu64 " %u", record.target, record.n_steps);
        int r;

        put.value = hf__buf_copy(text, (size_t)n);
        if (!put.value)
                return -ENOMEM;
        r = compactor->store->ops->txn(compactor->store, &txn, operation_deadline(compactor),
                                       on_key_written, compactor);
        hf__buf_unref(put.value);
        return r;
}

/* The target is useless if the store has not reached it or the value is malformed: a backup was
 * restored, or the key was written by hand. Earlier versions wrote the target alone, which counts
 * as 0 steps. */
static struct record read_record(const struct hfd_store_reply *reply) {
        const struct hf__buf *value = reply->n_kvs > 0 ? reply->kvs[0].value : NULL;
        struct record record = {0};
        char text[RECORD_MAX];
        char *end;

        if (!value || value->n == 0 || value->n >= sizeof text)
                return record;
        memcpy(text, value->data, value->n);
        text[value->n] = '\0';
        errno = 0;
        record.target = strtoull(text, &end, 10);
        if (*end == ' ')
                record.n_steps = (unsigned)strtoul(end + 1, &end, 10);
        if (errno != 0 || *end != '\0' || record.target > reply->revision ||
            record.n_steps >= HFD_COMPACT_N_STEPS)
                return (struct record){0};
        return record;
}

/* A key that does not exist yet is written at once: its first step begins. */
static void on_key_read(void *ctx, const struct hfd_store_reply *reply) {
        struct hfd_compactor *compactor = ctx;
        uint64_t mod = reply->n_kvs > 0 ? reply->kvs[0].mod_revision : 0;
        bool is_due = mod == 0 || (compactor->has_seen && compactor->seen == mod);
        struct record record = read_record(reply);

        if (reply->error != 0) {
                warn_of(compactor, "cannot read the compact key", reply);
                end_attempt(compactor);
                return;
        }
        compactor->has_seen = true;
        compactor->seen = mod;
        compactor->target = 0;
        record.n_steps++;
        if (record.target == 0 || record.n_steps == HFD_COMPACT_N_STEPS) {
                compactor->target = record.target;
                record = (struct record){.target = reply->revision};
        }
        if (!is_due || is_closed(compactor) || write_key(compactor, record) != 0)
                end_attempt(compactor);
}

/* Reads the key. 0, or an error: then on_key_read is not called. */
static int start_attempt(struct hfd_compactor *compactor) {
        assert(compactor->key[0]);
        return compactor->store->ops->get(compactor->store, compactor->key, false,
                                          operation_deadline(compactor), on_key_read, compactor);
}

void hfd_compactor_tick(struct hfd_compactor *compactor, hf_nsec now) {
        bool start;

        if (compactor->step == 0 || now < compactor->due)
                return;
        compactor->due = now + compactor->step;
        pthread_mutex_lock(&compactor->mu);
        assert(!compactor->closed);
        start = !compactor->busy;
        if (start) {
                compactor->busy = true;
                assert(compactor->refs > 0);
                compactor->refs++;
        }
        pthread_mutex_unlock(&compactor->mu);
        if (start && start_attempt(compactor) != 0)
                end_attempt(compactor);
}

hf_nsec hfd_compactor_next(const struct hfd_compactor *compactor) {
        return compactor->step == 0 ? INT64_MAX : compactor->due;
}

int hfd_compactor_new(const struct hf_host *host, struct hfd_store *store, const char *prefix,
                      hf_nsec interval, struct hfd_compactor **ret_compactor) {
        struct hfd_compactor *compactor = calloc(1, sizeof *compactor);
        int r;

        if (!compactor)
                return -ENOMEM;
        assert(host && store && store->ops);
        compactor->host = host;
        compactor->store = store;
        compactor->step =
                interval > 0 && interval < HFD_COMPACT_N_STEPS ? 1 : interval / HFD_COMPACT_N_STEPS;
        compactor->refs = 1;
        r = hfd_key_own(compactor->key, prefix, "compact");
        if (r == 0)
                r = hf__mutex_init(&compactor->mu);
        if (r != 0) {
                free(compactor);
                return r;
        }
        *ret_compactor = compactor;
        return 0;
}

struct hfd_compactor *hfd_compactor_free(struct hfd_compactor *compactor) {
        if (!compactor)
                return NULL;
        pthread_mutex_lock(&compactor->mu);
        assert(!compactor->closed);
        compactor->closed = true;
        pthread_mutex_unlock(&compactor->mu);
        compactor_unref(compactor);
        return NULL;
}

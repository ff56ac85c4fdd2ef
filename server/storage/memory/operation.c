/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The operations of the memory store.
 *
 * Invariant: an operation takes effect inside the function that starts it, under the mutex, and its
 * reply is queued before the mutex is released. So deadlines are not needed, the outcome is always
 * known, and replies are delivered in the order of their revisions.
 *
 * A reply holds references to the versions that it returns, because they may be compacted before it
 * is delivered. The mutex guards the versions' reference counts.
 */
#include "server/storage/memory/operation.h"

#include <assert.h>
#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "base/thread.h"
#include "server/storage/memory/watch.h"

/* The reply to an operation, queued until the store's thread runs the callback. */
struct hfd_memory_reply {
        struct hfd_memory_reply *next;
        hfd_store_fn done;
        void *ctx;
        struct hfd_store_reply reply;
        struct hfd_kv *kvs;            /* owned; reply.kvs points to it */
        struct hfd_version **versions; /* owned references; kvs borrow from them */
        size_t space;                  /* capacity of both arrays, in elements */
};

static struct hfd_memory_reply *new_reply(hfd_store_fn done, void *ctx) {
        struct hfd_memory_reply *reply = calloc(1, sizeof *reply);

        if (reply) {
                reply->done = done;
                reply->ctx = ctx;
        }
        return reply;
}

static void free_reply_locked(struct hfd_memory_reply *reply) {
        for (size_t i = 0; i < reply->reply.n_kvs; i++)
                hfd_version_unref(reply->versions[i]);
        free(reply->versions);
        free(reply->kvs);
        free(reply);
}

/* 0 or -ENOMEM. */
static int reserve_kvs(struct hfd_memory_reply *reply, size_t space) {
        struct hfd_kv *kvs;
        struct hfd_version **versions;

        if (space <= reply->space)
                return 0;
        /* Each new array is stored even if the other fails: realloc has freed the old one. */
        kvs = realloc(reply->kvs, space * sizeof *kvs);
        if (kvs)
                reply->kvs = kvs;
        versions = realloc(reply->versions, space * sizeof *versions);
        if (versions)
                reply->versions = versions;
        if (!kvs || !versions)
                return -ENOMEM;
        reply->space = space;
        return 0;
}

static int add_kv_locked(struct hfd_memory_reply *reply, struct hfd_version *version,
                         bool with_value) {
        size_t n = reply->reply.n_kvs;

        assert(n <= reply->space);
        if (n == reply->space && reserve_kvs(reply, n > 0 ? 2 * n : 1) != 0)
                return -ENOMEM;
        reply->versions[n] = hfd_version_ref(version);
        reply->kvs[n] = (struct hfd_kv){.key = version->key,
                                        .value = with_value ? version->value : NULL,
                                        .mod_revision = version->mod,
                                        .create_revision = version->create};
        reply->reply.n_kvs++;
        return 0;
}

static void queue_reply_locked(struct hfd_memory *memory, struct hfd_memory_reply *reply) {
        hf__mutex_assert_held(&memory->mu);
        reply->reply.kvs = reply->kvs;
        reply->reply.revision = memory->history.revision;
        *memory->last_reply = reply;
        memory->last_reply = &reply->next;
        pthread_cond_signal(&memory->wake);
}

/*
 * Runs any operation: creates the reply, calls act_locked under the mutex and queues the reply. If
 * this returns an error, the operation had no effect and the callback is never called.
 */
static int run_operation(struct hfd_store *store, hfd_store_fn done, void *ctx,
                         int (*act_locked)(struct hfd_memory *memory,
                                           struct hfd_memory_reply *reply, const void *args),
                         const void *args) {
        struct hfd_memory *memory = hfd_memory_of(store);
        struct hfd_memory_reply *reply;
        int r;

        assert(done);
        reply = new_reply(done, ctx);
        if (!reply)
                return -ENOMEM;
        pthread_mutex_lock(&memory->mu);
        r = memory->closing ? HF_E_CLOSED : act_locked(memory, reply, args);
        if (r != 0)
                free_reply_locked(reply);
        else
                queue_reply_locked(memory, reply);
        pthread_mutex_unlock(&memory->mu);
        return r;
}

static int do_get_locked(struct hfd_memory *memory, struct hfd_memory_reply *reply,
                         const void *args) {
        struct hfd_version *version =
                hfd_history_get(&memory->history, args, memory->history.revision);

        hf__mutex_assert_held(&memory->mu);
        return version ? add_kv_locked(reply, version, true) : 0;
}

int hfd_memory_get(struct hfd_store *store, const char *key, bool urgent, hf_nsec deadline,
                   hfd_store_fn done, void *ctx) {
        if (!key || *key == 0)
                return -EINVAL;
        return run_operation(store, done, ctx, do_get_locked, key);
}

/* Sets the reply's error, which is HF_E_GONE or HF_E_INVALID. */
static void fail_revision(struct hfd_memory_reply *reply, int error, uint64_t revision) {
        reply->reply.error = hf_fail(&reply->reply.status, error, "revision %llu is %s",
                                     (unsigned long long)revision,
                                     error == HF_E_GONE ? "compacted" : "not reached yet");
}

struct list_args {
        const char *start, *prefix;
        uint64_t revision;
        size_t limit;
        bool keys_only;
};

static int do_list_locked(struct hfd_memory *memory, struct hfd_memory_reply *reply,
                          const void *data) {
        const struct list_args *args = data;
        const struct hfd_history *history = &memory->history;
        uint64_t revision = args->revision ? args->revision : history->revision;
        size_t n_prefix = strlen(args->prefix);

        hf__mutex_assert_held(&memory->mu);
        if (revision < history->compacted) {
                fail_revision(reply, HF_E_GONE, revision);
                return 0;
        }
        if (revision > history->revision) {
                fail_revision(reply, HF_E_INVALID, revision);
                return 0;
        }
        for (size_t i = hfd_history_find(history, args->start);
             i < history->n_keys && strncmp(history->keys[i].name, args->prefix, n_prefix) == 0;
             i++) {
                struct hfd_version *version = hfd_history_at(history, i, revision);

                if (!version)
                        continue;
                if (args->limit && reply->reply.n_kvs == args->limit) {
                        reply->reply.more = true;
                        break;
                }
                if (add_kv_locked(reply, version, !args->keys_only))
                        return -ENOMEM;
        }
        return 0;
}

int hfd_memory_list(struct hfd_store *store, const char *prefix, const char *start_key,
                    uint64_t revision, size_t limit, bool keys_only, hf_nsec deadline,
                    hfd_store_fn done, void *ctx) {
        struct list_args args = {.prefix = prefix,
                                 .revision = revision,
                                 .limit = limit,
                                 .keys_only = keys_only};

        /* A start key that sorts before the prefix selects the whole prefix. */
        args.start = start_key && strcmp(start_key, prefix) > 0 ? start_key : prefix;
        return run_operation(store, done, ctx, do_list_locked, &args);
}

static int do_txn_locked(struct hfd_memory *memory, struct hfd_memory_reply *reply,
                         const void *data) {
        const struct hfd_txn *txn = data;
        struct hfd_history *history = &memory->history;
        bool holds = true;

        hf__mutex_assert_held(&memory->mu);
        if (hfd_txn_is_too_large(txn)) {
                reply->reply.error =
                        hf_fail(&reply->reply.status, HF_E_TOO_LARGE, "request is too large");
                return 0;
        }
        /* Under the mutex, the compares and the writes (or the reads on failure) are one atomic
         * step. */
        for (size_t i = 0; i < txn->n_compares; i++)
                holds = holds && hfd_history_compare(history, &txn->compares[i]);
        if (holds)
                return hfd_history_write(history, txn->ops, txn->n_ops);
        reply->reply.error =
                hf_fail(&reply->reply.status, HF_E_CONFLICT, "a compare of the transaction failed");
        for (size_t i = 0; i < txn->n_get_on_failure; i++) {
                struct hfd_version *version =
                        hfd_history_get(history, txn->get_on_failure[i], history->revision);

                if (version && add_kv_locked(reply, version, true))
                        return -ENOMEM;
        }
        return 0;
}

int hfd_memory_txn(struct hfd_store *store, const struct hfd_txn *txn, hf_nsec deadline,
                   hfd_store_fn done, void *ctx) {
        int r = hfd_txn_check(txn);

        return r != 0 ? r : run_operation(store, done, ctx, do_txn_locked, txn);
}

static int do_compact_locked(struct hfd_memory *memory, struct hfd_memory_reply *reply,
                             const void *data) {
        uint64_t revision = *(const uint64_t *)data, keep;

        hf__mutex_assert_held(&memory->mu);
        if (revision <= memory->history.compacted) {
                fail_revision(reply, HF_E_GONE, revision);
                return 0;
        }
        if (revision > memory->history.revision) {
                fail_revision(reply, HF_E_INVALID, revision);
                return 0;
        }
        /* Keep the log entries that a watch has not received yet. So a watch that began in time
         * does not lose events because its delivery is slow. */
        keep = hfd_memory_oldest_position_locked(memory);
        if (keep > revision)
                keep = revision;
        hfd_history_compact(&memory->history, revision, keep);
        return 0;
}

int hfd_memory_compact(struct hfd_store *store, uint64_t revision, hf_nsec deadline,
                       hfd_store_fn done, void *ctx) {
        return run_operation(store, done, ctx, do_compact_locked, &revision);
}

/* Nothing to do: queue_reply_locked adds the revision to every reply. */
static int do_revision_locked(struct hfd_memory *memory, struct hfd_memory_reply *reply,
                              const void *args) {
        hf__mutex_assert_held(&memory->mu);
        return 0;
}

int hfd_memory_revision(struct hfd_store *store, hf_nsec deadline, hfd_store_fn done, void *ctx) {
        return run_operation(store, done, ctx, do_revision_locked, NULL);
}

bool hfd_memory_deliver_reply_locked(struct hfd_memory *memory) {
        struct hfd_memory_reply *reply = memory->first_reply;

        hf__mutex_assert_held(&memory->mu);
        if (!reply)
                return false;
        memory->first_reply = reply->next;
        if (!memory->first_reply)
                memory->last_reply = &memory->first_reply;
        pthread_mutex_unlock(&memory->mu);
        reply->done(reply->ctx, &reply->reply);
        pthread_mutex_lock(&memory->mu);
        free_reply_locked(reply);
        return true;
}

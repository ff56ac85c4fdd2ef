/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The memory store: one history, one mutex, one thread.
 *
 * An operation takes effect inside the call that starts it, under the mutex; what it found waits in
 * a queue until the store's thread delivers it. So a deadline is always met, and the outcome is
 * always known. A watch is a position in the history's log: the thread hands each watch what was
 * written since, and whole revisions only, because a transaction enters the log under the mutex.
 * Replies and events are each delivered in the order of their revisions.
 *
 * A watch lives from watch() until the thread has called its end; only the thread takes it off the
 * list. Cancelling only marks it. No callback runs under the mutex. Once `closing` is set nothing
 * starts any more, and the thread leaves when all replies are delivered and all watches ended.
 */
#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "base/thread.h"
#include "server/storage/keys.h"
#include "server/storage/memory/history.h"

#define MAX_REQUEST_BYTES (1536 * 1024) /* etcd's default, so that what works here works there */

/* One finished operation on its way to the callback. */
struct reply {
        struct reply *next;
        hfd_store_fn done;
        void *ctx;
        struct hfd_store_reply reply;
        struct hfd_kv *kvs;            /* owned; what reply.kvs points at */
        struct hfd_version **versions; /* owned references: what kvs borrow from */
        size_t space;
};

struct watch {
        struct watch *next;
        /* immutable */
        uint64_t id;
        struct hfd_watch_handler handler;
        void *ctx;
        char *begin, *end; /* owned */
        /* guarded by mu */
        uint64_t position; /* the next revision to deliver */
        int error;         /* != 0: to be ended with it */
};

struct memory_store {
        struct hfd_store store;
        pthread_t thread;
        /* guarded by mu */
        pthread_mutex_t mu;
        pthread_cond_t wake;
        struct hfd_history history;
        struct reply *first, **last;
        struct watch *watches;
        uint64_t last_watch_id;
        uint64_t iterations;
        bool closing;
};

static struct memory_store *memory_of(struct hfd_store *store) {
        return (struct memory_store *)store;
}

static struct reply *reply_new(hfd_store_fn done, void *ctx) {
        struct reply *reply = calloc(1, sizeof *reply);

        if (reply) {
                reply->done = done;
                reply->ctx = ctx;
        }
        return reply;
}

/* Needs mu for the counts of the versions. */
static void reply_free_locked(struct reply *reply) {
        for (size_t i = 0; i < reply->reply.n_kvs; i++)
                hfd_version_unref(reply->versions[i]);
        free(reply->versions);
        free(reply->kvs);
        free(reply);
}

static int reply_reserve(struct reply *reply, size_t space) {
        struct hfd_kv *kvs;
        struct hfd_version **versions;

        if (space <= reply->space)
                return 0;
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

static int reply_add_locked(struct reply *reply, struct hfd_version *version, bool with_value) {
        size_t n = reply->reply.n_kvs;

        if (n == reply->space && reply_reserve(reply, n ? 2 * n : 1))
                return -ENOMEM;
        reply->versions[n] = hfd_version_ref(version);
        reply->kvs[n] = (struct hfd_kv){.key = version->key,
                                        .value = with_value ? version->value : NULL,
                                        .mod_revision = version->mod,
                                        .create_revision = version->create};
        reply->reply.n_kvs++;
        return 0;
}

static void reply_post_locked(struct memory_store *memory, struct reply *reply) {
        reply->reply.kvs = reply->kvs;
        if (!reply->reply.revision)
                reply->reply.revision = memory->history.revision;
        *memory->last = reply;
        memory->last = &reply->next;
        pthread_cond_signal(&memory->wake);
}

/*
 * The frame of every operation: makes the reply, runs `act` under the mutex and posts the reply,
 * unless act fails with -errno: then nothing happened, and the callback is never called.
 */
static int operate(struct hfd_store *store, hfd_store_fn done, void *ctx,
                   int (*act)(struct memory_store *memory, struct reply *reply, const void *args),
                   const void *args) {
        struct memory_store *memory = memory_of(store);
        struct reply *reply = reply_new(done, ctx);
        int r;

        if (!reply)
                return -ENOMEM;
        pthread_mutex_lock(&memory->mu);
        r = memory->closing ? HF_E_CLOSED : act(memory, reply, args);
        if (r != 0)
                reply_free_locked(reply);
        else
                reply_post_locked(memory, reply);
        pthread_mutex_unlock(&memory->mu);
        return r;
}

static int act_get(struct memory_store *memory, struct reply *reply, const void *args) {
        struct hfd_version *version =
                hfd_history_get(&memory->history, args, memory->history.revision);

        return version ? reply_add_locked(reply, version, true) : 0;
}

static int memory_get(struct hfd_store *store, const char *key, hf_nsec deadline, hfd_store_fn done,
                      void *ctx) {
        if (!key || !*key)
                return -EINVAL;
        return operate(store, done, ctx, act_get, key);
}

struct list_args {
        const char *start, *prefix;
        uint64_t revision;
        size_t limit;
        bool keys_only;
};

static int act_list(struct memory_store *memory, struct reply *reply, const void *data) {
        const struct list_args *args = data;
        const struct hfd_history *history = &memory->history;
        uint64_t revision = args->revision ? args->revision : history->revision;
        size_t n_prefix = strlen(args->prefix);

        if (revision < history->compacted) {
                reply->reply.error =
                        hf_fail(&reply->reply.status, HF_E_GONE, "revision %llu is compacted",
                                (unsigned long long)revision);
                return 0;
        }
        if (revision > history->revision) {
                reply->reply.error =
                        hf_fail(&reply->reply.status, HF_E_INVALID,
                                "revision %llu is not reached yet", (unsigned long long)revision);
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
                if (reply_add_locked(reply, version, !args->keys_only))
                        return -ENOMEM;
        }
        return 0;
}

static int memory_list(struct hfd_store *store, const char *prefix, const char *start_key,
                       uint64_t revision, size_t limit, bool keys_only, hf_nsec deadline,
                       hfd_store_fn done, void *ctx) {
        struct list_args args = {.prefix = prefix,
                                 .revision = revision,
                                 .limit = limit,
                                 .keys_only = keys_only};

        args.start = start_key && strcmp(start_key, prefix) > 0 ? start_key : prefix;
        return operate(store, done, ctx, act_list, &args);
}

static bool too_large(const struct hfd_txn *txn) {
        size_t n = 0;

        for (size_t i = 0; i < txn->n_compares; i++)
                n += strlen(txn->compares[i].key) + txn->compares[i].n_value;
        for (size_t i = 0; i < txn->n_ops; i++)
                n += strlen(txn->ops[i].key) +
                     (txn->ops[i].kind == HFD_PUT ? txn->ops[i].value->n : 0);
        return n > MAX_REQUEST_BYTES;
}

static int act_txn(struct memory_store *memory, struct reply *reply, const void *data) {
        const struct hfd_txn *txn = data;
        struct hfd_history *history = &memory->history;
        bool holds = true;

        if (too_large(txn)) {
                reply->reply.error =
                        hf_fail(&reply->reply.status, HF_E_TOO_LARGE, "request is too large");
                return 0;
        }
        for (size_t i = 0; i < txn->n_compares; i++)
                holds = holds && hfd_history_compare(history, &txn->compares[i]);
        if (holds)
                return hfd_history_write(history, txn->ops, txn->n_ops);
        reply->reply.error =
                hf_fail(&reply->reply.status, HF_E_CONFLICT, "a compare of the transaction failed");
        for (size_t i = 0; i < txn->n_get_on_failure; i++) {
                struct hfd_version *version =
                        hfd_history_get(history, txn->get_on_failure[i], history->revision);

                if (version && reply_add_locked(reply, version, true))
                        return -ENOMEM;
        }
        return 0;
}

static int memory_txn(struct hfd_store *store, const struct hfd_txn *txn, hf_nsec deadline,
                      hfd_store_fn done, void *ctx) {
        int r = hfd_txn_check(txn);

        return r != 0 ? r : operate(store, done, ctx, act_txn, txn);
}

static int act_compact(struct memory_store *memory, struct reply *reply, const void *data) {
        uint64_t revision = *(const uint64_t *)data, keep = revision;

        if (revision <= memory->history.compacted) {
                reply->reply.error =
                        hf_fail(&reply->reply.status, HF_E_GONE,
                                "revision %llu is compacted already", (unsigned long long)revision);
                return 0;
        }
        if (revision > memory->history.revision) {
                reply->reply.error =
                        hf_fail(&reply->reply.status, HF_E_INVALID,
                                "revision %llu is not reached yet", (unsigned long long)revision);
                return 0;
        }
        /* What a started watch has still to see stays in the log, so that a slow thread never costs
         * a watch its events. */
        for (const struct watch *watch = memory->watches; watch; watch = watch->next)
                if (watch->position < keep)
                        keep = watch->position;
        hfd_history_compact(&memory->history, revision, keep);
        return 0;
}

static int memory_compact(struct hfd_store *store, uint64_t revision, hf_nsec deadline,
                          hfd_store_fn done, void *ctx) {
        return operate(store, done, ctx, act_compact, &revision);
}

static int act_revision(struct memory_store *memory, struct reply *reply, const void *args) {
        return 0;
}

static int memory_revision(struct hfd_store *store, hf_nsec deadline, hfd_store_fn done,
                           void *ctx) {
        return operate(store, done, ctx, act_revision, NULL);
}

static struct watch *watch_free(struct watch *watch) {
        if (watch) {
                free(watch->begin);
                free(watch->end);
                free(watch);
        }
        return NULL;
}

static int memory_watch(struct hfd_store *store, const char *begin, const char *end,
                        uint64_t revision, const struct hfd_watch_handler *handler, void *ctx,
                        uint64_t *ret_id) {
        struct memory_store *memory = memory_of(store);
        struct watch *watch = calloc(1, sizeof *watch);
        int r = 0;

        if (!watch)
                return -ENOMEM;
        watch->handler = *handler;
        watch->ctx = ctx;
        watch->begin = strdup(begin);
        watch->end = strdup(end);
        if (!watch->begin || !watch->end) {
                watch_free(watch);
                return -ENOMEM;
        }
        pthread_mutex_lock(&memory->mu);
        if (memory->closing) {
                r = HF_E_CLOSED;
        } else {
                watch->position = revision ? revision : memory->history.revision + 1;
                watch->error = watch->position < memory->history.compacted ? HF_E_GONE : 0;
                watch->id = ++memory->last_watch_id;
                if (ret_id)
                        *ret_id = watch->id;
                watch->next = memory->watches;
                memory->watches = watch;
                pthread_cond_signal(&memory->wake);
        }
        pthread_mutex_unlock(&memory->mu);
        if (r != 0)
                watch_free(watch);
        return r;
}

static void memory_watch_cancel(struct hfd_store *store, uint64_t id) {
        struct memory_store *memory = memory_of(store);

        pthread_mutex_lock(&memory->mu);
        for (struct watch *watch = memory->watches; watch; watch = watch->next)
                if (watch->id == id && !watch->error)
                        watch->error = HF_E_CANCELED;
        pthread_cond_signal(&memory->wake);
        pthread_mutex_unlock(&memory->mu);
}

/* Calls back with the mutex released, and takes it again. */
static void deliver_reply_locked(struct memory_store *memory) {
        struct reply *reply = memory->first;

        memory->first = reply->next;
        if (!memory->first)
                memory->last = &memory->first;
        pthread_mutex_unlock(&memory->mu);
        reply->done(reply->ctx, &reply->reply);
        pthread_mutex_lock(&memory->mu);
        reply_free_locked(reply);
}

static void end_watch_locked(struct memory_store *memory, struct watch **link) {
        struct watch *watch = *link;
        struct hf_status status = {0};

        *link = watch->next;
        pthread_mutex_unlock(&memory->mu);
        hf_fail(&status, watch->error,
                watch->error == HF_E_GONE ? "the watch's start is compacted"
                                          : "the watch was cancelled");
        watch->handler.end(watch->ctx, watch->error, &status);
        watch_free(watch);
        pthread_mutex_lock(&memory->mu);
}

#define EVENTS_MAX 256 /* of one call, but for a larger revision */

/* Hands the watch whole revisions from its position on. Returns false when there was nothing for
 * it, the mutex still held. */
static bool deliver_events_locked(struct memory_store *memory, struct watch *watch) {
        const struct hfd_history *history = &memory->history;
        struct hfd_watch_event events[EVENTS_MAX + HFD_TXN_MAX];
        struct hfd_version *versions[EVENTS_MAX + HFD_TXN_MAX];
        uint64_t position = watch->position;
        size_t n = 0;

        for (size_t i = hfd_history_log_find(history, position); i < history->n_log; i++) {
                struct hfd_version *version = history->log[i];

                if (n >= EVENTS_MAX && version->mod >= position)
                        break;
                position = version->mod + 1;
                if (strcmp(version->key, watch->begin) < 0 ||
                    (*watch->end && strcmp(version->key, watch->end) >= 0))
                        continue;
                versions[n] = hfd_version_ref(version);
                events[n++] =
                        (struct hfd_watch_event){.type = version->value ? HFD_WATCH_PUT
                                                                        : HFD_WATCH_DELETE,
                                                 .kv = {.key = version->key,
                                                        .value = version->value,
                                                        .mod_revision = version->mod,
                                                        .create_revision = version->value
                                                                                   ? version->create
                                                                                   : 0},
                                                 .revision = version->mod};
        }
        watch->position = position;
        if (!n)
                return false;
        pthread_mutex_unlock(&memory->mu);
        watch->handler.event(watch->ctx, events, n);
        pthread_mutex_lock(&memory->mu);
        for (size_t i = 0; i < n; i++)
                hfd_version_unref(versions[i]);
        return true;
}

/* One callback, if any is due. The list may have changed after one, so the search begins anew each
 * time. */
static bool iteration_locked(struct memory_store *memory) {
        if (memory->first) {
                deliver_reply_locked(memory);
                return true;
        }
        for (struct watch **link = &memory->watches; *link; link = &(*link)->next) {
                if (memory->closing && !(*link)->error)
                        (*link)->error = HF_E_CANCELED;
                if ((*link)->error) {
                        end_watch_locked(memory, link);
                        return true;
                }
                if (deliver_events_locked(memory, *link))
                        return true;
        }
        return false;
}

static void *memory_thread(void *ctx) {
        struct memory_store *memory = ctx;
        const struct hf_clock *clock = hf_host_clock(memory->store.host);

        pthread_mutex_lock(&memory->mu);
        for (;;) {
                memory->iterations++;
                if (iteration_locked(memory))
                        continue;
                if (memory->closing)
                        break;
                clock->wait(clock->ctx, &memory->wake, &memory->mu,
                            hf_now(clock) + HF_NSEC_PER_SEC);
        }
        pthread_mutex_unlock(&memory->mu);
        return NULL;
}

static uint64_t memory_iterations(struct hfd_store *store) {
        struct memory_store *memory = memory_of(store);
        uint64_t iterations;

        pthread_mutex_lock(&memory->mu);
        iterations = memory->iterations;
        pthread_mutex_unlock(&memory->mu);
        return iterations;
}

static void memory_stop(struct hfd_store *store) {
        struct memory_store *memory = memory_of(store);

        pthread_mutex_lock(&memory->mu);
        memory->closing = true;
        pthread_cond_signal(&memory->wake);
        pthread_mutex_unlock(&memory->mu);
}

static void memory_free(struct hfd_store *store) {
        struct memory_store *memory = memory_of(store);

        memory_stop(store);
        pthread_join(memory->thread, NULL);
        hfd_history_deinit(&memory->history);
        pthread_cond_destroy(&memory->wake);
        pthread_mutex_destroy(&memory->mu);
        free(memory);
}

static const struct hfd_store_ops memory_ops = {
        .get = memory_get,
        .list = memory_list,
        .txn = memory_txn,
        .watch = memory_watch,
        .watch_cancel = memory_watch_cancel,
        .compact = memory_compact,
        .revision = memory_revision,
        .stop = memory_stop,
        .free = memory_free,
        .iterations = memory_iterations,
};

int hfd_memory_store_new(const struct hf_host *host, struct hfd_store **ret_store) {
        struct memory_store *memory = calloc(1, sizeof *memory);
        int r;

        if (!memory)
                return -ENOMEM;
        memory->store = (struct hfd_store){.ops = &memory_ops, .host = host};
        memory->last = &memory->first;
        hfd_history_init(&memory->history);
        r = hf__mutex_init(&memory->mu);
        if (r != 0)
                goto fail;
        r = hf_cond_init(&memory->wake);
        if (r != 0)
                goto fail_mutex;
        r = hf__thread_start(host, "hfd-memory", memory_thread, memory, &memory->thread);
        if (r != 0)
                goto fail_cond;
        *ret_store = &memory->store;
        return 0;
fail_cond:
        pthread_cond_destroy(&memory->wake);
fail_mutex:
        pthread_mutex_destroy(&memory->mu);
fail:
        free(memory);
        return r;
}

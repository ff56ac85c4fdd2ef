/* SPDX-License-Identifier: Apache-2.0 */
#include "etcd-calls.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#define PATIENCE (60 * HF_NSEC_PER_SEC)

static _Noreturn void die(const char *what) {
        fprintf(stderr, "%s\n", what);
        exit(1);
}

static void *need(void *block) {
        if (!block)
                die("out of memory");
        return block;
}

hf_nsec call_deadline(unsigned ms) { return hf_now(hf_clock_system()) + ms * HF_NSEC_PER_MSEC; }

static void wait_until_locked(pthread_cond_t *cond, pthread_mutex_t *mu, hf_nsec limit) {
        const struct hf_clock *clock = hf_clock_system();

        if (hf_now(clock) >= limit)
                die("waited a minute in vain");
        clock->wait(clock->ctx, cond, mu, limit);
}

void call_answer_init(struct call_answer *response) {
        *response = (struct call_answer){0};
        pthread_mutex_init(&response->mu, NULL);
        if (hf_cond_init(&response->cond))
                die("cannot make a condition");
}

void call_store_answer(void *ctx, const struct hfd_store_reply *reply) {
        struct call_answer *response = ctx;

        pthread_mutex_lock(&response->mu);
        if (response->done)
                die("an operation was answered twice");
        response->done = true;
        response->error = reply->error;
        response->revision = reply->revision;
        response->cluster_id = reply->cluster_id;
        response->more = reply->more;
        response->status = reply->status;
        response->n_kvs = reply->n_kvs;
        response->kvs = need(calloc(reply->n_kvs + 1, sizeof *response->kvs));
        for (size_t i = 0; i < reply->n_kvs; i++)
                response->kvs[i] =
                        (struct call_kv){.key = need(strdup(reply->kvs[i].key)),
                                         .value = hf__buf_ref(reply->kvs[i].value),
                                         .mod_revision = reply->kvs[i].mod_revision,
                                         .create_revision = reply->kvs[i].create_revision};
        pthread_cond_broadcast(&response->cond);
        pthread_mutex_unlock(&response->mu);
}

int call_wait(struct call_answer *response) {
        hf_nsec limit = hf_now(hf_clock_system()) + PATIENCE;

        pthread_mutex_lock(&response->mu);
        while (!response->done)
                wait_until_locked(&response->cond, &response->mu, limit);
        pthread_mutex_unlock(&response->mu);
        return response->error;
}

void call_answer_done(struct call_answer *response) {
        for (size_t i = 0; i < response->n_kvs; i++) {
                free(response->kvs[i].key);
                hf__buf_unref(response->kvs[i].value);
        }
        free(response->kvs);
        pthread_cond_destroy(&response->cond);
        pthread_mutex_destroy(&response->mu);
}

const char *call_value(const struct call_answer *response, size_t i) {
        return i < response->n_kvs && response->kvs[i].value ? response->kvs[i].value->data
                                                             : "(none)";
}

/* r is what starting gave. Waits, and hands the answer out or drops it. */
static int finish(int r, struct call_answer *mine, struct call_answer *wanted) {
        if (r == 0)
                r = call_wait(mine);
        if (mine != wanted)
                call_answer_done(mine);
        return r;
}

#define CALL(response, start)                                                                      \
        struct call_answer own, *mine = (response) ? (response) : &own;                            \
        call_answer_init(mine);                                                                    \
        return finish((start), mine, (response))

int call_get(struct hfd_store *store, const char *key, struct call_answer *response) {
        CALL(response, store->ops->get(store, key, call_deadline(20000), call_store_answer, mine));
}

int call_list(struct hfd_store *store, const char *prefix, const char *start, uint64_t revision,
              size_t limit, bool keys_only, struct call_answer *response) {
        CALL(response, store->ops->list(store, prefix, start, revision, limit, keys_only,
                                        call_deadline(20000), call_store_answer, mine));
}

int call_txn(struct hfd_store *store, const struct hfd_txn *txn, struct call_answer *response) {
        CALL(response, store->ops->txn(store, txn, call_deadline(20000), call_store_answer, mine));
}

int call_compact(struct hfd_store *store, uint64_t revision) {
        struct call_answer response;

        call_answer_init(&response);
        return finish(store->ops->compact(store, revision, call_deadline(20000), call_store_answer,
                                          &response),
                      &response, NULL);
}

uint64_t call_revision(struct hfd_store *store) {
        struct call_answer response;
        uint64_t revision;

        call_answer_init(&response);
        revision =
                store->ops->revision(store, call_deadline(20000), call_store_answer, &response) ||
                                call_wait(&response)
                        ? 0
                        : response.revision;
        call_answer_done(&response);
        return revision;
}

static uint64_t write_one(struct hfd_store *store, const struct hfd_op *op) {
        struct hfd_txn txn = {.ops = op, .n_ops = 1};
        struct call_answer response;
        uint64_t revision;

        revision = call_txn(store, &txn, &response) ? 0 : response.revision;
        call_answer_done(&response);
        return revision;
}

uint64_t call_put(struct hfd_store *store, const char *key, const char *value) {
        struct hfd_op op = {.kind = HFD_PUT,
                            .key = key,
                            .value = need(hf__buf_copy(value, strlen(value)))};
        uint64_t revision = write_one(store, &op);

        hf__buf_unref(op.value);
        return revision;
}

uint64_t call_delete(struct hfd_store *store, const char *key) {
        struct hfd_op op = {.kind = HFD_DELETE, .key = key};

        return write_one(store, &op);
}

static void on_event(void *ctx, const struct hfd_watch_event *events, size_t n) {
        struct recorder *recorder = ctx;

        pthread_mutex_lock(&recorder->mu);
        if (recorder->ended)
                die("an event came after the end");
        recorder->events =
                need(realloc(recorder->events, (recorder->n + n) * sizeof *recorder->events));
        for (size_t i = 0; i < n; i++) {
                if (events[i].type == HFD_WATCH_PROGRESS)
                        continue;
                recorder->events[recorder->n++] =
                        (struct recorded){.type = events[i].type,
                                          .key = need(strdup(events[i].kv.key)),
                                          .value = hf__buf_ref(events[i].kv.value),
                                          .mod_revision = events[i].kv.mod_revision,
                                          .create_revision = events[i].kv.create_revision,
                                          .revision = events[i].revision,
                                          .batch = recorder->batches};
        }
        recorder->batches++;
        pthread_cond_broadcast(&recorder->cond);
        pthread_mutex_unlock(&recorder->mu);
}

static void on_end(void *ctx, int error, const struct hf_status *status) {
        struct recorder *recorder = ctx;

        pthread_mutex_lock(&recorder->mu);
        if (recorder->ended)
                die("a watch ended twice");
        recorder->ended = true;
        recorder->error = error;
        pthread_cond_broadcast(&recorder->cond);
        pthread_mutex_unlock(&recorder->mu);
}

int recorder_start(struct recorder *recorder, struct hfd_store *store, const char *begin,
                   const char *end, uint64_t revision) {
        static const struct hfd_watch_handler handler = {.event = on_event, .end = on_end};
        int r;

        *recorder = (struct recorder){.store = store};
        pthread_mutex_init(&recorder->mu, NULL);
        if (hf_cond_init(&recorder->cond))
                die("cannot make a condition");
        r = store->ops->watch(store, begin, end, revision, &handler, recorder, &recorder->id);
        if (r != 0)
                recorder->ended = true;
        return r;
}

void recorder_wait(struct recorder *recorder, size_t n) {
        hf_nsec limit = hf_now(hf_clock_system()) + PATIENCE;

        pthread_mutex_lock(&recorder->mu);
        while (recorder->n < n && !recorder->ended)
                wait_until_locked(&recorder->cond, &recorder->mu, limit);
        pthread_mutex_unlock(&recorder->mu);
}

int recorder_wait_end(struct recorder *recorder) {
        hf_nsec limit = hf_now(hf_clock_system()) + PATIENCE;

        pthread_mutex_lock(&recorder->mu);
        while (!recorder->ended)
                wait_until_locked(&recorder->cond, &recorder->mu, limit);
        pthread_mutex_unlock(&recorder->mu);
        return recorder->error;
}

void recorder_done(struct recorder *recorder) {
        if (recorder->store)
                recorder->store->ops->watch_cancel(recorder->store, recorder->id);
        recorder_wait_end(recorder);
        for (size_t i = 0; i < recorder->n; i++) {
                free(recorder->events[i].key);
                hf__buf_unref(recorder->events[i].value);
        }
        free(recorder->events);
        pthread_cond_destroy(&recorder->cond);
        pthread_mutex_destroy(&recorder->mu);
}

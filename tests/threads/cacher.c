/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The cacher and the memory store: threads wait for the filling, write, read and watch, and then
 * the cacher is freed while requests to the store run.
 *
 * Promised: a read sees each write that was acknowledged before it; a watch gets each change once,
 * in order, and ends once; each request gets a reply, also while the cacher is freed. No wake-up is
 * lost: whatever can go on does so without that time passes.
 */
#include <stdio.h>
#include <string.h>

#include <holdfast/cancel.h>
#include <holdfast/error.h>

#include "server/cacher/cacher.h"
#include "server/cacher/requests/store_request.h"
#include "server/cacher/sync/consistent_read.h"
#include "server/cacher/watch/watcher.h"
#include "server/resources/objects/object.h"
#include "server/resources/rows/resource_table.h"
#include "server/storage/memory/store.h"
#include "server/storage/waiter.h"
#include "threads.h"

#define DEADLINE (100 * HF_NSEC_PER_SEC)

enum { N_WRITERS = 2, N_LEFT = 3 };

static struct {
        const struct hfd_resource *resource; /* of all objects */
        struct hfd_store *store;
        struct hfd_cacher *cacher;
        struct hfd_watcher *watcher;
        hf_nsec began;
        int n_writes, n_events, n_ends, n_replies;
        uint64_t last_event; /* a revision */
} c;

static hf_nsec now(void) { return hf_now(hf_clock_system()); }

/* Everything that was begun could go on. */
static void check_time(void) { BATON_CHECK(baton_is_slow() || now() == c.began); }

/* ---- writes and reads ---- */

static uint64_t put(const char *key) {
        static const char text[] = "{\"kind\":\"ConfigMap\",\"apiVersion\":\"v1\"}";
        const struct hfd_op op = {.kind = HFD_PUT,
                                  .key = key,
                                  .value = hf__buf_copy(text, sizeof text - 1)};
        const struct hfd_txn txn = {.ops = &op, .n_ops = 1};
        struct hfd_result result = {0};
        struct hfd_waiter waiter;

        BATON_CHECK(hfd_waiter_init(&waiter, &scenario_host) == 0);
        hfd_waiter_begin(&waiter, &result);
        int r = c.store->ops->txn(c.store, &txn, now() + DEADLINE, hfd_result_fill, &result);
        BATON_CHECK(hfd_waiter_end(&waiter, &result, r) == 0);
        uint64_t revision = result.revision;
        hfd_result_deinit(&result);
        hfd_waiter_deinit(&waiter);
        hf__buf_unref(op.value);
        return revision;
}

static bool has_write(const char *path, uint64_t revision) {
        struct hfd_object *object = hfd_cacher_get(c.cacher, c.resource, path);
        bool has = object && object->revision >= revision;

        hfd_object_unref(object);
        return has;
}

struct read {
        struct hfd_consistent_read base; /* first */
        pthread_mutex_t mu;
        pthread_cond_t cond;
        bool is_ready; /* guarded by mu */
};

static void on_ready(struct hfd_consistent_read *base) {
        struct read *read = (struct read *)base;

        pthread_mutex_lock(&read->mu);
        BATON_CHECK(!read->is_ready);
        read->is_ready = true;
        pthread_cond_signal(&read->cond);
        pthread_mutex_unlock(&read->mu);
}

/* The cache must have the write of this revision, or the read goes to the store. */
static void read_after(const char *path, uint64_t revision) {
        struct read read = {.base = {.deadline = now() + DEADLINE, .ready = on_ready},
                            .mu = PTHREAD_MUTEX_INITIALIZER,
                            .cond = PTHREAD_COND_INITIALIZER};

        hfd_consistent_read_start(c.cacher, &read.base);
        pthread_mutex_lock(&read.mu);
        while (!read.is_ready)
                pthread_cond_wait(&read.cond, &read.mu);
        pthread_mutex_unlock(&read.mu);
        BATON_CHECK(read.base.outcome == 0 || read.base.outcome == HF_E_TIMEOUT);
        BATON_CHECK(read.base.outcome != 0 || has_write(path, revision));
        pthread_cond_destroy(&read.cond);
        pthread_mutex_destroy(&read.mu);
}

static void *write_and_read(void *path) {
        char key[64];

        (void)snprintf(key, sizeof key, "/registry/configmaps/%s", (const char *)path);
        for (uint64_t left = baton_random(3); left > 0; left--) {
                uint64_t revision = put(key);
                c.n_writes++;
                /* What the cache has reached, it has whole. */
                BATON_CHECK(hfd_cacher_revision(c.cacher) < revision || has_write(path, revision));
                read_after(path, revision);
        }
        check_time();
        return NULL;
}

static void *await_sync(void *ctx) {
        BATON_CHECK(hfd_cacher_wait_synced(c.cacher, hf_cancel_never(), NULL) == 0);
        check_time();
        return NULL;
}

/* ---- the watch ---- */

static bool on_events(void *ctx, struct hfd_watch_item *items, size_t n) {
        for (size_t i = 0; i < n; i++) {
                BATON_CHECK(items[i].revision > c.last_event && c.n_ends == 0);
                c.last_event = items[i].revision;
        }
        c.n_events += (int)n;
        return true;
}

static void on_end(void *ctx, int error, const struct hfd_response *response) { c.n_ends++; }

/* From the filling on. */
static void begin_watch(void) {
        static const struct hfd_watch_sink sink = {.events = on_events, .end = on_end};
        struct hfd_selector labels = {0}, fields = {0};
        const struct hfd_watcher_spec spec = {.resource = c.resource,
                                              .ns = "",
                                              .name = "",
                                              .labels = &labels,
                                              .fields = &fields,
                                              .from_now = true};
        struct hfd_response response = {0};

        BATON_CHECK(hfd_watcher_new(c.cacher, &spec, &sink, NULL, &response, &c.watcher));
        hfd_watcher_start(c.watcher);
}

/* ---- the scenario ---- */

static void on_reply(void *ctx, const struct hfd_store_reply *reply) { c.n_replies++; }

static void open_cacher(void) {
        struct hfd_cacher_config config = {.prefix = "/registry"};

        memset(&c, 0, sizeof c);
        c.resource = hfd_resource_find("", "v1", "configmaps");
        BATON_CHECK(hfd_memory_store_new(&scenario_host, &c.store) == 0);
        config.store = c.store;
        BATON_CHECK(hfd_cacher_new(&scenario_host, &config, &c.cacher) == 0);
        c.began = now();
        BATON_CHECK(hfd_cacher_start(c.cacher) == 0);
}

/* Each request that was begun is replied to, although the cacher is freed at the same time. */
static void free_cacher(void) {
        int n_started = 0;

        for (uint64_t left = baton_random(N_LEFT); left > 0; left--) {
                BATON_CHECK(hfd_store_request_revision(c.cacher, now() + DEADLINE, on_reply,
                                                       NULL) == 0);
                n_started++;
        }
        bool is_canceled = baton_random(2) == 0;
        if (is_canceled)
                hfd_watcher_cancel(c.watcher);
        c.watcher = hfd_watcher_unref(c.watcher);
        c.cacher = hfd_cacher_free(c.cacher);
        BATON_CHECK(c.n_replies == n_started && c.n_ends == 1);
        /* In a slow schedule the watch may have ended earlier, when the store's watch lagged. */
        BATON_CHECK(is_canceled || baton_is_slow() || c.n_events == c.n_writes);
        c.store->ops->free(c.store);
        check_time();
}

void cacher_life(void) {
        static char paths[N_WRITERS][8] = {"ns/a", "ns/b"};
        pthread_t writers[N_WRITERS], waiting;

        open_cacher();
        waiting = scenario_thread("waits", await_sync, NULL);
        (void)await_sync(NULL);
        begin_watch();
        for (int i = 0; i < N_WRITERS; i++)
                writers[i] = scenario_thread("writes", write_and_read, paths[i]);
        for (int i = 0; i < N_WRITERS; i++)
                (void)hf__thread_join(writers[i]);
        (void)hf__thread_join(waiting);
        free_cacher();
}

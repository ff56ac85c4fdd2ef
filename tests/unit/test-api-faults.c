/* SPDX-License-Identifier: Apache-2.0 */
/* The API over a store that misbehaves: its watch ends or is late, its history is gone, its replies are lost. */
#undef NDEBUG
#include <pthread.h>
#include <sched.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stdatomic.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#include <holdfast/client.h>

#include "base/json.h"
#include "server/api/api.h"
#include "server/api/core.h"
#include "server/api/protobuf_body.h"
#include "server/storage/store.h"

/* ---- a store in front of the memory store ---- */

struct faulty {
        struct hfd_store base;
        struct hfd_store *inner;
        struct hfd_store_ops ops;
        pthread_mutex_t mu;
        uint64_t watch_id;
        const struct hfd_watch_handler *handler;
        void *ctx;
        int end_as;                                               /* what the next end of the watch is told as; 0 = as it is */
        bool deaf;                                                /* events are dropped: the cache falls behind */
        int txn_error;                                            /* transactions are answered so, after they were done */
        uint64_t answer_revision;                                 /* the next answers to revision say this; 0 = the truth */
        struct hfd_api *replaced_amid_list, *replaced_amid_watch; /* whose history is replaced meanwhile, once; NULL = no */
        bool hold;                                                /* the next answer to revision is kept back */
        hfd_store_fn held;
        void *held_ctx;
        int n_gets, n_lists, n_revisions;
};

static void replace_once(struct faulty *f, struct hfd_api **which) {
        pthread_mutex_lock(&f->mu);
        struct hfd_api *api = *which;
        *which = NULL;
        pthread_mutex_unlock(&f->mu);
        if (api)
                hfd_history_replaced(api, "a test says so");
}

static int count(struct faulty *f, int *n) {
        pthread_mutex_lock(&f->mu);
        int was = (*n)++;
        pthread_mutex_unlock(&f->mu);
        return was;
}

static int f_get(struct hfd_store *s, const char *key, hf_nsec deadline, hfd_store_fn done, void *ctx) {
        struct faulty *f = (struct faulty *)s;
        count(f, &f->n_gets);
        return f->inner->ops->get(f->inner, key, deadline, done, ctx);
}
static int f_list(struct hfd_store *s, const char *prefix, const char *start, uint64_t revision, size_t limit, bool keys_only,
                  hf_nsec deadline, hfd_store_fn done, void *ctx) {
        struct faulty *f = (struct faulty *)s;
        count(f, &f->n_lists);
        replace_once(f, &f->replaced_amid_list);
        return f->inner->ops->list(f->inner, prefix, start, revision, limit, keys_only, deadline, done, ctx);
}
static int f_revision(struct hfd_store *s, hf_nsec deadline, hfd_store_fn done, void *ctx) {
        struct faulty *f = (struct faulty *)s;
        count(f, &f->n_revisions);
        if (f->hold) {
                f->hold = false;
                f->held = done;
                f->held_ctx = ctx;
                return 0;
        }
        if (f->answer_revision) {
                struct hfd_store_reply reply = {.revision = f->answer_revision};
                done(ctx, &reply);
                return 0;
        }
        return f->inner->ops->revision(f->inner, deadline, done, ctx);
}

struct lost {
        hfd_store_fn done;
        void *ctx;
        int error;
};
static void lose(void *ctx, const struct hfd_store_reply *reply) {
        struct lost *lost = ctx;
        struct hfd_store_reply instead = {.error = lost->error};
        lost->done(lost->ctx, &instead);
        free(lost);
}
static int f_txn(struct hfd_store *s, const struct hfd_txn *txn, hf_nsec deadline, hfd_store_fn done, void *ctx) {
        struct faulty *f = (struct faulty *)s;
        if (!f->txn_error)
                return f->inner->ops->txn(f->inner, txn, deadline, done, ctx);
        struct lost *lost = malloc(sizeof *lost);
        *lost = (struct lost){done, ctx, f->txn_error};
        return f->inner->ops->txn(f->inner, txn, deadline, lose, lost);
}

static void f_event(void *ctx, const struct hfd_watch_event *events, size_t n) {
        struct faulty *f = ctx;
        pthread_mutex_lock(&f->mu);
        bool deaf = f->deaf;
        pthread_mutex_unlock(&f->mu);
        if (!deaf)
                f->handler->event(f->ctx, events, n);
}
static void f_end(void *ctx, int error, const struct hf_status *status) {
        struct faulty *f = ctx;
        pthread_mutex_lock(&f->mu);
        int as = f->end_as ? f->end_as : error;
        f->end_as = 0;
        pthread_mutex_unlock(&f->mu);
        f->handler->end(f->ctx, as, status);
}
static const struct hfd_watch_handler f_handler = {f_event, f_end};
static int f_watch(struct hfd_store *s, const char *begin, const char *end, uint64_t revision, const struct hfd_watch_handler *handler,
                   void *ctx, uint64_t *ret_id) {
        struct faulty *f = (struct faulty *)s;
        f->handler = handler;
        f->ctx = ctx;
        int e = f->inner->ops->watch(f->inner, begin, end, revision, &f_handler, f, ret_id);
        pthread_mutex_lock(&f->mu);
        f->watch_id = *ret_id;
        pthread_mutex_unlock(&f->mu);
        replace_once(f, &f->replaced_amid_watch);
        return e;
}
static void f_watch_cancel(struct hfd_store *s, uint64_t id) {
        struct faulty *f = (struct faulty *)s;
        f->inner->ops->watch_cancel(f->inner, id);
}

static void end_watch_as(struct faulty *f, int error) {
        pthread_mutex_lock(&f->mu);
        f->end_as = error;
        uint64_t id = f->watch_id;
        pthread_mutex_unlock(&f->mu);
        f->inner->ops->watch_cancel(f->inner, id);
}

/* ---- the box ---- */

struct box {
        struct hf_host host;
        struct faulty store;
        struct hfd_api *api;
        struct hf_client *client;
        struct hf_cancel *token;
        atomic_int n_replaced;
};

static void on_replaced(void *ctx) { atomic_fetch_add(&((struct box *)ctx)->n_replaced, 1); }

static int set_up(void **state) {
        struct box *box = calloc(1, sizeof *box);

        box->host.size = sizeof box->host;
        pthread_mutex_init(&box->store.mu, NULL);
        assert_int_equal(hfd_memory_store_new(&box->host, &box->store.inner), 0);
        box->store.ops = (struct hfd_store_ops){.get = f_get,
                                                .list = f_list,
                                                .txn = f_txn,
                                                .watch = f_watch,
                                                .watch_cancel = f_watch_cancel,
                                                .revision = f_revision};
        box->store.base = (struct hfd_store){&box->store.ops, &box->host};
        struct hfd_api_config config = {.store = &box->store.base, .prefix = "/registry", .on_history_replaced = on_replaced, .ctx = box};
        assert_int_equal(hfd_api_new(&box->host, &config, &box->api), 0);
        assert_int_equal(hfd_api_start(box->api), 0);
        assert_int_equal(hf_cancel_new(NULL, hf_clock_system(), &box->token), 0);
        hf_cancel_set_deadline(box->token, hf_now(hf_clock_system()) + 60 * HF_NSEC_PER_SEC);
        assert_int_equal(hfd_api_wait_synced(box->api, box->token, NULL), 0);
        assert_int_equal(hfd_api_loopback(box->api, &box->client), 0);
        *state = box;
        return 0;
}

static int tear_down(void **state) {
        struct box *box = *state;

        hf_client_free(box->client);
        hfd_api_free(box->api);
        box->store.inner->ops->free(box->store.inner);
        pthread_mutex_destroy(&box->store.mu);
        hf_cancel_unref(box->token);
        free(box);
        return 0;
}

static const struct hf_resource workspaces = {"tenancy.holdfast.dev", "v1alpha1", "workspaces"};

static int call_status(struct box *box, enum hf_verb verb, const char *name, const char *body, struct hf_status *status) {
        struct hf_call call = {.verb = verb, .resource = workspaces, .name = name, .body = body, .n_body = body ? strlen(body) : 0};

        return hf_client_do(box->client, &call, box->token, NULL, NULL, status);
}

static int call(struct box *box, enum hf_verb verb, const char *name, const char *body) { return call_status(box, verb, name, body, NULL); }

struct seen {
        pthread_mutex_t mu;
        pthread_cond_t cond;
        size_t n;
        bool ended;
        int error;
};
static void on_event(void *ctx, const struct hf_event *event) {
        struct seen *seen = ctx;
        pthread_mutex_lock(&seen->mu);
        seen->n++;
        pthread_cond_signal(&seen->cond);
        pthread_mutex_unlock(&seen->mu);
}
static void on_end(void *ctx, int error, const struct hf_status *status) {
        struct seen *seen = ctx;
        pthread_mutex_lock(&seen->mu);
        seen->ended = true;
        seen->error = error;
        pthread_cond_signal(&seen->cond);
        pthread_mutex_unlock(&seen->mu);
}
static void watch(struct box *box, struct seen *seen) {
        struct hf_watch_spec spec = {.resource = workspaces};
        *seen = (struct seen){PTHREAD_MUTEX_INITIALIZER, PTHREAD_COND_INITIALIZER, 0, false, 0};
        assert_int_equal(hf_client_watch(box->client, &spec, on_event, on_end, seen, NULL), 0);
}
static void await(struct seen *seen, size_t n, bool ended) {
        pthread_mutex_lock(&seen->mu);
        while (seen->n < n || seen->ended < ended)
                pthread_cond_wait(&seen->cond, &seen->mu);
        pthread_mutex_unlock(&seen->mu);
}

static void test_broken_watch_goes_on(void **state) {
        struct box *box = *state;
        struct seen seen;

        assert_int_equal(call(box, HF_VERB_CREATE, NULL, "{\"metadata\":{\"name\":\"a\"}}"), 0);
        assert_int_equal(call(box, HF_VERB_GET, "a", NULL), 0);
        watch(box, &seen);
        await(&seen, 1, false);
        end_watch_as(&box->store, HF_E_UNAVAILABLE);
        assert_int_equal(call(box, HF_VERB_CREATE, NULL, "{\"metadata\":{\"name\":\"b\"}}"), 0);
        await(&seen, 2, false); /* what was written while nobody watched comes, too */
        assert_false(seen.ended);
        hfd_api_end_watches(box->api);
        await(&seen, 2, true);
        assert_int_equal(seen.error, 0);
}

static void test_lost_history_closes_watches(void **state) {
        struct box *box = *state;
        struct seen seen;

        assert_int_equal(call(box, HF_VERB_CREATE, NULL, "{\"metadata\":{\"name\":\"a\"}}"), 0);
        assert_int_equal(call(box, HF_VERB_GET, "a", NULL), 0);
        watch(box, &seen);
        await(&seen, 1, false);
        int n_lists = box->store.n_lists;
        end_watch_as(&box->store, HF_E_GONE);
        await(&seen, 1, true);
        assert_int_equal(seen.error, HF_E_GONE);
        assert_true(box->store.n_lists > n_lists);
        assert_int_equal(call(box, HF_VERB_CREATE, NULL, "{\"metadata\":{\"name\":\"b\"}}"), 0);
        assert_int_equal(call(box, HF_VERB_GET, "b", NULL), 0);
        struct seen again;
        watch(box, &again);
        await(&again, 2, false);
        hfd_api_end_watches(box->api);
        await(&again, 2, true);
}

/* A cache that is behind is never believed: not for a read, not for a refusal of a write. */
static void test_late_cache(void **state) {
        struct box *box = *state;

        assert_int_equal(call(box, HF_VERB_CREATE, NULL, "{\"metadata\":{\"name\":\"old\"}}"), 0);
        assert_int_equal(call(box, HF_VERB_GET, "old", NULL), 0);
        pthread_mutex_lock(&box->store.mu);
        box->store.deaf = true;
        pthread_mutex_unlock(&box->store.mu);
        assert_int_equal(call(box, HF_VERB_CREATE, NULL, "{\"metadata\":{\"name\":\"new\"}}"), 0);
        int n_gets = box->store.n_gets;
        for (int i = 0; i < 3; i++)
                assert_int_equal(call(box, HF_VERB_GET, "new", NULL), 0);
        assert_int_equal(box->store.n_gets, n_gets + 3);
        for (int i = 0; i < 3; i++)
                assert_int_equal(call(box, HF_VERB_GET, "new", NULL), 0);
        /* After three late ones in a row the store is asked at once. */
        assert_int_equal(box->store.n_revisions, 1 + 3);
        assert_int_equal(call(box, HF_VERB_UPDATE, "new", "{\"metadata\":{\"name\":\"new\"},\"spec\":{\"n\":1}}"), 0);
        assert_int_equal(call(box, HF_VERB_DELETE, "new", NULL), 0);
        assert_int_equal(call(box, HF_VERB_DELETE, "new", NULL), HF_E_NOT_FOUND);
        assert_int_equal(call(box, HF_VERB_LIST, NULL, NULL), 0);
}

static void test_lost_reply_is_unknown(void **state) {
        struct box *box = *state;
        struct hf_status status;

        box->store.txn_error = HF_E_TIMEOUT;
        assert_int_equal(call_status(box, HF_VERB_CREATE, NULL, "{\"metadata\":{\"name\":\"a\"}}", &status), HF_E_TIMEOUT);
        assert_int_equal(status.http_code, 504);
        assert_string_equal(status.reason, "Timeout");
        box->store.txn_error = HF_E_UNAVAILABLE;
        assert_int_equal(call_status(box, HF_VERB_CREATE, NULL, "{\"metadata\":{\"name\":\"b\"}}", &status), HF_E_UNAVAILABLE);
        assert_int_equal(status.http_code, 503);
        assert_int_equal(status.retry_after_s, 1);
        box->store.txn_error = 0;
        assert_int_equal(call(box, HF_VERB_GET, "a", NULL), 0); /* it was done after all */
}

/* Free while calls are under way: each is answered. */
static void test_free_with_calls(void **state) {
        struct box *box = *state;
        struct seen seen;

        watch(box, &seen);
        assert_int_equal(call(box, HF_VERB_CREATE, NULL, "{\"metadata\":{\"name\":\"a\"}}"), 0);
        await(&seen, 1, false);
        hf_client_free(box->client);
        box->client = NULL;
        assert_true(seen.ended);
        assert_int_equal(seen.error, HF_E_CANCELED);
        assert_int_equal(hfd_api_loopback(box->api, &box->client), 0);
}

static void test_protobuf_body(void **state) {
        /* k8s\0, Unknown{typeMeta{v1, Namespace}, raw: Namespace{metadata{name: a}}} */
        static const char body[] = "k8s\0\x0a\x0f\x0a\x02v1\x12\x09Namespace\x12\x05\x0a\x03\x0a\x01"
                                   "a";
        static const struct hfd_resource *ns;
        struct hf__json *json = NULL;
        size_t n = sizeof body - 1;

        ns = hfd_resource_namespaces();
        assert_int_equal(hfd_protobuf_to_json(ns, false, body, n, &json), 0);
        assert_string_equal(hf__json_string(json, "metadata.name"), "a");
        assert_string_equal(hf__json_string(json, "kind"), "Namespace");
        hf__json_free(json);
        for (size_t cut = 0; cut < n; cut++) { /* cut short anywhere: refused, or a smaller message; never a read beyond */
                char *copy = malloc(cut ? cut : 1);
                memcpy(copy, body, cut);
                json = NULL;
                if (!hfd_protobuf_to_json(ns, false, copy, cut, &json))
                        hf__json_free(json);
                free(copy);
        }
}

/* ---- the history behind the cache ---- */

static void put_raw(struct box *box, const char *key, const char *text);

static void test_new_epoch(void **state) {
        struct box *box = *state;
        struct seen seen, again;

        assert_int_equal(call(box, HF_VERB_CREATE, NULL, "{\"metadata\":{\"name\":\"a\"}}"), 0);
        watch(box, &seen);
        await(&seen, 1, false);
        put_raw(box, "/registry.holdfast/epoch", "after the restore");
        await(&seen, 1, true);
        assert_int_equal(seen.error, HF_E_GONE);
        assert_int_equal(atomic_load(&box->n_replaced), 1);
        assert_int_equal(call(box, HF_VERB_GET, "a", NULL), 0);
        watch(box, &again);
        await(&again, 1, false);
        hfd_api_end_watches(box->api);
        await(&again, 1, true);
}

/* A revision below one that was known before the question was sent: the backup speaks. */
static void test_revision_goes_back(void **state) {
        struct box *box = *state;
        struct seen seen;

        for (int i = 0; i < 3; i++) {
                char body[64];
                (void)snprintf(body, sizeof body, "{\"metadata\":{\"name\":\"a%d\"}}", i);
                assert_int_equal(call(box, HF_VERB_CREATE, NULL, body), 0);
        }
        watch(box, &seen);
        await(&seen, 3, false);
        box->store.answer_revision = 1;
        (void)call(box, HF_VERB_GET, "a0", NULL);
        await(&seen, 3, true);
        box->store.answer_revision = 0;
        assert_int_equal(seen.error, HF_E_GONE);
        assert_int_equal(atomic_load(&box->n_replaced), 1);
        assert_int_equal(call(box, HF_VERB_GET, "a0", NULL), 0);
}

static void ignore_reply(void *ctx, const struct hfd_store_reply *reply) { atomic_fetch_add((atomic_int *)ctx, 1); }

/* A reply that was under way since before the replacement: it is no second one. */
static void test_late_reply_of_the_old_history(void **state) {
        struct box *box = *state;
        struct seen seen, again;
        atomic_int n_replies = 0;

        assert_int_equal(call(box, HF_VERB_CREATE, NULL, "{\"metadata\":{\"name\":\"a\"}}"), 0);
        watch(box, &seen);
        await(&seen, 1, false);
        box->store.hold = true;
        assert_int_equal(hfd_store_revision(box->api, hf_now(hf_clock_system()) + 60 * HF_NSEC_PER_SEC, ignore_reply, &n_replies), 0);
        put_raw(box, "/registry.holdfast/epoch", "after the restore");
        await(&seen, 1, true);
        watch(box, &again);
        await(&again, 1, false); /* the cache is filled again */
        assert_int_equal(call(box, HF_VERB_CREATE, NULL, "{\"metadata\":{\"name\":\"b\"}}"), 0);
        struct hfd_store_reply reply = {.revision = 1};
        box->store.held(box->store.held_ctx, &reply);
        assert_int_equal(atomic_load(&n_replies), 1);
        assert_int_equal(atomic_load(&box->n_replaced), 1);
        await(&again, 2, false);
        assert_false(again.ended);
        hfd_api_end_watches(box->api);
        await(&again, 2, true);
}

static int n_lists_of(struct box *box) {
        pthread_mutex_lock(&box->store.mu);
        int n = box->store.n_lists;
        pthread_mutex_unlock(&box->store.mu);
        return n;
}

/* What the cache is being filled with is of the old history; or its watch has just been begun there and has no id yet. */
static void test_replaced_while_the_cache_is_filled(void **state) {
        struct box *box = *state;
        struct seen seen[3];

        assert_int_equal(call(box, HF_VERB_CREATE, NULL, "{\"metadata\":{\"name\":\"a\"}}"), 0);
        watch(box, &seen[0]);
        for (int amid_watch = 0; amid_watch < 2; amid_watch++) {
                await(&seen[amid_watch], 1, false);
                pthread_mutex_lock(&box->store.mu);
                *(amid_watch ? &box->store.replaced_amid_watch : &box->store.replaced_amid_list) = box->api;
                int n_lists = box->store.n_lists;
                pthread_mutex_unlock(&box->store.mu);
                end_watch_as(&box->store, HF_E_GONE);
                await(&seen[amid_watch], 1, true);
                while (n_lists_of(box) < n_lists + 2 || hfd_history_settles(box->api))
                        sched_yield();
                assert_int_equal(atomic_load(&box->n_replaced), 1 + amid_watch);
                assert_int_equal(call(box, HF_VERB_GET, "a", NULL), 0);
                watch(box, &seen[amid_watch + 1]);
        }
        await(&seen[2], 1, false);
        hfd_api_end_watches(box->api);
        await(&seen[2], 1, true);
}

/* An event that the store's watch lost: the audit finds the difference and the cache is filled anew. */
static void test_audit_finds_a_lost_event(void **state) {
        struct box *box = *state;
        struct seen seen;

        assert_int_equal(call(box, HF_VERB_CREATE, NULL, "{\"metadata\":{\"name\":\"a\"}}"), 0);
        assert_int_equal(call(box, HF_VERB_GET, "a", NULL), 0);
        watch(box, &seen);
        await(&seen, 1, false);
        pthread_mutex_lock(&box->store.mu);
        box->store.deaf = true;
        pthread_mutex_unlock(&box->store.mu);
        assert_int_equal(call(box, HF_VERB_CREATE, NULL, "{\"metadata\":{\"name\":\"lost\"}}"), 0);
        assert_int_equal(call(box, HF_VERB_GET, "lost", NULL), 0); /* late: from the store */
        pthread_mutex_lock(&box->store.mu);
        box->store.deaf = false;
        pthread_mutex_unlock(&box->store.mu);
        assert_int_equal(call(box, HF_VERB_CREATE, NULL, "{\"metadata\":{\"name\":\"b\"}}"), 0);
        await(&seen, 2, false);
        assert_false(seen.ended);
        hfd_audit_run(box->api);
        await(&seen, 2, true);
        assert_int_equal(seen.error, HF_E_GONE);
        assert_int_equal(atomic_load(&box->n_replaced), 0);
        struct seen again;
        watch(box, &again);
        await(&again, 3, false);
        hfd_api_end_watches(box->api);
        await(&again, 3, true);
}

struct written {
        pthread_mutex_t mu;
        pthread_cond_t cond;
        bool done;
};
static void on_put(void *ctx, const struct hfd_store_reply *reply) {
        struct written *written = ctx;
        assert_int_equal(reply->error, 0);
        pthread_mutex_lock(&written->mu);
        written->done = true;
        pthread_cond_signal(&written->cond);
        pthread_mutex_unlock(&written->mu);
}
static void put_raw(struct box *box, const char *key, const char *text) {
        struct written written = {PTHREAD_MUTEX_INITIALIZER, PTHREAD_COND_INITIALIZER, false};
        struct hf__buf *value = hf__buf_copy(text, strlen(text));
        struct hfd_op op = {.kind = HFD_PUT, .key = key, .value = value};
        struct hfd_txn txn = {.ops = &op, .n_ops = 1};

        assert_int_equal(box->store.inner->ops->txn(box->store.inner, &txn, hf_now(hf_clock_system()) + 10 * HF_NSEC_PER_SEC, on_put,
                                                    &written),
                         0);
        pthread_mutex_lock(&written.mu);
        while (!written.done)
                pthread_cond_wait(&written.cond, &written.mu);
        pthread_mutex_unlock(&written.mu);
        hf__buf_unref(value);
}

struct found {
        pthread_mutex_t mu;
        pthread_cond_t cond;
        bool done;
        uint64_t revision;
};
static void on_found(void *ctx, const struct hfd_store_reply *reply) {
        struct found *found = ctx;
        pthread_mutex_lock(&found->mu);
        found->done = true;
        found->revision = reply->n_kvs ? reply->kvs[0].mod_revision : 0;
        pthread_cond_signal(&found->cond);
        pthread_mutex_unlock(&found->mu);
}

static uint64_t revision_of(struct box *box, const char *key) {
        struct found found = {PTHREAD_MUTEX_INITIALIZER, PTHREAD_COND_INITIALIZER, false, 0};
        hf_nsec until = hf_now(hf_clock_system()) + 10 * HF_NSEC_PER_SEC;

        assert_int_equal(box->store.inner->ops->get(box->store.inner, key, until, on_found, &found), 0);
        pthread_mutex_lock(&found.mu);
        while (!found.done)
                pthread_cond_wait(&found.cond, &found.mu);
        pthread_mutex_unlock(&found.mu);
        return found.revision;
}

/* The term is also in the backup, and nothing has been noticed yet: the leader's first write is refused by the epoch. */
static void test_a_leaders_write_compares_the_epoch(void **state) {
        struct box *box = *state;
        struct hf_fence fence = {.ns = "kube-system", .name = "l", .identity = "me"};
        struct hf_call write = {.verb = HF_VERB_CREATE, .resource = workspaces, .fence = &fence};
        static const char a[] = "{\"metadata\":{\"name\":\"a\"}}", b[] = "{\"metadata\":{\"name\":\"b\"}}";
        int r;

        put_raw(box, "/registry.holdfast/terms/kube-system/l", "me\n-");
        fence.term = revision_of(box, "/registry.holdfast/terms/kube-system/l");
        write.body = a;
        write.n_body = strlen(a);
        assert_int_equal(hf_client_do(box->client, &write, box->token, NULL, NULL, NULL), 0);
        pthread_mutex_lock(&box->store.mu);
        box->store.deaf = true;
        pthread_mutex_unlock(&box->store.mu);
        put_raw(box, "/registry.holdfast/epoch", "restored");
        write.body = b;
        assert_int_equal(hf_client_do(box->client, &write, box->token, NULL, NULL, NULL), HF_E_STALE_TERM);
        assert_int_equal(atomic_load(&box->n_replaced), 1);
        assert_int_equal(revision_of(box, "/registry/tenancy.holdfast.dev/workspaces/b"), 0);
        pthread_mutex_lock(&box->store.mu);
        box->store.deaf = false;
        pthread_mutex_unlock(&box->store.mu);
        /* When the cache is of the new history the fence alone decides again. */
        do
                r = hf_client_do(box->client, &write, box->token, NULL, NULL, NULL);
        while (r == HF_E_STALE_TERM);
        assert_int_equal(r, 0);
}

/* ---- namespaces and collections ---- */

static const struct hf_resource configmaps = {"", "v1", "configmaps"};
static const struct hf_resource namespaces = {"", "v1", "namespaces"};

static int create(struct box *box, const struct hf_resource *resource, const char *ns, const char *body, struct hf_status *status) {
        struct hf_call make = {.verb = HF_VERB_CREATE, .resource = *resource, .ns = ns, .body = body, .n_body = strlen(body)};

        return hf_client_do(box->client, &make, box->token, NULL, NULL, status);
}

static void make_deaf(struct box *box) {
        pthread_mutex_lock(&box->store.mu);
        box->store.deaf = true;
        pthread_mutex_unlock(&box->store.mu);
}

#define OPEN_NS    "{\"kind\":\"Namespace\",\"apiVersion\":\"v1\",\"metadata\":{\"name\":\"n\"}}"
#define LABELED_NS "{\"kind\":\"Namespace\",\"apiVersion\":\"v1\",\"metadata\":{\"name\":\"n\",\"labels\":{\"deletionTimestamp\":\"no\"}}}"
#define ENDING_NS                                                                                                                          \
        "{\"kind\":\"Namespace\",\"apiVersion\":\"v1\",\"metadata\":{\"name\":\"n\",\"deletionTimestamp\":\"2026-01-02T03:04:05Z\"}}"

/*
 * Another instance changes a namespace, and this one's cache does not hear of it. What the cache says of it is believed neither
 * for a creation nor for a refusal; and what the failed transaction read is enough, no further look is taken.
 */
static void test_stale_namespace(void **state) {
        struct box *box = *state;
        struct hf_status status;

        put_raw(box, "/registry/namespaces/n", OPEN_NS);
        while (create(box, &configmaps, "n", "{\"metadata\":{\"name\":\"a\"}}", NULL) == HF_E_NOT_FOUND)
                ;
        struct hf_call get = {.verb = HF_VERB_GET, .resource = namespaces, .name = "n"};
        assert_int_equal(hf_client_do(box->client, &get, box->token, NULL, NULL, NULL), 0); /* the cache has it */
        make_deaf(box);
        put_raw(box, "/registry/namespaces/n", ENDING_NS);
        int n_gets = box->store.n_gets;
        assert_int_equal(create(box, &configmaps, "n", "{\"metadata\":{\"name\":\"b\"}}", &status), HF_E_FORBIDDEN);
        assert_int_equal(box->store.n_gets, n_gets);
        assert_int_equal(revision_of(box, "/registry/configmaps/n/b"), 0);
        put_raw(box, "/registry/namespaces/n", LABELED_NS);
        assert_int_equal(create(box, &configmaps, "n", "{\"metadata\":{\"name\":\"b\"}}", &status), 0);
        assert_int_equal(box->store.n_gets, n_gets);
}

/* The other way round: the cache's last word is that it ends, while it is there anew. */
static void test_namespace_made_anew(void **state) {
        struct box *box = *state;
        struct hf_call get = {.verb = HF_VERB_GET, .resource = namespaces, .name = "n"};

        put_raw(box, "/registry/namespaces/n", ENDING_NS);
        assert_int_equal(hf_client_do(box->client, &get, box->token, NULL, NULL, NULL), 0);
        assert_int_equal(create(box, &configmaps, "n", "{\"metadata\":{\"name\":\"a\"}}", NULL), HF_E_FORBIDDEN);
        make_deaf(box);
        put_raw(box, "/registry/namespaces/n", OPEN_NS);
        assert_int_equal(create(box, &configmaps, "n", "{\"metadata\":{\"name\":\"a\"}}", NULL), 0);
}

/* The replies of some deletes are lost: the answer says that not all is known, and the rest is there for the next call. */
static void test_collection_over_a_bad_store(void **state) {
        struct box *box = *state;
        struct hf_status status;
        struct hf_call sweep = {.verb = HF_VERB_DELETE_COLLECTION, .resource = configmaps, .ns = "default"};
        char body[80];

        for (int i = 0; i < 100; i++) {
                (void)snprintf(body, sizeof body, "{\"metadata\":{\"name\":\"w%02d\"}}", i);
                assert_int_equal(create(box, &configmaps, "default", body, NULL), 0);
        }
        box->store.txn_error = HF_E_TIMEOUT;
        assert_int_equal(hf_client_do(box->client, &sweep, box->token, NULL, NULL, &status), HF_E_TIMEOUT);
        assert_int_equal(status.http_code, 504);
        assert_true(revision_of(box, "/registry/configmaps/default/w99") > 0); /* it ended early */
        box->store.txn_error = 0;
        sweep.deadline = hf_now(hf_clock_system()) - 1;
        assert_int_equal(hf_client_do(box->client, &sweep, box->token, NULL, NULL, &status), HF_E_TIMEOUT);
        sweep.deadline = 0;
        assert_int_equal(hf_client_do(box->client, &sweep, box->token, NULL, NULL, &status), 0);
        assert_int_equal(revision_of(box, "/registry/configmaps/default/w99"), 0);
}

#define TEST(name) cmocka_unit_test_setup_teardown(name, set_up, tear_down)

int main(void) {
        const struct CMUnitTest tests[] = {
                TEST(test_broken_watch_goes_on),
                TEST(test_lost_history_closes_watches),
                TEST(test_late_cache),
                TEST(test_lost_reply_is_unknown),
                TEST(test_new_epoch),
                TEST(test_late_reply_of_the_old_history),
                TEST(test_replaced_while_the_cache_is_filled),
                TEST(test_a_leaders_write_compares_the_epoch),
                TEST(test_revision_goes_back),
                TEST(test_audit_finds_a_lost_event),
                TEST(test_stale_namespace),
                TEST(test_namespace_made_anew),
                TEST(test_collection_over_a_bad_store),
                TEST(test_free_with_calls),
                cmocka_unit_test(test_protobuf_body),
        };
        return cmocka_run_group_tests(tests, NULL, NULL);
}

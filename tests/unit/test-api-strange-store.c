/* SPDX-License-Identifier: Apache-2.0 */
/* The API over a store whose content is not what it left there: a restored backup, and values that
 * are no objects. */
#undef NDEBUG
#include <assert.h>
#include <sched.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include "api_box.h"

/* ---- watches ---- */

struct seen {
        pthread_mutex_t mu;
        pthread_cond_t cond;
        size_t n;
        enum hf_event_type last;
        bool ended;
        int error;
};

static void on_event(void *ctx, const struct hf_event *event) {
        struct seen *seen = ctx;

        pthread_mutex_lock(&seen->mu);
        seen->n++;
        seen->last = event->type;
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

static void watch(struct box *box, struct seen *seen, const char *revision) {
        struct hf_watch_spec spec = {.resource = workspaces, .resource_version = revision};

        *seen = (struct seen){.mu = PTHREAD_MUTEX_INITIALIZER};
        assert_int_equal(hf_cond_init(&seen->cond), 0);
        assert_int_equal(hf_client_watch(box->client, &spec, on_event, on_end, seen, NULL), 0);
}

/* Until n events have come, or with n = 0 the end. */
static void await(struct seen *seen, size_t n) {
        hf_nsec deadline = hf_now(hf_clock_system()) + 30 * HF_NSEC_PER_SEC;

        pthread_mutex_lock(&seen->mu);
        while (n ? seen->n < n : !seen->ended)
                assert_int_equal(hf_clock_system()->wait(NULL, &seen->cond, &seen->mu, deadline),
                                 0);
        pthread_mutex_unlock(&seen->mu);
}

/* A client that has seen more of the old history than there is of the new one. */
static void test_watch_from_a_lost_history(void **state) {
        struct box *box = *state;
        static struct seen lost;

        watch(box, &lost, "1000000");
        await(&lost, 0);
        assert_int_equal(lost.error, HF_E_GONE);
        assert_int_equal(lost.n, 0);
}

/* What the store has reached, and the cache perhaps not yet, is good. */
static void test_watch_from_an_own_write(void **state) {
        struct box *box = *state;
        static struct seen seen[50];
        char body[80];

        for (int i = 0; i < 50; i++) {
                (void)snprintf(body, sizeof body, "{\"metadata\":{\"name\":\"w%02d\"}}", i);
                assert_int_equal(do_call(box, HF_VERB_CREATE, workspaces, NULL, NULL, NULL, body),
                                 0);
                watch(box, &seen[i], text_at("metadata.resourceVersion"));
        }
        assert_int_equal(do_call(box, HF_VERB_CREATE, workspaces, NULL, NULL, NULL,
                                 "{\"metadata\":{\"name\":\"x\"}}"),
                         0);
        for (size_t i = 0; i < 50; i++)
                await(&seen[i], 50 - i);
        hfd_cacher_end_watches(box->cacher);
        for (size_t i = 0; i < 50; i++) {
                await(&seen[i], 0);
                assert_int_equal(seen[i].error, 0);
                assert_int_equal(seen[i].n, 50 - i);
        }
}

struct late {
        struct hfd_consistent_read reader; /* first: ready is given this */
        pthread_mutex_t mu;
        pthread_cond_t cond;
        bool ready;
};

static void on_ready(struct hfd_consistent_read *reader) {
        struct late *late = (struct late *)reader;

        pthread_mutex_lock(&late->mu);
        late->ready = true;
        pthread_cond_signal(&late->cond);
        pthread_mutex_unlock(&late->mu);
}

/* Lists that ask for a revision of the lost history come in vain; the cache is not late for that,
 * and reads stay with it. */
static void test_reads_of_a_lost_history(void **state) {
        struct box *box = *state;

        for (int i = 0; i < 5; i++) {
                struct late late = {.reader = {.ready = on_ready, .deadline = HF_NSEC_NEVER},
                                    .mu = PTHREAD_MUTEX_INITIALIZER,
                                    .cond = PTHREAD_COND_INITIALIZER};
                hfd_consistent_read_after(box->cacher, &late.reader, 1000000, HF_NSEC_PER_MSEC);
                pthread_mutex_lock(&late.mu);
                while (!late.ready)
                        pthread_cond_wait(&late.cond, &late.mu);
                pthread_mutex_unlock(&late.mu);
                assert_int_equal(late.reader.outcome, HF_E_TIMEOUT);
        }
        pthread_mutex_lock(&box->cacher->mu);
        assert_int_equal(box->cacher->reads.direct_until, 0);
        pthread_mutex_unlock(&box->cacher->mu);
}

/* ---- what is no object ---- */

struct written {
        pthread_mutex_t mu;
        pthread_cond_t cond;
        bool done;
        int error;
};

static void on_written(void *ctx, const struct hfd_store_reply *reply) {
        struct written *w = ctx;

        pthread_mutex_lock(&w->mu);
        w->done = true;
        w->error = reply->error;
        pthread_cond_signal(&w->cond);
        pthread_mutex_unlock(&w->mu);
}

/* text NULL deletes. */
static void write_raw(struct box *box, const char *key, const char *text) {
        struct written w = {PTHREAD_MUTEX_INITIALIZER, PTHREAD_COND_INITIALIZER, false, 0};
        struct hfd_op op = {.kind = text ? HFD_PUT : HFD_DELETE,
                            .key = key,
                            .value = text ? hf__buf_copy(text, strlen(text)) : NULL};
        struct hfd_txn txn = {.ops = &op, .n_ops = 1};

        assert_int_equal(box->store->ops->txn(box->store, &txn,
                                              hf_now(hf_clock_system()) + 30 * HF_NSEC_PER_SEC,
                                              on_written, &w),
                         0);
        pthread_mutex_lock(&w.mu);
        while (!w.done)
                pthread_cond_wait(&w.cond, &w.mu);
        pthread_mutex_unlock(&w.mu);
        assert_int_equal(w.error, 0);
        hf__buf_unref(op.value);
}

static void audit(struct box *box) {
        bool over = false;

        hfd_store_identity_audit(box->cacher);
        while (!over) {
                pthread_mutex_lock(&box->cacher->mu);
                over = !box->cacher->identity.audit_running;
                pthread_mutex_unlock(&box->cacher->mu);
                sched_yield();
        }
}

/* Values that others have left among the objects cost nobody his watch, however often the audit
 * comes by. */
static void test_audit_expects_what_is_no_object(void **state) {
        struct box *box = *state;
        static struct seen before, after;

        write_raw(box, "/registry/tenancy.holdfast.dev/workspaces/bad", "no object");
        assert_int_equal(do_call(box, HF_VERB_CREATE, workspaces, NULL, NULL, NULL,
                                 "{\"metadata\":{\"name\":\"good\"}}"),
                         0);
        watch(box, &before, NULL);
        await(&before, 1);
        audit(box);
        assert_false(before.ended);
        /* A difference for once: the list that follows finds the value, too. */
        pthread_mutex_lock(&box->cacher->mu);
        hfd_object_unref(hfd_object_tree_remove(&box->cacher->trees[hfd_resource_index(
                                                        hfd_resource_find(workspaces.group,
                                                                          workspaces.version,
                                                                          workspaces.plural))],
                                                "good"));
        pthread_mutex_unlock(&box->cacher->mu);
        audit(box);
        await(&before, 0);
        assert_int_equal(before.error, HF_E_GONE);
        watch(box, &after, NULL);
        await(&after, 1);
        audit(box);
        write_raw(box, "/registry/tenancy.holdfast.dev/workspaces/bad", NULL);
        assert_int_equal(do_call(box, HF_VERB_CREATE, workspaces, NULL, NULL, NULL,
                                 "{\"metadata\":{\"name\":\"next\"}}"),
                         0);
        await(&after, 2);
        audit(box);
        assert_false(after.ended);
        hfd_cacher_end_watches(box->cacher);
        await(&after, 0);
}

/* An object that was overwritten with what is none is gone, until it is one again. */
static void test_object_becomes_none(void **state) {
        struct box *box = *state;
        static struct seen seen;

        assert_int_equal(do_call(box, HF_VERB_CREATE, workspaces, NULL, NULL, NULL,
                                 "{\"metadata\":{\"name\":\"a\"}}"),
                         0);
        watch(box, &seen, NULL);
        await(&seen, 1);
        write_raw(box, "/registry/tenancy.holdfast.dev/workspaces/a", "no object");
        await(&seen, 2);
        assert_int_equal(seen.last, HF_EVENT_DELETED);
        audit(box);
        write_raw(box, "/registry/tenancy.holdfast.dev/workspaces/a",
                  "{\"metadata\":{\"name\":\"a\"}}");
        await(&seen, 3);
        assert_int_equal(seen.last, HF_EVENT_ADDED);
        assert_int_equal(box->cacher->unreadable.n, 0);
        audit(box);
        assert_false(seen.ended);
        hfd_cacher_end_watches(box->cacher);
        await(&seen, 0);
}

/* A page of the store that has one less than was asked for is not the last for that. */
static void test_page_with_what_is_no_object(void **state) {
        struct box *box = *state;
        char query[160];

        assert_int_equal(do_call(box, HF_VERB_CREATE, workspaces, NULL, NULL, NULL,
                                 "{\"metadata\":{\"name\":\"c\"}}"),
                         0);
        write_raw(box, "/registry/tenancy.holdfast.dev/workspaces/b", "no object");
        assert_int_equal(do_call(box, HF_VERB_CREATE, workspaces, NULL, NULL, NULL,
                                 "{\"metadata\":{\"name\":\"a\"}}"),
                         0);
        (void)snprintf(query, sizeof query, "resourceVersionMatch=Exact&limit=1&resourceVersion=%s",
                       text_at("metadata.resourceVersion"));
        assert_int_equal(do_call(box, HF_VERB_CREATE, workspaces, NULL, NULL, NULL,
                                 "{\"metadata\":{\"name\":\"later\"}}"),
                         0);
        assert_int_equal(do_call(box, HF_VERB_GET, workspaces, NULL, "later", NULL, NULL),
                         0); /* the cache has passed that revision */
        assert_int_equal(do_call(box, HF_VERB_LIST, workspaces, NULL, NULL, query, NULL), 0);
        (void)snprintf(query, sizeof query, "limit=1&continue=%s", text_at("metadata.continue"));
        assert_non_null(strstr(last.body, "\"name\":\"a\""));
        assert_string_not_equal(text_at("metadata.continue"), "");
        assert_int_equal(do_call(box, HF_VERB_LIST, workspaces, NULL, NULL, query, NULL), 0);
        assert_non_null(strstr(last.body, "\"name\":\"c\""));
        assert_string_equal(text_at("metadata.continue"), "");
}

#define TEST(name) cmocka_unit_test_setup_teardown(name, set_up, tear_down)

int main(void) {
        const struct CMUnitTest tests[] = {
                TEST(test_watch_from_a_lost_history), TEST(test_watch_from_an_own_write),
                TEST(test_reads_of_a_lost_history),   TEST(test_audit_expects_what_is_no_object),
                TEST(test_object_becomes_none),       TEST(test_page_with_what_is_no_object),
        };
        int failed = cmocka_run_group_tests(tests, NULL, NULL);
        free(last.body);
        return failed;
}

/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Changes of the store's history under the cache: a restored backup, at rest and during requests,
 * and a lost event.
 */
#undef NDEBUG
#include <pthread.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stdatomic.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <string.h>

#include <cmocka.h>

#include "faulty_api_fixture.h"
#include "patience.h"
#include "server/cacher/requests/store_identity.h"
#include "server/cacher/requests/store_request.h"
#include "server/cacher/sync/cache_audit.h"
#include "store_client.h"
#include "watched_identity.h"

/* A watch of three workspaces, a0 to a2. */
static struct client_watch *watch_three(struct faulty_api_fixture *f) {
        faulty_api_fixture_create(f, "a0");
        faulty_api_fixture_create(f, "a1");
        faulty_api_fixture_create(f, "a2");
        struct client_watch *seen = faulty_api_fixture_watch(f);
        client_watch_await(seen, 3);
        return seen;
}

static void test_a_new_epoch_ends_watches_and_refills_the_cache(void **state) {
        struct faulty_api_fixture *f = *state;
        struct client_watch *seen, *again;

        faulty_api_fixture_create(f, "a");
        seen = faulty_api_fixture_watch(f);
        client_watch_await(seen, 1);
        faulty_api_fixture_put(f, "/registry.holdfast/epoch", "after the restore");
        client_watch_await(seen, 1);
        assert_int_equal(client_watch_await_end(seen), HF_E_GONE);
        assert_int_equal(atomic_load(&f->n_replaced), 1);
        assert_int_equal(faulty_api_fixture_request(f, HF_VERB_GET, "a", NULL, NULL), 0);
        again = faulty_api_fixture_watch(f);
        client_watch_await(again, 1);
        (void)faulty_api_fixture_end_watch(f, again, 1);
        client_watch_free(seen);
        client_watch_free(again);
}

/*
 * A revision lower than one that was known before the request was sent means that a backup was
 * restored.
 */
static void test_a_revision_that_goes_back_is_noticed(void **state) {
        struct faulty_api_fixture *f = *state;
        struct client_watch *seen;

        seen = watch_three(f);
        f->store.reported_revision = 1;
        (void)faulty_api_fixture_request(f, HF_VERB_GET, "a0", NULL, NULL);
        client_watch_await(seen, 3);
        (void)client_watch_await_end(seen);
        f->store.reported_revision = 0;
        assert_int_equal(seen->error, HF_E_GONE);
        assert_int_equal(atomic_load(&f->n_replaced), 1);
        assert_int_equal(faulty_api_fixture_request(f, HF_VERB_GET, "a0", NULL, NULL), 0);
        client_watch_free(seen);
}

static void ignore_reply(void *ctx, const struct hfd_store_reply *reply) {
        atomic_fetch_add((atomic_int *)ctx, 1);
}

/* A reply to a request from before the replacement does not indicate a second replacement. */
static void test_a_late_reply_of_the_old_history_is_ignored(void **state) {
        struct faulty_api_fixture *f = *state;
        struct client_watch *seen, *again;
        atomic_int n_replies = 0;

        faulty_api_fixture_create(f, "a");
        seen = faulty_api_fixture_watch(f);
        client_watch_await(seen, 1);
        f->store.hold = true;
        assert_int_equal(hfd_store_request_revision(f->cacher,
                                                    hf_now(hf_clock_system()) +
                                                            60 * HF_NSEC_PER_SEC,
                                                    ignore_reply, &n_replies),
                         0);
        faulty_api_fixture_put(f, "/registry.holdfast/epoch", "after the restore");
        client_watch_await(seen, 1);
        (void)client_watch_await_end(seen);
        again = faulty_api_fixture_watch(f);
        client_watch_await(again, 1); /* the cache is filled again */
        faulty_api_fixture_create(f, "b");
        struct hfd_store_reply reply = {.revision = 1};
        f->store.held(f->store.held_ctx, &reply);
        assert_int_equal(atomic_load(&n_replies), 1);
        assert_int_equal(atomic_load(&f->n_replaced), 1);
        client_watch_await(again, 2);
        assert_false(again->ended);
        (void)faulty_api_fixture_end_watch(f, again, 2);
        client_watch_free(seen);
        client_watch_free(again);
}

/*
 * A reply with an old revision, as from a member that lags behind, is a sign of a replacement. A
 * second read finds that the store was not replaced.
 */
static void test_an_old_answer_replaces_no_history(void **state) {
        struct faulty_api_fixture *f = *state;
        struct client_watch *seen;
        atomic_int n_replies = 0;

        seen = watch_three(f);
        for (int i = 0; i < 3; i++) {
                struct hfd_store_reply old = {.revision = 1, .cluster_id = i == 2 ? 99 : 0};
                f->store.hold = true;
                assert_int_equal(hfd_store_request_revision(f->cacher,
                                                            hf_now(hf_clock_system()) +
                                                                    60 * HF_NSEC_PER_SEC,
                                                            ignore_reply, &n_replies),
                                 0);
                f->store.held(f->store.held_ctx, &old);
                PATIENCE_AWAIT(!watched_identity_is_confirming(f->cacher));
        }
        assert_int_equal(atomic_load(&n_replies), 3);
        assert_int_equal(atomic_load(&f->n_replaced), 0);
        faulty_api_fixture_create(f, "b");
        client_watch_await(seen, 4);
        assert_false(seen->ended);
        (void)faulty_api_fixture_end_watch(f, seen, 4);
        client_watch_free(seen);
}

static void replace_history(void *ctx) { hfd_store_identity_replaced(ctx, "a test says so"); }

/*
 * The history is replaced while the cache is being filled from the old one, or when its watch has
 * just begun and has no id yet.
 */
static void test_a_history_is_replaced_while_the_cache_is_filled(void **state) {
        struct faulty_api_fixture *f = *state;
        struct client_watch *seen[3];

        faulty_api_fixture_create(f, "a");
        seen[0] = faulty_api_fixture_watch(f);
        for (int amid_watch = 0; amid_watch < 2; amid_watch++) {
                client_watch_await(seen[amid_watch], 1);
                faulty_store_await_watch(&f->store);
                pthread_mutex_lock(&f->store.mu);
                f->store.hook_ctx = f->cacher;
                *(amid_watch ? &f->store.on_next_watch : &f->store.on_next_list) = replace_history;
                int n_lists = f->store.n_lists;
                pthread_mutex_unlock(&f->store.mu);
                faulty_store_end_watch(&f->store, HF_E_GONE);
                client_watch_await(seen[amid_watch], 1);
                (void)client_watch_await_end(seen[amid_watch]);
                PATIENCE_AWAIT(faulty_store_n_lists(&f->store) >= n_lists + 2 &&
                               !hfd_store_identity_replacement_pending(f->cacher));
                assert_int_equal(atomic_load(&f->n_replaced), 1 + amid_watch);
                assert_int_equal(faulty_api_fixture_request(f, HF_VERB_GET, "a", NULL, NULL), 0);
                seen[amid_watch + 1] = faulty_api_fixture_watch(f);
        }
        client_watch_await(seen[2], 1);
        (void)faulty_api_fixture_end_watch(f, seen[2], 1);
        for (int i = 0; i < 3; i++)
                client_watch_free(seen[i]);
}

/*
 * The store's watch lost an event: the audit finds the difference, and the cache is filled again.
 */
static void test_the_audit_finds_a_lost_event(void **state) {
        struct faulty_api_fixture *f = *state;
        struct client_watch *seen;

        faulty_api_fixture_create(f, "a");
        assert_int_equal(faulty_api_fixture_request(f, HF_VERB_GET, "a", NULL, NULL), 0);
        seen = faulty_api_fixture_watch(f);
        client_watch_await(seen, 1);
        faulty_store_drop_events(&f->store, true);
        faulty_api_fixture_create(f, "lost");
        assert_int_equal(faulty_api_fixture_request(f, HF_VERB_GET, "lost", NULL, NULL),
                         0); /* the cache is behind, so the read goes to the store */
        faulty_store_drop_events(&f->store, false);
        faulty_api_fixture_create(f, "b");
        client_watch_await(seen, 2);
        assert_false(seen->ended);
        hfd_cache_audit_start(f->cacher);
        client_watch_await(seen, 2);
        assert_int_equal(client_watch_await_end(seen), HF_E_GONE);
        assert_int_equal(atomic_load(&f->n_replaced), 0);
        struct client_watch *again = faulty_api_fixture_watch(f);
        client_watch_await(again, 3);
        (void)faulty_api_fixture_end_watch(f, again, 3);
        client_watch_free(seen);
        client_watch_free(again);
}

/* Deletes the ConfigMap default/a, and waits until the cache has seen that. */
static void delete_configmap(void *ctx) {
        struct faulty_api_fixture *f = ctx;
        uint64_t revision = store_client_delete(f->store.inner, "/registry/configmaps/default/a");

        assert_true(revision > 0);
        PATIENCE_AWAIT(hfd_cacher_revision(f->cacher) >= revision);
}

/*
 * The watch lost the event of a Secret, and while the audit runs, a ConfigMap with the same
 * namespace and name is deleted. That deletion does not explain that the Secret is missing.
 */
static void test_a_deletion_of_another_kind_hides_no_lost_event(void **state) {
        struct faulty_api_fixture *f = *state;
        struct client_watch *seen;

        faulty_api_fixture_put(f, "/registry/configmaps/default/a", "{\"metadata\":{}}");
        seen = faulty_api_fixture_watch(f);
        faulty_store_drop_events(&f->store, true);
        faulty_api_fixture_put(f, "/registry/secrets/default/a", "{\"metadata\":{}}");
        assert_int_equal(faulty_api_fixture_request(f, HF_VERB_GET, "none", NULL, NULL),
                         HF_E_NOT_FOUND); /* the cache is late, so this reads from the store */
        faulty_store_drop_events(&f->store, false);
        faulty_api_fixture_create(f, "b");
        client_watch_await(seen, 1); /* the cache has passed the lost event */
        pthread_mutex_lock(&f->store.mu);
        f->store.hook_ctx = f;
        f->store.on_next_list = delete_configmap;
        pthread_mutex_unlock(&f->store.mu);
        hfd_cache_audit_start(f->cacher);
        assert_int_equal(client_watch_await_end(seen), HF_E_GONE);
        client_watch_free(seen);
}

static void test_a_leaders_write_compares_the_epoch(void **state) {
        struct faulty_api_fixture *f = *state;
        struct hf_fence fence = {.ns = "kube-system", .name = "l", .identity = "me"};
        struct hf_request write = {.size = sizeof write,
                                   .verb = HF_VERB_CREATE,
                                   .resource = api_workspaces,
                                   .fence = &fence};
        static const char a[] = "{\"metadata\":{\"name\":\"a\"}}",
                          b[] = "{\"metadata\":{\"name\":\"b\"}}";
        int r;

        faulty_api_fixture_put(f, "/registry.holdfast/terms/kube-system/l", "me\n-");
        fence.term =
                store_client_mod_revision(f->store.inner, "/registry.holdfast/terms/kube-system/l");
        write.body = a;
        write.n_body = strlen(a);
        assert_int_equal(hf_client_do(f->client, &write, f->token, NULL, NULL, NULL), 0);
        faulty_store_drop_events(&f->store, true);
        faulty_api_fixture_put(f, "/registry.holdfast/epoch", "restored");
        write.body = b;
        assert_int_equal(hf_client_do(f->client, &write, f->token, NULL, NULL, NULL),
                         HF_E_STALE_TERM);
        assert_int_equal(atomic_load(&f->n_replaced), 1);
        assert_int_equal(store_client_mod_revision(f->store.inner,
                                                   "/registry/tenancy.holdfast.dev/workspaces/b"),
                         0);
        faulty_store_drop_events(&f->store, false);
        /* When the cache has the new history, only the fence decides. */
        do
                r = hf_client_do(f->client, &write, f->token, NULL, NULL, NULL);
        while (r == HF_E_STALE_TERM);
        assert_int_equal(r, 0);
}

int main(void) {
        const struct CMUnitTest tests[] = {
                FAULTY_API_TEST(test_a_new_epoch_ends_watches_and_refills_the_cache),
                FAULTY_API_TEST(test_a_late_reply_of_the_old_history_is_ignored),
                FAULTY_API_TEST(test_a_history_is_replaced_while_the_cache_is_filled),
                FAULTY_API_TEST(test_an_old_answer_replaces_no_history),
                FAULTY_API_TEST(test_a_deletion_of_another_kind_hides_no_lost_event),
                FAULTY_API_TEST(test_a_leaders_write_compares_the_epoch),
                FAULTY_API_TEST(test_a_revision_that_goes_back_is_noticed),
                FAULTY_API_TEST(test_the_audit_finds_a_lost_event),
        };
        return cmocka_run_group_tests(tests, NULL, NULL);
}

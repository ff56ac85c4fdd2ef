/* SPDX-License-Identifier: Apache-2.0 */
/* The history behind the cache: replaced by a backup, at once and under way; an event that is lost.
 */
#undef NDEBUG
#include <pthread.h>
#include <sched.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <string.h>

#include <cmocka.h>

#include "faulty_box.h"

static void test_new_epoch(void **state) {
        struct box *box = *state;
        struct seen seen, again;

        assert_int_equal(request(box, HF_VERB_CREATE, NULL, "{\"metadata\":{\"name\":\"a\"}}"), 0);
        watch(box, &seen);
        await(&seen, 1, false);
        put_raw(box, "/registry.holdfast/epoch", "after the restore");
        await(&seen, 1, true);
        assert_int_equal(seen.error, HF_E_GONE);
        assert_int_equal(atomic_load(&box->n_replaced), 1);
        assert_int_equal(request(box, HF_VERB_GET, "a", NULL), 0);
        watch(box, &again);
        await(&again, 1, false);
        hfd_cacher_end_watches(box->cacher);
        await(&again, 1, true);
}

/* A revision below one that was known before the question was sent: the backup speaks. */
static void test_revision_goes_back(void **state) {
        struct box *box = *state;
        struct seen seen;

        for (int i = 0; i < 3; i++) {
                char body[64];
                (void)snprintf(body, sizeof body, "{\"metadata\":{\"name\":\"a%d\"}}", i);
                assert_int_equal(request(box, HF_VERB_CREATE, NULL, body), 0);
        }
        watch(box, &seen);
        await(&seen, 3, false);
        box->store.answer_revision = 1;
        (void)request(box, HF_VERB_GET, "a0", NULL);
        await(&seen, 3, true);
        box->store.answer_revision = 0;
        assert_int_equal(seen.error, HF_E_GONE);
        assert_int_equal(atomic_load(&box->n_replaced), 1);
        assert_int_equal(request(box, HF_VERB_GET, "a0", NULL), 0);
}

static void ignore_reply(void *ctx, const struct hfd_store_reply *reply) {
        atomic_fetch_add((atomic_int *)ctx, 1);
}

/* A reply that was under way since before the replacement: it is no second one. */
static void test_late_reply_of_the_old_history(void **state) {
        struct box *box = *state;
        struct seen seen, again;
        atomic_int n_replies = 0;

        assert_int_equal(request(box, HF_VERB_CREATE, NULL, "{\"metadata\":{\"name\":\"a\"}}"), 0);
        watch(box, &seen);
        await(&seen, 1, false);
        box->store.hold = true;
        assert_int_equal(hfd_store_request_revision(box->cacher,
                                                    hf_now(hf_clock_system()) +
                                                            60 * HF_NSEC_PER_SEC,
                                                    ignore_reply, &n_replies),
                         0);
        put_raw(box, "/registry.holdfast/epoch", "after the restore");
        await(&seen, 1, true);
        watch(box, &again);
        await(&again, 1, false); /* the cache is filled again */
        assert_int_equal(request(box, HF_VERB_CREATE, NULL, "{\"metadata\":{\"name\":\"b\"}}"), 0);
        struct hfd_store_reply reply = {.revision = 1};
        box->store.held(box->store.held_ctx, &reply);
        assert_int_equal(atomic_load(&n_replies), 1);
        assert_int_equal(atomic_load(&box->n_replaced), 1);
        await(&again, 2, false);
        assert_false(again.ended);
        hfd_cacher_end_watches(box->cacher);
        await(&again, 2, true);
}

static int n_lists_of(struct box *box) {
        pthread_mutex_lock(&box->store.mu);
        int n = box->store.n_lists;
        pthread_mutex_unlock(&box->store.mu);
        return n;
}

/* What the cache is being filled with is of the old history; or its watch has just been begun there
 * and has no id yet. */
static void test_replaced_while_the_cache_is_filled(void **state) {
        struct box *box = *state;
        struct seen seen[3];

        assert_int_equal(request(box, HF_VERB_CREATE, NULL, "{\"metadata\":{\"name\":\"a\"}}"), 0);
        watch(box, &seen[0]);
        for (int amid_watch = 0; amid_watch < 2; amid_watch++) {
                await(&seen[amid_watch], 1, false);
                pthread_mutex_lock(&box->store.mu);
                *(amid_watch ? &box->store.replaced_amid_watch : &box->store.replaced_amid_list) =
                        box->cacher;
                int n_lists = box->store.n_lists;
                pthread_mutex_unlock(&box->store.mu);
                end_watch_as(&box->store, HF_E_GONE);
                await(&seen[amid_watch], 1, true);
                while (n_lists_of(box) < n_lists + 2 || hfd_store_identity_settling(box->cacher))
                        sched_yield();
                assert_int_equal(atomic_load(&box->n_replaced), 1 + amid_watch);
                assert_int_equal(request(box, HF_VERB_GET, "a", NULL), 0);
                watch(box, &seen[amid_watch + 1]);
        }
        await(&seen[2], 1, false);
        hfd_cacher_end_watches(box->cacher);
        await(&seen[2], 1, true);
}

/* An event that the store's watch lost: the audit finds the difference and the cache is filled
 * anew. */
static void test_audit_finds_a_lost_event(void **state) {
        struct box *box = *state;
        struct seen seen;

        assert_int_equal(request(box, HF_VERB_CREATE, NULL, "{\"metadata\":{\"name\":\"a\"}}"), 0);
        assert_int_equal(request(box, HF_VERB_GET, "a", NULL), 0);
        watch(box, &seen);
        await(&seen, 1, false);
        pthread_mutex_lock(&box->store.mu);
        box->store.deaf = true;
        pthread_mutex_unlock(&box->store.mu);
        assert_int_equal(request(box, HF_VERB_CREATE, NULL, "{\"metadata\":{\"name\":\"lost\"}}"),
                         0);
        assert_int_equal(request(box, HF_VERB_GET, "lost", NULL), 0); /* late: from the store */
        pthread_mutex_lock(&box->store.mu);
        box->store.deaf = false;
        pthread_mutex_unlock(&box->store.mu);
        assert_int_equal(request(box, HF_VERB_CREATE, NULL, "{\"metadata\":{\"name\":\"b\"}}"), 0);
        await(&seen, 2, false);
        assert_false(seen.ended);
        hfd_store_identity_audit(box->cacher);
        await(&seen, 2, true);
        assert_int_equal(seen.error, HF_E_GONE);
        assert_int_equal(atomic_load(&box->n_replaced), 0);
        struct seen again;
        watch(box, &again);
        await(&again, 3, false);
        hfd_cacher_end_watches(box->cacher);
        await(&again, 3, true);
}

static void test_a_leaders_write_compares_the_epoch(void **state) {
        struct box *box = *state;
        struct hf_fence fence = {.ns = "kube-system", .name = "l", .identity = "me"};
        struct hf_request write = {.verb = HF_VERB_CREATE, .resource = workspaces, .fence = &fence};
        static const char a[] = "{\"metadata\":{\"name\":\"a\"}}",
                          b[] = "{\"metadata\":{\"name\":\"b\"}}";
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
        assert_int_equal(hf_client_do(box->client, &write, box->token, NULL, NULL, NULL),
                         HF_E_STALE_TERM);
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

#define TEST(name) cmocka_unit_test_setup_teardown(name, set_up, tear_down)

int main(void) {
        const struct CMUnitTest tests[] = {
                TEST(test_new_epoch),
                TEST(test_late_reply_of_the_old_history),
                TEST(test_replaced_while_the_cache_is_filled),
                TEST(test_a_leaders_write_compares_the_epoch),
                TEST(test_revision_goes_back),
                TEST(test_audit_finds_a_lost_event),
        };
        return cmocka_run_group_tests(tests, NULL, NULL);
}

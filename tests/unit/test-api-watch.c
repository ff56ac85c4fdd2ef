/* SPDX-License-Identifier: Apache-2.0 */
/* Watches, and many concurrent requests, through the loopback client over the memory store. */
#undef NDEBUG
#include <assert.h>
#include <pthread.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#include "api_fixture.h"
#include "client_watch.h"
#include "patience.h"
#include "server/cacher/state/cacher_state.h"

static struct client_watch *watch(struct api_fixture *f, struct hf_resource resource,
                                  const char *query, const char *revision) {
        const struct hf_watch_spec spec = {.size = sizeof spec,
                                           .resource = resource,
                                           .query = query,
                                           .resource_version = revision};

        return client_watch_new(f->client, &spec);
}

static void test_a_watch_delivers_changes_in_order(void **state) {
        struct api_fixture *f = *state;
        char revision[32];

        api_fixture_make_workspaces(f, 2);
        assert_int_equal(api_fixture_n_selected(f, NULL), 2); /* the cache has them */
        (void)snprintf(revision, sizeof revision, "%s",
                       api_fixture_text_at(f, "metadata.resourceVersion"));
        struct client_watch *seen = watch(f, api_workspaces, NULL, NULL);
        client_watch_expect(seen, 0, HF_EVENT_ADDED, "w00");
        client_watch_expect(seen, 1, HF_EVENT_ADDED, "w01");
        assert_int_equal(api_fixture_request(f, HF_VERB_UPDATE, api_workspaces, NULL, "w01", NULL,
                                             "{\"metadata\":{\"name\":\"w01\"}}"),
                         0);
        client_watch_expect(seen, 2, HF_EVENT_MODIFIED, "w01");
        assert_string_equal(seen->events[2].revision,
                            api_fixture_text_at(f, "metadata.resourceVersion"));
        assert_int_equal(api_fixture_request(f, HF_VERB_DELETE, api_workspaces, NULL, "w01", NULL,
                                             NULL),
                         0);
        client_watch_expect(seen, 3, HF_EVENT_DELETED, "w01");
        assert_true(strtoull(seen->events[3].revision, NULL, 10) >
                    strtoull(seen->events[2].revision, NULL, 10));
        /* A watch from a revision gets only later changes. */
        struct client_watch *later = watch(f, api_workspaces, NULL, revision);
        client_watch_expect(later, 0, HF_EVENT_MODIFIED, "w01");
        client_watch_expect(later, 1, HF_EVENT_DELETED, "w01");
        hf_client_watch_cancel(f->client, seen->id);
        assert_int_equal(client_watch_await_end(seen), HF_E_CANCELED);
        hfd_cacher_end_watches(f->cacher);
        assert_int_equal(client_watch_await_end(later), 0);
        struct client_watch *refused = watch(f, api_workspaces, NULL, NULL);
        assert_int_equal(client_watch_await_end(refused), HF_E_UNAVAILABLE);
        client_watch_free(seen);
        client_watch_free(later);
        client_watch_free(refused);
}

static void test_a_watch_with_a_selector_sees_objects_enter_and_leave(void **state) {
        struct api_fixture *f = *state;

        api_fixture_make_workspaces(f, 2);
        assert_int_equal(api_fixture_n_selected(f, NULL), 2);
        struct client_watch *odd = watch(f, api_workspaces, "labelSelector=parity%3Dodd", NULL);
        struct client_watch *one =
                watch(f, api_workspaces, "fieldSelector=metadata.name%3Dw00", NULL);
        client_watch_expect(odd, 0, HF_EVENT_ADDED, "w01");
        client_watch_expect(one, 0, HF_EVENT_ADDED, "w00");
        /* An object that begins to match is added, and one that ceases to match is deleted. */
        assert_int_equal(api_fixture_request(f, HF_VERB_UPDATE, api_workspaces, NULL, "w00", NULL,
                                             "{\"metadata\":{\"name\":\"w00\",\"labels\":{"
                                             "\"parity\":"
                                             "\"odd\"}}}"),
                         0);
        client_watch_expect(odd, 1, HF_EVENT_ADDED, "w00");
        client_watch_expect(one, 1, HF_EVENT_MODIFIED, "w00");
        assert_int_equal(api_fixture_request(f, HF_VERB_UPDATE, api_workspaces, NULL, "w01", NULL,
                                             "{\"metadata\":{\"name\":\"w01\"}}"),
                         0);
        client_watch_expect(odd, 2, HF_EVENT_DELETED, "w01");
        assert_string_equal(odd->events[2].revision,
                            api_fixture_text_at(f, "metadata.resourceVersion"));
        assert_int_equal(api_fixture_request(f, HF_VERB_DELETE, api_workspaces, NULL, "w00", NULL,
                                             NULL),
                         0);
        client_watch_expect(odd, 3, HF_EVENT_DELETED, "w00");
        client_watch_expect(one, 2, HF_EVENT_DELETED, "w00");
        hfd_cacher_end_watches(f->cacher);
        assert_int_equal(client_watch_await_end(odd), 0);
        assert_int_equal(client_watch_await_end(one), 0);
        client_watch_free(odd);
        client_watch_free(one);
}

static void update_often(struct api_fixture *f, struct hf_resource resource, const char *ns,
                         const char *name, int n) {
        for (int i = 0; i < n; i++) {
                char body[120];
                (void)snprintf(body, sizeof body,
                               "{\"metadata\":{\"name\":\"%s\",\"labels\":{\"n\":\"%d\"}}}", name,
                               i);
                assert_int_equal(api_fixture_request(f, i ? HF_VERB_UPDATE : HF_VERB_CREATE,
                                                     resource, ns, i ? name : NULL, NULL, body),
                                 0);
        }
}

static void test_a_watch_from_a_forgotten_revision_is_gone(void **state) {
        struct api_fixture *f = *state;

        pthread_mutex_lock(&f->cacher->mu);
        f->cacher->histories.max_bytes = 100000;
        pthread_mutex_unlock(&f->cacher->mu);
        update_often(f, api_workspaces, NULL, "w", 1000); /* more than the history holds */
        assert_int_equal(api_fixture_n_selected(f, NULL), 1);
        struct client_watch *seen = watch(f, api_workspaces, NULL, "1");
        assert_int_equal(client_watch_await_end(seen), HF_E_GONE);
        client_watch_free(seen);
}

/*
 * A resource that changes all the time does not shorten the history of the others. Its own history
 * goes back far enough for a client that first reads a long list.
 */
static void test_a_busy_resource_keeps_the_past_of_all(void **state) {
        struct api_fixture *f = *state;
        char revision[32];

        update_often(f, api_configmaps, "default", "quiet", 2);
        update_often(f, api_workspaces, NULL, "w", 1);
        (void)snprintf(revision, sizeof revision, "%s",
                       api_fixture_text_at(f, "metadata.resourceVersion"));
        update_often(f, api_configmaps, "default", "late", 1);
        update_often(f, api_workspaces, NULL, "busy", 10000);
        struct client_watch *quiet = watch(f, api_configmaps, NULL, revision),
                            *busy = watch(f, api_workspaces, NULL, revision);
        client_watch_await(quiet, 1);
        client_watch_await(busy, 10000);
        hfd_cacher_end_watches(f->cacher);
        assert_int_equal(client_watch_await_end(quiet), 0);
        assert_int_equal(client_watch_await_end(busy), 0);
        assert_int_equal(quiet->n, 1);
        client_watch_free(quiet);
        client_watch_free(busy);
}

/* ---- many at once ---- */

struct hammer {
        struct api_fixture *f;
        int index;
        pthread_mutex_t mu;
        pthread_cond_t cond;
        int n_won, n_left;
};

static void hammer_reply(void *ctx, const struct hf_response *reply) {
        struct hammer *h = ctx;

        pthread_mutex_lock(&h->mu);
        h->n_won += !reply->error;
        h->n_left--;
        pthread_cond_signal(&h->cond);
        pthread_mutex_unlock(&h->mu);
}

static void *hammer_thread(void *ctx) {
        struct hammer *h = ctx;
        char body[160];
        /* under valgrind everything is slow */
        hf_nsec until = hf_now(hf_clock_system()) + 600 * HF_NSEC_PER_SEC;

        for (int i = 0; i < 100; i++) {
                (void)snprintf(body, sizeof body,
                               "{\"metadata\":{\"name\":\"shared\"},\"spec\":{\"by\":%d,\"n\":%d}}",
                               h->index, i);
                struct hf_request update = {.size = sizeof update,
                                            .verb = HF_VERB_UPDATE,
                                            .resource = api_workspaces,
                                            .name = "shared",
                                            .body = body,
                                            .n_body = strlen(body),
                                            .deadline = until};
                struct hf_request get = {.size = sizeof get,
                                         .verb = HF_VERB_GET,
                                         .resource = api_workspaces,
                                         .name = "shared",
                                         .deadline = until};
                struct hf_request list = {.size = sizeof list,
                                          .verb = HF_VERB_LIST,
                                          .resource = api_workspaces,
                                          .query = "labelSelector=!none",
                                          .deadline = until};
                pthread_mutex_lock(&h->mu);
                h->n_left += 3;
                pthread_mutex_unlock(&h->mu);
                assert_int_equal(hf_client_request(h->f->client, &update, hammer_reply, h, NULL),
                                 0);
                assert_int_equal(hf_client_request(h->f->client, &get, hammer_reply, h, NULL), 0);
                assert_int_equal(hf_client_request(h->f->client, &list, hammer_reply, h, NULL), 0);
                pthread_mutex_lock(&h->mu);
                PATIENCE_AWAIT_LOCKED(&h->cond, &h->mu, h->n_left <= 8);
                pthread_mutex_unlock(&h->mu);
        }
        pthread_mutex_lock(&h->mu);
        PATIENCE_AWAIT_LOCKED(&h->cond, &h->mu, h->n_left == 0);
        pthread_mutex_unlock(&h->mu);
        return NULL;
}

static void test_concurrent_updates_all_succeed(void **state) {
        struct api_fixture *f = *state;
        struct hammer hammers[4];
        pthread_t threads[4];
        int n_won = 0;

        assert_int_equal(api_fixture_request(f, HF_VERB_CREATE, api_workspaces, NULL, NULL, NULL,
                                             "{\"metadata\":{\"name\":\"shared\"}}"),
                         0);
        struct client_watch *seen =
                watch(f, api_workspaces, NULL, api_fixture_text_at(f, "metadata.resourceVersion"));
        for (int i = 0; i < 4; i++) {
                hammers[i] =
                        (struct hammer){f, i, PTHREAD_MUTEX_INITIALIZER, PTHREAD_COND_INITIALIZER,
                                        0, 0};
                assert_int_equal(pthread_create(&threads[i], NULL, hammer_thread, &hammers[i]), 0);
        }
        for (int i = 0; i < 4; i++) {
                pthread_join(threads[i], NULL);
                n_won += hammers[i].n_won;
        }
        assert_int_equal(n_won, 1200); /* unconditional updates: conflicts are resolved inside */
        client_watch_await(seen, 400);
        for (size_t i = 1; i < seen->n; i++)
                assert_true(strtoull(seen->events[i].revision, NULL, 10) >
                            strtoull(seen->events[i - 1].revision, NULL, 10));
        hfd_cacher_end_watches(f->cacher);
        assert_int_equal(client_watch_await_end(seen), 0);
        client_watch_free(seen);
}

int main(void) {
        const struct CMUnitTest tests[] = {
                API_TEST(test_a_watch_delivers_changes_in_order),
                API_TEST(test_a_watch_with_a_selector_sees_objects_enter_and_leave),
                API_TEST(test_a_watch_from_a_forgotten_revision_is_gone),
                API_TEST(test_a_busy_resource_keeps_the_past_of_all),
                API_TEST(test_concurrent_updates_all_succeed),
        };
        return cmocka_run_group_tests(tests, NULL, NULL);
}

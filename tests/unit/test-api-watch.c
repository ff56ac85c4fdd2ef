/* SPDX-License-Identifier: Apache-2.0 */
/* Watches, and many callers at once, through the loopback client over the memory store. */
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

#include "api_box.h"

struct seen {
        pthread_mutex_t mu;
        pthread_cond_t cond;
        size_t n;
        struct {
                enum hf_event_type type;
                char name[64], revision[32];
        } events[4096];
        bool ended;
        int error;
};

static void on_event(void *ctx, const struct hf_event *event) {
        struct seen *seen = ctx;
        struct hf__json *json = NULL;

        assert_int_equal(hf__json_parse(event->object, event->n_object, &json, NULL), 0);
        pthread_mutex_lock(&seen->mu);
        const char *name = hf__json_string(json, "metadata.name");
        assert_string_equal(hf__json_string(json, "metadata.resourceVersion"),
                            event->resource_version);
        seen->events[seen->n].type = event->type;
        (void)snprintf(seen->events[seen->n].name, 64, "%s", name ? name : "");
        (void)snprintf(seen->events[seen->n].revision, 32, "%s", event->resource_version);
        seen->n++;
        pthread_cond_broadcast(&seen->cond);
        pthread_mutex_unlock(&seen->mu);
        hf__json_free(json);
}

static void on_end(void *ctx, int error, const struct hf_status *status) {
        struct seen *seen = ctx;

        pthread_mutex_lock(&seen->mu);
        seen->ended = true;
        seen->error = error;
        pthread_cond_broadcast(&seen->cond);
        pthread_mutex_unlock(&seen->mu);
}

static struct seen *watch(struct box *box, struct hf_resource resource, const char *query,
                          const char *revision, uint64_t *ret_id) {
        struct seen *seen = calloc(1, sizeof *seen);
        struct hf_watch_spec spec = {.resource = resource,
                                     .query = query,
                                     .resource_version = revision};

        pthread_mutex_init(&seen->mu, NULL);
        pthread_cond_init(&seen->cond, NULL);
        assert_int_equal(hf_client_watch(box->client, &spec, on_event, on_end, seen, ret_id), 0);
        return seen;
}

static void await(struct seen *seen, size_t n) {
        pthread_mutex_lock(&seen->mu);
        while (seen->n < n && !seen->ended)
                pthread_cond_wait(&seen->cond, &seen->mu);
        assert_true(seen->n >= n);
        pthread_mutex_unlock(&seen->mu);
}

static int await_end(struct seen *seen) {
        pthread_mutex_lock(&seen->mu);
        while (!seen->ended)
                pthread_cond_wait(&seen->cond, &seen->mu);
        int error = seen->error;
        pthread_mutex_unlock(&seen->mu);
        return error;
}

static void expect_event(struct seen *seen, size_t i, enum hf_event_type type, const char *name) {
        await(seen, i + 1);
        assert_int_equal(seen->events[i].type, type);
        assert_string_equal(seen->events[i].name, name);
}

static void test_watch(void **state) {
        struct box *box = *state;
        uint64_t id;
        char revision[32];

        make_workspaces(box, 2);
        assert_int_equal(n_selected(box, NULL), 2); /* the cache has them */
        (void)snprintf(revision, sizeof revision, "%s", text_at("metadata.resourceVersion"));
        struct seen *seen = watch(box, workspaces, NULL, NULL, &id);
        expect_event(seen, 0, HF_EVENT_ADDED, "w00");
        expect_event(seen, 1, HF_EVENT_ADDED, "w01");
        assert_int_equal(do_call(box, HF_VERB_UPDATE, workspaces, NULL, "w01", NULL,
                                 "{\"metadata\":{\"name\":\"w01\"}}"),
                         0);
        expect_event(seen, 2, HF_EVENT_MODIFIED, "w01");
        assert_string_equal(seen->events[2].revision, text_at("metadata.resourceVersion"));
        assert_int_equal(do_call(box, HF_VERB_DELETE, workspaces, NULL, "w01", NULL, NULL), 0);
        expect_event(seen, 3, HF_EVENT_DELETED, "w01");
        assert_true(strtoull(seen->events[3].revision, NULL, 10) >
                    strtoull(seen->events[2].revision, NULL, 10));
        /* From a revision: only what came after it. */
        struct seen *later = watch(box, workspaces, NULL, revision, NULL);
        expect_event(later, 0, HF_EVENT_MODIFIED, "w01");
        expect_event(later, 1, HF_EVENT_DELETED, "w01");
        hf_client_watch_cancel(box->client, id);
        assert_int_equal(await_end(seen), HF_E_CANCELED);
        hfd_cacher_end_watches(box->cacher);
        assert_int_equal(await_end(later), 0);
        struct seen *refused = watch(box, workspaces, NULL, NULL, NULL);
        assert_int_equal(await_end(refused), HF_E_UNAVAILABLE);
        free(seen), free(later), free(refused);
}

static void test_watch_selectors(void **state) {
        struct box *box = *state;

        make_workspaces(box, 2);
        assert_int_equal(n_selected(box, NULL), 2);
        struct seen *odd = watch(box, workspaces, "labelSelector=parity%3Dodd", NULL, NULL);
        struct seen *one = watch(box, workspaces, "fieldSelector=metadata.name%3Dw00", NULL, NULL);
        expect_event(odd, 0, HF_EVENT_ADDED, "w01");
        expect_event(one, 0, HF_EVENT_ADDED, "w00");
        /* An object that begins to match is added, one that ceases to is deleted. */
        assert_int_equal(do_call(box, HF_VERB_UPDATE, workspaces, NULL, "w00", NULL,
                                 "{\"metadata\":{\"name\":\"w00\",\"labels\":{\"parity\":\"odd\"}}"
                                 "}"),
                         0);
        expect_event(odd, 1, HF_EVENT_ADDED, "w00");
        expect_event(one, 1, HF_EVENT_MODIFIED, "w00");
        assert_int_equal(do_call(box, HF_VERB_UPDATE, workspaces, NULL, "w01", NULL,
                                 "{\"metadata\":{\"name\":\"w01\"}}"),
                         0);
        expect_event(odd, 2, HF_EVENT_DELETED, "w01");
        assert_string_equal(odd->events[2].revision, text_at("metadata.resourceVersion"));
        assert_int_equal(do_call(box, HF_VERB_DELETE, workspaces, NULL, "w00", NULL, NULL), 0);
        expect_event(odd, 3, HF_EVENT_DELETED, "w00");
        expect_event(one, 2, HF_EVENT_DELETED, "w00");
        hfd_cacher_end_watches(box->cacher);
        assert_int_equal(await_end(odd), 0);
        assert_int_equal(await_end(one), 0);
        free(odd), free(one);
}

static void test_watch_too_old(void **state) {
        struct box *box = *state;

        for (int i = 0; i < 4200; i++) { /* more than the history holds */
                char body[120];
                (void)snprintf(body, sizeof body,
                               "{\"metadata\":{\"name\":\"w\"},\"spec\":{\"n\":%d}}", i);
                assert_int_equal(do_call(box, i ? HF_VERB_UPDATE : HF_VERB_CREATE, workspaces, NULL,
                                         i ? "w" : NULL, NULL, body),
                                 0);
        }
        assert_int_equal(n_selected(box, NULL), 1);
        struct seen *seen = watch(box, workspaces, NULL, "1", NULL);
        assert_int_equal(await_end(seen), HF_E_GONE);
        free(seen);
}

/* ---- many at once ---- */

struct hammer {
        struct box *box;
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
        hf_nsec until =
                hf_now(hf_clock_system()) + 600 * HF_NSEC_PER_SEC; /* under valgrind all is slow */

        for (int i = 0; i < 100; i++) {
                (void)snprintf(body, sizeof body,
                               "{\"metadata\":{\"name\":\"shared\"},\"spec\":{\"by\":%d,\"n\":%d}}",
                               h->index, i);
                struct hf_request update = {.verb = HF_VERB_UPDATE,
                                            .resource = workspaces,
                                            .name = "shared",
                                            .body = body,
                                            .n_body = strlen(body),
                                            .deadline = until};
                struct hf_request get = {.verb = HF_VERB_GET,
                                         .resource = workspaces,
                                         .name = "shared",
                                         .deadline = until};
                struct hf_request list = {.verb = HF_VERB_LIST,
                                          .resource = workspaces,
                                          .query = "labelSelector=!none",
                                          .deadline = until};
                pthread_mutex_lock(&h->mu);
                h->n_left += 3;
                pthread_mutex_unlock(&h->mu);
                assert_int_equal(hf_client_request(h->box->client, &update, hammer_reply, h, NULL),
                                 0);
                assert_int_equal(hf_client_request(h->box->client, &get, hammer_reply, h, NULL), 0);
                assert_int_equal(hf_client_request(h->box->client, &list, hammer_reply, h, NULL),
                                 0);
                pthread_mutex_lock(&h->mu);
                while (h->n_left > 8)
                        pthread_cond_wait(&h->cond, &h->mu);
                pthread_mutex_unlock(&h->mu);
        }
        pthread_mutex_lock(&h->mu);
        while (h->n_left)
                pthread_cond_wait(&h->cond, &h->mu);
        pthread_mutex_unlock(&h->mu);
        return NULL;
}

static void test_hammer(void **state) {
        struct box *box = *state;
        struct hammer hammers[4];
        pthread_t threads[4];
        int n_won = 0;

        assert_int_equal(do_call(box, HF_VERB_CREATE, workspaces, NULL, NULL, NULL,
                                 "{\"metadata\":{\"name\":\"shared\"}}"),
                         0);
        struct seen *seen = watch(box, workspaces, NULL, text_at("metadata.resourceVersion"), NULL);
        for (int i = 0; i < 4; i++) {
                hammers[i] =
                        (struct hammer){box, i, PTHREAD_MUTEX_INITIALIZER, PTHREAD_COND_INITIALIZER,
                                        0,   0};
                assert_int_equal(pthread_create(&threads[i], NULL, hammer_thread, &hammers[i]), 0);
        }
        for (int i = 0; i < 4; i++) {
                pthread_join(threads[i], NULL);
                n_won += hammers[i].n_won;
        }
        assert_int_equal(n_won, 1200); /* unconditional updates: the loop settles every conflict */
        await(seen, 400);
        for (size_t i = 1; i < seen->n; i++)
                assert_true(strtoull(seen->events[i].revision, NULL, 10) >
                            strtoull(seen->events[i - 1].revision, NULL, 10));
        hfd_cacher_end_watches(box->cacher);
        assert_int_equal(await_end(seen), 0);
        free(seen);
}

int main(void) {
        const struct CMUnitTest tests[] = {
                TEST(test_watch),
                TEST(test_watch_selectors),
                TEST(test_watch_too_old),
                TEST(test_hammer),
        };
        int failed = cmocka_run_group_tests(tests, NULL, NULL);

        free(last.body);
        return failed;
}

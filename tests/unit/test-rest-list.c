/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Lists of many objects over HTTP are made on the threads of the pool alone. The thread that begins
 * a list may be the one that serves a connection, and the thread that goes on after a consistent
 * read the one that delivers the store's replies. Other requests wait for both. The HTTP request is
 * a fake one (streamed_request.h).
 */
#undef NDEBUG
#include <assert.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>
#include <pthread.h>
#include <stdatomic.h>
#include <stdio.h>
#include <string.h>
#include <sys/prctl.h>

#include "api_fixture.h"
#include "patience.h"
#include "server/handlers/rest/rest_list.h"
#include "server/registry/list/list_body.h"
#include "server/registry/list/list_page.h"
#include "server/registry/list/rendering.h"
#include "server/resources/rows/resource_table.h"
#include "streamed_request.h"
#include "time_units.h"

/* ---- who makes lists: the linker redirects the functions that do the work to these ---- */

static atomic_uint n_calls, n_elsewhere; /* calls on the pool's threads, and on others */

static void count_call(void) {
        char name[16] = "";

        (void)prctl(PR_GET_NAME, name);
        atomic_fetch_add(strncmp(name, "hfd-work-", 9) == 0 ? &n_calls : &n_elsewhere, 1);
}

bool __real_hfd_list_page_walk(struct hfd_list_page *page, const struct hfd_read *read,
                               const struct hfd_snapshot *snapshot, size_t max);
bool __wrap_hfd_list_page_walk(struct hfd_list_page *page, const struct hfd_read *read,
                               const struct hfd_snapshot *snapshot, size_t max);
bool __wrap_hfd_list_page_walk(struct hfd_list_page *page, const struct hfd_read *read,
                               const struct hfd_snapshot *snapshot, size_t max) {
        count_call();
        return __real_hfd_list_page_walk(page, read, snapshot, max);
}

int __real_hfd_list_body_next(struct hfd_list_body *body, struct hf__buf **ret_piece,
                              bool *ret_ended);
int __wrap_hfd_list_body_next(struct hfd_list_body *body, struct hf__buf **ret_piece,
                              bool *ret_ended);
int __wrap_hfd_list_body_next(struct hfd_list_body *body, struct hf__buf **ret_piece,
                              bool *ret_ended) {
        count_call();
        return __real_hfd_list_body_next(body, ret_piece, ret_ended);
}

bool __real_hfd_rendering_put_item(struct hf__strbuf *s, const struct hfd_request *request,
                                   const struct hfd_object *object, int64_t now_s);
bool __wrap_hfd_rendering_put_item(struct hf__strbuf *s, const struct hfd_request *request,
                                   const struct hfd_object *object, int64_t now_s);
bool __wrap_hfd_rendering_put_item(struct hf__strbuf *s, const struct hfd_request *request,
                                   const struct hfd_object *object, int64_t now_s) {
        count_call();
        return __real_hfd_rendering_put_item(s, request, object, now_s);
}

void __real_hfd_list_page_from_store(struct hfd_list_page *page, const struct hfd_read *read,
                                     const struct hfd_store_reply *reply);
void __wrap_hfd_list_page_from_store(struct hfd_list_page *page, const struct hfd_read *read,
                                     const struct hfd_store_reply *reply);
void __wrap_hfd_list_page_from_store(struct hfd_list_page *page, const struct hfd_read *read,
                                     const struct hfd_store_reply *reply) {
        count_call();
        __real_hfd_list_page_from_store(page, read, reply);
}

/* ---- lists ---- */

#define N_OBJECTS 300

static struct hfd_http_request request;
static struct hfd_rest_request rest;
static atomic_bool leaves; /* the client leaves just before the list is submitted */

/* The client leaves, and the last step, which that submits, ends before this returns. */
static void leave(void) {
        pthread_mutex_lock(&request.mu);
        int before = request.refs;
        pthread_mutex_unlock(&request.mu);
        request.gone(request.gone_ctx);
        pthread_mutex_lock(&request.mu);
        PATIENCE_AWAIT_LOCKED(&request.cond, &request.mu, request.refs < before);
        assert(request.refs > 0); /* the list is about to be used */
        pthread_mutex_unlock(&request.mu);
}

bool __real_hfd_work_submit(struct hfd_work_pool *pool, struct hfd_work_task *task);
bool __wrap_hfd_work_submit(struct hfd_work_pool *pool, struct hfd_work_task *task);
bool __wrap_hfd_work_submit(struct hfd_work_pool *pool, struct hfd_work_task *task) {
        if (atomic_load(&leaves) && (void *)task == rest.list) {
                atomic_store(&leaves, false);
                leave();
        }
        return __real_hfd_work_submit(pool, task);
}

static void on_done(struct hfd_request *of, const struct hfd_response *response) {
        assert(of == &rest.request && response->code == 200);
        if (of->list_body) {
                hfd_rest_list_send(&rest, of->list_body);
                return;
        }
        /* As rest.c does: the response is complete. */
        assert(hfd_http_request_push(&request, response->body) == 0);
        rest.list = NULL;
        hfd_rest_free(&rest);
}

/* Lists the Workspaces as rest.c does, and waits for the end of the response. Returns its bytes.
 * refused: the client leaves before anything is sent. */
static size_t list_or_leave(struct api_fixture *f, const char *query, bool protobuf, bool refused) {
        struct hfd_response response = {0};

        memset(&rest, 0, sizeof rest);
        streamed_request_init(&request);
        request.may_be_refused = refused;
        rest.registry = f->registry;
        rest.http_request = &request;
        rest.request.verb = HFD_LIST;
        rest.request.resource = hfd_resource_find(api_workspaces.group, api_workspaces.version,
                                                  api_workspaces.plural);
        rest.request.protobuf = protobuf;
        rest.request.deadline = in_msec(PATIENCE_MSEC);
        rest.request.done = on_done;
        assert_true(hfd_options_parse(&rest.request, query, &response));
        assert_true(hfd_rest_list_prepare(&rest));
        atomic_store(&n_calls, 0);
        atomic_store(&n_elsewhere, 0);
        hfd_registry_serve(f->registry, &rest.request);
        streamed_request_done(&request);
        return request.n_pushed;
}

static size_t list(struct api_fixture *f, const char *query, bool protobuf) {
        return list_or_leave(f, query, protobuf, false);
}

/* Only the store has the state at this revision, because the cache was filled after a later one. */
static const char *exactly_before_the_fill(struct api_fixture *f, const char *revision) {
        static char query[80];

        (void)snprintf(query, sizeof query, "resourceVersion=%s&resourceVersionMatch=Exact",
                       revision);
        api_fixture_make(f, api_workspaces, NULL, "{\"metadata\":{\"name\":\"later\"}}");
        assert_int_equal(hfd_cacher_refill(f->cacher, hf_cancel_never()), 0);
        return query;
}

static void test_only_the_pool_makes_large_lists(void **state) {
        static const char *const queries[] = {
                "",                  /* goes on when the store has replied */
                "resourceVersion=0", /* needs no store */
                "limit=200",         /* a page */
                "limit=9",           /* a small page of a large list */
                "labelSelector=parity%3Dodd",
                "resourceVersion=0&labelSelector=parity%3Dnone",
        };
        struct api_fixture *f = *state;

        api_fixture_make_workspaces(f, N_OBJECTS);
        assert_int_equal(api_fixture_n_selected(f, NULL), N_OBJECTS);
        for (size_t i = 0; i < sizeof queries / sizeof queries[0]; i++)
                for (int protobuf = 0; protobuf <= 1; protobuf++) {
                        assert_true(list(f, queries[i], protobuf) > 0);
                        assert_true(atomic_load(&n_calls) > 0);
                        assert_int_equal(atomic_load(&n_elsewhere), 0);
                }
        const char *query =
                exactly_before_the_fill(f, api_fixture_text_at(f, "metadata.resourceVersion"));
        assert_true(list(f, query, false) > 0);
        assert_true(atomic_load(&n_calls) > 0);
        assert_int_equal(atomic_load(&n_elsewhere), 0);
}

static void test_only_the_pool_makes_lists_of_few_large_objects(void **state) {
        enum { LARGE = 100 << 10 };
        static char body[LARGE + 100], filler[LARGE];
        struct api_fixture *f = *state;

        memset(filler, 'x', sizeof filler - 1);
        for (int i = 0; i < 2; i++) {
                (void)snprintf(body, sizeof body,
                               "{\"metadata\":{\"name\":\"w%d\",\"annotations\":{\"a\":\"%s\"}}}",
                               i, filler);
                api_fixture_make(f, api_workspaces, NULL, body);
        }
        assert_int_equal(api_fixture_n_selected(f, NULL), 2);
        const char *query =
                exactly_before_the_fill(f, api_fixture_text_at(f, "metadata.resourceVersion"));
        assert_true(list(f, query, false) > LARGE);
        assert_true(atomic_load(&n_calls) > 0);
        assert_int_equal(atomic_load(&n_elsewhere), 0);
}

static void test_a_client_may_leave_while_its_list_is_submitted(void **state) {
        struct api_fixture *f = *state;

        api_fixture_make_workspaces(f, N_OBJECTS);
        atomic_store(&leaves, true);
        assert_int_equal(list_or_leave(f, "", false, true), 0);
        assert_false(atomic_load(&leaves));
        assert_true(list(f, "", false) > 0); /* the pool is as good as before */
}

int main(void) {
        const struct CMUnitTest tests[] = {
                API_TEST(test_only_the_pool_makes_large_lists),
                API_TEST(test_only_the_pool_makes_lists_of_few_large_objects),
                API_TEST(test_a_client_may_leave_while_its_list_is_submitted),
        };
        return cmocka_run_group_tests(tests, NULL, NULL);
}

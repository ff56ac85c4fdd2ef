/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The initial events of a watch over HTTP, also without memory for them. The HTTP request is a fake
 * one: this file has the functions of http.h that a watch calls.
 */
#undef NDEBUG
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>
#include <errno.h>
#include <pthread.h>
#include <stdatomic.h>
#include <stdlib.h>
#include <string.h>

#include "api_fixture.h"
#include "base/thread.h"
#include "patience.h"
#include "server/handlers/rest/rest_watch.h"
#include "server/registry/list/rendering.h"
#include "server/resources/rows/resource_table.h"

/* ---- no memory: the linker redirects hfd_rendering_get here ---- */

static atomic_bool is_short;
int __real_hfd_rendering_get(struct hfd_renderings *renderings,
                             const struct hfd_rendering_spec *spec, struct hfd_snapshot *snapshot,
                             struct hfd_rendering **ret_rendering);
int __wrap_hfd_rendering_get(struct hfd_renderings *renderings,
                             const struct hfd_rendering_spec *spec, struct hfd_snapshot *snapshot,
                             struct hfd_rendering **ret_rendering);
int __wrap_hfd_rendering_get(struct hfd_renderings *renderings,
                             const struct hfd_rendering_spec *spec, struct hfd_snapshot *snapshot,
                             struct hfd_rendering **ret_rendering) {
        if (!atomic_load(&is_short))
                return __real_hfd_rendering_get(renderings, spec, snapshot, ret_rendering);
        hfd_snapshot_done(snapshot);
        return -ENOMEM;
}

/* ---- the request ---- */

struct hfd_http_request {
        pthread_mutex_t mu;
        pthread_cond_t cond;
        int refs;
        void *context;
        void (*context_free)(void *context);
        void *gone_ctx;
        void (*gone)(void *ctx);
        char text[65536]; /* what was pushed */
        size_t n_text;
        bool ended, freed;
};

struct hfd_http_request *hfd_http_request_ref(struct hfd_http_request *request) {
        pthread_mutex_lock(&request->mu);
        request->refs++;
        pthread_mutex_unlock(&request->mu);
        return request;
}

struct hfd_http_request *hfd_http_request_unref(struct hfd_http_request *request) {
        pthread_mutex_lock(&request->mu);
        bool last = --request->refs == 0;
        pthread_mutex_unlock(&request->mu);
        if (last)
                request->context_free(request->context);
        pthread_mutex_lock(&request->mu);
        request->freed = request->freed || last;
        pthread_cond_broadcast(&request->cond);
        pthread_mutex_unlock(&request->mu);
        return NULL;
}

void hfd_http_request_set_handler_context(struct hfd_http_request *request, void *context,
                                          void (*free_fn)(void *context)) {
        request->context = context;
        request->context_free = free_fn;
}

/* NULL: the request is not audited. */
void *hfd_http_request_context(struct hfd_http_request *request) { return NULL; }

void hfd_http_request_on_gone(struct hfd_http_request *request, void (*fn)(void *ctx), void *ctx) {
        request->gone = fn;
        request->gone_ctx = ctx;
}

void hfd_http_request_on_drained(struct hfd_http_request *request, size_t low,
                                 void (*fn)(void *ctx), void *ctx) {}

void hfd_http_request_stream(struct hfd_http_request *request, int code, const char *content_type,
                             const struct hfd_header *headers, size_t n_headers) {
        assert_int_equal(code, 200);
}

int hfd_http_request_push(struct hfd_http_request *request, struct hf__buf *piece) {
        pthread_mutex_lock(&request->mu);
        assert_true(request->n_text + piece->n < sizeof request->text);
        memcpy(request->text + request->n_text, piece->data, piece->n);
        request->n_text += piece->n;
        pthread_cond_broadcast(&request->cond);
        pthread_mutex_unlock(&request->mu);
        return 0;
}

void hfd_http_request_end(struct hfd_http_request *request) {
        pthread_mutex_lock(&request->mu);
        request->ended = true;
        pthread_cond_broadcast(&request->cond);
        pthread_mutex_unlock(&request->mu);
}

bool hfd_http_request_cut_stalled(struct hfd_http_request *request, hf_nsec since) { return false; }
size_t hfd_http_request_unsent(struct hfd_http_request *request) { return 0; }
const char *hfd_http_request_query(struct hfd_http_request *request) { return ""; }
const char *hfd_http_request_header(struct hfd_http_request *request, const char *name) {
        return NULL;
}
void hfd_http_request_reply(struct hfd_http_request *request, int code, const char *content_type,
                            const struct hfd_header *headers, size_t n_headers,
                            struct hf__buf *body) {
        fail_msg("the watch was refused with %d", code);
}

/* Static, because a watch that fails its test still uses it. */
static struct hfd_http_request request;
static struct hfd_rest_request rest;

/* A running watch does not use the memory of its request any more. */
void hfd_http_request_free_allocated(struct hfd_http_request *of) {
        assert_ptr_equal(of, &request);
        memset(&rest, 0xa5, sizeof rest);
}

/* ---- tests ---- */

static void begin_watch(struct api_fixture *f) {
        memset(&rest, 0, sizeof rest);
        memset(&request, 0, sizeof request);
        assert_int_equal(hf__mutex_cond_init(&request.mu, &request.cond), 0);
        request.refs = 1;
        rest.registry = f->registry;
        rest.http_request = &request;
        rest.request.verb = HFD_WATCH;
        rest.request.resource = hfd_resource_find(api_workspaces.group, api_workspaces.version,
                                                  api_workspaces.plural);
        hfd_rest_watch(&rest);
}

/* Waits until the name was pushed, or the response has ended. Returns whether it was pushed. */
static bool await_name(const char *name) {
        pthread_mutex_lock(&request.mu);
        PATIENCE_AWAIT_LOCKED(&request.cond, &request.mu,
                              memmem(request.text, request.n_text, name, strlen(name)) ||
                                      request.ended);
        bool pushed = memmem(request.text, request.n_text, name, strlen(name)) != NULL;
        pthread_mutex_unlock(&request.mu);
        return pushed;
}

static void await_freed(void) {
        pthread_mutex_lock(&request.mu);
        PATIENCE_AWAIT_LOCKED(&request.cond, &request.mu, request.freed);
        pthread_mutex_unlock(&request.mu);
        pthread_cond_destroy(&request.cond);
        pthread_mutex_destroy(&request.mu);
}

static void make_later(struct api_fixture *f) {
        assert_int_equal(api_fixture_request(f, HF_VERB_CREATE, api_workspaces, NULL, NULL, NULL,
                                             "{\"metadata\":{\"name\":\"later\"}}"),
                         0);
}

static void test_a_watch_begins_with_the_objects_that_exist(void **state) {
        struct api_fixture *f = *state;

        api_fixture_make_workspaces(f, 2);
        assert_int_equal(api_fixture_n_selected(f, NULL), 2);
        begin_watch(f);
        make_later(f);
        assert_true(await_name("\"later\""));
        assert_true(await_name("\"w00\"") && await_name("\"w01\""));
        request.gone(request.gone_ctx);
        await_freed();
}

/* A watch without its initial events would tell the client that there are no objects. */
static void test_a_watch_ends_without_memory_for_the_objects(void **state) {
        struct api_fixture *f = *state;

        api_fixture_make_workspaces(f, 2);
        assert_int_equal(api_fixture_n_selected(f, NULL), 2);
        atomic_store(&is_short, true);
        begin_watch(f);
        atomic_store(&is_short, false);
        make_later(f);
        assert_false(await_name("\"later\""));
        await_freed();
}

int main(void) {
        const struct CMUnitTest tests[] = {
                API_TEST(test_a_watch_begins_with_the_objects_that_exist),
                API_TEST(test_a_watch_ends_without_memory_for_the_objects),
        };
        return cmocka_run_group_tests(tests, NULL, NULL);
}

/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The initial events of a watch over HTTP, also without memory for them, and an end while a webhook
 * converts. The HTTP request is a fake one (streamed_request.h).
 */
#undef NDEBUG
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>
#include <errno.h>
#include <stdatomic.h>
#include <stdlib.h>
#include <string.h>

#include "api_fixture.h"
#include "patience.h"
#include "server/handlers/rest/rest_request.h"
#include "server/handlers/rest/rest_watch.h"
#include "server/handlers/rest/watch_events.h"
#include "server/registry/convert/watch_conversion.h"
#include "server/registry/list/rendering.h"
#include "server/resources/rows/resource_table.h"
#include "streamed_request.h"

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

/* ---- objects that a webhook converts: the linker redirects these functions here ---- */

static struct {
        const struct hfd_watch_conversion_sink *sink;
        void *ctx;
} conversion;

static bool needs_version;

bool __real_hfd_conversion_is_elsewhere(const struct hfd_resource *row);
bool __wrap_hfd_conversion_is_elsewhere(const struct hfd_resource *row);
bool __wrap_hfd_conversion_is_elsewhere(const struct hfd_resource *row) {
        return needs_version || __real_hfd_conversion_is_elsewhere(row);
}

struct hfd_watch_conversion *
__wrap_hfd_watch_conversion_new(struct hfd_registry *registry, const struct hfd_request *of,
                                const struct hfd_watch_conversion_sink *sink, void *ctx);
struct hfd_watch_conversion *
__wrap_hfd_watch_conversion_new(struct hfd_registry *registry, const struct hfd_request *of,
                                const struct hfd_watch_conversion_sink *sink, void *ctx) {
        conversion.sink = sink;
        conversion.ctx = ctx;
        return malloc(1);
}

struct hfd_watch_conversion *__wrap_hfd_watch_conversion_unref(struct hfd_watch_conversion *c);
struct hfd_watch_conversion *__wrap_hfd_watch_conversion_unref(struct hfd_watch_conversion *c) {
        free(c);
        return NULL;
}

/* A batch is always being delivered. */
bool __wrap_hfd_watch_conversion_end(struct hfd_watch_conversion *c);
bool __wrap_hfd_watch_conversion_end(struct hfd_watch_conversion *c) { return false; }

/* Static, because a watch that fails its test still uses it. */
static struct hfd_http_request request;
static struct hfd_rest_request rest;

/* A running watch does not use the memory of its request any more. */
static void free_rest(void) { memset(&rest, 0xa5, sizeof rest); }

/* ---- tests ---- */

static void make_rest(struct api_fixture *f) {
        memset(&rest, 0, sizeof rest);
        streamed_request_init(&request);
        request.free_allocated = free_rest;
        rest.registry = f->registry;
        rest.http_request = &request;
        rest.request.verb = HFD_WATCH;
        rest.request.resource = hfd_resource_find(api_workspaces.group, api_workspaces.version,
                                                  api_workspaces.plural);
}

static void begin_watch(struct api_fixture *f) {
        make_rest(f);
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
        streamed_request_done(&request);
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
        streamed_request_done(&request);
}

/* A client that is too slow must learn that it has to list again. */
static void test_a_watch_that_ends_during_a_delivery_says_why(void **state) {
        struct api_fixture *f = *state;
        struct hfd_response response = {.body = hf__buf_copy("{\"code\":410}", 12)};

        make_rest(f);
        struct hfd_watch_stream *stream = hfd_watch_stream_new(&rest);
        assert_non_null(stream);
        atomic_store(&stream->n_users, 2);
        needs_version = true;
        assert_int_equal(hfd_watch_stream_prepare_conversion(stream, &rest.request), 0);
        needs_version = false;
        hfd_watch_stream_sink.end(stream, HF_E_GONE, &response);
        hf__buf_unref(response.body);
        assert_false(request.ended);
        conversion.sink->ended(conversion.ctx);
        assert_true(request.ended);
        assert_true(await_name("\"ERROR\"") && await_name("\"code\":410"));
        hfd_http_request_unref(&request);
        streamed_request_done(&request);
}

int main(void) {
        const struct CMUnitTest tests[] = {
                API_TEST(test_a_watch_begins_with_the_objects_that_exist),
                API_TEST(test_a_watch_ends_without_memory_for_the_objects),
                API_TEST(test_a_watch_that_ends_during_a_delivery_says_why),
        };
        return cmocka_run_group_tests(tests, NULL, NULL);
}

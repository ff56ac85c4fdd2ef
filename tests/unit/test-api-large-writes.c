/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Large writes are computed by the pool of threads: while all its threads are busy, small writes
 * are answered and large ones wait. Writes to a subresource of a large object count as large too,
 * although their bodies are small. A large write whose client has left, or that the pool does not
 * take, changes nothing.
 */
#undef NDEBUG
#include <assert.h>
#include <pthread.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stdatomic.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#include "api_core_request.h"
#include "api_fixture.h"
#include "base/json.h"
#include "base/strbuf.h"
#include "base/thread.h"
#include "patience.h"
#include "server/pool/work_pool.h"
#include "server/registry/base/large_work.h"
#include "server/registry/registry.h"
#include "server/resources/rows/resource_table.h"

/* ---- the pool is busy ---- */

#define N_GATES 2 /* the threads of the pool (registry.c) */

struct gate {
        struct hfd_work_task task; /* first */
        struct gates *gates;
};

struct gates {
        pthread_mutex_t mu;
        pthread_cond_t cond;
        bool open;
        unsigned n_waiting, n_left;
        struct gate all[N_GATES];
};

static enum hfd_work_result wait_at_gate(struct hfd_work_task *task) {
        struct gates *gates = ((struct gate *)task)->gates;

        pthread_mutex_lock(&gates->mu);
        gates->n_waiting++;
        pthread_cond_broadcast(&gates->cond);
        PATIENCE_AWAIT_LOCKED(&gates->cond, &gates->mu, gates->open);
        gates->n_left--;
        pthread_cond_broadcast(&gates->cond);
        pthread_mutex_unlock(&gates->mu);
        return HFD_WORK_DONE;
}

/* Occupies n threads of the pool, by tasks with long or short steps. */
static void close_some_gates(struct api_fixture *f, struct gates *gates, unsigned n, bool is_long) {
        *gates = (struct gates){.n_left = n};
        assert_int_equal(hf__mutex_cond_init(&gates->mu, &gates->cond), 0);
        for (unsigned i = 0; i < n; i++) {
                gates->all[i] = (struct gate){.task = {.step = wait_at_gate, .long_step = is_long},
                                              .gates = gates};
                assert_true(hfd_work_submit(f->registry->work, &gates->all[i].task));
        }
        pthread_mutex_lock(&gates->mu);
        PATIENCE_AWAIT_LOCKED(&gates->cond, &gates->mu, gates->n_waiting >= n);
        pthread_mutex_unlock(&gates->mu);
}

/* Occupies every thread of the pool. */
static void close_gates(struct api_fixture *f, struct gates *gates) {
        close_some_gates(f, gates, N_GATES, false);
}

static void open_gates(struct gates *gates) {
        pthread_mutex_lock(&gates->mu);
        gates->open = true;
        pthread_cond_broadcast(&gates->cond);
        PATIENCE_AWAIT_LOCKED(&gates->cond, &gates->mu, gates->n_left == 0);
        pthread_mutex_unlock(&gates->mu);
        pthread_cond_destroy(&gates->cond);
        pthread_mutex_destroy(&gates->mu);
}

/* ---- requests that end later ---- */

struct later {
        struct hfd_request request; /* first */
        pthread_mutex_t mu;
        pthread_cond_t cond;
        bool done;
        pthread_t thread; /* the thread that ended the request */
        int code, error;
        size_t n_body; /* of the response */
};

static void on_done(struct hfd_request *request, const struct hfd_response *response) {
        struct later *later = (struct later *)request;

        pthread_mutex_lock(&later->mu);
        later->done = true;
        later->thread = pthread_self();
        later->code = response->code;
        later->error = response->status.error;
        later->n_body = response->body ? response->body->n : 0;
        pthread_cond_broadcast(&later->cond);
        pthread_mutex_unlock(&later->mu);
}

static void begin_any(struct api_fixture *f, struct later *later, enum hfd_verb verb,
                      const struct hfd_resource *resource, const char *name, const char *body) {
        later->done = false;
        later->request.verb = verb;
        later->request.patch = HFD_PATCH_MERGE;
        later->request.resource = resource;
        (void)snprintf(later->request.ns, sizeof later->request.ns, "default");
        (void)snprintf(later->request.name, sizeof later->request.name, "%s", name);
        later->request.body = body;
        later->request.n_body = strlen(body);
        later->request.deadline = in_msec(60000);
        later->request.owner = 1; /* another owner than that of the gates */
        later->request.done = on_done;
        assert_int_equal(hf__mutex_cond_init(&later->mu, &later->cond), 0);
        hfd_registry_serve(f->registry, &later->request);
}

static void begin(struct api_fixture *f, struct later *later, enum hfd_verb verb, const char *name,
                  const char *body) {
        begin_any(f, later, verb, hfd_resource_find("", "v1", "configmaps"), name, body);
}

/* Begins a request to a subresource, with the fields that handlers/rest/rest.c sets. */
static void begin_part(struct api_fixture *f, struct later *later, enum hfd_verb verb,
                       const struct hfd_resource *of, enum hfd_subresource part, const char *name,
                       const char *body) {
        const struct hfd_resource *other = hfd_resource_of_part(part);

        later->request.part_of = of;
        later->request.subresource = part;
        begin_any(f, later, verb, other ? other : of, name, body);
}

static bool is_done(struct later *later) {
        pthread_mutex_lock(&later->mu);
        bool done = later->done;
        pthread_mutex_unlock(&later->mu);
        return done;
}

static void end(struct later *later, int error, int code) {
        pthread_mutex_lock(&later->mu);
        PATIENCE_AWAIT_LOCKED(&later->cond, &later->mu, later->done);
        pthread_mutex_unlock(&later->mu);
        assert_int_equal(later->error, error);
        assert_int_equal(later->code, code);
        pthread_cond_destroy(&later->cond);
        pthread_mutex_destroy(&later->mu);
        hfd_options_done(&later->request.options);
}

/* ---- objects ---- */

/* A ConfigMap, or a merge patch of one, with about n bytes of data. The caller frees it. */
static char *make_body(const char *name, const char *prefix, size_t n) {
        struct hf__strbuf s = {0};

        hf__strbuf_puts(&s, "{");
        if (name)
                hf__strbuf_printf(&s, "\"metadata\":{\"name\":\"%s\"},", name);
        hf__strbuf_puts(&s, "\"data\":{\"first\":\"\"");
        for (size_t i = 0; s.n < n; i++)
                hf__strbuf_printf(&s, ",\"%s%zu\":\"\"", prefix, i);
        hf__strbuf_puts(&s, "}}");
        char *body = strdup(s.data);
        hf__strbuf_done(&s);
        return body;
}

static void create(struct api_fixture *f, const char *name, size_t n) {
        char *body = make_body(name, "k", n);

        assert_int_equal(api_fixture_request(f, HF_VERB_CREATE, api_configmaps, "default", NULL,
                                             NULL, body),
                         0);
        free(body);
        /* The cached object decides whether a write is large. This read waits until the object is
         * cached. */
        assert_int_equal(api_fixture_request(f, HF_VERB_GET, api_configmaps, "default", name, NULL,
                                             NULL),
                         0);
}

static int patch_small(struct api_fixture *f, const char *name) {
        return api_fixture_patch(f, api_configmaps, "default", name, HFD_SUB_NONE, HFD_PATCH_MERGE,
                                 NULL, "{\"data\":{\"new\":\"\"}}");
}

/* ---- tests ---- */

/* Each of these is large: its body, the stored object, or both. Small writes do not wait. */
static void test_large_writes_wait_for_the_pool(void **state) {
        struct api_fixture *f = *state;
        char *body = make_body(NULL, "p", 2 * HFD_LARGE_BODY);
        char *whole = make_body("c", "w", 2 * HFD_LARGE_BODY);
        struct later large[5] = {0};
        struct gates gates;

        create(f, "small", 100);
        create(f, "large", 2 * HFD_LARGE_BODY);
        create(f, "gone", 2 * HFD_LARGE_BODY);
        close_gates(f, &gates);
        begin(f, &large[0], HFD_PATCH, "small", body);
        begin(f, &large[1], HFD_PATCH, "large", "{\"data\":{\"new\":\"\"}}");
        begin(f, &large[2], HFD_DELETE_OBJECT, "gone", "");
        begin(f, &large[3], HFD_CREATE, "", whole);
        begin(f, &large[4], HFD_PATCH, "large", "{\"data\":");
        create(f, "other", 100);
        assert_int_equal(patch_small(f, "other"), 0);
        assert_int_equal(patch_small(f, "small"), 0);
        for (int i = 0; i < 4; i++)
                assert_false(is_done(&large[i]));
        open_gates(&gates);
        end(&large[0], 0, 200);
        end(&large[1], 0, 200);
        end(&large[2], 0, 200);
        end(&large[3], 0, 201);
        end(&large[4], HF_E_INVALID, 400); /* a small body is parsed at once */
        for (int i = 0; i < 4; i++)
                assert_false(pthread_equal(large[i].thread, pthread_self()));
        assert_true(large[0].n_body > 2 * HFD_LARGE_BODY);
        free(body);
        free(whole);
}

/* A task with short steps of the owner of the requests. It passes large writes that wait. */
struct short_task {
        struct hfd_work_task task; /* first */
        atomic_bool ran;
};

static enum hfd_work_result run_short(struct hfd_work_task *task) {
        atomic_store(&((struct short_task *)task)->ran, true);
        return HFD_WORK_IDLE;
}

/* While a large write is computed, the other threads are kept for work with short steps, such as
 * lists, although a further large write came first. */
static void test_large_writes_leave_a_thread_to_lists(void **state) {
        struct api_fixture *f = *state;
        char *body = make_body(NULL, "p", 2 * HFD_LARGE_BODY);
        struct short_task list = {.task = {.step = run_short, .owner = 1}};
        struct later large = {0};
        struct gates gates;

        create(f, "small", 100);
        body[strlen(body) - 1] = '\0'; /* it is refused as soon as it is parsed */
        close_some_gates(f, &gates, 1, true);
        begin(f, &large, HFD_PATCH, "small", body);
        assert_true(hfd_work_submit(f->registry->work, &list.task));
        PATIENCE_AWAIT(atomic_load(&list.ran));
        bool waits = !is_done(&large);
        open_gates(&gates);
        end(&large, HF_E_INVALID, 400);
        assert_true(waits);
        free(body);
}

/* The client leaves while its write waits: the object does not change. */
static void test_a_write_without_client_changes_nothing(void **state) {
        struct api_fixture *f = *state;
        struct later large = {0};
        atomic_bool gone = false;
        struct gates gates;

        create(f, "large", 2 * HFD_LARGE_BODY);
        close_gates(f, &gates);
        large.request.abandoned = &gone;
        begin(f, &large, HFD_PATCH, "large", "{\"data\":{\"new\":\"\"}}");
        atomic_store(&gone, true);
        open_gates(&gates);
        end(&large, HF_E_UNAVAILABLE, 503);
        assert_int_equal(api_fixture_request(f, HF_VERB_GET, api_configmaps, "default", "large",
                                             NULL, NULL),
                         0);
        assert_null(strstr(f->last.body, "\"new\""));
}

static void test_too_many_large_writes_are_refused(void **state) {
        struct api_fixture *f = *state;
        struct later *large = calloc(HFD_LARGE_WORK_MAX, sizeof *large);
        struct gates gates;
        size_t n = HFD_LARGE_WORK_MAX - N_GATES;

        assert_non_null(large);
        create(f, "large", 2 * HFD_LARGE_BODY);
        close_gates(f, &gates);
        for (size_t i = 0; i <= n; i++) {
                large[i].request.options.dry_run = true; /* no conflicts between them */
                begin(f, &large[i], HFD_PATCH, "large", "{\"data\":{\"first\":null}}");
        }
        end(&large[n], HF_E_TOO_MANY, 429);
        assert_int_equal(hfd_work_pending(f->registry->work), HFD_LARGE_WORK_MAX);
        open_gates(&gates);
        for (size_t i = 0; i < n; i++)
                end(&large[i], 0, 200);
        free(large);
}

/* ---- parts of large objects ---- */

static const struct hf_resource pods = {"", "v1", "pods"}, accounts = {"", "v1", "serviceaccounts"},
                                deployments = {"apps", "v1", "deployments"};

#define CONTAINERS                                                                                 \
        "\"containers\":[{\"name\":\"c\",\"image\":\"i\",\"resources\":{\"requests\":{\"cpu\":"    \
        "\"1\"}}}]"

/* Creates an object with n bytes of annotations, and waits until the cache has it. */
static void create_annotated(struct api_fixture *f, struct hf_resource resource, const char *name,
                             size_t n, const char *spec) {
        struct hf__strbuf s = {0};

        hf__strbuf_printf(&s, "{\"metadata\":{\"name\":\"%s\",\"annotations\":{\"a\":\"", name);
        for (size_t i = 0; i < n; i++)
                hf__strbuf_putc(&s, 'x');
        hf__strbuf_printf(&s, "\"}},\"spec\":{%s}}", spec);
        api_fixture_make(f, resource, "default", s.data);
        assert_int_equal(api_fixture_get(f, resource, "default", name), 0);
        hf__strbuf_done(&s);
}

static void create_pods_and_deployment(struct api_fixture *f) {
        static const char *const large[] = {"bound", "evicted", "debugged", "resized"};
        static const char of_deployment[] =
                "\"selector\":{\"matchLabels\":{\"a\":\"b\"}},\"template\":{\"metadata\":{"
                "\"labels\":{\"a\":\"b\"}},\"spec\":{" CONTAINERS "}}";

        create_annotated(f, accounts, "default", 1, "");
        for (size_t i = 0; i < sizeof large / sizeof large[0]; i++)
                create_annotated(f, pods, large[i], 2 * HFD_LARGE_BODY, CONTAINERS);
        create_annotated(f, pods, "small", 1, CONTAINERS);
        create_annotated(f, pods, "other", 1, CONTAINERS);
        create_annotated(f, deployments, "large", 2 * HFD_LARGE_BODY, of_deployment);
}

/* A Binding with about n bytes of annotations. The caller frees it. */
static char *make_binding(const char *name, size_t n) {
        struct hf__strbuf s = {0};

        hf__strbuf_printf(&s,
                          "{\"apiVersion\":\"v1\",\"kind\":\"Binding\",\"target\":{\"name\":\"n\"},"
                          "\"metadata\":{\"name\":\"%s\",\"annotations\":{\"b\":\"",
                          name);
        for (size_t i = 0; i < n; i++)
                hf__strbuf_putc(&s, 'y');
        hf__strbuf_puts(&s, "\"}}}");
        char *body = strdup(s.data);
        hf__strbuf_done(&s);
        return body;
}

/* Each of these writes is large because of the stored object, the body, or both. */
static void test_parts_of_large_objects_wait_for_the_pool(void **state) {
        struct api_fixture *f = *state;
        const struct hfd_resource *pod = hfd_resource_find("", "v1", "pods"),
                                  *deployment = hfd_resource_find("apps", "v1", "deployments");
        static const struct {
                enum hfd_verb verb;
                enum hfd_subresource part;
                const char *name, *body;
                int code;
        } cases[] = {
                {HFD_CREATE, HFD_SUB_EVICTION, "evicted",
                 "{\"apiVersion\":\"policy/"
                 "v1\",\"kind\":\"Eviction\",\"metadata\":{\"name\":\"evicted\"}}",
                 201},
                {HFD_PATCH, HFD_SUB_EPHEMERAL_CONTAINERS, "debugged",
                 "{\"spec\":{\"ephemeralContainers\":[{\"name\":\"e\",\"image\":\"i\"}]}}", 200},
                {HFD_PATCH, HFD_SUB_RESIZE, "resized",
                 "{\"spec\":{\"containers\":[{\"name\":\"c\",\"resources\":{\"requests\":{\"cpu\":"
                 "\"2\"}}}]}}",
                 200},
                {HFD_PATCH, HFD_SUB_STATUS, "resized", "{\"status\":{\"phase\":\"Running\"}}", 200},
                {HFD_PATCH, HFD_SUB_SCALE, "large", "{\"spec\":{\"replicas\":3}}", 200},
                {HFD_GET, HFD_SUB_SCALE, "large", "", 200},
        };
        enum { N = sizeof cases / sizeof cases[0] };
        struct later parts[N] = {0}, bindings[2] = {0}, small = {0};
        char *binding = make_binding("bound", 1), *other_binding = make_binding("other", 1),
             *large_binding = make_binding("small", 2 * HFD_LARGE_BODY);
        struct gates gates;

        create_pods_and_deployment(f);
        close_gates(f, &gates);
        for (int i = 0; i < N; i++)
                begin_part(f, &parts[i], cases[i].verb,
                           cases[i].part == HFD_SUB_SCALE ? deployment : pod, cases[i].part,
                           cases[i].name, cases[i].body);
        begin_part(f, &bindings[0], HFD_CREATE, pod, HFD_SUB_BINDING, "bound", binding);
        begin_part(f, &bindings[1], HFD_CREATE, pod, HFD_SUB_BINDING, "small", large_binding);
        /* Writes that read the object first go to the pool only after that. */
        PATIENCE_AWAIT(hfd_work_pending(f->registry->work) == N_GATES + N + 2);
        begin_part(f, &small, HFD_CREATE, pod, HFD_SUB_BINDING, "other", other_binding);
        end(&small, 0, 201);
        for (int i = 0; i < N; i++)
                assert_false(is_done(&parts[i]));
        open_gates(&gates);
        for (int i = 0; i < N; i++)
                end(&parts[i], 0, cases[i].code);
        for (int i = 0; i < 2; i++)
                end(&bindings[i], 0, 201);
        assert_int_equal(api_fixture_get(f, pods, "default", "small"), 0);
        assert_string_equal(api_fixture_text_at(f, "spec.nodeName"), "n");
        assert_int_equal(api_fixture_get(f, pods, "default", "bound"), 0);
        assert_string_equal(api_fixture_text_at(f, "spec.nodeName"), "n");
        free(binding);
        free(other_binding);
        free(large_binding);
}

/* A Binding that waits for the pool when it stops, or whose client leaves, names no node. */
static void test_a_binding_without_client_changes_nothing(void **state) {
        struct api_fixture *f = *state;
        struct later later = {0};
        atomic_bool gone = false;
        char *binding = make_binding("bound", 1);
        struct gates gates;

        create_pods_and_deployment(f);
        close_gates(f, &gates);
        later.request.abandoned = &gone;
        begin_part(f, &later, HFD_CREATE, hfd_resource_find("", "v1", "pods"), HFD_SUB_BINDING,
                   "bound", binding);
        PATIENCE_AWAIT(hfd_work_pending(f->registry->work) == N_GATES + 1);
        atomic_store(&gone, true);
        open_gates(&gates);
        end(&later, HF_E_UNAVAILABLE, 503);
        assert_int_equal(api_fixture_get(f, pods, "default", "bound"), 0);
        assert_string_equal(api_fixture_text_at(f, "spec.nodeName"), "");
        free(binding);
}

static void *stop_pool(void *ctx) {
        hfd_work_pool_stop(ctx);
        return NULL;
}

/* A stop ends the writes that wait, and large writes are refused from then on. */
static void test_a_stop_ends_waiting_writes(void **state) {
        struct api_fixture *f = *state;
        struct later waiting = {0}, late = {0};
        pthread_t thread;
        struct gates gates;

        create(f, "large", 2 * HFD_LARGE_BODY);
        create(f, "small", 100);
        close_gates(f, &gates);
        begin(f, &waiting, HFD_PATCH, "large", "{\"data\":{\"first\":null}}");
        assert_int_equal(pthread_create(&thread, NULL, stop_pool, f->registry->work), 0);
        PATIENCE_AWAIT(hfd_work_is_cancelled(f->registry->work, &gates.all[0].task));
        open_gates(&gates);
        pthread_join(thread, NULL);
        end(&waiting, HF_E_UNAVAILABLE, 503);
        begin(f, &late, HFD_PATCH, "large", "{\"data\":{\"first\":null}}");
        end(&late, HF_E_UNAVAILABLE, 503);
        assert_int_equal(patch_small(f, "small"), 0);
}

/* ---- concurrent large patches: each is applied, none undoes another ---- */

struct patcher {
        struct api_fixture *f;
        int index;
};

static void *patch_often(void *ctx) {
        struct patcher *p = ctx;
        char body[120];

        for (int i = 0; i < 10; i++) {
                struct later patch = {0};
                (void)snprintf(body, sizeof body, "{\"data\":{\"n%d-%d\":\"\"}}", p->index, i);
                begin(p->f, &patch, HFD_PATCH, "large", body);
                end(&patch, 0, 200);
        }
        return NULL;
}

static void test_concurrent_large_patches_are_all_applied(void **state) {
        struct api_fixture *f = *state;
        struct patcher patchers[4];
        pthread_t threads[4];
        size_t before;

        create(f, "large", 2 * HFD_LARGE_BODY);
        before = api_fixture_count_at(f, "data");
        for (int i = 0; i < 4; i++) {
                patchers[i] = (struct patcher){f, i};
                assert_int_equal(pthread_create(&threads[i], NULL, patch_often, &patchers[i]), 0);
        }
        for (int i = 0; i < 4; i++)
                pthread_join(threads[i], NULL);
        assert_int_equal(api_fixture_request(f, HF_VERB_GET, api_configmaps, "default", "large",
                                             NULL, NULL),
                         0);
        assert_int_equal(api_fixture_count_at(f, "data"), before + 40);
}

int main(void) {
        hfd_resources_add_workloads();
        const struct CMUnitTest tests[] = {
                API_TEST(test_large_writes_wait_for_the_pool),
                API_TEST(test_large_writes_leave_a_thread_to_lists),
                API_TEST(test_a_write_without_client_changes_nothing),
                API_TEST(test_too_many_large_writes_are_refused),
                API_TEST(test_parts_of_large_objects_wait_for_the_pool),
                API_TEST(test_a_binding_without_client_changes_nothing),
                API_TEST(test_a_stop_ends_waiting_writes),
                API_TEST(test_concurrent_large_patches_are_all_applied),
        };
        return cmocka_run_group_tests(tests, NULL, NULL);
}

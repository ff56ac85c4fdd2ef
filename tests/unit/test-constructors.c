/* SPDX-License-Identifier: Apache-2.0 */
/* Constructors of the library, the cacher and the stores that fail at each of their steps. */
#undef NDEBUG
#include <errno.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include <cmocka.h>

#include <holdfast/bootstrap.h>
#include <holdfast/cancel.h>
#include <holdfast/candidate.h>
#include <holdfast/client_port.h>
#include <holdfast/health.h>
#include <holdfast/hooks.h>
#include <holdfast/informer.h>
#include <holdfast/leader.h>
#include <holdfast/loop.h>
#include <holdfast/recorder.h>
#include <holdfast/workqueue.h>

#include "base/http/engine.h"
#include "cel/library.h"
#include "failing_constructor.h"
#include "server/cacher/cacher.h"
#include "server/storage/etcd/store.h"
#include "server/storage/memory/store.h"
#include "server/storage/sqlite/store.h"

static struct hf_host host = {.size = sizeof host};
static struct hf_client *client; /* it is never used, only borrowed */
static struct hfd_store *store;  /* likewise */
static char directory[64], lock_path[128], store_path[128], token_path[128];

/* ---- the library ---- */

static int make_tokens(void) {
        struct hf_cancel *parent = NULL, *child = NULL;
        int r = hf_cancel_new(NULL, NULL, &parent);

        if (r == 0)
                r = hf_cancel_new(parent, NULL, &child);
        hf_cancel_unref(child);
        hf_cancel_unref(parent);
        return r;
}

static bool check_nothing(void *ctx, char *reason, size_t max_reason) { return true; }

static int make_health(void) {
        struct hf_health *health = NULL;
        int r = hf_health_new(&health);

        if (r == 0)
                r = hf_health_add(health, "a", HF_READYZ, check_nothing, NULL);
        hf_health_free(health);
        return r;
}

static int make_loop(void) {
        struct hf_loop *loop = NULL;
        int r = hf_loop_new(&loop);

        hf_loop_free(loop);
        return r;
}

static int make_engine(void) {
        struct hf__http_engine *engine = NULL;
        int r = hf__http_engine_new(&host, "engine", &engine);

        hf__http_engine_free(engine);
        return r;
}

static int make_expressions(void) {
        struct hf__cel_library *library = NULL;
        int r = hf__cel_library_new(NULL, &library);

        hf__cel_library_free(library);
        return r;
}

static int make_client(void) {
        const struct hf_rest_config config = {.size = sizeof config,
                                              .server = "https://127.0.0.1:1",
                                              .token_file = token_path,
                                              .server_name = "a.test"};
        struct hf_client *made = NULL;
        int r = hf_rest_client_new(&host, &config, &made, NULL);

        hf_client_free(made);
        return r;
}

static int make_recorder(void) {
        const struct hf_recorder_config config = {.size = sizeof config,
                                                  .client = client,
                                                  .component = "a",
                                                  .instance = "b"};
        struct hf_recorder *recorder = NULL;
        int r = hf_recorder_new(&host, &config, &recorder);

        assert_int_equal(r == 0, recorder != NULL);
        hf_recorder_free(recorder);
        return r;
}

static int make_queue(void) {
        struct hf_workqueue *queue = NULL;
        int r = hf_workqueue_new(&host, "a", &queue);

        hf_workqueue_free(queue);
        return r;
}

static int make_informers(void) {
        const struct hf_informer_config config = {.size = sizeof config,
                                                  .client = client,
                                                  .resource = {"", "v1", "things"}};
        struct hf_informer *informer = NULL;
        struct hf_informer_thread *thread = NULL;
        int r = hf_informer_new(&host, &config, &informer);

        if (r == 0)
                r = hf_informer_thread_new(&host, &thread);
        hf_informer_thread_free(thread);
        hf_informer_free(informer);
        return r;
}

static int start_nothing(struct hf_hook_context *context, void *ctx,
                         struct hf_status *reterr_status) {
        return 0;
}

static int make_hooks(void) {
        static const char *const after[] = {"a"};
        const struct hf_hook first = {.size = sizeof first, .name = "a", .start = start_nothing};
        struct hf_hook second = first;
        struct hf_hooks *hooks = NULL;
        int r = hf_hooks_new(&host, client, &hooks);

        second.name = "b";
        second.after = after;
        second.n_after = 1;
        if (r == 0)
                r = hf_hooks_add(hooks, &first, "test", NULL);
        if (r == 0)
                r = hf_hooks_add(hooks, &second, "test", NULL);
        hf_hooks_free(hooks);
        return r;
}

static int make_bootstrap(void) {
        const struct hf_bootstrap_phase phase = {.size = sizeof phase, .name = "zero"};
        const struct hf_bootstrap_config config = {.size = sizeof config,
                                                   .version = "1",
                                                   .phases = &phase,
                                                   .n_phases = 1};
        struct hf_bootstrap *bootstrap = NULL;
        int r = hf_bootstrap_new(&host, &config, &bootstrap, NULL);

        hf_bootstrap_free(bootstrap);
        return r;
}

/* An elector that moves from one Lease to another has a lock of two Leases. */
static int make_electors(void) {
        const struct hf_elector_config config = {.size = sizeof config,
                                                 .ns = "a",
                                                 .name = "lead",
                                                 .migrate_from = "lead-old",
                                                 .identity = "a",
                                                 .client = client};
        struct hf_electors *electors = NULL;
        int r = hf_electors_new(&host, &electors);

        if (r == 0)
                r = hf_electors_add(electors, &config, NULL, NULL);
        hf_electors_free(electors);
        return r;
}

static int make_lock_file(void) {
        struct hf_electors *electors = NULL;
        int r = hf_electors_new(&host, &electors);

        if (r == 0)
                r = hf_electors_use_lock_file(electors, lock_path, NULL);
        hf_electors_free(electors);
        return r;
}

static int make_candidate(void) {
        const struct hf_candidate_config config = {.size = sizeof config,
                                                   .client = client,
                                                   .ns = "a",
                                                   .name = "b",
                                                   .lease_name = "c",
                                                   .binary_version = "1.0.0"};
        struct hf_candidate *candidate = NULL;
        int r = hf_candidate_new(&host, &config, &candidate, NULL);

        hf_candidate_free(candidate);
        return r;
}

/* ---- the server ---- */

static int make_cacher(void) {
        const struct hfd_cacher_config config = {.store = store, .prefix = "/registry"};
        struct hfd_cacher *cacher = NULL;
        int r = hfd_cacher_new(&host, &config, &cacher);

        hfd_cacher_free(cacher);
        return r;
}

static void free_store(struct hfd_store *made) {
        if (made)
                made->ops->free(made);
}

static int make_memory_store(void) {
        struct hfd_store *made = NULL;
        int r = hfd_memory_store_new(&host, &made);

        free_store(made);
        return r;
}

static int make_sqlite_store(void) {
        struct hfd_store *made = NULL;
        int r = hfd_sqlite_store_new(&host, store_path, true, &made, NULL);

        free_store(made);
        return r;
}

static int make_etcd_store(void) {
        static const char *const urls[] = {"https://127.0.0.1:1", NULL};
        const struct hfd_etcd_config config = {.endpoints = urls};
        struct hfd_store *made = NULL;
        int r = hfd_etcd_store_new(&host, &config, &made, NULL);

        free_store(made);
        return r;
}

/* ---- the test ---- */

static void test_constructors_release_what_they_have_made(void **state) {
        static const failing_constructor_fn all[] = {
                make_tokens,       make_health,     make_loop,      make_engine,
                make_expressions,  make_client,     make_recorder,  make_queue,
                make_informers,    make_hooks,      make_bootstrap, make_electors,
                make_lock_file,    make_candidate,  make_cacher,    make_memory_store,
                make_sqlite_store, make_etcd_store,
        };

        for (size_t i = 0; i < sizeof all / sizeof all[0]; i++)
                failing_constructor_try_all(all[i]);
}

static int set_up(void **state) {
        const struct hf_rest_config config = {.size = sizeof config,
                                              .server = "http://127.0.0.1:1"};

        (void)snprintf(directory, sizeof directory, "/tmp/test-constructors-XXXXXX");
        assert_non_null(mkdtemp(directory));
        (void)snprintf(lock_path, sizeof lock_path, "%s/lock", directory);
        (void)snprintf(store_path, sizeof store_path, "%s/store", directory);
        (void)snprintf(token_path, sizeof token_path, "%s/token", directory);
        FILE *token = fopen(token_path, "we");
        assert_non_null(token);
        assert_true(fputs("secret\n", token) >= 0 && fclose(token) == 0);
        assert_int_equal(hf_rest_client_new(&host, &config, &client, NULL), 0);
        return hfd_memory_store_new(&host, &store);
}

static int tear_down(void **state) {
        char path[160];

        free_store(store);
        hf_client_free(client);
        (void)snprintf(path, sizeof path, "%s-notify", store_path);
        return unlink(path) | unlink(lock_path) | unlink(store_path) | unlink(token_path) |
               rmdir(directory);
}

int main(void) {
        const struct CMUnitTest tests[] = {
                cmocka_unit_test(test_constructors_release_what_they_have_made),
        };

        return cmocka_run_group_tests(tests, set_up, tear_down);
}

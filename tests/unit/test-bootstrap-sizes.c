/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Programs that were compiled against the headers of another release: each struct that a host fills
 * or implements, cut down to the members of its first version. The struct ends where readable
 * memory ends, so that a read or write beyond it is a fault in every build.
 */
#undef NDEBUG
#include <assert.h>
#include <errno.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#include <sys/mman.h>
#include <unistd.h>

#include <holdfast/bootstrap.h>
#include <holdfast/client_port.h>
#include <holdfast/loop.h>
#include <holdfast/reconciler.h>
#include <holdfast/shards.h>
#include <holdfast/upsert.h>

#define END_OF(type, last) (offsetof(type, last) + sizeof(((type *)0)->last))

/* ---- memory that ends ---- */

static void *mapped[32];
static size_t n_mapped;

/* Copies n bytes to the end of a page, behind which nothing can be read. */
static void *at_the_end(const void *from, size_t n) {
        size_t page = (size_t)sysconf(_SC_PAGESIZE);
        char *pages =
                mmap(NULL, 2 * page, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);

        assert_ptr_not_equal(pages, MAP_FAILED);
        assert_int_equal(mprotect(pages + page, page, PROT_NONE), 0);
        assert(n_mapped < sizeof mapped / sizeof *mapped);
        mapped[n_mapped++] = pages;
        /* Structs must be aligned; the first versions end with a whole word. */
        assert_int_equal(n % sizeof(void *), 0);
        return memcpy(pages + page - n, from, n);
}

/* The struct as an older program has it: its first n bytes. */
static void *older(const void *from, size_t n) {
        char *cut = at_the_end(from, n);

        memcpy(cut, &n, sizeof n);
        return cut;
}

/* An array of two, each of n bytes. */
static void *two_older(const void *first, const void *second, size_t n) {
        char both[512];

        assert(2 * n <= sizeof both);
        memcpy(both, first, n);
        memcpy(both + n, second, n);
        memcpy(both, &n, sizeof n);
        memcpy(both + n, &n, sizeof n);
        return at_the_end(both, 2 * n);
}

static int clean_up(void **state) {
        size_t page = (size_t)sysconf(_SC_PAGESIZE);

        while (n_mapped > 0)
                (void)munmap(mapped[--n_mapped], 2 * page);
        return 0;
}

/* ---- a client that an older program implements ---- */

static const struct hf_host host = {.size = sizeof host};
static const struct hf_resource configmaps = {"", "v1", "configmaps"};

static struct {
        struct hf_client base;
        struct hf_request request;
        struct hf_watch_spec spec;
        struct hf_response *response; /* the response that the client gives */
        size_t n_requests, n_watches;
} old;

static int old_request(struct hf_client *self, const struct hf_request *request,
                       hf_response_fn done, void *ctx, uint64_t *ret_id) {
        old.n_requests++;
        old.request = *request;
        if (ret_id)
                *ret_id = 1;
        done(ctx, old.response);
        return 0;
}
static void old_cancel(struct hf_client *self, uint64_t id) {}
static int old_watch(struct hf_client *self, const struct hf_watch_spec *spec, hf_event_fn on_event,
                     hf_watch_end_fn on_end, void *ctx, uint64_t *ret_id) {
        old.n_watches++;
        old.spec = *spec;
        on_end(ctx, HF_E_CANCELED, NULL);
        return 0;
}

static int set_up(void **state) {
        static const struct hf_client_ops ops = {.size = sizeof ops,
                                                 .request = old_request,
                                                 .cancel = old_cancel,
                                                 .watch = old_watch,
                                                 .watch_cancel = old_cancel};
        const struct hf_response response = {.error = HF_E_NOT_FOUND};

        memset(&old, 0, sizeof old);
        old.base =
                (struct hf_client){.ops = older(&ops, END_OF(struct hf_client_ops, watch_cancel)),
                                   .host = older(&host, END_OF(struct hf_host, health))};
        /* hf_status ends with a half word, and so does the first version of the response */
        size_t n = (END_OF(struct hf_response, status) + 7) / 8 * 8;
        old.response = older(&response, n);
        old.response->size = END_OF(struct hf_response, status);
        return 0;
}

static void on_reply(void *ctx, const struct hf_response *response) {
        *(int *)ctx = response->error;
}
static void on_event(void *ctx, const struct hf_event *event) {}
static void on_end(void *ctx, int error, const struct hf_status *status) { *(int *)ctx = error; }

/* ---- requests and watches ---- */

static struct hf_request *old_get(void) {
        const struct hf_request request = {.verb = HF_VERB_GET,
                                           .resource = configmaps,
                                           .ns = "default",
                                           .name = "a",
                                           .body = "{}",
                                           .n_body = 2};

        return older(&request, END_OF(struct hf_request, n_body));
}

static void test_an_older_program_sends_requests(void **state) {
        struct hf_status status = {0};
        int error = 0;

        assert_int_equal(hf_client_request(&old.base, old_get(), on_reply, &error, NULL), 0);
        assert_int_equal(error, HF_E_NOT_FOUND);
        assert_string_equal(old.request.name, "a");
        assert_int_equal(old.request.size, sizeof old.request);
        assert_null(old.request.fence);
        assert_true(old.request.deadline == 0);
        assert_int_equal(old.request.patch, HF_PATCH_MERGE);
        assert_int_equal(hf_client_do(&old.base, old_get(), hf_cancel_never(), NULL, NULL, &status),
                         HF_E_NOT_FOUND);
        assert_int_equal(hf_upsert(&old.base, old_get(), hf_cancel_never(), NULL, NULL, &status),
                         HF_E_NOT_FOUND);
        assert_int_equal(old.n_requests, 4); /* the last are a get and a create */
        assert_null(hf_client_free(&old.base));
}

static void test_an_older_program_watches(void **state) {
        const struct hf_watch_spec spec = {.resource = configmaps};
        int error = 0;

        assert_int_equal(hf_client_watch(&old.base,
                                         older(&spec, END_OF(struct hf_watch_spec, resource)),
                                         on_event, on_end, &error, NULL),
                         0);
        assert_int_equal(error, HF_E_CANCELED);
        assert_null(old.spec.ns);
        assert_false(old.spec.bookmarks);
}

static void test_an_older_client_answers_in_a_loop(void **state) {
        struct hf_loop *loop;
        struct hf_client *client;
        int error = 0;

        assert_int_equal(hf_loop_new(&loop), 0);
        assert_int_equal(hf_loop_client_new(loop, &old.base, &client), 0);
        assert_int_equal(hf_client_request(client, old_get(), on_reply, &error, NULL), 0);
        (void)hf_loop_dispatch(loop);
        assert_int_equal(error, HF_E_NOT_FOUND);
        old.response->size = 0; /* the program has not set the size */
        assert_int_equal(hf_client_request(client, old_get(), on_reply, &error, NULL), 0);
        (void)hf_loop_dispatch(loop);
        assert_int_equal(error, -EINVAL);
        hf_client_free(client);
        hf_loop_free(loop);
}

/* ---- hooks and controllers ---- */

static int start(struct hf_hook_context *context, void *ctx, struct hf_status *reterr_status) {
        return ctx ? -EINVAL : 0; /* the struct of an older program has no ctx */
}

static void test_an_older_program_adds_hooks(void **state) {
        const struct hf_hook hook = {.name = "a", .start = start, .ctx = &old};
        struct hf_status status = {0};
        struct hf_hooks *hooks;

        assert_int_equal(hf_hooks_new(old.base.host, NULL, &hooks), 0);
        assert_int_equal(hf_hooks_add(hooks, older(&hook, END_OF(struct hf_hook, start)), NULL,
                                      &status),
                         0);
        assert_int_equal(hf_hooks_start(hooks, &status), 0);
        assert_int_equal(hf_hooks_stop(hooks, &status), 0);
        hf_hooks_free(hooks);
}

static int run(struct hf_term *term, void *ctx) { return 0; }
static int run_shard(struct hf_term *term, unsigned shard, void *ctx) { return 0; }

static struct hf_elector_config config_of(const char *name) {
        return (struct hf_elector_config){.size = sizeof(struct hf_elector_config),
                                          .ns = "default",
                                          .name = name,
                                          .identity = "me",
                                          .client = &old.base};
}

static void test_an_older_program_adds_controllers(void **state) {
        const struct hf_controller a = {.name = "a", .run = run}, b = {.name = "b", .run = run};
        struct hf_elector_config config = config_of("lead");
        struct hf_leader_info info = {0}, *cut;
        struct hf_status status = {0};
        struct hf_electors *electors;
        struct hf_elector *elector;

        config.controllers = two_older(&a, &b, END_OF(struct hf_controller, ctx));
        config.n_controllers = 2;
        assert_int_equal(hf_electors_new(old.base.host, &electors), 0);
        assert_int_equal(hf_electors_add(electors, &config, &elector, &status), 0);
        /* Both controllers were read: the name of the second one is in use. */
        config.name = "other";
        config.controllers = older(&b, END_OF(struct hf_controller, ctx));
        config.n_controllers = 1;
        assert_int_equal(hf_electors_add(electors, &config, NULL, &status), HF_E_EXISTS);
        cut = older(&info, END_OF(struct hf_leader_info, holder));
        assert_int_equal(hf_elector_info(elector, cut), 0);
        assert_string_equal(cut->name, "lead");
        assert_int_equal(cut->size, END_OF(struct hf_leader_info, holder));
        hf_electors_free(electors);
}

static void test_an_older_program_adds_shards(void **state) {
        const struct hf_shard_controller a = {.name = "a", .run = run_shard},
                                         b = {.name = "b", .run = run_shard};
        const struct hf_elector_config elector = config_of("work");
        struct hf_shards_config config =
                {.size = sizeof config,
                 .elector = &elector,
                 .n_shards = 3,
                 .controllers = two_older(&a, &b, END_OF(struct hf_shard_controller, run)),
                 .n_controllers = 2};
        struct hf_status status = {0};
        struct hf_electors *electors;

        assert_int_equal(hf_electors_new(&host, &electors), 0);
        assert_int_equal(hf_shards_add(electors, &config, NULL, &status), 0);
        hf_electors_free(electors);
}

static int reconcile(void *ctx, struct hf_term *term, const char *key, hf_nsec *ret_again) {
        return 0;
}

/* A reconciler runs only in a term. So this test uses one that is refused. */
static void test_the_sources_of_an_older_program_are_read(void **state) {
        struct hf_informer *some = (struct hf_informer *)(uintptr_t)0x10;
        const struct hf_reconciler_source first = {.informer = some}, none = {.informer = NULL};
        const struct hf_reconciler reconciler =
                {.size = sizeof reconciler,
                 .name = "r",
                 .sources = two_older(&first, &none, END_OF(struct hf_reconciler_source, informer)),
                 .n_sources = 2,
                 .reconcile = reconcile};

        assert_int_equal(hf_reconciler_run(&reconciler, (struct hf_term *)(uintptr_t)0x10),
                         -EINVAL);
}

/* ---- the bootstrap ---- */

static void test_an_older_program_bootstraps(void **state) {
        static const struct hf_bootstrap_kind kinds[] = {{"v1", "ConfigMap", "configmaps", true}};
        const struct hf_bootstrap_phase a = {.name = "a"}, b = {.name = "b"};
        struct hf_bootstrap_config config = {.size = sizeof config,
                                             .version = "1.0.0",
                                             .kinds = kinds,
                                             .n_kinds = 1,
                                             .n_phases = 2};
        struct hf_bootstrap_info no_info = {0}, *info;
        struct hf_controller no_controller = {0}, *controller;
        struct hf_bootstrap *bootstrap;
        struct hf_status status = {0};

        config.phases = two_older(&a, &b, END_OF(struct hf_bootstrap_phase, name));
        assert_int_equal(hf_bootstrap_new(&host, &config, &bootstrap, &status), 0);
        info = older(&no_info, END_OF(struct hf_bootstrap_info, n_settled));
        assert_int_equal(hf_bootstrap_info(bootstrap, 1, info), 0);
        assert_string_equal(info->phase, "b");
        controller = older(&no_controller, END_OF(struct hf_controller, ctx));
        assert_int_equal(hf_bootstrap_controller(bootstrap, 1, controller), 0);
        assert_string_equal(controller->name, "bootstrap-b");
        info->size = 0;
        assert_int_equal(hf_bootstrap_info(bootstrap, 1, info), -EINVAL);
        controller->size = SIZE_MAX;
        assert_int_equal(hf_bootstrap_controller(bootstrap, 1, controller), -EINVAL);
        hf_bootstrap_free(bootstrap);
}

/* ---- sizes that are refused ---- */

/* Sizes that are not set, too small, or of no release. */
static const size_t wrong_sizes[] = {0, 8, 100000, SIZE_MAX};
#define N_WRONG (sizeof wrong_sizes / sizeof *wrong_sizes)

static void test_a_wrong_size_is_refused_with_the_name_of_the_struct(void **state) {
        struct hf_status status = {0};
        struct hf_hooks *hooks;

        assert_int_equal(hf_hooks_new(&host, NULL, &hooks), 0);
        for (size_t i = 0; i < N_WRONG; i++) {
                struct hf_request request = {.size = wrong_sizes[i],
                                             .verb = HF_VERB_GET,
                                             .resource = configmaps,
                                             .name = "a"};
                const struct hf_hook hook = {.size = wrong_sizes[i], .name = "a", .start = start};
                assert_int_equal(hf_client_do(&old.base, &request, hf_cancel_never(), NULL, NULL,
                                              &status),
                                 -EINVAL);
                assert_non_null(strstr(status.message, "size of struct hf_request"));
                assert_int_equal(hf_client_request(&old.base, &request, on_reply, NULL, NULL),
                                 -EINVAL);
                assert_int_equal(hf_hooks_add(hooks, &hook, NULL, &status), -EINVAL);
                assert_non_null(strstr(status.message, "size of struct hf_hook"));
        }
        assert_int_equal(old.n_requests, 0);
        hf_hooks_free(hooks);
}

static void test_an_implementation_with_a_wrong_size_is_refused(void **state) {
        struct hf_client_ops ops = {.request = old_request, .watch = old_watch};
        struct hf_client client = {.ops = &ops, .host = &host};
        struct hf_clock clock = *hf_clock_system();
        struct hf_host wrong_host = {.size = sizeof wrong_host, .clock = &clock};
        struct hf_status status = {0};
        struct hf_electors *electors;
        struct hf_cancel *token;

        assert_int_equal(hf_client_request(&client, old_get(), on_reply, NULL, NULL), -EINVAL);
        assert_int_equal(hf_client_do(&client, old_get(), hf_cancel_never(), NULL, NULL, &status),
                         -EINVAL);
        assert_non_null(strstr(status.message, "struct hf_client_ops"));
        old.response->size = 0;
        assert_int_equal(hf_client_do(&old.base, old_get(), hf_cancel_never(), NULL, NULL, &status),
                         -EINVAL);
        assert_non_null(strstr(status.message, "struct hf_response"));
        clock.size = 0;
        assert_int_equal(hf_cancel_new(NULL, &clock, &token), -EINVAL);
        assert_int_equal(hf_electors_new(&wrong_host, &electors), -EINVAL);
        wrong_host = (struct hf_host){0};
        assert_int_equal(hf_electors_new(&wrong_host, &electors), -EINVAL);
}

static void test_the_elements_of_an_array_have_one_size(void **state) {
        struct hf_controller controllers[] = {{.size = sizeof(struct hf_controller),
                                               .name = "a",
                                               .run = run},
                                              {.name = "b", .run = run}};
        struct hf_elector_config config = config_of("lead");
        struct hf_status status = {0};
        struct hf_electors *electors;

        config.controllers = controllers;
        config.n_controllers = 2;
        assert_int_equal(hf_electors_new(&host, &electors), 0);
        assert_int_equal(hf_electors_add(electors, &config, NULL, &status), -EINVAL);
        assert_non_null(strstr(status.message, "struct hf_controller number 1"));
        hf_electors_free(electors);
}

/* A program that is newer than the library must leave members at zero that the library does not
 * know. */
static void test_a_newer_program_may_leave_its_members_at_zero(void **state) {
        struct {
                struct hf_request request;
                char more[16];
        } newer = {.request = {.size = sizeof newer,
                               .verb = HF_VERB_GET,
                               .resource = configmaps,
                               .name = "a"}};
        struct {
                struct hf_leader_info info;
                char more[16];
        } info = {.info = {.size = sizeof info}, .more = "old contents"};
        struct hf_elector_config config = config_of("lead");
        struct hf_status status = {0};
        struct hf_electors *electors;
        struct hf_elector *elector;

        assert_int_equal(hf_client_do(&old.base, &newer.request, hf_cancel_never(), NULL, NULL,
                                      &status),
                         HF_E_NOT_FOUND);
        newer.more[15] = 1;
        assert_int_equal(hf_client_do(&old.base, &newer.request, hf_cancel_never(), NULL, NULL,
                                      &status),
                         -EINVAL);
        assert_non_null(strstr(status.message, "does not know"));
        assert_int_equal(hf_electors_new(&host, &electors), 0);
        assert_int_equal(hf_electors_add(electors, &config, &elector, &status), 0);
        assert_int_equal(hf_elector_info(elector, &info.info), 0);
        assert_string_equal(info.info.identity, "me");
        assert_int_equal(info.more[0], 0);
        hf_electors_free(electors);
}

#define TEST(name) cmocka_unit_test_setup_teardown(name, set_up, clean_up)

int main(void) {
        const struct CMUnitTest tests[] = {
                TEST(test_an_older_program_sends_requests),
                TEST(test_an_older_program_watches),
                TEST(test_an_older_client_answers_in_a_loop),
                TEST(test_an_older_program_adds_hooks),
                TEST(test_an_older_program_adds_controllers),
                TEST(test_an_older_program_adds_shards),
                TEST(test_the_sources_of_an_older_program_are_read),
                TEST(test_an_older_program_bootstraps),
                TEST(test_a_wrong_size_is_refused_with_the_name_of_the_struct),
                TEST(test_an_implementation_with_a_wrong_size_is_refused),
                TEST(test_the_elements_of_an_array_have_one_size),
                TEST(test_a_newer_program_may_leave_its_members_at_zero),
        };

        return cmocka_run_group_tests(tests, NULL, NULL);
}

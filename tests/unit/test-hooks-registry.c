/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Registration: what is refused, and whether the message names the problem and the first
 * registration.
 */
#undef NDEBUG
#include <assert.h>
#include <pthread.h>
#include <semaphore.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stdatomic.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

#include <cmocka.h>

#include <holdfast/health.h>
#include <holdfast/hooks.h>

#include "patience.h"
#include "text_asserts.h"

static int ok(struct hf_hook_context *context, void *ctx, struct hf_status *reterr_status) {
        return 0;
}

static int count(struct hf_hook_context *context, void *ctx, struct hf_status *reterr_status) {
        atomic_fetch_add((atomic_int *)ctx, 1);
        return 0;
}

static struct hf_hooks *new_hooks(const struct hf_host *host) {
        struct hf_hooks *hooks = NULL;
        assert_int_equal(hf_hooks_new(host, NULL, &hooks), 0);
        return hooks;
}

static const struct hf_host silent = {.size = sizeof silent};

/* The struct has the size of a later version, with a member that this library does not know. */
static void test_a_host_of_another_version_is_refused(void **state) {
        struct {
                struct hf_host host;
                void *unknown;
        } later = {.host = {.size = sizeof later}, .unknown = &later};
        struct hf_hooks *hooks = NULL;

        assert_int_not_equal(hf_hooks_new(&later.host, NULL, &hooks), 0);
        assert_null(hooks);
        later.unknown = NULL;
        assert_int_equal(hf_hooks_new(&later.host, NULL, &hooks), 0);
        hf_hooks_free(hooks);
}

static void test_a_duplicate_names_the_first_registration(void **state) {
        struct hf_hooks *hooks = new_hooks(&silent);
        struct hf_status status = {0};
        struct hf_hook hook = {.size = sizeof hook, .name = "a", .start = ok};
        assert_int_equal(hf_hooks_add(hooks, &hook, "first.c:1", &status), 0);
        assert_int_equal(hf_hooks_add(hooks, &hook, "second.c:2", &status), HF_E_EXISTS);
        assert_in(status.message, "\"a\"");
        assert_in(status.message, "first.c:1");
        assert_in(status.message, "second.c:2");
        hf_hooks_free(hooks);
}

static void test_empty_names_and_missing_functions_are_refused(void **state) {
        struct hf_hooks *hooks = new_hooks(&silent);
        struct hf_status status = {0};
        assert_int_equal(hf_hooks_add(hooks,
                                      &(struct hf_hook){.size = sizeof(struct hf_hook),
                                                        .start = ok},
                                      "x.c:7", &status),
                         HF_E_INVALID);
        assert_in(status.message, "x.c:7");
        assert_int_equal(hf_hooks_add(hooks,
                                      &(struct hf_hook){.size = sizeof(struct hf_hook),
                                                        .name = "",
                                                        .start = ok},
                                      "x.c:7", &status),
                         HF_E_INVALID);
        assert_int_equal(hf_hooks_add(hooks,
                                      &(struct hf_hook){.size = sizeof(struct hf_hook),
                                                        .name = "b"},
                                      "x.c:8", &status),
                         HF_E_INVALID);
        assert_in(status.message, "\"b\"");
        const char *after[] = {""};
        assert_int_equal(hf_hooks_add(hooks,
                                      &(struct hf_hook){.size = sizeof(struct hf_hook),
                                                        .name = "b",
                                                        .start = ok,
                                                        .after = after,
                                                        .n_after = 1},
                                      "x.c:8", &status),
                         HF_E_INVALID);
        hf_hooks_free(hooks);
}

/* Scenario of docs/parity.md: CR19. */
static void test_registration_closes_with_the_start(void **state) {
        struct hf_hooks *hooks = new_hooks(&silent);
        struct hf_status status = {0};
        atomic_int n = 0;
        struct hf_hook hook = {.size = sizeof hook,
                               .name = "a",
                               .start = count,
                               .stop = count,
                               .ctx = &n};
        assert_int_equal(hf_hooks_add(hooks, &hook, HF_HOOKS_HERE, &status), 0);
        assert_int_equal(hf_hooks_start(hooks, &status), 0);
        hook.name = "late";
        assert_int_equal(hf_hooks_add(hooks, &hook, HF_HOOKS_HERE, &status), HF_E_CLOSED);
        assert_in(status.message, "\"late\"");
        assert_int_equal(hf_hooks_start(hooks, &status), HF_E_CLOSED);
        assert_int_equal(n, 1);
        assert_int_equal(hf_hooks_stop(hooks, &status), 0);
        assert_int_equal(n, 2);
        assert_int_equal(hf_hooks_stop(hooks, &status), 0); /* the result of the first stop */
        assert_int_equal(n, 2);
        hf_hooks_fire_stopped(hooks);
        hf_hooks_free(hooks);
}

static void test_an_unknown_name_in_after_is_named(void **state) {
        struct hf_hooks *hooks = new_hooks(&silent);
        struct hf_status status = {0};
        const char *after[] = {"nobody"};
        atomic_int n = 0;
        struct hf_hook hook = {.size = sizeof hook,
                               .name = "a",
                               .start = count,
                               .after = after,
                               .n_after = 1,
                               .ctx = &n};
        assert_int_equal(hf_hooks_add(hooks, &hook, "me.c:3", &status), 0);
        assert_int_equal(hf_hooks_start(hooks, &status), HF_E_INVALID);
        assert_in(status.message, "\"nobody\"");
        assert_in(status.message, "me.c:3");
        assert_int_equal(hf_hooks_stop(hooks, &status), 0);
        assert_int_equal(n, 0);
        hf_hooks_free(hooks);
}

static void test_a_cycle_is_named(void **state) {
        struct hf_hooks *hooks = new_hooks(&silent);
        struct hf_status status = {0};
        const char *on_a[] = {"a"}, *on_b[] = {"x", "b"}, *on_c[] = {"c"};
        atomic_int n = 0;
        struct hf_hook list[] = {
                {.size = sizeof(struct hf_hook), .name = "x", .start = count, .ctx = &n},
                {.size = sizeof(struct hf_hook),
                 .name = "lead-in",
                 .start = count,
                 .after = on_a,
                 .n_after = 1,
                 .ctx = &n},
                {.size = sizeof(struct hf_hook),
                 .name = "a",
                 .start = count,
                 .after = on_b,
                 .n_after = 2,
                 .ctx = &n},
                {.size = sizeof(struct hf_hook),
                 .name = "b",
                 .start = count,
                 .after = on_c,
                 .n_after = 1,
                 .ctx = &n},
                {.size = sizeof(struct hf_hook),
                 .name = "c",
                 .start = count,
                 .after = on_a,
                 .n_after = 1,
                 .ctx = &n},
        };
        for (size_t i = 0; i < sizeof list / sizeof *list; i++)
                assert_int_equal(hf_hooks_add(hooks, &list[i], HF_HOOKS_HERE, &status), 0);
        assert_int_equal(hf_hooks_start(hooks, &status), HF_E_INVALID);
        assert_in(status.message, "\"a\" after \"b\" after \"c\" after \"a\"");
        assert_null(strstr(status.message, "lead-in"));
        assert_int_equal(hf_hooks_stop(hooks, &status), 0);
        assert_int_equal(n, 0);
        hf_hooks_free(hooks);
}

static void test_a_hook_after_itself_is_a_cycle(void **state) {
        struct hf_hooks *hooks = new_hooks(&silent);
        struct hf_status status = {0};
        const char *on_a[] = {"a"};
        assert_int_equal(hf_hooks_add(hooks,
                                      &(struct hf_hook){.size = sizeof(struct hf_hook),
                                                        .name = "a",
                                                        .start = ok,
                                                        .after = on_a,
                                                        .n_after = 1},
                                      "x", &status),
                         0);
        assert_int_equal(hf_hooks_start(hooks, &status), HF_E_INVALID);
        assert_in(status.message, "\"a\" after \"a\"");
        assert_int_equal(hf_hooks_stop(hooks, &status), 0);
        hf_hooks_free(hooks);
}

struct seen {
        int n_healthy, n_unhealthy;
        char text[256];
};

static void look(void *ctx, const char *name, bool healthy, const char *reason) {
        struct seen *seen = ctx;
        if (healthy)
                seen->n_healthy++;
        else
                seen->n_unhealthy++;
        strcat(seen->text, name);
        if (!healthy) {
                strcat(seen->text, "=");
                strcat(seen->text, reason);
        }
        strcat(seen->text, ";");
}

/* HK05: The hooks of two registrants both run, and both are checks of all endpoints. */
static void test_every_hook_is_a_health_check(void **state) {
        struct hf_health *health = NULL;
        assert_int_equal(hf_health_new(&health), 0);
        struct hf_host host = {.size = sizeof host, .health = health};
        struct hf_hooks *hooks = new_hooks(&host);
        struct hf_status status = {0};
        atomic_int n_a = 0, n_b = 0;
        struct hf_hook a = {.size = sizeof a, .name = "a", .start = count, .ctx = &n_a};
        struct hf_hook b = {.size = sizeof b, .name = "b", .start = count, .ctx = &n_b};
        assert_int_equal(hf_hooks_add(hooks, &a, "first.c:1", &status), 0);
        assert_int_equal(hf_hooks_add(hooks, &b, "second.c:2", &status), 0);
        for (unsigned endpoint = HF_HEALTHZ; endpoint <= HF_READYZ; endpoint *= 2) {
                struct seen seen = {0};
                assert_int_equal(hf_health_each(health, endpoint, look, &seen), 2);
                assert_string_equal(seen.text, "poststarthook/a=not finished;"
                                               "poststarthook/b=not finished;");
        }
        assert_int_equal(hf_hooks_start(hooks, &status), 0);
        assert_int_equal(n_a, 1);
        assert_int_equal(n_b, 1);
        for (unsigned endpoint = HF_HEALTHZ; endpoint <= HF_READYZ; endpoint *= 2) {
                struct seen seen = {0};
                assert_int_equal(hf_health_each(health, endpoint, look, &seen), 0);
                assert_string_equal(seen.text, "poststarthook/a;poststarthook/b;");
        }
        assert_int_equal(hf_hooks_stop(hooks, &status), 0);
        hf_hooks_free(hooks);
        struct seen seen = {0};
        assert_int_equal(hf_health_each(health, HF_READYZ, look, &seen), 0);
        assert_int_equal(seen.n_healthy, 0); /* freed with the hooks */
        hf_health_free(health);
}

static void test_a_taken_check_name_refuses_the_hook(void **state) {
        struct hf_health *health = NULL;
        assert_int_equal(hf_health_new(&health), 0);
        struct hf_host host = {.size = sizeof host, .health = health};
        struct hf_hooks *one = new_hooks(&host), *other = new_hooks(&host);
        struct hf_status status = {0};
        atomic_int n = 0;
        struct hf_hook hook = {.size = sizeof hook, .name = "a", .start = count, .ctx = &n};
        assert_int_equal(hf_hooks_add(one, &hook, "x", &status), 0);
        assert_int_equal(hf_hooks_add(other, &hook, "y", &status), HF_E_EXISTS);
        assert_in(status.message, "poststarthook/a");
        assert_int_equal(hf_hooks_start(other, &status), 0); /* without the refused hook */
        assert_int_equal(n, 0);
        assert_int_equal(hf_hooks_stop(other, &status), 0);
        hf_hooks_free(other);
        hf_hooks_free(one);
        hf_health_free(health);
}

/* ---- a refusal during a start ---- */

static sem_t check_entered, check_may_leave;

static bool blocking_check(void *ctx, char *reason, size_t max_reason) {
        sem_post(&check_entered);
        sem_wait(&check_may_leave);
        return true;
}

static void *run_checks(void *ctx) {
        (void)hf_health_each(ctx, HF_READYZ, NULL, NULL);
        return NULL;
}

struct refused_hook {
        struct hf_hooks *hooks;
        atomic_int n_starts;
        atomic_int thread_id;
        int result;
};

static void *add_refused_hook(void *ctx) {
        struct refused_hook *refused = ctx;
        struct hf_hook hook = {.size = sizeof hook,
                               .name = "a",
                               .start = count,
                               .ctx = &refused->n_starts};
        struct hf_status status;

        atomic_store(&refused->thread_id, (int)gettid());
        refused->result = hf_hooks_add(refused->hooks, &hook, HF_HOOKS_HERE, &status);
        return NULL;
}

/* Whether a thread of this process sleeps. */
static bool sleeps(int thread_id) {
        char path[64], state = 'R';

        (void)snprintf(path, sizeof path, "/proc/self/task/%d/stat", thread_id);
        FILE *file = fopen(path, "re");
        if (!file)
                return false;
        bool is_read = fscanf(file, "%*d (%*[^)]) %c", &state) == 1;
        (void)fclose(file);
        return is_read && state == 'S';
}

/* The health registry refuses the hook's check only after the hooks have started, because a check
 * is running until then. */
static void test_a_hook_that_is_refused_late_never_starts(void **state) {
        struct hf_host host = {.size = sizeof host};
        struct refused_hook refused = {0};
        struct hf_status status = {0};
        pthread_t checks, adds;

        sem_init(&check_entered, 0, 0);
        sem_init(&check_may_leave, 0, 0);
        assert_int_equal(hf_health_new(&host.health), 0);
        assert_int_equal(hf_health_add(host.health, "poststarthook/a", HF_LIVEZ, blocking_check,
                                       NULL),
                         0);
        assert_int_equal(hf_health_add(host.health, "slow", HF_READYZ, blocking_check, NULL), 0);
        refused.hooks = new_hooks(&host);
        assert_int_equal(pthread_create(&checks, NULL, run_checks, host.health), 0);
        sem_wait(&check_entered);
        assert_int_equal(pthread_create(&adds, NULL, add_refused_hook, &refused), 0);
        PATIENCE_AWAIT(sleeps(atomic_load(&refused.thread_id)));
        assert_int_equal(hf_hooks_start(refused.hooks, &status), 0);
        assert_int_equal(refused.n_starts, 0);
        sem_post(&check_may_leave);
        assert_int_equal(pthread_join(checks, NULL), 0);
        assert_int_equal(pthread_join(adds, NULL), 0);
        assert_int_equal(refused.result, HF_E_EXISTS);
        assert_int_equal(hf_hooks_stop(refused.hooks, &status), 0);
        hf_hooks_fire_stopped(refused.hooks);
        hf_hooks_free(refused.hooks);
        hf_health_free(host.health);
        sem_destroy(&check_entered);
        sem_destroy(&check_may_leave);
}

int main(void) {
        const struct CMUnitTest tests[] = {
                cmocka_unit_test(test_a_host_of_another_version_is_refused),
                cmocka_unit_test(test_a_duplicate_names_the_first_registration),
                cmocka_unit_test(test_empty_names_and_missing_functions_are_refused),
                cmocka_unit_test(test_registration_closes_with_the_start),
                cmocka_unit_test(test_an_unknown_name_in_after_is_named),
                cmocka_unit_test(test_a_cycle_is_named),
                cmocka_unit_test(test_a_hook_after_itself_is_a_cycle),
                cmocka_unit_test(test_every_hook_is_a_health_check),
                cmocka_unit_test(test_a_taken_check_name_refuses_the_hook),
                cmocka_unit_test(test_a_hook_that_is_refused_late_never_starts),
        };
        return cmocka_run_group_tests(tests, NULL, NULL);
}

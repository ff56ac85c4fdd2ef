/* SPDX-License-Identifier: Apache-2.0 */
/* Which configurations hf_bootstrap_new and hf_bootstrap_install accept, and their messages. */
#undef NDEBUG
#include <assert.h>
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
#include <holdfast/health.h>

static const struct hf_bootstrap_kind kinds[] = {{"v1", "Namespace", "namespaces", false}};
static const struct hf_host silent = {.size = sizeof silent};

#define NAMESPACE(name)                                                                            \
        "{\"apiVersion\":\"v1\",\"kind\":\"Namespace\",\"metadata\":{\"name\":\"" name "\"}}"

static struct hf_bootstrap_config config_of(const struct hf_bootstrap_phase *phases, size_t n) {
        return (struct hf_bootstrap_config){.size = sizeof(struct hf_bootstrap_config),
                                            .version = "1.0.0",
                                            .kinds = kinds,
                                            .n_kinds = 1,
                                            .phases = phases,
                                            .n_phases = n};
}

/* Asserts the result of hf_bootstrap_new, and that its message contains `says`; NULL = any message.
 */
static void assert_new(const struct hf_bootstrap_config *config, int result, const char *says) {
        struct hf_bootstrap *bootstrap = NULL;
        struct hf_status status = {0};
        int r = hf_bootstrap_new(&silent, config, &bootstrap, &status);

        if (r != result)
                fail_msg("%d, not %d: %s", r, result, status.message);
        if (says && !strstr(status.message, says))
                fail_msg("\"%s\" does not say \"%s\"", status.message, says);
        hf_bootstrap_free(bootstrap);
}

static void test_a_phase_has_a_dns_label_as_its_name(void **state) {
        static const char *const good[] = {"a", "0", "a-b",
                                           "a1234567890123456789012345678901234567-9"};
        static const char *const bad[] =
                {NULL,  "",    "-",
                 "-a",  "a-",  "A",
                 "a.b", "a b", "a1234567890123456789012345678901234567-90"};

        for (size_t i = 0; i < sizeof good / sizeof good[0]; i++) {
                struct hf_bootstrap_phase phase = {.size = sizeof phase, .name = good[i]};
                struct hf_bootstrap_config config = config_of(&phase, 1);
                assert_new(&config, 0, NULL);
        }
        for (size_t i = 0; i < sizeof bad / sizeof bad[0]; i++) {
                struct hf_bootstrap_phase phase = {.size = sizeof phase, .name = bad[i]};
                struct hf_bootstrap_config config = config_of(&phase, 1);
                assert_new(&config, HF_E_INVALID, "is not a name for a phase");
        }
}

static void test_a_host_is_required(void **state) {
        struct hf_bootstrap_phase phase = {.size = sizeof phase, .name = "a"};
        struct hf_bootstrap_config config = config_of(&phase, 1);
        const struct hf_host unsized = {0};
        struct hf_bootstrap *bootstrap;

        assert_int_equal(hf_bootstrap_new(NULL, &config, &bootstrap, NULL), -EINVAL);
        assert_int_equal(hf_bootstrap_new(&unsized, &config, &bootstrap, NULL), -EINVAL);
}

static void test_there_are_one_to_eight_phases(void **state) {
        static const char *const names[] = {"a", "b", "c", "d", "e", "f", "g", "h", "i"};
        struct hf_bootstrap_phase phases[HF_BOOTSTRAP_PHASES_MAX + 1] = {
                {.size = sizeof(struct hf_bootstrap_phase)}};
        struct hf_bootstrap *bootstrap;

        for (size_t i = 0; i <= HF_BOOTSTRAP_PHASES_MAX; i++)
                phases[i] = (struct hf_bootstrap_phase){.size = sizeof phases[i], .name = names[i]};
        struct hf_bootstrap_config config = config_of(phases, HF_BOOTSTRAP_PHASES_MAX);
        assert_int_equal(hf_bootstrap_new(&silent, &config, &bootstrap, NULL), 0);
        struct hf_controller last = {.size = sizeof last};
        assert_int_equal(hf_bootstrap_n_phases(bootstrap), HF_BOOTSTRAP_PHASES_MAX);
        assert_int_equal(hf_bootstrap_controller(bootstrap, 7, &last), 0);
        assert_string_equal(last.name, "bootstrap-h");
        assert_string_equal(last.after[0], "bootstrap-g");
        hf_bootstrap_free(bootstrap);
        config.n_phases++;
        assert_new(&config, HF_E_INVALID, "there must be 1 to 8 phases, not 9");
        config.n_phases = 0;
        assert_new(&config, HF_E_INVALID, "there must be 1 to 8 phases, not 0");
}

static void test_each_phase_has_the_size_of_its_struct(void **state) {
        static const char *const names[] = {"a", "b", "c"};

        for (size_t i = 0; i < 3; i++) {
                struct hf_bootstrap_phase phases[3];
                struct hf_bootstrap_config config = config_of(phases, 3);

                for (size_t k = 0; k < 3; k++)
                        phases[k] = (struct hf_bootstrap_phase){.size = sizeof phases[k],
                                                                .name = names[k]};
                assert_new(&config, 0, NULL);
                phases[i].size = i == 1 ? 0 : 1;
                assert_new(&config, -EINVAL, "struct hf_bootstrap_phase");
        }
}

static void test_the_name_of_the_ledger_has_a_limit(void **state) {
        const struct hf_bootstrap_phase phase = {.size = sizeof phase, .name = "a"};
        char longest[HF_NAME_MAX + 1], too_long[HF_NAME_MAX + 2];

        memset(longest, 'a', HF_NAME_MAX);
        longest[HF_NAME_MAX] = '\0';
        memset(too_long, 'a', HF_NAME_MAX + 1);
        too_long[HF_NAME_MAX + 1] = '\0';
        struct hf_bootstrap_config config = config_of(&phase, 1);
        config.ledger_ns = config.ledger_name = longest;
        assert_new(&config, 0, NULL);
        config.ledger_ns = too_long;
        assert_new(&config, HF_E_INVALID, "the ledger's namespace or name has more than 253 bytes");
        config.ledger_ns = NULL;
        config.ledger_name = too_long;
        assert_new(&config, HF_E_INVALID, "the ledger's namespace or name has more than 253 bytes");
}

static void test_kinds_directories_and_manifests_are_complete(void **state) {
        static const char *const no_directory[] = {NULL};
        static const struct hf_bootstrap_kind bad[] = {{NULL, "Namespace", "namespaces", false},
                                                       {"v1", NULL, "namespaces", false},
                                                       {"v1", "Namespace", NULL, false}};
        static const struct hf_bootstrap_manifest manifests[] = {{NULL, NAMESPACE("a"), 1},
                                                                 {"a.json", NULL, 1}};
        struct hf_bootstrap_phase phase = {.size = sizeof phase, .name = "a"};
        struct hf_bootstrap_config config = config_of(&phase, 1);

        for (size_t i = 0; i < 3; i++) {
                config.kinds = &bad[i];
                assert_new(&config, HF_E_INVALID, "kind 0 has no api_version, kind or plural");
        }
        config.kinds = kinds;
        phase.directories = no_directory;
        phase.n_directories = 1;
        assert_new(&config, HF_E_INVALID, "directory 0 of phase a is NULL");
        phase.n_directories = 0;
        phase.n_manifests = 1;
        for (size_t i = 0; i < 2; i++) {
                phase.manifests = &manifests[i];
                assert_new(&config, HF_E_INVALID, "manifest 0 of phase a has no source or no text");
        }
}

static void test_an_object_belongs_to_one_manifest_of_one_phase(void **state) {
        static const struct hf_bootstrap_manifest two[] = {{"one.json", NAMESPACE("a"),
                                                            sizeof NAMESPACE("a") - 1},
                                                           {"two.json", NAMESPACE("a"),
                                                            sizeof NAMESPACE("a") - 1}};
        const struct hf_bootstrap_phase apart[] = {{.size = sizeof(struct hf_bootstrap_phase),
                                                    .name = "a",
                                                    .manifests = &two[0],
                                                    .n_manifests = 1},
                                                   {.size = sizeof(struct hf_bootstrap_phase),
                                                    .name = "b"},
                                                   {.size = sizeof(struct hf_bootstrap_phase),
                                                    .name = "c",
                                                    .manifests = &two[1],
                                                    .n_manifests = 1}};
        const struct hf_bootstrap_phase together = {.size = sizeof together,
                                                    .name = "a",
                                                    .manifests = two,
                                                    .n_manifests = 2};
        struct hf_bootstrap_config config = config_of(apart, 3);

        assert_new(&config, HF_E_INVALID, "Namespace/a is already in one.json");
        config = config_of(&together, 1);
        assert_new(&config, HF_E_INVALID, "Namespace/a is already in one.json");
}

static void test_all_phases_together_have_a_thousand_manifests(void **state) {
        enum { N = HF_BOOTSTRAP_STEPS_MAX + 1 };
        static char texts[N][100];
        static struct hf_bootstrap_manifest manifests[N];
        struct hf_bootstrap_phase phases[] = {{.size = sizeof(struct hf_bootstrap_phase),
                                               .name = "a",
                                               .manifests = manifests,
                                               .n_manifests = 400},
                                              {.size = sizeof(struct hf_bootstrap_phase),
                                               .name = "b",
                                               .manifests = manifests + 400,
                                               .n_manifests = 600}};
        struct hf_bootstrap_config config = config_of(phases, 2);
        struct hf_bootstrap *bootstrap;
        struct hf_bootstrap_info info = {.size = sizeof info};

        for (int i = 0; i < N; i++) {
                int n = snprintf(texts[i], sizeof texts[i],
                                 "{\"apiVersion\":\"v1\",\"kind\":\"Namespace\",\"metadata\":{"
                                 "\"name\":\"n%d\"}}",
                                 i);
                manifests[i] = (struct hf_bootstrap_manifest){"n.json", texts[i], (size_t)n};
        }
        assert_int_equal(hf_bootstrap_new(&silent, &config, &bootstrap, NULL), 0);
        hf_bootstrap_info(bootstrap, 1, &info);
        assert_string_equal(info.phase, "b");
        assert_int_equal(info.n_steps, 600);
        hf_bootstrap_free(bootstrap);
        phases[1].n_manifests++;
        assert_new(&config, HF_E_TOO_LARGE, "there are more than 1000 manifests");
}

static void test_directories_come_after_the_built_in_manifests(void **state) {
        static const struct hf_bootstrap_manifest built_in = {"built-in.json", NAMESPACE("a"),
                                                              sizeof NAMESPACE("a") - 1};
        char directory[] = "/tmp/holdfast-config-XXXXXX", path[64];
        const char *const directories[] = {directory}, *const missing[] = {
                                                               "/nonexistent/manifests"};
        struct hf_bootstrap_phase phase = {.size = sizeof phase,
                                           .name = "a",
                                           .manifests = &built_in,
                                           .n_manifests = 1,
                                           .directories = directories,
                                           .n_directories = 1};
        struct hf_bootstrap_config config = config_of(&phase, 1);
        struct hf_bootstrap *bootstrap;
        struct hf_bootstrap_info info = {.size = sizeof info};

        assert_non_null(mkdtemp(directory));
        (void)snprintf(path, sizeof path, "%s/b.json", directory);
        FILE *file = fopen(path, "w");
        assert_non_null(file);
        assert_true(fputs(NAMESPACE("b"), file) >= 0);
        assert_int_equal(fclose(file), 0);
        assert_int_equal(hf_bootstrap_new(&silent, &config, &bootstrap, NULL), 0);
        hf_bootstrap_info(bootstrap, 0, &info);
        assert_int_equal(info.n_steps, 2);
        hf_bootstrap_free(bootstrap);
        assert_int_equal(unlink(path), 0);
        assert_int_equal(rmdir(directory), 0);
        phase.directories = missing;
        assert_new(&config, -2, "/nonexistent/manifests: cannot read the directory: ");
}

static bool healthy(void *ctx, char *reason, size_t max_reason) { return true; }

static void test_a_health_check_that_is_taken_is_named(void **state) {
        const struct hf_bootstrap_phase phases[] = {{.size = sizeof(struct hf_bootstrap_phase),
                                                     .name = "a"},
                                                    {.size = sizeof(struct hf_bootstrap_phase),
                                                     .name = "b"}};
        struct hf_bootstrap_config config = config_of(phases, 2);
        struct hf_host host = {.size = sizeof host};
        struct hf_bootstrap *bootstrap = NULL;
        struct hf_hooks *hooks;
        struct hf_status status = {0};

        assert_int_equal(hf_health_new(&host.health), 0);
        assert_int_equal(hf_health_add(host.health, "bootstrap", HF_LIVEZ, healthy, NULL), 0);
        assert_int_equal(hf_bootstrap_new(&host, &config, &bootstrap, &status), HF_E_EXISTS);
        assert_non_null(
                strstr(status.message, "bootstrap: cannot add the health check or a metric: "));
        assert_int_equal(hf_health_each(host.health, HF_LIVEZ, NULL, NULL), 0);
        hf_health_remove(host.health, "bootstrap");
        assert_int_equal(hf_health_add(host.health, "bootstrap-b", HF_LIVEZ, healthy, NULL), 0);
        assert_int_equal(hf_bootstrap_new(&host, &config, &bootstrap, &status), 0);
        assert_int_equal(hf_hooks_new(&host, NULL, &hooks), 0);
        assert_int_equal(hf_bootstrap_install(bootstrap, hooks, NULL, 0, &status), HF_E_EXISTS);
        assert_non_null(strstr(status.message, "cannot add the health check bootstrap-b: "));
        hf_hooks_free(hooks);
        /* The name of a hook may be in use already, too. */
        hf_health_remove(host.health, "bootstrap-b");
        hf_bootstrap_free(bootstrap);
        assert_int_equal(hf_bootstrap_new(&host, &config, &bootstrap, &status), 0);
        assert_int_equal(hf_hooks_new(&host, NULL, &hooks), 0);
        assert_int_equal(hf_health_add(host.health, "poststarthook/bootstrap-a", HF_LIVEZ, healthy,
                                       NULL),
                         0);
        assert_int_equal(hf_bootstrap_install(bootstrap, hooks, NULL, 0, &status), HF_E_EXISTS);
        assert_int_equal(hf_health_each(host.health, HF_READYZ, NULL, NULL), 0);
        hf_hooks_free(hooks);
        hf_bootstrap_free(bootstrap);
        assert_int_equal(hf_health_each(host.health, HF_HEALTHZ, NULL, NULL), 0);
        hf_health_free(host.health);
}

static void note_reason(void *ctx, const char *name, bool is_healthy, const char *reason) {
        char *text = ctx;

        if (strcmp(name, "bootstrap-a") == 0)
                strcpy(text, is_healthy ? "healthy" : reason);
}

static void test_readiness_depends_only_on_phases_without_patience(void **state) {
        const struct hf_bootstrap_phase phases[] =
                {{.size = sizeof(struct hf_bootstrap_phase), .name = "a"},
                 {.size = sizeof(struct hf_bootstrap_phase), .name = "b", .hook_patience = 1}};
        struct hf_bootstrap_config config = config_of(phases, 2);
        struct hf_host host = {.size = sizeof host};
        struct hf_bootstrap *bootstrap = NULL;
        struct hf_hooks *hooks;
        char reason[512] = "";

        assert_int_equal(hf_health_new(&host.health), 0);
        assert_int_equal(hf_bootstrap_new(&host, &config, &bootstrap, NULL), 0);
        assert_int_equal(hf_hooks_new(&host, NULL, &hooks), 0);
        assert_int_equal(hf_bootstrap_install(bootstrap, hooks, NULL, 0, NULL), 0);
        /* two hooks, and phase a */
        assert_int_equal(hf_health_each(host.health, HF_READYZ, note_reason, reason), 3);
        assert_string_equal(reason, "not complete: waiting for the leader");
        hf_hooks_free(hooks);
        hf_bootstrap_free(bootstrap);
        assert_int_equal(hf_health_each(host.health, HF_READYZ, NULL, NULL), 0);
        hf_health_free(host.health);
}

int main(void) {
        const struct CMUnitTest tests[] = {
                cmocka_unit_test(test_a_phase_has_a_dns_label_as_its_name),
                cmocka_unit_test(test_a_host_is_required),
                cmocka_unit_test(test_there_are_one_to_eight_phases),
                cmocka_unit_test(test_each_phase_has_the_size_of_its_struct),
                cmocka_unit_test(test_the_name_of_the_ledger_has_a_limit),
                cmocka_unit_test(test_kinds_directories_and_manifests_are_complete),
                cmocka_unit_test(test_an_object_belongs_to_one_manifest_of_one_phase),
                cmocka_unit_test(test_all_phases_together_have_a_thousand_manifests),
                cmocka_unit_test(test_directories_come_after_the_built_in_manifests),
                cmocka_unit_test(test_a_health_check_that_is_taken_is_named),
                cmocka_unit_test(test_readiness_depends_only_on_phases_without_patience),
        };
        return cmocka_run_group_tests(tests, NULL, NULL);
}

/* SPDX-License-Identifier: Apache-2.0 */
/* The client of a program in a pod: which server it uses, and which errors it reports when a part
 * of its environment is missing. */
#undef NDEBUG
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include <cmocka.h>

#include <holdfast/client_port.h>

#include "base/http/global.h"

static const struct hf_host host = {.size = sizeof host};

static struct fixture {
        char dir[64];
        struct hf_in_cluster_config config;
        struct hf_client *client;
        struct hf_status status;
        char ns[HF_NAME_MAX + 1];
} f;

static void path_of(const char *name, char path[96]) {
        (void)snprintf(path, 96, "%s/%s", f.dir, name);
}

static void put(const char *name, const char *text) {
        char path[96];

        path_of(name, path);
        FILE *file = fopen(path, "we");
        assert_non_null(file);
        assert_true(fputs(text, file) >= 0);
        assert_int_equal(fclose(file), 0);
}

static void take(const char *name) {
        char path[96];

        path_of(name, path);
        (void)unlink(path);
}

static int set_up(void **state) {
        f = (struct fixture){.config = {.size = sizeof f.config, .directory = f.dir}};
        strcpy(f.dir, "/tmp/in-cluster-XXXXXX");
        assert_non_null(mkdtemp(f.dir));
        put("ca.crt", "-----BEGIN CERTIFICATE-----\n-----END CERTIFICATE-----\n");
        put("token", "secret\n");
        put("namespace", "team-a\n");
        /* Nobody listens on this port. */
        assert_int_equal(setenv("KUBERNETES_SERVICE_HOST", "127.0.0.1", 1), 0);
        assert_int_equal(setenv("KUBERNETES_SERVICE_PORT", "1", 1), 0);
        return 0;
}

static int tear_down(void **state) {
        f.client = hf_client_free(f.client);
        take("ca.crt");
        take("token");
        take("namespace");
        (void)rmdir(f.dir);
        return 0;
}

static int make(void) {
        f.client = hf_client_free(f.client);
        f.status = (struct hf_status){0};
        return hf_rest_client_in_cluster(&host, &f.config, &f.client, f.ns, &f.status);
}

static void expect_failure(int error, const char *text) {
        assert_int_equal(make(), error);
        assert_null(f.client);
        assert_non_null(strstr(f.status.message, text));
}

/* Asserts that the message of a failed request names this server. */
static void expect_server(const char *expected) {
        const struct hf_request request = {.size = sizeof request,
                                           .verb = HF_VERB_LIST,
                                           .resource = {"", "v1", "pods"}};
        struct hf_status status = {0};

        assert_int_equal(make(), 0);
        assert_string_equal(f.status.message, "");
        assert_int_not_equal(hf_client_do(f.client, &request, hf_cancel_never(), NULL, NULL,
                                          &status),
                             0);
        assert_non_null(strstr(status.message, expected));
}

static void test_the_server_is_that_of_the_environment(void **state) {
        expect_server("https://127.0.0.1:1/api/v1/pods");
        assert_string_equal(f.ns, "team-a");
        assert_int_equal(setenv("KUBERNETES_SERVICE_HOST", "::1", 1), 0);
        expect_server("https://[::1]:1/api/v1/pods");
        assert_int_equal(setenv("KUBERNETES_SERVICE_HOST", "[::1]", 1), 0);
        expect_server("https://[::1]:1/api/v1/pods");
}

static void test_without_the_environment_there_is_no_pod(void **state) {
        static const char *const names[] = {"KUBERNETES_SERVICE_HOST", "KUBERNETES_SERVICE_PORT"};

        for (int i = 0; i < 2; i++) {
                assert_int_equal(setenv(names[i], "", 1), 0);
                expect_failure(HF_E_NOT_FOUND, "this process does not run in a pod");
                assert_int_equal(unsetenv(names[i]), 0);
                expect_failure(HF_E_NOT_FOUND, "this process does not run in a pod");
                assert_int_equal(setenv(names[i], i == 0 ? "127.0.0.1" : "1", 1), 0);
        }
        assert_int_equal(make(), 0);
}

static void test_a_file_that_is_missing_is_named(void **state) {
        take("namespace");
        expect_failure(-2, "/namespace of the service account: ");
        /* The namespace is read only for a caller that wants it. */
        assert_int_equal(hf_rest_client_in_cluster(&host, &f.config, &f.client, NULL, NULL), 0);
        put("namespace", "team-a");
        take("ca.crt");
        expect_failure(-2, "/ca.crt of the service account: ");
        put("ca.crt", "-----BEGIN CERTIFICATE-----\n-----END CERTIFICATE-----\n");
        take("token");
        f.client = hf_client_free(f.client);
        assert_int_not_equal(make(), 0);
        assert_non_null(strstr(f.status.message, "/token"));
}

static void test_a_namespace_is_a_name(void **state) {
        static const char *const wrong[] = {"", "\n", "a b", "a/b", "a\nb", "a\tb"};
        char name[HF_NAME_MAX + 2];

        for (size_t i = 0; i < sizeof wrong / sizeof *wrong; i++) {
                put("namespace", wrong[i]);
                expect_failure(HF_E_INVALID, "/namespace does not contain the name of a namespace");
        }
        memset(name, 'n', sizeof name);
        name[HF_NAME_MAX + 1] = '\0';
        put("namespace", name);
        expect_failure(HF_E_INVALID, "/namespace does not contain the name of a namespace");
        name[HF_NAME_MAX] = '\0';
        put("namespace", name);
        assert_int_equal(make(), 0);
        assert_string_equal(f.ns, name);
}

static void test_a_configuration_of_another_size_is_refused(void **state) {
        f.config.size = 1;
        assert_int_not_equal(make(), 0);
        assert_null(f.client);
}

int main(void) {
        const struct CMUnitTest tests[] = {
#define TEST(name) cmocka_unit_test_setup_teardown(name, set_up, tear_down)
                TEST(test_the_server_is_that_of_the_environment),
                TEST(test_without_the_environment_there_is_no_pod),
                TEST(test_a_file_that_is_missing_is_named),
                TEST(test_a_namespace_is_a_name),
                TEST(test_a_configuration_of_another_size_is_refused),
#undef TEST
        };
        if (hf__http_global_init() != 0)
                return 1;
        return cmocka_run_group_tests(tests, NULL, NULL);
}

/* SPDX-License-Identifier: Apache-2.0 */
/* holdfastd's command line when it was started as kube-apiserver, and the flags that both have. */
#undef NDEBUG
#include <assert.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#include "base/strbuf.h"
#include "server/config/config_check.h"
#include "server/config/flags.h"
#include "server/config/kube_apiserver.h"

static struct hfd_config config;
static struct hf_status status;

/* Parses "holdfastd" and the words of line. */
static int parse(const char *line) {
        char text[1024], *argv[64] = {(char[]){"holdfastd"}}, *save = NULL;
        int argc = 1;
        hfd_config_done(&config);
        memset(&status, 0, sizeof status);
        strcpy(text, line);
        for (char *word = strtok_r(text, " ", &save); word; word = strtok_r(NULL, " ", &save))
                argv[argc++] = word;
        return hfd_flags_parse(argc, argv, &config, &status);
}

static void expect_ok(const char *line) {
        if (parse(line) != 0)
                fail_msg("%s: %s", line, status.message);
}

static void expect_refusal(const char *line, const char *named) {
        assert_int_equal(parse(line), HF_E_INVALID);
        if (!strstr(status.message, named) || strchr(status.message, '\n'))
                fail_msg("%s: wanted one line with \"%s\": %s", line, named, status.message);
}

static int set_up(void **state) {
        unsetenv("STATE_DIRECTORY");
        unsetenv("RUNTIME_DIRECTORY");
        return 0;
}

static int tear_down(void **state) {
        hfd_config_done(&config);
        return 0;
}

static int parse_as_kube_apiserver(const char *line) {
        char text[1024], *argv[64] = {(char[]){"/opt/bin/kube-apiserver"}}, *save = NULL;
        int argc = 1;
        hfd_config_done(&config);
        memset(&config, 0, sizeof config);
        memset(&status, 0, sizeof status);
        strcpy(text, line);
        for (char *word = strtok_r(text, " ", &save); word; word = strtok_r(NULL, " ", &save))
                argv[argc++] = word;
        return hfd_kube_apiserver_parse(argc, argv, &config, &status);
}

static void test_the_name_of_the_program_is_recognized(void **state) {
        assert_true(hfd_is_kube_apiserver("kube-apiserver"));
        assert_true(hfd_is_kube_apiserver("/a/b/kube-apiserver"));
        assert_false(hfd_is_kube_apiserver("/kube-apiserver/holdfastd"));
        assert_false(hfd_is_kube_apiserver("my-kube-apiserver"));
        assert_false(hfd_is_kube_apiserver(NULL));
}

static void test_flags_of_kube_apiserver_are_left_out_and_named(void **state) {
        assert_int_equal(parse_as_kube_apiserver(
                                 "--allow-privileged=true --secure-port=1234 "
                                 "--service-cluster-ip-range 10.0.0.0/24 "
                                 "--etcd-servers=http://127.0.0.1:2379 --watch-cache "
                                 "--data-dir /d --disable-admission-plugins=ServiceAccount"),
                         0);
        assert_string_equal(config.ignored_flags,
                            "--allow-privileged, --service-cluster-ip-range, --watch-cache, "
                            "--disable-admission-plugins");
        assert_int_equal(config.secure_port, 1234);
        assert_string_equal(config.etcd_servers[0], "http://127.0.0.1:2379");
        assert_string_equal(config.data_dir, "/d");
}

static void test_kube_apiserver_serves_workloads(void **state) {
        assert_int_equal(parse_as_kube_apiserver("--data-dir=/d"), 0);
        assert_true(config.serves_workloads);
        assert_false(config.pods_lack_accounts);
        assert_true(hfd_config_runs_controller(&config, "default-service-account"));
        assert_int_equal(parse_as_kube_apiserver("--data-dir=/d --runtime-config "
                                                 "a/v1=true,api/workloads=false "
                                                 "--disable-admission-plugins=X,ServiceAccount"),
                         0);
        assert_false(config.serves_workloads);
        assert_false(hfd_config_runs_controller(&config, "default-service-account"));
        assert_false(hfd_config_runs_controller(&config, "root-ca-publisher"));
        assert_false(hfd_config_runs_controller(&config, "garbage-collector"));
        assert_false(hfd_config_runs_controller(&config, "namespace-lifecycle"));
        assert_true(hfd_config_runs_controller(&config, "api-services"));
        assert_int_equal(parse_as_kube_apiserver("--data-dir=/d --controllers=* "
                                                 "--disable-admission-plugins=ServiceAccount"),
                         0);
        assert_true(hfd_config_runs_controller(&config, "default-service-account"));
        assert_true(config.pods_lack_accounts);
}

static void test_runtime_config_knows_one_name(void **state) {
        expect_ok("--data-dir=/d");
        assert_false(config.serves_workloads);
        expect_ok("--data-dir=/d --runtime-config=api/workloads=true");
        assert_true(config.serves_workloads);
        expect_ok("--data-dir=/d --runtime-config=api/workloads=true,api/workloads=false");
        assert_false(config.serves_workloads);
        expect_refusal("--data-dir=/d --runtime-config=api/workloads=yes", "api/workloads=true");
        expect_refusal("--data-dir=/d --runtime-config=api/all=true", "api/workloads=true");
}

#define OIDC "--data-dir=/d --oidc-issuer-url=https://i/x --oidc-client-id=c "

static void test_an_issuer_needs_a_client(void **state) {
        expect_ok(OIDC
                  "--oidc-required-claim=a=1 --oidc-required-claim=b=2 --oidc-signing-algs=ES256");
        assert_string_equal(config.oidc_username_claim, "sub");
        assert_string_equal(config.oidc_required[1], "b=2");
        assert_null(config.oidc_required[2]);
        expect_refusal("--data-dir=/d --oidc-issuer-url=https://i",
                       "--oidc-issuer-url and --oidc-client-id");
        expect_refusal("--data-dir=/d --oidc-groups-claim=g",
                       "--oidc-issuer-url and --oidc-client-id");
        expect_refusal("--data-dir=/d --oidc-client-id=c --oidc-issuer-url=http://i",
                       "--oidc-issuer-url");
        expect_refusal("--data-dir=/d --oidc-client-id=c --oidc-issuer-url=https://i?a",
                       "--oidc-issuer-url");
        expect_refusal(OIDC "--service-account-issuer=https://i/x",
                       "is also a --service-account-issuer");
        expect_refusal(OIDC "--oidc-required-claim=a", "is not NAME=VALUE");
        expect_refusal(OIDC "--oidc-signing-algs=RS256,PS256", "--oidc-signing-algs");
        expect_refusal(OIDC "--oidc-signing-algs=RS256,", "--oidc-signing-algs");
}

static void test_services_of_webhooks_have_addresses(void **state) {
        expect_ok("--data-dir=/d --webhook-service-resolver=ns/a=127.0.0.1:1 "
                  "--webhook-service-resolver=*=h");
        assert_string_equal(config.service_resolver, "ns/a=127.0.0.1:1,*=h");
        expect_refusal("--data-dir=/d --webhook-service-resolver=a=b",
                       "flag --webhook-service-resolver: \"a=b\" is not NAMESPACE/NAME");
}

static void test_keys_and_issuers_may_be_repeated(void **state) {
        assert_int_equal(parse_as_kube_apiserver(
                                 "--data-dir=/d --etcd-servers=http://x --api-audiences=api,vault "
                                 "--service-account-key-file=/a --service-account-key-file /b,/c "
                                 "--service-account-issuer=https://new "
                                 "--service-account-issuer=https://old "
                                 "--service-account-signing-key-file=/k "
                                 "--service-account-lookup=true"),
                         0);
        assert_string_equal(config.ignored_flags, "--service-account-lookup");
        assert_string_equal(config.signing_key_file, "/k");
        assert_int_equal(config.n_account_key_files, 3);
        assert_string_equal(config.account_key_files[0], "/a");
        assert_string_equal(config.account_key_files[2], "/c");
        assert_int_equal(config.n_issuers, 2);
        assert_string_equal(config.issuers[0], "https://new");
        assert_string_equal(config.issuers[1], "https://old");
        assert_null(config.issuers[2]);
        assert_int_equal(config.n_audiences, 2);
        assert_string_equal(config.audiences[1], "vault");
        assert_int_equal(parse_as_kube_apiserver("--data-dir=/d --etcd-servers=http://x"), 0);
        assert_int_equal(config.n_issuers, 1);
        assert_string_equal(config.issuers[0], "https://kubernetes.default.svc");
        assert_int_equal(config.n_audiences, 0);
        assert_int_not_equal(parse_as_kube_apiserver("--data-dir=/d --service-account-issuer=a:b"),
                             0);
        assert_int_not_equal(parse_as_kube_apiserver("--data-dir=/d --api-audiences=a,,b"), 0);
}

static void test_the_encryption_of_kube_apiserver_is_that_of_holdfastd(void **state) {
        assert_int_equal(parse_as_kube_apiserver("--encryption-provider-config=/f"), 0);
        assert_string_equal(config.encryption_config, "/f");
        assert_string_equal(config.ignored_flags, "");
}

static void test_the_data_of_kube_apiserver_is_beside_its_certificates(void **state) {
        assert_int_equal(parse_as_kube_apiserver("--cert-dir=/nowhere"), 0);
        assert_string_equal(config.data_dir, "/nowhere");
        assert_string_equal(config.cert_dir, "/nowhere");
        assert_string_equal(config.tls_cert_file, "");
        assert_string_equal(config.ignored_flags, "");
        assert_int_equal(parse_as_kube_apiserver("--cert-dir /nowhere --data-dir=/d"), 0);
        assert_string_equal(config.data_dir, "/d");
}

static void test_the_audit_log_of_kube_apiserver_is_ours(void **state) {
        assert_int_equal(parse_as_kube_apiserver("--audit-policy-file=/p --audit-log-path - "
                                                 "--audit-log-maxage=3 --audit-log-maxbackup=4 "
                                                 "--audit-log-maxsize=0"),
                         0);
        assert_string_equal(config.ignored_flags, "");
        assert_string_equal(config.audit_policy_file, "/p");
        assert_string_equal(config.audit_log_path, "-");
        assert_int_equal(config.audit_log_max_age, 3);
        assert_int_equal(config.audit_log_max_backups, 4);
        assert_int_equal(config.audit_log_max_size, 0);
        expect_refusal("--audit-policy-file=/p",
                       "flags --audit-policy-file and --audit-log-path go together: "
                       "--audit-log-path is missing");
        expect_refusal("--audit-log-path=/l", "--audit-policy-file is missing");
}

/* A user who gives such a flag relies on its effect. */
static void test_no_restriction_of_kube_apiserver_is_ignored(void **state) {
        static const char *const lines[] = {"--anonymous-auth=false",
                                            "--audit-webhook-config-file=/f",
                                            "--encryption-provider-config-automatic-reload=true",
                                            "--enable-admission-plugins=NodeRestriction",
                                            "--tls-min-version=VersionTLS13",
                                            "--nonsense"};

        for (size_t i = 0; i < sizeof lines / sizeof lines[0]; i++) {
                assert_int_equal(parse_as_kube_apiserver(lines[i]), HF_E_INVALID);
                assert_non_null(strstr(status.message, "unknown flag --"));
        }
        expect_refusal("--allow-privileged=true", "unknown flag --allow-privileged");
}

#define FLAG_TEST(name) cmocka_unit_test_setup_teardown(name, set_up, tear_down)

int main(void) {
        const struct CMUnitTest tests[] = {
                FLAG_TEST(test_the_name_of_the_program_is_recognized),
                FLAG_TEST(test_flags_of_kube_apiserver_are_left_out_and_named),
                FLAG_TEST(test_kube_apiserver_serves_workloads),
                FLAG_TEST(test_runtime_config_knows_one_name),
                FLAG_TEST(test_services_of_webhooks_have_addresses),
                FLAG_TEST(test_an_issuer_needs_a_client),
                FLAG_TEST(test_keys_and_issuers_may_be_repeated),
                FLAG_TEST(test_the_encryption_of_kube_apiserver_is_that_of_holdfastd),
                FLAG_TEST(test_the_data_of_kube_apiserver_is_beside_its_certificates),
                FLAG_TEST(test_the_audit_log_of_kube_apiserver_is_ours),
                FLAG_TEST(test_no_restriction_of_kube_apiserver_is_ignored),
        };
        return cmocka_run_group_tests(tests, NULL, NULL);
}

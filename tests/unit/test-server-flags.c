/* SPDX-License-Identifier: Apache-2.0 */
/* holdfastd's command line. */
#undef NDEBUG
#include <assert.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#include "base/strbuf.h"
#include "server/config/flags.h"

#define ETCD "--etcd-servers=http://127.0.0.1:2379"
#define SIXTEEN                                                                                    \
        "http://a,http://b,http://c,http://d,http://e,http://f,http://g,http://h,http://i,"        \
        "http://j,http://k,http://l,http://m,http://n,http://o,http://p"

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

static void test_flags_have_defaults(void **state) {
        expect_ok(ETCD);
        assert_int_equal(config.command, HFD_COMMAND_SERVE);
        assert_int_equal(config.n_etcd_servers, 1);
        assert_string_equal(config.etcd_prefix, "/registry");
        assert_string_equal(config.data_dir, "holdfast-data");
        assert_string_equal(config.runtime_dir, "holdfast-data/run");
        assert_string_equal(config.cert_dir, "holdfast-data/pki");
        assert_string_equal(config.bind_address, "127.0.0.1");
        assert_true(config.secure_port == 6443);
        assert_true(config.leader_elect);
        assert_false(config.shutdown_send_retry_after);
        assert_true(config.timing.lease_duration == 15 * HF_NSEC_PER_SEC &&
                    config.timing.renew_deadline == 10 * HF_NSEC_PER_SEC);
        assert_true(config.timing.retry_period == 2 * HF_NSEC_PER_SEC &&
                    config.timing.stop_grace == 2500 * HF_NSEC_PER_MSEC);
        assert_true(config.max_requests_inflight == 400 &&
                    config.max_mutating_requests_inflight == 200);
        assert_string_equal(config.tls_cert_file, "");
        assert_true(config.instance[0] != '\0');
        assert_true(hfd_config_runs_controller(&config, "any"));
}

static void test_both_forms_of_flags_and_lists_are_parsed(void **state) {
        expect_ok("--etcd-servers http://a:1,https://b:2 --secure-port=0 --leader-elect=false "
                  "--shutdown-send-retry-after "
                  "--shutdown-delay-duration 1m30s --leader-elect-lease-duration=6s "
                  "--leader-elect-renew-deadline 3s "
                  "--leader-elect-retry-period=1s --instance a.b-c_1 --bind-address :: --v=4");
        assert_int_equal(config.n_etcd_servers, 2);
        assert_string_equal(config.etcd_servers[1], "https://b:2");
        assert_true(config.secure_port == 0 && config.v == 4);
        assert_false(config.leader_elect);
        assert_true(config.shutdown_send_retry_after);
        assert_true(config.shutdown_delay == 90 * HF_NSEC_PER_SEC);
        assert_string_equal(config.instance, "a.b-c_1");
        expect_ok("--etcd-servers=" SIXTEEN);
        assert_int_equal(config.n_etcd_servers, HFD_MAX_ETCD_SERVERS);
        assert_string_equal(config.etcd_servers[15], "http://p");
        assert_null(config.etcd_servers[16]); /* the store needs the terminator */
}

static void test_directories_come_from_systemd(void **state) {
        setenv("STATE_DIRECTORY", "/var/lib/holdfast:/other", 1);
        setenv("RUNTIME_DIRECTORY", "/run/holdfast", 1);
        expect_ok(ETCD);
        assert_string_equal(config.data_dir, "/var/lib/holdfast");
        assert_string_equal(config.runtime_dir, "/run/holdfast");
        assert_string_equal(config.kubeconfig, "/var/lib/holdfast/admin.kubeconfig");
        expect_ok(ETCD " --data-dir=/d --runtime-dir=/r");
        assert_string_equal(config.cert_dir, "/d/pki");
        assert_string_equal(config.runtime_dir, "/r");
        set_up(NULL);
}

static void test_commands_are_parsed(void **state) {
        expect_ok("version");
        assert_int_equal(config.command, HFD_COMMAND_VERSION);
        expect_ok("--version");
        assert_int_equal(config.command, HFD_COMMAND_VERSION);
        expect_ok("status --watch");
        assert_int_equal(config.command, HFD_COMMAND_STATUS);
        assert_true(config.watch);
        expect_ok("release " ETCD);
        assert_int_equal(config.command, HFD_COMMAND_RELEASE);
        expect_ok("release --help");
        assert_int_equal(config.command, HFD_COMMAND_HELP);
        assert_int_equal(config.help_command, HFD_COMMAND_RELEASE);
        /* One line of flags for ExecStart= and ExecStopPost=. */
        expect_ok("release " ETCD
                  " --secure-port=1 --leader-elect-lease-duration=20s --shutdown-send-retry-after");
        expect_refusal("release " ETCD " --secure-port=x", "--secure-port");
        expect_refusal("release " ETCD " --watch", "--watch");
        expect_refusal("status --secure-port=1", "--secure-port");
        expect_refusal(ETCD " --watch", "--watch");
        expect_refusal("serve", "\"serve\"");
}

static void test_bad_flags_are_named(void **state) {
        expect_refusal(ETCD " --store=objects.db", "exclude each other");
        expect_refusal(ETCD " --nonsense", "--nonsense");
        expect_refusal(ETCD " --nonsense=1", "--nonsense");
        expect_refusal(ETCD " -v=1", "-v=1");
        expect_refusal(ETCD " --v=1 --v=1", "--v is given twice");
        expect_refusal(ETCD " --secure-port", "--secure-port needs a value");
        expect_refusal(ETCD " --data-dir=", "--data-dir needs a value");
        expect_refusal(ETCD " --secure-port=65536", "--secure-port");
        expect_refusal(ETCD " --secure-port=-1", "--secure-port");
        expect_refusal(ETCD " --secure-port=12x", "12x");
        expect_refusal(ETCD " --v=99999999999999999999", "--v");
        expect_refusal(ETCD " --max-requests-inflight=0", "--max-requests-inflight");
        expect_refusal(ETCD " --leader-elect=maybe", "maybe");
        expect_refusal(ETCD " --shutdown-delay-duration=5", "--shutdown-delay-duration");
        expect_refusal(ETCD " --shutdown-delay-duration=2h", "--shutdown-delay-duration");
        expect_refusal(ETCD " --bind-address=localhost", "--bind-address");
        expect_refusal(ETCD " --advertise-address=localhost", "--advertise-address");
        expect_refusal(ETCD " --advertise-address=0.0.0.0", "--advertise-address");
        expect_refusal(ETCD " --advertise-address=::", "--advertise-address");
        expect_refusal(ETCD " --advertise-address=ff02::1", "--advertise-address");
        expect_refusal(ETCD " --instance=a/b", "--instance");
        expect_refusal(ETCD " --tls-cert-file=x", "--tls-private-key-file");
        expect_refusal(ETCD " --etcd-keyfile=x", "--etcd-certfile");
        expect_refusal(ETCD " --etcd-prefix=x", "--etcd-prefix");
        expect_refusal("--etcd-servers=127.0.0.1:2379", "127.0.0.1:2379");
        expect_refusal("--etcd-servers=http://a,,http://b", "--etcd-servers");
        expect_refusal("--etcd-servers=" SIXTEEN ",http://q", "1 to 16 URLs");
        expect_refusal(ETCD " --authorization-mode=RBAC", "--authorization-mode");
        expect_refusal(ETCD " --leader-elect-resource-namespace=Bad",
                       "--leader-elect-resource-namespace");
        expect_refusal(ETCD " --leader-elect-resource-name=a..b", "--leader-elect-resource-name");
}

static void test_impossible_timings_are_refused_with_their_numbers(void **state) {
        expect_refusal(ETCD " --leader-elect-lease-duration=10s --leader-elect-renew-deadline=9s "
                            "--leader-elect-retry-period=2s",
                       "10s");
        expect_refusal(ETCD " --leader-elect-lease-duration=15500ms", "15.5s");
}

/* CG50, CG59, CG60, CG61. The tests of the timings are in test-leader-timing.c. */
static void test_the_lock_of_the_election_is_checked(void **state) {
        expect_ok(ETCD " --leader-elect-resource-lock=leases --leader-elect-resource-name=x "
                       "--leader-elect-resource-namespace=y");
        assert_string_equal(config.lock_type, "leases");
        expect_refusal(ETCD " --leader-elect-resource-lock=",
                       "--leader-elect-resource-lock needs a value");
        expect_refusal(ETCD " --leader-elect-resource-name=",
                       "--leader-elect-resource-name needs a value");
        expect_refusal(ETCD " --leader-elect-resource-namespace=",
                       "--leader-elect-resource-namespace needs a value");
        expect_refusal(ETCD " --leader-elect-resource-lock=endpoints",
                       "--leader-elect-resource-lock: the lock type endpoints is gone: migrate to "
                       "leases");
        expect_refusal(ETCD " --leader-elect-resource-lock=configmapsleases",
                       "the lock type configmapsleases is gone: migrate to leases");
        expect_refusal(ETCD " --leader-elect-resource-lock=Leases", "invalid lock type \"Leases\"");
}

static void test_a_migration_is_checked(void **state) {
        expect_ok(ETCD " --leader-elect-resource-name=new --leader-elect-migrate-from=old");
        assert_string_equal(config.migrate_from, "old");
        expect_ok(ETCD " --leader-elect-resource-name=x --leader-elect-migrate-from=x "
                       "--leader-elect-migrate-from-namespace=elsewhere");
        expect_refusal(ETCD " --leader-elect-migrate-from=holdfast-controllers",
                       "is the lease itself");
        expect_refusal(ETCD " --leader-elect-migrate-from=A", "--leader-elect-migrate-from");
        expect_refusal(ETCD
                       " --leader-elect-migrate-from=a --leader-elect-migrate-from-namespace=a.b",
                       "--leader-elect-migrate-from-namespace");
        expect_refusal(ETCD " --leader-elect-migrate-from-namespace=a",
                       "needs --leader-elect-migrate-from");
}

/* CG51 */
static void test_bad_election_flags_are_ignored_without_an_election(void **state) {
        expect_ok(ETCD " --leader-elect=false --leader-elect-resource-lock=endpoints "
                       "--leader-elect-resource-name=A..b "
                       "--leader-elect-resource-namespace=Bad --leader-elect-lease-duration=5s "
                       "--leader-elect-renew-deadline=9s");
}

static void test_the_list_of_controllers_is_checked(void **state) {
        static const char *const known[] = {"workspace", "lease-collector", NULL};
        expect_ok(ETCD " --controllers=*,-workspace");
        assert_false(hfd_config_runs_controller(&config, "workspace"));
        assert_true(hfd_config_runs_controller(&config, "lease-collector"));
        assert_int_equal(hfd_config_check_controllers(&config, known, &status), 0);
        expect_ok(ETCD " --controllers=workspace");
        assert_true(hfd_config_runs_controller(&config, "workspace"));
        assert_false(hfd_config_runs_controller(&config, "lease-collector"));
        expect_ok(ETCD " --controllers=-typo");
        assert_int_equal(hfd_config_check_controllers(&config, known, &status), HF_E_INVALID);
        assert_non_null(strstr(status.message, "typo"));
}

static void test_help_lists_each_flag_with_its_default(void **state) {
        struct hf__strbuf help = {0};
        hfd_flags_help(HFD_COMMAND_SERVE, &help);
        assert_non_null(strstr(help.data, "--leader-elect-lease-duration DURATION\n"));
        assert_non_null(strstr(help.data, "(default: 15s)"));
        assert_non_null(strstr(help.data, "(default: <data-dir>/store.db)"));
        assert_null(strstr(help.data, "--watch"));
        hf__strbuf_reset(&help);
        hfd_flags_help(HFD_COMMAND_STATUS, &help);
        assert_non_null(strstr(help.data, "--watch\n"));
        hf__strbuf_done(&help);
}

int main(void) {
        const struct CMUnitTest tests[] = {
                cmocka_unit_test_setup_teardown(test_flags_have_defaults, set_up, tear_down),
                cmocka_unit_test_setup_teardown(test_both_forms_of_flags_and_lists_are_parsed,
                                                set_up, tear_down),
                cmocka_unit_test_setup_teardown(test_directories_come_from_systemd, set_up,
                                                tear_down),
                cmocka_unit_test_setup_teardown(test_commands_are_parsed, set_up, tear_down),
                cmocka_unit_test_setup_teardown(test_bad_flags_are_named, set_up, tear_down),
                cmocka_unit_test_setup_teardown(
                        test_impossible_timings_are_refused_with_their_numbers, set_up, tear_down),
                cmocka_unit_test_setup_teardown(test_the_lock_of_the_election_is_checked, set_up,
                                                tear_down),
                cmocka_unit_test_setup_teardown(test_a_migration_is_checked, set_up, tear_down),
                cmocka_unit_test_setup_teardown(
                        test_bad_election_flags_are_ignored_without_an_election, set_up, tear_down),
                cmocka_unit_test_setup_teardown(test_the_list_of_controllers_is_checked, set_up,
                                                tear_down),
                cmocka_unit_test_setup_teardown(test_help_lists_each_flag_with_its_default, set_up,
                                                tear_down),
        };
        return cmocka_run_group_tests(tests, NULL, NULL);
}

/* SPDX-License-Identifier: Apache-2.0 */
/* holdfastd's command line. */
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

#include <cmocka.h>

#include "base/strbuf.h"
#include "server/config/config_check.h"
#include "server/config/flags.h"
#include "server/config/kube_apiserver.h"

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
        setenv("STATE_DIRECTORY", ":/other", 1);
        assert_int_equal(parse(ETCD), -EINVAL);
        setenv("STATE_DIRECTORY", "/var/lib/holdfast:/other", 1);
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
        expect_ok("help");
        assert_int_equal(config.help_command, HFD_COMMAND_SERVE);
        expect_ok("help release");
        assert_int_equal(config.command, HFD_COMMAND_HELP);
        assert_int_equal(config.help_command, HFD_COMMAND_RELEASE);
        expect_ok("help --man store"); /* the manual has arguments of its own */
        expect_refusal("help dance", "\"dance\"");
        expect_ok("help dance --version");
        assert_int_equal(config.command, HFD_COMMAND_VERSION);
        /* One line of flags for ExecStart= and ExecStopPost=. */
        expect_ok("release " ETCD
                  " --secure-port=1 --leader-elect-lease-duration=20s --shutdown-send-retry-after");
        expect_refusal("release " ETCD " --secure-port=x", "--secure-port");
        expect_refusal("release " ETCD " --watch", "--watch");
        expect_refusal("status --secure-port=1", "--secure-port");
        expect_refusal(ETCD " --watch", "--watch");
        expect_refusal("serve", "\"serve\"");
}

static void test_store_commands_are_parsed(void **state) {
        expect_ok("store copy --from sqlite:a --to=etcd:http://b --etcd-prefix=/x --etcd-cafile=c");
        assert_int_equal(config.command, HFD_COMMAND_STORE_COPY);
        assert_string_equal(config.copy_from, "sqlite:a");
        assert_string_equal(config.copy_to, "etcd:http://b");
        assert_int_equal(config.n_arguments, 0);
        expect_ok("store backup a.db --help");
        assert_int_equal(config.help_command, HFD_COMMAND_STORE_BACKUP);
        expect_ok("store --help");
        assert_int_equal(config.help_command, HFD_COMMAND_STORE);
        expect_ok("store help --help");
        assert_int_equal(config.command, HFD_COMMAND_HELP);
        assert_int_equal(config.help_command, HFD_COMMAND_STORE);
        expect_ok("help store copy");
        assert_int_equal(config.help_command, HFD_COMMAND_STORE_COPY);
        expect_refusal("help store cpoy", "did you mean holdfastd store copy?");
        expect_refusal("store help copy", "unknown command \"copy\"");
        expect_ok("store backup a.db b.db");
        assert_int_equal(config.command, HFD_COMMAND_STORE_BACKUP);
        assert_int_equal(config.n_arguments, 2);
        assert_string_equal(config.arguments[0], "a.db");
        assert_string_equal(config.arguments[1], "b.db");
        expect_refusal("store", "copy, backup, restore, check or compact");
        expect_refusal("store dance", "\"dance\"");
        expect_refusal("store copy --from=sqlite:a", "needs --to");
        expect_refusal("store backup a.db", "needs TARGET");
        expect_refusal("store backup a.db b.db c.db", "\"c.db\"");
        expect_refusal("store check", "needs FILE");
        expect_refusal("store check a.db --data-dir=x", "holdfastd store check");
        expect_refusal("copy", "\"copy\"");
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
        expect_refusal(ETCD " --authorization-mode=Node", "--authorization-mode");
        expect_refusal(ETCD " --authorization-mode=RBAC,Webhook", "--authorization-mode");
        expect_refusal(ETCD " --authorization-mode=RBAC,RBAC", "--authorization-mode");
        expect_refusal(ETCD " --leader-elect-resource-namespace=Bad",
                       "--leader-elect-resource-namespace");
        expect_refusal(ETCD " --leader-elect-resource-name=a..b", "--leader-elect-resource-name");
}

/* Users of Kubernetes write the values of booleans as Go parses them. */
static void test_booleans_have_the_values_of_kubernetes(void **state) {
        static const char *const yes[] = {"=true", "=True", "=TRUE", "=t", "=T", "=1", ""};
        static const char *const no[] = {"=false", "=False", "=FALSE", "=f", "=F", "=0"};
        char line[64];

        for (size_t i = 0; i < sizeof yes / sizeof yes[0]; i++) {
                (void)snprintf(line, sizeof line, "--leader-elect%s", yes[i]);
                expect_ok(line);
                assert_true(config.leader_elect);
        }
        for (size_t i = 0; i < sizeof no / sizeof no[0]; i++) {
                (void)snprintf(line, sizeof line, "--leader-elect%s --v=2", no[i]);
                expect_ok(line);
                assert_false(config.leader_elect);
        }
        expect_refusal("--leader-elect=yes", "is neither true nor false");
        expect_refusal("--leader-elect=tRUE", "is neither true nor false");
}

static void test_a_boolean_in_two_words_is_refused_with_the_right_form(void **state) {
        expect_refusal("--leader-elect false", "write --leader-elect=false");
        expect_refusal("--v 2 --leader-elect true", "write --leader-elect=true");
        expect_refusal("status --watch 0", "write --watch=0");
        /* Here the word is not meant as the value of a boolean flag. */
        expect_refusal("--leader-elect something", "unexpected argument \"something\"");
        expect_refusal("--leader-elect=true false", "unexpected argument \"false\"");
        expect_refusal("--instance a false", "unexpected argument \"false\"");
}

static void expect_no_hint(const char *line) {
        assert_int_equal(parse(line), HF_E_INVALID);
        if (strstr(status.message, "did you mean"))
                fail_msg("%s: %s", line, status.message);
}

static void test_a_misspelt_flag_gets_a_hint(void **state) {
        expect_refusal("--etcd-server=http://a", "did you mean --etcd-servers?");
        expect_refusal("--data-dri=a", "did you mean --data-dir?");
        expect_refusal("--leader_elect_lease_duration=15s",
                       "did you mean --leader-elect-lease-duration?");
        expect_refusal("--leaderelect=false", "did you mean --leader-elect?");
        expect_refusal("-v=2", "did you mean --v?");
        expect_refusal("-data-dir=a", "did you mean --data-dir?");
        /* Hints name only flags of the command. */
        expect_refusal("status --kubeconfg=a", "did you mean --kubeconfig?");
        expect_no_hint("--kubeconfg=a");
        expect_no_hint("--nonsense");
        expect_no_hint("--x=1");
        expect_no_hint("-x");
        expect_no_hint("--");
}

static void test_a_misspelt_command_gets_a_hint(void **state) {
        expect_refusal("relaese --instance=a", "did you mean holdfastd release?");
        expect_refusal("stauts", "did you mean holdfastd status?");
        expect_refusal("versoin", "did you mean holdfastd version?");
        expect_refusal("stroe copy", "did you mean holdfastd store?");
        expect_refusal("store chekc a.db", "did you mean holdfastd store check?");
        expect_no_hint("store dance");
        expect_no_hint("dance");
        expect_no_hint("--instance=a stauts"); /* a command is the first argument */
}

static void test_a_password_is_not_repeated(void **state) {
        static const char *const lines[] = {
                "--etcd-servers=http://me:secret@a:2379",
                "--etcd-servers=http://a,https://me:secret@b:2379",
                "--etcd-servers=http://a,http://me:secret@b:1,",
                "--etcd-servers=http://me:se/secret@b:2379",
                "--etcd-servers=http://me:1,secret@b:2379",
                "--etcd-servers=http://me:se,secret@b:2379,http://c",
                "--etcd-servers=ftp://me:secret@b:2379",
                "--etcd-servers=me:secret@b:2379",
                "--etcd-servers http://a http://me:secret@b:2379",
                "http://me:secret@b:2379",
                "--store=http://me:secret@b:2379",
                "--etcd-server=http://me:secret@b:2379",
                "--http://me:secret=1@b:2379",
                "store check http://me:secret@b:2379",
                "store backup a.db http://me:secret@b:2379",
        };

        for (size_t i = 0; i < sizeof lines / sizeof lines[0]; i++) {
                assert_int_equal(parse(lines[i]), HF_E_INVALID);
                if (strstr(status.message, "secret"))
                        fail_msg("%s: %s", lines[i], status.message);
        }
        expect_refusal(lines[0], "\"http://***@a:2379\"");
        expect_refusal(lines[0], "user name");
        expect_refusal("--etcd-servers=http://a,http://me:1,secret@b:2379,http://c",
                       "\"http://***@b:2379,http://c\" must have no user name");
        expect_refusal("--store=http://a:2379", "--etcd-servers");
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
                       "--leader-elect-resource-lock: the lock type endpoints is gone: "
                       "migrate to leases");
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

/* Scenario of docs/parity.md: CG51. */
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

static void test_output_is_a_choice_with_a_letter(void **state) {
        static const char *const lines[] = {"status --output=json", "status --output json",
                                            "status -o json", "status -o=json", "status -ojson"};

        expect_ok("status");
        assert_int_equal(config.output, HFD_OUTPUT_TEXT);
        for (size_t i = 0; i < sizeof lines / sizeof *lines; i++) {
                expect_ok(lines[i]);
                assert_int_equal(config.output, HFD_OUTPUT_JSON);
        }
        expect_refusal("status -o xml", "flag --output: \"xml\" is not one of text|json");
        expect_refusal("status -o", "flag --output needs a value");
        expect_refusal("status -o json --output=text", "flag --output is given twice");
        expect_refusal("status -x json", "unexpected argument \"-x\"");
        expect_refusal("-o json", "flag --output is not a flag of holdfastd");
}

static void test_check_belongs_to_the_server_alone(void **state) {
        expect_ok("");
        assert_false(config.check);
        expect_ok("--check");
        assert_true(config.check);
        expect_refusal("release --check", "flag --check is not a flag of holdfastd release");
        expect_refusal("status --check", "flag --check is not a flag of holdfastd status");
}

static void test_help_lists_each_flag_with_its_default(void **state) {
        struct hf__strbuf help = {0};
        hfd_flags_help(HFD_COMMAND_SERVE, &help);
        assert_non_null(strstr(help.data, "--leader-elect-lease-duration DURATION\n"));
        assert_non_null(strstr(help.data, "(default: 15s)"));
        assert_non_null(strstr(help.data, "(default: <shared-dir>/store.db)"));
        assert_null(strstr(help.data, "--watch"));
        hf__strbuf_reset(&help);
        hfd_flags_help(HFD_COMMAND_STATUS, &help);
        assert_non_null(strstr(help.data, "--watch\n"));
        hf__strbuf_done(&help);
}

static void test_pki_commands_are_parsed(void **state) {
        expect_ok("pki init --data-dir=/d");
        assert_int_equal(config.command, HFD_COMMAND_PKI_INIT);
        assert_string_equal(config.cert_dir, "/d/pki");
        expect_ok("pki show --shared-dir=/s");
        assert_int_equal(config.command, HFD_COMMAND_PKI_SHOW);
        assert_string_equal(config.cert_dir, "/s/pki");
        expect_ok("pki export --cert-dir=/c out.pem");
        assert_int_equal(config.command, HFD_COMMAND_PKI_EXPORT);
        assert_string_equal(config.arguments[0], "out.pem");
        expect_ok("pki join -");
        assert_int_equal(config.command, HFD_COMMAND_PKI_JOIN);
        assert_string_equal(config.arguments[0], "-");
        expect_refusal("pki", "init, show, export or join");
        expect_refusal("pki joim", "did you mean holdfastd pki join?");
        expect_refusal("pki join --cert-dir=/c", "holdfastd pki join needs FILE");
        expect_refusal("pki init out.pem", "unexpected argument \"out.pem\"");
        expect_refusal("pki export a b", "unexpected argument \"b\"");
        expect_refusal("pki init --watch", "not a flag of holdfastd pki init");
        expect_ok("pki join --help");
        assert_int_equal(config.command, HFD_COMMAND_HELP);
        assert_int_equal(config.help_command, HFD_COMMAND_PKI_JOIN);
}

#define FLAG_TEST(name) cmocka_unit_test_setup_teardown(name, set_up, tear_down)

int main(void) {
        const struct CMUnitTest tests[] = {
                FLAG_TEST(test_flags_have_defaults),
                FLAG_TEST(test_both_forms_of_flags_and_lists_are_parsed),
                FLAG_TEST(test_directories_come_from_systemd),
                FLAG_TEST(test_commands_are_parsed),
                FLAG_TEST(test_store_commands_are_parsed),
                FLAG_TEST(test_pki_commands_are_parsed),
                FLAG_TEST(test_bad_flags_are_named),
                FLAG_TEST(test_booleans_have_the_values_of_kubernetes),
                FLAG_TEST(test_a_boolean_in_two_words_is_refused_with_the_right_form),
                FLAG_TEST(test_a_misspelt_flag_gets_a_hint),
                FLAG_TEST(test_a_misspelt_command_gets_a_hint),
                FLAG_TEST(test_a_password_is_not_repeated),
                FLAG_TEST(test_impossible_timings_are_refused_with_their_numbers),
                FLAG_TEST(test_the_lock_of_the_election_is_checked),
                FLAG_TEST(test_a_migration_is_checked),
                FLAG_TEST(test_bad_election_flags_are_ignored_without_an_election),
                FLAG_TEST(test_the_list_of_controllers_is_checked),
                FLAG_TEST(test_check_belongs_to_the_server_alone),
                FLAG_TEST(test_output_is_a_choice_with_a_letter),
                FLAG_TEST(test_help_lists_each_flag_with_its_default),
        };
        return cmocka_run_group_tests(tests, NULL, NULL);
}

/* SPDX-License-Identifier: Apache-2.0 */
/* The directory of certificates: what a start makes, renews, keeps or refuses. */
#undef NDEBUG
#include <assert.h>
#include <fcntl.h>
#include <setjmp.h>
#include <signal.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <unistd.h>

#include <cmocka.h>

#include "base/json.h"
#include "client/kubeconfig.h"
#include "pki_dir.h"
#include "server/auth/files.h"
#include "server/auth/pki/admin_kubeconfig.h"
#include "server/auth/pki/pki.h"
#include "server/auth/pki/pki_cert.h"
#include "server/auth/write_file.h"

#define N_PROCESSES 8

static char dir[96];

static int make_dir(void **state) {
        int r = pki_dir_make(state);

        snprintf(dir, sizeof dir, "%s/data/pki", pki_dir);
        return r;
}

static const char *in_dir(const char *name) {
        static char path[160];
        snprintf(path, sizeof path, "%s/%s", dir, name);
        return path;
}

static void put(const char *name, const char *text) {
        assert(hfd_write_file(in_dir(name), text, 0600, NULL) == 0);
}

static bool openssl_says(const char *arguments, const char *expected) {
        char line[512];

        snprintf(line, sizeof line, "openssl %s", arguments);
        return pki_dir_says(dir, line, expected);
}

static void test_openssl_accepts_the_certificates(void **state) {
        const char *names[] = {"node-1.example", "192.0.2.7", "bad name!", NULL};
        struct hfd_pki pki = {0};
        struct hf_status status = {0};
        struct stat st;
        assert_int_equal(hfd_pki_load_or_make(dir, names, hf_cancel_never(), &pki, &status), 0);
        assert_true(openssl_says("verify -x509_strict -purpose sslserver -CAfile ca.crt server.crt",
                                 "OK"));
        assert_true(openssl_says("verify -x509_strict -purpose sslclient -CAfile ca.crt admin.crt",
                                 "OK"));
        assert_false(openssl_says("verify -purpose sslclient -CAfile ca.crt server.crt",
                                  "server.crt: OK"));
        assert_true(openssl_says("x509 -noout -text -in server.crt",
                                 "DNS:localhost, IP Address:127.0.0.1, IP Address:0:0:0:0:0:0:0:1, "
                                 "DNS:node-1.example, IP Address:192.0.2.7"));
        assert_true(openssl_says("x509 -noout -subject -in admin.crt",
                                 "O = system:masters, CN = holdfast-admin"));
        assert_true(openssl_says("x509 -noout -text -in ca.crt", "ASN1 OID: prime256v1"));
        assert_true(openssl_says("x509 -noout -checkend $((3600*24*3640)) -in ca.crt",
                                 "will not expire"));
        assert_true(openssl_says("x509 -noout -checkend $((3600*24*360)) -in server.crt",
                                 "will not expire"));
        assert_false(openssl_says("x509 -noout -checkend $((3600*24*366)) -in server.crt",
                                  "will not expire"));
        const char *keys[] = {"ca.key", "server.key", "admin.key", "sa.key"};
        for (size_t i = 0; i < 4; i++) {
                assert_int_equal(stat(in_dir(keys[i]), &st), 0);
                assert_int_equal(st.st_mode & 0777, 0600);
        }
        hfd_pki_done(&pki);
}

static void test_existing_files_are_used_and_a_renewal_keeps_key_and_names(void **state) {
        const char *one[] = {"one.example", NULL}, *two[] = {"two.example", NULL};
        struct hfd_pki first = {0}, again = {0}, more = {0};
        assert_int_equal(hfd_pki_load_or_make(dir, one, hf_cancel_never(), &first, NULL), 0);
        assert_int_equal(hfd_pki_load_or_make(dir, one, hf_cancel_never(), &again, NULL), 0);
        assert_string_equal(first.server_cert_pem, again.server_cert_pem);
        assert_string_equal(first.admin_cert_pem, again.admin_cert_pem);
        assert_int_equal(hfd_pki_load_or_make(dir, two, hf_cancel_never(), &more, NULL), 0);
        assert_string_equal(first.ca_pem, more.ca_pem);
        assert_string_equal(first.server_key_pem, more.server_key_pem);
        assert_string_not_equal(first.server_cert_pem, more.server_cert_pem);
        assert_true(openssl_says("x509 -noout -text -in server.crt",
                                 "DNS:one.example, DNS:two.example"));
        hfd_pki_done(&again);
        assert_int_equal(hfd_pki_load_or_make(dir, one, hf_cancel_never(), &again, NULL), 0);
        assert_string_equal(again.server_cert_pem, more.server_cert_pem);
        hfd_pki_done(&first);
        hfd_pki_done(&again);
        hfd_pki_done(&more);
}

static void test_a_certificate_about_to_expire_is_renewed(void **state) {
        struct hfd_pki first = {0}, renewed = {0};
        assert_int_equal(hfd_pki_load_or_make(dir, NULL, hf_cancel_never(), &first, NULL), 0);
        assert_true(openssl_says("req -new -key server.key -subj /CN=holdfastd -out x.csr", ""));
        assert_true(openssl_says("x509 -req -in x.csr -CA ca.crt -CAkey ca.key -CAcreateserial "
                                 "-days 10 -out server.crt",
                                 ""));
        assert_int_equal(hfd_pki_load_or_make(dir, NULL, hf_cancel_never(), &renewed, NULL), 0);
        assert_string_equal(first.ca_pem, renewed.ca_pem);
        assert_true(openssl_says("x509 -noout -checkend $((3600*24*360)) -in server.crt",
                                 "will not expire"));
        hfd_pki_done(&first);
        hfd_pki_done(&renewed);
}

/* A crash can leave a key without its certificate, but nothing else that is incomplete. */
static void test_a_key_without_a_certificate_gets_one(void **state) {
        struct hfd_pki first = {0}, second = {0};
        assert_int_equal(hfd_pki_load_or_make(dir, NULL, hf_cancel_never(), &first, NULL), 0);
        assert_int_equal(unlink(in_dir("server.crt")), 0);
        assert_int_equal(unlink(in_dir("admin.crt")), 0);
        assert_int_equal(unlink(in_dir("ca.crt")), 0);
        assert_int_equal(hfd_pki_load_or_make(dir, NULL, hf_cancel_never(), &second, NULL), 0);
        assert_string_equal(first.server_key_pem, second.server_key_pem);
        assert_true(openssl_says("verify -CAfile ca.crt server.crt", "OK"));
        hfd_pki_done(&first);
        hfd_pki_done(&second);
}

static void expect_refusal(const char *file) {
        struct hfd_pki pki = {0};
        struct hf_status status = {0};
        assert_int_not_equal(hfd_pki_load_or_make(dir, NULL, hf_cancel_never(), &pki, &status), 0);
        if (!strstr(status.message, file) || strchr(status.message, '\n'))
                fail_msg("wanted one line that names %s: %s", file, status.message);
}

static void test_an_unusable_file_is_named_and_kept(void **state) {
        static const char *const files[] = {"ca.crt",    "ca.key",    "server.crt", "server.key",
                                            "admin.crt", "admin.key", "sa.key"};
        struct hfd_pki pki = {0};
        char *text = NULL, *other_key = NULL;
        assert_int_equal(hfd_pki_load_or_make(dir, NULL, hf_cancel_never(), &pki, NULL), 0);
        for (size_t i = 0; i < sizeof files / sizeof files[0]; i++) {
                char *kept = NULL;
                assert_int_equal(hfd_read_file(in_dir(files[i]), &text, NULL), 0);
                put(files[i], "garbage\n");
                expect_refusal(files[i]);
                assert_int_equal(hfd_read_file(in_dir(files[i]), &kept, NULL), 0);
                assert_string_equal(kept, "garbage\n");
                put(files[i], text);
                free(kept);
                free(text);
        }
        assert_int_equal(hfd_pki_key_make(&other_key), 0);
        assert_int_equal(hfd_read_file(in_dir("server.key"), &text, NULL), 0);
        put("server.key", other_key);
        expect_refusal("server.crt");
        put("server.key", text);
        free(text);
        assert_int_equal(hfd_read_file(in_dir("ca.key"), &text, NULL), 0);
        put("ca.key", other_key);
        expect_refusal("ca.crt");
        put("ca.key", text);
        free(text);
        free(other_key);
        assert_int_equal(unlink(in_dir("admin.key")), 0);
        expect_refusal("admin.key");
        hfd_pki_done(&pki);
}

static void test_a_directory_that_cannot_be_used_is_named(void **state) {
        struct hfd_pki pki = {0};
        struct hf_status status = {0};
        assert_int_not_equal(hfd_pki_load_or_make("/proc/holdfast/pki", NULL, hf_cancel_never(),
                                                  &pki, &status),
                             0);
        assert_non_null(strstr(status.message, "/proc/holdfast/pki"));
        snprintf(dir, sizeof dir, "%s/file", pki_dir);
        assert_int_equal(hfd_write_file(dir, "x", 0600, NULL), 0);
        assert_int_not_equal(hfd_pki_load_or_make(dir, NULL, hf_cancel_never(), &pki, &status), 0);
        assert_non_null(strstr(status.message, dir));
}

static void check_names(const char *named) {
        struct hf_status status = {0};
        int r = hfd_pki_check(dir, NULL, &status);

        assert_int_equal(r == 0, !named);
        if (named)
                assert_non_null(strstr(status.message, named));
}

/* Without the CA's certificate the others are made anew, but only if their files can be used. */
static void test_a_check_without_a_ca_looks_at_the_other_files(void **state) {
        struct hfd_pki pki = {0};
        char *text = NULL;

        check_names(NULL);
        assert_int_equal(hfd_pki_load_or_make(dir, NULL, hf_cancel_never(), &pki, NULL), 0);
        hfd_pki_done(&pki);
        check_names(NULL);
        assert_int_equal(unlink(in_dir("ca.crt")), 0);
        check_names(NULL);
        assert_int_equal(hfd_read_file(in_dir("server.crt"), &text, NULL), 0);
        put("server.crt", "garbage\n");
        check_names("server.crt");
        put("server.crt", text);
        free(text);
        assert_int_equal(hfd_read_file(in_dir("admin.key"), &text, NULL), 0);
        put("server.key", text);
        check_names("server.crt");
        free(text);
}

/* root may write anywhere, so the test becomes another user. */
static void test_a_check_wants_a_directory_that_can_be_written(void **state) {
        bool is_root = geteuid() == 0;

        assert_int_equal(chmod(pki_dir, 0755), 0);
        snprintf(dir, sizeof dir, "%s/bare", pki_dir);
        assert_int_equal(mkdir(dir, 0555), 0);
        assert_int_equal(is_root ? seteuid(65534) : 0, 0);
        check_names("cannot write to directory");
        assert_int_equal(is_root ? seteuid(0) : 0, 0);
        assert_int_equal(chmod(dir, 0755), 0);
        assert_int_equal(hfd_write_file(in_dir(".lock"), "", 0600, NULL), 0);
        if (is_root) {
                assert_int_equal(seteuid(65534), 0);
                check_names("/.lock: Permission denied");
                assert_int_equal(seteuid(0), 0);
        }
        check_names(NULL);
}

/* The directory is missing, and its parent has a file of the same name as the lock file. */
static void test_a_check_ignores_files_of_the_parent(void **state) {
        bool is_root = geteuid() == 0;

        assert_int_equal(chmod(pki_dir, 0755), 0);
        snprintf(dir, sizeof dir, "%s/parent", pki_dir);
        assert_int_equal(mkdir(dir, 0755), 0);
        assert_int_equal(hfd_write_file(in_dir(".lock"), "", 0400, NULL), 0);
        assert_int_equal(is_root ? chown(dir, 65534, (gid_t)-1) : 0, 0);
        snprintf(dir, sizeof dir, "%s/parent/pki", pki_dir);
        assert_int_equal(is_root ? seteuid(65534) : 0, 0);
        check_names(NULL);
        assert_int_equal(is_root ? seteuid(0) : 0, 0);
}

/*
 * All processes wait for the end of a pipe and start together. Each writes its CA and its serving
 * certificate.
 */
static void test_processes_that_start_together_share_one_ca(void **state) {
        pid_t pids[N_PROCESSES];
        int start[2], results[2];
        struct hfd_pki pki = {0};
        char byte;
        assert(pipe(start) == 0 && pipe(results) == 0);
        for (int i = 0; i < N_PROCESSES; i++) {
                pids[i] = fork();
                assert(pids[i] >= 0);
                if (pids[i] > 0)
                        continue;
                char name[32];
                const char *names[] = {name, NULL};
                snprintf(name, sizeof name, "node-%d.example", i);
                close(start[1]);
                if (read(start[0], &byte, 1) != 0 ||
                    hfd_pki_load_or_make(dir, names, hf_cancel_never(), &pki, NULL) != 0)
                        _exit(1);
                bool whole = strstr(pki.ca_pem, "END CERTIFICATE") && pki.server_key_pem &&
                             pki.admin_key_pem;
                uint64_t sum = 5381;
                for (const char *c = pki.ca_pem; *c; c++)
                        sum = sum * 33 + (unsigned char)*c;
                bool said = write(results[1], &sum, sizeof sum) == (ssize_t)sizeof sum;
                hfd_pki_done(&pki);
                _exit(whole && said ? 0 : 2);
        }
        close(start[0]);
        close(start[1]);
        uint64_t first = 0;
        for (int i = 0; i < N_PROCESSES; i++) {
                int exit_status = -1;
                uint64_t sum = 0;
                assert(waitpid(pids[i], &exit_status, 0) == pids[i]);
                assert_int_equal(exit_status, 0);
                assert_int_equal(read(results[0], &sum, sizeof sum), sizeof sum);
                first = i == 0 ? sum : first;
                assert_true(sum == first);
        }
        close(results[0]);
        close(results[1]);
        assert_true(openssl_says("verify -CAfile ca.crt server.crt admin.crt", "admin.crt: OK"));
        assert_true(openssl_says("x509 -noout -text -in server.crt", "DNS:node-7.example"));
}

/*
 * The system calls that complete a file and move it to its place. The test kills a process before
 * one of them.
 */
static struct {
        int n_left;   /* calls until the process is killed; 0 = it is not killed */
        int begun[2]; /* a pipe: one byte tells the test that the process holds the lock, ... */
        int go[2];    /* ... and a pipe on which it waits until the other process has started */
} doom;

static void count_call(void) {
        char byte = 0;
        if (doom.n_left == 0)
                return;
        if (doom.begun[1] >= 0) {
                assert(write(doom.begun[1], &byte, 1) == 1 && read(doom.go[0], &byte, 1) == 1);
                doom.begun[1] = -1;
        }
        if (--doom.n_left == 0)
                (void)kill(getpid(), SIGKILL);
}

int fsync(int fd) {
        count_call();
        return (int)syscall(SYS_fsync, fd);
}

int rename(const char *from, const char *to) {
        count_call();
        return renameat(AT_FDCWD, from, AT_FDCWD, to);
}

static pid_t start_in_child(int n_calls) {
        struct hfd_pki pki = {0};
        pid_t pid = fork();
        assert(pid >= 0);
        if (pid > 0)
                return pid;
        doom.n_left = n_calls;
        int r = hfd_pki_load_or_make(dir, NULL, hf_cancel_never(), &pki, NULL);
        hfd_pki_done(&pki);
        _exit(r == 0 ? 0 : 1);
}

/*
 * A process that waits for the killed one continues, and so does the next one, with the files that
 * exist by then.
 */
static void test_a_start_killed_at_any_point_blocks_nobody(void **state) {
        bool killed = true;
        int n_killed = 0;
        for (; killed; n_killed += killed) {
                struct hfd_pki pki = {0};
                int status = -1;
                char byte = 0;
                assert(pipe(doom.begun) == 0 && pipe(doom.go) == 0);
                snprintf(dir, sizeof dir, "%s/%d", pki_dir, n_killed);
                pid_t doomed = start_in_child(n_killed + 1);
                assert_int_equal(read(doom.begun[0], &byte, 1), 1);
                pid_t waiting = start_in_child(0);
                assert_int_equal(write(doom.go[1], &byte, 1), 1);
                assert_int_equal(waitpid(doomed, &status, 0), doomed);
                killed = WIFSIGNALED(status);
                assert_int_equal(status, killed ? SIGKILL : 0);
                assert_int_equal(waitpid(waiting, &status, 0), waiting);
                assert_int_equal(status, 0);
                assert_int_equal(hfd_pki_load_or_make(dir, NULL, hf_cancel_never(), &pki, NULL), 0);
                assert_true(openssl_says("verify -CAfile ca.crt server.crt admin.crt",
                                         "admin.crt: OK"));
                hfd_pki_done(&pki);
                for (int i = 0; i < 2; i++)
                        close(doom.begun[i]), close(doom.go[i]);
        }
        /* Two calls for each file (its contents, its move), and one for the directory after the
         * keys and after the certificates. */
        assert_int_equal(n_killed, 7 * 2 + 2);
}

static void test_the_admin_kubeconfig_contains_the_credentials(void **state) {
        struct hfd_pki pki = {0};
        struct hf__json *json = NULL;
        struct stat st;
        char path[128], command[512], *text = NULL;
        assert_int_equal(hfd_pki_load_or_make(dir, NULL, hf_cancel_never(), &pki, NULL), 0);
        snprintf(path, sizeof path, "%s/admin.kubeconfig", pki_dir);
        assert_int_equal(hfd_admin_kubeconfig_write(&pki, path, "https://127.0.0.1:6443", NULL,
                                                    NULL),
                         0);
        assert_int_equal(stat(path, &st), 0);
        assert_int_equal(st.st_mode & 0777, 0600);
        assert_int_equal(hfd_read_file(path, &text, NULL), 0);
        assert_int_equal(hf__json_parse(text, strlen(text), &json, NULL), 0);
        const struct hf__json *cluster =
                hf__json_get(hf__json_first(hf__json_get(json, "clusters")), "cluster");
        assert_string_equal(hf__json_string(cluster, "server"), "https://127.0.0.1:6443");
        /* coreutils decodes what we encoded */
        snprintf(command, sizeof command,
                 "sed -n 's/.*certificate-authority-data\": \"\\([^\"]*\\)\".*/\\1/p' '%s' | "
                 "base64 -d | cmp - '%s/ca.crt'",
                 path, dir);
        assert_int_equal(system(command), 0);
        if (system("command -v kubectl >/dev/null") == 0) {
                snprintf(command, sizeof command,
                         "kubectl --kubeconfig='%s' config current-context >/dev/null", path);
                assert_int_equal(system(command), 0);
        }
        hf__json_free(json);
        free(text);
        hfd_pki_done(&pki);
}

static void test_the_admin_kubeconfig_names_other_servers(void **state) {
        const struct hfd_admin_server servers[] = {{"https://10.0.0.2:6443", "holdfast-b"},
                                                   {"https://[fd00::3]:6443", "holdfast-c"}};
        const struct hfd_admin_servers others = {.servers = servers, .n = 2};
        char path[160], command[512];
        struct hf__kubeconfig config;
        struct hf_status status = {0};
        struct hfd_pki pki = {0};

        assert_int_equal(hfd_pki_load_or_make(dir, NULL, hf_cancel_never(), &pki, NULL), 0);
        snprintf(path, sizeof path, "%s/admin.kubeconfig", pki_dir);
        assert_int_equal(hfd_admin_kubeconfig_write(&pki, path, "https://10.0.0.1:6443", &others,
                                                    &status),
                         0);
        assert_int_equal(hf__kubeconfig_load(path, &config, &status), 0);
        assert_string_equal(config.rest.server, "https://10.0.0.1:6443");
        assert_int_equal(config.rest.n_other_servers, 2);
        assert_string_equal(config.rest.other_servers[0], servers[0].url);
        assert_string_equal(config.rest.other_servers[1], servers[1].url);
        hf__kubeconfig_done(&config);
        if (system("command -v kubectl >/dev/null") == 0) {
                snprintf(command, sizeof command,
                         "test \"$(kubectl --kubeconfig='%s' --context=holdfast-c config view "
                         "--minify -o jsonpath='{.clusters[0].cluster.server}')\" = '%s'",
                         path, servers[1].url);
                assert_int_equal(system(command), 0);
        }
        hfd_pki_done(&pki);
}

int main(void) {
        const struct CMUnitTest tests[] = {
                cmocka_unit_test_setup_teardown(test_processes_that_start_together_share_one_ca,
                                                make_dir, pki_dir_remove),
                cmocka_unit_test_setup_teardown(test_a_start_killed_at_any_point_blocks_nobody,
                                                make_dir, pki_dir_remove),
                cmocka_unit_test_setup_teardown(test_openssl_accepts_the_certificates, make_dir,
                                                pki_dir_remove),
                cmocka_unit_test_setup_teardown(
                        test_existing_files_are_used_and_a_renewal_keeps_key_and_names, make_dir,
                        pki_dir_remove),
                cmocka_unit_test_setup_teardown(test_a_certificate_about_to_expire_is_renewed,
                                                make_dir, pki_dir_remove),
                cmocka_unit_test_setup_teardown(test_a_key_without_a_certificate_gets_one, make_dir,
                                                pki_dir_remove),
                cmocka_unit_test_setup_teardown(test_an_unusable_file_is_named_and_kept, make_dir,
                                                pki_dir_remove),
                cmocka_unit_test_setup_teardown(test_a_directory_that_cannot_be_used_is_named,
                                                make_dir, pki_dir_remove),
                cmocka_unit_test_setup_teardown(test_a_check_without_a_ca_looks_at_the_other_files,
                                                make_dir, pki_dir_remove),
                cmocka_unit_test_setup_teardown(test_a_check_wants_a_directory_that_can_be_written,
                                                make_dir, pki_dir_remove),
                cmocka_unit_test_setup_teardown(test_a_check_ignores_files_of_the_parent, make_dir,
                                                pki_dir_remove),
                cmocka_unit_test_setup_teardown(test_the_admin_kubeconfig_contains_the_credentials,
                                                make_dir, pki_dir_remove),
                cmocka_unit_test_setup_teardown(test_the_admin_kubeconfig_names_other_servers,
                                                make_dir, pki_dir_remove),
        };
        return cmocka_run_group_tests(tests, NULL, NULL);
}

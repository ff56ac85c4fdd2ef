/* SPDX-License-Identifier: Apache-2.0 */
/* The fields of a journal entry, and when the journal is chosen. What the journal stores of it:
 * test_systemd.py. */
#undef NDEBUG
#include <assert.h>
#include <fcntl.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include <cmocka.h>

#include "base/log_request.h"
#include "server/systemd/log_sink.h"

static char the_instance[] = "a", the_ns[] = "kube-system", the_name[] = "holdfast-controllers";
static struct hfd_config the_config = {.command = HFD_COMMAND_SERVE,
                                       .instance = the_instance,
                                       .leader_elect = true,
                                       .lease_ns = the_ns,
                                       .lease_name = the_name,
                                       .v = 2};

static const char *const all_names[] = {"PRIORITY",           "SYSLOG_IDENTIFIER",
                                        "HOLDFAST_COMPONENT", "HOLDFAST_INSTANCE",
                                        "HOLDFAST_LEASE",     "HOLDFAST_TERM",
                                        "HOLDFAST_REQUEST",   "MESSAGE"};

/* The value of a field; NULL = the entry has no such field. Fails when the entry has it twice. */
static const char *field(const struct hfd_log_entry *entry, const char *name) {
        static char value[2048];
        size_t n_name = strlen(name);
        bool found = false;

        for (size_t i = 0; i < entry->n; i++) {
                const char *text = entry->fields[i].iov_base;
                size_t n = entry->fields[i].iov_len;
                if (n <= n_name || memcmp(text, name, n_name) != 0 || text[n_name] != '=')
                        continue;
                assert_false(found);
                found = true;
                memcpy(value, text + n_name + 1, n - n_name - 1);
                value[n - n_name - 1] = '\0';
        }
        return found ? value : NULL;
}

static void expect_known_fields_only(const struct hfd_log_entry *entry) {
        size_t n = 0;

        for (size_t i = 0; i < sizeof all_names / sizeof *all_names; i++)
                n += field(entry, all_names[i]) != NULL;
        assert_int_equal(n, entry->n);
}

static void test_a_journal_entry_has_its_fields(void **state) {
        struct hfd_log_sink sink;
        struct hfd_log_entry entry;
        struct hf_log log;

        hfd_log_sink_init(&sink, &the_config, &log);
        hfd_log_encode(&sink, HF_LOG_WARNING, "elector", "the Lease x=y is lost", &entry);
        assert_string_equal(field(&entry, "PRIORITY"), "4");
        assert_string_equal(field(&entry, "SYSLOG_IDENTIFIER"), "holdfastd");
        assert_string_equal(field(&entry, "HOLDFAST_COMPONENT"), "elector");
        assert_string_equal(field(&entry, "HOLDFAST_INSTANCE"), "a");
        assert_string_equal(field(&entry, "HOLDFAST_LEASE"), "kube-system/holdfast-controllers");
        assert_string_equal(field(&entry, "MESSAGE"), "elector: the Lease x=y is lost");
        assert_null(field(&entry, "HOLDFAST_TERM"));
        expect_known_fields_only(&entry);
}

static void test_the_term_belongs_to_the_process(void **state) {
        struct hfd_log_sink sink;
        struct hfd_log_entry entry;
        struct hf_log log;

        hfd_log_sink_init(&sink, &the_config, &log);
        hfd_log_sink_set_term(&sink, UINT64_MAX);
        hfd_log_encode(&sink, HF_LOG_NOTICE, "etcd", "x", &entry);
        assert_string_equal(field(&entry, "HOLDFAST_TERM"), "18446744073709551615");
        expect_known_fields_only(&entry);
        hfd_log_sink_set_term(&sink, 0);
        hfd_log_encode(&sink, HF_LOG_NOTICE, "etcd", "x", &entry);
        assert_null(field(&entry, "HOLDFAST_TERM"));
}

static void test_the_request_belongs_to_the_line(void **state) {
        struct hfd_log_sink sink;
        struct hfd_log_entry entry;
        struct hf_log log;

        hfd_log_sink_init(&sink, &the_config, &log);
        hfd_log_sink_set_term(&sink, 7);
        hf__log_set_request("0b0e7e2a");
        hfd_log_encode(&sink, HF_LOG_INFO, "http", "x", &entry);
        assert_string_equal(field(&entry, "HOLDFAST_REQUEST"), "0b0e7e2a");
        expect_known_fields_only(&entry);
        hf__log_set_request(NULL);
        hfd_log_encode(&sink, HF_LOG_INFO, "http", "x", &entry);
        assert_null(field(&entry, "HOLDFAST_REQUEST"));
}

static void test_without_election_there_is_no_lease_field(void **state) {
        struct hfd_config config = the_config;
        struct hfd_log_sink sink;
        struct hfd_log_entry entry;
        struct hf_log log;

        config.leader_elect = false;
        hfd_log_sink_init(&sink, &config, &log);
        hfd_log_encode(&sink, HF_LOG_ERROR, "http", "x", &entry);
        assert_null(field(&entry, "HOLDFAST_LEASE"));
        assert_null(field(&entry, "HOLDFAST_TERM"));
        expect_known_fields_only(&entry);
}

/*
 * With the longest possible values, only component and message are truncated, and nothing is
 * written past the end.
 */
static void test_long_values_are_truncated_safely(void **state) {
        char instance[64], ns[HF_NAME_MAX + 1], name[HF_NAME_MAX + 1], component[400],
                message[1024], expected[600];
        struct hfd_config config = the_config;
        struct hfd_log_sink sink;
        struct hfd_log_entry entry;
        struct hf_log log;
        char *const texts[] = {instance, ns, name, component, message};
        const size_t sizes[] = {sizeof instance, sizeof ns, sizeof name, sizeof component,
                                sizeof message};

        for (size_t i = 0; i < sizeof texts / sizeof *texts; i++) {
                memset(texts[i], 'a' + (int)i, sizes[i] - 1);
                texts[i][sizes[i] - 1] = '\0';
        }
        config.instance = instance;
        config.lease_ns = ns;
        config.lease_name = name;
        hfd_log_sink_init(&sink, &config, &log);
        hfd_log_sink_set_term(&sink, UINT64_MAX);
        hfd_log_encode(&sink, HF_LOG_DEBUG, "elector", message, &entry);
        snprintf(expected, sizeof expected, "%s/%s", ns, name);
        assert_string_equal(field(&entry, "HOLDFAST_LEASE"), expected);
        assert_string_equal(field(&entry, "HOLDFAST_INSTANCE"), instance);
        assert_true(strstr(field(&entry, "MESSAGE"), message) != NULL);
        hfd_log_encode(&sink, HF_LOG_DEBUG, component, message, &entry);
        assert_true(strlen(field(&entry, "HOLDFAST_COMPONENT")) < 128);
        assert_true(strlen(field(&entry, "MESSAGE")) > 1000);
        expect_known_fields_only(&entry);
}

static void test_the_journal_is_chosen_by_device_and_inode(void **state) {
        char value[64];
        struct stat st;
        int fds[2];

        assert_int_equal(pipe(fds), 0);
        assert_int_equal(fstat(fds[1], &st), 0);
        snprintf(value, sizeof value, "%llu:%llu", (unsigned long long)st.st_dev,
                 (unsigned long long)st.st_ino);
        assert_true(hfd_log_is_journal_stream(value, fds[1]));
        assert_false(hfd_log_is_journal_stream(NULL, fds[1]));
        assert_false(hfd_log_is_journal_stream("", fds[1]));
        assert_false(hfd_log_is_journal_stream("1", fds[1]));
        snprintf(value, sizeof value, "%llu:%llu", (unsigned long long)st.st_dev,
                 (unsigned long long)st.st_ino + 1);
        assert_false(hfd_log_is_journal_stream(value, fds[1]));
        snprintf(value, sizeof value, "%llu:%llux", (unsigned long long)st.st_dev,
                 (unsigned long long)st.st_ino);
        assert_false(hfd_log_is_journal_stream(value, fds[1]));
        close(fds[0]);
        close(fds[1]);
        assert_false(hfd_log_is_journal_stream("0:0", fds[1]));
}

/* stderr of this test, for one line through the sink. */
static const char *line_on_stderr(bool to_journal) {
        static char line[2048];
        char value[64];
        struct hfd_log_sink sink;
        struct hf_log log;
        struct stat st;
        int fds[2], saved = dup(STDERR_FILENO);

        assert(saved >= 0 && pipe2(fds, O_NONBLOCK) == 0 && fstat(fds[1], &st) == 0);
        snprintf(value, sizeof value, "%llu:%llu", (unsigned long long)st.st_dev,
                 (unsigned long long)st.st_ino);
        setenv("JOURNAL_STREAM", to_journal ? value : "1:1", 1);
        assert(dup2(fds[1], STDERR_FILENO) >= 0);
        hfd_log_sink_init(&sink, &the_config, &log);
        hf_log(&log, HF_LOG_WARNING, "etcd", "it\nis %d", 7);
        assert(dup2(saved, STDERR_FILENO) >= 0);
        ssize_t n = read(fds[0], line, sizeof line - 1);
        line[n > 0 ? n : 0] = '\0';
        close(saved);
        close(fds[0]);
        close(fds[1]);
        unsetenv("JOURNAL_STREAM");
        return line;
}

static void test_outside_the_journal_a_line_has_time_and_level(void **state) {
        const char *line = line_on_stderr(false);
        const char *rest = strchr(line, 'Z');

        assert_non_null(rest);
        assert_string_equal(rest, "Z W etcd: it is 7\n");
}

/* Where a journal runs, it may take the line, and then stderr stays empty. */
static void test_what_the_journal_does_not_take_goes_to_stderr(void **state) {
        const char *line = line_on_stderr(true);

        if (access("/run/systemd/journal/socket", F_OK) != 0)
                assert_string_equal(line, "<4>etcd: it is 7\n");
        else
                assert_true(line[0] == '\0' || strcmp(line, "<4>etcd: it is 7\n") == 0);
}

int main(void) {
        const struct CMUnitTest tests[] = {
                cmocka_unit_test(test_a_journal_entry_has_its_fields),
                cmocka_unit_test(test_the_term_belongs_to_the_process),
                cmocka_unit_test(test_the_request_belongs_to_the_line),
                cmocka_unit_test(test_without_election_there_is_no_lease_field),
                cmocka_unit_test(test_long_values_are_truncated_safely),
                cmocka_unit_test(test_the_journal_is_chosen_by_device_and_inode),
                cmocka_unit_test(test_outside_the_journal_a_line_has_time_and_level),
                cmocka_unit_test(test_what_the_journal_does_not_take_goes_to_stderr),
        };
        return cmocka_run_group_tests(tests, NULL, NULL);
}

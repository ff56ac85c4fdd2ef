/* SPDX-License-Identifier: Apache-2.0 */
/* The file of the audit log and its writer: rotation, old files, and which events are lost when the
 * file cannot be written. */
#undef NDEBUG
#include <assert.h>
#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <setjmp.h>
#include <signal.h>
#include <stdarg.h>
#include <stdatomic.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/resource.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <unistd.h>

#include <cmocka.h>

#include <holdfast/error.h>
#include <holdfast/metrics.h>

#include "patience.h"
#include "server/audit/audit_writer.h"
#include "server/audit/backups.h"

#define MS INT64_C(1795423087123) /* 2026-11-23T08:38:07.123Z */

static const struct hf_host plain_host = {.size = sizeof plain_host};
static char directory[64], path[128];

static int make_directory(void **state) {
        (void)state;
        (void)snprintf(directory, sizeof directory, "/tmp/test-audit-XXXXXX");
        assert_non_null(mkdtemp(directory));
        (void)snprintf(path, sizeof path, "%s/audit.log", directory);
        return 0;
}

static int remove_directory(void **state) {
        char command[128];
        (void)state;

        (void)snprintf(command, sizeof command, "rm -r %s", directory);
        return system(command);
}

/* Counts the files in the directory, and their bytes. */
static size_t count_files(size_t *ret_bytes) {
        DIR *dir = opendir(directory);
        const struct dirent *entry;
        size_t n = 0;
        struct stat st;

        *ret_bytes = 0;
        while ((entry = readdir(dir)))
                if (entry->d_name[0] != '.') {
                        assert_int_equal(fstatat(dirfd(dir), entry->d_name, &st, 0), 0);
                        *ret_bytes += (size_t)st.st_size;
                        n++;
                }
        (void)closedir(dir);
        return n;
}

static struct hfd_audit_file *open_log(int64_t max_size, int64_t max_backups) {
        const struct hfd_audit_file_config config = {.path = path,
                                                     .max_size = max_size,
                                                     .max_backups = max_backups,
                                                     .max_age = 30};
        struct hfd_audit_file *file;
        struct hf_status status = {0};

        assert_int_equal(hfd_audit_file_new(&plain_host, &config, &file, &status), 0);
        return file;
}

static bool never(void *ctx) {
        (void)ctx;
        return false;
}

static int write_text(struct hfd_audit_file *file, const char *text) {
        return hfd_audit_file_write(file, text, strlen(text), never, NULL);
}

static void test_old_files_have_the_names_of_kube_apiserver(void **state) {
        static const char *const others[] = {"audit.log",
                                             "audit-2026-11-23T08-38-07.123.txt",
                                             "audit-2026-11-23T08:38:07.123.log",
                                             "audit-2026-13-23T08-38-07.123.log",
                                             "audit-2026-11-23T08-38-07.123.log.gz",
                                             "audis-2026-11-23T08-38-07.123.log",
                                             "audit-2026-11-23T08-38-07x123.log",
                                             "audit-log"};
        char name[128];
        int64_t ms;
        (void)state;

        assert_true(hfd_audit_backup_name("/var/a.b/audit.log", MS, name, sizeof name));
        assert_string_equal(name, "/var/a.b/audit-2026-11-23T08-38-07.123.log");
        assert_true(hfd_audit_is_backup("/var/a.b/audit.log", strrchr(name, '/') + 1, &ms));
        assert_int_equal(ms, MS);
        assert_true(hfd_audit_backup_name("/var/a.b/audit", MS, name, sizeof name));
        assert_string_equal(name, "/var/a.b/audit-2026-11-23T08-38-07.123");
        assert_true(hfd_audit_backup_name("audit.log", MS, name, sizeof name));
        assert_string_equal(name, "audit-2026-11-23T08-38-07.123.log");
        assert_false(hfd_audit_backup_name("audit.log", MS, name, 20));
        for (size_t i = 0; i < sizeof others / sizeof others[0]; i++)
                assert_false(hfd_audit_is_backup("/x/audit.log", others[i], &ms));
}

static void test_old_files_are_kept_by_number_and_age(void **state) {
        const int64_t day = INT64_C(86400000), now = 100 * day;
        const int64_t ended[] = {now - day, now - 2 * day, now - 3 * day, now - 9 * day};
        (void)state;

        assert_int_equal(hfd_audit_backups_to_keep(ended, 4, now, 0, 0), 4);
        assert_int_equal(hfd_audit_backups_to_keep(ended, 4, now, 3, 0), 3);
        assert_int_equal(hfd_audit_backups_to_keep(ended, 4, now, 0, 2), 2);
        assert_int_equal(hfd_audit_backups_to_keep(ended, 4, now, 1, 2), 1);
        assert_int_equal(hfd_audit_backups_to_keep(ended, 4, now, 9, 9), 4);
        assert_int_equal(hfd_audit_backups_to_keep(ended, 0, now, 9, 9), 0);
}

static void test_a_full_file_is_rotated_and_few_old_ones_stay(void **state) {
        struct hfd_audit_file *file = open_log(25, 3);
        size_t n_bytes;
        struct stat st;
        (void)state;

        for (int i = 0; i < 4; i++) /* two lines in each file, none divided */
                assert_int_equal(write_text(file, "0123456789\n"), 0);
        assert_int_equal(count_files(&n_bytes), 2);
        assert_int_equal(n_bytes, 44);
        for (int i = 0; i < 20; i++)
                assert_int_equal(write_text(file, "0123456789\n"), 0);
        assert_int_equal(count_files(&n_bytes), 4);
        assert_int_equal(n_bytes, 88);
        /* A line that is longer than the size limit of a file is written all the same. */
        assert_int_equal(write_text(file, "012345678901234567890123456789\n"), 0);
        assert_int_equal(count_files(&n_bytes), 4);
        assert_int_equal(stat(path, &st), 0);
        assert_int_equal(st.st_size, 31);
        assert_int_equal(st.st_mode & 0777, 0600);
        hfd_audit_file_free(file);
        /* A new start continues the file, and removes old files beyond the limit. */
        file = open_log(1000, 1);
        assert_int_equal(count_files(&n_bytes), 2);
        assert_int_equal(write_text(file, "x\n"), 0);
        assert_int_equal(stat(path, &st), 0);
        assert_int_equal(st.st_size, 33);
        hfd_audit_file_free(file);
}

static void test_a_file_that_was_moved_away_is_made_anew(void **state) {
        struct hfd_audit_file *file = open_log(0, 0);
        char moved[160];
        struct stat st;
        (void)state;

        (void)snprintf(moved, sizeof moved, "%s.1", path);
        assert_int_equal(write_text(file, "a\n"), 0);
        assert_int_equal(rename(path, moved), 0);
        assert_int_equal(hfd_audit_file_reopen(file), 0);
        assert_int_equal(write_text(file, "bcd\n"), 0);
        assert_int_equal(stat(path, &st), 0);
        assert_int_equal(st.st_size, 4);
        hfd_audit_file_free(file);
}

/* The limit of a file's size stands for a full disk: the write succeeds in part. */
static void test_a_full_disk_leaves_whole_lines(void **state) {
        const struct rlimit small = {.rlim_cur = 25, .rlim_max = RLIM_INFINITY};
        const struct rlimit none = {.rlim_cur = RLIM_INFINITY, .rlim_max = RLIM_INFINITY};
        struct hfd_audit_file *file = open_log(0, 0);
        struct stat st;
        (void)state;

        assert_int_equal(write_text(file, "0123456789\n"), 0);
        assert_ptr_not_equal(signal(SIGXFSZ, SIG_IGN), SIG_ERR);
        assert_int_equal(setrlimit(RLIMIT_FSIZE, &small), 0);
        int r = write_text(file, "012345678901234567890123456789\n");
        assert_int_equal(setrlimit(RLIMIT_FSIZE, &none), 0);
        assert_int_equal(r, -EFBIG);
        assert_int_equal(stat(path, &st), 0);
        assert_int_equal(st.st_size, 11);
        assert_int_equal(write_text(file, "ab\n"), 0);
        assert_int_equal(stat(path, &st), 0);
        assert_int_equal(st.st_size, 14);
        hfd_audit_file_free(file);
}

/* A killed process has left an incomplete line. */
static void test_a_line_that_another_process_left_is_ended(void **state) {
        char got[32] = "";
        FILE *left = fopen(path, "w");

        assert_non_null(left);
        assert_true(fputs("whole\nhal", left) >= 0);
        assert_int_equal(fclose(left), 0);
        for (int i = 0; i < 2; i++) {
                struct hfd_audit_file *file = open_log(0, 0);
                assert_int_equal(write_text(file, "line\n"), 0);
                hfd_audit_file_free(file);
        }
        left = fopen(path, "r");
        assert_true(fread(got, 1, sizeof got - 1, left) > 0);
        assert_int_equal(fclose(left), 0);
        assert_string_equal(got, "whole\nhal\nline\nline\n");
}

static void test_a_line_that_a_pipe_took_in_part_is_ended(void **state) {
        char *many = malloc(300000), got[64];
        struct hfd_audit_file *file;
        ssize_t n, total = 0;
        (void)state;

        assert_non_null(many);
        memset(many, 'x', 299999);
        many[299999] = '\0';
        assert_int_equal(mkfifo(path, 0600), 0);
        int fd = open(path, O_RDONLY | O_NONBLOCK);
        assert_true(fd >= 0);
        file = open_log(10, 1);
        assert_int_equal(write_text(file, many), -EAGAIN); /* nobody reads */
        while ((n = read(fd, many, 300000)) > 0)
                total += n;
        assert_true(total > 0 && total < 299999);
        assert_int_equal(write_text(file, "ab\n"), 0);
        n = read(fd, got, sizeof got);
        assert_int_equal(n, 4);
        assert_memory_equal(got, "\nab\n", 4);
        hfd_audit_file_free(file);
        (void)close(fd);
        free(many);
}

/* The pipe has room for all parts. */
static void test_a_torn_line_in_a_pipe_is_ended_after_a_reopen(void **state) {
        char many[3 * PIPE_BUF], got[4 * PIPE_BUF];
        struct hfd_audit_file *file;
        (void)state;

        memset(many, 'x', sizeof many - 1);
        many[sizeof many - 1] = '\0';
        assert_int_equal(mkfifo(path, 0600), 0);
        int fd = open(path, O_RDONLY | O_NONBLOCK);
        assert_true(fd >= 0);
        file = open_log(0, 0);
        assert_int_equal(write_text(file, many), -EAGAIN);
        assert_int_equal(hfd_audit_file_reopen(file), 0);
        assert_int_equal(write_text(file, "ab\n"), 0);
        assert_int_equal(read(fd, got, sizeof got), PIPE_BUF + 4);
        assert_memory_equal(got + PIPE_BUF, "\nab\n", 4);
        hfd_audit_file_free(file);
        (void)close(fd);
}

/* The pipe has room for all parts. */
static void test_a_write_to_a_pipe_may_end_between_its_parts(void **state) {
        char many[3 * PIPE_BUF], got[4 * PIPE_BUF];
        struct hfd_audit_file *file;
        (void)state;

        memset(many, 'x', sizeof many - 1);
        many[sizeof many - 1] = '\0';
        assert_int_equal(mkfifo(path, 0600), 0);
        int fd = open(path, O_RDONLY | O_NONBLOCK);
        assert_true(fd >= 0);
        file = open_log(0, 0);
        assert_int_equal(write_text(file, many), -EAGAIN);
        assert_int_equal(read(fd, got, sizeof got), PIPE_BUF);
        assert_int_equal(write_text(file, "ab\n"), 0);
        assert_int_equal(read(fd, got, sizeof got), 4);
        assert_memory_equal(got, "\nab\n", 4);
        hfd_audit_file_free(file);
        (void)close(fd);
}

/* The file behind the standard output was opened without O_APPEND, as by a shell's ">". */
static void test_a_full_disk_leaves_no_hole_in_the_standard_output(void **state) {
        const struct rlimit small = {.rlim_cur = 8, .rlim_max = RLIM_INFINITY};
        const struct rlimit none = {.rlim_cur = RLIM_INFINITY, .rlim_max = RLIM_INFINITY};
        const struct hfd_audit_file_config config = {.path = "-"};
        int saved = dup(STDOUT_FILENO), fd = open(path, O_RDWR | O_CREAT, 0600);
        struct hfd_audit_file *file;
        struct hf_status status = {0};
        char got[32] = "";
        (void)state;

        assert_true(saved >= 0 && fd >= 0);
        assert_int_equal(dup2(fd, STDOUT_FILENO), STDOUT_FILENO);
        int r = hfd_audit_file_new(&plain_host, &config, &file, &status);
        assert_int_equal(dup2(saved, STDOUT_FILENO), STDOUT_FILENO);
        assert_int_equal(r, 0);
        assert_int_equal(write_text(file, "0123\n"), 0);
        assert_ptr_not_equal(signal(SIGXFSZ, SIG_IGN), SIG_ERR);
        assert_int_equal(setrlimit(RLIMIT_FSIZE, &small), 0);
        r = write_text(file, "456789\n");
        assert_int_equal(setrlimit(RLIMIT_FSIZE, &none), 0);
        assert_int_equal(r, -EFBIG);
        assert_int_equal(write_text(file, "ab\n"), 0);
        assert_int_equal(pread(fd, got, sizeof got, 0), 12);
        assert_memory_equal(got, "0123\n456\nab\n", 12);
        hfd_audit_file_free(file);
        (void)close(fd);
        (void)close(saved);
}

/* The journal's end of the standard output is a socket. */
static void test_the_standard_output_may_be_a_socket(void **state) {
        const struct hfd_audit_file_config config = {.path = "-", .max_size = 1};
        char *many = calloc(1, 4000001), got[8];
        struct hfd_audit_file *file;
        struct hf_status status = {0};
        int pair[2], saved = dup(STDOUT_FILENO);
        (void)state;

        assert_non_null(many);
        memset(many, 'x', 4000000);
        assert_int_equal(socketpair(AF_UNIX, SOCK_STREAM, 0, pair), 0);
        assert_int_equal(dup2(pair[0], STDOUT_FILENO), STDOUT_FILENO);
        int r = hfd_audit_file_new(&plain_host, &config, &file, &status);
        assert_int_equal(dup2(saved, STDOUT_FILENO), STDOUT_FILENO);
        assert_int_equal(r, 0);
        assert_int_equal(write_text(file, "ab\n"), 0);
        assert_int_equal(read(pair[1], got, sizeof got), 3);
        assert_int_equal(write_text(file, many), -EAGAIN); /* nobody reads */
        (void)close(pair[1]);
        assert_int_equal(write_text(file, "ab\n"), -EPIPE);
        hfd_audit_file_free(file);
        (void)close(pair[0]);
        (void)close(saved);
        free(many);
}

static void test_faults_of_the_path_name_it(void **state) {
        struct hfd_audit_file_config config = {.path = directory};
        struct hfd_audit_file *file;
        struct hf_status status = {0};
        char deep[160];
        struct stat st;
        (void)state;

        assert_int_equal(hfd_audit_file_new(&plain_host, &config, &file, &status), -EISDIR);
        assert_non_null(strstr(status.message, directory));
        assert_int_equal(hfd_audit_file_check(directory, &status), -EISDIR);
        assert_int_equal(hfd_audit_file_check("-", &status), 0);
        assert_int_equal(hfd_audit_file_check(path, &status), 0);
        assert_int_not_equal(stat(path, &st), 0); /* the check writes nothing */
        (void)snprintf(deep, sizeof deep, "%s/a/b/audit.log", directory);
        config.path = deep;
        assert_int_equal(hfd_audit_file_check(deep, &status), 0);
        assert_int_equal(hfd_audit_file_new(&plain_host, &config, &file, &status), 0);
        hfd_audit_file_free(file);
        assert_int_equal(stat(deep, &st), 0);
}

/* ---- the writer ---- */

static const struct hfd_attributes attributes = {.verb = "get",
                                                 .group = "",
                                                 .resource = "",
                                                 .subresource = "",
                                                 .ns = "",
                                                 .name = "",
                                                 .path = "/x"};

static void put(struct hfd_audit_writer *writer) {
        const struct hfd_user user = {.n_groups = 0};
        const struct hfd_audit_head head = {.decision = {.level = HFD_AUDIT_METADATA},
                                            .user = &user,
                                            .id = "id",
                                            .path = "/x",
                                            .query = "",
                                            .agent = "",
                                            .attempts = "",
                                            .source_ips = "",
                                            .version = "",
                                            .attributes = &attributes};
        struct hfd_audit_record *record;

        assert_int_equal(hfd_audit_record_new(hfd_audit_writer_budget(writer), &head, &record), 0);
        hfd_audit_writer_put(writer,
                             hfd_audit_event_new(record, HFD_AUDIT_REQUEST_RECEIVED, 0, 0, false));
        hfd_audit_record_unref(record);
}

static void find_total(void *ctx, const char *text, size_t n) {
        double *totals = ctx;
        const char *at;
        (void)n;

        if ((at = strstr(text, "\napiserver_audit_event_total ")))
                totals[0] = atof(strrchr(at, ' '));
        if ((at = strstr(text, "\napiserver_audit_error_total{plugin=\"log\"} ")))
                totals[1] = atof(strrchr(at, ' '));
}

static atomic_int n_log_lines, n_reported; /* n_reported: the sum of the lost events in the lines */

static void count_log_line(void *ctx, enum hf_log_level level, const char *component,
                           const char *message) {
        (void)ctx, (void)level;
        if (strcmp(component, "audit") != 0 || !strstr(message, "were lost"))
                return;
        n_reported += atoi(message);
        n_log_lines++;
}

/* Puts n events into a log at log_path; totals: written and lost. */
static void write_events(const char *log_path, int n, double totals[2]) {
        struct hf_host host = {.size = sizeof host, .log = {.write = count_log_line}};
        const struct hfd_audit_file_config config = {.path = log_path};
        struct hfd_audit_writer *writer;
        struct hf_status status = {0};

        n_log_lines = n_reported = 0;
        assert_int_equal(hf_metrics_new(&host.metrics), 0);
        assert_int_equal(hfd_audit_writer_new(&host, &config, &writer, &status), 0);
        for (int i = 0; i < n; i++)
                put(writer);
        hfd_audit_writer_free(writer);
        hf_metrics_write(host.metrics, find_total, totals);
        hf_metrics_free(host.metrics);
}

static void test_the_writer_writes_all_events_before_it_ends(void **state) {
        double totals[2] = {-1, -1};
        char line[1024];
        int n = 0;
        (void)state;

        write_events(path, 1000, totals);
        assert_int_equal((int)totals[0], 1000);
        assert_int_equal((int)totals[1], 0);
        FILE *file = fopen(path, "r");
        assert_non_null(file);
        while (fgets(line, sizeof line, file)) {
                assert_int_equal(line[0], '{');
                assert_int_equal(line[strlen(line) - 1], '\n');
                n++;
        }
        (void)fclose(file);
        assert_int_equal(n, 1000);
}

static void test_a_full_disk_loses_events_and_logs_it(void **state) {
        double totals[2] = {-1, -1};
        (void)state;

        write_events("/dev/full", 1000, totals);
        assert_int_equal((int)totals[0], 0);
        assert_int_equal((int)totals[1], 1000);
        assert_int_equal(n_reported, 1000);
        assert_true(n_log_lines <= 2); /* the second one is that of the end */
}

/* The next report would come a minute after the first one, but the writer ends before. */
static void test_the_last_losses_are_logged_at_the_end(void **state) {
        struct hf_host host = {.size = sizeof host, .log = {.write = count_log_line}};
        const struct hfd_audit_file_config config = {.path = path};
        struct hfd_audit_writer *writer;
        struct hf_status status = {0};
        (void)state;

        n_log_lines = n_reported = 0;
        assert_int_equal(hfd_audit_writer_new(&host, &config, &writer, &status), 0);
        hfd_audit_writer_lose(writer);
        PATIENCE_AWAIT(n_log_lines == 1);
        hfd_audit_writer_lose(writer);
        hfd_audit_writer_lose(writer);
        hfd_audit_writer_free(writer);
        assert_int_equal(n_log_lines, 2);
        assert_int_equal(n_reported, 3);
}

static void test_a_pipe_that_nobody_reads_blocks_nobody(void **state) {
        double totals[2] = {-1, -1};
        (void)state;

        assert_int_equal(mkfifo(path, 0600), 0);
        int fd = open(path, O_RDONLY | O_NONBLOCK);
        assert_true(fd >= 0);
        write_events(path, 30000, totals); /* more than the pipe and the budget hold */
        assert_int_equal((int)(totals[0] + totals[1]), 30000);
        assert_true(totals[1] > 0);
        assert_true(n_log_lines >= 1);
        (void)close(fd);
}

int main(void) {
#define TEST(f) cmocka_unit_test_setup_teardown(f, make_directory, remove_directory)
        const struct CMUnitTest tests[] = {
                cmocka_unit_test(test_old_files_have_the_names_of_kube_apiserver),
                cmocka_unit_test(test_old_files_are_kept_by_number_and_age),
                TEST(test_a_full_file_is_rotated_and_few_old_ones_stay),
                TEST(test_a_file_that_was_moved_away_is_made_anew),
                TEST(test_a_full_disk_leaves_whole_lines),
                TEST(test_a_line_that_another_process_left_is_ended),
                TEST(test_a_line_that_a_pipe_took_in_part_is_ended),
                TEST(test_a_torn_line_in_a_pipe_is_ended_after_a_reopen),
                TEST(test_a_write_to_a_pipe_may_end_between_its_parts),
                TEST(test_a_full_disk_leaves_no_hole_in_the_standard_output),
                TEST(test_the_standard_output_may_be_a_socket),
                TEST(test_faults_of_the_path_name_it),
                TEST(test_the_writer_writes_all_events_before_it_ends),
                TEST(test_a_full_disk_loses_events_and_logs_it),
                TEST(test_the_last_losses_are_logged_at_the_end),
                TEST(test_a_pipe_that_nobody_reads_blocks_nobody),
        };

        return cmocka_run_group_tests(tests, NULL, NULL);
}

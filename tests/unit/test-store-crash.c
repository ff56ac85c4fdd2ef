/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Kills, power losses, errors and a full disk at each call by which a store in a file of SQLite
 * changes its files. crash-writer writes, the shim ends it (tests/lib/crash_shim.h), and then the
 * test opens the file and compares it with crash-writer's records (tests/lib/crash_check.h).
 *
 * test-store-crash PATH-OF-CRASH-WRITER PATH-OF-CRASH-SHIM N: tries every N-th possible crash,
 * apart from those of the test itself.
 */
#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <setjmp.h>
#include <signal.h>
#include <sqlite3.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>
#include <unistd.h>

#include <cmocka.h>

#include "crash_check.h"

enum { RECORDS_FD = 3, RECORDS_MAX = 4096 };

static const char *writer, *shim;
static unsigned thinned;
static char directory[64], path[96], room[96];

/* How the processes of a sweep end; the names are those of crash_shim.h. */
struct ending {
        enum crash_plan_kind plan;
        unsigned at, stride; /* the first call, and the step to the next one */
        const char *when;
        enum { KILL, ALL, SECTORS, PAGES } loss; /* with the power: what is lost of it */
        const char *counts, *deaf;               /* NULL = not set */
        bool survivor; /* this process has the file open meanwhile, and goes on */
        bool planted;  /* a fault that must be found, so no call is left out for N */
};

struct outcome {
        bool killed;
        struct crash_record records[RECORDS_MAX];
        size_t n_records;
};

static void empty_directory(void) {
        DIR *list = opendir(directory);
        struct dirent *entry;

        assert_non_null(list);
        while ((entry = readdir(list)))
                if (strcmp(entry->d_name, ".") != 0 && strcmp(entry->d_name, "..") != 0)
                        assert_int_equal(unlinkat(dirfd(list), entry->d_name, 0), 0);
        assert_int_equal(closedir(list), 0);
}

static int make_directory(void **state) {
        /* In memory, if possible: the file is synced some thousand times. */
        (void)snprintf(directory, sizeof directory, "%s/hfd-crash-XXXXXX",
                       access("/dev/shm", W_OK) == 0 ? "/dev/shm" : "/tmp");
        if (!mkdtemp(directory))
                return -1;
        (void)snprintf(path, sizeof path, "%s/store.db", directory);
        (void)snprintf(room, sizeof room, "%s/room", directory);
        return 0;
}

static int remove_directory(void **state) {
        empty_directory();
        return rmdir(directory);
}

/* ---- one process ---- */

static void set(const char *name, const char *value) {
        assert_int_equal(value ? setenv(name, value, 1) : unsetenv(name), 0);
}

static void set_number(const char *name, unsigned long long value) {
        char text[32];

        (void)snprintf(text, sizeof text, "%llu", value);
        set(name, text);
}

_Noreturn static void be_writer(int records_fd, enum crash_plan_kind plan) {
        char number[16];

        (void)snprintf(number, sizeof number, "%d", (int)plan);
        if (dup2(records_fd, RECORDS_FD) == RECORDS_FD && setenv("LD_PRELOAD", shim, 1) == 0)
                (void)execl(writer, writer, path, number, NULL);
        _exit(127);
}

/* Runs crash-writer to its end. The variables of the shim are set. */
static void run_writer(enum crash_plan_kind plan, struct outcome *outcome) {
        int pipe_fds[2], status;
        size_t n = 0;
        ssize_t got;

        assert_int_equal(pipe2(pipe_fds, O_CLOEXEC), 0);
        pid_t pid = fork();
        assert_true(pid >= 0);
        if (pid == 0)
                be_writer(pipe_fds[1], plan);
        assert_int_equal(close(pipe_fds[1]), 0);
        while ((got = read(pipe_fds[0], (char *)outcome->records + n,
                           sizeof outcome->records - n)) > 0)
                n += (size_t)got;
        assert_int_equal(got, 0);
        assert_int_equal(n % sizeof outcome->records[0], 0);
        outcome->n_records = n / sizeof outcome->records[0];
        assert_true(outcome->n_records < RECORDS_MAX);
        assert_int_equal(close(pipe_fds[0]), 0);
        assert_int_equal(waitpid(pid, &status, 0), pid);
        outcome->killed = WIFSIGNALED(status) && WTERMSIG(status) == SIGKILL;
        if (!outcome->killed && (!WIFEXITED(status) || WEXITSTATUS(status) != 0))
                fail_msg("crash-writer has ended with %#x", (unsigned)status);
}

/* survivor: a store that had the file open all the time; NULL = the file is opened now. */
static bool check(enum crash_plan_kind plan, struct hfd_store *survivor,
                  const struct outcome *outcome, char *problem, size_t max_problem) {
        struct hfd_store *store =
                survivor ? survivor : crash_check_open(path, problem, max_problem);
        const struct crash_run run = {.plan = plan,
                                      .records = outcome->records,
                                      .n_records = outcome->n_records};

        return store && crash_check(store, path, &run, problem, max_problem);
}

/* ---- kills and power losses ---- */

/*
 * Ends a process at each call that the ending selects, until one comes to its own end. Returns how
 * many have left a file with a problem.
 */
static size_t n_problems(const struct ending *ending, char *problem, size_t max_problem) {
        static struct outcome outcome;
        const unsigned step = ending->planted ? ending->stride : thinned * ending->stride;
        unsigned n_killed = 0;
        size_t n = 0;

        set("CRASH_SHIM_FILE", path);
        set("CRASH_SHIM_WHEN", ending->when);
        set("CRASH_SHIM_POWER", NULL);
        set("CRASH_SHIM_COUNTS", ending->counts);
        set("CRASH_SHIM_DEAF", ending->deaf);
        set("CRASH_SHIM_ROOM", NULL);
        outcome.killed = true;
        for (unsigned at = ending->at; outcome.killed; at += step) {
                struct hfd_store *survivor = NULL;
                char found[256];

                empty_directory();
                set_number("CRASH_SHIM_AT", at);
                /* Another seed each time, odd or even. */
                if (ending->loss != KILL)
                        set_number("CRASH_SHIM_POWER",
                                   ending->loss == ALL ? 0 : 2 * at + (ending->loss == SECTORS));
                if (ending->survivor) {
                        survivor = crash_check_open(path, found, sizeof found);
                        assert_non_null(survivor);
                }
                run_writer(ending->plan, &outcome);
                n_killed += outcome.killed;
                if (check(ending->plan, survivor, &outcome, found, sizeof found))
                        continue;
                if (n++ == 0)
                        (void)snprintf(problem, max_problem, "plan %d, %s call %u, loss %d: %s",
                                       (int)ending->plan, ending->when, at, (int)ending->loss,
                                       found);
        }
        assert_true(n_killed > 1);
        return n;
}

static void expect_intact(const struct ending *endings, size_t n) {
        char problem[384];

        for (size_t i = 0; i < n; i++) {
                size_t n_found = n_problems(&endings[i], problem, sizeof problem);

                if (n_found > 0)
                        fail_msg("%zu problems; the first: %s", n_found, problem);
        }
}

#define N_OF(array) (sizeof(array) / sizeof(array)[0])

static void test_a_killed_process_loses_no_acknowledged_write(void **state) {
        static const struct ending endings[] = {
                {CRASH_PLAN_SHORT, 1, 1, "before", KILL, NULL, NULL},
                {CRASH_PLAN_SHORT, 1, 3, "after", KILL, NULL, NULL},
                {CRASH_PLAN_SHORT, 1, 1, "torn", KILL, NULL, NULL},
        };
        expect_intact(endings, N_OF(endings));
}

static void test_a_power_loss_loses_no_acknowledged_write(void **state) {
        static const struct ending endings[] = {
                {CRASH_PLAN_SHORT, 1, 1, "before", ALL, NULL, NULL},
                {CRASH_PLAN_SHORT, 1, 3, "after", ALL, NULL, NULL},
                {CRASH_PLAN_SHORT, 1, 2, "before", SECTORS, NULL, NULL},
                {CRASH_PLAN_SHORT, 2, 2, "torn", SECTORS, NULL, NULL},
                {CRASH_PLAN_SHORT, 1, 2, "before", PAGES, NULL, NULL},
                {CRASH_PLAN_SHORT, 2, 2, "torn", PAGES, NULL, NULL},
        };
        expect_intact(endings, N_OF(endings));
}

/* The survivor has mapped the same shared memory as the killed process, and SQLite does not recover
 * the log. */
static void test_a_process_that_shares_the_file_goes_on(void **state) {
        static const struct ending endings[] = {
                {CRASH_PLAN_SHORT, 1, 1, "before", KILL, NULL, NULL, true},
                {CRASH_PLAN_SHORT, 1, 3, "torn", KILL, NULL, NULL, true},
                {CRASH_PLAN_LONG, 7, 211, "torn", KILL, "", NULL, true},
        };
        expect_intact(endings, N_OF(endings));
}

/* The file itself is written by checkpoints only, and when it is made. */
static void test_a_checkpoint_may_be_interrupted(void **state) {
        static const struct ending endings[] = {
                {CRASH_PLAN_LONG, 300, 1201, "torn", KILL, NULL, NULL},
                {CRASH_PLAN_LONG, 700, 1409, "before", ALL, NULL, NULL},
                {CRASH_PLAN_LONG, 500, 1301, "before", SECTORS, NULL, NULL},
                {CRASH_PLAN_LONG, 11, 101, "torn", KILL, "", NULL},
                {CRASH_PLAN_LONG, 19, 109, "before", ALL, "", NULL},
                {CRASH_PLAN_LONG, 31, 103, "torn", SECTORS, "", NULL},
                {CRASH_PLAN_LONG, 47, 107, "before", PAGES, "", NULL},
        };
        expect_intact(endings, N_OF(endings));
}

/* ---- a call that fails ---- */

/* One call fails, and the process goes on. Reads go on too, and the writes of one phase at most may
 * fail. */
static void test_a_failed_call_loses_no_acknowledged_write(void **state) {
        static struct outcome outcome;

        set("CRASH_SHIM_FILE", path);
        set("CRASH_SHIM_WHEN", "fail");
        set("CRASH_SHIM_POWER", NULL);
        set("CRASH_SHIM_COUNTS", NULL);
        set("CRASH_SHIM_ROOM", NULL);
        for (unsigned at = 1; at < 1000; at += thinned * (at < 60 ? 1 : 7)) {
                char problem[256];

                empty_directory();
                set_number("CRASH_SHIM_AT", at);
                run_writer(CRASH_PLAN_PUTS, &outcome);
                assert_false(outcome.killed);
                if (!check(CRASH_PLAN_PUTS, NULL, &outcome, problem, sizeof problem))
                        fail_msg("call %u has failed: %s", at, problem);
        }
}

/* ---- the test itself ---- */

/* A disk that ignores the syncs of one file loses writes. The test must see that. */
static void test_a_disk_that_does_not_sync_is_noticed(void **state) {
        static const struct ending endings[] = {
                {CRASH_PLAN_SHORT, 1, 5, "before", ALL, NULL, "-wal", .planted = true},
                {CRASH_PLAN_SHORT, 1, 5, "before", SECTORS, NULL, "-wal", .planted = true},
                {CRASH_PLAN_LONG, 3001, 1501, "before", ALL, NULL, "", .planted = true},
        };
        char problem[384];

        for (size_t i = 0; i < N_OF(endings); i++)
                if (n_problems(&endings[i], problem, sizeof problem) == 0)
                        fail_msg("planted fault %zu is not noticed", i);
}

static void expect_seen(const char *damage, const char *expected) {
        static struct outcome outcome;
        char problem[256] = "(none)";
        sqlite3 *db;

        empty_directory();
        set("CRASH_SHIM_AT", NULL);
        set("CRASH_SHIM_WHEN", NULL);
        run_writer(CRASH_PLAN_SHORT, &outcome);
        assert_false(outcome.killed);
        assert_int_equal(sqlite3_open(path, &db), SQLITE_OK);
        assert_int_equal(sqlite3_exec(db, damage, NULL, NULL, NULL), SQLITE_OK);
        assert_int_equal(sqlite3_close(db), SQLITE_OK);
        bool ok = check(CRASH_PLAN_SHORT, NULL, &outcome, problem, sizeof problem);
        if (ok ? strcmp(expected, "(none)") != 0 : !strstr(problem, expected))
                fail_msg("after \"%s\": \"%s\" instead of \"%s\"", damage, problem, expected);
}

#define NEWEST "(SELECT max(id) FROM versions)"

static void test_the_check_sees_what_is_wrong(void **state) {
        expect_seen("", "(none)");
        expect_seen("DELETE FROM versions WHERE id = " NEWEST, "but the store has");
        expect_seen("DELETE FROM versions WHERE key = '/c'", "there in part");
        expect_seen("DELETE FROM versions WHERE key = '/large' AND value IS NOT NULL", "is lost");
        expect_seen("UPDATE versions SET value = zeroblob(60) WHERE id = " NEWEST,
                    "no write of the plan");
        expect_seen("UPDATE versions SET value = value || x'00' WHERE id = " NEWEST,
                    "another key or value");
        expect_seen("UPDATE versions SET id = id + 16 WHERE id = " NEWEST, "is lost");
        expect_seen("UPDATE versions SET created = created + 1 WHERE key = '/a'",
                    "not what was written last");
        expect_seen("UPDATE meta SET value = 2 WHERE name = 'compacted'", "compaction");
        expect_seen("INSERT INTO versions SELECT id + 16, 0, id / 16 + 1, '/x', '99 0' FROM "
                    "versions WHERE id = " NEWEST,
                    "no write of the plan");
}

/* ---- a full disk ---- */

static void test_a_full_disk_loses_no_acknowledged_write(void **state) {
        static struct outcome outcome;
        bool full = true;

        set("CRASH_SHIM_FILE", path);
        set("CRASH_SHIM_AT", NULL);
        set("CRASH_SHIM_WHEN", NULL);
        set("CRASH_SHIM_POWER", NULL);
        set("CRASH_SHIM_ROOM", room);
        for (unsigned bytes = 0; full; bytes += thinned * (bytes < 150000 ? 2999 : 49999)) {
                char problem[256];

                empty_directory();
                assert_int_equal(close(open(room, O_CREAT | O_WRONLY, 0600)), 0);
                assert_int_equal(truncate(room, bytes), 0);
                run_writer(CRASH_PLAN_PUTS, &outcome);
                full = bytes == 0;
                for (size_t i = 0; i < outcome.n_records; i++)
                        full = full || outcome.records[i].kind == CRASH_FAILED;
                full = full || bytes < 150000;
                if (!check(CRASH_PLAN_PUTS, NULL, &outcome, problem, sizeof problem))
                        fail_msg("with room for %u bytes: %s", bytes, problem);
        }
}

int main(int argc, char **argv) {
        const struct CMUnitTest tests[] = {
                cmocka_unit_test(test_a_killed_process_loses_no_acknowledged_write),
                cmocka_unit_test(test_a_power_loss_loses_no_acknowledged_write),
                cmocka_unit_test(test_a_process_that_shares_the_file_goes_on),
                cmocka_unit_test(test_a_checkpoint_may_be_interrupted),
                cmocka_unit_test(test_a_failed_call_loses_no_acknowledged_write),
                cmocka_unit_test(test_a_disk_that_does_not_sync_is_noticed),
                cmocka_unit_test(test_the_check_sees_what_is_wrong),
                cmocka_unit_test(test_a_full_disk_loses_no_acknowledged_write),
        };
        const char *options = getenv("ASAN_OPTIONS");
        char text[1024];

        if (argc != 4)
                return 2;
        writer = argv[1];
        shim = argv[2];
        thinned = (unsigned)atoi(argv[3]);
        /* The shim is loaded before the sanitizer. */
        (void)snprintf(text, sizeof text, "%s:verify_asan_link_order=0", options ? options : "");
        (void)setenv("ASAN_OPTIONS", text, 1);
        return cmocka_run_group_tests(tests, make_directory, remove_directory);
}

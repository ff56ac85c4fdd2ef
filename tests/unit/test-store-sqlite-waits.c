/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Operations on a file that another program keeps locked: how they end at their deadlines, and what
 * is then known about them. The revisions in the replies to compactions. Which process the message
 * about a used file names. That a store is opened whole or not at all, and that a closed one leaves
 * no memory and no descriptor behind. And when the watcher wakes.
 */
#undef NDEBUG
#include <errno.h>
#include <fcntl.h>
#include <poll.h>
#include <setjmp.h>
#include <signal.h>
#include <stdarg.h>
#include <stdatomic.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <string.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <unistd.h>

#include <cmocka.h>

#include <sqlite3.h>

#include "base/buf.h"
#include "count_descriptors.h"
#include "failing_memory.h"
#include "hand_clock.h"
#include "patience.h"
#include "server/storage/sqlite/files/file_use.h"
#include "server/storage/sqlite/store.h"
#include "sqlite_fixture.h"
#include "store_client.h"
#include "time_units.h"
#include "watch_recorder.h"

static const struct hf_host host = {.size = sizeof(struct hf_host)};
static struct hfd_store *store;
static sqlite3 *other; /* another program's connection */
static atomic_bool waits_for_ever, has_no_inotify, has_no_notices;
static atomic_bool dies_at_notice, has_no_room_for_notice;
static atomic_int shortest_wait, longest_wait; /* of the watcher */
static atomic_int n_notices, n_noticed; /* given; and waits of the watcher that one has ended */

static void open_store(const char *name) {
        struct hf_status status = {0};

        if (hfd_sqlite_store_new(&host, sqlite_fixture_path(name), true, &store, &status) != 0)
                fail_msg("%s", status.message);
        assert_int_equal(sqlite3_open(sqlite_fixture_path(name), &other), SQLITE_OK);
        (void)sqlite3_busy_timeout(other, PATIENCE_MSEC);
}

static void close_store(void) {
        sqlite3_close(other);
        store->ops->free(store);
}

static void run_in_other(const char *text) {
        assert_int_equal(sqlite3_exec(other, text, NULL, NULL, NULL), SQLITE_OK);
}

static void start_put(const char *key, hf_nsec deadline, struct store_reply *reply) {
        struct hf__buf *value = hf__buf_copy("x", 1);
        const struct hfd_op put = {.kind = HFD_PUT, .key = key, .value = value};
        const struct hfd_txn txn = {.ops = &put, .n_ops = 1};

        store_reply_init(reply);
        assert_int_equal(store->ops->txn(store, &txn, deadline, store_reply_fill, reply), 0);
        hf__buf_unref(value);
}

/* ---- deadlines ---- */

/* The first write has begun, so whether it is done is not known; nothing was done of the next. */
static void test_a_write_ends_at_its_deadline(void **state) {
        struct store_reply first, next;
        int ms = 25;

        open_store("locked.db");
        assert_true(store_client_put(store, "/a", "one") > 0);
        run_in_other("BEGIN IMMEDIATE");
        do { /* until the writer has come to it in time */
                ms *= 2;
                assert_true(ms < PATIENCE_MSEC / 4);
                start_put("/first", in_msec(ms), &first);
                int r = store_reply_wait(&first);
                store_reply_deinit(&first);
                if (r == HF_E_TIMEOUT)
                        break;
                assert_int_equal(r, HF_E_UNAVAILABLE);
        } while (true);
        assert_string_equal(first.status.message, "the disk has not confirmed the write in time");
        start_put("/next", in_msec(20), &next);
        assert_int_equal(store_reply_wait(&next), HF_E_UNAVAILABLE);
        assert_string_equal(next.status.message, "the operation did not begin in time");
        assert_int_equal(next.n_kvs, 0);
        store_reply_deinit(&next);
        assert_true(store_client_mod_revision(store, "/a") > 0); /* reads go on */
        run_in_other("ROLLBACK");
        assert_true(store_client_put(store, "/later", "x") > 0);
        assert_int_equal(store_client_mod_revision(store, "/next"), 0);
        close_store();
}

static void test_an_operation_whose_deadline_has_passed_is_not_begun(void **state) {
        struct store_reply reply;

        open_store("late.db");
        run_in_other("BEGIN IMMEDIATE");
        start_put("/late", 1, &reply);
        int r = store_reply_wait(&reply);
        assert_true(r == HF_E_UNAVAILABLE || r == HF_E_TIMEOUT);
        store_reply_deinit(&reply);
        run_in_other("ROLLBACK");
        close_store();
}

/* ---- compactions ---- */

static void compact(uint64_t revision, int expected, uint64_t current, const char *message) {
        struct store_reply reply;

        store_reply_init(&reply);
        assert_int_equal(store->ops->compact(store, revision, in_msec(PATIENCE_MSEC),
                                             store_reply_fill, &reply),
                         0);
        assert_int_equal(store_reply_wait(&reply), expected);
        assert_int_equal(reply.revision, current);
        assert_string_equal(reply.status.message, message);
        store_reply_deinit(&reply);
}

static void test_a_compaction_replies_with_the_current_revision(void **state) {
        char gone[64], early[64];
        uint64_t now = 0;

        open_store("compact.db");
        for (int i = 0; i < 5; i++)
                now = store_client_put(store, "/a", "x");
        (void)snprintf(gone, sizeof gone, "revision %llu is compacted",
                       (unsigned long long)now - 2);
        (void)snprintf(early, sizeof early, "revision %llu is not reached yet",
                       (unsigned long long)now + 1);
        compact(now + 1, HF_E_INVALID, now, early);
        compact(now - 2, 0, now, "");
        compact(now - 2, HF_E_GONE, now, gone);
        compact(now - 1, 0, now, "");
        compact(now - 2, HF_E_GONE, now, gone);
        compact(now, 0, now, "");
        close_store();
}

/* Without steps, writes would have to wait for the whole of a large compaction. */
static void test_compacted_versions_are_removed_in_steps(void **state) {
        static const struct hf_host by_hand = {.size = sizeof by_hand, .clock = &hand_clock};
        enum { N = 300 };
        struct hf_status status = {0};

        hand_clock_reset();
        assert_int_equal(hfd_sqlite_store_new(&by_hand, sqlite_fixture_path("steps.db"), true,
                                              &store, &status),
                         0);
        for (int i = 0; i < N; i++)
                assert_true(store_client_put(store, "/a", "x") > 0);
        assert_int_equal(store_client_compact(store, store_client_revision(store)), 0);
        for (int i = 0; i < 10; i++)
                assert_true(store_client_put(store, "/b", "x") > 0);
        int64_t n = sqlite_fixture_sql("steps.db", "SELECT count(*) FROM versions");
        assert_true(n > N / 2); /* one step at most, because no time has passed */
        for (int64_t last = n; n > 11; last = n) {
                hand_clock_await_deadline(1, 2 * MSEC); /* the writer pauses after the last step */
                hand_clock_move(SEC);
                PATIENCE_AWAIT((n = sqlite_fixture_sql("steps.db", "SELECT count(*) FROM "
                                                                   "versions")) < last);
                assert_true(n >= last - N / 2);
        }
        store->ops->free(store);
}

/* ---- opening and closing ---- */

/* Each kind of operation, and the failures conflict and compacted. */
static void use_everything(void) {
        static struct watch_recorder recorder, late;
        const struct hfd_compare wrong = {.kind = HFD_MOD_EQUALS, .key = "/a", .revision = 1};
        const struct hfd_compare same = {.kind = HFD_VALUE_EQUALS,
                                         .key = "/a",
                                         .value = "one",
                                         .n_value = 3};
        const char *const keys[] = {"/a", "/none"};
        const struct hfd_txn conflict = {.compares = &wrong,
                                         .n_compares = 1,
                                         .get_on_failure = keys,
                                         .n_get_on_failure = 2};
        const struct hfd_txn compared = {.compares = &same, .n_compares = 1};
        struct store_reply reply;

        uint64_t before = store_client_revision(store);
        assert_int_equal(watch_recorder_start(&recorder, store, "/", "0", before + 1), 0);
        uint64_t first = store_client_put(store, "/a", "one");
        uint64_t last = store_client_put(store, "/b", "two");
        assert_int_equal(store_client_get(store, "/a", &reply), 0);
        store_reply_deinit(&reply);
        assert_int_equal(store_client_list(store, "/", NULL, 0, 1, false, &reply), 0);
        assert_true(reply.more);
        store_reply_deinit(&reply);
        assert_int_equal(store_client_list(store, "/", NULL, first, 0, true, &reply), 0);
        store_reply_deinit(&reply);
        assert_int_equal(store_client_txn(store, &conflict, &reply), HF_E_CONFLICT);
        assert_int_equal(reply.n_kvs, 1);
        store_reply_deinit(&reply);
        assert_int_equal(store_client_txn(store, &compared, NULL), 0);
        last = store_client_delete(store, "/b");
        watch_recorder_await(&recorder, 3);
        watch_recorder_stop(&recorder);
        assert_int_equal(store_client_compact(store, last), 0);
        assert_int_equal(store_client_list(store, "/", NULL, first, 0, false, NULL), HF_E_GONE);
        assert_int_equal(watch_recorder_start(&late, store, "/", "0", first), 0);
        assert_int_equal(watch_recorder_await_end(&late), HF_E_GONE);
        watch_recorder_stop(&late);
}

static void test_a_closed_store_leaves_nothing(void **state) {
        open_store("memory.db"); /* the first store loads the library */
        close_store();
        unsigned n_descriptors = count_descriptors();
        size_t n_live = failing_memory_n_live();
        for (int i = 0; i < 2; i++) {
                open_store("memory.db");
                use_everything();
                close_store();
                assert_int_equal(failing_memory_n_live(), n_live);
                assert_int_equal(count_descriptors(), n_descriptors);
        }
}

/* The thread creations fail one after the other, too. */
static void open_life(int n) {
        struct hfd_store *opened = NULL;
        struct hf_status status = {0};

        failing_memory_arm(n);
        int r = hfd_sqlite_store_new(&host, sqlite_fixture_path("memory.db"), true, &opened,
                                     &status);
        failing_memory_disarm();
        assert_true(r == 0 || is_shortage(r));
        assert_true((r == 0) == (opened != NULL));
        assert_true((r == 0) == (status.message[0] == '\0'));
        if (opened)
                opened->ops->free(opened);
}

static void test_a_store_is_opened_whole_or_not_at_all(void **state) {
        unsigned n_descriptors = count_descriptors();

        failing_memory_try_all(open_life, 5);
        assert_int_equal(count_descriptors(), n_descriptors);
}

static void test_a_lock_that_cannot_be_opened_is_named(void **state) {
        struct hfd_store *opened = NULL;
        struct hf_status status = {0};
        size_t n_live = failing_memory_n_live();

        assert_int_equal(mkdir(sqlite_fixture_path("dir.db-notify"), 0700), 0);
        assert_int_equal(hfd_sqlite_store_new(&host, sqlite_fixture_path("dir.db"), true, &opened,
                                              &status),
                         HF_E_INVALID);
        assert_non_null(strstr(status.message, "dir.db-notify cannot be opened: Is a directory"));
        assert_null(opened);
        assert_int_equal(failing_memory_n_live(), n_live);
        assert_int_equal(rmdir(sqlite_fixture_path("dir.db-notify")), 0);
}

/* SQLite then opens /dev/null as descriptor 0, because it keeps no file below 3; the store must
 * open all the same. */
static void test_a_process_without_standard_input_opens_a_store(void **state) {
        int status;

        open_store("stdin.db");
        close_store();
        pid_t child = fork();
        assert_true(child >= 0);
        if (child == 0) {
                struct hfd_store *opened = NULL;
                struct hf_status ignored = {0};
                close(STDIN_FILENO);
                int r = hfd_sqlite_store_new(&host, sqlite_fixture_path("stdin.db"), false, &opened,
                                             &ignored);
                if (r == 0)
                        opened->ops->free(opened);
                close(STDIN_FILENO);
                if (r == 0) /* the new file is made as descriptor 0 */
                        r = hfd_sqlite_store_new(&host, sqlite_fixture_path("stdin-2.db"), true,
                                                 &opened, &ignored);
                if (r == 0)
                        opened->ops->free(opened);
                _exit(r == 0 ? 0 : 1);
        }
        assert_int_equal(waitpid(child, &status, 0), child);
        assert_int_equal(status, 0);
}

/* ---- the watcher's waits ---- */

int __real_poll(struct pollfd *fds, nfds_t n, int timeout);
int __wrap_poll(struct pollfd *fds, nfds_t n, int timeout);

/* The watcher is the thread that polls two descriptors. With waits_for_ever it gets no timeout, so
 * it does not look by itself. */
int __wrap_poll(struct pollfd *fds, nfds_t n, int timeout) {
        if (n == 2 && timeout < atomic_load(&shortest_wait))
                atomic_store(&shortest_wait, timeout);
        if (n == 2 && timeout > atomic_load(&longest_wait))
                atomic_store(&longest_wait, timeout);
        int r = __real_poll(fds, n, n == 2 && atomic_load(&waits_for_ever) ? -1 : timeout);
        atomic_fetch_add(&n_noticed, n == 2 && r > 0 && fds[1].revents != 0);
        return r;
}

static void await_sleep(void) {
        uint64_t before, now = store->ops->iterations(store);

        do {
                before = now;
                (void)__real_poll(NULL, 0, 2);
                now = store->ops->iterations(store);
        } while (now != before);
}

/* The watcher wakes at the deadline itself, and not at its next regular look. */
static void test_the_watcher_wakes_at_a_deadline(void **state) {
        struct store_reply reply;

        open_store("deadline.db");
        run_in_other("BEGIN IMMEDIATE");
        await_sleep();
        atomic_store(&shortest_wait, INT32_MAX);
        start_put("/a", in_msec(100), &reply);
        assert_int_not_equal(store_reply_wait(&reply), 0);
        assert_true(atomic_load(&shortest_wait) <= 101);
        store_reply_deinit(&reply);
        run_in_other("ROLLBACK");
        close_store();
}

int __wrap_inotify_init1(int flags);
int __wrap_inotify_init1(int flags) {
        errno = EMFILE;
        return atomic_load(&has_no_inotify) ? -1 : syscall(SYS_inotify_init1, flags);
}

int __real_inotify_add_watch(int fd, const char *path, uint32_t mask);
int __wrap_inotify_add_watch(int fd, const char *path, uint32_t mask);
int __wrap_inotify_add_watch(int fd, const char *path, uint32_t mask) {
        if (!atomic_load(&has_no_notices))
                return __real_inotify_add_watch(fd, path, mask);
        errno = ENOSPC;
        return -1;
}

static void write_without_notices(void) {
        static struct watch_recorder recorder;

        atomic_store(&waits_for_ever, true);
        open_store("notices.db");
        uint64_t before = store_client_revision(store);
        assert_int_equal(watch_recorder_start(&recorder, store, "/", "0", before + 1), 0);
        for (size_t i = 1; i <= 3; i++) {
                await_sleep();
                assert_true(store_client_put(store, "/a", "x") > 0);
                watch_recorder_await(&recorder, i);
        }
        watch_recorder_stop(&recorder);
        close_store();
        atomic_store(&waits_for_ever, false);
}

/* Without notices of the file system, a store still learns of its own writes at once. */
static void test_a_write_wakes_the_watcher_without_notices(void **state) {
        atomic_store(&has_no_inotify, true);
        write_without_notices();
        atomic_store(&has_no_inotify, false);
        atomic_store(&has_no_notices, true);
        write_without_notices();
        atomic_store(&has_no_notices, false);
}

/* With them it learns of the writes of others, too, and need not look. */
static void test_the_commits_of_others_wake_the_watcher(void **state) {
        static struct watch_recorder recorder;
        struct hfd_store *others;
        struct hf_status status = {0};

        atomic_store(&waits_for_ever, true);
        open_store("noticed.db");
        assert_int_equal(hfd_sqlite_store_new(&host, sqlite_fixture_path("noticed.db"), false,
                                              &others, &status),
                         0);
        uint64_t before = store_client_revision(store);
        assert_int_equal(watch_recorder_start(&recorder, store, "/", "0", before + 1), 0);
        for (size_t i = 1; i <= 3; i++) {
                await_sleep();
                assert_true(store_client_put(others, "/a", "x") > 0);
                watch_recorder_await(&recorder, i);
        }
        watch_recorder_stop(&recorder);
        others->ops->free(others);
        close_store();
        atomic_store(&waits_for_ever, false);
}

/* The watcher reads on without a sleep until it has read everything. */
static void test_watches_that_are_far_behind_catch_up(void **state) {
        enum { N = 600 };
        static struct watch_recorder first, second;

        atomic_store(&waits_for_ever, true);
        open_store("behind.db");
        uint64_t before = store_client_revision(store);
        for (int i = 0; i < N; i++)
                assert_true(store_client_put(store, "/a", "x") > 0);
        await_sleep();
        assert_int_equal(watch_recorder_start(&first, store, "/", "0", before + N / 2 + 1), 0);
        assert_int_equal(watch_recorder_start(&second, store, "/", "0", before + 1), 0);
        watch_recorder_await(&first, N / 2);
        watch_recorder_await(&second, N);
        watch_recorder_stop(&first);
        watch_recorder_stop(&second);
        close_store();
        atomic_store(&waits_for_ever, false);
}

/* After a write of its own, which it has from memory, a store does not look at the file at once:
 * the processors are needed elsewhere. It looks soon, because another process may have written,
 * too. */
static void test_a_look_after_an_own_write_is_put_off_for_a_moment(void **state) {
        static const struct hf_host by_hand = {.size = sizeof by_hand, .clock = &hand_clock};
        static struct watch_recorder recorder;
        struct hf_status status = {0};

        hand_clock_reset(); /* so the time that is left does not depend on the machine */
        atomic_store(&has_no_inotify, true);
        atomic_store(&waits_for_ever, true);
        assert_int_equal(hfd_sqlite_store_new(&by_hand, sqlite_fixture_path("soon.db"), true,
                                              &store, &status),
                         0);
        uint64_t before = store_client_revision(store);
        assert_int_equal(watch_recorder_start(&recorder, store, "/", "0", before + 1), 0);
        await_sleep();
        atomic_store(&shortest_wait, INT32_MAX);
        assert_true(store_client_put(store, "/a", "x") > 0);
        watch_recorder_await(&recorder, 1);
        PATIENCE_AWAIT(atomic_load(&shortest_wait) <= 12);
        int wait = atomic_load(&shortest_wait);
        watch_recorder_stop(&recorder);
        store->ops->free(store);
        atomic_store(&waits_for_ever, false);
        atomic_store(&has_no_inotify, false);
        assert_true(wait >= 5);
}

/* Without notices the watcher looks at the file again and again, so it sees what another store, as
 * another process has one, commits. A commit is to be seen within 20 ms, and a look takes a part of
 * this time. More looks than that would cost too much. */
static void test_the_commits_of_others_are_seen_without_notices(void **state) {
        static struct watch_recorder recorder;
        struct hfd_store *others;
        struct hf_status status = {0};

        atomic_store(&has_no_inotify, true);
        atomic_store(&longest_wait, 0);
        open_store("others.db");
        assert_int_equal(hfd_sqlite_store_new(&host, sqlite_fixture_path("others.db"), false,
                                              &others, &status),
                         0);
        uint64_t before = store_client_revision(store);
        assert_int_equal(watch_recorder_start(&recorder, store, "/", "0", before + 1), 0);
        for (size_t i = 1; i <= 3; i++) {
                assert_true(store_client_put(others, "/a", "x") > 0);
                watch_recorder_await(&recorder, i);
        }
        watch_recorder_stop(&recorder);
        others->ops->free(others);
        close_store();
        atomic_store(&has_no_inotify, false);
        assert_in_range(atomic_load(&longest_wait), 10, 15);
}

ssize_t __real_pwrite64(int fd, const void *data, size_t n, off64_t at);
ssize_t __wrap_pwrite64(int fd, const void *data, size_t n, off64_t at);

/* The product's only call of pwrite is the notice. */
ssize_t __wrap_pwrite64(int fd, const void *data, size_t n, off64_t at) {
        atomic_fetch_add(&n_notices, 1);
        if (atomic_load(&dies_at_notice))
                (void)kill(getpid(), SIGKILL);
        if (!atomic_load(&has_no_room_for_notice))
                return __real_pwrite64(fd, data, n, at);
        errno = ENOSPC;
        return -1;
}

/* Commits a write when it gets a byte, and dies before the notice. */
static void die_after_commit(const char *name, int begin) {
        struct hfd_store *opened = NULL;
        struct hf_status status = {0};
        char byte;

        if (read(begin, &byte, 1) != 1 ||
            hfd_sqlite_store_new(&host, sqlite_fixture_path(name), false, &opened, &status) != 0)
                _exit(1);
        atomic_store(&dies_at_notice, true);
        (void)store_client_put(opened, "/a", "x");
        (void)alarm(60); /* the writer replies before it gives the notice */
        for (;;)
                (void)pause();
}

/* It is forked before this process has opened the file, because SQLite must not be used on both
 * sides of a fork. */
static void test_a_commit_is_seen_although_its_process_died_before_the_notice(void **state) {
        static struct watch_recorder recorder;
        int begin[2], status;

        assert_int_equal(pipe(begin), 0);
        pid_t child = fork();
        assert_true(child >= 0);
        if (child == 0)
                die_after_commit("died.db", begin[0]);
        atomic_store(&waits_for_ever, true);
        open_store("died.db");
        uint64_t before = store_client_revision(store);
        assert_int_equal(watch_recorder_start(&recorder, store, "/", "0", before + 1), 0);
        await_sleep();
        assert_int_equal(write(begin[1], "x", 1), 1);
        watch_recorder_await(&recorder, 1);
        assert_int_equal(waitpid(child, &status, 0), child);
        assert_true(WIFSIGNALED(status) && WTERMSIG(status) == SIGKILL);
        watch_recorder_stop(&recorder);
        close_store();
        close(begin[0]);
        close(begin[1]);
        atomic_store(&waits_for_ever, false);
}

/* A full disk may have room for the commit, but not for the notice. */
static void test_a_commit_is_seen_although_its_notice_could_not_be_written(void **state) {
        static struct watch_recorder recorder;

        atomic_store(&waits_for_ever, true);
        open_store("full.db");
        uint64_t before = store_client_revision(store);
        assert_int_equal(watch_recorder_start(&recorder, store, "/", "0", before + 1), 0);
        await_sleep();
        atomic_store(&has_no_room_for_notice, true);
        assert_true(store_client_put(store, "/a", "x") > 0);
        watch_recorder_await(&recorder, 1);
        atomic_store(&has_no_room_for_notice, false);
        watch_recorder_stop(&recorder);
        close_store();
        atomic_store(&waits_for_ever, false);
}

/* A notice wakes the watchers of all processes, so there is one for each commit, and none for an
 * operation that writes nothing. */
static void test_only_a_write_gives_a_notice(void **state) {
        const struct hfd_compare wrong = {.kind = HFD_MOD_EQUALS, .key = "/a", .revision = 1};
        const struct hfd_op put = {.kind = HFD_DELETE, .key = "/a"};
        const struct hfd_txn conflict = {.compares = &wrong,
                                         .n_compares = 1,
                                         .ops = &put,
                                         .n_ops = 1};

        open_store("silent.db");
        atomic_store(&n_notices, 0);
        assert_true(store_client_put(store, "/a", "x") > 0);
        /* The writer gives the notice after its reply, and before it looks at the next write. */
        PATIENCE_AWAIT(atomic_load(&n_notices) == 1);
        uint64_t revision = store_client_put(store, "/a", "x");
        assert_int_equal(store_client_txn(store, &conflict, NULL), HF_E_CONFLICT);
        assert_int_equal(store_client_delete(store, "/none"), revision);
        assert_int_equal(store_client_compact(store, revision), 0);
        assert_int_equal(store_client_compact(store, revision), HF_E_GONE);
        assert_int_equal(atomic_load(&n_notices), 2);
        close_store();
}

/* Otherwise it would wake again and again. */
static void test_a_notice_wakes_the_watcher_once(void **state) {
        open_store("once.db");
        await_sleep();
        atomic_store(&n_notices, 0);
        atomic_store(&n_noticed, 0);
        for (int i = 0; i < 20; i++) {
                uint64_t iterations = store->ops->iterations(store);
                assert_true(store_client_put(store, "/a", "x") > 0);
                PATIENCE_AWAIT(store->ops->iterations(store) > iterations);
        }
        await_sleep();
        assert_in_range(atomic_load(&n_noticed), 1, 20);
        close_store();
}

/* Nor does a stop wait for the watcher's next look. */
static void test_a_stop_ends_the_watches_at_once(void **state) {
        static struct watch_recorder recorder;

        atomic_store(&waits_for_ever, true);
        open_store("stopped.db");
        assert_int_equal(watch_recorder_start(&recorder, store, "/", "0", 1), 0);
        await_sleep();
        store->ops->stop(store);
        assert_int_equal(watch_recorder_await_end(&recorder), HF_E_CANCELED);
        watch_recorder_stop(&recorder);
        close_store();
        atomic_store(&waits_for_ever, false);
}

/* The watcher notices every event at once, and not only at its look once a second. */
static void test_the_watcher_is_woken(void **state) {
        static struct watch_recorder recorder;

        atomic_store(&waits_for_ever, true);
        for (int i = 0; i < 10; i++) {
                open_store("woken.db");
                await_sleep();
                uint64_t before = store_client_revision(store);
                assert_int_equal(watch_recorder_start(&recorder, store, "/", "0", before + 1), 0);
                await_sleep();
                assert_true(store_client_put(store, "/a", "x") > 0);
                watch_recorder_await(&recorder, 1);
                await_sleep();
                watch_recorder_stop(&recorder);
                await_sleep();
                store->ops->stop(store);
                await_sleep();
                close_store();
        }
        atomic_store(&waits_for_ever, false);
}

/* ---- a file that is used ---- */

static int check(const char *name, char *message, size_t n) {
        struct hf_status status = {0};
        int r = hfd_sqlite_check_unused(sqlite_fixture_path(name), &status);

        (void)snprintf(message, n, "%.400s", status.message);
        return r;
}

/* Keeps the lock of SQLite's readers until `end` is closed. */
static void hold_lock(const char *path, int command, int begun, int end) {
        struct flock lock = {.l_type = F_RDLCK,
                             .l_whence = SEEK_SET,
                             .l_start = 0x40000000 + 2,
                             .l_len = 510};
        int fd = open(path, O_RDWR | O_CLOEXEC);
        char byte = 'x';

        if (fd < 0 || fcntl(fd, command, &lock) != 0 || write(begun, &byte, 1) != 1)
                _exit(1);
        (void)!read(end, &byte, 1);
        _exit(0);
}

static void test_a_used_file_names_its_process(void **state) {
        static const int commands[] = {F_SETLK, F_OFD_SETLK};
        char message[512], wanted[64];

        (void)sqlite_fixture_sql("used.db", "CREATE TABLE t (x)");
        assert_int_equal(check("used.db", message, sizeof message), 0);
        assert_int_equal(check("none.db", message, sizeof message), HF_E_NOT_FOUND);
        assert_non_null(strstr(message, "none.db cannot be opened: No such file or directory"));
        for (size_t i = 0; i < 2; i++) {
                int begun[2], end[2], status;
                char byte;
                assert_int_equal(pipe(begun), 0);
                assert_int_equal(pipe(end), 0);
                pid_t child = fork();
                if (child == 0) {
                        close(end[1]);
                        hold_lock(sqlite_fixture_path("used.db"), commands[i], begun[1], end[0]);
                }
                close(begun[1]);
                close(end[0]);
                assert_int_equal(read(begun[0], &byte, 1), 1);
                (void)snprintf(wanted, sizeof wanted, "used.db is used by process %d: stop",
                               (int)child);
                assert_int_equal(check("used.db", message, sizeof message), HF_E_BUSY);
                if (i == 1) /* such a lock belongs to no process */
                        strcpy(wanted, "used.db is used by another process: stop");
                if (!strstr(message, wanted))
                        assert_string_equal(message, wanted);
                close(end[1]);
                assert_int_equal(waitpid(child, &status, 0), child);
                assert_int_equal(status, 0);
                close(begun[0]);
        }
        assert_int_equal(check("used.db", message, sizeof message), 0);
}

int main(void) {
        const struct CMUnitTest tests[] = {
                cmocka_unit_test(test_a_write_ends_at_its_deadline),
                cmocka_unit_test(test_an_operation_whose_deadline_has_passed_is_not_begun),
                cmocka_unit_test(test_a_compaction_replies_with_the_current_revision),
                cmocka_unit_test(test_compacted_versions_are_removed_in_steps),
                cmocka_unit_test(test_a_closed_store_leaves_nothing),
                cmocka_unit_test(test_a_store_is_opened_whole_or_not_at_all),
                cmocka_unit_test(test_a_lock_that_cannot_be_opened_is_named),
                cmocka_unit_test(test_a_process_without_standard_input_opens_a_store),
                cmocka_unit_test(test_the_watcher_wakes_at_a_deadline),
                cmocka_unit_test(test_the_watcher_is_woken),
                cmocka_unit_test(test_only_a_write_gives_a_notice),
                cmocka_unit_test(test_a_notice_wakes_the_watcher_once),
                cmocka_unit_test(test_a_stop_ends_the_watches_at_once),
                cmocka_unit_test(test_a_write_wakes_the_watcher_without_notices),
                cmocka_unit_test(test_the_commits_of_others_wake_the_watcher),
                cmocka_unit_test(test_watches_that_are_far_behind_catch_up),
                cmocka_unit_test(test_a_look_after_an_own_write_is_put_off_for_a_moment),
                cmocka_unit_test(test_the_commits_of_others_are_seen_without_notices),
                cmocka_unit_test(test_a_commit_is_seen_although_its_process_died_before_the_notice),
                cmocka_unit_test(test_a_commit_is_seen_although_its_notice_could_not_be_written),
                cmocka_unit_test(test_a_used_file_names_its_process),
        };
        return cmocka_run_group_tests(tests, sqlite_fixture_setup, sqlite_fixture_teardown);
}

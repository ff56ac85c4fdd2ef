/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The lock of the stores that share a SQLite file: a store that takes it all the time lets the
 * others have their turn, and a waiter that is stopped keeps nobody out.
 */
#undef NDEBUG
#include <errno.h>
#include <fcntl.h>
#include <poll.h>
#include <pthread.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stdatomic.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>
#include <sys/file.h>
#include <unistd.h>

#include <cmocka.h>

#include "patience.h"
#include "server/storage/sqlite/engine/file_lock.h"
#include "server/storage/sqlite/store.h"
#include "sqlite_fixture.h"

/* As long as a commit on a slow disk: much longer than the moment between two commits. */
#define COMMIT_MSEC 30

static atomic_int flock_error; /* errno of the next call; 0 = it works */
static atomic_bool stops, waits;
static atomic_int n_commits, n_commits_of_waits;

int __real_flock(int fd, int operation);
int __wrap_flock(int fd, int operation);

int __wrap_flock(int fd, int operation) {
        int number = atomic_exchange(&flock_error, 0);

        if (number == 0)
                return __real_flock(fd, operation);
        errno = number;
        return -1;
}

static void init_lock(struct hfd_sqlite_file_lock *lock) {
        struct hf_status status = {0};

        assert_int_equal(hfd_sqlite_file_lock_init(lock, sqlite_fixture_path("turns.db"), &status),
                         0);
}

static int take(struct hfd_sqlite_file_lock *lock) {
        struct hf_status status = {0};

        return hfd_sqlite_file_lock_take(lock, &status);
}

static void *commit_all_the_time(void *userdata) {
        struct hfd_sqlite_file_lock *lock = userdata;

        while (!atomic_load(&stops)) {
                assert_int_equal(take(lock), 0);
                (void)poll(NULL, 0, COMMIT_MSEC);
                atomic_fetch_add(&n_commits, 1);
                if (atomic_load(&waits))
                        atomic_fetch_add(&n_commits_of_waits, 1);
                hfd_sqlite_file_lock_release(lock);
        }
        return NULL;
}

/* Without turns, all tries of the other store would fall into the commits of the busy one. */
static void test_a_busy_store_lets_the_others_write(void **state) {
        struct hfd_sqlite_file_lock busy, other;
        pthread_t thread;

        init_lock(&busy);
        init_lock(&other);
        assert_int_equal(pthread_create(&thread, NULL, commit_all_the_time, &busy), 0);
        for (int i = 0; i < 5; i++) {
                const int before = atomic_load(&n_commits);
                PATIENCE_AWAIT(atomic_load(&n_commits) > before);
                atomic_store(&waits, true);
                assert_int_equal(take(&other), 0);
                atomic_store(&waits, false);
                hfd_sqlite_file_lock_release(&other);
        }
        assert_true(atomic_load(&n_commits_of_waits) > 0); /* it did wait for the busy store */
        atomic_store(&stops, true);
        assert_int_equal(pthread_join(thread, NULL), 0);
        hfd_sqlite_file_lock_deinit(&busy);
        hfd_sqlite_file_lock_deinit(&other);
}

static void test_a_stopped_waiter_keeps_nobody_out(void **state) {
        struct hfd_sqlite_file_lock lock, stopped;
        struct flock first_byte = {.l_type = F_WRLCK, .l_whence = SEEK_SET, .l_len = 1};

        init_lock(&lock);
        init_lock(&stopped);
        assert_int_equal(fcntl(stopped.fd, F_OFD_SETLK, &first_byte), 0);
        for (int i = 0; i < 3; i++) {
                assert_int_equal(take(&lock), 0);
                assert_true(lock.ignores_turns);
                hfd_sqlite_file_lock_release(&lock);
        }
        first_byte.l_type = F_UNLCK;
        assert_int_equal(fcntl(stopped.fd, F_OFD_SETLK, &first_byte), 0);
        assert_int_equal(take(&lock), 0);
        assert_false(lock.ignores_turns);
        hfd_sqlite_file_lock_release(&lock);
        /* The turn ends with the wait. */
        assert_int_equal(take(&stopped), 0);
        hfd_sqlite_file_lock_release(&stopped);
        hfd_sqlite_file_lock_deinit(&lock);
        hfd_sqlite_file_lock_deinit(&stopped);
}

/* The lock is held by a process that is stopped: a wait ends, and leaves no turn behind. */
static void test_a_wait_for_a_stopped_holder_ends(void **state) {
        struct hfd_sqlite_file_lock holder, waiter, third;

        init_lock(&holder);
        init_lock(&waiter);
        init_lock(&third);
        assert_int_equal(take(&holder), 0);
        assert_int_equal(take(&waiter), HF_E_UNAVAILABLE);
        assert_false(waiter.held);
        hfd_sqlite_file_lock_release(&holder);
        assert_int_equal(take(&third), 0);
        assert_false(third.ignores_turns);
        hfd_sqlite_file_lock_release(&third);
        hfd_sqlite_file_lock_deinit(&holder);
        hfd_sqlite_file_lock_deinit(&waiter);
        hfd_sqlite_file_lock_deinit(&third);
}

static void test_an_error_of_the_lock_is_named(void **state) {
        struct hfd_sqlite_file_lock lock;
        struct hf_status status = {0};

        init_lock(&lock);
        atomic_store(&flock_error, ENOLCK);
        assert_int_equal(hfd_sqlite_file_lock_take(&lock, &status), -ENOLCK);
        assert_non_null(strstr(status.message, "turns.db-notify cannot be locked: "
                                               "No locks available"));
        assert_false(lock.held);
        /* Neither of these says that the lock cannot be had. */
        atomic_store(&flock_error, EINTR);
        assert_int_equal(take(&lock), 0);
        hfd_sqlite_file_lock_release(&lock);
        atomic_store(&flock_error, EWOULDBLOCK);
        assert_int_equal(take(&lock), 0);
        hfd_sqlite_file_lock_release(&lock);
        hfd_sqlite_file_lock_deinit(&lock);
}

/* Two processes that start together must not both make the tables of a new file. */
static void test_a_store_is_not_made_without_the_lock(void **state) {
        static const struct hf_host host = {.size = sizeof host};
        const char *path = sqlite_fixture_path("made.db");
        struct hfd_store *store = NULL;
        struct hf_status status = {0};

        atomic_store(&flock_error, ENOLCK);
        assert_int_equal(hfd_sqlite_store_new(&host, path, true, &store, &status), -ENOLCK);
        assert_non_null(strstr(status.message, "made.db-notify cannot be locked: "));
        assert_null(store);
        assert_int_equal(sqlite_fixture_sql("made.db", "SELECT count(*) FROM sqlite_schema"), 0);
        assert_int_equal(hfd_sqlite_store_new(&host, path, true, &store, &status), 0);
        store->ops->free(store);
}

int main(void) {
        const struct CMUnitTest tests[] = {
                cmocka_unit_test(test_a_busy_store_lets_the_others_write),
                cmocka_unit_test(test_a_stopped_waiter_keeps_nobody_out),
                cmocka_unit_test(test_a_wait_for_a_stopped_holder_ends),
                cmocka_unit_test(test_an_error_of_the_lock_is_named),
                cmocka_unit_test(test_a_store_is_not_made_without_the_lock),
        };
        return cmocka_run_group_tests(tests, sqlite_fixture_setup, sqlite_fixture_teardown);
}

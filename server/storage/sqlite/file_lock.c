/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The lock between the stores that share a SQLite store's file, and the notice of a commit.
 *
 * Invariant: no wait for the lock is endless, because the process that holds it may be stopped
 * (SIGSTOP). flock has no deadline, so the lock is tried without waiting, and the pause between two
 * tries grows.
 */
#include "server/storage/sqlite/file_lock.h"

#include <assert.h>
#include <errno.h>
#include <fcntl.h>
#include <poll.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/file.h>
#include <unistd.h>

#define PATIENCE_MSEC  2000
#define LAST_WAIT_MSEC 8

int hfd_sqlite_open_result(int error) {
        switch (error) {
        case ENOSPC:
        case EDQUOT:
        case EIO:
        case EMFILE:
        case ENFILE:
        case ENOMEM: return -error;
        default: return HF_E_INVALID;
        }
}

int hfd_sqlite_file_lock_init(struct hfd_sqlite_file_lock *lock, const char *store_path,
                              struct hf_status *reterr_status) {
        *lock = (struct hfd_sqlite_file_lock){.fd = -1};
        if (asprintf(&lock->path, "%s-notify", store_path) < 0) {
                lock->path = NULL;
                return hf_fail(reterr_status, -ENOMEM, "out of memory");
        }
        lock->fd = open(lock->path, O_CREAT | O_WRONLY | O_CLOEXEC | O_NOFOLLOW, 0600);
        if (lock->fd >= 0)
                return 0;
        int r = hf_fail(reterr_status, hfd_sqlite_open_result(errno), "%s cannot be opened: %s",
                        lock->path, strerror(errno));
        hfd_sqlite_file_lock_deinit(lock);
        return r;
}

void hfd_sqlite_file_lock_deinit(struct hfd_sqlite_file_lock *lock) {
        assert(!lock->held);
        if (lock->fd >= 0)
                close(lock->fd);
        free(lock->path);
        *lock = (struct hfd_sqlite_file_lock){.fd = -1};
}

int hfd_sqlite_file_lock_take(struct hfd_sqlite_file_lock *lock, struct hf_status *reterr_status) {
        int waited = 0, wait = 1;

        assert(lock->fd >= 0 && !lock->held);
        while (flock(lock->fd, LOCK_EX | LOCK_NB) != 0) {
                if (errno != EWOULDBLOCK && errno != EINTR)
                        return hf_fail(reterr_status, -errno, "%s cannot be locked: %s", lock->path,
                                       strerror(errno));
                if (waited >= PATIENCE_MSEC)
                        return hf_fail(reterr_status, HF_E_UNAVAILABLE,
                                       "another process holds the lock on %s", lock->path);
                (void)poll(NULL, 0, wait);
                waited += wait;
                wait = wait < LAST_WAIT_MSEC ? 2 * wait : wait;
        }
        lock->held = true;
        return 0;
}

void hfd_sqlite_file_lock_release(struct hfd_sqlite_file_lock *lock) {
        if (lock->held)
                (void)flock(lock->fd, LOCK_UN);
        lock->held = false;
}

void hfd_sqlite_file_lock_notify(const struct hfd_sqlite_file_lock *lock) {
        (void)!pwrite(lock->fd, "n", 1, 0);
}

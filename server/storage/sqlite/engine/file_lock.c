/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The lock between the stores that share a SQLite store's file, and the notice of a commit.
 *
 * Invariants:
 *  - no wait for the lock is endless, because the process that holds it may be stopped (SIGSTOP).
 *    flock has no deadline, so the lock is tried without waiting, and the pause between two tries
 *    grows;
 *  - a store that writes all the time does not keep the others out. Without a rule it would: it
 *    takes the lock again before they wake from their pauses. So the next store in turn locks the
 *    first byte of the notify file (an OFD lock, which flock does not see) until it has the lock
 *    itself, and no other store takes the lock meanwhile. The process of that store may be stopped
 *    as well: then the others wait for it once, for TURN_MSEC, and ignore turns until the byte is
 *    free again.
 */
#include "server/storage/sqlite/engine/file_lock.h"

#include <assert.h>
#include <errno.h>
#include <fcntl.h>
#include <poll.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/file.h>
#include <unistd.h>

#define PATIENCE_MSEC  2000 /* then the operation ends with HF_E_UNAVAILABLE */
#define LAST_WAIT_MSEC 2    /* the longest pause between two tries */
#define TURN_MSEC      250  /* much longer than a commit takes */

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

/* type: F_WRLCK to become the next in turn, F_UNLCK when the turn is over. False: another store is
 * the next, or fcntl has failed. */
static bool set_turn(struct hfd_sqlite_file_lock *lock, short type) {
        struct flock first_byte = {.l_type = type, .l_whence = SEEK_SET, .l_len = 1};

        return fcntl(lock->fd, F_OFD_SETLK, &first_byte) == 0;
}

/* Tries once. 0: taken. HF_E_BUSY: another store holds the lock or is the next in turn. -errno. */
static int try_lock(struct hfd_sqlite_file_lock *lock, int waited, bool *is_next) {
        if (!*is_next)
                *is_next = set_turn(lock, F_WRLCK);
        if (*is_next)
                lock->ignores_turns = false;
        else if (waited >= TURN_MSEC)
                lock->ignores_turns = true;
        if (!*is_next && !lock->ignores_turns)
                return HF_E_BUSY;
        if (flock(lock->fd, LOCK_EX | LOCK_NB) == 0)
                return 0;
        return errno == EWOULDBLOCK || errno == EINTR ? HF_E_BUSY : -errno;
}

int hfd_sqlite_file_lock_take(struct hfd_sqlite_file_lock *lock, struct hf_status *reterr_status) {
        int waited = 0, wait = 1, r;
        bool is_next = false;

        assert(lock->fd >= 0 && !lock->held);
        while ((r = try_lock(lock, waited, &is_next)) == HF_E_BUSY && waited < PATIENCE_MSEC) {
                (void)poll(NULL, 0, wait);
                waited += wait;
                wait = wait < LAST_WAIT_MSEC ? 2 * wait : wait;
        }
        if (is_next)
                (void)set_turn(lock, F_UNLCK);
        lock->held = r == 0;
        if (r == HF_E_BUSY)
                return hf_fail(reterr_status, HF_E_UNAVAILABLE,
                               "another process holds the lock on %s", lock->path);
        return r == 0 ? 0
                      : hf_fail(reterr_status, r, "%s cannot be locked: %s", lock->path,
                                strerror(-r));
}

void hfd_sqlite_file_lock_release(struct hfd_sqlite_file_lock *lock) {
        if (lock->held)
                (void)flock(lock->fd, LOCK_UN);
        lock->held = false;
}

void hfd_sqlite_file_lock_notify(const struct hfd_sqlite_file_lock *lock) {
        assert(lock->fd >= 0);
        if (pwrite(lock->fd, "n", 1, 0) == 1)
                return;
        /* The disk may be full, and yet the commit had room. The watchers see a close as well. */
        int fd = open(lock->path, O_WRONLY | O_CLOEXEC | O_NOFOLLOW);
        if (fd >= 0)
                close(fd);
}

/* SPDX-License-Identifier: Apache-2.0 */
#pragma once
/*
 * The lock of a SQLite store, which is on the notify file beside the store's file. A store holds
 * the lock while it writes, so that the stores that share the file take turns. After a commit of
 * new versions the store writes to the notify file. The watchers of all these stores see that by
 * inotify. They also see when the notify file is closed: the kernel closes it when a process dies
 * before it could write.
 * Private to server/storage/sqlite.
 *
 * SQLite has locks of its own, which suffice to make writers wait for each other. But Debian 12's
 * version 3.40 has a fault that can damage the file: it may lose a commit when one connection
 * starts the WAL anew while another one copies the WAL into the file
 * (https://sqlite.org/wal.html#walresetbug). A store does both only in what this lock covers:
 * commits, and the close of the last connection.
 *
 * The lock belongs to the open file and ends with the process. Two stores of one process exclude
 * each other as well.
 *
 * Thread: any, one at a time for one lock.
 */
#include <stdbool.h>

#include <holdfast/error.h>

struct hfd_sqlite_file_lock {
        char *path; /* owned */
        int fd;     /* -1: not open */
        bool held;
        bool ignores_turns; /* the store that is the next in turn seems to be stopped */
};

/* The result of opening or making a file that failed with errno `error`: -errno for what may pass
 * by itself (a full disk, no descriptors), else HF_E_INVALID. Pure. */
int hfd_sqlite_open_result(int error);

/* Opens or makes PATH-notify, mode 0600. 0, HF_E_INVALID or -errno. After an error, _deinit may be
 * called, but need not. */
int hfd_sqlite_file_lock_init(struct hfd_sqlite_file_lock *lock, const char *store_path,
                              struct hf_status *reterr_status);
/* Accepts a zeroed struct whose fd is -1. */
void hfd_sqlite_file_lock_deinit(struct hfd_sqlite_file_lock *lock);

/* Takes the lock, in turn with the other stores. 0, HF_E_UNAVAILABLE (they have held it for 2 s)
 * or -errno. */
int hfd_sqlite_file_lock_take(struct hfd_sqlite_file_lock *lock, struct hf_status *reterr_status);
/* Does nothing if the lock is not held. */
void hfd_sqlite_file_lock_release(struct hfd_sqlite_file_lock *lock);
/* Tells the watchers of all stores that something was committed. */
void hfd_sqlite_file_lock_notify(const struct hfd_sqlite_file_lock *lock);

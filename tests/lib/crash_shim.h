/* SPDX-License-Identifier: Apache-2.0 */
#pragma once
/*
 * crash-shim.so, for LD_PRELOAD: ends a process at a chosen call that changes the files of a SQLite
 * store, or fills the disk of these files. It replaces open, close, write, pwrite, fsync,
 * fdatasync, ftruncate and unlink. Without CRASH_SHIM_FILE it does nothing.
 *
 *      CRASH_SHIM_FILE=PATH      the store's file. The files with the suffixes -wal and -journal,
 *                                and their directory, belong to it
 *      CRASH_SHIM_AT=N           SIGKILL at the N-th call that changes one of them. Nothing is
 *                                really synced, because the kernel keeps what was written
 *      CRASH_SHIM_COUNTS=SUFFIX  counts only the calls on the file with this suffix ("" = PATH)
 *      CRASH_SHIM_WHEN=WHEN      before that call, after it, or torn: after half of what it writes;
 *                                or fail: it fails with EIO, and the process goes on
 *      CRASH_SHIM_POWER=SEED     it is a power loss: what was not synced is lost (crash_disk.h)
 *      CRASH_SHIM_DEAF=SUFFIX    a planted fault: syncing this file does nothing
 *      CRASH_SHIM_ROOM=FILE      the disk has as many bytes for the store's files (also for -shm
 *                                and -notify) as FILE is long, which may change at any time
 */

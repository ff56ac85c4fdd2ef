/* SPDX-License-Identifier: Apache-2.0 */
#pragma once
/*
 * The run file of an instance, <runtime-dir>/<instance>.lock: the file's lock shows whether the
 * instance is alive, its content shows which Lease the instance holds, and in which term.
 *
 * A live process holds an OFD lock on the file. The kernel releases the lock when the process dies:
 * no program that the process has started keeps the lock, because the descriptor is close-on-exec.
 * After a death `holdfastd release` locks the file, reads it and releases exactly the term in it.
 * It holds the lock until the Lease is released, so that the instance cannot start meanwhile.
 * holdfastd never removes the file: otherwise a process that still has the file open could lock it
 * while other processes create and lock another one. During a migration the content also names the
 * second Lease, but not its term: that Lease is released in any term, if the identity still holds
 * it.
 *
 * The server locks its data directory with the same functions: <data-dir>/holdfastd.lock, which
 * never names a Lease.
 *
 * Thread: any, but one at a time for one object. Every function blocks briefly on file I/O.
 */
#include <stdint.h>
#include <sys/types.h>

#include <holdfast/error.h>
#include <holdfast/fence.h>

struct hfd_runfile;

/*
 * Creates the directory and the file if they are missing, locks the file and records that this
 * process leads nothing. Keeps the lock until hfd_runfile_free. 0; HF_E_BUSY: another process has
 * the lock, an instance or a `holdfastd release`; the message names the file. HF_E_INVALID: the
 * instance's name cannot be a file name, or other users could replace the directory. Or -errno.
 */
int hfd_runfile_lock(const char *runtime_dir, const char *instance,
                     struct hfd_runfile **ret_runfile, struct hf_status *reterr_status);
/*
 * Records the leadership of this process: the Lease, the identity and the term; in a migration also
 * the second Lease. NULL: it leads nothing. leadership is copied. 0 or -errno; after an error the
 * file has the previous record, or an unreadable one, for which a release does nothing.
 */
int hfd_runfile_write(struct hfd_runfile *runfile, const struct hf_fence *leadership);
/* Unlocks and closes the file. Its content stays. Accepts NULL, returns NULL. */
struct hfd_runfile *hfd_runfile_free(struct hfd_runfile *runfile);

/*
 * For `holdfastd release`: locks the run file of a dead process and reads what that process led. On
 * success *ret_leadership is set and *ret_runfile holds the lock until it is freed. Otherwise no
 * lock is held: HF_E_NOT_FOUND (the process did not lead), HF_E_BUSY (the process is alive, or
 * another release runs), HF_E_INVALID (the content is incomplete, not a run file or unreadable, or
 * the instance's name cannot be a file name), -ENOENT (there is no file), or another -errno.
 */
int hfd_runfile_read_if_dead(const char *runtime_dir, const char *instance,
                             struct hf_fence *ret_leadership, struct hfd_runfile **ret_runfile,
                             struct hf_status *reterr_status);

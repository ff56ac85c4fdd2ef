/* SPDX-License-Identifier: Apache-2.0 */
#pragma once
/*
 * The run file of an instance, <runtime-dir>/<instance>.lock: the file's lock shows whether the
 * instance is alive, its content shows which Lease the instance holds, and in which term.
 *
 * A live process holds an OFD lock on the file. The kernel releases the lock when the process dies;
 * no child inherits the lock, because the descriptor is close-on-exec. After a death `holdfastd
 * release` locks the file, reads it and releases exactly the term in it. It holds the lock until
 * the Lease is released, so that the instance cannot start meanwhile. holdfastd never removes the
 * file: otherwise a process that still has the file open could lock it while other processes create
 * and lock another one.
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
 * process leads nothing. Keeps the lock until hfd_runfile_free. HF_E_BUSY: another process has the
 * lock; the message names the file and, if known, the process. HF_E_INVALID: the instance's name
 * cannot be a file name, or other users could replace the directory. Or -errno.
 */
int hfd_runfile_lock(const char *runtime_dir, const char *instance,
                     struct hfd_runfile **ret_runfile, struct hf_status *reterr_status);
/*
 * Records what this process leads: the Lease, the identity and the term; in a migration also the
 * second Lease. NULL: it leads nothing. leadership is copied. 0 or -errno; after an error the
 * previous record may remain, or the record is unreadable, and a release then does nothing.
 */
int hfd_runfile_write(struct hfd_runfile *runfile, const struct hf_fence *leadership);
/* Unlocks and closes the file. Its content stays. Accepts NULL, returns NULL. */
struct hfd_runfile *hfd_runfile_free(struct hfd_runfile *runfile);

/*
 * For `holdfastd release`: locks the run file of a dead process and reads what that process led. On
 * success *ret_leadership is set and *ret_runfile holds the lock until it is freed. Otherwise no
 * lock is held: HF_E_NOT_FOUND (the process did not lead), HF_E_BUSY (the process is alive),
 * HF_E_INVALID (the content is incomplete or not a run file), -ENOENT (there is no file), or
 * another -errno.
 */
int hfd_runfile_read_if_dead(const char *runtime_dir, const char *instance,
                             struct hf_fence *ret_leadership, struct hfd_runfile **ret_runfile,
                             struct hf_status *reterr_status);

/* SPDX-License-Identifier: Apache-2.0 */
#pragma once
/*
 * The run file of an instance, <runtime-dir>/<instance>.lock: who is alive, and what it leads.
 *
 * A living process holds an OFD lock on it, which death frees, and no child inherits
 * (close-on-exec). Its content is what that process leads: `holdfastd release`, run after a death,
 * takes the lock, reads the content, and frees exactly that term. While it does so it holds the
 * lock, so that a new process of the instance cannot start in between. The file is never removed: a
 * lock on a removed file protects nothing.
 *
 * Thread: one at a time per object. Blocks on a small file.
 */
#include <stdint.h>
#include <sys/types.h>

#include <holdfast/error.h>
#include <holdfast/fence.h>

struct hfd_runfile;

/*
 * Makes the directory and the file where they are missing, locks it and empties the record.
 * HF_E_BUSY: another process has it, and the message names file and pid. HF_E_INVALID: an instance
 * name that cannot be a file name.
 */
int hfd_runfile_take(const char *runtime_dir, const char *instance,
                     struct hfd_runfile **ret_runfile, struct hf_status *reterr_status);
/*
 * What this process leads now: the Lease, the identity, the term; in a migration also the second
 * Lease, whose term counts for nothing here. NULL = nothing. 0 or -errno; on failure the record is
 * unreadable.
 */
int hfd_runfile_write(struct hfd_runfile *runfile, const struct hf_fence *leads);
/* Unlocks. The content stays. Accepts NULL, returns NULL. */
struct hfd_runfile *hfd_runfile_free(struct hfd_runfile *runfile);

/*
 * For `holdfastd release`: takes the lock of a dead process and reads what it led. 0: *ret_leads is
 * set and *ret_runfile holds the lock until it is freed. HF_E_NOT_FOUND: no file, or it led
 * nothing. HF_E_BUSY: it is alive. HF_E_INVALID: torn or foreign content. In all but the first case
 * nothing is held.
 */
int hfd_runfile_read_if_dead(const char *runtime_dir, const char *instance,
                             struct hf_fence *ret_leads, struct hfd_runfile **ret_runfile,
                             struct hf_status *reterr_status);

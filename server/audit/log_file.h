/* SPDX-License-Identifier: Apache-2.0 */
#pragma once
/*
 * The file of the audit log: appends whole lines, begins a new file when it is full, and removes
 * old ones. The log may also be the standard output, a pipe or a device; then nothing is rotated.
 *
 * Threads: one at a time. Every function blocks on the file; a write to a pipe whose reader does
 * not read is given up when the caller says so.
 */
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include <holdfast/host.h>

struct hf_status;
struct hfd_audit_file;

struct hfd_audit_file_config {
        const char *path;    /* "-" = the standard output; borrowed */
        int64_t max_size;    /* bytes; 0 = never rotated */
        int64_t max_backups; /* old files; 0 = all */
        int64_t max_age;     /* days; 0 = for ever */
};

/* Opens or creates the file, with mode 0600; a missing directory gets 0700. HF_E_INVALID or
 * -errno, with a message that names the path. */
int hfd_audit_file_new(const struct hf_host *host, const struct hfd_audit_file_config *config,
                       struct hfd_audit_file **ret_file, struct hf_status *reterr_status);
/* Accepts NULL, returns NULL. */
struct hfd_audit_file *hfd_audit_file_free(struct hfd_audit_file *file);
/* Finds faults of the path without writing anything, for holdfastd --check. */
int hfd_audit_file_check(const char *path, struct hf_status *reterr_status);

/*
 * Appends n bytes, which are whole lines. Either all of them are in the file afterwards or, as far
 * as it can be undone, none. go_on is called about once a second while nobody reads the other end
 * of a pipe; false gives up. 0, -EAGAIN (given up) or another -errno.
 */
int hfd_audit_file_write(struct hfd_audit_file *file, const char *data, size_t n,
                         bool (*go_on)(void *ctx), void *ctx);
/* Opens the path anew, because something else may have moved the file away. 0 or -errno; then the
 * next write tries again. */
int hfd_audit_file_reopen(struct hfd_audit_file *file);

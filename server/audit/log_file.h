/* SPDX-License-Identifier: Apache-2.0 */
#pragma once
/*
 * The file of the audit log. Writes append whole lines, begin a new file when the file is full, and
 * remove old files. The log may also be the standard output, a pipe, a socket or a device, which
 * are not rotated.
 *
 * Threads: one at a time. Every function blocks on the file. If nobody reads the other end of a
 * pipe, or reads it slowly, a write waits until all is written or go_on gives up.
 */
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include <holdfast/host.h>

struct hf_status;
struct hfd_audit_file;

struct hfd_audit_file_config {
        const char *path;    /* "-" = the standard output; borrowed for the call */
        int64_t max_size;    /* bytes; 0 = never rotated */
        int64_t max_backups; /* old files; 0 = all */
        int64_t max_age;     /* days; 0 = for ever */
};

/* Opens the file, or creates it with mode 0600; a missing directory is made with 0700. Removes old
 * files that are too many or too old. host is borrowed. 0, -errno, or HF_E_INVALID: other users
 * could replace the directory that is made. The message has the path. */
int hfd_audit_file_new(const struct hf_host *host, const struct hfd_audit_file_config *config,
                       struct hfd_audit_file **ret_file, struct hf_status *reterr_status);
/* Accepts NULL, returns NULL. */
struct hfd_audit_file *hfd_audit_file_free(struct hfd_audit_file *file);
/* Finds faults of the path without writing anything, for holdfastd --check. 0 or -errno. */
int hfd_audit_file_check(const char *path, struct hf_status *reterr_status);

/*
 * Appends n bytes, which are whole lines. 0: all are in the file. After an error none are, with
 * three exceptions: a part may remain in a stream (a pipe, a socket or a device), in the standard
 * output, and in a file that cannot be truncated. Then the next write begins a new line. go_on is
 * for streams only. While data remain, it is called after each part that the stream has taken, and
 * about once a second while the stream takes none; false gives up. Errors: -EAGAIN (given up) or
 * another -errno.
 */
int hfd_audit_file_write(struct hfd_audit_file *file, const char *data, size_t n,
                         bool (*go_on)(void *ctx), void *ctx);
/* Opens the path again, because another program may have moved the file away. Does nothing for the
 * standard output. 0, or -errno: then the next write tries again. */
int hfd_audit_file_reopen(struct hfd_audit_file *file);

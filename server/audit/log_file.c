/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Writes and rotates the file of the audit log.
 *
 * Invariants:
 *
 *  - A line is never split between two files.
 *  - A file that cannot be moved away is continued: a file that is too large is better than lost
 *    events.
 *  - If the file cannot be opened, `fd` is -1, and the next write tries again.
 */
#include "server/audit/log_file.h"

#include <assert.h>
#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <libgen.h>
#include <limits.h>
#include <poll.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <unistd.h>

#include <holdfast/error.h>

#include "base/cleanup.h"
#include "server/audit/backups.h"
#include "server/auth/files.h"

#define OLD_FILES_MAX 10000 /* old files that one look at the directory finds */
#define NAME_TRIES    1000  /* names that are tried, each 1 ms later than the one before */

struct hfd_audit_file {
        const struct hf_clock *clock; /* borrowed */
        struct hfd_audit_file_config config;
        char *path;     /* owned; config.path */
        int fd;         /* owned; -1 = not open */
        bool is_stream; /* a pipe, socket or device, which has no size */
        bool is_socket;
        bool is_torn; /* its last line is incomplete, so the next write begins with a newline */
        int64_t size; /* bytes, of a regular file */
};

static bool is_stdout(const struct hfd_audit_file *file) { return strcmp(file->path, "-") == 0; }

static int64_t now_ms(const struct hfd_audit_file *file) {
        return file->clock->real(file->clock->ctx) / HF_NSEC_PER_MSEC;
}

/* ---- opening ---- */

/* The descriptor or -errno. With O_NONBLOCK the open of a FIFO without a reader fails at once. */
static int open_path(const char *path) {
        int fd =
                open(path, O_WRONLY | O_APPEND | O_CREAT | O_CLOEXEC | O_NONBLOCK | O_NOCTTY, 0600);

        return fd < 0 ? -errno : fd;
}

static int make_directory(const char *path, struct hf_status *reterr_status) {
        char copy[PATH_MAX];

        (void)snprintf(copy, sizeof copy, "%s", path);
        return hfd_make_dir(dirname(copy), reterr_status);
}

/* Whether the last line of a regular file is incomplete, because the process that wrote it ended in
 * the middle. The descriptor for writing cannot read. */
static bool has_torn_end(const char *path, off_t size) {
        int fd = size > 0 ? open(path, O_RDONLY | O_CLOEXEC | O_NOCTTY | O_NONBLOCK) : -1;
        char last = '\n';

        if (fd >= 0) {
                if (pread(fd, &last, 1, size - 1) != 1)
                        last = '\n';
                (void)close(fd);
        }
        return last != '\n';
}

/* Opens file->path as file->fd. 0 or -errno. */
static int open_file(struct hfd_audit_file *file) {
        struct stat st;
        int fd = is_stdout(file) ? fcntl(STDOUT_FILENO, F_DUPFD_CLOEXEC, 3) : open_path(file->path);

        if (fd < 0)
                return is_stdout(file) ? -errno : fd;
        if (fstat(fd, &st) != 0) {
                int r = -errno;
                (void)close(fd);
                return r;
        }
        file->fd = fd;
        if (S_ISREG(st.st_mode))
                file->is_torn = !is_stdout(file) && has_torn_end(file->path, st.st_size);
        else if (!file->is_stream)
                file->is_torn = false;
        /* A stream that is opened again may still hold a part of a line, which cannot be seen. */
        file->is_stream = !S_ISREG(st.st_mode);
        file->is_socket = S_ISSOCK(st.st_mode);
        file->size = st.st_size;
        return 0;
}

static void close_file(struct hfd_audit_file *file) {
        if (file->fd >= 0)
                (void)close(file->fd);
        file->fd = -1;
}

/* ---- old files ---- */

static int newest_first(const void *a, const void *b) {
        return strcmp(*(char *const *)b, *(char *const *)a); /* later times are greater texts */
}

/* The names of the old files, the newest first, as an array of strings that the caller frees.
 * Returns their number. Without memory the list is shorter, and fewer files are removed. */
static size_t list_old(const struct hfd_audit_file *file, const char *directory,
                       char ***ret_names) {
        DIR *dir = opendir(directory);
        char **names = calloc(OLD_FILES_MAX, sizeof *names);
        const struct dirent *entry;
        size_t n = 0;
        int64_t ms;

        while (dir && names && n < OLD_FILES_MAX && (entry = readdir(dir)))
                if (hfd_audit_is_backup(file->path, entry->d_name, &ms)) {
                        names[n] = strdup(entry->d_name);
                        n += names[n] != NULL;
                }
        if (dir)
                (void)closedir(dir);
        if (n > 0)
                qsort(names, n, sizeof *names, newest_first);
        *ret_names = names;
        return n;
}

static void remove_old(const struct hfd_audit_file *file) {
        char copy[PATH_MAX], path[PATH_MAX], **names;

        if (file->is_stream || (file->config.max_backups == 0 && file->config.max_age == 0))
                return;
        (void)snprintf(copy, sizeof copy, "%s", file->path);
        const char *directory = dirname(copy);
        size_t n = list_old(file, directory, &names), keep = n;
        int64_t *ended = calloc(n + 1, sizeof *ended); /* + 1: never zero bytes */
        for (size_t i = 0; ended && i < n; i++)
                (void)hfd_audit_is_backup(file->path, names[i], &ended[i]);
        if (ended)
                keep = hfd_audit_backups_to_keep(ended, n, now_ms(file), file->config.max_backups,
                                                 file->config.max_age);
        for (size_t i = 0; i < n; i++) {
                if (i >= keep &&
                    snprintf(path, sizeof path, "%s/%s", directory, names[i]) < (int)sizeof path)
                        (void)unlink(path);
                free(names[i]);
        }
        free(ended);
        free(names);
}

/* Moves the file away, if it can. Never overwrites an old file. */
static void move_file_away(const struct hfd_audit_file *file) {
        char name[PATH_MAX];
        int64_t ms = now_ms(file);

        for (int i = 0; i < NAME_TRIES; i++) {
                if (!hfd_audit_backup_name(file->path, ms + i, name, sizeof name))
                        return;
                if (access(name, F_OK) != 0) {
                        (void)rename(file->path, name);
                        return;
                }
        }
}

/* Begins a new file, or continues the file if it cannot be moved away. 0 or -errno. */
static int rotate_file(struct hfd_audit_file *file) {
        close_file(file);
        move_file_away(file);
        int r = open_file(file);
        if (r == 0)
                remove_old(file);
        return r;
}

/* ---- writing ---- */

/* Writes to a pipe, a socket or a device. A pipe that is ready has room for PIPE_BUF bytes, so a
 * write of that size does not block. Adds the bytes that were written to *ret_n. go_on may give up
 * after each part, because a reader that is slow, but never stops, could keep the writer for
 * long. */
static int write_stream(const struct hfd_audit_file *file, const char *data, size_t n,
                        bool (*go_on)(void *ctx), void *ctx, size_t *ret_n) {
        while (*ret_n < n) {
                struct pollfd ready = {.fd = file->fd, .events = POLLOUT};
                size_t part = n - *ret_n < PIPE_BUF ? n - *ret_n : PIPE_BUF;

                if (poll(&ready, 1, 1000) > 0 && ready.revents & (POLLOUT | POLLERR)) {
                        ssize_t written = file->is_socket ? send(file->fd, data + *ret_n, part,
                                                                 MSG_DONTWAIT | MSG_NOSIGNAL)
                                                          : write(file->fd, data + *ret_n, part);
                        if (written > 0)
                                *ret_n += (size_t)written;
                        else if (written < 0 && errno != EAGAIN && errno != EINTR)
                                return -errno;
                }
                if (*ret_n < n && !go_on(ctx))
                        return -EAGAIN;
        }
        return 0;
}

static int write_file(const struct hfd_audit_file *file, const char *data, size_t n,
                      size_t *ret_n) {
        while (*ret_n < n) {
                ssize_t written = write(file->fd, data + *ret_n, n - *ret_n);
                if (written > 0)
                        *ret_n += (size_t)written;
                else if (written == 0 || errno != EINTR)
                        return written == 0 ? -EIO : -errno;
        }
        return 0;
}

/* Removes the n bytes that a failed write has left, so that the file has whole lines only. If that
 * is not possible, the last line is torn. The file behind the standard output is not truncated:
 * others may write to it, too, and without O_APPEND the next write would leave a hole of NULs. */
static void undo_write(struct hfd_audit_file *file, size_t n) {
        if (n == 0)
                return;
        if (file->is_stream || is_stdout(file) || ftruncate(file->fd, file->size) != 0) {
                file->is_torn = true;
                file->size += (int64_t)n;
        }
}

/* Opens the file if it is not open, and rotates it if n bytes have no room. 0 or -errno. */
static int prepare_file(struct hfd_audit_file *file, size_t n) {
        int r = file->fd >= 0 ? 0 : open_file(file);

        if (r == 0 && !file->is_stream && !is_stdout(file) && file->config.max_size > 0 &&
            file->size > 0 && file->size + (int64_t)n > file->config.max_size)
                r = rotate_file(file);
        return r;
}

int hfd_audit_file_write(struct hfd_audit_file *file, const char *data, size_t n,
                         bool (*go_on)(void *ctx), void *ctx) {
        size_t written = 0;
        int r = prepare_file(file, n);

        if (r != 0)
                return r;
        assert(file->fd >= 0);
        /* End a torn line, so that the next event begins a line of its own. */
        if (file->is_torn) {
                r = file->is_stream ? write_stream(file, "\n", 1, go_on, ctx, &written)
                                    : write_file(file, "\n", 1, &written);
                if (r != 0)
                        return r;
                file->is_torn = false;
                file->size++;
                written = 0;
        }
        r = file->is_stream ? write_stream(file, data, n, go_on, ctx, &written)
                            : write_file(file, data, n, &written);
        if (r == 0)
                file->size += (int64_t)n;
        else
                undo_write(file, written);
        return r;
}

int hfd_audit_file_reopen(struct hfd_audit_file *file) {
        if (is_stdout(file))
                return 0;
        close_file(file);
        return open_file(file);
}

/* ---- the object ---- */

int hfd_audit_file_check(const char *path, struct hf_status *reterr_status) {
        char copy[PATH_MAX];
        struct stat st;

        if (strcmp(path, "-") == 0)
                return 0;
        if (stat(path, &st) == 0) {
                if (S_ISDIR(st.st_mode))
                        return hf_fail(reterr_status, -EISDIR, "%s is a directory", path);
                if (access(path, W_OK) != 0)
                        return hf_fail(reterr_status, -errno, "cannot write %s: %s", path,
                                       strerror(errno));
                return 0;
        }
        (void)snprintf(copy, sizeof copy, "%s", path);
        const char *directory = dirname(copy);
        if (access(directory, F_OK) == 0 && access(directory, W_OK | X_OK) != 0)
                return hf_fail(reterr_status, -errno, "cannot write %s: %s", path, strerror(errno));
        return 0; /* the start makes a missing directory */
}

HF__CLEANUP_DEFINE(file_cleanup, struct hfd_audit_file *, hfd_audit_file_free)

int hfd_audit_file_new(const struct hf_host *host, const struct hfd_audit_file_config *config,
                       struct hfd_audit_file **ret_file, struct hf_status *reterr_status) {
        HF__CLEANUP(file_cleanup) struct hfd_audit_file *file = calloc(1, sizeof *file);

        if (!file)
                return hf_fail(reterr_status, -ENOMEM, "out of memory");
        *file = (struct hfd_audit_file){.clock = hf_host_clock(host),
                                        .config = *config,
                                        .path = strdup(config->path),
                                        .fd = -1};
        if (!file->path)
                return hf_fail(reterr_status, -ENOMEM, "out of memory");
        file->config.path = file->path;
        int r = open_file(file);
        if (r == -ENOENT) {
                r = make_directory(file->path, reterr_status);
                if (r != 0)
                        return r;
                r = open_file(file);
        }
        if (r != 0)
                return hf_fail(reterr_status, r, "cannot open %s: %s", file->path, hf_strerror(r));
        if (!is_stdout(file))
                remove_old(file);
        *ret_file = HF__TAKE(file);
        return 0;
}

struct hfd_audit_file *hfd_audit_file_free(struct hfd_audit_file *file) {
        if (!file)
                return NULL;
        close_file(file);
        free(file->path);
        free(file);
        return NULL;
}

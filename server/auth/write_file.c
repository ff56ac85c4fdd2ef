/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Writes small files.
 *
 * Invariant: a reader never sees an incomplete file, and a crash leaves either the old file or the
 * new one. Therefore each file is synced before its rename, and the directory after the renames.
 */
#include "server/auth/write_file.h"

#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

/* A file that is written and not at its path yet. */
struct temporary {
        int fd;              /* -1 = closed */
        char path[PATH_MAX]; /* "" = there is no such file */
};

static int fail_write(const char *path, int r, struct hf_status *reterr_status) {
        return hf_fail(reterr_status, r, "cannot write %.*s: %s", PATH_MAX, path, strerror(-r));
}

static int write_text(int fd, const char *text, size_t n) {
        while (n > 0) {
                ssize_t written = write(fd, text, n);
                if (written < 0 && errno == EINTR)
                        continue;
                if (written < 0)
                        return -errno;
                text += written;
                n -= (size_t)written;
        }
        return 0;
}

/* Only root may change the owner of a file, but others may choose one of their groups. */
static void give_to(int fd, uid_t owner, gid_t group) {
        if (fchown(fd, owner, group) != 0)
                (void)!fchown(fd, (uid_t)-1, group);
}

/* Makes the temporary file and writes the text into it. Sets the owner and the mode before, so that
 * other users can never read a key. The kernel begins to store the text, and sync_temporary waits
 * for it: so the files of one call are stored at the same time. */
static int write_temporary(const struct hfd_new_file *file, uid_t owner, gid_t group,
                           struct temporary *temporary) {
        int n = snprintf(temporary->path, sizeof temporary->path, "%s.XXXXXX", file->path);

        if (n < 0 || (size_t)n >= sizeof temporary->path) {
                temporary->path[0] = '\0';
                return -ENAMETOOLONG;
        }
        temporary->fd = mkostemp(temporary->path, O_CLOEXEC);
        if (temporary->fd < 0) {
                temporary->path[0] = '\0';
                return -errno;
        }
        if (owner != geteuid() || group != getegid())
                give_to(temporary->fd, owner, group);
        int r = fchmod(temporary->fd, file->mode) == 0 ? 0 : -errno;
        if (r == 0)
                r = write_text(temporary->fd, file->text, strlen(file->text));
        if (r == 0) /* a hint: not every file system knows it */
                (void)sync_file_range(temporary->fd, 0, 0, SYNC_FILE_RANGE_WRITE);
        return r;
}

static int sync_temporary(struct temporary *temporary) {
        int r = fsync(temporary->fd) == 0 ? 0 : -errno;

        if (close(temporary->fd) != 0 && r == 0)
                r = -errno;
        temporary->fd = -1;
        return r;
}

static int rename_temporary(const struct hfd_new_file *file, struct temporary *temporary) {
        if (rename(temporary->path, file->path) != 0)
                return -errno;
        temporary->path[0] = '\0';
        return 0;
}

/* Closes the temporary file, and removes it unless it was renamed. */
static void temporary_done(struct temporary *temporary) {
        if (temporary->fd >= 0)
                (void)close(temporary->fd);
        if (temporary->path[0])
                (void)unlink(temporary->path);
}

/* Syncs the directory of path. A rename survives a crash only after that. */
static int sync_directory_of(const char *path) {
        char dir[PATH_MAX];
        const char *slash = strrchr(path, '/');
        int n_dir = slash && slash != path ? (int)(slash - path) : 1;
        int n = snprintf(dir, sizeof dir, "%.*s", n_dir, slash ? path : ".");
        if (n < 0 || (size_t)n >= sizeof dir)
                return -ENAMETOOLONG;
        int fd = open(dir, O_RDONLY | O_DIRECTORY | O_CLOEXEC);
        if (fd < 0)
                return -errno;
        int r = fsync(fd) == 0 ? 0 : -errno;
        (void)close(fd);
        return r;
}

/* The temporaries are empty: fd is -1 and path is "". After an error the later loops leave `i`
 * alone, so files[i - 1] is the file that failed. If the directory cannot be synced, the message
 * names the last file. */
static int write_files(const struct hfd_new_file *files, size_t n, uid_t owner, gid_t group,
                       struct temporary *temporaries, struct hf_status *reterr_status) {
        int r = 0;
        size_t i;

        for (i = 0; r == 0 && i < n; i++)
                r = write_temporary(&files[i], owner, group, &temporaries[i]);
        for (i = r == 0 ? 0 : i; r == 0 && i < n; i++)
                r = sync_temporary(&temporaries[i]);
        for (i = r == 0 ? 0 : i; r == 0 && i < n; i++)
                r = rename_temporary(&files[i], &temporaries[i]);
        if (r == 0)
                r = sync_directory_of(files[0].path);
        return r == 0 ? 0 : fail_write(files[i - 1].path, r, reterr_status);
}

static int write_files_of(const struct hfd_new_file *files, size_t n, uid_t owner, gid_t group,
                          struct hf_status *reterr_status) {
        struct temporary *temporaries = n ? calloc(n, sizeof *temporaries) : NULL;

        if (n == 0)
                return 0;
        if (!temporaries)
                return fail_write(files[0].path, -ENOMEM, reterr_status);
        for (size_t i = 0; i < n; i++)
                temporaries[i].fd = -1;
        int r = write_files(files, n, owner, group, temporaries, reterr_status);
        for (size_t i = 0; i < n; i++)
                temporary_done(&temporaries[i]);
        free(temporaries);
        return r;
}

int hfd_write_files(const struct hfd_new_file *files, size_t n, struct hf_status *reterr_status) {
        return write_files_of(files, n, geteuid(), getegid(), reterr_status);
}

int hfd_write_file_of(const char *path, const char *text, mode_t mode, uid_t owner, gid_t group,
                      struct hf_status *reterr_status) {
        const struct hfd_new_file file = {.path = path, .text = text, .mode = mode};

        return write_files_of(&file, 1, owner, group, reterr_status);
}

int hfd_write_file(const char *path, const char *text, mode_t mode,
                   struct hf_status *reterr_status) {
        return hfd_write_file_of(path, text, mode, geteuid(), getegid(), reterr_status);
}

/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Makes files under names that do not exist yet.
 *
 * Invariant: a file gets its name when it is complete and on the disk. So whoever finds the name
 * finds the whole file, and no existing file is lost.
 */
#include "server/storage/new_file.h"

#include <errno.h>
#include <fcntl.h>
#include <libgen.h>
#include <limits.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

static int fail_file(const char *path, const char *what, struct hf_status *reterr_status) {
        return hf_fail(reterr_status, -errno, "%s cannot be %s: %s", path, what, strerror(errno));
}

int hfd_new_file_check_absent(const char *path, struct hf_status *reterr_status) {
        struct stat info;

        if (lstat(path, &info) == 0)
                return hf_fail(reterr_status, HF_E_EXISTS,
                               "%s exists: move it away, or choose another name", path);
        return errno == ENOENT ? 0 : fail_file(path, "looked at", reterr_status);
}

int hfd_new_file_begin(const char *target, char *temporary, struct hf_status *reterr_status) {
        int n = snprintf(temporary, PATH_MAX, "%s.XXXXXX", target);

        if (n < 0 || n >= PATH_MAX)
                return hf_fail(reterr_status, HF_E_TOO_LARGE, "the path is too long");
        int r = hfd_new_file_check_absent(target, reterr_status);
        if (r != 0)
                return r;
        int fd = mkostemp(temporary, O_CLOEXEC); /* mode 0600 */
        if (fd < 0)
                return fail_file(target, "created", reterr_status);
        (void)close(fd);
        return 0;
}

static int sync_path(const char *path, int flags, struct hf_status *reterr_status) {
        int fd = open(path, flags | O_CLOEXEC), r = 0;

        if (fd < 0 || fsync(fd) != 0)
                r = fail_file(path, "synced", reterr_status);
        if (fd >= 0)
                (void)close(fd);
        return r;
}

/* Renames without replacing a file. On a file system that cannot do that in one step, the file has
 * both names for a moment. */
static int rename_to_new(const char *from, const char *to) {
        if (renameat2(AT_FDCWD, from, AT_FDCWD, to, RENAME_NOREPLACE) == 0)
                return 0;
        if (errno != EINVAL && errno != ENOSYS)
                return -errno;
        if (link(from, to) != 0)
                return -errno;
        (void)unlink(from);
        return 0;
}

int hfd_new_file_publish(const char *temporary, const char *target,
                         struct hf_status *reterr_status) {
        char directory[PATH_MAX];
        int r = sync_path(temporary, O_RDONLY, reterr_status);

        if (r != 0)
                return r;
        r = rename_to_new(temporary, target);
        if (r != 0)
                return hf_fail(reterr_status, r == -EEXIST ? HF_E_EXISTS : r,
                               "%s cannot be created: %s", target, strerror(-r));
        (void)snprintf(directory, sizeof directory, "%s", target);
        return sync_path(dirname(directory), O_RDONLY | O_DIRECTORY, reterr_status);
}

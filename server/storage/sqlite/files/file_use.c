/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Asks the kernel which process holds SQLite's locks on a file.
 *
 * Invariant: the process that asks has no connection of SQLite to the file. POSIX drops all locks
 * of a process on a file when it closes any descriptor of the file, and SQLite would go on without
 * them.
 */
#include "server/storage/sqlite/files/file_use.h"

#include <errno.h>
#include <fcntl.h>
#include <string.h>
#include <unistd.h>

/* The bytes that SQLite locks, as its file format defines them: pending, reserved, shared. */
#define FIRST_LOCK_BYTE 0x40000000
#define N_LOCK_BYTES    512

int hfd_sqlite_check_unused(const char *path, struct hf_status *reterr_status) {
        struct flock lock = {.l_type = F_WRLCK,
                             .l_whence = SEEK_SET,
                             .l_start = FIRST_LOCK_BYTE,
                             .l_len = N_LOCK_BYTES};
        int fd = open(path, O_RDONLY | O_CLOEXEC), r = 0;

        if (fd < 0)
                return hf_fail(reterr_status, errno == ENOENT ? HF_E_NOT_FOUND : -errno,
                               "%s cannot be opened: %s", path, strerror(errno));
        if (fcntl(fd, F_OFD_GETLK, &lock) != 0)
                r = hf_fail(reterr_status, -errno, "cannot ask for the locks of %s: %s", path,
                            strerror(errno));
        else if (lock.l_type != F_UNLCK && lock.l_pid > 0)
                r = hf_fail(reterr_status, HF_E_BUSY,
                            "%s is used by process %lld: stop all instances that use it", path,
                            (long long)lock.l_pid);
        else if (lock.l_type != F_UNLCK)
                r = hf_fail(reterr_status, HF_E_BUSY,
                            "%s is used by another process: stop all instances that use it", path);
        (void)close(fd);
        return r;
}

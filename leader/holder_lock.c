/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The lock file of a process that may lead. The process describes itself and the file in Leases as
 *
 *      <boot id>/<pid namespace>/<device of />:<inode of /> <pid> <device>:<inode>:<created> <name>
 *
 * <device>:<inode>:<created> identifies the file, whatever happens to its name. A file that was
 * deleted and made again, copied, or restored has another inode or another time of creation.
 *
 * Invariants:
 *  - a process is called dead only if its own file was tested and is not locked, or if this process
 *    has locked that file. Everything that cannot be tested is unknown;
 *  - a test locks nothing (F_OFD_GETLK), so it cannot disturb a process that starts.
 *
 * The lock is an OFD lock: closing another descriptor of the file does not free it. A child that
 * was forked without an exec keeps it, and then the process does not count as dead. Network file
 * systems are refused, because a server may drop the lock of a process that is alive.
 */
#include "leader/holder_lock.h"

#include <assert.h>
#include <errno.h>
#include <fcntl.h>
#include <inttypes.h>
#include <linux/magic.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <sys/statfs.h>
#include <sys/syscall.h>
#include <unistd.h>

#include "base/cleanup.h"

#define NAME_CHARS     "abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789._-"
#define NAME_MAX_      100
#define BOOT_ID_LENGTH 36
#ifndef XFS_SUPER_MAGIC
#define XFS_SUPER_MAGIC 0x58465342
#endif

struct hf__holder_lock {
        int dir_fd, fd;                       /* owned; fd holds the lock */
        char place[128], file[80];            /* the first and the third word of `process` */
        char process[HF__HOLDER_PROCESS_MAX]; /* describes this process */
};

/* ---- where this process runs ---- */

static int read_boot_id(char *boot_id) {
        int fd = open("/proc/sys/kernel/random/boot_id", O_RDONLY | O_CLOEXEC);
        if (fd < 0)
                return -errno;
        ssize_t n = read(fd, boot_id, BOOT_ID_LENGTH);
        (void)close(fd);
        return n == BOOT_ID_LENGTH ? 0 : -EIO;
}

static int describe_place(char *place, size_t max) {
        char boot_id[BOOT_ID_LENGTH + 1] = "";
        struct stat pidns, root;

        int r = read_boot_id(boot_id);
        if (r != 0)
                return r;
        if (stat("/proc/self/ns/pid", &pidns) != 0 || stat("/", &root) != 0)
                return -errno;
        int n = snprintf(place, max, "%s/%" PRIu64 "/%" PRIu64 ":%" PRIu64, boot_id,
                         (uint64_t)pidns.st_ino, (uint64_t)root.st_dev, (uint64_t)root.st_ino);
        return n > 0 && (size_t)n < max ? 0 : -EOVERFLOW;
}

/* Describes an open file. HF_E_INVALID: it is not a regular file, or its inode or time of creation
 * is not known. */
static int describe_file(int fd, char *file, size_t max) {
        struct statx st;

        if (statx(fd, "", AT_EMPTY_PATH, STATX_TYPE | STATX_INO | STATX_BTIME, &st) != 0)
                return -errno;
        if (!S_ISREG(st.stx_mode) || !(st.stx_mask & STATX_BTIME) || !(st.stx_mask & STATX_INO))
                return HF_E_INVALID;
        int n = snprintf(file, max, "%u.%u:%" PRIu64 ":%lld.%09u", st.stx_dev_major,
                         st.stx_dev_minor, (uint64_t)st.stx_ino, (long long)st.stx_btime.tv_sec,
                         st.stx_btime.tv_nsec);
        return n > 0 && (size_t)n < max ? 0 : -EOVERFLOW;
}

/* Whether locks of this file are kept by this kernel alone. */
static bool is_local(int fd) {
        static const unsigned long local[] = {EXT4_SUPER_MAGIC, TMPFS_MAGIC,
                                              XFS_SUPER_MAGIC,  BTRFS_SUPER_MAGIC,
                                              F2FS_SUPER_MAGIC, OVERLAYFS_SUPER_MAGIC};
        struct statfs fs = {0}; /* its type stays 0 if it cannot be read */

        (void)fstatfs(fd, &fs);
        for (size_t i = 0; i < sizeof local / sizeof *local; i++)
                if ((unsigned long)fs.f_type == local[i])
                        return true;
        return false;
}

/* ---- this process's file ---- */

/* Divides path. False: the last part is not a name that a description can have. True and *ret_dir
 * NULL: out of memory. */
static bool split_path(const char *path, char **ret_dir, const char **ret_name) {
        const char *slash = strrchr(path, '/'), *name = slash ? slash + 1 : path;
        size_t n = strlen(name);

        if (n == 0 || n > NAME_MAX_ || name[0] == '.' || strspn(name, NAME_CHARS) != n)
                return false;
        if (!slash)
                *ret_dir = strdup(".");
        else
                *ret_dir = strndup(path, slash == path ? 1 : (size_t)(slash - path));
        *ret_name = name;
        return true;
}

static int open_and_lock(struct hf__holder_lock *lock, const char *dir, const char *name) {
        struct flock whole = {.l_type = F_WRLCK, .l_whence = SEEK_SET};

        lock->dir_fd = open(dir, O_RDONLY | O_DIRECTORY | O_CLOEXEC);
        if (lock->dir_fd < 0)
                return -errno;
        lock->fd = openat(lock->dir_fd, name,
                          O_RDWR | O_CREAT | O_NOFOLLOW | O_NONBLOCK | O_CLOEXEC, 0600);
        if (lock->fd < 0)
                return -errno;
        if (!is_local(lock->fd))
                return HF_E_INVALID;
        if (fcntl(lock->fd, F_OFD_SETLK, &whole) != 0)
                return errno == EAGAIN || errno == EACCES ? HF_E_BUSY : -errno;
        return 0;
}

static int describe_process(struct hf__holder_lock *lock, const char *name) {
        int r = describe_place(lock->place, sizeof lock->place);
        if (r == 0)
                r = describe_file(lock->fd, lock->file, sizeof lock->file);
        if (r != 0)
                return r;
        int n = snprintf(lock->process, sizeof lock->process, "%s %ld %s %s", lock->place,
                         (long)getpid(), lock->file, name);
        return n > 0 && (size_t)n < sizeof lock->process ? 0 : -EOVERFLOW;
}

HF__CLEANUP_DEFINE(lock_cleanup, struct hf__holder_lock *, hf__holder_lock_free)

static int make_lock(const char *dir, const char *name, struct hf__holder_lock **ret_lock) {
        HF__CLEANUP(lock_cleanup) struct hf__holder_lock *lock = calloc(1, sizeof *lock);

        if (!lock)
                return -ENOMEM;
        lock->dir_fd = lock->fd = -1;
        int r = open_and_lock(lock, dir, name);
        if (r != 0)
                return r;
        r = describe_process(lock, name);
        if (r != 0)
                return r;
        *ret_lock = HF__TAKE(lock);
        return 0;
}

int hf__holder_lock_new(const char *path, struct hf__holder_lock **ret_lock,
                        struct hf_status *reterr_status) {
        const char *name = NULL;
        HF__CLEANUP(hf__free_cleanup) char *dir = NULL;

        if (!split_path(path, &dir, &name))
                return hf_fail(reterr_status, HF_E_INVALID,
                               "the lock file %.200s must have a name of 1 to %d letters, digits, "
                               "dots, dashes and underscores, and must not begin with a dot",
                               path, NAME_MAX_);
        int r = dir ? make_lock(dir, name, ret_lock) : -ENOMEM;
        if (r == 0)
                return 0;
        if (r == HF_E_BUSY)
                return hf_fail(reterr_status, r, "the lock file %.200s is held by another process",
                               path);
        if (r == HF_E_INVALID)
                return hf_fail(reterr_status, r,
                               "the lock file %.200s must be a regular file on a local file system "
                               "that records the time of creation (ext4, xfs, btrfs, tmpfs)",
                               path);
        return hf_fail(reterr_status, r, "cannot lock the file %.200s: %s", path, hf_strerror(r));
}

struct hf__holder_lock *hf__holder_lock_free(struct hf__holder_lock *lock) {
        if (!lock)
                return NULL;
        if (lock->fd >= 0)
                (void)close(lock->fd);
        if (lock->dir_fd >= 0)
                (void)close(lock->dir_fd);
        free(lock);
        return NULL;
}

const char *hf__holder_lock_process(const struct hf__holder_lock *lock) { return lock->process; }

/* ---- other processes ---- */

/* parse_process repeats these sizes, without the NUL, in its format. */
struct parts {
        char place[128], file[80], name[NAME_MAX_ + 1];
        int pid;
};

/* False: it is not a description, or it describes a process that runs elsewhere. */
static bool parse_process(const struct hf__holder_lock *lock, const char *process,
                          struct parts *ret) {
        int n = 0;

        if (strlen(process) >= HF__HOLDER_PROCESS_MAX ||
            sscanf(process, "%127s %d %79s %100s%n", ret->place, &ret->pid, ret->file, ret->name,
                   &n) != 4 ||
            process[n] != '\0')
                return false;
        return strcmp(ret->place, lock->place) == 0 && ret->pid > 0 && ret->name[0] != '.' &&
               strspn(ret->name, NAME_CHARS) == strlen(ret->name);
}

bool hf__holder_lock_is_dead(const struct hf__holder_lock *lock, const char *process) {
        struct flock whole = {.l_type = F_WRLCK, .l_whence = SEEK_SET};
        struct parts parts;
        char file[80];

        if (!parse_process(lock, process, &parts) || strcmp(process, lock->process) == 0)
                return false;
        /* This is the file that this process has locked, so the process that had locked it before
         * is dead, or has freed its electors. */
        if (strcmp(parts.file, lock->file) == 0)
                return true;
        /* O_NONBLOCK, because the name may be a FIFO's by now, and to open one would wait. */
        int fd = openat(lock->dir_fd, parts.name,
                        O_RDONLY | O_NOFOLLOW | O_NONBLOCK | O_NOCTTY | O_CLOEXEC);
        if (fd < 0)
                return false;
        bool dead = describe_file(fd, file, sizeof file) == 0 && strcmp(file, parts.file) == 0 &&
                    is_local(fd) && fcntl(fd, F_OFD_GETLK, &whole) == 0 && whole.l_type == F_UNLCK;
        (void)close(fd);
        return dead;
}

int hf__holder_lock_pidfd(const struct hf__holder_lock *lock, const char *process) {
        struct parts parts;

        if (!parse_process(lock, process, &parts))
                return -1;
        return (int)syscall(SYS_pidfd_open, (pid_t)parts.pid, 0u); /* close-on-exec */
}

/* SPDX-License-Identifier: Apache-2.0 */
/*
 * See crash_shim.h. Each function makes the system call itself: it needs no dlsym, and works under
 * the sanitizers.
 *
 * Invariants:
 *  - a call on one of the files holds mu until it is done, so that at the end of the process no
 *    other call on them is half done;
 *  - no descriptor of one of the files is closed here (crash_disk.c says why).
 */
#undef _FILE_OFFSET_BITS
#undef NDEBUG
#include "crash_shim.h"

#include <assert.h>
#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <pthread.h>
#include <signal.h>
#include <stdarg.h>
#include <stdatomic.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <unistd.h>

#include "crash_disk.h"

enum { N_DESCRIPTORS = 4096 };

/* The kind of a descriptor. */
enum kind {
        OTHER,
        STORE,     /* one of the files whose changes count */
        HELPER,    /* -shm or -notify: takes room only */
        DIRECTORY, /* of the store */
};

enum when { BEFORE, AFTER, TORN, FAIL };
static const char *const whens[] =
        {[BEFORE] = "before", [AFTER] = "after", [TORN] = "torn", [FAIL] = "fail"};

static struct {
        bool on;
        char path[PATH_MAX], directory[PATH_MAX];
        unsigned long long at;
        enum when when;
        bool power;
        uint64_t seed;
        const char *counts, *deaf, *room; /* NULL = not set */
} config;                                 /* immutable once it is on */

static _Atomic unsigned char kinds[N_DESCRIPTORS]; /* an enum kind */
static pthread_mutex_t mu = PTHREAD_MUTEX_INITIALIZER;
/* Guarded by mu. */
static unsigned long long n_calls;
static unsigned numbers[N_DESCRIPTORS]; /* of a file of the store, for crash_disk */
static const char *suffixes[N_DESCRIPTORS];

static const char *const store_suffixes[] = {"", "-wal", "-journal"};
static const char *const helper_suffixes[] = {"-shm", "-notify"};
#define N_OF(array) (sizeof(array) / sizeof(array)[0])

__attribute__((constructor)) static void configure(void) {
        const char *path = getenv("CRASH_SHIM_FILE"), *at = getenv("CRASH_SHIM_AT");
        const char *when = getenv("CRASH_SHIM_WHEN"), *seed = getenv("CRASH_SHIM_POWER");

        if (!path || strlen(path) >= PATH_MAX || !strrchr(path, '/'))
                return;
        (void)strcpy(config.path, path);
        (void)strcpy(config.directory, path);
        *strrchr(config.directory, '/') = '\0';
        config.at = at ? strtoull(at, NULL, 10) : 0;
        for (size_t i = 0; when && i < N_OF(whens); i++)
                if (strcmp(when, whens[i]) == 0)
                        config.when = (enum when)i;
        config.power = seed && config.at != 0;
        config.seed = seed ? strtoull(seed, NULL, 10) : 0;
        config.counts = getenv("CRASH_SHIM_COUNTS");
        config.deaf = getenv("CRASH_SHIM_DEAF");
        config.room = getenv("CRASH_SHIM_ROOM");
        config.on = true;
}

static enum kind kind_of(int fd) {
        return config.on && fd >= 0 && fd < N_DESCRIPTORS ? (enum kind)kinds[fd] : OTHER;
}

/* The suffix is NULL unless the path is one of the files. */
static enum kind kind_of_path(const char *path, const char **ret_suffix) {
        size_t n = strlen(config.path);

        *ret_suffix = NULL;
        if (!config.on)
                return OTHER;
        if (strcmp(path, config.directory) == 0)
                return DIRECTORY;
        if (strncmp(path, config.path, n) != 0)
                return OTHER;
        for (size_t i = 0; i < N_OF(store_suffixes); i++)
                if (strcmp(path + n, store_suffixes[i]) == 0) {
                        *ret_suffix = store_suffixes[i];
                        return STORE;
                }
        for (size_t i = 0; i < N_OF(helper_suffixes); i++)
                if (strcmp(path + n, helper_suffixes[i]) == 0)
                        return HELPER;
        return OTHER;
}

/* ---- the end of the process ---- */

/* Counts a call. True: it is the one at which the process ends. */
static bool is_last_locked(const char *suffix) {
        if (config.at == 0 || (config.counts && strcmp(config.counts, suffix) != 0))
                return false;
        return ++n_calls == config.at;
}

_Noreturn static void end_locked(void) {
        if (config.power) {
                char shared[PATH_MAX + 8];

                (void)snprintf(shared, sizeof shared, "%s-shm", config.path);
                (void)syscall(SYS_unlinkat, AT_FDCWD, shared, 0);
                crash_disk_lose(config.seed);
        }
        for (;;)
                (void)kill(getpid(), SIGKILL);
}

/* Called before the last call is made. Ends the process, or returns whether the call must fail
 * instead of being made (CRASH_SHIM_WHEN). */
static bool comes_first_locked(void) {
        if (config.when == BEFORE)
                end_locked();
        return config.when == FAIL;
}

static int fail_locked(void) {
        pthread_mutex_unlock(&mu);
        errno = EIO;
        return -1;
}

/* ---- the room on the disk ---- */

static off_t size_at(const char *path) {
        struct stat info;

        return stat(path, &info) == 0 ? info.st_size : 0;
}

/* The bytes that are left on the disk. */
static off_t left_locked(void) {
        off_t left = config.room ? size_at(config.room) : LLONG_MAX;
        char path[PATH_MAX + 16];

        for (size_t i = 0; config.room && i < N_OF(store_suffixes) + N_OF(helper_suffixes); i++) {
                const char *suffix = i < N_OF(store_suffixes)
                                             ? store_suffixes[i]
                                             : helper_suffixes[i - N_OF(store_suffixes)];

                (void)snprintf(path, sizeof path, "%s%s", config.path, suffix);
                left -= size_at(path);
        }
        return left;
}

/* How many of the n bytes have room at this place of the file. */
static size_t fitting_locked(int fd, off_t at, size_t n) {
        struct stat info;
        off_t end, left = left_locked();

        if (left == LLONG_MAX || fstat(fd, &info) != 0 || at + (off_t)n <= info.st_size)
                return n;
        end = info.st_size + (left > 0 ? left : 0);
        if (end <= at)
                return 0;
        return end - at < (off_t)n ? (size_t)(end - at) : n;
}

/* ---- the system calls ---- */

static int open_any(const char *path, int flags, mode_t mode) {
        const char *suffix;
        enum kind kind = kind_of_path(path, &suffix);
        struct stat info;

        if (kind == OTHER)
                return (int)syscall(SYS_openat, AT_FDCWD, path, flags, mode);
        pthread_mutex_lock(&mu);
        bool creates = (flags & O_CREAT) && stat(path, &info) != 0;
        bool last = creates && kind == STORE && is_last_locked(suffix);
        int fd = -1;
        if (last && comes_first_locked())
                return fail_locked();
        if (creates && left_locked() <= 0)
                errno = ENOSPC;
        else
                fd = (int)syscall(SYS_openat, AT_FDCWD, path, flags, mode);
        if (fd >= N_DESCRIPTORS)
                abort();
        if (fd >= 0) {
                if (kind == STORE && config.at != 0)
                        numbers[fd] = crash_disk_opened(fd, path, creates);
                suffixes[fd] = suffix;
                kinds[fd] = (unsigned char)kind;
        }
        if (last)
                end_locked();
        pthread_mutex_unlock(&mu);
        return fd;
}

/* The mode is an argument only of calls that may create the file. */
#define MODE_OF(flags, mode)                                                                       \
        do {                                                                                       \
                va_list list;                                                                      \
                va_start(list, flags);                                                             \
                mode = (flags)&O_CREAT ? va_arg(list, mode_t) : 0;                                 \
                va_end(list);                                                                      \
        } while (0)

int open(const char *path, int flags, ...) {
        mode_t mode;

        MODE_OF(flags, mode);
        return open_any(path, flags, mode);
}

int open64(const char *path, int flags, ...) {
        mode_t mode;

        MODE_OF(flags, mode);
        return open_any(path, flags, mode);
}

int close(int fd) {
        if (kind_of(fd) != OTHER)
                kinds[fd] = OTHER;
        return (int)syscall(SYS_close, fd);
}

static ssize_t write_at(int fd, const void *data, size_t n, off_t at) {
        enum kind kind = kind_of(fd);
        ssize_t r = -1;

        if (kind == OTHER)
                return syscall(SYS_pwrite64, fd, data, n, at);
        pthread_mutex_lock(&mu);
        bool last = kind == STORE && is_last_locked(suffixes[fd]);
        if (last && comes_first_locked())
                return fail_locked();
        size_t fitting = fitting_locked(fd, at, last && config.when == TORN ? n / 2 : n);
        if (kind == STORE && config.power)
                crash_disk_writing(numbers[fd], at, fitting);
        if (fitting == 0 && n > 0)
                errno = ENOSPC;
        else
                r = syscall(SYS_pwrite64, fd, data, fitting, at);
        if (last)
                end_locked();
        pthread_mutex_unlock(&mu);
        return r;
}

ssize_t pwrite(int fd, const void *data, size_t n, off_t at) { return write_at(fd, data, n, at); }
ssize_t pwrite64(int fd, const void *data, size_t n, off64_t at) {
        return write_at(fd, data, n, at);
}

ssize_t write(int fd, const void *data, size_t n) {
        if (kind_of(fd) == OTHER)
                return syscall(SYS_write, fd, data, n);
        ssize_t r = write_at(fd, data, n, lseek(fd, 0, SEEK_CUR));
        if (r > 0)
                (void)lseek(fd, r, SEEK_CUR);
        return r;
}

static int sync_any(int fd, long call) {
        enum kind kind = kind_of(fd);

        if (kind == OTHER || config.at == 0)
                return (int)syscall(call, fd);
        pthread_mutex_lock(&mu);
        bool last = kind == STORE && is_last_locked(suffixes[fd]);
        if (last && comes_first_locked())
                return fail_locked();
        if (config.power && kind == DIRECTORY)
                crash_disk_directory_synced();
        else if (config.power && kind == STORE &&
                 (!config.deaf || strcmp(config.deaf, suffixes[fd]) != 0))
                crash_disk_synced(numbers[fd]);
        if (last)
                end_locked();
        pthread_mutex_unlock(&mu);
        return 0;
}

int fsync(int fd) { return sync_any(fd, SYS_fsync); }
int fdatasync(int fd) { return sync_any(fd, SYS_fdatasync); }

static int truncate_any(int fd, off_t size) {
        if (kind_of(fd) != STORE)
                return (int)syscall(SYS_ftruncate, fd, size);
        pthread_mutex_lock(&mu);
        bool last = is_last_locked(suffixes[fd]);
        if (last && comes_first_locked())
                return fail_locked();
        if (config.power)
                crash_disk_truncating(numbers[fd], size);
        int r = (int)syscall(SYS_ftruncate, fd, size);
        if (last)
                end_locked();
        pthread_mutex_unlock(&mu);
        return r;
}

int ftruncate(int fd, off_t size) { return truncate_any(fd, size); }
int ftruncate64(int fd, off64_t size) { return truncate_any(fd, size); }

int unlink(const char *path) {
        const char *suffix;

        if (kind_of_path(path, &suffix) != STORE)
                return (int)syscall(SYS_unlinkat, AT_FDCWD, path, 0);
        pthread_mutex_lock(&mu);
        bool last = is_last_locked(suffix);
        if (last && comes_first_locked())
                return fail_locked();
        if (config.power)
                crash_disk_unlinking(path);
        int r = (int)syscall(SYS_unlinkat, AT_FDCWD, path, 0);
        if (last)
                end_locked();
        pthread_mutex_unlock(&mu);
        return r;
}

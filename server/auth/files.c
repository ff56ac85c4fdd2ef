/* SPDX-License-Identifier: Apache-2.0 */
#include "server/auth/files.h"

#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <time.h>
#include <unistd.h>

#include "server/auth/pki.h"

#define MAX_FILE_BYTES ((size_t)1 << 20)

int hfd_make_dir(const char *path, struct hf_status *reterr_status) {
        char partial[PATH_MAX];
        size_t n = strlen(path);
        if (n == 0 || n >= sizeof partial)
                return hf_fail(reterr_status, -ENAMETOOLONG, "cannot make directory %.200s: %s", path, strerror(ENAMETOOLONG));
        for (size_t i = 1; i <= n; i++) {
                if (path[i] != '/' && path[i] != '\0')
                        continue;
                memcpy(partial, path, i);
                partial[i] = '\0';
                if (mkdir(partial, 0700) != 0 && errno != EEXIST && i == n)
                        return hf_fail(reterr_status, -errno, "cannot make directory %s: %s", path, strerror(errno));
        }
        struct stat st;
        if (stat(path, &st) != 0)
                return hf_fail(reterr_status, -errno, "cannot use directory %s: %s", path, strerror(errno));
        if (!S_ISDIR(st.st_mode))
                return hf_fail(reterr_status, -ENOTDIR, "cannot use directory %s: %s", path, strerror(ENOTDIR));
        return 0;
}

static int write_all(int fd, const char *text, size_t n) {
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

/* A rename is durable once its directory is. */
static int sync_directory_of(const char *path) {
        char dir[PATH_MAX];
        const char *slash = strrchr(path, '/');
        int n = slash ? snprintf(dir, sizeof dir, "%.*s", slash == path ? 1 : (int)(slash - path), path) : snprintf(dir, sizeof dir, ".");
        if (n < 0 || (size_t)n >= sizeof dir)
                return -ENAMETOOLONG;
        int fd = open(dir, O_RDONLY | O_DIRECTORY | O_CLOEXEC);
        if (fd < 0)
                return -errno;
        int r = fsync(fd) == 0 ? 0 : -errno;
        (void)close(fd);
        return r;
}

static int write_and_close(int fd, const char *text, mode_t mode) {
        int r = fchmod(fd, mode) == 0 ? 0 : -errno;
        if (r == 0)
                r = write_all(fd, text, strlen(text));
        if (r == 0 && fsync(fd) != 0)
                r = -errno;
        if (close(fd) != 0 && r == 0)
                r = -errno;
        return r;
}

int hfd_write_file(const char *path, const char *text, mode_t mode, struct hf_status *reterr_status) {
        char temporary[PATH_MAX];
        int n = snprintf(temporary, sizeof temporary, "%s.XXXXXX", path);
        if (n < 0 || (size_t)n >= sizeof temporary)
                return hf_fail(reterr_status, -ENAMETOOLONG, "cannot write %.200s: %s", path, strerror(ENAMETOOLONG));
        int fd = mkostemp(temporary, O_CLOEXEC);
        if (fd < 0)
                return hf_fail(reterr_status, -errno, "cannot write %s: %s", path, strerror(errno));
        int r = write_and_close(fd, text, mode);
        if (r == 0 && rename(temporary, path) != 0)
                r = -errno;
        if (r != 0)
                (void)unlink(temporary);
        else
                r = sync_directory_of(path);
        return r == 0 ? 0 : hf_fail(reterr_status, r, "cannot write %s: %s", path, strerror(-r));
}

static int read_open(int fd, const char *path, char **ret_text, struct hf_status *reterr_status) {
        struct stat st;
        if (fstat(fd, &st) != 0)
                return hf_fail(reterr_status, -errno, "cannot read %s: %s", path, strerror(errno));
        if (S_ISDIR(st.st_mode))
                return hf_fail(reterr_status, -EISDIR, "cannot read %s: %s", path, strerror(EISDIR));
        size_t space = st.st_size > 0 && (size_t)st.st_size < MAX_FILE_BYTES ? (size_t)st.st_size + 2 : 4096, n = 0;
        char *text = malloc(space);
        if (!text)
                return -ENOMEM;
        for (;;) {
                ssize_t got = read(fd, text + n, space - 1 - n);
                if (got < 0 && errno == EINTR)
                        continue;
                if (got < 0) {
                        int error = errno;
                        free(text);
                        return hf_fail(reterr_status, -error, "cannot read %s: %s", path, strerror(error));
                }
                if (got == 0)
                        break;
                n += (size_t)got;
                if (n > MAX_FILE_BYTES) {
                        free(text);
                        return hf_fail(reterr_status, HF_E_TOO_LARGE, "cannot read %s: it is larger than 1 MiB", path);
                }
                if (n + 1 == space) {
                        char *grown = realloc(text, space * 2);
                        if (!grown) {
                                free(text);
                                return -ENOMEM;
                        }
                        text = grown;
                        space *= 2;
                }
        }
        text[n] = '\0';
        *ret_text = text;
        return 0;
}

int hfd_read_file(const char *path, char **ret_text, struct hf_status *reterr_status) {
        /* Non-blocking, so that a fifo in a file's place is an error or empty and not a hang. */
        int fd = open(path, O_RDONLY | O_CLOEXEC | O_NONBLOCK);
        if (fd < 0) {
                int error = errno == ENOENT ? HF_E_NOT_FOUND : -errno;
                return hf_fail(reterr_status, error, "cannot read %s: %s", path, strerror(errno));
        }
        int r = read_open(fd, path, ret_text, reterr_status);
        (void)close(fd);
        return r;
}

static hf_nsec monotonic_now(void) {
        const struct hf_clock *clock = hf_clock_system();
        return clock->monotonic(clock->ctx);
}

int hfd_lock_file(const char *path, bool create, hf_nsec timeout, int *ret_fd, struct hf_status *reterr_status) {
        struct flock lock = {.l_type = F_WRLCK, .l_whence = SEEK_SET};
        hf_nsec deadline = monotonic_now() + timeout;
        int fd = open(path, O_RDWR | O_CLOEXEC | O_NOFOLLOW | (create ? O_CREAT : 0), 0600);
        if (fd < 0) {
                int error = errno == ENOENT && !create ? HF_E_NOT_FOUND : -errno;
                return hf_fail(reterr_status, error, "cannot open lock file %s: %s", path, strerror(errno));
        }
        while (fcntl(fd, F_OFD_SETLK, &lock) != 0) {
                int error = errno;
                bool held = error == EAGAIN || error == EACCES;
                if (error == EINTR)
                        continue;
                if (!held || monotonic_now() >= deadline) {
                        (void)close(fd);
                        return held ? hf_fail(reterr_status, HF_E_BUSY, "lock file %s is held by another process", path)
                                    : hf_fail(reterr_status, -error, "cannot lock %s: %s", path, strerror(error));
                }
                /* F_OFD_SETLKW has no deadline; the holder needs milliseconds. */
                nanosleep(&(struct timespec){.tv_nsec = 5 * HF_NSEC_PER_MSEC}, NULL);
        }
        *ret_fd = fd;
        return 0;
}

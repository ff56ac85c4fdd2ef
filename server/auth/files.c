/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Reads small files, and locks lock files.
 *
 * Invariant: a file may contain a key, so its text is overwritten before the text is freed.
 */
#include "server/auth/files.h"

#include <errno.h>
#include <fcntl.h>
#include <poll.h>
#include <stdlib.h>
#include <string.h>
#include <sys/eventfd.h>
#include <sys/inotify.h>
#include <sys/stat.h>
#include <time.h>
#include <unistd.h>

#include "server/auth/trusted_path.h"

#define MAX_FILE_BYTES ((size_t)1 << 20)

int hfd_make_dir(const char *path, struct hf_status *reterr_status) {
        int fd = -1;
        int r = hfd_trusted_open(path, HFD_TRUSTED_NEW_DIRECTORY, &fd, reterr_status);

        if (r == 0)
                (void)close(fd);
        return r;
}

static int fail_read(const char *path, int error, struct hf_status *reterr_status) {
        return hf_fail(reterr_status, -error, "cannot read %s: %s", path, strerror(error));
}

/* The size of the first buffer: the text, its NUL, and one byte more so that the last read can find
 * the end of the file. st_size is only an estimate; for files in /proc it is 0. */
static size_t initial_size(const struct stat *st) {
        if (st->st_size > 0 && (size_t)st->st_size < MAX_FILE_BYTES)
                return (size_t)st->st_size + 2;
        return 4096;
}

/* Doubles the buffer of *space bytes, of which n are used. Does not use realloc, which could leave
 * a copy of a key in freed memory. 0 or -ENOMEM. */
static int grow_text(char **text, size_t n, size_t *space) {
        char *grown = malloc(*space * 2);

        if (!grown)
                return -ENOMEM;
        memcpy(grown, *text, n);
        explicit_bzero(*text, n);
        free(*text);
        *text = grown;
        *space *= 2;
        return 0;
}

static int read_descriptor(int fd, const char *path, char **ret_text,
                           struct hf_status *reterr_status) {
        struct stat st;
        char *text;
        size_t space, n = 0;
        int r = 0;

        if (fstat(fd, &st) != 0)
                return fail_read(path, errno, reterr_status);
        if (S_ISDIR(st.st_mode))
                return fail_read(path, EISDIR, reterr_status);
        space = initial_size(&st);
        text = malloc(space);
        if (!text)
                return fail_read(path, ENOMEM, reterr_status);
        for (ssize_t got = 1; r == 0 && got != 0;) {
                got = read(fd, text + n, space - 1 - n);
                if (got < 0 && errno == EINTR)
                        continue;
                if (got < 0)
                        r = fail_read(path, errno, reterr_status);
                else
                        n += (size_t)got;
                if (r == 0 && n > MAX_FILE_BYTES)
                        r = hf_fail(reterr_status, HF_E_TOO_LARGE,
                                    "cannot read %s: it is larger than 1 MiB", path);
                if (r == 0 && n + 1 == space && grow_text(&text, n, &space) != 0)
                        r = fail_read(path, ENOMEM, reterr_status);
        }
        if (r == 0 && memchr(text, '\0', n))
                r = hf_fail(reterr_status, HF_E_INVALID,
                            "cannot use %s: it has a NUL byte, so it is not a text file", path);
        if (r != 0) {
                explicit_bzero(text, n);
                free(text);
                return r;
        }
        text[n] = '\0';
        *ret_text = text;
        return 0;
}

int hfd_read_file(const char *path, char **ret_text, struct hf_status *reterr_status) {
        int fd = -1;
        int r = hfd_trusted_open(path, HFD_TRUSTED_FILE, &fd, reterr_status);

        if (r != 0)
                return r;
        r = read_descriptor(fd, path, ret_text, reterr_status);
        (void)close(fd);
        return r;
}

/* ---- lock files ---- */

/* Returns the descriptor or -errno. A symbolic link is refused, because the file could be created
 * anywhere. */
static int open_lock_file(const char *path, bool create, struct hf_status *reterr_status) {
        int fd = open(path, O_RDWR | O_CLOEXEC | O_NOFOLLOW | (create ? O_CREAT : 0), 0600);
        if (fd >= 0)
                return fd;
        int error = errno;
        (void)hf_fail(reterr_status, error == ENOENT && !create ? HF_E_NOT_FOUND : -error,
                      "cannot open lock file %s: %s", path, strerror(error));
        return -error;
}

/* command: F_SETLK or F_OFD_SETLK. 0, HF_E_BUSY, -errno. */
static int try_lock(int fd, int command) {
        struct flock lock = {.l_type = F_WRLCK, .l_whence = SEEK_SET};
        while (fcntl(fd, command, &lock) != 0) {
                if (errno == EAGAIN || errno == EACCES)
                        return HF_E_BUSY;
                if (errno != EINTR)
                        return -errno;
        }
        return 0;
}

/* Ends an attempt to lock, whose result is r. On success *ret_fd gets the descriptor. Otherwise
 * closes the descriptor and sets the message. */
static int finish_lock(int r, int fd, const char *path, int *ret_fd,
                       struct hf_status *reterr_status) {
        if (r == 0) {
                *ret_fd = fd;
                return 0;
        }
        (void)close(fd);
        if (r == HF_E_BUSY)
                return hf_fail(reterr_status, r, "lock file %s is held by another process", path);
        if (r == HF_E_CANCELED)
                return hf_fail(reterr_status, r, "the wait for lock file %s was canceled", path);
        return hf_fail(reterr_status, r, "cannot lock %s: %s", path, strerror(-r));
}

int hfd_lock_file(const char *path, bool create, int *ret_fd, struct hf_status *reterr_status) {
        int fd = open_lock_file(path, create, reterr_status);
        if (fd < 0)
                return fd == -ENOENT && !create ? HF_E_NOT_FOUND : fd;
        return finish_lock(try_lock(fd, F_OFD_SETLK), fd, path, ret_fd, reterr_status);
}

/* Waits until one of the descriptors events and wake is readable, or until deadline (boot time). 0
 * or -errno. */
static int wait_for_event(int events, int wake, hf_nsec deadline) {
        char buffer[4096];
        for (;;) {
                hf_nsec left = deadline - hf_now(hf_clock_system());
                struct pollfd fds[2] = {{.fd = events, .events = POLLIN},
                                        {.fd = wake, .events = POLLIN}};
                struct timespec timeout = {.tv_sec = left / HF_NSEC_PER_SEC,
                                           .tv_nsec = left % HF_NSEC_PER_SEC};
                if (left <= 0)
                        return 0;
                int n = ppoll(fds, 2, &timeout, NULL);
                if (n < 0 && errno != EINTR)
                        return -errno;
                if (n <= 0)
                        continue;
                while (read(events, buffer, sizeof buffer) > 0)
                        ; /* the caller tries to lock again after any event */
                return 0;
        }
}

/* The waker of the token. Thread: the one that fires the token, or the waiting one if it has fired
 * already. Does not block. */
static void wake_waiter(void *ctx) {
        const int *wake = ctx;
        uint64_t one = 1;
        ssize_t written = write(*wake, &one, sizeof one);
        /* A waker is called once, so the counter does not overflow. Without a descriptor (-1) the
         * write fails, but then nobody waits. */
        (void)written;
}

/*
 * Waits for the lock without polling. Every holder has the file open for writing. When the holder
 * closes the file or dies, processes that watch the file get an inotify event. A waiter tries to
 * lock once more after it has added its watch, because it would miss an earlier release.
 *
 * The lock must be a POSIX record lock (F_SETLK), because the kernel removes such a lock before it
 * reports the close. The kernel removes an OFD lock after it has reported the close, so a waiter
 * could still find the lock held after the only event that it gets.
 */
static int wait_for_lock(int fd, const char *path, struct hf_cancel *token, hf_nsec deadline) {
        struct hf_cancel_waker waker = {0};
        int events = inotify_init1(IN_CLOEXEC | IN_NONBLOCK);
        int wake = eventfd(0, EFD_CLOEXEC | EFD_NONBLOCK), r = 0;

        if (events < 0 || wake < 0 || inotify_add_watch(events, path, IN_CLOSE_WRITE) < 0)
                r = -errno;
        /* When the token's deadline passes, the waker is not called. */
        if (hf_cancel_deadline(token) < deadline)
                deadline = hf_cancel_deadline(token);
        hf_cancel_add_waker(token, &waker, wake_waiter, &wake);
        while (r == 0) {
                /* `last` and `canceled` are read before the attempt. So there is one more attempt
                 * after the deadline, and a free lock is acquired even if the token has fired. */
                bool last = hf_now(hf_clock_system()) >= deadline;
                bool canceled = hf_cancel_fired(token);
                r = try_lock(fd, F_SETLK);
                if (r == HF_E_BUSY && canceled)
                        r = HF_E_CANCELED;
                if (r != HF_E_BUSY || last)
                        break;
                r = wait_for_event(events, wake, deadline);
        }
        hf_cancel_remove_waker(&waker);
        if (events >= 0)
                (void)close(events);
        if (wake >= 0)
                (void)close(wake);
        return r;
}

int hfd_await_lock(const char *path, hf_nsec timeout, struct hf_cancel *token, int *ret_fd,
                   struct hf_status *reterr_status) {
        hf_nsec deadline = hf_now(hf_clock_system()) + timeout;
        int fd = open_lock_file(path, true, reterr_status);
        if (fd < 0)
                return fd;
        int r = try_lock(fd, F_SETLK);
        if (r == HF_E_BUSY)
                r = wait_for_lock(fd, path, token, deadline);
        return finish_lock(r, fd, path, ret_fd, reterr_status);
}

void hfd_secret_free(char *text) {
        if (text)
                explicit_bzero(text, strlen(text));
        free(text);
}

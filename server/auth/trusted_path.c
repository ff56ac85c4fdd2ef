/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Walks a path from the root directory, one component at a time, and checks each one.
 *
 * Invariant: a component is opened relative to the descriptor of its directory, which was checked
 * before. Only root and the user of this process can replace an entry of a checked directory, so
 * the entry that is used is the one that was checked. The walk follows symbolic links itself: if
 * the kernel did that, the directories behind a link would not be checked.
 *
 * For the same reason a caller may open another file by its path, in a directory that was checked
 * here.
 */
#include "server/auth/trusted_path.h"

#include <assert.h>
#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <stdbool.h>
#include <stdio.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#define MAX_LINKS 40 /* as in the kernel */

struct walk {
        const char *path; /* borrowed; as the user wrote it, for messages */
        enum hfd_trusted_kind kind;
        struct hf_status *reterr_status;
        int fd;              /* owned; the last component that was opened; -1 = none */
        char at[PATH_MAX];   /* its path, without links */
        char rest[PATH_MAX]; /* the components that remain */
        unsigned n_links;    /* links that were followed */
        bool ended;          /* the next component is missing, and can be made */
};

static int fail_walk(const struct walk *w, int error) {
        const char *verb = w->kind == HFD_TRUSTED_FILE ? "read" : "use directory";

        if (w->kind == HFD_TRUSTED_NEW_DIRECTORY || w->kind == HFD_TRUSTED_FUTURE_DIRECTORY)
                verb = "make directory";
        bool not_found = error == ENOENT && w->kind == HFD_TRUSTED_FILE;
        return hf_fail(w->reterr_status, not_found ? HF_E_NOT_FOUND : -error,
                       "cannot %s %.400s: %s", verb, w->path, strerror(error));
}

/* The message has room for the path twice, if it is not very long. */
static int fail_owner(const struct walk *w, const char *at, const struct stat *st) {
        return hf_fail(w->reterr_status, HF_E_INVALID,
                       "%.180s belongs to user %lu, but must belong to root or to user %lu, who "
                       "runs this process: chown %s%lu %.180s",
                       at, (unsigned long)st->st_uid, (unsigned long)geteuid(),
                       S_ISLNK(st->st_mode) ? "-h " : "", (unsigned long)geteuid(), at);
}

static int fail_writable(const struct walk *w, const char *at, const struct stat *st) {
        return hf_fail(w->reterr_status, HF_E_INVALID,
                       "%.180s can be written by other users (mode %04o): chmod go-w %.180s", at,
                       (unsigned)(st->st_mode & 07777), at);
}

/* may_be_sticky: others may write if the sticky bit keeps them from replacing the entries. */
static int check_entry(const struct walk *w, const char *at, const struct stat *st,
                       bool may_be_sticky) {
        bool writable = (st->st_mode & (S_IWGRP | S_IWOTH)) != 0;

        if (st->st_uid != 0 && st->st_uid != geteuid())
                return fail_owner(w, at, st);
        /* The mode of a symbolic link has no meaning: the directory decides who can replace it. */
        if (writable && !S_ISLNK(st->st_mode) && !(may_be_sticky && (st->st_mode & S_ISVTX)))
                return fail_writable(w, at, st);
        return 0;
}

/* Replaces the current descriptor, and sets its path. */
static void set_current(struct walk *w, int fd, const char *at) {
        if (w->fd >= 0)
                (void)close(w->fd);
        w->fd = fd;
        (void)snprintf(w->at, sizeof w->at, "%s", at);
}

static int enter_root(struct walk *w) {
        struct stat st;
        int fd = open("/", O_PATH | O_DIRECTORY | O_CLOEXEC);

        if (fd < 0)
                return fail_walk(w, errno);
        set_current(w, fd, "/");
        return fstat(fd, &st) == 0 ? check_entry(w, "/", &st, true) : fail_walk(w, errno);
}

/* Removes the next component from the rest. False: none remains, or *ret_error is set. */
static bool next_component(struct walk *w, char name[NAME_MAX + 1], int *ret_error) {
        size_t begin = strspn(w->rest, "/");
        size_t n = strcspn(w->rest + begin, "/");

        *ret_error = n > NAME_MAX ? ENAMETOOLONG : 0;
        if (n == 0 || n > NAME_MAX)
                return false;
        memcpy(name, w->rest + begin, n);
        name[n] = '\0';
        memmove(w->rest, w->rest + begin + n, strlen(w->rest + begin + n) + 1);
        return true;
}

static bool is_last(const struct walk *w) { return w->rest[strspn(w->rest, "/")] == '\0'; }

/* Sets path to the path of the entry `name` of the current directory. */
static int join_path(const struct walk *w, const char *name, char path[PATH_MAX]) {
        const char *slash = strcmp(w->at, "/") == 0 ? "" : "/";
        int n = snprintf(path, PATH_MAX, "%s%s%s", w->at, slash, name);

        return n < 0 || n >= PATH_MAX ? fail_walk(w, ENAMETOOLONG) : 0;
}

/* The parent needs no check: w->at has no links, so the walk has checked the parent before. */
static int enter_parent(struct walk *w) {
        char parent[PATH_MAX];
        char *slash;
        int fd = openat(w->fd, "..", O_PATH | O_DIRECTORY | O_CLOEXEC);

        if (fd < 0)
                return fail_walk(w, errno);
        memcpy(parent, w->at, sizeof parent);
        slash = strrchr(parent, '/');
        slash[slash == parent ? 1 : 0] = '\0';
        set_current(w, fd, parent);
        return 0;
}

/* Continues with the target of the link that fd refers to. */
static int follow_link(struct walk *w, int fd) {
        char target[PATH_MAX], rest[PATH_MAX];
        ssize_t n = readlinkat(fd, "", target, sizeof target);

        if (n < 0)
                return fail_walk(w, errno);
        if (n == (ssize_t)sizeof target)
                return fail_walk(w, ENAMETOOLONG);
        target[n] = '\0';
        int n_rest = snprintf(rest, sizeof rest, "%s/%s", target, w->rest);
        if (n_rest < 0 || (size_t)n_rest >= sizeof rest)
                return fail_walk(w, ENAMETOOLONG);
        if (++w->n_links > MAX_LINKS)
                return fail_walk(w, ELOOP);
        memcpy(w->rest, rest, (size_t)n_rest + 1);
        return target[0] == '/' ? enter_root(w) : 0;
}

/* Opens the file that the path names. Between the check of the entry and this open only a trusted
 * user can replace the entry, and the opened file is checked again. */
static int enter_file(struct walk *w, const char *name, const char *at) {
        struct stat st;
        int fd = openat(w->fd, name, O_RDONLY | O_NOFOLLOW | O_NONBLOCK | O_NOCTTY | O_CLOEXEC);

        if (fd < 0)
                return fail_walk(w, errno);
        set_current(w, fd, at);
        return fstat(fd, &st) == 0 ? check_entry(w, at, &st, false) : fail_walk(w, errno);
}

/* Opens the entry `name` without following a link. Makes a missing directory if kind says so.
 * Returns the descriptor, or -1 with errno. */
static int open_entry(const struct walk *w, const char *name) {
        const int flags = O_PATH | O_NOFOLLOW | O_CLOEXEC;
        int fd = openat(w->fd, name, flags);

        if (fd >= 0 || errno != ENOENT || w->kind != HFD_TRUSTED_NEW_DIRECTORY)
                return fd;
        /* Another instance may make the same directory at this moment. */
        if (mkdirat(w->fd, name, 0700) != 0 && errno != EEXIST)
                return -1;
        return openat(w->fd, name, flags);
}

static int enter_entry(struct walk *w, const char *name) {
        char at[PATH_MAX];
        struct stat st;

        if (strcmp(name, ".") == 0)
                return 0;
        if (strcmp(name, "..") == 0)
                return enter_parent(w);
        int r = join_path(w, name, at);
        if (r != 0)
                return r;
        int fd = open_entry(w, name);
        if (fd < 0 && errno == ENOENT && w->kind == HFD_TRUSTED_FUTURE_DIRECTORY) {
                w->ended = faccessat(w->fd, ".", W_OK | X_OK, AT_EACCESS) == 0;
                return w->ended ? 0 : fail_walk(w, errno);
        }
        if (fd < 0)
                return fail_walk(w, errno);
        r = fstat(fd, &st) == 0 ? check_entry(w, at, &st, true) : fail_walk(w, errno);
        if (r == 0 && S_ISLNK(st.st_mode)) {
                r = follow_link(w, fd);
        } else if (r == 0 && w->kind == HFD_TRUSTED_FILE && is_last(w)) {
                r = enter_file(w, name, at);
        } else if (r == 0) {
                set_current(w, fd, at);
                return 0;
        }
        (void)close(fd);
        return r;
}

/* Begins at the root directory. A relative path is appended to that of the working directory, so
 * the parents of the working directory are checked too. */
static int begin_walk(struct walk *w) {
        char directory[PATH_MAX] = "";

        if (w->path[0] == '\0')
                return fail_walk(w, ENOENT);
        if (w->path[0] != '/' && !getcwd(directory, sizeof directory))
                return fail_walk(w, errno);
        int n = snprintf(w->rest, sizeof w->rest, "%s/%s", directory, w->path);
        if (n < 0 || (size_t)n >= sizeof w->rest)
                return fail_walk(w, ENAMETOOLONG);
        return enter_root(w);
}

/* Checks the directory that the path names. In this directory the sticky bit is not enough, unless
 * kind is HFD_TRUSTED_PARENT, because the bit does not keep others from adding files. */
static int check_end(const struct walk *w) {
        struct stat st;

        if (w->kind == HFD_TRUSTED_FILE || w->ended)
                return 0;
        if (fstat(w->fd, &st) != 0)
                return fail_walk(w, errno);
        return S_ISDIR(st.st_mode) ? check_entry(w, w->at, &st, w->kind == HFD_TRUSTED_PARENT)
                                   : fail_walk(w, ENOTDIR);
}

int hfd_trusted_open(const char *path, enum hfd_trusted_kind kind, int *ret_fd,
                     struct hf_status *reterr_status) {
        struct walk w = {.path = path, .kind = kind, .reterr_status = reterr_status, .fd = -1};
        char name[NAME_MAX + 1];
        int error = 0;

        assert(path && ret_fd);
        int r = begin_walk(&w);
        while (r == 0 && !w.ended && next_component(&w, name, &error))
                r = enter_entry(&w, name);
        if (r == 0 && error != 0)
                r = fail_walk(&w, error);
        if (r == 0)
                r = check_end(&w);
        if (r == 0)
                *ret_fd = w.fd;
        else if (w.fd >= 0)
                (void)close(w.fd);
        return r;
}

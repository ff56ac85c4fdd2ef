/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The run file (runfile.h). Its content is one line of JSON and a newline:
 *
 *      {"format":1,"pid":N}                               the process leads nothing
 *      {"format":1,"pid":N,"lease":{"namespace":"...","name":"...","identity":"...","term":"N"}}
 *      and during a migration also ,"also":{"namespace":"...","name":"..."}
 *
 * Invariant: whenever the process dies, the file is empty, or it contains one line or the beginning
 * of one, but never a mixture of two lines. A write therefore truncates the file first. A content
 * that does not end in a newline counts as incomplete, and nothing is released then.
 */
#include "server/process/runfile.h"

#include <assert.h>
#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "base/json.h"
#include "base/strbuf.h"
#include "server/auth/files.h"

#define FORMAT    1
#define MAX_BYTES 4096 /* more than the longest names need */

struct hfd_runfile {
        int fd; /* owned; holds the lock */
};

/* Sets path to the run file's path. Refuses names that are empty, longer than 200 bytes (a file's
 * name may have 255), begin with a dot or contain a slash. */
static int make_path(const char *runtime_dir, const char *instance, char path[PATH_MAX],
                     struct hf_status *reterr_status) {
        size_t n = strlen(instance);
        if (n == 0 || n > 200 || instance[0] == '.' || strchr(instance, '/'))
                return hf_fail(reterr_status, HF_E_INVALID,
                               "flag --instance: \"%.200s\" cannot be a file name", instance);
        int n_path = snprintf(path, PATH_MAX, "%s/%s.lock", runtime_dir, instance);
        if (n_path < 0 || n_path >= PATH_MAX)
                return hf_fail(reterr_status, -ENAMETOOLONG, "the path %.200s is too long",
                               runtime_dir);
        return 0;
}

/* Reads the whole content into text, which has MAX_BYTES bytes. 0, HF_E_INVALID (the content is
 * larger than a run file can be) or -errno. */
static int read_content(int fd, char *text, size_t *ret_n) {
        size_t n = 0;
        while (n < MAX_BYTES) {
                ssize_t got = pread(fd, text + n, MAX_BYTES - n, (off_t)n);
                if (got < 0 && errno == EINTR)
                        continue;
                if (got < 0)
                        return -errno;
                if (got == 0) {
                        *ret_n = n;
                        return 0;
                }
                n += (size_t)got;
        }
        return HF_E_INVALID;
}

/* NULL: the content is empty, incomplete or not that of a run file; or it could not be read, or
 * memory ran out. */
static struct hf__json *parse_content(int fd) {
        char text[MAX_BYTES];
        struct hf__json *json = NULL;
        int64_t format = 0;
        size_t n = 0;
        if (read_content(fd, text, &n) != 0 || n == 0 || text[n - 1] != '\n' ||
            hf__json_parse(text, n, &json, NULL) != 0)
                return NULL;
        if (!hf__json_i64(json, "format", &format) || format != FORMAT)
                return hf__json_free(json);
        return json;
}

/* The pid that was last written to the file; 0 = none. It is the pid of the holder of the lock,
 * unless the holder is a `holdfastd release` or has not written yet. The kernel does not report the
 * holder of an OFD lock. */
static long long last_pid(const char *path) {
        int64_t pid = 0;
        /* Reading needs no lock: a line that is being written counts as no record. */
        int fd = open(path, O_RDONLY | O_CLOEXEC | O_NOFOLLOW);
        if (fd < 0)
                return 0;
        struct hf__json *json = parse_content(fd);
        (void)hf__json_i64(json, "pid", &pid);
        hf__json_free(json);
        (void)close(fd);
        return (long long)pid;
}

/* Opens and locks the file at path; creates it first if it is missing and create is true. */
static int lock_path(const char *path, bool create, struct hfd_runfile **ret_runfile,
                     struct hf_status *reterr_status) {
        struct hfd_runfile *runfile = malloc(sizeof *runfile);
        if (!runfile)
                return hf_fail(reterr_status, -ENOMEM, "%s: out of memory", path);
        int r = hfd_lock_file(path, create, &runfile->fd, reterr_status);
        if (r != 0) {
                free(runfile);
                if (r != HF_E_BUSY)
                        return r;
                long long pid = last_pid(path);
                if (pid > 0)
                        return hf_fail(reterr_status, r,
                                       "another instance or release is running: %s is locked, and "
                                       "process %lld wrote it last",
                                       path, pid);
                return hf_fail(reterr_status, r,
                               "another instance or release is running: %s is locked", path);
        }
        *ret_runfile = runfile;
        return 0;
}

int hfd_runfile_lock(const char *runtime_dir, const char *instance,
                     struct hfd_runfile **ret_runfile, struct hf_status *reterr_status) {
        struct hfd_runfile *runfile = NULL;
        char path[PATH_MAX];
        int r = make_path(runtime_dir, instance, path, reterr_status);
        if (r == 0)
                r = hfd_make_dir(runtime_dir, reterr_status);
        if (r == 0)
                r = lock_path(path, true, &runfile, reterr_status);
        if (r != 0)
                return r;
        r = hfd_runfile_write(runfile, NULL);
        if (r != 0) {
                hfd_runfile_free(runfile);
                return hf_fail(reterr_status, r, "cannot write %s: %s", path, hf_strerror(r));
        }
        *ret_runfile = runfile;
        return 0;
}

/* Begins the object that describes a Lease. Does not close the object, so that the caller can add
 * members. */
static void add_lease_name(struct hf__strbuf *line, const char *key, const char *ns,
                           const char *name) {
        hf__strbuf_printf(line, ",\"%s\":{\"namespace\":", key);
        hf__strbuf_json(line, ns, strlen(ns));
        hf__strbuf_puts(line, ",\"name\":");
        hf__strbuf_json(line, name, strlen(name));
}

static void add_leases(struct hf__strbuf *line, const struct hf_fence *leadership) {
        add_lease_name(line, "lease", leadership->ns, leadership->name);
        hf__strbuf_puts(line, ",\"identity\":");
        hf__strbuf_json(line, leadership->identity, strlen(leadership->identity));
        /* A string, because a term has 64 bits, and many JSON readers keep only 53 bits of a
         * number. */
        hf__strbuf_printf(line, ",\"term\":\"%llu\"}", (unsigned long long)leadership->term);
        if (leadership->also_name[0]) {
                add_lease_name(line, "also", leadership->also_ns, leadership->also_name);
                hf__strbuf_puts(line, "}");
        }
}

int hfd_runfile_write(struct hfd_runfile *runfile, const struct hf_fence *leadership) {
        assert(runfile->fd >= 0);
        assert(!leadership || (leadership->term != 0 && leadership->name[0]));
        /* read_content takes a content of MAX_BYTES for a larger one. */
        struct hf__strbuf line = {.max = MAX_BYTES - 1};
        hf__strbuf_printf(&line, "{\"format\":%d,\"pid\":%lld", FORMAT, (long long)getpid());
        if (leadership)
                add_leases(&line, leadership);
        hf__strbuf_puts(&line, "}\n");
        /* Truncate the file first: if the process dies between the two calls, no old record
         * remains. */
        int r = line.error;
        if (ftruncate(runfile->fd, 0) != 0 && r == 0)
                r = -errno;
        for (size_t n = 0; r == 0 && n < line.n;) {
                ssize_t written = pwrite(runfile->fd, line.data + n, line.n - n, (off_t)n);
                if (written < 0 && errno != EINTR)
                        r = -errno;
                n += written > 0 ? (size_t)written : 0;
        }
        hf__strbuf_done(&line);
        return r;
}

struct hfd_runfile *hfd_runfile_free(struct hfd_runfile *runfile) {
        if (runfile) {
                assert(runfile->fd >= 0);
                (void)close(runfile->fd);
                free(runfile);
        }
        return NULL;
}

/* Copies a string. False: it is missing, empty or too long. */
static bool copy_text(char *to, size_t max, const char *from) {
        size_t n = from ? strlen(from) : max;
        if (n == 0 || n >= max)
                return false;
        memcpy(to, from, n + 1);
        return true;
}

/* Parses a decimal number of at least 1. */
static bool parse_term(const char *text, uint64_t *ret_term) {
        char *end = NULL;
        if (!text || text[0] < '1' || text[0] > '9')
                return false;
        errno = 0;
        *ret_term = strtoull(text, &end, 10);
        return errno == 0 && *end == '\0';
}

/* HF_E_NOT_FOUND: the process did not lead. HF_E_INVALID: json is NULL, or the record has missing
 * or invalid members. */
static int parse_leadership(const struct hf__json *json, struct hf_fence *ret_leadership) {
        const struct hf__json *lease = hf__json_get(json, "lease"),
                              *also = hf__json_get(json, "also");
        if (!json)
                return HF_E_INVALID;
        if (!lease)
                return HF_E_NOT_FOUND;
        bool ok = copy_text(ret_leadership->ns, sizeof ret_leadership->ns,
                            hf__json_string(lease, "namespace")) &&
                  copy_text(ret_leadership->name, sizeof ret_leadership->name,
                            hf__json_string(lease, "name")) &&
                  copy_text(ret_leadership->identity, sizeof ret_leadership->identity,
                            hf__json_string(lease, "identity")) &&
                  parse_term(hf__json_string(lease, "term"), &ret_leadership->term);
        if (also)
                ok = ok &&
                     copy_text(ret_leadership->also_ns, sizeof ret_leadership->also_ns,
                               hf__json_string(also, "namespace")) &&
                     copy_text(ret_leadership->also_name, sizeof ret_leadership->also_name,
                               hf__json_string(also, "name"));
        return ok ? 0 : HF_E_INVALID;
}

int hfd_runfile_read_if_dead(const char *runtime_dir, const char *instance,
                             struct hf_fence *ret_leadership, struct hfd_runfile **ret_runfile,
                             struct hf_status *reterr_status) {
        struct hfd_runfile *runfile = NULL;
        struct hf_fence leadership = {0};
        char path[PATH_MAX];
        int r = make_path(runtime_dir, instance, path, reterr_status);
        if (r == 0)
                r = lock_path(path, false, &runfile, reterr_status);
        if (r == HF_E_NOT_FOUND)
                return hf_fail(reterr_status, -ENOENT, "there is no run file %s", path);
        if (r != 0)
                return r;
        struct hf__json *json = parse_content(runfile->fd);
        /* The caller's struct is set only if the whole record is valid. */
        r = parse_leadership(json, &leadership);
        hf__json_free(json);
        if (r == 0) {
                *ret_leadership = leadership;
                *ret_runfile = runfile;
                return 0;
        }
        hfd_runfile_free(runfile);
        if (r == HF_E_NOT_FOUND)
                return hf_fail(reterr_status, r, "%s: the last process was not leading", path);
        return hf_fail(reterr_status, r,
                       "%s is incomplete or not a run file of holdfastd: nothing is released. The "
                       "Lease expires by itself",
                       path);
}

/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Reads manifests from directories. Invariant: files are sorted by the bytes of their names, in
 * every locale, because their order is the order of the steps.
 */
#include "bootstrap/manifest_files.h"

#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "bootstrap/manifest.h"

/* Limits, because a wrong path may name a directory with large files or with very many. */
#define MAX_FILE  (1u << 20) /* bytes */
#define MAX_FILES 1000

static bool ends_with(const char *text, const char *end) {
        size_t n = strlen(text), n_end = strlen(end);
        return n > n_end && strcmp(text + n - n_end, end) == 0;
}

/* A filter for scandir. Skips hidden files, which editors and volume mounts create. */
static int is_manifest(const struct dirent *entry) {
        const char *name = entry->d_name;
        return name[0] != '.' &&
               (ends_with(name, ".yaml") || ends_with(name, ".yml") || ends_with(name, ".json"));
}

static int compare_names(const struct dirent **a, const struct dirent **b) {
        return strcmp((*a)->d_name, (*b)->d_name);
}

/* Reads exactly `size` bytes, the size that fstat reported. If the file is shorter by now, another
 * process is writing it, so it is rejected. */
static int read_content(int fd, const char *path, size_t size, char **ret_text,
                        struct hf_status *reterr_status) {
        char *text = malloc(size + 1);
        size_t n = 0;

        if (!text)
                return hf_fail(reterr_status, -ENOMEM, "%s: out of memory", path);
        while (n < size) {
                ssize_t got = read(fd, text + n, size - n);
                if (got < 0 && errno == EINTR)
                        continue;
                if (got <= 0) {
                        int r = got < 0 ? -errno : HF_E_INVALID;
                        free(text);
                        return hf_fail(reterr_status, r, "%s: cannot read it: %s", path,
                                       got < 0 ? hf_strerror(r)
                                               : "the file shrank while it was read");
                }
                n += (size_t)got;
        }
        text[n] = '\0';
        *ret_text = text;
        return 0;
}

/* Reads a regular file and follows symbolic links. Reads nothing from any other kind of file and
 * sets *ret_text to NULL, because a FIFO would block and a device may never end. */
static int read_file(const char *path, char **ret_text, size_t *ret_n,
                     struct hf_status *reterr_status) {
        struct stat st;
        int fd = open(path, O_RDONLY | O_CLOEXEC | O_NONBLOCK);
        int r = 0;

        *ret_text = NULL;
        if (fd < 0 || fstat(fd, &st) < 0) {
                r = -errno;
                (void)hf_fail(reterr_status, r, "%s: cannot read it: %s", path, hf_strerror(r));
        } else if (S_ISREG(st.st_mode) && st.st_size > (off_t)MAX_FILE) {
                r = hf_fail(reterr_status, HF_E_TOO_LARGE, "%s: it has more than %u bytes", path,
                            MAX_FILE);
        } else if (S_ISREG(st.st_mode)) {
                *ret_n = (size_t)st.st_size;
                r = read_content(fd, path, *ret_n, ret_text, reterr_status);
        }
        if (fd >= 0)
                (void)close(fd);
        return r;
}

/* Reads one file and appends its steps. Skips what can be opened but is not a regular file. */
static int add_file(struct hf__steps *steps, const struct hf__manifest_kinds *kinds,
                    const char *directory, const char *name, struct hf_status *reterr_status) {
        char path[PATH_MAX], *text;
        size_t n = 0;

        if (snprintf(path, sizeof path, "%s/%s", directory, name) >= (int)sizeof path)
                return hf_fail(reterr_status, -ENAMETOOLONG, "%.200s: the path is too long",
                               directory);
        int r = read_file(path, &text, &n, reterr_status);
        if (r == 0 && text)
                r = hf__manifest_read_text(steps, kinds, path, text, n, reterr_status);
        free(text);
        return r;
}

int hf__manifest_read_directory(struct hf__steps *steps, const struct hf__manifest_kinds *kinds,
                                const char *path, struct hf_status *reterr_status) {
        struct dirent **entries = NULL;
        int n = scandir(path, &entries, is_manifest, compare_names);
        int r = 0;

        if (n < 0) {
                r = -errno;
                (void)hf_fail(reterr_status, r, "%s: cannot read the directory: %s", path,
                              hf_strerror(r));
        }
        /* The count is known here, so too many files are rejected before any is read. */
        if (n > MAX_FILES)
                r = hf_fail(reterr_status, HF_E_TOO_LARGE,
                            "%s: there are more than %d manifest files", path, MAX_FILES);
        for (int i = 0; i < n; i++) {
                if (r == 0)
                        r = add_file(steps, kinds, path, entries[i]->d_name, reterr_status);
                free(entries[i]);
        }
        free(entries);
        return hf__manifest_fail_in_one_line(r, reterr_status);
}

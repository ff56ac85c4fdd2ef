/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Reads and parses the files of a kubeconfig. kubeconfig.c merges them.
 *
 * Invariant: every copy of a file's text is wiped before its memory is freed, except the names of
 * JSON members, the copies within libyaml, and those that the JSON parser makes when it fails or
 * meets an escape of a lone surrogate.
 */
#include "client/kubeconfig_file.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/json.h"
#include "base/strbuf.h"
#include "client/file_text.h"
#include "client/yaml.h"

/* The limit, in bytes, on the JSON that a file becomes: escapes make it longer than the YAML. */
#define MAX_JSON ((size_t)4 << 20)

static int fail_no_memory(struct hf_status *reterr_status) {
        return hf_fail(reterr_status, -ENOMEM, "out of memory");
}

/* Parses JSON, or else YAML. JSON is tried first, because it needs no libyaml. */
static int parse_text(const char *text, size_t n, const char *source, struct hf__json **ret_root,
                      struct hf_status *reterr_status) {
        struct hf__strbuf json = {.max = MAX_JSON, .secret = true};
        struct hf_status why = {0};
        size_t i = 0;

        while (i < n && strchr(" \t\r\n", text[i])) /* the text has no NUL */
                i++;
        if (i < n && text[i] == '{' && hf__json_parse(text, n, ret_root, NULL) == 0)
                return 0;
        int r = hf__yaml_to_json(text, n, &json, &why);
        if (r == 0)
                r = hf__json_parse(json.data, json.n, ret_root, NULL);
        if (r != 0)
                (void)hf_fail(reterr_status, r, "%s: %s", source,
                              why.message[0] ? why.message : "this is not a kubeconfig");
        hf__strbuf_done(&json);
        return r;
}

void hf__kubeconfig_file_done(struct hf__kubeconfig_file *file) {
        (void)hf__json_wipe_free(file->root);
        free(file->dir);
        free(file->source);
}

/* Limits the size of the text, because the cost of parsing depends on it. Refuses a NUL, because
 * strchr in parse_text would take it for white space. */
int hf__kubeconfig_file_parse(const char *text, size_t n, const char *dir, const char *source,
                              struct hf__kubeconfig_file *file, struct hf_status *reterr_status) {
        *file = (struct hf__kubeconfig_file){.dir = strdup(dir), .source = strdup(source)};
        int r = file->dir && file->source ? 0 : fail_no_memory(reterr_status);
        if (r == 0 && (n > HF__FILE_TEXT_MAX || memchr(text, '\0', n)))
                r = hf_fail(reterr_status, HF_E_INVALID, "%s: the file is too large or not text",
                            source);
        if (r == 0)
                r = parse_text(text, n, source, &file->root, reterr_status);
        if (r == 0 && !hf__json_is_object(file->root))
                r = hf_fail(reterr_status, HF_E_INVALID, "%s: this is not a kubeconfig", source);
        if (r != 0)
                hf__kubeconfig_file_done(file);
        return r;
}

/* Returns the absolute directory of a path, malloc'ed. It must be absolute because a token file is
 * read again later, when the working directory may have changed. NULL: errno is set. */
static char *absolute_dir_of(const char *path) {
        const char *slash = strrchr(path, '/');
        char *dir, *absolute = NULL;

        dir = slash ? strndup(path, (size_t)(slash - path) + 1) : strdup(".");
        if (dir)
                absolute = realpath(dir, NULL);
        free(dir);
        return absolute;
}

int hf__kubeconfig_file_read(const char *path, struct hf__kubeconfig_file *file,
                             struct hf_status *reterr_status) {
        char *text = NULL, *dir = NULL;
        size_t n = 0;

        int r = hf__file_text(path, &text, &n);
        if (r == 0) {
                dir = absolute_dir_of(path);
                if (!dir)
                        r = -errno;
        }
        if (r < 0)
                (void)hf_fail(reterr_status, r, "cannot read the kubeconfig %s: %s", path,
                              hf_strerror(r));
        else
                r = hf__kubeconfig_file_parse(text, n, dir, path, file, reterr_status);
        hf__wipe_free(text);
        free(dir);
        return r;
}

/* Reads the files of a colon-separated list of paths, and skips those that do not exist, as kubectl
 * does. Modifies the list. */
static int read_list(char *list, struct hf__kubeconfig_file *files, size_t *n_files,
                     struct hf_status *reterr_status) {
        struct hf__kubeconfig_file file;
        int r = 0;

        for (char *path = list, *rest; r == 0 && path; path = rest) {
                rest = strchr(path, ':');
                if (rest)
                        *rest++ = '\0';
                if (!path[0])
                        continue;
                r = hf__kubeconfig_file_read(path, &file, reterr_status);
                if (r == 0 && *n_files == HF__KUBECONFIG_FILES_MAX) {
                        hf__kubeconfig_file_done(&file);
                        r = hf_fail(reterr_status, HF_E_INVALID,
                                    "KUBECONFIG names more than %u files that exist",
                                    HF__KUBECONFIG_FILES_MAX);
                } else if (r == 0) {
                        files[(*n_files)++] = file;
                } else if (r == -ENOENT) {
                        r = 0;
                }
        }
        return r;
}

int hf__kubeconfig_files_read(struct hf__kubeconfig_file *files, size_t *n_files,
                              struct hf_status *reterr_status) {
        const char *variable = getenv("KUBECONFIG"), *home = getenv("HOME");
        char *list = NULL;
        int r;

        if (variable && variable[0]) {
                list = strdup(variable);
                r = list ? read_list(list, files, n_files, reterr_status)
                         : fail_no_memory(reterr_status);
                if (r == 0 && *n_files == 0)
                        r = hf_fail(reterr_status, HF_E_NOT_FOUND,
                                    "KUBECONFIG is \"%.200s\", but no file of that name exists",
                                    variable);
        } else if (home && home[0]) {
                r = asprintf(&list, "%s/.kube/config", home) < 0
                            ? fail_no_memory(reterr_status)
                            : hf__kubeconfig_file_read(list, files, reterr_status);
                /* Nobody has named this file, so its absence is not an error of the file: it means
                 * that no kubeconfig is given. */
                if (r == -ENOENT)
                        r = hf_fail(reterr_status, HF_E_NOT_FOUND,
                                    "no kubeconfig is given, and %.400s does not exist", list);
                *n_files = r == 0;
        } else {
                r = hf_fail(reterr_status, HF_E_NOT_FOUND,
                            "no kubeconfig is given, and neither KUBECONFIG nor HOME is set");
        }
        free(list);
        return r;
}

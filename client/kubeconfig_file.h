/* SPDX-License-Identifier: Apache-2.0 */
#pragma once
/*
 * One file of a kubeconfig, parsed but not interpreted. Messages quote the path of the file or the
 * value of $KUBECONFIG, control characters included, but nothing of the content. Thread: any; a
 * file belongs to its caller.
 */
#include <stddef.h>

#include <holdfast/error.h>

struct hf__json;

#define HF__KUBECONFIG_FILES_MAX 32u /* limit on the files of $KUBECONFIG that exist */

struct hf__kubeconfig_file {
        char *dir;             /* owned; relative paths in the file begin there */
        char *source;          /* owned; its name for messages */
        struct hf__json *root; /* owned; the content */
};

/*
 * Parses n bytes of text, YAML or JSON. Relative paths in it are relative to `dir`, and `source`
 * names it in messages. 0 or an error, as hf__kubeconfig_parse; after an error there is nothing to
 * free.
 */
int hf__kubeconfig_file_parse(const char *text, size_t n, const char *dir, const char *source,
                              struct hf__kubeconfig_file *file, struct hf_status *reterr_status);
/* Reads and parses the file at path. Returns as hf__kubeconfig_file_parse; -ENOENT: there is no
 * such file; another -errno: it cannot be read. Blocks on the file system. */
int hf__kubeconfig_file_read(const char *path, struct hf__kubeconfig_file *file,
                             struct hf_status *reterr_status);
/*
 * Reads the files that kubectl reads without --kubeconfig: those of $KUBECONFIG, or ~/.kube/config
 * if that is not set. files has HF__KUBECONFIG_FILES_MAX places; *n_files is 0 before the call.
 * The caller frees *n_files of them, even after an error. HF_E_NOT_FOUND: there is no such file or
 * setting. Blocks on the file system.
 */
int hf__kubeconfig_files_read(struct hf__kubeconfig_file *files, size_t *n_files,
                              struct hf_status *reterr_status);
/* Frees the file, and wipes its content. */
void hf__kubeconfig_file_done(struct hf__kubeconfig_file *file);

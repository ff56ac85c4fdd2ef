/* SPDX-License-Identifier: Apache-2.0 */
#pragma once
/*
 * Small text files of credentials: kubeconfigs, certificates, tokens. Blocks on the file system;
 * never on a FIFO or a device.
 */
#include <stddef.h>

#define HF__FILE_TEXT_MAX ((size_t)1 << 20)

/* The whole file, malloc'ed, NUL-terminated. -errno; -EFBIG beyond the limit, -EINVAL for what is
 * no regular file or has a NUL. */
int hf__file_text(const char *path, char **ret_text, size_t *ret_n);
/* Frees a text (or NULL) after wiping it. */
void hf__wipe_free(char *text);
/* Takes white space off the end: files end in a newline, names and tokens do not. */
void hf__trim_end(char *text);

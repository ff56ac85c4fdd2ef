/* SPDX-License-Identifier: Apache-2.0 */
#pragma once
/*
 * Reads small text files that may contain secrets: kubeconfigs, certificates, tokens. Thread: any.
 */
#include <stddef.h>

#define HF__FILE_TEXT_MAX ((size_t)1 << 20)

/* Reads the whole file. *ret_text is malloc'ed and NUL-terminated; the caller frees it, with
 * hf__wipe_free if it may contain a secret. *ret_n is its length without the NUL. Returns 0 or
 * -errno; -EFBIG: the file is larger than HF__FILE_TEXT_MAX; -EINVAL: it is not a regular file, or
 * it contains a NUL. Blocks on the file system, but never on a FIFO or a device. */
int hf__file_text(const char *path, char **ret_text, size_t *ret_n);
/* Wipes a NUL-terminated text and frees it. Accepts NULL. */
void hf__wipe_free(char *text);
/* Removes white space at the end, because a file usually ends with a newline that is not part of
 * the name or token in it. */
void hf__trim_end(char *text);

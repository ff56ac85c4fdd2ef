/* SPDX-License-Identifier: Apache-2.0 */
#pragma once
/*
 * Decodes base64 (RFC 4648, section 4, with padding), the form of certificates in kubeconfig files.
 * Pure.
 */
#include <stddef.h>

/*
 * Decodes n bytes of text; white space is skipped. The caller frees *ret_data, which has a NUL
 * after its *ret_n bytes. 0, -ENOMEM or HF_E_INVALID.
 */
int hf__base64_decode(const char *text, size_t n, char **ret_data, size_t *ret_n);

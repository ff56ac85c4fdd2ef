/* SPDX-License-Identifier: Apache-2.0 */
#pragma once
/*
 * Base64 of RFC 4648 section 4, with padding, as kubeconfig files carry certificates. Pure.
 */
#include <stddef.h>

/*
 * Decodes n bytes of text into malloc'ed memory with a NUL that does not count; white space between
 * is skipped. 0, -ENOMEM, HF_E_INVALID.
 */
int hf__base64_decode(const char *text, size_t n, char **ret_data, size_t *ret_n);

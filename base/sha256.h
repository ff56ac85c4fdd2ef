/* SPDX-License-Identifier: Apache-2.0 */
#pragma once
/* SHA-256 (FIPS 180-4), in one go: names contents by what they are. Nothing secret is hashed with
 * it. Pure. */
#include <stddef.h>
#include <stdint.h>

void hf__sha256(const void *data, size_t n, uint8_t ret_digest[32]);
/* The first n_digits / 2 bytes of the digest in hexadecimal, with a NUL: text has n_digits + 1
 * bytes; n_digits is even, at most 64. */
void hf__sha256_text(const void *data, size_t n, size_t n_digits, char *text);

/* SPDX-License-Identifier: Apache-2.0 */
#pragma once
/*
 * SHA-256 (FIPS 180-4) of n bytes. It identifies contents and is not meant to hide them: the hash
 * of a Secret's manifest lets a reader test guesses. Pure. Thread: any.
 */
#include <stddef.h>
#include <stdint.h>

void hf__sha256(const void *data, size_t n, uint8_t ret_digest[32]);
/* Writes the first n_digits hexadecimal digits of the digest and a NUL to text, which has n_digits
 * + 1 bytes. n_digits is even, 2 to 64. */
void hf__sha256_text(const void *data, size_t n, size_t n_digits, char *text);

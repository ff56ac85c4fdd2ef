/* SPDX-License-Identifier: Apache-2.0 */
#pragma once
/* Characters that differ only in case. Pure. Thread: any. */
#include <stdbool.h>
#include <stdint.h>

/* Finds the first character in the range from *from to `last` that has another case. Stores it in
 * *from, and in *ret_other a character that differs from it only in case. If there are several such
 * characters, calls with *from and `last` set to *ret_other visit all of them and return to the
 * first one (case.c). Takes logarithmic time. False: no character of the range has another case. */
bool hf__cel_next_fold(uint32_t *from, uint32_t last, uint32_t *ret_other);

/* SPDX-License-Identifier: Apache-2.0 */
#pragma once
/* Characters that differ only in case. Pure. Thread: any. */
#include <stdbool.h>
#include <stdint.h>

/* Finds the first character from *from to last that has another case. Stores it in *from, and the
 * next character of its circle (case.c) in *ret_other. false: there is none. */
bool hf__cel_next_fold(uint32_t *from, uint32_t last, uint32_t *ret_other);

/* SPDX-License-Identifier: Apache-2.0 */
#pragma once
/* Numbers that a double may not hold exactly. For base/json*.c and a test. Thread: as json.h. */
#include <stddef.h>
#include <stdint.h>

struct hf__json;

/*
 * Completes a tree that was parsed from the text: numbers of 2^53 or more (or -2^53 or less) that
 * are written without fraction and exponent get their digits back if they fit into an int64_t. 0,
 * -ENOMEM, or HF_E_TOO_LARGE with the offset of a number that is beyond the range of a double.
 */
int hf__json_number_complete(struct hf__json *root, const char *data, size_t n, size_t *ret_offset);

/* Checks the numbers of a text that cJSON has parsed. 0, or an error with the offset of a number:
 * HF_E_INVALID if RFC 8259 does not allow it, although cJSON reads it (01, 1., -.5);
 * HF_E_TOO_LARGE if it has more than 63 bytes. */
int hf__json_number_check(const char *data, size_t n, size_t *ret_offset);

/* For a text of which cJSON has read only the first `at` bytes, because of an error or because the
 * value ended there. If `at` is within a number of more than 63 bytes, returns the offset of the
 * number, otherwise n. */
size_t hf__json_number_too_long(const char *data, size_t n, size_t at);

/* A new number, exact. NULL: out of memory. */
struct hf__json *hf__json_number_new(int64_t value);

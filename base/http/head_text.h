/* SPDX-License-Identifier: Apache-2.0 */
#pragma once
/* Checks text from a configuration that becomes part of a request's head. Pure. Thread: any. */
#include <stdbool.h>
#include <stddef.h>

/* Whether the text is safe in the value of a header: not empty, at most `max` bytes, no control
 * characters. A line break would let the text add headers to every request. A space is allowed, so
 * this check is not enough for text that becomes part of a URL. */
bool hf__http_is_head_text(const char *text, size_t max);

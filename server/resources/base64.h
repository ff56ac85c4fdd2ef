/* SPDX-License-Identifier: Apache-2.0 */
#pragma once
/* Standard base64 with padding, as JSON carries bytes. Pure. */
#include <stdbool.h>
#include <stddef.h>

struct hf__strbuf;

void hfd_base64_put(struct hf__strbuf *out, const void *data, size_t n);
/* Whether text can be decoded, as Go's decoder has it: line breaks are passed over. Sets the
 * decoded length, or where it is bad. */
bool hfd_base64_check(const char *text, size_t *ret_n);

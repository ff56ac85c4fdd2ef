/* SPDX-License-Identifier: Apache-2.0 */
#pragma once
/* The text of a value by which it is compared with many others: JSON with sorted keys, so that two
 * values have the same text exactly if they are equal (hf__json_equal). Pure. Thread: any. */

struct hf__json;
struct hf__strbuf;

/* Appends the text of value. Takes n log n time; if out has a limit (out->max), n is what it has
 * room for. 0, -ENOMEM, or HF_E_TOO_LARGE: the text is longer than out->max. After an error, out
 * has a part of the text. */
int hfd_canonical_text(const struct hf__json *value, struct hf__strbuf *out);

/* SPDX-License-Identifier: Apache-2.0 */
#pragma once
/* The cells of Tables of custom resources (additionalPrinterColumns). Pure. Thread: any. */
#include <stdint.h>

struct hf__json;
struct hf__strbuf;
struct hfd_column;

/* Appends the cell as JSON: null if the object has no value of the column's type there. now_s: for
 * times, which are shown as ages. */
void hfd_custom_put_cell(struct hf__strbuf *s, const struct hfd_column *column,
                         const struct hf__json *object, int64_t now_s);

/* SPDX-License-Identifier: Apache-2.0 */
#pragma once
/* The cells of Tables of custom resources (additionalPrinterColumns). Pure. Thread: any. */
#include <stdint.h>

struct hf__json;
struct hf__strbuf;
struct hfd_column;

/* Appends the cell as JSON: null if the object has no value at the column's path, or one that does
 * not fit the column's type; a column of type string shows values of all types. now_s: seconds
 * since 1970, from which the age of a date is computed. */
void hfd_custom_put_cell(struct hf__strbuf *s, const struct hfd_column *column,
                         const struct hf__json *object, int64_t now_s);

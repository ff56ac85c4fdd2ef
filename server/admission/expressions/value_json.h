/* SPDX-License-Identifier: Apache-2.0 */
#pragma once
/* Converts values of expressions to JSON. Pure. Thread: any. */

#include "cel/values/value.h"

struct hf__json;
struct hf__strbuf;

/* The largest number of values in one conversion. Parts of a value may be shared, so a small value
 * can stand for a huge tree. */
#define HFD_VALUE_PARTS_MAX 200000

/* The caller owns the result. 0; -ENOMEM; or HF_E_INVALID: the value cannot be written as JSON, or
 * is too large; reterr_message says why. */
int hfd_value_to_json(struct hf__cel_value value, struct hf__json **ret_json,
                      struct hf__strbuf *reterr_message);
/* Checks that the type of each object within the value is named after its place: the field spec of
 * an Object must be an Object.spec. 0; -ENOMEM; HF_E_INVALID, with the message of Kubernetes. */
int hfd_value_check_types(struct hf__cel_value value, struct hf__strbuf *reterr_message);

/* SPDX-License-Identifier: Apache-2.0 */
#pragma once
/*
 * Converts an object to the version that a rule has matched (matchPolicy Equivalent), and back.
 * Pure. Thread: owner of the object.
 */
#include <stdbool.h>

struct hf__json;
struct hfd_resource;

/* Whether only the webhook of the kind can convert between the rows, see forms.h. */
bool hfd_form_is_elsewhere(const struct hfd_resource *from, const struct hfd_resource *to);
/*
 * Converts the object from the row `from` to the row `to` (a row is one version of a kind). The
 * result is a new object, which the caller owns, even if the rows are the same. 0, -ENOMEM, or
 * HF_E_INVALID: only a webhook converts between the rows.
 */
int hfd_form_convert(const struct hfd_resource *from, const struct hfd_resource *to,
                     const struct hf__json *object, struct hf__json **ret_object);

/* SPDX-License-Identifier: Apache-2.0 */
#pragma once
/* The fields that no manager owns, because the server alone decides on them, or because they
 * identify the object. Thread: owner only. */
#include <stdbool.h>
#include <stddef.h>

#include "server/apply/sets/fields.h"

/* All unowned fields, in memory of scratch. When memory is exhausted, scratch->failed is set. */
const struct hfd_fields *hfd_unowned_fields(struct hf__arena *scratch);
/* Whether some of the fields may be unowned. False for most updates of a status, for example,
 * which change no metadata. */
bool hfd_unowned_may_have(const struct hfd_fields *fields);
/* Whether the field to which the n keys lead is unowned. */
bool hfd_unowned_has(const char *const *keys, size_t n);

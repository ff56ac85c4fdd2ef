/* SPDX-License-Identifier: Apache-2.0 */
#pragma once
/* Sets of fields that were written under another schema. Thread: owner only. */
#include "server/apply/sets/fields.h"

struct hfd_schema;

/*
 * Returns a manager's set as it is under schema: if a value was divided into fields and is atomic
 * now, a manager that owned a part of the value owns the value. The reverse needs no change: the
 * owner of an atomic value keeps its path. Returns fields itself if nothing changes. When memory is
 * exhausted, scratch->failed is set.
 */
const struct hfd_fields *hfd_reconcile(struct hf__arena *scratch, const struct hfd_schema *schema,
                                       const struct hfd_fields *fields);
/* Whether the schema makes a list, a map or a struct atomic, so that it is not divided. False for
 * scalars. */
bool hfd_reconcile_is_whole(const struct hfd_schema *schema);

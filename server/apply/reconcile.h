/* SPDX-License-Identifier: Apache-2.0 */
#pragma once
/* Sets of fields that were written under another schema. Thread: the owner of the arguments. */
#include "server/apply/sets/fields.h"

struct hfd_schema;

/*
 * A manager's set after its schema has changed: where a value was divided into fields and is one
 * value now, whoever owned a part of it owns the value. The reverse needs nothing: the owner of the
 * value keeps its path.
 */
const struct hfd_fields *hfd_reconcile(struct hf__arena *scratch, const struct hfd_schema *schema,
                                       const struct hfd_fields *fields);

/* SPDX-License-Identifier: Apache-2.0 */
#pragma once
/* The fields of a value, as a set. Thread: owner only. */
#include "server/apply/sets/fields.h"

struct hf__json;
struct hf__strbuf;
struct hfd_schema;

/*
 * The set of fields that a manager owns after it has applied value: leaves, the elements of lists,
 * the keys of maps, and objects without members. Any other field that the schema declares, such as
 * `spec`, is not in the set itself: it belongs to every manager that owns a part of it. The set
 * borrows texts from value and schema.
 *
 * 0; -ENOMEM; HF_E_INVALID: a list has two elements with the same step (sets/step.h), or an element
 * without one. Then reason, which must not be NULL, gets the path and Kubernetes' message.
 */
int hfd_owned_by_applier(struct hf__arena *scratch, const struct hfd_schema *schema,
                         const struct hf__json *value, const struct hfd_fields **ret_fields,
                         struct hf__strbuf *reason);
/*
 * The set of every field of value: objects and lists themselves, and all that is in them. This is
 * what an object gains or loses if value is added or removed as a whole. depth: as in shape.h.
 * Elements of a list that share a step are one field. When memory is exhausted, scratch->failed is
 * set.
 */
const struct hfd_fields *hfd_owned_everything(struct hf__arena *scratch,
                                              const struct hfd_schema *schema,
                                              const struct hf__json *value, unsigned depth);

/* SPDX-License-Identifier: Apache-2.0 */
#pragma once
/* The fields of a value, as a set. Thread: the owner of the arguments. */
#include "server/apply/sets/fields.h"

struct hf__json;
struct hf__strbuf;
struct hfd_schema;

/*
 * The set that a manager owns who applies value: leaves, the elements of lists, the keys of maps,
 * and objects without members. Not those objects that are fields with a name and have members:
 * owning a part does not own the whole. The set borrows texts from value and schema.
 *
 * 0; -ENOMEM; HF_E_INVALID: a list has two elements with the same keys, or one without keys. Then
 * reason gets the path and Kubernetes' words.
 */
int hfd_owned_by_applier(struct hf__arena *scratch, const struct hfd_schema *schema,
                         const struct hf__json *value, const struct hfd_fields **ret_fields,
                         struct hf__strbuf *reason);
/*
 * The set of every field of value, with objects and their parts alike: what is added where there
 * was nothing, or removed where nothing remains. depth: as in shape.h. Elements of a list that
 * share a step are one field.
 */
const struct hfd_fields *hfd_owned_everything(struct hf__arena *scratch,
                                              const struct hfd_schema *schema,
                                              const struct hf__json *value, unsigned depth);

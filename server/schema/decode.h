/* SPDX-License-Identifier: Apache-2.0 */
#pragma once
/*
 * Brings an object that a client has sent into the form of its schema, as Kubernetes' decoder into
 * Go's structs does:
 *
 *  - Fields that the schema does not have are removed, and reported.
 *  - Fields that are null are removed: null is the absent value.
 *  - Each value must have the type of its field.
 *  - Times are written in the one format in which this server writes them.
 *
 * Typed clients fail to decode a whole list if one object in it has a wrong type, so every object
 * is checked before it is stored. Pure. Thread: owner of the object.
 */
#include <stddef.h>

#include "server/schema/schema.h"
#include "server/schema/strict.h"

/*
 * object is a JSON object in which no key occurs twice; schema is a STRUCT. strict: gets the
 * unknown fields; NULL = they are not reported. 0; -ENOMEM; or HF_E_INVALID with Kubernetes'
 * message for the first wrong value in reason. After a failure object may be changed in part.
 */
int hfd_schema_decode(const struct hfd_schema *schema, struct hf__json *object,
                      struct hfd_strict *strict, char *reason, size_t max_reason);

/* SPDX-License-Identifier: Apache-2.0 */
#pragma once
/*
 * Brings an object that a client has sent into the form of its schema, as Kubernetes' decoder into
 * Go's structs does:
 *
 *  - Fields that the schema does not have are removed, and reported unless they are in an EITHER. A
 *    STRUCT with preserve_unknown keeps them, and nothing is changed below a value of type ANY.
 *  - Fields that are null are removed: null means absent. So are times that are the zero of Go's
 *    type, which Go writes as null. A null in a list, or under a key of a map, becomes the zero
 *    value of its type.
 *  - Fields whose list or map is empty are removed: in Kubernetes' store they look like absent
 *    ones. Exceptions, which stay: fields that are required, fields with HFD_FIELD_KEEPS_EMPTY, and
 *    fields that are not in protobuf. An empty list or map within a list or a map stays too.
 *  - Each value must have the type of its field. Only where the type is an object or a list
 *    (EITHER), a value that is neither is removed.
 *  - Times and quantities get the one form in which this server stores them. Line breaks in base64
 *    are removed.
 *
 * Typed clients fail to decode a whole list if one value in one of its objects has a wrong type. So
 * every object is checked before it is stored. Pure. Thread: owner of the object.
 */
#include <stddef.h>

#include "server/schema/schema.h"
#include "server/schema/strict.h"

/*
 * object is a JSON object in which no key occurs twice (strict.h); schema is a STRUCT. strict: gets
 * the unknown fields; NULL = they are not reported. 0; -ENOMEM; or HF_E_INVALID: reason, of
 * max_reason bytes, is Kubernetes' message for the first wrong value. After a failure object may be
 * changed in part.
 */
int hfd_schema_decode(const struct hfd_schema *schema, struct hf__json *object,
                      struct hfd_strict *strict, char *reason, size_t max_reason);
/* The same for the configuration of an apply, which keeps empty lists and maps: the manager that
 * applies an empty one owns it. */
int hfd_schema_decode_config(const struct hfd_schema *schema, struct hf__json *config,
                             struct hfd_strict *strict, char *reason, size_t max_reason);
/* The same for the result of a strategic merge patch. Kubernetes converts it without JSON, so most
 * messages are different ones. */
int hfd_schema_decode_patched(const struct hfd_schema *schema, struct hf__json *object,
                              struct hfd_strict *strict, char *reason, size_t max_reason);

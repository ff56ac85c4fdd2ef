/* SPDX-License-Identifier: Apache-2.0 */
#pragma once
/* The schema of a custom kind in OpenAPI v2. Pure. Thread: any. */
#include <stdbool.h>

struct hf__json;

/*
 * Removes from the openAPIV3Schema of a version the members that v2 does not have, or that old
 * clients do not understand, by Kubernetes' rules: allOf, anyOf, oneOf and not; `nullable`, and the
 * type, properties and items of a nullable value, which is not required any more; the properties
 * and items of a schema that preserves unknown fields, and its type if that is object; the type of
 * an array without items.
 * *ret_has_fields false: the kind itself preserves unknown fields, so it is published as an object
 * without properties. 0 or -ENOMEM.
 */
int hfd_openapi_custom_v2(struct hf__json *props, bool *ret_has_fields);

/* SPDX-License-Identifier: Apache-2.0 */
#pragma once
/* The schema of a custom kind in OpenAPI v2. Pure. Thread: any. */
#include <stdbool.h>

struct hf__json;

/*
 * Removes from props, the openAPIV3Schema of a version, what v2 does not have, or what old clients
 * do not understand, by Kubernetes' rules:
 *
 *  - allOf, anyOf, oneOf and not;
 *  - of a nullable value: `nullable`, its type, its properties and its items. A property that is
 *    nullable is not required any more;
 *  - of an object whose additionalProperties are nullable: the whole `required`;
 *  - of a schema that preserves unknown fields: its properties and items, and the type `object`;
 *  - the type of an array without items.
 *
 * *ret_has_fields false: the kind itself preserves unknown fields, so it is published as an object
 * without properties, and props is unchanged. 0 or -ENOMEM.
 */
int hfd_openapi_custom_v2(struct hf__json *props, bool *ret_has_fields);

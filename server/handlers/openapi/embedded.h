/* SPDX-License-Identifier: Apache-2.0 */
#pragma once
/*
 * Embedded resources in OpenAPI: the schema of a definition need not name the apiVersion, the kind
 * and the metadata that they have. Pure. Thread: owner only.
 */
#include <stdbool.h>

struct hf__json;

/*
 * Adds these properties to each embedded resource in props, a schema in JSON. For v2, resources
 * that preserve unknown fields stay as they are: kubectl refuses unknown fields of an object whose
 * schema has properties. 0 or -ENOMEM.
 */
int hfd_openapi_publish_embedded(struct hf__json *props, bool v2);

/* SPDX-License-Identifier: Apache-2.0 */
#pragma once
/*
 * Schemas marked x-kubernetes-embedded-resource: adds apiVersion, kind and metadata to their
 * published form, because a CustomResourceDefinition may leave them out. Pure. Thread: owner only.
 */
#include <stdbool.h>

struct hf__json;

/*
 * Adds these properties to each embedded resource in props, a schema in JSON. For v2, resources
 * that preserve unknown fields stay as they are: kubectl refuses unknown fields of an object whose
 * schema has properties. 0 or -ENOMEM.
 */
int hfd_openapi_publish_embedded(struct hf__json *props, bool v2);

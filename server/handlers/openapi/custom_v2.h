/* SPDX-License-Identifier: Apache-2.0 */
#pragma once
/* The schema of a custom kind in OpenAPI v2. Pure. Thread: any. */
#include <stdbool.h>

struct hf__json;

/*
 * Removes from the openAPIV3Schema of a version what v2 cannot say or old clients do not
 * understand, by Kubernetes' rules: junctors, nullable with all that depends on the type, and the
 * members of what may have unknown fields. *ret_has_fields false: the kind is only an object, and
 * none of its fields may be named. 0 or -ENOMEM.
 */
int hfd_openapi_custom_v2(struct hf__json *props, bool *ret_has_fields);

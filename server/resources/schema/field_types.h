/* SPDX-License-Identifier: Apache-2.0 */
#pragma once
/*
 * The types of the fields that neither meta.c nor a strategy checks. Pure. Thread: any.
 */
#include "base/json.h"
#include "server/resources/resource.h"

/*
 * Checks that each of these fields that is present has the type that its kind requires. False:
 * reason is a message like Kubernetes', which names the field with the wrong type.
 */
bool hfd_field_types_check(const struct hfd_resource *resource, const struct hf__json *object,
                           char *reason, size_t max_reason);

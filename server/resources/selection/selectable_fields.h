/* SPDX-License-Identifier: Apache-2.0 */
#pragma once
/* Decides which fields a field selector may name, for each resource. Private to this folder. Pure.
 * Thread: any. */
#include <stdbool.h>
#include <stddef.h>

#include "server/resources/resource.h"

/* A field of Events only. Its value is source.component or, if that is empty as in newer Events,
 * reportingComponent. */
#define HFD_FIELD_SOURCE "source"

/* If Kubernetes supports the field in selectors of this resource, returns its name in the stored
 * form, which is key itself or static. NULL: the field is not supported. */
const char *hfd_selectable_field(const struct hfd_resource *resource, const char *key);
/* Writes Kubernetes' message for a field that is not supported. */
void hfd_selectable_refuse(const struct hfd_resource *resource, const char *key, char *reason,
                           size_t max_reason);

/* SPDX-License-Identifier: Apache-2.0 */
#pragma once
/*
 * The names and values of the resources that quotas and limits count: "cpu", "configmaps",
 * "count/leases.coordination.k8s.io". A function that takes causes adds one for each rule that the
 * name or the value breaks; field is the path for the causes. Pure. Thread: any.
 */
#include <stdbool.h>

#include "server/schema/values/quantity.h"

struct hf__json;
struct hfd_causes;

/* The scopes of a quota, which restrict it to some pods or volume claims. A set of bits. */
enum hfd_quota_scope {
        HFD_SCOPE_TERMINATING = 1,
        HFD_SCOPE_NOT_TERMINATING = 2,
        HFD_SCOPE_BEST_EFFORT = 4,
        HFD_SCOPE_NOT_BEST_EFFORT = 8,
        HFD_SCOPE_PRIORITY_CLASS = 16,
        HFD_SCOPE_CROSS_NAMESPACE_POD_AFFINITY = 32,
        HFD_SCOPE_VOLUME_ATTRIBUTES_CLASS = 64,
        HFD_SCOPES_END = 128
};

/* The bit of the scope of this name; 0 = there is no such scope. */
unsigned hfd_quota_scope(const char *name);
/* Whether a quota of this one scope may count the resource. True for a name that is not one of the
 * standard names that quotas may have. */
bool hfd_quota_scope_fits(unsigned scope, const char *resource);

/* Validates a name in a quota. */
void hfd_resource_name_validate_quota(const char *name, const char *field,
                                      struct hfd_causes *causes);
/* The first function is for elements of a LimitRange, except those of the types Pod and Container.
 * The second function is for these, for the resources of containers, and for the overhead of pods
 * and RuntimeClasses. It has the rules of the first one and further ones. */
void hfd_resource_name_validate(const char *name, const char *field, struct hfd_causes *causes);
void hfd_resource_name_validate_container(const char *name, const char *field,
                                          struct hfd_causes *causes);
/* Whether a node may promise more of the resource than it has. If so, a container's limit may
 * exceed its request. */
bool hfd_resource_name_may_overcommit(const char *name);

/* Validates the value of a resource: not negative and, if it counts objects or the resource is an
 * extended one, a whole number. */
void hfd_resource_value_validate(const char *name, const struct hf__json *value, const char *field,
                                 struct hfd_causes *causes);
/* If the value is negative, adds a cause that shows it as a whole number, rounded away from zero,
 * and returns false. */
bool hfd_amount_validate(const struct hf__json *value, const char *field,
                         struct hfd_causes *causes);
/* Adds the cause "Invalid value: VALUE: DETAIL". */
void hfd_cause_invalid_quantity(struct hfd_causes *causes, const char *field,
                                const struct hfd_quantity *value, const char *detail);
/* The value as a quantity. The decoder has checked it; zero if it is not a quantity. */
struct hfd_quantity hfd_quantity_of_json(const struct hf__json *value);

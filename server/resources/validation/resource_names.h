/* SPDX-License-Identifier: Apache-2.0 */
#pragma once
/*
 * The names of what quotas and limits count: "cpu", "configmaps",
 * "count/leases.coordination.k8s.io". The functions that take causes add one for each rule that the
 * name or the value breaks. Pure. Thread: any.
 */
#include <stdbool.h>

#include "server/schema/quantity.h"

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

/* 0: there is no such scope. */
unsigned hfd_quota_scope(const char *name);
/* Whether a quota of this one scope may count the resource. True for names that are not standard.
 */
bool hfd_quota_scope_fits(unsigned scope, const char *resource);

/* The name in a quota, which `field` leads to. */
void hfd_resource_name_validate_quota(const char *name, const char *field,
                                      struct hfd_causes *causes);
/* The name in a LimitRange of any type, or only of the types Pod and Container. */
void hfd_resource_name_validate(const char *name, const char *field, struct hfd_causes *causes);
void hfd_resource_name_validate_container(const char *name, const char *field,
                                          struct hfd_causes *causes);
/* Whether more of it may be promised than there is: limits may exceed requests. */
bool hfd_resource_name_may_overcommit(const char *name);

/* Whether the value of a resource is not negative and, if it is counted, whole. */
void hfd_resource_value_validate(const char *name, const struct hf__json *value, const char *field,
                                 struct hfd_causes *causes);
/* "Invalid value: VALUE: DETAIL". */
void hfd_cause_invalid_quantity(struct hfd_causes *causes, const char *field,
                                const struct hfd_quantity *value, const char *detail);
/* The value as a quantity. The decoder has checked its text; zero if it is no quantity. */
struct hfd_quantity hfd_quantity_of_json(const struct hf__json *value);

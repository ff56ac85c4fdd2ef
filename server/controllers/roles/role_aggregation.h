/* SPDX-License-Identifier: Apache-2.0 */
#pragma once
/* The rules of an aggregated ClusterRole. Pure. */
struct hf__json;

/*
 * Collects the rules of all other roles in the list `all` that a selector of the role matches, each
 * rule once, in the order of the selectors and of the list. The caller frees *ret_rules. 0 or
 * -ENOMEM.
 */
int hfd_role_aggregation_rules(const struct hf__json *role, const struct hf__json *all,
                               struct hf__json **ret_rules);

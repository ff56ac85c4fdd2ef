/* SPDX-License-Identifier: Apache-2.0 */
#pragma once
/* The kind that spec.paramKind of a policy names. Thread: any. Never blocks. */
struct hfd_cacher;
struct hfd_custom_table;
struct hfd_resource;

/* A reference to the row (a version of a kind) that params have. NULL: it is not served, or the
 * kind is not stored. */
const struct hfd_resource *hfd_policy_params_kind(struct hfd_cacher *cacher,
                                                  const char *api_version, const char *kind);
/* The same among the built-in kinds and those of the table, which may be NULL. */
const struct hfd_resource *hfd_policy_params_kind_in(struct hfd_custom_table *table,
                                                     const char *api_version, const char *kind);

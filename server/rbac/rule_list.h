/* SPDX-License-Identifier: Apache-2.0 */
#pragma once
/* The rules of a role or of a user as JSON. Pure. Thread: any. */
#include "server/rbac/index.h"

/*
 * The rules of a role as a list of PolicyRules, which the caller frees. kind: "Role" or
 * "ClusterRole"; ns: of a Role. 0, -ENOMEM, or HF_E_NOT_FOUND: the index does not have the role.
 */
int hfd_rbac_index_role_rules(const struct hfd_rbac_index *index, const char *kind, const char *ns,
                              const char *name, struct hf__json **ret_rules);
/*
 * The rules that bindings give to subject in the namespace ns ("" = cluster-wide only), as a list
 * of PolicyRules. *ret_missing describes the roles that are bound but do not exist, as
 * hfd_rbac_missing_roles; NULL = there are none, or memory has run out. The caller frees both. 0,
 * or -ENOMEM: then neither is set.
 */
int hfd_rbac_index_rules_of(const struct hfd_rbac_index *index, const struct hfd_subject *subject,
                            const char *ns, struct hf__json **ret_rules, char **ret_missing);

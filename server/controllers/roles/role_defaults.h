/* SPDX-License-Identifier: Apache-2.0 */
#pragma once
/*
 * holdfastd's own roles and bindings. What is missing in the store is created, and what is missing
 * in an object is added: rules, subjects, labels. What others have added stays. An object with the
 * annotation rbac.authorization.kubernetes.io/autoupdate "false" is left alone.
 */
#include <holdfast/leader.h>

#include "server/controllers/base/default_role.h"

struct hf__json;

/* Blocks on requests until all objects are up to date or the term is aborted. 0, or an error of a
 * request. Thread: the controller's. */
int hfd_role_defaults_apply(struct hf_term *term, hfd_default_role_fn default_role);
/* The same for at most `max` objects from *at on, which is moved to the next one. *ret_more: there
 * is a next one. */
int hfd_role_defaults_apply_some(struct hf_term *term, hfd_default_role_fn default_role, size_t *at,
                                 size_t max, bool *ret_more);

/* Adds to object what the default has and it does not. Sets *ret_changed to true if this changes
 * object, and otherwise leaves it alone. Pure. 0 or -ENOMEM. */
int hfd_role_defaults_merge(struct hf__json *object, const struct hf__json *wanted,
                            bool *ret_changed);

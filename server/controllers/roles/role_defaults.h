/* SPDX-License-Identifier: Apache-2.0 */
#pragma once
/*
 * holdfastd's own roles and bindings. Creates objects that are missing in the store, and adds
 * rules, subjects, labels and an aggregationRule that are missing in an object. Whatever other
 * clients have added stays, except in a binding that refers to another role: it is deleted and
 * created again. An object with the annotation rbac.authorization.kubernetes.io/autoupdate "false"
 * is left alone.
 */
#include <holdfast/leader.h>

#include "server/controllers/base/default_role.h"

struct hf__json;

/* Blocks until all objects are up to date, one of them fails, or the term is aborted. default_role
 * NULL: there are none. 0, -ENOMEM or the error of a request. Thread: the controller's. */
int hfd_role_defaults_apply(struct hf_term *term, hfd_default_role_fn default_role);
/* The same for at most `max` objects, beginning with the one at index *at. Moves *at past those
 * that are up to date. default_role is required. *ret_more: there are further objects. */
int hfd_role_defaults_apply_some(struct hf_term *term, hfd_default_role_fn default_role, size_t *at,
                                 size_t max, bool *ret_more);

/* Adds to `object` the labels, rules, subjects and aggregationRule that it lacks and `wanted` has.
 * Sets *ret_changed to true if that changes the object, and otherwise does not write *ret_changed.
 * Pure. 0 or -ENOMEM. */
int hfd_role_defaults_merge(struct hf__json *object, const struct hf__json *wanted,
                            bool *ret_changed);

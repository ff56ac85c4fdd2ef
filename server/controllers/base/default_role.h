/* SPDX-License-Identifier: Apache-2.0 */
#pragma once
/* The roles and bindings that every server has, as the server passes them to the controller
 * cluster-roles (roles/role_defaults.h). Thread: any. */
#include <stddef.h>

/* The i-th object as JSON of *ret_n bytes, static; NULL = there is none. The controller skips
 * objects that are no roles or bindings. */
typedef const char *(*hfd_default_role_fn)(size_t i, size_t *ret_n);

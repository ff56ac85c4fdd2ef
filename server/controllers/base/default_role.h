/* SPDX-License-Identifier: Apache-2.0 */
#pragma once
/* The roles and bindings that every server has, as the server passes them to the controller roles
 * (roles/role_defaults.h). Thread: any. */
#include <stddef.h>

/* The i-th object as JSON of *ret_n bytes, static; NULL = there is none. Objects of other kinds are
 * skipped. */
typedef const char *(*hfd_default_role_fn)(size_t i, size_t *ret_n);

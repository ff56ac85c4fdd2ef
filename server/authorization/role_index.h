/* SPDX-License-Identifier: Apache-2.0 */
#pragma once
/* The index of roles and bindings, made from the cacher. Private to server/authorization. */
#include <stdbool.h>

struct hfd_cacher;
struct hfd_rbac_index;
struct hfd_resource;

/* Whether the index is built from objects of the resource. */
bool hfd_role_index_observes(const struct hfd_resource *resource);
/* Returns a reference to a new index. 0, or -ENOMEM or -EAGAIN as hfd_feed_each. Thread: any. */
int hfd_role_index_make(struct hfd_cacher *cacher, struct hfd_rbac_index **ret_index);

/* SPDX-License-Identifier: Apache-2.0 */
#pragma once
/* One attempt of a delete. */
#include "server/registry/write/write.h"

/* Deletes or marks the object. Ends the write or passes it to another thread. */
void hfd_write_delete_attempt(struct hfd_write *w);
/* Whether the finalizers of a parsed object keep it from being deleted. */
bool hfd_write_delete_is_blocked(const struct hfd_resource *resource,
                                 const struct hf__json *object);

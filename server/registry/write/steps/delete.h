/* SPDX-License-Identifier: Apache-2.0 */
#pragma once
/* One attempt of a delete. */
#include "server/registry/write/write.h"

/*
 * Deletes the object, or marks it as deleted if it has finalizers or its kind marks its objects
 * itself (mark_deleted). Ends the write or passes it to another thread.
 */
void hfd_write_delete_attempt(struct hfd_write *w);
/* Whether a parsed object has finalizers, so that it must not be removed yet. */
bool hfd_write_delete_is_blocked(const struct hfd_resource *resource,
                                 const struct hf__json *object);

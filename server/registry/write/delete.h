/* SPDX-License-Identifier: Apache-2.0 */
#pragma once
/* One attempt of a delete. */
#include "server/registry/write/write.h"

/* Deletes the object or marks it. Ends the write or gives it to another thread. */
void hfd_write_delete_attempt(struct hfd_write *w);
/* Whether finalizers of object, a parsed one, keep it from being deleted. */
bool hfd_write_delete_is_held(const struct hfd_resource *resource, const struct hf__json *object);

/* SPDX-License-Identifier: Apache-2.0 */
#pragma once
/*
 * The validation of ObjectMeta, alike for all kinds: names, labels, annotations, finalizers,
 * owners, and what an update may not change. Pure. Thread: any.
 */
#include "server/resources/causes.h"
#include "server/resources/resource.h"

/*
 * Adds what is wrong with the metadata of object to causes. Its types are right already
 * (hfd_meta_accept). old: the stored object that it replaces; NULL = a create.
 */
void hfd_meta_validate(const struct hfd_resource *resource, const struct hf__json *object,
                       const struct hf__json *old, struct hfd_causes *causes);

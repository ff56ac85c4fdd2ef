/* SPDX-License-Identifier: Apache-2.0 */
#pragma once
/*
 * Whether a change concerns those who read the metadata of objects only. Most changes do not: the
 * renewal of a Lease, or a status. Pure. Thread: any.
 */
#include <stdbool.h>

struct hfd_object;

/*
 * Whether two versions of an object have the same metadata, apart from resourceVersion and
 * managedFields. False in doubt, and for an object with owners, with finalizers or with a
 * deletionTimestamp, of which every version is needed: what the garbage collector does with it
 * names the resourceVersion. Takes time in proportion to the metadata.
 */
bool hfd_kept_metadata(const struct hfd_object *before, const struct hfd_object *after);

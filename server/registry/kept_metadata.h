/* SPDX-License-Identifier: Apache-2.0 */
#pragma once
/*
 * Decides whether a change leaves the metadata of an object as they are, so that a watch for
 * metadata only (loopback.h) can leave the change out. Most changes are of this kind: the renewal
 * of a Lease, or a new status. Pure. Thread: any.
 */
#include <stdbool.h>

struct hfd_object;

/*
 * Whether both versions have the same metadata, apart from resourceVersion and managedFields. False
 * in doubt. Also false if the object has ownerReferences, finalizers or a deletionTimestamp: the
 * garbage collector deletes such objects with the resourceVersion as a precondition, so it must see
 * every version. Takes time in proportion to the metadata.
 */
bool hfd_kept_metadata(const struct hfd_object *before, const struct hfd_object *after);

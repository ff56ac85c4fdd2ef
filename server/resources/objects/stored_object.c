/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Makes objects of the values that the store delivers (stored_object.h).
 *
 * Invariant: the object is stale (encrypted in an old way, see object.h) if the value is. A write
 * that changes nothing is left out, unless the object is stale. So an object that lost the mark
 * would keep its old encryption until it changes.
 */
#include "server/resources/objects/stored_object.h"

#include "server/resources/objects/custom_object.h"

struct hfd_object *hfd_stored_object_new(const struct hfd_resource *resource, const char *path,
                                         const struct hfd_kv *kv) {
        /* An encrypted value is not JSON, so no object can be made from it. */
        struct hfd_object *object =
                resource->custom
                        ? hfd_custom_object_new(resource, path, kv->mod_revision, kv->value)
                        : hfd_object_new(resource, path, kv->mod_revision, kv->value);

        if (object)
                object->stale = kv->stale;
        return object;
}

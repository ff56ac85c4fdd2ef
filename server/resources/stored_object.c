/* SPDX-License-Identifier: Apache-2.0 */
/* Objects from what the store delivers (stored_object.h). */
#include "server/resources/stored_object.h"

#include "server/resources/custom/custom_object.h"

struct hfd_object *hfd_stored_object_new(const struct hfd_resource *resource, const char *path,
                                         const struct hfd_kv *kv) {
        /* An encrypted value is not JSON, so no object can be made from it. */
        struct hf__buf *formed =
                resource->custom ? hfd_custom_object_bytes(resource, kv->value) : NULL;
        struct hfd_object *object = NULL;

        if (formed || !resource->custom)
                object = hfd_object_new(resource, path, kv->mod_revision,
                                        formed ? formed : kv->value);
        hf__buf_unref(formed);
        if (object)
                object->stale = kv->stale;
        return object;
}

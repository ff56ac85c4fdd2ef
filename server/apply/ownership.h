/* SPDX-License-Identifier: Apache-2.0 */
#pragma once
/*
 * Computes who owns the fields of an object after a write other than a server-side apply. The
 * writer owns the fields that it has changed, and no other manager owns them any more. Thread:
 * owner only.
 */
#include "server/apply/sets/fields.h"

struct hf__json;
struct hfd_schema;

/* The manager that makes a write. All texts are borrowed. */
struct hfd_writer {
        const char *manager;     /* "" = "unknown" */
        const char *subresource; /* "" = none */
        const char *api_version; /* of the request: "v1" */
        const char *now;         /* the time of the write, as managedFields stores it */
        /* Borrowed: the object to which a new object is compared (zero.h). Nobody owns the fields
         * in which the two are equal. NULL = an empty object. */
        const struct hf__json *zero;
};

/*
 * Sets metadata.managedFields of object, the new version of `live`; live NULL = object is created.
 * The caller passes object with the list that the client sent. If that is valid and has managers,
 * it replaces live's list; `[]` and `[{}]` clear the list. The list that comes with a write of a
 * subresource is ignored. If an object existed before and has no managers now, it gets none: only
 * an apply adds the first managers of an existing object.
 *
 * takes_list: object may get the list of live itself instead of a copy, and live then has none.
 * This happens only if *ret_changed becomes true, or if memory runs out afterwards: then neither of
 * the two has a list.
 *
 * live's list may be a raw value (json.h). It stays one, and object's list is one too, unless the
 * managers' sets must be made, or the client sent the same list as another text.
 *
 * 0 or -ENOMEM; after a failure object is valid, but may have lost its managers. *ret_changed:
 * object is known to differ from live by more than its managers and the order of members.
 */
int hfd_ownership_update(const struct hfd_schema *schema, struct hf__json *live,
                         struct hf__json *object, const struct hfd_writer *writer, bool takes_list,
                         bool *ret_changed);

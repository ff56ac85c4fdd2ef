/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Most objects have no owner. To find owners, the informers parse only objects that pass the search
 * below. The garbage collector does the same, but always parses the object of a DELETED event.
 *
 * Invariant: the search is for the names as this server prints them, without escapes.
 */
#include "server/controllers/kinds/gc_filter.h"

#include <string.h>

bool hfd_gc_filter_may_concern(const char *object, size_t n) {
        static const char owners[] = "\"ownerReferences\"", deletion[] = "\"deletionTimestamp\"";

        return memmem(object, n, owners, sizeof owners - 1) ||
               memmem(object, n, deletion, sizeof deletion - 1);
}

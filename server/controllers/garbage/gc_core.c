/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The garbage collector's decisions.
 *
 * Invariant: as long as one owner is solid, no verdict deletes the object. A wrong deletion cannot
 * be undone, whereas an object that is kept wrongly is checked again with the next event.
 */
#include "server/controllers/garbage/gc_core.h"

#include <errno.h>
#include <string.h>

#include "base/json.h"
#include "base/json_index.h"
#include "server/controllers/base/string_list.h"

enum hfd_gc_verdict hfd_gc_decide(const struct hfd_gc_view *view) {
        if (view->n_solid > 0)
                return view->n_waiting + view->n_absent > 0 ? HFD_GC_DROP_OWNERS : HFD_GC_KEEP;
        if (view->n_waiting > 0 && view->has_dependents) {
                /* In a cycle of owners each would wait for the next one forever. */
                bool cycle = view->dependent_waits && view->blocks;
                return cycle ? HFD_GC_UNBLOCK : HFD_GC_DELETE_FOREGROUND;
        }
        if (view->n_waiting + view->n_absent == 0)
                return HFD_GC_KEEP; /* it has no owner references, so nothing owns it */
        if (view->orphan)
                return HFD_GC_DELETE_ORPHAN;
        return view->foreground ? HFD_GC_DELETE_FOREGROUND : HFD_GC_DELETE_BACKGROUND;
}

const char *hfd_gc_policy(enum hfd_gc_verdict verdict) {
        switch (verdict) {
        case HFD_GC_DELETE_BACKGROUND: return "Background";
        case HFD_GC_DELETE_FOREGROUND: return "Foreground";
        case HFD_GC_DELETE_ORPHAN: return "Orphan";
        case HFD_GC_KEEP:
        case HFD_GC_DROP_OWNERS:
        case HFD_GC_UNBLOCK: break;
        }
        return NULL;
}

bool hfd_gc_waits(const struct hf__json *object) {
        return hf__json_string(object, "metadata.deletionTimestamp") &&
               hfd_string_list_has(object, "metadata.finalizers", HFD_FOREGROUND);
}

bool hfd_gc_blocks(const struct hf__json *object) {
        for (const struct hf__json *m =
                     hf__json_first(hf__json_path(object, "metadata.ownerReferences"));
             m; m = hf__json_next(m))
                if (hf__json_string(m, "uid") && hf__json_bool(m, "blockOwnerDeletion", false))
                        return true;
        return false;
}

/* A reference without a uid matches no owner, so it is kept. */
int hfd_gc_drop_owners(struct hf__json *object, const struct hf__json *uids) {
        struct hf__json *kept = hf__json_array();
        struct hf__json_index index;
        int r = hf__json_index_init(&index, hf__json_get(uids, "uids"), NULL);

        if (r == 0 && !kept)
                r = -ENOMEM;
        for (const struct hf__json *m =
                     hf__json_first(hf__json_path(object, "metadata.ownerReferences"));
             r == 0 && m; m = hf__json_next(m)) {
                const char *uid = hf__json_string(m, "uid");
                if (!uid || !hf__json_index_find(&index, uid))
                        r = hf__json_append(kept, hf__json_dup(m));
        }
        hf__json_index_done(&index);
        if (r == 0 && hf__json_count(kept) > 0)
                return hf__json_set(object, "metadata.ownerReferences", kept);
        if (r == 0)
                hf__json_remove(object, "metadata.ownerReferences");
        hf__json_free(kept);
        return r;
}

int hfd_gc_unblock(struct hf__json *object) {
        int r = 0;

        for (struct hf__json *m = hf__json_first(hf__json_path(object, "metadata.ownerReferences"));
             r == 0 && m; m = hf__json_next(m))
                r = hf__json_set_bool(m, "blockOwnerDeletion", false);
        return r;
}

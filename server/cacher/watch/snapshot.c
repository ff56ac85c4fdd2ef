/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Snapshots of the current state and of earlier ones.
 *
 * A resource changes less often than the store, so a state is identified by the last change that
 * it contains. If the resource has not changed since a revision, the state at it is the current
 * one. Otherwise it is either kept, because a client pages through it, or made: the current state
 * with the changes since undone, newest first. These changes are read from the history in slices,
 * each under the lock. What happens between two slices does not matter, unless the history loses a
 * change that was not read yet, or is interrupted after it: then the state is not known any more.
 *
 * A state does not say which values are sealed (state/stored_value.h). Whenever that changes, the
 * history begins anew. So every state that the history reaches back to has the sealed values of the
 * current state.
 *
 * Invariant: a state of an earlier filling of the cache is not kept. The store may have been
 * restored since, and then the same revisions mean other states.
 */
#include "server/cacher/watch/snapshot.h"

#include <assert.h>
#include <errno.h>
#include <stdlib.h>

#include "base/thread.h"
#include "server/cacher/requests/store_identity.h"
#include "server/cacher/state/cacher_state.h"
#include "server/resources/rows/resource_table.h"

#define UNDO_MAX  4096 /* changes; undoing more would take longer than a read from the store */
#define SLICE_MAX 128  /* changes that are read under one lock */

/*
 * Copies n changes of the history, from the one with the number `first` on, with references of
 * their own, which undo_changes drops. False: nothing was copied, because the history has dropped
 * some of them, or has been interrupted after them.
 */
static bool copy_changes(struct hfd_cacher *cacher, size_t resource, uint64_t first, size_t n,
                         struct hfd_change changes[SLICE_MAX]) {
        size_t from;

        assert(n <= SLICE_MAX);
        pthread_mutex_lock(&cacher->mu);
        const struct hfd_event_history *history =
                hfd_event_history_of(&cacher->histories, resource);
        bool there = hfd_event_history_seek(history, first, &from);
        for (size_t i = 0; there && i < n; i++) {
                changes[i] = *hfd_event_history_at(history, from + i);
                hfd_object_ref(changes[i].object);
                hfd_object_ref(changes[i].before);
        }
        pthread_mutex_unlock(&cacher->mu);
        return there;
}

/* Undoes the changes, newest first, and drops their references, also if it fails. 0 or -ENOMEM. */
static int undo_changes(struct hfd_object_tree *tree, const struct hfd_change *changes, size_t n) {
        struct hfd_object *old;
        int r = 0;

        for (size_t i = n; i-- > 0;) {
                old = NULL;
                if (r == 0 && changes[i].before)
                        r = hfd_object_tree_put(tree, hfd_object_ref(changes[i].before), &old);
                else if (r == 0)
                        r = hfd_object_tree_remove(tree, changes[i].object->path, &old);
                hfd_object_unref(old);
                hfd_object_unref(changes[i].object);
                hfd_object_unref(changes[i].before);
        }
        return r;
}

/*
 * Undoes the changes with the numbers from `first` up to, not including, `end`, a slice at a time.
 * Their numbers tell them from later changes, and from those of another filling. False: memory ran
 * out, or the history has dropped some of them or was interrupted meanwhile.
 */
static bool undo_between(struct hfd_cacher *cacher, size_t resource, struct hfd_object_tree *tree,
                         uint64_t first, uint64_t end) {
        struct hfd_change changes[SLICE_MAX];
        int r = 0;

        while (r == 0 && end > first) {
                size_t n = end - first < SLICE_MAX ? (size_t)(end - first) : SLICE_MAX;
                end -= n;
                if (!copy_changes(cacher, resource, end, n, changes))
                        return false;
                r = undo_changes(tree, changes, n);
        }
        return r == 0;
}

bool hfd_snapshot_take(struct hfd_cacher *cacher, const struct hfd_resource *resource, uint64_t at,
                       struct hfd_snapshot *ret_snapshot) {
        size_t index = hfd_resource_index(resource);
        uint64_t first = 0, end = 0; /* the numbers of the changes to undo */

        pthread_mutex_lock(&cacher->mu);
        const struct hfd_event_history *history = hfd_event_history_of(&cacher->histories, index);
        uint64_t revision = at ? at : cacher->revision;
        /* Once the store was replaced, say by a backup, a revision that a client names may be one
         * of the new store. The cache, which still has the old state, cannot tell. */
        bool known = cacher->synced && revision <= cacher->revision && revision >= history->floor &&
                     !(at && hfd_store_identity_is_replaced_locked(cacher));
        if (known) {
                const struct hfd_object_tree *tree = &cacher->trees[index], *kept;
                uint64_t changed = hfd_event_history_changed(history, revision);
                size_t from = hfd_event_history_after(history, revision);

                kept = from < history->n ? hfd_event_history_state(history, changed) : tree;
                if (!kept) {
                        first = hfd_event_history_number(history, from);
                        end = hfd_event_history_number(history, history->n);
                }
                known = end - first <= UNDO_MAX;
                if (known)
                        *ret_snapshot =
                                (struct hfd_snapshot){.objects = hfd_object_tree_snapshot(
                                                              kept ? kept : tree),
                                                      .unreadable = hfd_object_tree_snapshot(
                                                              &cacher->unreadable),
                                                      .revision = revision,
                                                      .changed = changed,
                                                      .fill = cacher->n_fills};
        }
        pthread_mutex_unlock(&cacher->mu);
        if (known && !undo_between(cacher, index, &ret_snapshot->objects, first, end)) {
                hfd_snapshot_done(ret_snapshot);
                return false;
        }
        return known;
}

static bool is_synced(struct hfd_cacher *cacher) {
        pthread_mutex_lock(&cacher->mu);
        bool synced = cacher->synced;
        pthread_mutex_unlock(&cacher->mu);
        return synced;
}

int hfd_snapshot_take_now(struct hfd_cacher *cacher, const struct hfd_resource *resource,
                          struct hfd_snapshot *ret_snapshot) {
        bool synced = is_synced(cacher);

        if (hfd_snapshot_take(cacher, resource, 0, ret_snapshot))
                return 0;
        return synced && is_synced(cacher) ? -ENOMEM : -EAGAIN;
}

void hfd_snapshot_keep(struct hfd_cacher *cacher, const struct hfd_resource *resource,
                       const struct hfd_snapshot *snapshot) {
        struct hfd_history_garbage garbage;

        garbage.n = garbage.n_states = 0;
        garbage.rings = NULL;
        pthread_mutex_lock(&cacher->mu);
        if (snapshot->fill == cacher->n_fills)
                hfd_event_history_keep(&cacher->histories, hfd_resource_index(resource),
                                       snapshot->changed, &snapshot->objects, &garbage);
        pthread_mutex_unlock(&cacher->mu);
        hfd_history_garbage_free(&garbage);
}

void hfd_snapshot_done(struct hfd_snapshot *snapshot) {
        hfd_object_tree_clear(&snapshot->objects);
        hfd_object_tree_clear(&snapshot->unreadable);
        *snapshot = (struct hfd_snapshot){0};
}

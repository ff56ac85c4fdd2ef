/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Applies the events of the store's watch to the cache, in two steps. What may take long, such as
 * creating the objects, is prepared without the lock (cacher.h names the two exceptions). Then the
 * lock is acquired, and the events of one revision are applied.
 *
 * Invariant: the lock is not released between the changes of objects and that of `revision`. So the
 * state that a reader sees at a revision contains all changes of that revision and no later one,
 * even if another program writes several objects in one transaction. apply_revision names the one
 * exception.
 */
#include "server/cacher/sync/store_events.h"

#include <assert.h>
#include <stdlib.h>
#include <string.h>

#include "base/thread.h"
#include "server/cacher/requests/store_identity.h"
#include "server/cacher/state/cacher_state.h"
#include "server/cacher/state/stored_value.h"
#include "server/cacher/sync/slot_forms.h"
#include "server/cacher/watch/watchers.h"
#include "server/resources/custom/custom_kind.h"
#include "server/resources/objects/object_key.h"
#include "server/resources/objects/selectable_values.h"
#include "server/resources/objects/stored_object.h"
#include "server/resources/rows/resource_table.h"

/* Of one event: the new object before it got the form of its slot, the version that only writes
 * have used, and both objects of a change. */
#define DROPPED_MAX 4

struct hfd_prepared_event {
        const struct hfd_resource *resource; /* NULL: the event does not concern an object */
        const char *path;                    /* borrowed from the event */
        struct hfd_object *object;           /* owned; the new version; NULL = none */
        struct hfd_object *placeholder;      /* owned; the new value is invalid or sealed */
        /* Owned; of a deletion: the object that was cached when the event was prepared, and its
         * last state, which has the revision of the deletion. Both are NULL if there was none. */
        struct hfd_object *cached, *deleted;
        /* Owned; set if several watchers may get this object: then they share its frames, the bytes
         * of its watch event, while it is delivered. */
        struct hfd_object *delivered;
        /* Owned; what was dropped under the lock. It is freed without the lock, because the last
         * object of a replaced custom kind frees this kind, with all its schemas. */
        struct hfd_object *dropped[DROPPED_MAX];
        size_t n_dropped;
};

/* ---- preparing ---- */

static bool is_epoch_written(struct hfd_cacher *cacher, const struct hfd_watch_event *event) {
        char key[HFD_KEY_MAX];

        return event->type == HFD_WATCH_PUT && hfd_store_identity_epoch_key(cacher, key) == 0 &&
               strcmp(key, event->kv.key) == 0;
}

/* Whether the event is the mark of a copy (storage/copy.h). */
static bool is_copy_marked(struct hfd_cacher *cacher, const struct hfd_watch_event *event) {
        char key[HFD_KEY_MAX];

        return event->type == HFD_WATCH_PUT && hfd_key_own(key, cacher->prefix, "copying") == 0 &&
               strcmp(key, event->kv.key) == 0;
}

/* Whether the event is a term record (storage/keys.h) that names this process as the holder of a
 * Lease: the record begins with the holder and a line end. The Leases of other holders, such as
 * those of nodes, are many, so they must not cause bookmarks. */
static bool is_term_begun(struct hfd_cacher *cacher, const struct hfd_watch_event *event) {
        const struct hf__buf *value = event->kv.value;
        size_t n = strlen(cacher->holder);

        return event->type == HFD_WATCH_PUT && value && n > 0 && value->n > n &&
               memcmp(value->data, cacher->holder, n) == 0 && value->data[n] == '\n' &&
               hfd_key_is_term_record(event->kv.key, cacher->prefix);
}

/*
 * Returns the object that a put event contains. If an update by this instance stored it, the object
 * often exists already as `newer`, and sharing it saves a copy of its bytes. NULL: out of memory,
 * or the value is invalid or sealed.
 */
static struct hfd_object *get_put_object(struct hfd_cacher *cacher,
                                         const struct hfd_resource *resource, const char *path,
                                         const struct hfd_kv *kv) {
        struct hfd_object *object = NULL;

        pthread_mutex_lock(&cacher->mu);
        struct hfd_object *newer =
                hfd_object_tree_find(&cacher->newer[hfd_resource_index(resource)], path);
        const struct hfd_resource *form = hfd_slot_form_get_locked(cacher->forms, resource);
        if (newer && newer->revision == kv->mod_revision &&
            hfd_custom_same_form(newer->resource, form))
                object = hfd_object_ref(newer);
        pthread_mutex_unlock(&cacher->mu);
        if (!object)
                object = hfd_stored_object_new(form, path, kv);
        hfd_resource_unref(form);
        return object;
}

/* Makes the last state of an object that the event deletes. False: out of memory. */
static bool prepare_removal(struct hfd_cacher *cacher, const struct hfd_watch_event *event,
                            struct hfd_prepared_event *prepared) {
        size_t index = hfd_resource_index(prepared->resource);

        pthread_mutex_lock(&cacher->mu);
        prepared->cached =
                hfd_object_ref(hfd_object_tree_find(&cacher->trees[index], prepared->path));
        pthread_mutex_unlock(&cacher->mu);
        if (prepared->cached)
                prepared->deleted = hfd_object_at(prepared->cached, event->kv.mod_revision);
        return !prepared->cached || prepared->deleted;
}

/* Parses what the change needs to find watches by the trigger (hfd_watchers_need_trigger_locked).
 * If memory runs out, the change visits more watches. */
static void prepare_trigger(struct hfd_cacher *cacher, const struct hfd_prepared_event *prepared) {
        size_t index = hfd_resource_index(prepared->resource);
        struct hfd_object *before = NULL;

        if (!hfd_selectable_trigger(prepared->resource))
                return;
        pthread_mutex_lock(&cacher->mu);
        bool needed = hfd_watchers_need_trigger_locked(cacher, index);
        if (needed)
                before =
                        hfd_object_ref(hfd_object_tree_find(&cacher->trees[index], prepared->path));
        pthread_mutex_unlock(&cacher->mu);
        if (before)
                (void)hfd_object_selectable(before);
        if (needed && prepared->object)
                (void)hfd_object_selectable(prepared->object);
        hfd_object_unref(before);
}

/* Prepares an event, without the lock. False: out of memory, so the cache must be filled again. */
static bool prepare_event(struct hfd_cacher *cacher, const struct hfd_watch_event *event,
                          struct hfd_event_batch *batch, struct hfd_prepared_event *prepared) {
        if (event->type != HFD_WATCH_PROGRESS)
                prepared->resource = hfd_object_key_parse(cacher->prefix, cacher->table,
                                                          event->kv.key, &prepared->path);
        if (!prepared->resource && event->type != HFD_WATCH_PROGRESS && !prepared->path)
                return false; /* memory ran out while the key was looked up */
        if (!prepared->resource) {
                batch->epoch_written |= is_epoch_written(cacher, event);
                batch->term_begun |= is_term_begun(cacher, event);
                batch->copy_begun |= is_copy_marked(cacher, event);
                return true;
        }
        size_t index = hfd_resource_index(prepared->resource);
        batch->observers |= index < HFD_RESOURCES_MAX ? cacher->observers[index] : 0u;
        if (event->type == HFD_WATCH_PUT && !event->kv.value)
                return false; /* memory ran out when it was decrypted */
        if (event->type == HFD_WATCH_PUT)
                prepared->object =
                        get_put_object(cacher, prepared->resource, prepared->path, &event->kv);
        prepare_trigger(cacher, prepared);
        if (event->type != HFD_WATCH_PUT)
                return prepare_removal(cacher, event, prepared);
        /* An invalid value also replaces the object: the old version must not be served. */
        if (!prepared->object)
                prepared->placeholder =
                        hfd_stored_value_placeholder(cacher, prepared->resource, &event->kv);
        return prepared->object || prepared->placeholder;
}

/* ---- applying ---- */

/* Consumes the reference to object, and drops it after the lock is released. Accepts NULL. */
static void drop_later(struct hfd_prepared_event *prepared, struct hfd_object *object) {
        if (!object)
                return;
        assert(prepared->n_dropped < DROPPED_MAX);
        prepared->dropped[prepared->n_dropped++] = object;
}

/*
 * Puts object into the tree and fills in change, which consumes the reference to object. False: out
 * of memory.
 */
static bool put_locked(struct hfd_object_tree *tree, struct hfd_prepared_event *prepared,
                       struct hfd_object *object, struct hfd_change *change) {
        assert(object->resource && !change->before);
        if (hfd_object_tree_put(tree, hfd_object_ref(object), &change->before) != 0) {
                drop_later(prepared, object);
                return false;
        }
        change->object = object;
        change->type = change->before ? HF_EVENT_MODIFIED : HF_EVENT_ADDED;
        return true;
}

/*
 * Removes the object at the path of the event and fills in change. If the tree does not contain the
 * path, change->object stays NULL. The last state of the object is made here only if it could not
 * be prepared: an earlier event of the batch has changed the object, its slot has another form, or
 * the event is a put of an invalid value. False: out of memory.
 */
static bool remove_locked(struct hfd_object_tree *tree, struct hfd_prepared_event *prepared,
                          uint64_t revision, struct hfd_change *change) {
        assert(prepared->path && revision > 0);
        if (hfd_object_tree_remove(tree, prepared->path, &change->before) != 0)
                return false;
        if (!change->before)
                return true;
        change->type = HF_EVENT_DELETED;
        change->object = change->before == prepared->cached
                                 ? hfd_object_ref(prepared->deleted)
                                 : hfd_object_at(change->before, revision);
        if (!change->object)
                drop_later(prepared, change->before);
        return change->object != NULL;
}

/*
 * The new value of an object cannot be decrypted. The object must not look deleted, so no change
 * is queued. The watches of the resource end, because from now on there are changes that
 * they cannot get. A new watch whose range has this value is refused. False: out of memory.
 */
static bool seal_locked(struct hfd_cacher *cacher, struct hfd_prepared_event *prepared,
                        uint64_t revision, struct hfd_watcher **dirty) {
        size_t index = hfd_resource_index(prepared->resource);
        struct hfd_object *old = NULL;

        hf__mutex_assert_held(&cacher->mu);
        if (hfd_object_tree_remove(&cacher->trees[index], prepared->path, &old) != 0)
                return false;
        drop_later(prepared, old);
        hfd_event_history_interrupt(hfd_event_history_of(&cacher->histories, index), revision);
        hfd_watchers_expire_resource_locked(cacher, index, dirty);
        return true;
}

/* The watch has delivered this revision of path, so writes no longer need it, or an earlier
 * version, in `newer`. */
static void forget_newer_locked(struct hfd_object_tree *newer, struct hfd_prepared_event *prepared,
                                uint64_t revision) {
        const struct hfd_object *object = hfd_object_tree_find(newer, prepared->path);
        struct hfd_object *old = NULL;

        if (object && object->revision <= revision)
                /* Cannot fail, because `newer` has no snapshots. */
                (void)hfd_object_tree_remove(newer, prepared->path, &old);
        drop_later(prepared, old);
}

/*
 * Applies one event to the tree, the history and the watchers. Consumes prepared->object and
 * prepared->placeholder. False: the cache must be filled again, because memory ran out, or because
 * the object is not valid in the form that its slot got after it was prepared. (A filling makes a
 * placeholder of such an object.)
 */
static bool apply_event_locked(struct hfd_cacher *cacher, const struct hfd_watch_event *event,
                               struct hfd_prepared_event *prepared, hf_nsec now,
                               struct hfd_watcher **dirty, struct hfd_history_garbage *garbage) {
        size_t index = hfd_resource_index(prepared->resource);
        struct hfd_object_tree *tree = &cacher->trees[index];
        struct hfd_object *object = prepared->object, *placeholder = prepared->placeholder, *old;
        struct hfd_change change = {0};
        bool sealed = placeholder && placeholder->bytes;
        bool was_sealed = hfd_stored_value_is_sealed_locked(cacher, event->kv.key);

        hf__mutex_assert_held(&cacher->mu);
        assert(!object || !placeholder);                 /* a value is valid or not */
        prepared->object = prepared->placeholder = NULL; /* consumed */
        if (object) {
                object = hfd_slot_form_apply_locked(cacher->forms, object, &old);
                drop_later(prepared, old);
        }
        if (!object && !placeholder && event->type == HFD_WATCH_PUT)
                return false;
        forget_newer_locked(&cacher->newer[index], prepared, event->kv.mod_revision);
        bool good =
                hfd_stored_value_set_placeholder(&cacher->unreadable, event->kv.key, placeholder);
        if (!good)
                drop_later(prepared, object);
        else if (object)
                good = put_locked(tree, prepared, object, &change);
        else if (sealed)
                good = seal_locked(cacher, prepared, event->kv.mod_revision, dirty);
        else
                good = remove_locked(tree, prepared, event->kv.mod_revision, &change);
        /* Earlier states lack the sealed object, so no list may be served from them. */
        if (was_sealed)
                hfd_event_history_interrupt(hfd_event_history_of(&cacher->histories, index),
                                            event->kv.mod_revision);
        if (!good || !change.object)
                return good;
        if (hfd_watchers_queue_change_locked(cacher, &change, dirty) > 1)
                prepared->delivered = hfd_object_ref(change.object);
        if (!hfd_event_history_add(&cacher->histories, change, tree, now, garbage)) {
                drop_later(prepared, change.object);
                drop_later(prepared, change.before);
        }
        return true;
}

/*
 * Applies events of one revision. False: one of them could not be applied (apply_event_locked), so
 * the cache contains only a part of the revision until it has been filled again, which the caller
 * must request.
 */
static bool apply_revision(struct hfd_cacher *cacher, const struct hfd_watch_event *events,
                           struct hfd_prepared_event *prepared, size_t n,
                           struct hfd_watcher **dirty) {
        struct hfd_history_garbage garbage;
        hf_nsec now = hfd_cacher_now(cacher);
        bool good = true, trimmed = false;

        garbage.n = garbage.n_states = 0;
        garbage.rings = NULL;
        pthread_mutex_lock(&cacher->mu);
        for (size_t i = 0; i < n && good; i++)
                if (prepared[i].resource)
                        good = apply_event_locked(cacher, &events[i], &prepared[i], now, dirty,
                                                  &garbage);
        if (good && events[0].revision > cacher->revision)
                cacher->revision = events[0].revision;
        hfd_cacher_wake_timer_locked(cacher, cacher->histories.due);
        /* The garbage has limited space, so old history is dropped in steps. What a step has
         * dropped is freed without the lock. */
        while (!trimmed) {
                trimmed = hfd_event_histories_trim(&cacher->histories, now, &garbage);
                pthread_mutex_unlock(&cacher->mu);
                hfd_history_garbage_free(&garbage);
                if (!trimmed)
                        pthread_mutex_lock(&cacher->mu);
        }
        return good;
}

void hfd_store_events_apply(struct hfd_cacher *cacher, const struct hfd_watch_event *events,
                            size_t n, struct hfd_event_batch *ret_batch) {
        struct hfd_prepared_event *prepared = calloc(n, sizeof *prepared);
        size_t n_revision;

        assert(n > 0);
        *ret_batch = (struct hfd_event_batch){.prepared = prepared,
                                              .n = prepared ? n : 0,
                                              .complete = prepared != NULL};
        for (size_t i = 0; i < n && ret_batch->complete; i++)
                ret_batch->complete = prepare_event(cacher, &events[i], ret_batch, &prepared[i]);
        for (size_t i = 0; i < n && ret_batch->complete; i += n_revision) {
                n_revision = 1;
                while (i + n_revision < n && events[i + n_revision].revision == events[i].revision)
                        n_revision++;
                ret_batch->complete = apply_revision(cacher, &events[i], &prepared[i], n_revision,
                                                     &ret_batch->dirty);
        }
}

void hfd_store_events_deliver(struct hfd_event_batch *batch) {
        for (size_t i = 0; i < batch->n; i++)
                if (batch->prepared[i].delivered)
                        hfd_object_share_frames(batch->prepared[i].delivered);
        hfd_watchers_deliver(batch->dirty);
        for (size_t i = 0; i < batch->n; i++) {
                struct hfd_prepared_event *prepared = &batch->prepared[i];
                if (prepared->delivered)
                        hfd_object_unshare_frames(prepared->delivered);
                hfd_object_unref(prepared->delivered);
                hfd_object_unref(prepared->object); /* not consumed if memory ran out */
                hfd_object_unref(prepared->placeholder);
                hfd_object_unref(prepared->cached);
                hfd_object_unref(prepared->deleted);
                for (size_t j = 0; j < prepared->n_dropped; j++)
                        hfd_object_unref(prepared->dropped[j]);
        }
        free(batch->prepared);
        *batch = (struct hfd_event_batch){0};
}

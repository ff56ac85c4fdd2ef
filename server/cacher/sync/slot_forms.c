/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The forms of cached objects, and their change.
 *
 * A form changes in two steps. Under the lock, the slot gets the new row: objects that are made
 * from here on have its form, and those that were made before but enter the tree later are made
 * again (hfd_slot_form_apply_locked). Then the objects that the tree had at that moment are
 * replaced, a few at a time, so that the lock is never held for long.
 *
 * Invariant: when hfd_slot_form_set has succeeded, all objects in the slot's tree have the new
 * form, with two exceptions. An object that is not valid for the new row keeps its old form, as
 * long as nobody writes it. And if the cache was filled meanwhile, objects may have any form; but
 * after a filling the cacher wakes its observers, so kind_feed.c calls the function again.
 */
#include "server/cacher/sync/slot_forms.h"

#include <assert.h>
#include <errno.h>
#include <stdlib.h>

#include "base/thread.h"
#include "server/cacher/state/cacher_state.h"
#include "server/cacher/watch/watchers.h"
#include "server/resources/objects/custom_object.h"
#include "server/resources/rows/resource_table.h"

#define BATCH 32 /* objects that are replaced under one lock */

/* Guarded by the cacher's lock. */
struct hfd_slot_forms {
        /* rows[i] is the form of the slot whose index as a resource is HFD_RESOURCES_MAX + i: a
         * reference; NULL = none. */
        const struct hfd_resource *rows[HFD_CUSTOM_SLOTS_MAX];
};

static size_t slot_number(const struct hfd_resource *resource) {
        size_t index = hfd_resource_index(resource);

        assert(index >= HFD_RESOURCES_MAX && index < HFD_SLOTS_MAX);
        return index - HFD_RESOURCES_MAX;
}

struct hfd_slot_forms *hfd_slot_forms_new(void) {
        return calloc(1, sizeof(struct hfd_slot_forms));
}

struct hfd_slot_forms *hfd_slot_forms_free(struct hfd_slot_forms *forms) {
        if (!forms)
                return NULL;
        for (size_t i = 0; i < HFD_CUSTOM_SLOTS_MAX; i++)
                hfd_resource_unref(forms->rows[i]);
        free(forms);
        return NULL;
}

const struct hfd_resource *hfd_slot_form_get_locked(const struct hfd_slot_forms *forms,
                                                    const struct hfd_resource *resource) {
        assert(forms && resource);
        const struct hfd_resource *form =
                resource->slot != 0 ? forms->rows[slot_number(resource)] : NULL;

        return hfd_resource_ref(form ? form : resource);
}

const struct hfd_resource *hfd_slot_form_get(struct hfd_cacher *cacher,
                                             const struct hfd_resource *resource) {
        if (resource->slot == 0)
                return resource;
        pthread_mutex_lock(&cacher->mu);
        const struct hfd_resource *form = hfd_slot_form_get_locked(cacher->forms, resource);
        pthread_mutex_unlock(&cacher->mu);
        return form;
}

const struct hfd_resource *hfd_slot_form_of(struct hfd_cacher *cacher,
                                            const struct hfd_resource *stored) {
        const struct hfd_resource *form = hfd_slot_form_get(cacher, stored);

        if (hfd_custom_same_form(form, stored))
                return form;
        hfd_resource_unref(form);
        return hfd_resource_ref(stored);
}

struct hfd_object *hfd_slot_form_apply_locked(const struct hfd_slot_forms *forms,
                                              struct hfd_object *object,
                                              struct hfd_object **ret_old) {
        const struct hfd_resource *resource = object->resource,
                                  *form = resource->slot ? forms->rows[slot_number(resource)]
                                                         : NULL;

        *ret_old = NULL;
        if (!form || hfd_custom_same_form(form, resource))
                return object;
        *ret_old = object;
        return hfd_custom_object_reform(form, object);
}

/* ---- the change of a form ---- */

struct batch {
        struct {
                struct hfd_object *old, *formed; /* old is borrowed from the snapshot */
        } of[BATCH];
        size_t n;
};

/* Replaces the objects that the tree still has. Empties the batch. 0 or -ENOMEM. */
static int replace_batch(struct hfd_cacher *cacher, size_t slot, struct batch *batch) {
        struct hfd_object *replaced[BATCH] = {0};
        int r = 0;

        assert(batch->n <= BATCH);
        pthread_mutex_lock(&cacher->mu);
        struct hfd_object_tree *tree = &cacher->trees[slot];
        for (size_t i = 0; i < batch->n && r == 0; i++) {
                struct hfd_object *formed = batch->of[i].formed;
                if (hfd_object_tree_find(tree, formed->path) == batch->of[i].old)
                        r = hfd_object_tree_put(tree, hfd_object_ref(formed), &replaced[i]);
        }
        pthread_mutex_unlock(&cacher->mu);
        for (size_t i = 0; i < batch->n; i++) {
                hfd_object_unref(replaced[i]);
                hfd_object_unref(batch->of[i].formed);
        }
        batch->n = 0;
        return r;
}

/* Makes the objects of the snapshot anew that have another form than row. An object that is not
 * valid for row stays as it is, because readers check the form of each object. 0 or -ENOMEM. */
static int form_objects(struct hfd_cacher *cacher, const struct hfd_resource *row,
                        const struct hfd_object_tree *snapshot) {
        static const struct hfd_scope all = {.prefix = ""};
        struct hfd_object_iter iter;
        struct hfd_object *object;
        struct batch batch = {.n = 0};
        int r = 0;

        hfd_object_iter_init(&iter, snapshot, &all, "");
        while (r == 0 && (object = hfd_object_iter_next(&iter))) {
                if (hfd_custom_same_form(object->resource, row))
                        continue;
                struct hfd_object *formed = hfd_custom_object_reform(row, object);
                if (formed) {
                        batch.of[batch.n].old = object;
                        batch.of[batch.n++].formed = formed;
                } else if (hfd_object_check(row, object->bytes) != HF_E_INVALID) {
                        r = -ENOMEM;
                }
                if (batch.n == BATCH)
                        r = replace_batch(cacher, hfd_resource_index(row), &batch);
        }
        int r_last = replace_batch(cacher, hfd_resource_index(row), &batch);
        return r != 0 ? r : r_last;
}

int hfd_slot_form_set(struct hfd_cacher *cacher, const struct hfd_resource *row) {
        assert(row->custom);
        pthread_mutex_lock(&cacher->mu);
        const struct hfd_resource **at = &cacher->forms->rows[slot_number(row)], *old = *at;
        /* If the form is the same, the old row stays, so that objects do not keep several kinds in
         * memory. */
        bool same = old && hfd_custom_same_form(old, row);
        if (!same)
                *at = hfd_resource_ref(row);
        const struct hfd_resource *form = hfd_resource_ref(*at);
        struct hfd_object_tree snapshot =
                hfd_object_tree_snapshot(&cacher->trees[hfd_resource_index(row)]);
        pthread_mutex_unlock(&cacher->mu);
        if (!same)
                hfd_resource_unref(old);
        int r = form_objects(cacher, form, &snapshot);
        hfd_object_tree_clear(&snapshot);
        hfd_resource_unref(form);
        return r;
}

void hfd_slot_form_clear(struct hfd_cacher *cacher, const struct hfd_resource *slot) {
        pthread_mutex_lock(&cacher->mu);
        assert(slot->slot != 0);
        const struct hfd_resource **at = &cacher->forms->rows[slot_number(slot)], *old = *at;
        *at = NULL;
        pthread_mutex_unlock(&cacher->mu);
        hfd_resource_unref(old);
}

void hfd_slot_form_retire_kind(struct hfd_cacher *cacher, struct hfd_custom_kind *kind) {
        struct hfd_watcher *dirty = NULL;

        pthread_mutex_lock(&cacher->mu);
        atomic_store(&kind->retired, true);
        hfd_watchers_end_resource_locked(cacher, hfd_resource_index(&kind->storage->row), &dirty);
        pthread_mutex_unlock(&cacher->mu);
        hfd_watchers_deliver(dirty);
}

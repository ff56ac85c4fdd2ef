/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Collects the objects of a page. Selectors may have to parse an object, so this never runs under a
 * lock.
 *
 * Invariant: when a page is complete and more objects follow, `last` is the last path that was
 * examined, even if its object was not selected or is not valid. So the next page begins exactly
 * where this one ended, and a page without any object can be followed by others.
 */
#include "server/registry/list/list_page.h"

#include <assert.h>
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "server/resources/forms/conversion.h"
#include "server/resources/objects/object_key.h"
#include "server/resources/objects/stored_object.h"
#include "server/resources/rows/resource_table.h"
#include "server/storage/sealed.h"

void hfd_list_page_done(struct hfd_list_page *page) {
        for (size_t i = 0; i < page->n; i++)
                hfd_object_unref(page->objects[i]);
        free(page->objects);
        *page = (struct hfd_list_page){0};
}

/* Appends object with a new reference. False: out of memory, and page->failed is set. */
static bool add_object(struct hfd_list_page *page, struct hfd_object *object) {
        if (page->n == page->space) {
                size_t space = page->space ? page->space * 2 : 32;
                struct hfd_object **more = realloc(page->objects, space * sizeof *more);
                if (!more) {
                        page->failed = true;
                        return false;
                }
                page->objects = more;
                page->space = space;
        }
        page->objects[page->n++] = hfd_object_ref(object);
        return true;
}

/* Adds the object if it is selected. False: out of memory; the page has failed. */
static bool add_if_selected(struct hfd_list_page *page, const struct hfd_read *read,
                            struct hfd_object *object) {
        const struct hfd_options *o = &read->request->options;
        bool selected;
        int r = hfd_selector_matches(&o->labels, object, &selected);

        if (selected)
                r = hfd_selector_matches(&o->fields, object, &selected);
        if (r != 0)
                page->failed = true;
        return selected ? add_object(page, object) : r == 0;
}

static bool is_full(const struct hfd_list_page *page, const struct hfd_read *read) {
        uint64_t limit = read->request->options.limit;

        assert(!limit || page->n <= limit);
        return limit && page->n == limit;
}

static void set_last(struct hfd_list_page *page, const char *path) {
        (void)snprintf(page->last, sizeof page->last, "%s", path);
}

/* The page is full, and there are more objects. */
static void set_continuation(struct hfd_list_page *page, const struct hfd_read *read,
                             const struct hfd_snapshot *snapshot) {
        const struct hfd_options *o = &read->request->options;

        page->more = true;
        set_last(page, page->at->path);
        /* As in Kubernetes: with selectors, the number of remaining matches is not known. */
        page->has_remaining = !o->labels.n && !o->fields.n;
        if (page->has_remaining)
                page->n_remaining = hfd_object_tree_count(&snapshot->objects,
                                                          read->range->scope.prefix, page->last);
}

bool hfd_list_page_walk(struct hfd_list_page *page, const struct hfd_read *read,
                        const struct hfd_snapshot *snapshot, size_t n) {
        struct hfd_object_iter iter;
        bool complete = false;

        page->revision = snapshot->revision;
        hfd_object_iter_init(&iter, &snapshot->objects, &read->range->scope,
                             page->at ? page->at->path : read->range->start);
        for (size_t i = 0; i < n && !complete; i++) {
                struct hfd_object *object = hfd_object_iter_next(&iter);
                complete = !object || is_full(page, read);
                if (complete && object)
                        set_continuation(page, read, snapshot);
                if (complete)
                        break;
                complete = !add_if_selected(page, read, object); /* out of memory */
                page->at = object;
        }
        if (complete)
                page->at = NULL;
        return complete;
}

/* Adds one stored value if it is selected. An invalid one is skipped: the cacher does not serve it
 * either. */
static void add_stored(struct hfd_list_page *page, const struct hfd_read *read,
                       const struct hfd_kv *kv) {
        const char *path;
        struct hfd_custom_table *table = hfd_cacher_table(read->registry->cacher);
        const struct hfd_resource *resource = hfd_resource_stored(read->request->resource);
        const struct hfd_resource *of_key =
                hfd_object_key_parse(read->registry->prefix, table, kv->key, &path);

        if (!of_key || !hfd_resource_same(of_key, resource) || !kv->value)
                return;
        /* If the one object of an exact scope is missing, the store has returned another one, whose
         * name begins with its name. That one may be sealed. */
        if (read->range->scope.exact && strcmp(path, read->range->scope.prefix) != 0)
                return;
        set_last(page, path);
        struct hfd_object *object = hfd_stored_object_new(resource, path, kv);
        page->sealed = object ? NULL : hfd_kv_sealed(kv);
        if (!object && !page->sealed)
                page->failed = hfd_object_check(resource, kv->value) != HF_E_INVALID;
        else if (object)
                (void)add_if_selected(page, read, object);
        hfd_object_unref(object);
}

void hfd_list_page_from_store(struct hfd_list_page *page, const struct hfd_read *read,
                              const struct hfd_store_reply *reply) {
        size_t i = 0;

        page->revision = read->at ? read->at : reply->revision;
        for (; i < reply->n_kvs && !is_full(page, read) && !page->failed && !page->sealed; i++)
                add_stored(page, read, &reply->kvs[i]);
        page->more = (i < reply->n_kvs || reply->more) && *page->last && !read->range->scope.exact;
}

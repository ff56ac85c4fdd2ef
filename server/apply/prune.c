/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Removes the fields that a manager has given up. A manager that owns a part of a field that the
 * schema names, such as `spec`, owns the field too. This does not hold for the key of a map, or for
 * an element of a list.
 *
 *      the manager owned    others own    removed
 *      spec.x               spec.y        spec.x
 *      spec.x               -             spec, with all that is in it
 *      data.k, data.k.x     data.k        data.k.x
 *      data.k, data.k.x     data.k.y      data.k, with all that is in it
 *
 * Invariants:
 *
 *  - The walk goes down only where the manager owned fields, so its time depends only on the sizes
 *    of the objects and lists in which the manager owned something.
 *  - An element of a list that stays keeps its keys, even if nobody owns them. Without them it
 *    would be another element, or the list could not be divided. The next merge would then replace
 *    the list, and free the values to which *ret_emptied points.
 */
#include "server/apply/prune.h"

#include <assert.h>
#include <stdlib.h>
#include <string.h>

#include "base/arena.h"
#include "base/json.h"
#include "server/apply/shape.h"
#include "server/schema/schema.h"

/* An object or a list, and the sets of the fields in it. */
struct level {
        const struct hfd_schema *schema;
        const char *const *keys; /* the container is an element, which has these keys; or NULL */
        struct hf__json *container;
        const struct hfd_fields *last, *owned;
        bool was_owned; /* the manager owned a field that contains this level */
        /* A field that contains this level has lost its last owner: the manager owned that field,
         * or one around it, and nobody owns it now. */
        bool given_up;
        unsigned depth;
};

struct walk {
        struct hf__arena *scratch;
        struct hfd_emptied *emptied;
        bool removed; /* something was removed */
};

static void prune_level(struct walk *w, const struct level *level);

/* Whether a set owns the field: it is a member of the set or, if the schema names it, a part of it
 * is. */
static bool owns_field(const struct hfd_field *field, bool named) {
        return field && (field->member || (named && field->below));
}

/* Whether the value is an object or a list, with nothing in it. */
static bool is_empty(const struct hf__json *value) {
        return (hf__json_is_object(value) || hf__json_is_array(value)) && !hf__json_first(value);
}

static void add_emptied(struct walk *w, struct hf__json *container, struct hf__json *value) {
        assert(container && value);
        struct hfd_emptied *emptied = hf__arena_alloc(w->scratch, sizeof *emptied);

        if (!emptied)
                return;
        *emptied = (struct hfd_emptied){container, value, w->emptied};
        w->emptied = emptied;
}

/* Removes one member or element, or fields in it, or nothing. named: the schema names it. */
static void prune_child(struct walk *w, const struct level *level, const struct hfd_schema *schema,
                        struct hf__json *value, const struct hfd_step *step, bool named) {
        bool is_element = hf__json_is_array(level->container);
        const struct hfd_field *before = hfd_fields_find(level->last, step);
        const struct hfd_field *now = hfd_fields_find(level->owned, step);
        bool was_owned = owns_field(before, named);

        if (!before)
                return;
        struct level below = {.schema = schema,
                              .keys = is_element ? level->schema->list_keys : NULL,
                              .container = value,
                              .last = before->below,
                              .owned = now ? now->below : NULL,
                              .was_owned = level->was_owned || was_owned,
                              .depth = level->depth + 1};
        below.given_up = level->given_up || (below.was_owned && !owns_field(now, named));
        if (below.given_up && was_owned) {
                hf__json_free(hf__json_detach(level->container, value));
                w->removed = true;
                return;
        }
        if (!before->below || is_empty(value))
                return;
        prune_level(w, &below);
        if (is_empty(value)) /* it had contents, so the walk has removed them */
                add_emptied(w, level->container, value);
}

static int order_of_keys(const void *key, const void *element) {
        return strcmp(key, *(const char *const *)element);
}

/* Finds a key of an element among its keys, which are sorted. */
static bool is_key(const struct level *level, size_t n_keys, const char *key) {
        return n_keys > 0 && bsearch(key, level->keys, n_keys, sizeof *level->keys, order_of_keys);
}

static void prune_members(struct walk *w, const struct level *level) {
        size_t n_keys = 0;
        struct hf__json *next;

        while (level->keys && level->keys[n_keys])
                n_keys++;
        for (struct hf__json *m = hf__json_first(level->container); m; m = next) {
                const char *key = hf__json_key(m);
                const struct hfd_step step = {.kind = HFD_STEP_FIELD, .name = key};
                next = hf__json_next(m); /* m may be removed */
                if (!is_key(level, n_keys, key))
                        prune_child(w, level, hfd_schema_of_member(level->schema, key), m, &step,
                                    hfd_shape_is_named(level->schema, key));
        }
}

static void prune_level(struct walk *w, const struct level *level) {
        enum hfd_shape shape = hfd_shape_of(level->schema, level->container, level->depth);
        struct hfd_elements elements;

        if (shape == HFD_SHAPE_LIST &&
            hfd_shape_elements(w->scratch, level->schema, level->container, &elements, NULL) == 0)
                for (size_t i = 0; i < elements.n; i++)
                        prune_child(w, level, level->schema->items, elements.in_order[i].value,
                                    &elements.in_order[i].step, false);
        if (shape == HFD_SHAPE_OBJECT)
                prune_members(w, level);
}

bool hfd_prune(struct hf__arena *scratch, const struct hfd_schema *schema, struct hf__json *object,
               const struct hfd_fields *last, const struct hfd_fields *owned,
               struct hfd_emptied **ret_emptied) {
        struct walk w = {.scratch = scratch};
        const struct level root = {.schema = schema,
                                   .container = object,
                                   .last = last,
                                   .owned = owned};

        assert(object && ret_emptied);
        prune_level(&w, &root);
        *ret_emptied = w.emptied;
        return w.removed;
}

void hfd_prune_emptied(struct hfd_emptied *emptied) {
        for (; emptied; emptied = emptied->next)
                hf__json_free(hf__json_detach(emptied->container, emptied->value));
}

/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The walk that lists the fields of a value: all of them, or those that an applier owns. An applier
 * owns the leaves and the empty objects. It owns other objects, and lists that are divided into
 * elements (empty ones, too), only if the schema does not name the field: if they are elements of a
 * list, or stand under a key of a map. A field that the schema names, such as `spec`, belongs to
 * all managers that own a part of it.
 *
 * Invariant: the walk visits each value at most once, and recurses at most HFD_FIELDS_DEPTH times.
 */
#include "server/apply/owned_fields.h"

#include <assert.h>
#include <errno.h>

#include <holdfast/error.h>

#include "base/arena.h"
#include "base/json.h"
#include "base/strbuf.h"
#include "server/apply/shape.h"
#include "server/schema/schema.h"

/* The place of the walk, for messages. */
struct place {
        const struct place *up;
        const struct hfd_step *step;
};

struct walk {
        struct hfd_fields_builder builder;
        bool everything; /* hfd_owned_everything, not hfd_owned_by_applier */
        /* NULL: elements with the same step, or without one, are no error. A list with an element
         * without a step is then a leaf. */
        struct hf__strbuf *reason;
};

static int walk_value(struct walk *w, const struct hfd_schema *schema, const struct hf__json *value,
                      unsigned depth, const struct place *place,
                      const struct hfd_fields **ret_below);

static void put_place(const struct place *place, struct hf__strbuf *out) {
        if (!place)
                return;
        put_place(place->up, out);
        hfd_step_put_message(place->step, out);
}

/* If a list below has an element without a step, and the caller wants no error, the list is a leaf:
 * an update may have stored such a list, and every stored object must have a set. */
static int walk_object(struct walk *w, const struct hfd_schema *schema,
                       const struct hf__json *object, unsigned depth, const struct place *place) {
        for (const struct hf__json *m = hf__json_first(object); m; m = hf__json_next(m)) {
                const char *key = hf__json_key(m);
                const struct hfd_step step = {.kind = HFD_STEP_FIELD, .name = key};
                const struct place here = {place, &step};
                const struct hfd_schema *of_member = hfd_schema_of_member(schema, key);
                bool divided = hfd_shape_of(of_member, m, depth + 1) != HFD_SHAPE_LEAF;
                bool empty = hf__json_is_object(m) && !hf__json_first(m);
                const struct hfd_fields *below = NULL;
                int r = walk_value(w, of_member, m, depth + 1, &here, &below);
                if (r == HF_E_INVALID && !w->reason)
                        divided = false;
                else if (r != 0)
                        return r;
                hfd_fields_add(&w->builder, &step,
                               w->everything || !divided || empty ||
                                       !hfd_shape_is_named(schema, key),
                               below);
        }
        return 0;
}

static int refuse_duplicate(struct walk *w, const struct place *place,
                            const struct hfd_element *element) {
        if (w->reason) {
                put_place(place, w->reason);
                hf__strbuf_puts(w->reason, ": duplicate entries for key ");
                hfd_step_put_message(&element->step, w->reason);
        }
        return HF_E_INVALID;
}

static int list_elements(struct walk *w, const struct hfd_schema *schema,
                         const struct hf__json *list, const struct place *place,
                         struct hfd_elements *ret_elements) {
        struct hf__strbuf why = {0};
        int r = hfd_shape_elements(w->builder.scratch, schema, list, ret_elements,
                                   w->reason ? &why : NULL);

        if (r == HF_E_INVALID && w->reason) {
                put_place(place, w->reason);
                hf__strbuf_printf(w->reason, ": %s", why.data ? why.data : "");
        }
        hf__strbuf_done(&why);
        return r;
}

static int walk_list(struct walk *w, const struct hfd_schema *schema, const struct hf__json *list,
                     unsigned depth, const struct place *place) {
        struct hfd_elements elements;
        int r = list_elements(w, schema, list, place, &elements);

        for (size_t i = 0; r == 0 && i < elements.n; i++) {
                const struct hfd_element *element = &elements.in_order[i];
                const struct place here = {place, &element->step};
                const struct hfd_fields *below = NULL;
                if (!element->single && w->reason)
                        return refuse_duplicate(w, place, element);
                if (element->single)
                        r = walk_value(w, schema->items, element->value, depth + 1, &here, &below);
                if (r == HF_E_INVALID && !w->reason)
                        r = 0;
                if (r == 0)
                        hfd_fields_add(&w->builder, &element->step, true, below);
        }
        return r;
}

/* *ret_below: the set of the fields in value; NULL = there are none. */
static int walk_value(struct walk *w, const struct hfd_schema *schema, const struct hf__json *value,
                      unsigned depth, const struct place *place,
                      const struct hfd_fields **ret_below) {
        size_t level = hfd_fields_open(&w->builder);
        enum hfd_shape shape = hfd_shape_of(schema, value, depth);
        int r = 0;

        if (shape == HFD_SHAPE_OBJECT)
                r = walk_object(w, schema, value, depth, place);
        else if (shape == HFD_SHAPE_LIST)
                r = walk_list(w, schema, value, depth, place);
        *ret_below = hfd_fields_close(&w->builder, level);
        if (r != 0)
                *ret_below = NULL;
        return w->builder.scratch->failed ? -ENOMEM : r;
}

int hfd_owned_by_applier(struct hf__arena *scratch, const struct hfd_schema *schema,
                         const struct hf__json *value, const struct hfd_fields **ret_fields,
                         struct hf__strbuf *reason) {
        struct walk w = {.builder = {.scratch = scratch}, .reason = reason};

        assert(scratch && ret_fields);
        return walk_value(&w, schema, value, 0, NULL, ret_fields);
}

const struct hfd_fields *hfd_owned_everything(struct hf__arena *scratch,
                                              const struct hfd_schema *schema,
                                              const struct hf__json *value, unsigned depth) {
        struct walk w = {.builder = {.scratch = scratch}, .everything = true};
        const struct hfd_fields *fields = NULL;

        (void)walk_value(&w, schema, value, depth, NULL, &fields); /* failures are in scratch */
        return fields;
}

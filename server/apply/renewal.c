/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Walks through both versions of an object side by side.
 *
 * Invariants:
 *
 *  - The result agrees with that of ownership.c, which makes the sets. In doubt it is "not
 *    certain", which costs only time.
 *  - The time is linear. A member at another position than before is searched for, and so is the
 *    entry of a value that differs in the managers' sets; but only LOOKUPS_MAX times in all.
 */
#include "server/apply/renewal.h"

#include <string.h>

#include "base/json.h"
#include "server/apply/managers.h"
#include "server/apply/reconcile.h"
#include "server/apply/shape.h"
#include "server/apply/unowned.h"
#include "server/schema/schema.h"

#define MANAGERS_MAX 8 /* less than HFD_UPDATE_MANAGERS_MAX, so that none must be joined */
#define LOOKUPS_MAX  32
#define DEPTH_MAX    16

struct walk {
        const struct hf__json *list; /* of live; not compared */
        struct hfd_manager managers[MANAGERS_MAX];
        const struct hf__json *sets[MANAGERS_MAX]; /* their FieldsV1 */
        size_t n, self;                            /* self == n: the writer is none of them */
        const char *path[DEPTH_MAX];               /* the keys that lead to the value */
        unsigned depth, n_lookups;
        bool changed, is_renewed;
};

/* ---- the managers before ---- */

/* Whether the set consists of names only, and the schema divides every value below which it has
 * fields. Such a set is valid, and reconciliation does not change it. */
static bool is_settled(const struct hfd_schema *schema, const struct hf__json *set,
                       unsigned depth) {
        if (!hf__json_is_object(set) || depth >= DEPTH_MAX)
                return false;
        for (const struct hf__json *m = hf__json_first(set); m; m = hf__json_next(m)) {
                const char *key = hf__json_key(m);
                bool is_self = key[0] == '.' && key[1] == '\0';
                if (!hf__json_is_object(m) || (!is_self && (key[0] != 'f' || key[1] != ':')))
                        return false;
                if (!hf__json_first(m))
                        continue;
                const struct hfd_schema *below = hfd_schema_of_member(schema, key + 2 * !is_self);
                if (is_self || hfd_reconcile_is_whole(below) || !is_settled(below, m, depth + 1))
                        return false;
        }
        return true;
}

/* Whether manager i comes after manager i - 1 in the order of the list, and is none of those before
 * it. */
static bool follows(const struct walk *w, size_t i) {
        for (size_t k = 0; k < i; k++)
                if (hfd_manager_is_same(&w->managers[k], &w->managers[i]))
                        return false;
        return i == 0 || hfd_managers_order_in_list(&w->managers[i - 1], &w->managers[i]) < 0;
}

static bool read_managers(struct walk *w, const struct hfd_schema *schema,
                          const struct hfd_manager *self) {
        if (!hf__json_is_array(w->list))
                return false;
        for (struct hf__json *m = hf__json_first(w->list); m; m = hf__json_next(m), w->n++) {
                const struct hf__json *set = hf__json_get(m, "fieldsV1");
                if (w->n == MANAGERS_MAX || hfd_manager_decode(m, &w->managers[w->n]) != 0 ||
                    !w->managers[w->n].time || !follows(w, w->n) || !hf__json_first(set) ||
                    !is_settled(schema, set, 0))
                        return false;
                w->sets[w->n] = set;
        }
        w->self = w->n;
        for (size_t i = 0; i < w->n; i++)
                if (hfd_manager_is_same(&w->managers[i], self))
                        w->self = i;
        return w->n > 0;
}

/* ---- the changes ---- */

/* The entry for the current path in a set; NULL = there is none. */
static const struct hf__json *find_path(const struct walk *w, const struct hf__json *set) {
        for (unsigned i = 0; set && i < w->depth; i++) {
                const struct hf__json *m = hf__json_first(set);
                /* A settled set has only the keys "." and "f:NAME". */
                while (m &&
                       (hf__json_key(m)[0] != 'f' || strcmp(hf__json_key(m) + 2, w->path[i]) != 0))
                        m = hf__json_next(m);
                set = m;
        }
        return set;
}

/* Handles a value that differs. True: every manager may still have the same fields as before. The
 * writer alone owns the value, or the value is one of the unowned fields and nobody owns it. */
static bool may_change(struct walk *w) {
        bool unowned = hfd_unowned_has(w->path, w->depth);

        w->changed = true;
        w->is_renewed = w->is_renewed || !unowned;
        if ((!unowned && w->self == w->n) || ++w->n_lookups > LOOKUPS_MAX)
                return false;
        for (size_t i = 0; i < w->n; i++) {
                const struct hf__json *entry = find_path(w, w->sets[i]);
                bool owns = i == w->self && !unowned;
                if (owns ? !entry || (hf__json_first(entry) && !hf__json_get(entry, "."))
                         : entry != NULL)
                        return false;
        }
        return true;
}

static bool compare_objects(struct walk *w, const struct hfd_schema *schema,
                            const struct hf__json *old, const struct hf__json *new);

/* Compares two members of objects; the path leads to them. schema: that of the objects. */
static bool compare_members(struct walk *w, const struct hfd_schema *schema,
                            const struct hf__json *old, const struct hf__json *new) {
        bool has_parts = hf__json_first(old) || hf__json_first(new);

        if (!has_parts && !hf__json_is_object(old) && !hf__json_is_object(new) &&
            !hf__json_is_array(old) && !hf__json_is_array(new)) /* as most values */
                return hf__json_equal(old, new) || may_change(w);
        schema = hfd_schema_of_member(schema, w->path[w->depth - 1]);
        enum hfd_shape shape = hfd_shape_of(schema, old, w->depth);
        if (shape != hfd_shape_of(schema, new, w->depth))
                return false;
        if (shape == HFD_SHAPE_OBJECT)
                return compare_objects(w, schema, old, new);
        return hf__json_equal(old, new) || (shape == HFD_SHAPE_LEAF && may_change(w));
}

/* False: not certain, for example because one of them has another member. */
static bool compare_objects(struct walk *w, const struct hfd_schema *schema,
                            const struct hf__json *old, const struct hf__json *new) {
        const struct hf__json *next = hf__json_first(new);
        size_t n = 0;

        if (w->depth == DEPTH_MAX)
                return false;
        w->depth++;
        for (const struct hf__json *m = hf__json_first(old); m; m = hf__json_next(m)) {
                const char *key = hf__json_key(m);
                if (m == w->list)
                        continue;
                if (!next || strcmp(hf__json_key(next), key) != 0)
                        next = ++w->n_lookups > LOOKUPS_MAX ? NULL : hf__json_get(new, key);
                w->path[w->depth - 1] = key;
                if (!next || !compare_members(w, schema, m, next))
                        return false;
                next = hf__json_next(next);
                n++;
        }
        w->depth--;
        return hf__json_count(new) == n;
}

/* Whether the renewed entry keeps its position, which depends on the times. */
static bool keeps_position(struct walk *w, const struct hfd_manager *self) {
        w->managers[w->self].time = self->time;
        return follows(w, w->self) && w->self + 1 == w->n;
}

bool hfd_renewal_find(const struct hfd_schema *schema, const struct hf__json *live,
                      const struct hf__json *object, const struct hf__json *list,
                      const struct hfd_manager *self, struct hfd_renewal *ret_renewal) {
        struct walk w = {.list = list};

        if (!read_managers(&w, schema, self) || !compare_objects(&w, schema, live, object) ||
            (w.is_renewed && !keeps_position(&w, self)))
                return false;
        *ret_renewal = (struct hfd_renewal){.changed = w.changed,
                                            .is_renewed = w.is_renewed,
                                            .self = w.self};
        return true;
}

/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Decides whether a write leaves the fields of all managers as they are, by a walk through both
 * versions of the object side by side. Such writes are frequent, and making the sets costs much
 * more than this walk.
 *
 * Invariants:
 *
 *  - The result agrees with that of ownership.c, which makes the sets. In doubt it is "not
 *    certain", which costs only time.
 *  - The time is linear. A member at another position than before is searched for, and a value that
 *    differs is looked up in the sets of the managers; both together only LOOKUPS_MAX times.
 */
#include "server/apply/renewal.h"

#include <assert.h>
#include <string.h>

#include "base/arena.h"
#include "base/json.h"
#include "server/apply/sets/unowned.h"
#include "server/apply/settled.h"
#include "server/apply/shape.h"
#include "server/schema/schema.h"

#define LOOKUPS_MAX 32
#define DEPTH_MAX   HFD_SETTLED_DEPTH

struct walk {
        const struct hf__json *list; /* of live; not compared */
        struct hfd_settled settled;
        size_t self;                 /* the writer's index in settled; settled.n: it has none */
        const char *path[DEPTH_MAX]; /* the keys that lead to the value */
        unsigned depth, n_lookups;
        bool changed, is_renewed;
};

/* Whether a set has the value to which an entry leads, and not only parts of it. */
static bool is_owned(const struct hfd_settled_name *entry) {
        for (size_t i = 1; i <= entry->n_below; i += 1 + entry[i].n_below)
                if (entry[i].key[0] == '.')
                        return true;
        return entry->n_below == 0;
}

/* Handles a value that differs. True: every manager keeps its fields, because the writer alone owns
 * the value, or because the value is one of the unowned fields and nobody owns it. */
static bool may_change(struct walk *w) {
        bool unowned = hfd_unowned_has(w->path, w->depth);

        w->changed = true;
        w->is_renewed = w->is_renewed || !unowned;
        if ((!unowned && w->self == w->settled.n) || ++w->n_lookups > LOOKUPS_MAX)
                return false;
        for (size_t i = 0; i < w->settled.n; i++) {
                const struct hfd_settled_name *entry =
                        hfd_settled_find(&w->settled, i, w->path, w->depth);
                bool owns = i == w->self && !unowned;
                if (owns ? !entry || !is_owned(entry) : entry != NULL)
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
            !hf__json_is_array(old) &&
            !hf__json_is_array(new)) /* scalars, whatever the schema says */
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
        assert(w->depth > 0);
        w->depth--;
        return hf__json_count(new) == n;
}

/* Whether the renewed entry keeps its position, which depends on the times. Sets the writer's time
 * to that of the write, so a caller that needs the previous time reads it first. */
static bool keeps_position(struct walk *w, const struct hfd_manager *self) {
        w->settled.managers[w->self].time = self->time;
        /* With the time of this write, only the last entry is sure not to move behind others. */
        return hfd_settled_follows(&w->settled, w->self) && w->self + 1 == w->settled.n;
}

/* The position of the writer among the managers; their number = it is none of them. */
static size_t find_self(const struct hfd_settled *settled, const struct hfd_manager *self) {
        size_t i = 0;

        while (i < settled->n && !hfd_manager_is_same(&settled->managers[i], self))
                i++;
        return i;
}

static bool find_renewal(struct walk *w, const struct hfd_schema *schema,
                         const struct hf__json *live, const struct hf__json *object,
                         const struct hfd_manager *self, struct hfd_renewal *ret_renewal) {
        struct hfd_renewal renewal = {0};

        w->self = find_self(&w->settled, self);
        if (!compare_objects(w, schema, live, object))
                return false;
        renewal.changed = w->changed;
        renewal.is_renewed = w->is_renewed;
        if (w->is_renewed) {
                renewal.self = w->self;
                renewal.time_at = w->settled.times[w->self];
                renewal.n_time = strlen(w->settled.managers[w->self].time);
                if (!keeps_position(w, self))
                        return false;
        }
        *ret_renewal = renewal;
        return true;
}

bool hfd_renewal_find(const struct hfd_schema *schema, const struct hf__json *live,
                      const struct hf__json *object, const struct hf__json *list, const char *text,
                      size_t n, const struct hfd_manager *self, struct hfd_renewal *ret_renewal) {
        struct walk w; /* its managers are not initialized, for speed */
        struct hf__arena scratch;

        assert(live && object && text);
        hf__arena_init(&scratch);
        w.list = list;
        w.depth = w.n_lookups = 0;
        w.changed = w.is_renewed = false;
        bool found = hfd_settled_read(&scratch, schema, text, n, &w.settled) &&
                     find_renewal(&w, schema, live, object, self, ret_renewal);
        hf__arena_deinit(&scratch);
        return found;
}

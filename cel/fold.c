/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The loops of macros.
 *
 * Invariant: each round costs as much as a round of the general loop into which Kubernetes expands
 * the macro, so that the costs agree. It also counts as work, so that no range is walked for free.
 */
#include "cel/fold.h"

#include <assert.h>
#include <string.h>

#include "cel/charge.h"
#include "cel/functions/list_order.h"

/* One evaluation of a macro. */
struct loop {
        struct hf__cel_run *run;
        const struct hf__cel_node *node;
        hf__cel_eval_function *eval;
        struct hf__cel_value range;
        size_t n;
        struct hf__cel_value key; /* of the element, or its index */
        struct hf__cel_value element;
};

/* Sets the variables of round i. Each round counts as work, because the cost of a round can be 0,
 * as in list.filter(x, false). false: the run has failed. */
static bool enter_iteration(struct loop *l, size_t i) {
        struct hf__cel_value *locals = l->run->locals + l->node->as.fold.slot;

        if (!hf__cel_work(l->run, 1))
                return false;
        if (l->range.kind == HF__CEL_LIST) {
                l->key = hf__cel_int((int64_t)i);
                l->element = hf__cel_list_at(l->range.as.list, i);
        } else {
                struct hf__cel_entry entry = hf__cel_map_at(l->range.as.map, i);

                l->key = entry.key;
                l->element = entry.value;
        }
        if (l->node->as.fold.variables[1].text) {
                locals[0] = l->key;
                locals[1] = l->element;
        } else {
                /* By the language definition a macro with one variable goes through the keys of a
                 * map. */
                locals[0] = l->range.kind == HF__CEL_LIST ? l->element : l->key;
        }
        return true;
}

/* The value of the test, a bool or an error; true if the macro has no test. An error is returned as
 * a value, because all and exists may absorb it. */
static struct hf__cel_value test_element(struct loop *l) {
        struct hf__cel_value value = hf__cel_bool(true);

        if (l->node->as.fold.test)
                value = l->eval(l->run, l->node->as.fold.test);
        if (value.kind != HF__CEL_BOOL && !hf__cel_is_error(value))
                return hf__cel_error_text("no such overload");
        return value;
}

/* Evaluates the macros all and exists. They are a chain of && or ||: an element that decides
 * absorbs the errors of others, also of those before it. */
static struct hf__cel_value quantify_elements(struct loop *l, bool decisive) {
        struct hf__cel_value error = hf__cel_null();

        for (size_t i = 0; i < l->n; i++) {
                struct hf__cel_value value;

                if (!enter_iteration(l, i))
                        return hf__cel_failure(l->run);
                value = test_element(l);
                /* Kubernetes makes a loop of the macro, with an accumulator: it pays for the
                 * condition and the step of each round. These parts do not exist here, so their
                 * costs are constants. The condition costs 2 (exists: 3, for a negation), the step
                 * and the result 1 each, to read the accumulator. An element that decides makes the
                 * condition end the loop, so the condition and the result are left to pay. */
                if (!hf__cel_spend(l->run, decisive ? 4 : 3))
                        return hf__cel_failure(l->run);
                if (value.kind == HF__CEL_BOOL && value.as.boolean == decisive) {
                        hf__cel_spend(l->run, decisive ? 4 : 3);
                        return value;
                }
                /* The first error counts if no element decides, as in cel-go's accumulator. */
                if (hf__cel_is_error(value) && !hf__cel_is_error(error))
                        error = value;
        }
        hf__cel_spend(l->run, 1);
        return hf__cel_is_error(error) ? error : hf__cel_bool(!decisive);
}

/* An error of the test ends the macro. In all and exists it does not, because there one element can
 * decide the result; here each further element could change it. A hit costs 2, to read the counter
 * and add 1; so does the result, which compares the counter with 1. */
static struct hf__cel_value exists_one(struct loop *l) {
        size_t found = 0;

        for (size_t i = 0; i < l->n; i++) {
                struct hf__cel_value value;

                if (!enter_iteration(l, i))
                        return hf__cel_failure(l->run);
                value = test_element(l);
                if (hf__cel_is_error(value))
                        return value;
                found += value.as.boolean;
                if (!hf__cel_spend(l->run, value.as.boolean ? 2 : 0))
                        return hf__cel_failure(l->run);
        }
        hf__cel_spend(l->run, 2);
        return hf__cel_bool(found == 1);
}

/* Makes the list of map, transformList or filter, or the keys of sortBy. 12 is the cost of the
 * accumulator's step in Kubernetes: reading the list (1), a list of one element (10), and the sum
 * (1). A filter also reads the element (1). At the end the result is read (1). The list is not
 * copied for each element here, so the time stays linear. */
static struct hf__cel_value make_list(struct loop *l) {
        bool filter = l->node->op == HF__CEL_FOLD_FILTER;
        struct hf__cel_value *items;
        struct hf__cel_value list = hf__cel_new_list(l->run, l->n, &items);
        size_t n = 0;

        if (hf__cel_is_error(list))
                return list;
        for (size_t i = 0; i < l->n; i++) {
                struct hf__cel_value value;

                if (!enter_iteration(l, i))
                        return hf__cel_failure(l->run);
                value = test_element(l);
                if (hf__cel_is_error(value))
                        return value;
                if (!hf__cel_spend(l->run, value.as.boolean ? 12 : 0))
                        return hf__cel_failure(l->run);
                if (!value.as.boolean)
                        continue;
                if (filter)
                        hf__cel_spend(l->run, 1);
                value = filter ? l->run->locals[l->node->as.fold.slot]
                               : l->eval(l->run, l->node->as.fold.result);
                if (hf__cel_is_error(value))
                        return value;
                items[n++] = value;
        }
        hf__cel_spend(l->run, 1);
        return n == l->n ? list : hf__cel_sublist(l->run, list.as.list, 0, n);
}

/* The keys are computed once for each element, and sorted beside the elements. An order that asked
 * for keys again and again would evaluate the expression n log n times. */
static struct hf__cel_value sort_by(struct loop *l) {
        struct hf__cel_value keys = make_list(l);

        if (hf__cel_is_error(keys))
                return keys;
        if (l->range.kind != HF__CEL_LIST)
                return hf__cel_error_text("no such overload");
        /* Kubernetes reads the list twice more from a variable of its own. */
        if (!hf__cel_spend(l->run, 2) || !hf__cel_charge_pairs(l->run, keys.as.list))
                return hf__cel_failure(l->run);
        return hf__cel_sort_by(l->run, l->range.as.list, keys.as.list);
}

/* The entries that a macro has made so far. Their number is not known before: a test leaves some
 * out, and transformMapEntry may make several in a round. */
struct entries {
        struct hf__cel_entry *items;
        size_t n;
        size_t space;
};

/* Adds an entry. false: the run has failed. */
static bool add_entry(struct hf__cel_run *run, struct entries *entries,
                      struct hf__cel_entry entry) {
        if (entries->n == entries->space) {
                /* The old array stays in the arena until the run ends. As the space doubles, all
                 * old arrays together take less memory than the new one. */
                size_t space = entries->space > 0 ? entries->space * 2 : 8;
                struct hf__cel_entry *items = hf__cel_alloc(run, space * sizeof *items);

                if (!items)
                        return false;
                if (entries->n > 0)
                        memcpy(items, entries->items, entries->n * sizeof *items);
                entries->items = items;
                entries->space = space;
        }
        assert(entries->n < entries->space);
        entries->items[entries->n++] = entry;
        return hf__cel_work(run, 1);
}

/* Adds what a round of transformMap or transformMapEntry yields. Returns the error, or null. Null
 * does not mean success: if add_entry fails the run, the caller learns that from run->failed. */
static struct hf__cel_value add_result(struct loop *l, struct entries *entries) {
        struct hf__cel_value value = l->eval(l->run, l->node->as.fold.result);

        if (hf__cel_is_error(value))
                return value;
        if (l->node->op == HF__CEL_FOLD_MAP) {
                add_entry(l->run, entries, (struct hf__cel_entry){.key = l->key, .value = value});
                return hf__cel_null();
        }
        if (value.kind != HF__CEL_MAP)
                return hf__cel_error_text("no such overload");
        for (size_t i = 0; i < value.as.map->n; i++)
                if (!add_entry(l->run, entries, hf__cel_map_at(value.as.map, i)))
                        break;
        return hf__cel_null();
}

/* A key that transformMapEntry makes twice is an error. A step in Kubernetes reads the map, and
 * calls the function that adds to it (2); transformMap also reads the key (1). */
static struct hf__cel_value make_map(struct loop *l) {
        struct entries entries = {0};

        for (size_t i = 0; i < l->n; i++) {
                struct hf__cel_value value;

                if (!enter_iteration(l, i))
                        return hf__cel_failure(l->run);
                value = test_element(l);
                if (hf__cel_is_error(value))
                        return value;
                if (!value.as.boolean)
                        continue;
                value = add_result(l, &entries);
                if (!hf__cel_spend(l->run, l->node->op == HF__CEL_FOLD_MAP ? 3 : 2))
                        return hf__cel_failure(l->run);
                if (hf__cel_is_error(value))
                        return value;
        }
        hf__cel_spend(l->run, 1);
        if (l->run->failed != 0)
                return hf__cel_failure(l->run);
        if (l->node->op == HF__CEL_FOLD_MAP)
                return hf__cel_new_map(l->run, entries.items, entries.n);
        return hf__cel_join_maps(l->run, entries.items, entries.n);
}

/* optMap and optFlatMap are macros with one variable, and no loop: an optional has at most one
 * element. If the optional is empty, it is the result, and the expression of the macro is not
 * evaluated. Beside that expression the macro costs 1, which differs from Kubernetes by a few units
 * (docs/cel.md). */
static struct hf__cel_value map_optional(struct loop *l) {
        struct hf__cel_value value;

        if (l->range.kind != HF__CEL_OPTIONAL)
                return hf__cel_error_text("no such overload");
        if (!hf__cel_spend(l->run, 1))
                return hf__cel_failure(l->run);
        if (!l->range.as.optional)
                return l->range;
        l->run->locals[l->node->as.fold.slot] = *l->range.as.optional;
        value = l->eval(l->run, l->node->as.fold.result);
        if (l->node->op == HF__CEL_FOLD_OPT_MAP)
                return hf__cel_optional_of(l->run, value);
        if (value.kind == HF__CEL_OPTIONAL || hf__cel_is_error(value))
                return value;
        return hf__cel_error_text("no such overload");
}

static struct hf__cel_value run_loop(struct loop *l) {
        switch ((enum hf__cel_fold)l->node->op) {
        case HF__CEL_FOLD_ALL: return quantify_elements(l, false);
        case HF__CEL_FOLD_EXISTS: return quantify_elements(l, true);
        case HF__CEL_FOLD_EXISTS_ONE: return exists_one(l);
        case HF__CEL_FOLD_LIST:
        case HF__CEL_FOLD_FILTER: return make_list(l);
        case HF__CEL_FOLD_SORT: return sort_by(l);
        case HF__CEL_FOLD_MAP:
        case HF__CEL_FOLD_MAP_ENTRY: return make_map(l);
        case HF__CEL_FOLD_OPT_MAP:
        case HF__CEL_FOLD_OPT_FLAT_MAP: break;
        }
        return map_optional(l);
}

/* The error about a range that cannot be iterated. It names the type, if that is one of `names`, as
 * Kubernetes does. */
static struct hf__cel_value not_iterable(struct hf__cel_run *run, struct hf__cel_value range) {
        static const char *const names[] = {
                [HF__CEL_BOOL] = "Bool",         [HF__CEL_INT] = "Int",
                [HF__CEL_UINT] = "Uint",         [HF__CEL_DOUBLE] = "Double",
                [HF__CEL_STRING] = "String",     [HF__CEL_BYTES] = "Bytes",
                [HF__CEL_DURATION] = "Duration", [HF__CEL_TIMESTAMP] = "Timestamp",
                [HF__CEL_NULL] = "Null",
        };
        size_t n = sizeof names / sizeof names[0];
        const char *name = range.kind < n ? names[range.kind] : NULL;

        if (!name)
                return hf__cel_error_text("no such overload");
        return hf__cel_errorf(run, "got 'types.%s', expected iterable type", name);
}

struct hf__cel_value hf__cel_eval_fold(struct hf__cel_run *run, const struct hf__cel_node *node,
                                       hf__cel_eval_function *eval) {
        assert(node->kind == HF__CEL_NODE_FOLD);
        struct loop l = {.run = run, .node = node, .eval = eval};
        struct hf__cel_value value;

        l.range = eval(run, node->as.fold.range);
        if (hf__cel_is_error(l.range))
                return l.range;
        /* A macro over an object goes through its fields, as over the keys of a map. map_optional
         * checks the range of optMap and optFlatMap. */
        if (l.range.kind == HF__CEL_LIST)
                l.n = l.range.as.list->n;
        else if (l.range.kind == HF__CEL_MAP || l.range.kind == HF__CEL_OBJECT)
                l.n = l.range.as.map->n;
        else if (node->op != HF__CEL_FOLD_OPT_MAP && node->op != HF__CEL_FOLD_OPT_FLAT_MAP)
                return not_iterable(run, l.range);
        value = run_loop(&l);
        return run->failed != 0 ? hf__cel_failure(run) : value;
}

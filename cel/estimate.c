/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Estimates the largest cost of an expression.
 *
 * Invariants: a CustomResourceDefinition that Kubernetes accepts must be accepted here, so costs
 * and sizes are computed as there, even where that is odd: a field or an element of a value that
 * comes from no variable gets the sizes of the first variable. A macro costs as much as the general
 * loop into which Kubernetes expands it.
 */
#include "cel/estimate.h"

#include <assert.h>
#include <math.h>
#include <string.h>

#include "base/arena.h"
#include "base/utf8.h"
#include "cel/values/function.h"

/* The costs and the factor are those of cel-go's cost estimator and of Kubernetes' additions to it.
 * They must not be refined (see the top of this file). */
#define COST_OF_LIST   10
#define COST_OF_MAP    30
#define COST_OF_OBJECT 40
#define TEXT_FACTOR    0.1
#define FORMAT_SIZE    64 /* the largest size of a named format */

/* Only the largest sizes decide about the cost. The smallest ones are computed as well, because
 * functions such as replace make long texts of short parts. */
struct estimator {
        const struct hf__cel_declarations *declarations;
        struct hf__cel_estimate *locals; /* by slot: the variables of the macros around the node */
};

enum part { KEYS, INDEXES, ELEMENTS };

static struct hf__cel_estimate estimate_node(struct estimator *e, const struct hf__cel_node *node);

/* Sums and products that do not fit become UINT64_MAX, which means that there is no bound. */
uint64_t hf__cel_cost_sum(uint64_t a, uint64_t b) {
        return a > UINT64_MAX - b ? UINT64_MAX : a + b;
}

uint64_t hf__cel_cost_product(uint64_t a, uint64_t b) {
        return b != 0 && a > UINT64_MAX / b ? UINT64_MAX : a * b;
}

/* The product is computed in double precision and rounded up, as in cel-go, so sizes near 2^64
 * become inexact in the same way. */
uint64_t hf__cel_cost_factor(uint64_t size, double factor) {
        double product = ceil((double)size * factor);

        return product >= 0x1p64 ? UINT64_MAX : (uint64_t)product;
}

struct hf__cel_size hf__cel_size_union(struct hf__cel_size a, struct hf__cel_size b) {
        return (struct hf__cel_size){.min = a.min < b.min ? a.min : b.min,
                                     .max = a.max > b.max ? a.max : b.max};
}

struct hf__cel_size hf__cel_size_or_any(const struct hf__cel_estimate *estimate) {
        return estimate->has_size ? estimate->size : (struct hf__cel_size){0, UINT64_MAX};
}

static struct hf__cel_size exact_size(uint64_t n) { return (struct hf__cel_size){n, n}; }

/* ---- paths ---- */

/* The path of a field or an element of a value that comes from no variable. Kubernetes looks sizes
 * up by the names of a path. It cuts off the first name, which it takes for that of the root, the
 * first variable. Here the path has no other name, so Kubernetes finds the root. Its estimates
 * depend on that, so this file does the same. */
static struct hf__cel_path first_variable(const struct estimator *e) {
        if (e->declarations->n_variables == 0)
                return (struct hf__cel_path){.state = HF__CEL_PATH_LOST};
        return (struct hf__cel_path){HF__CEL_PATH_AT, e->declarations->variables[0].type};
}

static struct hf__cel_path field_of(const struct estimator *e, struct hf__cel_path path,
                                    const struct hf__cel_name *name) {
        const struct hf__cel_type *type = NULL;

        if (path.state == HF__CEL_PATH_NONE)
                return first_variable(e);
        if (path.state == HF__CEL_PATH_AT && path.type->kind == HF__CEL_OBJECT)
                type = hf__cel_type_field(path.type, name->text, name->n);
        return (struct hf__cel_path){type ? HF__CEL_PATH_AT : HF__CEL_PATH_LOST, type};
}

/* A path is lost when a step leads to no declared part. The size of the part is then not known,
 * unless it is a scalar, and the estimate assumes the largest. */
static struct hf__cel_path part_of(const struct estimator *e, struct hf__cel_path path,
                                   enum part part) {
        const struct hf__cel_type *type = NULL;

        if (path.state == HF__CEL_PATH_NONE)
                return first_variable(e);
        if (path.state == HF__CEL_PATH_AT && path.type->n_params > 0 && part == ELEMENTS)
                type = path.type->params[path.type->n_params - 1];
        if (path.state == HF__CEL_PATH_AT && path.type->n_params == 2 && part == KEYS)
                type = path.type->params[0];
        return (struct hf__cel_path){type ? HF__CEL_PATH_AT : HF__CEL_PATH_LOST, type};
}

/* ---- sizes ---- */

/* Scalars have the size 1. Everything else may be of any size, unless a declaration limits it. */
static bool is_scalar(const struct hf__cel_type *type) {
        enum hf__cel_kind kind =
                type->kind == HF__CEL_OPTIONAL ? type->params[0]->kind : type->kind;

        return kind == HF__CEL_BOOL || kind == HF__CEL_INT || kind == HF__CEL_UINT ||
               kind == HF__CEL_DOUBLE || kind == HF__CEL_TIMESTAMP || kind == HF__CEL_DURATION;
}

/* Sets the size of a node that has none yet: that of its declared type, or 1 for a scalar. */
static void set_size(struct hf__cel_estimate *result) {
        const struct hf__cel_type *type = result->node->type;

        if (result->has_size)
                return;
        if (result->path.state == HF__CEL_PATH_AT) {
                result->has_size = true;
                result->size = (struct hf__cel_size){0, result->path.type->max_size};
        } else if (is_scalar(type)) {
                result->has_size = true;
                result->size = exact_size(1);
        }
}

static void give_size(struct hf__cel_estimate *result, struct hf__cel_size size) {
        result->has_size = true;
        result->size = size;
}

/* ---- nodes ---- */

static void estimate_const(struct hf__cel_estimate *result) {
        struct hf__cel_value value = result->node->as.constant;

        if (value.kind == HF__CEL_STRING)
                give_size(result, exact_size(hf__utf8_count(value.as.text, value.n)));
        else if (value.kind == HF__CEL_BYTES)
                give_size(result, exact_size(value.n));
        else if (value.kind != HF__CEL_TYPE)
                give_size(result, exact_size(1));
        if (value.kind == HF__CEL_TYPE)
                result->cost = 1; /* in Kubernetes a type is a name, and to read a name costs 1 */
}

static void estimate_name(struct estimator *e, struct hf__cel_estimate *result) {
        uint32_t slot = result->node->as.name.slot;

        if (result->node->as.name.scope == HF__CEL_SCOPE_LOCAL) {
                const struct hf__cel_node *node = result->node;

                *result = e->locals[slot];
                result->node = node;
                /* The declared size, or the 1 of a scalar, replaces what the macro computed. */
                if (result->path.state == HF__CEL_PATH_AT || is_scalar(node->type))
                        result->has_size = false;
        } else {
                result->path = (struct hf__cel_path){HF__CEL_PATH_AT,
                                                     e->declarations->variables[slot].type};
                /* An optional variable has the sizes of what it holds. */
                if (result->path.type->kind == HF__CEL_OPTIONAL)
                        result->path.type = result->path.type->params[0];
        }
        result->cost = 1;
}

static void estimate_select(struct estimator *e, struct hf__cel_estimate *result) {
        const struct hf__cel_node *node = result->node;
        struct hf__cel_estimate operand = estimate_node(e, node->as.select.operand);
        enum hf__cel_kind kind = node->as.select.operand->type->kind;

        /* has() only tests the field, which Kubernetes does not charge. */
        result->cost = operand.cost;
        if (node->kind == HF__CEL_NODE_HAS)
                return;
        if (node->optional) {
                result->cost = hf__cel_cost_sum(result->cost, 1);
                return;
        }
        /* cel-go names these kinds, so a field of a dyn is free in the estimate, though it costs 1
         * when it is evaluated. */
        if (kind == HF__CEL_MAP || kind == HF__CEL_OBJECT || kind == HF__CEL_VAR)
                result->cost = hf__cel_cost_sum(result->cost, 1);
        result->path = field_of(e, operand.path, &node->as.select.field);
}

/* With elements, the smallest size starts at the largest number, so that the elements determine it.
 * Their sizes are kept for a macro over this list, and for an index of it. */
static void estimate_list(struct estimator *e, struct hf__cel_estimate *result) {
        const struct hf__cel_node *node = result->node;

        result->cost = COST_OF_LIST;
        result->has_parts = true;
        result->key = exact_size(1);
        result->element = (struct hf__cel_size){node->as.list.n > 0 ? UINT64_MAX : 0, 0};
        for (uint32_t i = 0; i < node->as.list.n; i++) {
                struct hf__cel_estimate item = estimate_node(e, node->as.list.items[i]);

                result->cost = hf__cel_cost_sum(result->cost, item.cost);
                result->element = hf__cel_size_union(result->element, hf__cel_size_or_any(&item));
        }
        give_size(result, exact_size(node->as.list.n));
}

static void estimate_map(struct estimator *e, struct hf__cel_estimate *result) {
        const struct hf__cel_node *node = result->node;
        uint64_t min = node->as.map.n > 0 ? UINT64_MAX : 0;

        result->cost = node->kind == HF__CEL_NODE_OBJECT ? COST_OF_OBJECT : COST_OF_MAP;
        result->has_parts = node->kind == HF__CEL_NODE_MAP;
        result->key = result->element = (struct hf__cel_size){min, 0};
        for (uint32_t i = 0; i < node->as.map.n; i++) {
                struct hf__cel_estimate part;

                if (node->as.map.pairs[i].key) {
                        part = estimate_node(e, node->as.map.pairs[i].key);
                        result->cost = hf__cel_cost_sum(result->cost, part.cost);
                        result->key = hf__cel_size_union(result->key, hf__cel_size_or_any(&part));
                }
                part = estimate_node(e, node->as.map.pairs[i].value);
                result->cost = hf__cel_cost_sum(result->cost, part.cost);
                result->element = hf__cel_size_union(result->element, hf__cel_size_or_any(&part));
        }
        if (node->kind == HF__CEL_NODE_MAP)
                give_size(result, exact_size(node->as.map.n));
}

/* ---- macros ---- */

/* A variable has the size that the range knows for its parts, and the path by which a declared size
 * is found. */
static void bind_slot(struct estimator *e, uint32_t slot, const struct hf__cel_estimate *range,
                      enum part part, struct hf__cel_path path) {
        e->locals[slot] = (struct hf__cel_estimate){
                .path = path,
                .has_size = range->has_parts,
                .size = part == ELEMENTS ? range->element : range->key,
        };
}

/* Sets the variables of a macro. */
static void enter_loop(struct estimator *e, const struct hf__cel_node *node,
                       const struct hf__cel_estimate *range) {
        uint32_t slot = node->as.fold.slot;
        bool list = node->as.fold.range->type->kind == HF__CEL_LIST;
        enum part key = list ? INDEXES : KEYS;

        if (node->op == HF__CEL_FOLD_OPT_MAP || node->op == HF__CEL_FOLD_OPT_FLAT_MAP) {
                e->locals[slot] = (struct hf__cel_estimate){.path.state = HF__CEL_PATH_NONE};
        } else if (node->as.fold.variables[1].text) {
                bind_slot(e, slot, range, key, part_of(e, range->path, key));
                bind_slot(e, slot + 1, range, ELEMENTS, part_of(e, range->path, ELEMENTS));
        } else {
                bind_slot(e, slot, range, list ? ELEMENTS : KEYS,
                          part_of(e, range->path, list ? ELEMENTS : KEYS));
        }
}

/* The fixed costs of a macro: those that it has once, without the cost of its range, and those of
 * each round, without the costs of its test and its result. They are the nodes of cel-go's
 * expansion that do not exist here. For map over a list: an empty list (10), reading the result
 * (1), and in each round reading the accumulator (1), a list of one element (10) and the sum (1).
 */
static void loop_costs(enum hf__cel_fold fold, uint64_t *ret_once, uint64_t *ret_round) {
        static const struct {
                uint64_t once;
                uint64_t round;
        } costs[] = {
                [HF__CEL_FOLD_ALL] = {1, 3},           [HF__CEL_FOLD_EXISTS] = {1, 4},
                [HF__CEL_FOLD_EXISTS_ONE] = {2, 2},    [HF__CEL_FOLD_LIST] = {11, 12},
                [HF__CEL_FOLD_FILTER] = {11, 13},      [HF__CEL_FOLD_MAP] = {31, 3},
                [HF__CEL_FOLD_MAP_ENTRY] = {31, 2},    [HF__CEL_FOLD_OPT_MAP] = {13, 0},
                [HF__CEL_FOLD_OPT_FLAT_MAP] = {12, 0}, [HF__CEL_FOLD_SORT] = {23, 12},
        };

        *ret_once = costs[fold].once;
        *ret_round = costs[fold].round;
}

/* The cost of sorting the keys that a macro has made. Kubernetes counts the most expensive type
 * that they can have. */
static uint64_t sort_cost(const struct hf__cel_estimate *range, struct hf__cel_estimate *result) {
        enum hf__cel_kind kind = result->node->as.fold.result->type->kind;
        bool number = kind == HF__CEL_INT || kind == HF__CEL_UINT || kind == HF__CEL_DOUBLE ||
                      kind == HF__CEL_BOOL || kind == HF__CEL_TIMESTAMP || kind == HF__CEL_DURATION;

        return hf__cel_estimate_pairs(!number, hf__cel_size_or_any(range), result);
}

static void estimate_fold(struct estimator *e, struct hf__cel_estimate *result) {
        const struct hf__cel_node *node = result->node;
        struct hf__cel_estimate range = estimate_node(e, node->as.fold.range);
        struct hf__cel_estimate made = {.has_size = false};
        /* A range whose size is not known has 2^64 - 1 rounds. So Kubernetes asks for maxItems in a
         * schema. */
        uint64_t rounds = hf__cel_size_or_any(&range).max;
        uint64_t round;
        uint64_t once;

        loop_costs((enum hf__cel_fold)node->op, &once, &round);
        enter_loop(e, node, &range);
        if (node->op == HF__CEL_FOLD_FILTER) {
                made = e->locals[node->as.fold.slot];
                made.node = node->as.fold.range; /* only its type is read, and it is no scalar */
                set_size(&made);
        }
        if (node->as.fold.test)
                round = hf__cel_cost_sum(round, estimate_node(e, node->as.fold.test).cost);
        if (node->as.fold.result) {
                made = estimate_node(e, node->as.fold.result);
                round = hf__cel_cost_sum(round, made.cost);
        }
        result->cost = hf__cel_cost_sum(range.cost, once);
        if (node->op == HF__CEL_FOLD_OPT_MAP || node->op == HF__CEL_FOLD_OPT_FLAT_MAP) {
                /* The expression that Kubernetes makes of the macro has the optional twice: to test
                 * it, and to take its value. */
                result->cost = hf__cel_cost_sum(result->cost, range.cost);
                result->cost = hf__cel_cost_sum(result->cost, round);
                return;
        }
        result->cost = hf__cel_cost_sum(result->cost, hf__cel_cost_product(rounds, round));
        if (node->op == HF__CEL_FOLD_SORT) {
                result->cost = hf__cel_cost_sum(result->cost, sort_cost(&range, result));
                return;
        }
        if (node->op == HF__CEL_FOLD_LIST || node->op == HF__CEL_FOLD_FILTER) {
                result->has_parts = true;
                result->key = exact_size(1);
                /* The loop of cel-go begins with an empty list, whose elements count as 0. */
                result->element = (struct hf__cel_size){0, hf__cel_size_or_any(&made).max};
        }
        /* Before LIST, the enum has the macros whose value is a bool. */
        if (node->op >= HF__CEL_FOLD_LIST)
                give_size(result, hf__cel_size_or_any(&range));
        else
                give_size(result, exact_size(1));
}

/* ---- calls ---- */

/* Estimates the cost of == for two values of an opaque type. */
static uint64_t opaque_equality_cost(const struct hf__cel_estimate *args) {
        const char *type = args[0].node->type->name;

        if (strcmp(type, "kubernetes.NamedFormat") == 0)
                return hf__cel_cost_factor(FORMAT_SIZE, TEXT_FACTOR);
        /* Kubernetes takes the size of the second URL for that of both, and 1 if it is not
         * known. */
        if (strcmp(type, "kubernetes.URL") == 0 && args[1].has_size)
                return hf__cel_cost_factor(args[1].size.max, TEXT_FACTOR);
        return 1;
}

/* Estimates the cost of == and !=. */
static uint64_t equality_cost(const struct hf__cel_node *node,
                              const struct hf__cel_estimate *args) {
        uint64_t a = hf__cel_size_or_any(&args[0]).max;
        uint64_t b = hf__cel_size_or_any(&args[1]).max;

        /* Kubernetes has the exceptions of opaque_equality_cost for == alone. It charges != of two
         * opaque values by their sizes. */
        if (node->op == HF__CEL_OP_EQUAL && args[0].node->type->kind == HF__CEL_OPAQUE &&
            args[1].node->type->kind == HF__CEL_OPAQUE)
                return opaque_equality_cost(args);
        return hf__cel_cost_factor(a < b ? a : b, TEXT_FACTOR);
}

/* Only one branch is evaluated, so the more expensive one counts. The size can be that of
 * either. */
static void estimate_condition(const struct hf__cel_estimate *args,
                               struct hf__cel_estimate *result) {
        uint64_t larger = args[1].cost > args[2].cost ? args[1].cost : args[2].cost;

        result->cost = hf__cel_cost_sum(args[0].cost, larger);
        give_size(result,
                  hf__cel_size_union(hf__cel_size_or_any(&args[1]), hf__cel_size_or_any(&args[2])));
        result->has_parts = args[1].has_parts && args[2].has_parts;
        result->key = hf__cel_size_union(args[1].key, args[2].key);
        result->element = hf__cel_size_union(args[1].element, args[2].element);
}

/* Index, +, and all other functions: the overload that costs most decides. The checker may have
 * left several of them for arguments of type dyn. */
static void estimate_function(struct estimator *e, const struct hf__cel_estimate *args,
                              struct hf__cel_estimate *result) {
        const struct hf__cel_node *node = result->node;
        uint64_t most = 0;

        for (unsigned i = 0; i < node->as.call.n_overloads; i++) {
                struct hf__cel_estimate one = {.has_size = false};
                uint64_t cost = hf__cel_estimate_overload(node->as.call.overloads[i], args, &one);

                most = cost > most ? cost : most;
                if (one.has_size)
                        give_size(result, result->has_size
                                                  ? hf__cel_size_union(result->size, one.size)
                                                  : one.size);
        }
        result->cost = hf__cel_cost_sum(result->cost, most);
        if (strcmp(node->as.call.function, "_[_]") == 0)
                result->path = part_of(e, args[0].path, ELEMENTS);
        if (strcmp(node->as.call.function, "_+_") == 0 && args[0].has_parts && args[1].has_parts) {
                result->has_parts = true;
                result->key = hf__cel_size_union(args[0].key, args[1].key);
                result->element = hf__cel_size_union(args[0].element, args[1].element);
        }
        /* dyn() changes the type only: Kubernetes keeps the size of its argument, and loses its
         * path. */
        if (strcmp(node->as.call.function, "dyn") == 0) {
                *result = args[0];
                result->node = node;
                result->path = (struct hf__cel_path){.state = HF__CEL_PATH_NONE};
                result->cost = hf__cel_cost_sum(args[0].cost, 1);
        }
}

static void estimate_call(struct estimator *e, struct hf__cel_estimate *result) {
        const struct hf__cel_node *node = result->node;
        struct hf__cel_estimate args[HF__CEL_ARGS_MAX];

        for (uint32_t i = 0; i < node->as.call.n_args; i++) {
                struct hf__cel_estimate arg = estimate_node(e, node->as.call.args[i]);

                /* Only && and || have more arguments than functions may have. */
                assert(i < HF__CEL_ARGS_MAX || node->op != HF__CEL_OP_NONE);
                if (i < HF__CEL_ARGS_MAX)
                        args[i] = arg;
                result->cost = hf__cel_cost_sum(result->cost, arg.cost);
        }
        switch ((enum hf__cel_operator)node->op) {
        /* All operands are counted, although the evaluation may end at the first one. */
        case HF__CEL_OP_AND:
        case HF__CEL_OP_OR: break;
        case HF__CEL_OP_CONDITION: estimate_condition(args, result); break;
        case HF__CEL_OP_EQUAL:
        case HF__CEL_OP_NOT_EQUAL:
                result->cost = hf__cel_cost_sum(result->cost, equality_cost(node, args));
                break;
        /* Both operands count, since nobody knows whether the optional is empty. */
        case HF__CEL_OP_OR_VALUE:
        case HF__CEL_OP_OR_OTHER: result->cost = hf__cel_cost_sum(result->cost, 1); break;
        case HF__CEL_OP_NONE: estimate_function(e, args, result); break;
        }
}

static struct hf__cel_estimate estimate_node(struct estimator *e, const struct hf__cel_node *node) {
        struct hf__cel_estimate result = {.node = node};

        switch ((enum hf__cel_node_kind)node->kind) {
        case HF__CEL_NODE_CONST: estimate_const(&result); break;
        case HF__CEL_NODE_NAME: estimate_name(e, &result); break;
        case HF__CEL_NODE_SELECT:
        case HF__CEL_NODE_HAS: estimate_select(e, &result); break;
        case HF__CEL_NODE_CALL: estimate_call(e, &result); break;
        case HF__CEL_NODE_LIST: estimate_list(e, &result); break;
        case HF__CEL_NODE_MAP:
        case HF__CEL_NODE_OBJECT: estimate_map(e, &result); break;
        case HF__CEL_NODE_FOLD: estimate_fold(e, &result); break;
        }
        set_size(&result);
        return result;
}

bool hf__cel_estimate_tree(struct hf__arena *arena, const struct hf__cel_node *root,
                           const struct hf__cel_declarations *declarations, uint32_t n_locals,
                           uint64_t *ret_cost) {
        struct estimator e = {.declarations = declarations,
                              .locals =
                                      hf__arena_alloc(arena,
                                                      n_locals * sizeof(struct hf__cel_estimate))};

        if (!e.locals)
                return false;
        *ret_cost = estimate_node(&e, root).cost;
        return true;
}

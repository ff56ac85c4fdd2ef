/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The evaluator: it walks the checked tree. A constant is a value of the tree, so it costs nothing.
 *
 * Invariants: each round of a loop counts as work, and each call of a function is charged to the
 * run, so that the limits of work and of cost end every evaluation. A level of the tree takes at
 * most 600 bytes of the stack, as cel.h says, and the parser limits the levels. An error is a
 * value. &&, || and the macros all and exists absorb an error if another operand decides, but never
 * the error of a run that has failed.
 */
#include "cel/eval.h"

#include <assert.h>
#include <errno.h>
#include <stdio.h>
#include <string.h>

#include "base/strbuf.h"
#include "cel/charge.h"
#include "cel/fold.h"
#include "cel/functions/tables.h"
#include "cel/library.h"
#include "cel/values/number_text.h"

/* The costs of cel-go for constructing values. They do not depend on the number of elements, which
 * are charged as they are evaluated. */
#define COST_OF_LIST   10
#define COST_OF_MAP    30
#define COST_OF_OBJECT 40

static struct hf__cel_value no_overload(void) { return hf__cel_error_text("no such overload"); }

/* A name costs 1, as each step of a path does; constants cost nothing. */
static struct hf__cel_value eval_name(struct hf__cel_run *run, const struct hf__cel_node *node) {
        if (!hf__cel_spend(run, 1))
                return hf__cel_failure(run);
        if (node->as.name.scope == HF__CEL_SCOPE_LOCAL)
                return run->locals[node->as.name.slot];
        assert(node->as.name.scope == HF__CEL_SCOPE_INPUT);
        return run->inputs[node->as.name.slot];
}

/* The value of the field that the node names. *ret_found: whether the operand is a map with this
 * field; if not, the result is null. The result is an error if the field's value is one, or if the
 * run has failed. */
static struct hf__cel_value find_field(struct hf__cel_run *run, struct hf__cel_value operand,
                                       const struct hf__cel_node *node, bool *ret_found) {
        struct hf__cel_value key =
                hf__cel_string(node->as.select.field.text, node->as.select.field.n);
        struct hf__cel_value value = hf__cel_null();

        *ret_found = false;
        if (operand.kind != HF__CEL_MAP && operand.kind != HF__CEL_OBJECT)
                return value;
        *ret_found = hf__cel_map_find(operand.as.map, key, &value);
        return run->failed != 0 ? hf__cel_failure(run) : value;
}

/* As in cel-go, selecting a field of an optional gives an optional, also without the question mark,
 * so a chain such as a.?b.c needs only the first one. has() costs nothing in Kubernetes: its
 * operand has been charged. */
static struct hf__cel_value eval_select(struct hf__cel_run *run, const struct hf__cel_node *node) {
        struct hf__cel_value operand = hf__cel_eval_node(run, node->as.select.operand);
        bool optional = node->optional;
        struct hf__cel_value value;
        bool found;

        if (hf__cel_is_error(operand))
                return operand;
        if (!hf__cel_spend(run, node->kind == HF__CEL_NODE_HAS ? 0 : 1))
                return hf__cel_failure(run);
        if (operand.kind == HF__CEL_OPTIONAL) {
                if (!operand.as.optional)
                        return node->kind == HF__CEL_NODE_HAS ? hf__cel_bool(false) : operand;
                operand = *operand.as.optional;
                optional = true;
        }
        /* As in cel-go, a list has an error of its own, and any other value that is no map just has
         * no such field. */
        if (operand.kind == HF__CEL_LIST)
                return hf__cel_error_text("unsupported index type 'string' in list");
        value = find_field(run, operand, node, &found);
        if (hf__cel_is_error(value))
                return value;
        if (node->kind == HF__CEL_NODE_HAS)
                return hf__cel_bool(found);
        if (optional)
                return found ? hf__cel_optional_of(run, value) : hf__cel_optional_none();
        return found ? value
                     : hf__cel_errorf(run, "no such key: %.200s", node->as.select.field.text);
}

/* The logic of CEL is commutative: a value that decides wins over an error of another operand, on
 * whichever side it stands. So all operands are evaluated until one decides, and the first error is
 * kept for the case that none does. A run that has failed is no such error: no operand can outweigh
 * an exceeded limit. */
static struct hf__cel_value eval_logic(struct hf__cel_run *run, const struct hf__cel_node *node) {
        bool decisive = node->op == HF__CEL_OP_OR;
        struct hf__cel_value error = hf__cel_null();

        for (uint32_t i = 0; i < node->as.call.n_args; i++) {
                struct hf__cel_value value = hf__cel_eval_node(run, node->as.call.args[i]);

                if (run->failed != 0)
                        return hf__cel_failure(run);
                if (value.kind == HF__CEL_BOOL && value.as.boolean == decisive)
                        return value;
                if (value.kind != HF__CEL_BOOL && !hf__cel_is_error(error))
                        error = hf__cel_is_error(value) ? value : no_overload();
        }
        return hf__cel_is_error(error) ? error : hf__cel_bool(!decisive);
}

/* Only the branch that the test chooses is evaluated. An author may rely on that: has(a.b) ? a.b :
 * 0 is no error if b is absent. */
static struct hf__cel_value eval_condition(struct hf__cel_run *run,
                                           const struct hf__cel_node *node) {
        struct hf__cel_value test = hf__cel_eval_node(run, node->as.call.args[0]);

        if (hf__cel_is_error(test))
                return test;
        if (test.kind != HF__CEL_BOOL)
                return no_overload();
        return hf__cel_eval_node(run, node->as.call.args[test.as.boolean ? 1 : 2]);
}

/* The cost is one for each ten characters, bytes or elements of the shorter operand, rounded up, as
 * in Kubernetes: the comparison ends where the shorter one ends. Sizes of lists and maps are those
 * of their first level only; hf__cel_equal counts the work of the levels below, which Kubernetes
 * does not charge. */
static struct hf__cel_value eval_equal(struct hf__cel_run *run, const struct hf__cel_node *node) {
        struct hf__cel_value a = hf__cel_eval_node(run, node->as.call.args[0]);
        struct hf__cel_value b;
        struct hf__cel_value same;
        uint64_t size_a;
        uint64_t size_b;

        if (hf__cel_is_error(a))
                return a;
        b = hf__cel_eval_node(run, node->as.call.args[1]);
        if (hf__cel_is_error(b))
                return b;
        size_a = hf__cel_size(run, a);
        size_b = hf__cel_size(run, b);
        if (!hf__cel_spend(run, ((size_a < size_b ? size_a : size_b) + 9) / 10))
                return hf__cel_failure(run);
        same = hf__cel_equal(run, a, b);
        if (!hf__cel_is_error(same) && node->op == HF__CEL_OP_NOT_EQUAL)
                same.as.boolean = !same.as.boolean;
        return same;
}

/* Evaluates optional.or(optional) and optional.orValue(value). The alternative is evaluated only if
 * the optional is empty. So an author may write an alternative that is expensive, or that is an
 * error whenever the optional holds a value. */
static struct hf__cel_value eval_otherwise(struct hf__cel_run *run,
                                           const struct hf__cel_node *node) {
        struct hf__cel_value optional = hf__cel_eval_node(run, node->as.call.args[0]);

        if (hf__cel_is_error(optional))
                return optional;
        if (optional.kind != HF__CEL_OPTIONAL)
                return no_overload();
        if (!optional.as.optional)
                return hf__cel_eval_node(run, node->as.call.args[1]);
        return node->op == HF__CEL_OP_OR_VALUE ? *optional.as.optional : optional;
}

/* The error that no overload takes these arguments. As in Kubernetes it names the function and the
 * types; for size and sort it names only the function, and for operators and the functions in
 * `plain` nothing. An index is left to hf__cel_index_any, whose result may be no error. */
static struct hf__cel_value not_taken(struct hf__cel_run *run, const char *function,
                                      const struct hf__cel_value *args, unsigned n) {
        static const char *const plain[] = {"matches",  "startsWith", "endsWith",
                                            "contains", "find",       "findAll"};
        char types[300] = "";
        size_t at = 0;

        /* Only containers have elements, and a list has them only at numbers. */
        if (strcmp(function, "_[_]") == 0 || strcmp(function, "_[?_]") == 0)
                return hf__cel_index_any(run, args, function[2] == '?');
        if (strchr("_@-!", *function)) /* an operator: _+_, @in, -_, !_ */
                return no_overload();
        for (size_t i = 0; i < sizeof plain / sizeof plain[0]; i++)
                if (strcmp(function, plain[i]) == 0)
                        return no_overload();
        if (strcmp(function, "size") == 0 || strcmp(function, "sort") == 0)
                return hf__cel_errorf(run, "no such overload: %s", function);
        for (unsigned i = 0; i < n && at < sizeof types; i++)
                at += (size_t)snprintf(types + at, sizeof types - at, "%s%.60s", i > 0 ? ", " : "",
                                       hf__cel_type_name(hf__cel_value_type(args[i])));
        return hf__cel_errorf(run, "no such overload: %.200s(%s)", function, types);
}

/* For arguments of type dyn the checker may leave several overloads, and the values choose among
 * them. The charge precedes the call: a call that would exceed the budget does no work. */
static struct hf__cel_value eval_function(struct hf__cel_run *run,
                                          const struct hf__cel_node *node) {
        struct hf__cel_value args[HF__CEL_ARGS_MAX];
        unsigned n = node->as.call.n_args;

        assert(n <= HF__CEL_ARGS_MAX);
        for (unsigned i = 0; i < n; i++) {
                args[i] = hf__cel_eval_node(run, node->as.call.args[i]);
                if (hf__cel_is_error(args[i]))
                        return args[i];
        }
        for (unsigned i = 0; i < node->as.call.n_overloads; i++) {
                const struct hf__cel_overload *overload = node->as.call.overloads[i];
                struct hf__cel_value value;

                if (!hf__cel_overload_takes(overload, args, n))
                        continue;
                if (!hf__cel_overload_charge(overload, run, args))
                        return hf__cel_failure(run);
                /* Nested calls have returned already, so the pattern belongs to this call. */
                run->prepared = node->as.call.prepared;
                value = overload->call(run, args, n);
                return run->failed != 0 ? hf__cel_failure(run) : value;
        }
        return not_taken(run, node->as.call.function, args, n);
}

static struct hf__cel_value eval_call(struct hf__cel_run *run, const struct hf__cel_node *node) {
        switch ((enum hf__cel_operator)node->op) {
        case HF__CEL_OP_AND:
        case HF__CEL_OP_OR: return eval_logic(run, node);
        case HF__CEL_OP_CONDITION: return eval_condition(run, node);
        case HF__CEL_OP_EQUAL:
        case HF__CEL_OP_NOT_EQUAL: return eval_equal(run, node);
        case HF__CEL_OP_OR_VALUE:
        case HF__CEL_OP_OR_OTHER: return eval_otherwise(run, node);
        case HF__CEL_OP_NONE: break;
        }
        return eval_function(run, node);
}

/* Writes a value for a message. As in cel-go a string (cut if it is long), a number and a bool are
 * written, and of any other value only its type. */
static void print_value(struct hf__strbuf *out, struct hf__cel_value value) {
        switch (value.kind) {
        case HF__CEL_STRING:
                hf__strbuf_add(out, value.as.text, value.n > 200 ? 200 : value.n);
                break;
        case HF__CEL_INT: hf__strbuf_printf(out, "%lld", (long long)value.as.i); break;
        case HF__CEL_UINT: hf__strbuf_u64(out, value.as.u); break;
        case HF__CEL_DOUBLE: hf__cel_double_print(out, value.as.d); break;
        case HF__CEL_BOOL: hf__strbuf_puts(out, value.as.boolean ? "true" : "false"); break;
        /* The name of a type may be as long as the expression has made it. */
        default:
                hf__strbuf_printf(out, "%.200s", hf__cel_type_name(hf__cel_value_type(value)));
                break;
        }
}

/* The error about a value that is marked with ? but is not an optional. key: that of its entry in a
 * map or object; NULL: the value is an element of a list. */
static struct hf__cel_value not_optional(struct hf__cel_run *run, const struct hf__cel_value *key,
                                         struct hf__cel_value value) {
        struct hf__strbuf text = {.max = 500};
        struct hf__cel_value error;

        hf__strbuf_puts(&text, key ? "cannot initialize optional entry '"
                                   : "cannot initialize optional list element");
        if (key)
                print_value(&text, *key);
        hf__strbuf_puts(&text, key ? "' from non-optional value " : " from non-optional value ");
        print_value(&text, value);
        if (text.error != 0)
                run->failed = -ENOMEM;
        error = text.error == 0 ? hf__cel_errorf(run, "%s", text.data) : hf__cel_failure(run);
        hf__strbuf_done(&text);
        return error;
}

/* Replaces the optional *value by the value that it holds. False: it holds none. An error stays as
 * it is, and another value that is not an optional becomes an error; the result is then true. key:
 * see not_optional. */
static bool unwrap_optional(struct hf__cel_run *run, const struct hf__cel_value *key,
                            struct hf__cel_value *value) {
        if (hf__cel_is_error(*value))
                return true;
        if (value->kind != HF__CEL_OPTIONAL) {
                *value = not_optional(run, key, *value);
                return true;
        }
        if (!value->as.optional)
                return false;
        *value = *value->as.optional;
        return true;
}

static struct hf__cel_value eval_list(struct hf__cel_run *run, const struct hf__cel_node *node) {
        struct hf__cel_value *items;
        struct hf__cel_value list = hf__cel_new_list(run, node->as.list.n, &items);
        size_t n = 0;

        if (hf__cel_is_error(list))
                return list;
        for (uint32_t i = 0; i < node->as.list.n; i++) {
                struct hf__cel_value value = hf__cel_eval_node(run, node->as.list.items[i]);

                if (node->as.list.optional && node->as.list.optional[i] &&
                    !unwrap_optional(run, NULL, &value))
                        continue;
                if (hf__cel_is_error(value))
                        return value;
                items[n++] = value;
        }
        /* The charge comes last, as in cel-go: if an element is an error, the list itself costs
         * nothing. */
        if (!hf__cel_spend(run, COST_OF_LIST))
                return hf__cel_failure(run);
        /* Elements marked with ? that hold nothing are left out, so the list may be shorter than
         * its literal. */
        return n == node->as.list.n ? list : hf__cel_sublist(run, list.as.list, 0, n);
}

/* Makes a map, or an object of a type that expressions may construct (Object, JSONPatch): a map
 * that knows its type. */
static struct hf__cel_value eval_map(struct hf__cel_run *run, const struct hf__cel_node *node) {
        bool object = node->kind == HF__CEL_NODE_OBJECT;
        struct hf__cel_entry *entries = hf__cel_alloc(run, node->as.map.n * sizeof *entries);
        struct hf__cel_value value;
        size_t n = 0;

        if (!entries)
                return hf__cel_failure(run);
        for (uint32_t i = 0; i < node->as.map.n; i++) {
                const struct hf__cel_pair *pair = &node->as.map.pairs[i];

                entries[n].key = object ? hf__cel_string(pair->name.text, pair->name.n)
                                        : hf__cel_eval_node(run, pair->key);
                if (hf__cel_is_error(entries[n].key))
                        return entries[n].key;
                value = hf__cel_eval_node(run, pair->value);
                if (pair->optional && !unwrap_optional(run, &entries[n].key, &value))
                        continue;
                if (hf__cel_is_error(value))
                        return value;
                entries[n++].value = value;
        }
        if (!hf__cel_spend(run, object ? COST_OF_OBJECT : COST_OF_MAP))
                return hf__cel_failure(run);
        value = hf__cel_new_map(run, entries, n);
        if (object && !hf__cel_is_error(value))
                value = hf__cel_object(run, value.as.map, node->type);
        return value;
}

struct hf__cel_value hf__cel_eval_node(struct hf__cel_run *run, const struct hf__cel_node *node) {
        switch ((enum hf__cel_node_kind)node->kind) {
        case HF__CEL_NODE_CONST: return node->as.constant;
        case HF__CEL_NODE_NAME: return eval_name(run, node);
        case HF__CEL_NODE_SELECT:
        case HF__CEL_NODE_HAS: return eval_select(run, node);
        case HF__CEL_NODE_CALL: return eval_call(run, node);
        case HF__CEL_NODE_LIST: return eval_list(run, node);
        case HF__CEL_NODE_MAP:
        case HF__CEL_NODE_OBJECT: return eval_map(run, node);
        case HF__CEL_NODE_FOLD: return hf__cel_eval_fold(run, node, hf__cel_eval_node);
        }
        return no_overload();
}

/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The checker. It walks the tree once and sets the type of each node, the slot of each variable,
 * and the overloads that each call may reach.
 *
 * Invariants: a node whose check failed has the type ERROR, which fits everything, so that one
 * mistake is reported once. The recursion is bounded by the depth of the tree.
 */
#include "cel/checker.h"

#include <assert.h>
#include <string.h>

#include "base/arena.h"
#include "base/strbuf.h"
#include "cel/functions/list_order.h"
#include "cel/inference.h"
#include "cel/issues.h"
#include "cel/library.h"
#include "cel/type_issues.h"
#include "cel/validate.h"

#define VARS_OF_OVERLOAD 3 /* A, B and C */
#define NAME_MAX_BYTES   256
/* Types of keys. */
#define SORT_OVERLOADS_MAX 8

struct local {
        const char *name;
        const struct hf__cel_type *type;
};

struct checker {
        const struct hf__cel_declarations *declarations;
        struct hf__cel_issues *issues;
        struct hf__arena *arena;
        struct hf__cel_inference in;
        struct local locals[2 * 256]; /* two for each level of the tree */
        uint32_t n_locals;
        uint32_t max_locals;
        uint64_t used; /* declared variables */
};

static void check(struct checker *c, struct hf__cel_node *node);

static const struct hf__cel_type *dyn(void) { return hf__cel_type_of(HF__CEL_DYN); }
static const struct hf__cel_type *error_type(void) { return hf__cel_type_of(HF__CEL_ERROR); }

static const struct hf__cel_type *made(struct checker *c, enum hf__cel_kind kind,
                                       const struct hf__cel_type *a, const struct hf__cel_type *b) {
        const struct hf__cel_type *type = hf__cel_type_new(c->arena, kind, a, b);

        if (!type)
                c->in.failed = true;
        return type ? type : error_type();
}

static bool assign_one(struct checker *c, const struct hf__cel_type *from,
                       const struct hf__cel_type *to) {
        return hf__cel_assign(&c->in, &from, &to, 1);
}

static void undeclared(struct checker *c, uint32_t at, const char *name) {
        hf__cel_issues_add(c->issues, at, "undeclared reference to '%s' (in container '')", name);
}

static const struct hf__cel_type *type_named(const char *name) {
        static const enum hf__cel_kind kinds[] = {
                HF__CEL_NULL,      HF__CEL_BOOL,     HF__CEL_INT,      HF__CEL_UINT, HF__CEL_DOUBLE,
                HF__CEL_STRING,    HF__CEL_BYTES,    HF__CEL_LIST,     HF__CEL_MAP,  HF__CEL_TYPE,
                HF__CEL_TIMESTAMP, HF__CEL_DURATION, HF__CEL_OPTIONAL,
        };

        for (size_t i = 0; i < sizeof kinds / sizeof kinds[0]; i++)
                if (strcmp(hf__cel_type_name(hf__cel_type_of(kinds[i])), name) == 0)
                        return hf__cel_type_of(kinds[i]);
        return hf__cel_library_type(name);
}

/* Makes the node a declared variable or a type, if the name is one. */
static bool resolve_global(struct checker *c, struct hf__cel_node *node, const char *name) {
        const struct hf__cel_type *type;

        for (size_t i = 0; i < c->declarations->n_variables; i++)
                if (strcmp(c->declarations->variables[i].name, name) == 0) {
                        node->kind = HF__CEL_NODE_NAME;
                        node->as.name.scope = HF__CEL_SCOPE_INPUT;
                        node->as.name.slot = (uint32_t)i;
                        if (i < 64)
                                c->used |= UINT64_C(1) << i;
                        node->type = c->declarations->variables[i].type;
                        return true;
                }
        type = type_named(name);
        if (!type)
                return false;
        node->kind = HF__CEL_NODE_CONST;
        node->as.constant = hf__cel_type_value(type);
        node->type = made(c, HF__CEL_TYPE, type, NULL);
        return true;
}

static int find_local(const struct checker *c, const char *name) {
        for (uint32_t i = c->n_locals; i-- > 0;)
                if (c->locals[i].name && strcmp(c->locals[i].name, name) == 0)
                        return (int)i;
        return -1;
}

static void check_name(struct checker *c, struct hf__cel_node *node) {
        const char *name = node->as.name.name.text;
        int local = find_local(c, name);

        node->type = error_type();
        if (local >= 0) {
                node->as.name.scope = HF__CEL_SCOPE_LOCAL;
                node->as.name.slot = (uint32_t)local;
                node->type = c->locals[local].type;
        } else if (!resolve_global(c, node, name[0] == '.' ? name + 1 : name)) {
                undeclared(c, node->at, name);
        }
}

/* Writes the name of a chain of fields, "a.b.c", with a NUL. 0: the node is not such a chain, or
 * the chain begins with a local variable or is too long. */
static size_t chain_name(const struct checker *c, const struct hf__cel_node *node, char *out) {
        const struct hf__cel_name *name;
        size_t n = 0;

        if (node->kind == HF__CEL_NODE_NAME) {
                name = &node->as.name.name;
                if (find_local(c, name->text) >= 0)
                        return 0;
        } else if (node->kind == HF__CEL_NODE_SELECT && !node->optional) {
                name = &node->as.select.field;
                n = chain_name(c, node->as.select.operand, out);
                if (n == 0)
                        return 0;
                out[n++] = '.';
        } else {
                return 0;
        }
        if (n + name->n + 1 >= NAME_MAX_BYTES)
                return 0;
        memcpy(out + n, name->text, name->n + 1);
        return n + name->n;
}

static const struct hf__cel_type *field_type(struct checker *c, const struct hf__cel_node *node) {
        const struct hf__cel_type *type =
                hf__cel_substitute(&c->in, node->as.select.operand->type, false);
        bool optional = node->optional;
        const struct hf__cel_type *result = dyn();

        if (type->kind == HF__CEL_OPTIONAL) {
                type = type->params[0];
                optional = true;
        }
        if (type->kind == HF__CEL_MAP) {
                result = type->params[1];
        } else if (type->kind == HF__CEL_OBJECT) {
                result = hf__cel_type_field(type, node->as.select.field.text,
                                            node->as.select.field.n);
                if (!result)
                        hf__cel_issues_add(c->issues, node->at, "undefined field '%s'",
                                           node->as.select.field.text);
                if (!result)
                        result = error_type();
        } else if (type->kind == HF__CEL_VAR) {
                assign_one(c, dyn(), type);
        } else if (type->kind != HF__CEL_DYN && type->kind != HF__CEL_ERROR) {
                hf__cel_type_issue(c->issues, &c->in, node->at,
                                   "type '%s' does not support field selection", type, NULL);
        }
        return optional ? made(c, HF__CEL_OPTIONAL, result, NULL) : result;
}

static void check_select(struct checker *c, struct hf__cel_node *node) {
        char name[NAME_MAX_BYTES];

        if (node->kind == HF__CEL_NODE_SELECT && chain_name(c, node, name) > 0 &&
            resolve_global(c, node, name[0] == '.' ? name + 1 : name))
                return;
        check(c, node->as.select.operand);
        node->type = field_type(c, node);
        if (node->kind == HF__CEL_NODE_HAS)
                node->type = hf__cel_type_of(HF__CEL_BOOL);
}

/* Checks the arguments against overloads and returns the type of the result. `matching` gets those
 * that match, their number is *ret_n. NULL: none does. */
static const struct hf__cel_type *resolve(struct checker *c, bool member, uint32_t n_args,
                                          const struct hf__cel_overload *const *overloads, size_t n,
                                          const struct hf__cel_type *const *types,
                                          const struct hf__cel_overload **matching,
                                          uint16_t *ret_n) {
        const struct hf__cel_type *result = NULL;

        *ret_n = 0;
        for (size_t i = 0; i < n; i++) {
                const struct hf__cel_overload *o = overloads[i];
                const struct hf__cel_type *wanted[HF__CEL_ARGS_MAX];
                const struct hf__cel_type *type;
                uint32_t base;

                if (o->member != member || o->n_args != n_args)
                        continue;
                base = hf__cel_new_vars(&c->in, VARS_OF_OVERLOAD);
                for (uint32_t k = 0; k < o->n_args; k++)
                        wanted[k] = hf__cel_instantiate(&c->in, o->args[k], base);
                if (c->in.failed || !hf__cel_assign(&c->in, types, wanted, o->n_args))
                        continue;
                matching[(*ret_n)++] = o;
                type = hf__cel_substitute(&c->in, hf__cel_instantiate(&c->in, o->result, base),
                                          false);
                if (!result)
                        result = type;
                else if (result->kind != HF__CEL_DYN && !hf__cel_type_same(result, type))
                        result = dyn();
        }
        return result;
}

static void check_function(struct checker *c, struct hf__cel_node *node,
                           const struct hf__cel_overload *const *overloads, size_t n) {
        const struct hf__cel_type *types[HF__CEL_ARGS_MAX + 12];
        const struct hf__cel_overload **matching = hf__arena_alloc(c->arena, n * sizeof *matching);
        uint32_t n_args = node->as.call.n_args;
        const struct hf__cel_type *result = NULL;
        uint16_t n_matching = 0;

        node->type = error_type();
        if (!matching) {
                c->in.failed = true;
                return;
        }
        if (n_args > sizeof types / sizeof types[0])
                n_args = sizeof types / sizeof types[0];
        for (uint32_t i = 0; i < n_args; i++)
                types[i] = node->as.call.args[i]->type;
        if (n_args <= HF__CEL_ARGS_MAX)
                result = resolve(c, node->as.call.member, n_args, overloads, n, types, matching,
                                 &n_matching);
        if (!result) {
                if (!c->in.failed)
                        hf__cel_no_overload(c->issues, &c->in, node->at, node->as.call.function,
                                            node->as.call.member, types, n_args);
                return;
        }
        node->type = result;
        node->as.call.overloads = matching;
        node->as.call.n_overloads = n_matching;
}

/* Checks && and ||. */
static void check_logic(struct checker *c, struct hf__cel_node *node) {
        const struct hf__cel_type *boolean = hf__cel_type_of(HF__CEL_BOOL);

        for (uint32_t i = 0; i < node->as.call.n_args; i++) {
                struct hf__cel_node *arg = node->as.call.args[i];

                check(c, arg);
                if (!assign_one(c, arg->type, boolean) && !c->in.failed)
                        hf__cel_type_issue(c->issues, &c->in, arg->at,
                                           "expected type '%s' but found '%s'", boolean, arg->type);
        }
        node->type = boolean;
}

/* ?:, == and !=, whose last two operands have one type. */
static void check_pair(struct checker *c, struct hf__cel_node *node) {
        bool condition = node->op == HF__CEL_OP_CONDITION;
        const struct hf__cel_type *var = hf__cel_var(&c->in, hf__cel_new_vars(&c->in, 1));
        const struct hf__cel_type *boolean = hf__cel_type_of(HF__CEL_BOOL);
        const struct hf__cel_type *wanted[3] = {boolean, var, var};
        const struct hf__cel_type *types[3];
        uint32_t n = node->as.call.n_args;

        for (uint32_t i = 0; i < n; i++) {
                check(c, node->as.call.args[i]);
                types[i] = node->as.call.args[i]->type;
        }
        node->type = error_type();
        if (!hf__cel_assign(&c->in, types, wanted + (condition ? 0 : 1), n)) {
                if (!c->in.failed)
                        hf__cel_no_overload(c->issues, &c->in, node->at, node->as.call.function,
                                            false, types, n);
                return;
        }
        node->type = condition ? hf__cel_substitute(&c->in, var, false) : boolean;
}

/* A call like sets.contains(a, b) was parsed as a call of a member of `sets`. Turns it into a call
 * of the function with this long name. Returns the number of overloads; 0: there are none, and
 * nothing has changed. */
static size_t resolve_qualified(struct checker *c, struct hf__cel_node *node,
                                const struct hf__cel_overload *const **ret_overloads) {
        char name[NAME_MAX_BYTES];
        size_t n = chain_name(c, node->as.call.args[0], name);
        size_t n_function = strlen(node->as.call.function);

        if (n == 0 || n + 1 + n_function >= sizeof name)
                return 0;
        name[n] = '.';
        memcpy(name + n + 1, node->as.call.function, n_function + 1);
        n = hf__cel_library_find(c->declarations->functions, name, ret_overloads);
        if (n > 0) {
                node->as.call.function = (*ret_overloads)[0]->name;
                node->as.call.member = false;
                node->as.call.args++;
                node->as.call.n_args--;
        }
        return n;
}

static void check_call(struct checker *c, struct hf__cel_node *node) {
        const struct hf__cel_overload *const *overloads;
        size_t n = 0;

        if (node->op == HF__CEL_OP_AND || node->op == HF__CEL_OP_OR) {
                check_logic(c, node);
                return;
        }
        if (node->op != HF__CEL_OP_NONE) {
                check_pair(c, node);
                return;
        }
        if (node->as.call.member)
                n = resolve_qualified(c, node, &overloads);
        for (uint32_t i = 0; i < node->as.call.n_args; i++)
                check(c, node->as.call.args[i]);
        if (n == 0)
                n = hf__cel_library_find(c->declarations->functions, node->as.call.function,
                                         &overloads);
        if (n == 0) {
                undeclared(c, node->at, node->as.call.function);
                node->type = error_type();
                return;
        }
        check_function(c, node, overloads, n);
        if (node->as.call.member && strcmp(node->as.call.function, "orValue") == 0)
                node->op = HF__CEL_OP_OR_VALUE;
        if (node->as.call.member && strcmp(node->as.call.function, "or") == 0)
                node->op = HF__CEL_OP_OR_OTHER;
}

/* The common type of elements; dyn if they have none. */
static const struct hf__cel_type *join(struct checker *c, const struct hf__cel_type *all,
                                       const struct hf__cel_type *next) {
        if (!all)
                return next;
        return assign_one(c, all, next) ? hf__cel_most_general(all, next) : dyn();
}

/* The type of an element that may be marked as optional. */
static const struct hf__cel_type *unwrap(struct checker *c, const struct hf__cel_node *node,
                                         bool optional) {
        const struct hf__cel_type *type = hf__cel_substitute(&c->in, node->type, false);

        if (!optional)
                return type;
        if (type->kind == HF__CEL_OPTIONAL)
                return type->params[0];
        if (type->kind != HF__CEL_DYN && type->kind != HF__CEL_ERROR)
                hf__cel_type_issue(c->issues, &c->in, node->at, "expected type '%s' but found '%s'",
                                   made(c, HF__CEL_OPTIONAL, type, NULL), type);
        return type;
}

static const struct hf__cel_type *new_var(struct checker *c) {
        return hf__cel_var(&c->in, hf__cel_new_vars(&c->in, 1));
}

static void check_list(struct checker *c, struct hf__cel_node *node) {
        const struct hf__cel_type *all = NULL;

        for (uint32_t i = 0; i < node->as.list.n; i++) {
                struct hf__cel_node *item = node->as.list.items[i];

                check(c, item);
                all = join(c, all,
                           unwrap(c, item, node->as.list.optional && node->as.list.optional[i]));
        }
        node->type = made(c, HF__CEL_LIST, all ? all : new_var(c), NULL);
}

static void check_map(struct checker *c, struct hf__cel_node *node) {
        const struct hf__cel_type *keys = NULL;
        const struct hf__cel_type *values = NULL;

        for (uint32_t i = 0; i < node->as.map.n; i++) {
                struct hf__cel_pair *pair = &node->as.map.pairs[i];

                check(c, pair->key);
                keys = join(c, keys, unwrap(c, pair->key, false));
                check(c, pair->value);
                values = join(c, values, unwrap(c, pair->value, pair->optional));
        }
        node->type = made(c, HF__CEL_MAP, keys ? keys : new_var(c), values ? values : new_var(c));
}

static void check_object_field(struct checker *c, const struct hf__cel_type *object,
                               struct hf__cel_pair *pair) {
        const struct hf__cel_type *field;
        const struct hf__cel_type *type;

        check(c, pair->value);
        field = hf__cel_type_field(object, pair->name.text, pair->name.n);
        if (!field) {
                hf__cel_issues_add(c->issues, pair->at, "undefined field '%s'", pair->name.text);
                return;
        }
        type = unwrap(c, pair->value, pair->optional);
        if (!assign_one(c, field, type) && !c->in.failed) {
                struct hf__strbuf format = {.max = 400};

                hf__strbuf_printf(&format,
                                  "expected type of field '%s' is '%%s' but provided "
                                  "type is '%%s'",
                                  pair->name.text);
                if (format.error == 0 && !strchr(pair->name.text, '%'))
                        hf__cel_type_issue(c->issues, &c->in, pair->at, format.data, field, type);
                else
                        hf__cel_issues_add(c->issues, pair->at, "the field has another type");
                hf__strbuf_done(&format);
        }
}

/* The type Object, or Object.spec and the like, if the declarations have it. NULL: they do not. */
static const struct hf__cel_type *open_object(struct checker *c, const char *name) {
        const char *open = c->declarations->open_object;
        size_t n = open ? strlen(open) : 0;
        struct hf__cel_type *type;

        if (!open || strncmp(name, open, n) != 0 || (name[n] != 0 && name[n] != '.'))
                return NULL;
        type = hf__arena_alloc(c->arena, sizeof *type);
        if (!type) {
                c->in.failed = true;
                return NULL;
        }
        *type = (struct hf__cel_type){.kind = HF__CEL_OBJECT,
                                      .weight = 1,
                                      .name = name,
                                      .open = true};
        return type;
}

static void check_object(struct checker *c, struct hf__cel_node *node) {
        const struct hf__cel_type *object = open_object(c, node->as.map.name.text);

        for (size_t i = 0; !object && i < c->declarations->n_objects; i++)
                if (strcmp(c->declarations->objects[i]->name, node->as.map.name.text) == 0)
                        object = c->declarations->objects[i];
        node->type = object ? object : error_type();
        if (!object) {
                undeclared(c, node->at, node->as.map.name.text);
                return;
        }
        for (uint32_t i = 0; i < node->as.map.n; i++)
                check_object_field(c, object, &node->as.map.pairs[i]);
}

/* The types of the variables of a macro, by the type of its range. */
static void range_types(struct checker *c, const struct hf__cel_node *node,
                        const struct hf__cel_type *types[2]) {
        const struct hf__cel_node *range = node->as.fold.range;
        const struct hf__cel_type *type = hf__cel_substitute(&c->in, range->type, false);
        bool two = node->as.fold.variables[1].text != NULL;

        types[0] = types[1] = error_type();
        if (node->op == HF__CEL_FOLD_OPT_MAP || node->op == HF__CEL_FOLD_OPT_FLAT_MAP) {
                if (type->kind == HF__CEL_OPTIONAL)
                        types[0] = type->params[0];
                else if (type->kind == HF__CEL_DYN || type->kind == HF__CEL_ERROR)
                        types[0] = dyn();
                else
                        hf__cel_no_overload(c->issues, &c->in, node->at, "hasValue", true, &type,
                                            1);
        } else if (type->kind == HF__CEL_LIST) {
                types[0] = two ? hf__cel_type_of(HF__CEL_INT) : type->params[0];
                types[1] = type->params[0];
        } else if (type->kind == HF__CEL_MAP) {
                types[0] = type->params[0];
                types[1] = type->params[1];
        } else if (type->kind == HF__CEL_DYN || type->kind == HF__CEL_ERROR ||
                   type->kind == HF__CEL_VAR) {
                assign_one(c, dyn(), type);
                types[0] = types[1] = dyn();
        } else {
                hf__cel_type_issue(c->issues, &c->in,
                                   node->op == HF__CEL_FOLD_SORT ? node->at : range->at,
                                   "expression of type '%s' cannot be range of a comprehension "
                                   "(must be "
                                   "list, map, or dynamic)",
                                   type, NULL);
        }
}

/* The type of a list that is sorted by keys. */
static const struct hf__cel_type *sorted_type(struct checker *c, const struct hf__cel_node *node) {
        const struct hf__cel_overload *const *overloads;
        const struct hf__cel_overload *matching[SORT_OVERLOADS_MAX];
        size_t n = hf__cel_library_find(c->declarations->functions, HF__CEL_SORT_BY, &overloads);
        const struct hf__cel_type *types[2] = {node->as.fold.range->type, NULL};
        const struct hf__cel_type *result;
        uint16_t n_matching;

        assert(n <= SORT_OVERLOADS_MAX);
        types[1] = made(c, HF__CEL_LIST, node->as.fold.result->type, NULL);
        result = resolve(c, true, 2, overloads, n, types, matching, &n_matching);
        if (!result && !c->in.failed)
                hf__cel_no_overload(c->issues, &c->in, node->at, HF__CEL_SORT_BY, true, types, 2);
        return result ? result : error_type();
}

/* The type of what a macro accumulates. That is the type of its result, except in exists_one, which
 * counts. */
static const struct hf__cel_type *fold_type(struct checker *c, const struct hf__cel_node *node,
                                            const struct hf__cel_type *element) {
        const struct hf__cel_node *result = node->as.fold.result;
        const struct hf__cel_type *type;

        switch (node->op) {
        case HF__CEL_FOLD_EXISTS_ONE: return hf__cel_type_of(HF__CEL_INT);
        case HF__CEL_FOLD_LIST: return made(c, HF__CEL_LIST, result->type, NULL);
        case HF__CEL_FOLD_SORT: return sorted_type(c, node);
        case HF__CEL_FOLD_FILTER: return made(c, HF__CEL_LIST, element, NULL);
        case HF__CEL_FOLD_MAP:
                type = hf__cel_substitute(&c->in, node->as.fold.range->type, false);
                if (type->kind == HF__CEL_MAP)
                        return made(c, HF__CEL_MAP, type->params[0], result->type);
                return made(c, HF__CEL_MAP,
                            type->kind == HF__CEL_LIST ? hf__cel_type_of(HF__CEL_INT) : dyn(),
                            result->type);
        case HF__CEL_FOLD_MAP_ENTRY:
                type = made(c, HF__CEL_MAP, new_var(c), new_var(c));
                if (!assign_one(c, result->type, type) && !c->in.failed)
                        hf__cel_type_issue(c->issues, &c->in, result->at,
                                           "expected type '%s' but found '%s'", type, result->type);
                return type;
        case HF__CEL_FOLD_OPT_MAP: return made(c, HF__CEL_OPTIONAL, result->type, NULL);
        case HF__CEL_FOLD_OPT_FLAT_MAP:
                type = made(c, HF__CEL_OPTIONAL, new_var(c), NULL);
                if (!assign_one(c, result->type, type) && !c->in.failed)
                        hf__cel_type_issue(c->issues, &c->in, result->at,
                                           "expected type '%s' but found '%s'", type, result->type);
                return type;
        default: return hf__cel_type_of(HF__CEL_BOOL);
        }
}

static void check_fold(struct checker *c, struct hf__cel_node *node) {
        const struct hf__cel_type *boolean = hf__cel_type_of(HF__CEL_BOOL);
        const struct hf__cel_type *types[2];
        const struct hf__cel_type *type;
        struct hf__cel_node *test = node->as.fold.test;
        bool logic = node->op == HF__CEL_FOLD_ALL || node->op == HF__CEL_FOLD_EXISTS;

        check(c, node->as.fold.range);
        range_types(c, node, types);
        assert(c->n_locals + 2 <= sizeof c->locals / sizeof c->locals[0]);
        node->as.fold.slot = c->n_locals;
        for (unsigned i = 0; i < 2; i++)
                c->locals[c->n_locals++] =
                        (struct local){.name = node->as.fold.variables[i].text, .type = types[i]};
        if (c->n_locals > c->max_locals)
                c->max_locals = c->n_locals;
        if (test)
                check(c, test);
        if (node->as.fold.result)
                check(c, node->as.fold.result);
        c->n_locals -= 2;
        type = fold_type(c, node, types[0]);
        node->type = node->op == HF__CEL_FOLD_EXISTS_ONE ? boolean : type;
        if (!test || assign_one(c, test->type, boolean) || c->in.failed)
                return;
        if (logic) {
                hf__cel_type_issue(c->issues, &c->in, test->at, "expected type '%s' but found '%s'",
                                   boolean, test->type);
        } else {
                const struct hf__cel_type *operands[3] = {test->type, type, type};

                hf__cel_no_overload(c->issues, &c->in, node->at, "_?_:_", false, operands, 3);
        }
}

static void check(struct checker *c, struct hf__cel_node *node) {
        switch ((enum hf__cel_node_kind)node->kind) {
        case HF__CEL_NODE_CONST: node->type = hf__cel_value_type(node->as.constant); break;
        case HF__CEL_NODE_NAME: check_name(c, node); break;
        case HF__CEL_NODE_SELECT:
        case HF__CEL_NODE_HAS: check_select(c, node); break;
        case HF__CEL_NODE_CALL: check_call(c, node); break;
        case HF__CEL_NODE_LIST: check_list(c, node); break;
        case HF__CEL_NODE_MAP: check_map(c, node); break;
        case HF__CEL_NODE_OBJECT: check_object(c, node); break;
        case HF__CEL_NODE_FOLD: check_fold(c, node); break;
        }
        assert(node->type);
}

const struct hf__cel_type *hf__cel_check(struct hf__cel_node *root,
                                         const struct hf__cel_declarations *declarations,
                                         struct hf__cel_issues *issues,
                                         struct hf__cel_checked *ret_checked) {
        struct checker c = {.declarations = declarations,
                            .issues = issues,
                            .arena = issues->arena,
                            .in = {.arena = issues->arena}};
        const struct hf__cel_type *type;

        check(&c, root);
        type = hf__cel_substitute(&c.in, root->type, true);
        if (c.in.failed && issues->n == 0 && !c.arena->failed)
                hf__cel_issues_add(issues, HF__CEL_NO_PLACE,
                                   "the types of the expression are too complex");
        if (issues->n == 0 && !c.in.failed)
                hf__cel_validate(root, declarations->mixed_literals, &c.in, issues);
        else
                type = NULL;
        *ret_checked = (struct hf__cel_checked){.n_locals = c.max_locals, .used = c.used};
        return c.arena->failed ? NULL : type;
}

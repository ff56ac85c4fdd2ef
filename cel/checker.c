/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The checker. It walks the tree once and sets the type of each node, the slot of each variable,
 * and the overloads that each call may reach. This file checks names, fields and literals;
 * check_calls.c checks calls, and check_folds.c macros.
 *
 * Invariants: a node whose type cannot be determined has the type ERROR, which fits everything, so
 * that one mistake is reported once. The recursion is bounded by the depth of the tree.
 */
#include "cel/checker.h"

#include <assert.h>
#include <string.h>

#include "base/arena.h"
#include "base/strbuf.h"
#include "cel/check_state.h"
#include "cel/library.h"
#include "cel/type_issues.h"
#include "cel/validate.h"

const struct hf__cel_type *hf__cel_check_made(struct hf__cel_checker *c, enum hf__cel_kind kind,
                                              const struct hf__cel_type *a,
                                              const struct hf__cel_type *b) {
        const struct hf__cel_type *type = hf__cel_type_new(c->arena, kind, a, b);

        if (!type)
                c->in.failed = true;
        return type ? type : hf__cel_check_error_type();
}

bool hf__cel_check_assign_one(struct hf__cel_checker *c, const struct hf__cel_type *from,
                              const struct hf__cel_type *to) {
        return hf__cel_assign(&c->in, &from, &to, 1);
}

/* A container is a name space in which CEL looks names up first. Kubernetes sets none, but cel-go's
 * message names it. */
void hf__cel_check_undeclared(struct hf__cel_checker *c, uint32_t at, const char *name) {
        hf__cel_issues_add(c->issues, at, "undeclared reference to '%s' (in container '')", name);
}

const struct hf__cel_type *hf__cel_check_new_var(struct hf__cel_checker *c) {
        return hf__cel_var(&c->in, hf__cel_new_vars(&c->in, 1));
}

/* Types are values in CEL: type(x) == int compares with the type that the name int stands for. */
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
static bool resolve_global(struct hf__cel_checker *c, struct hf__cel_node *node, const char *name) {
        const struct hf__cel_type *type;

        for (size_t i = 0; i < c->declarations->n_variables; i++)
                if (strcmp(c->declarations->variables[i].name, name) == 0) {
                        node->kind = HF__CEL_NODE_NAME;
                        node->as.name.scope = HF__CEL_SCOPE_INPUT;
                        /* The evaluator finds the variable by its number, so no name is looked up
                         * at that time. */
                        node->as.name.slot = (uint32_t)i;
                        /* cel.c is asked about the first 64 variables only. */
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
        node->type = hf__cel_check_made(c, HF__CEL_TYPE, type, NULL);
        return true;
}

/* The slot of a local variable, or -1. The search goes from the innermost macro outwards, so a
 * variable of a macro hides one with the same name. */
static int find_local(const struct hf__cel_checker *c, const char *name) {
        for (uint32_t i = c->n_locals; i-- > 0;)
                if (c->locals[i].name && strcmp(c->locals[i].name, name) == 0)
                        return (int)i;
        return -1;
}

/* With a leading dot a name means the root container, which is the only one here. As in cel-go 0.26
 * the dot does not reach past a local variable. */
static void check_name(struct hf__cel_checker *c, struct hf__cel_node *node) {
        const char *name = node->as.name.name.text;
        const char *plain = name + (name[0] == '.' ? 1 : 0);
        int local = find_local(c, plain);

        node->type = hf__cel_check_error_type();
        if (local >= 0) {
                node->as.name.scope = HF__CEL_SCOPE_LOCAL;
                node->as.name.slot = (uint32_t)local;
                node->type = c->locals[local].type;
        } else if (!resolve_global(c, node, plain)) {
                hf__cel_check_undeclared(c, node->at, name);
        }
}

size_t hf__cel_check_chain(const struct hf__cel_node *node, char out[HF__CEL_NAME_MAX_BYTES]) {
        const struct hf__cel_name *name;
        const char *text;
        size_t n_text;
        size_t n = 0;

        if (node->kind == HF__CEL_NODE_NAME) {
                name = &node->as.name.name;
        } else if (node->kind == HF__CEL_NODE_SELECT && !node->optional) {
                name = &node->as.select.field;
                n = hf__cel_check_chain(node->as.select.operand, out);
                if (n == 0)
                        return 0;
                out[n++] = '.';
        } else {
                return 0;
        }
        /* Only the first name of a chain can have the leading dot that means the root container. A
         * dot at the beginning of a later one is part of a quoted name. */
        text = name->text + (n == 0 && name->text[0] == '.' ? 1 : 0);
        n_text = strlen(text);
        /* No declared name is that long, so the chain is no name but fields of a value. */
        if (n + n_text + 1 >= HF__CEL_NAME_MAX_BYTES)
                return 0;
        memcpy(out + n, text, n_text + 1);
        return n + n_text;
}

/* A type that inference has not determined becomes dyn when a field is selected: then the
 * evaluation finds out whether the value has the field, as in cel-go. */
static const struct hf__cel_type *field_type(struct hf__cel_checker *c,
                                             const struct hf__cel_node *node) {
        const struct hf__cel_type *type =
                hf__cel_substitute(&c->in, node->as.select.operand->type, false);
        bool optional = node->optional;
        const struct hf__cel_type *result = hf__cel_check_dyn();

        /* A field of an optional is an optional again: a.?b.c is absent if b is. */
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
                        result = hf__cel_check_error_type();
        } else if (type->kind == HF__CEL_VAR) {
                hf__cel_check_assign_one(c, hf__cel_check_dyn(), type);
        } else if (type->kind != HF__CEL_DYN && type->kind != HF__CEL_ERROR) {
                hf__cel_type_issue(c->issues, &c->in, node->at,
                                   "type '%s' does not support field selection", type, NULL);
        }
        return optional ? hf__cel_check_made(c, HF__CEL_OPTIONAL, result, NULL) : result;
}

/* The longest declared name wins: "a.b" is the variable a.b, if there is one, before it is the
 * field b of a. Kubernetes relies on that for names such as google.protobuf.Timestamp. */
static void check_select(struct hf__cel_checker *c, struct hf__cel_node *node) {
        char name[HF__CEL_NAME_MAX_BYTES];

        if (node->kind == HF__CEL_NODE_SELECT && hf__cel_check_chain(node, name) > 0 &&
            resolve_global(c, node, name))
                return;
        hf__cel_check_node(c, node->as.select.operand);
        node->type = field_type(c, node);
        if (node->kind == HF__CEL_NODE_HAS)
                node->type = hf__cel_type_of(HF__CEL_BOOL);
}

/* The common type of elements; dyn if they have none. Elements of different types are no error of
 * the language. Where Kubernetes forbids them, validate.c refuses them. */
static const struct hf__cel_type *join_types(struct hf__cel_checker *c,
                                             const struct hf__cel_type *all,
                                             const struct hf__cel_type *next) {
        if (!all)
                return next;
        return hf__cel_check_assign_one(c, all, next) ? hf__cel_most_general(all, next)
                                                      : hf__cel_check_dyn();
}

/* The type of an element that may be marked as optional. */
static const struct hf__cel_type *unwrap_optional(struct hf__cel_checker *c,
                                                  const struct hf__cel_node *node, bool optional) {
        const struct hf__cel_type *type = hf__cel_substitute(&c->in, node->type, false);

        if (!optional)
                return type;
        if (type->kind == HF__CEL_OPTIONAL)
                return type->params[0];
        if (type->kind != HF__CEL_DYN && type->kind != HF__CEL_ERROR)
                hf__cel_type_issue(c->issues, &c->in, node->at, "expected type '%s' but found '%s'",
                                   hf__cel_check_made(c, HF__CEL_OPTIONAL, type, NULL), type);
        return type;
}

/* An empty list has elements of a type that is still open: it can be compared with, and added to,
 * any list. */
static void check_list(struct hf__cel_checker *c, struct hf__cel_node *node) {
        const struct hf__cel_type *all = NULL;

        for (uint32_t i = 0; i < node->as.list.n; i++) {
                struct hf__cel_node *item = node->as.list.items[i];

                hf__cel_check_node(c, item);
                all = join_types(c, all,
                                 unwrap_optional(c, item,
                                                 node->as.list.optional &&
                                                         node->as.list.optional[i]));
        }
        node->type =
                hf__cel_check_made(c, HF__CEL_LIST, all ? all : hf__cel_check_new_var(c), NULL);
}

static void check_map(struct hf__cel_checker *c, struct hf__cel_node *node) {
        const struct hf__cel_type *keys = NULL;
        const struct hf__cel_type *values = NULL;

        for (uint32_t i = 0; i < node->as.map.n; i++) {
                struct hf__cel_pair *pair = &node->as.map.pairs[i];

                hf__cel_check_node(c, pair->key);
                keys = join_types(c, keys, unwrap_optional(c, pair->key, false));
                hf__cel_check_node(c, pair->value);
                values = join_types(c, values, unwrap_optional(c, pair->value, pair->optional));
        }
        node->type = hf__cel_check_made(c, HF__CEL_MAP, keys ? keys : hf__cel_check_new_var(c),
                                        values ? values : hf__cel_check_new_var(c));
}

/* The field's name is in the format of the issue, because hf__cel_type_issue fills in only the two
 * types. A name with a percent sign would be a directive there. */
static void check_object_field(struct hf__cel_checker *c, const struct hf__cel_type *object,
                               struct hf__cel_pair *pair) {
        const struct hf__cel_type *field;
        const struct hf__cel_type *type;

        hf__cel_check_node(c, pair->value);
        field = hf__cel_type_field(object, pair->name.text, pair->name.n);
        if (!field) {
                hf__cel_issues_add(c->issues, pair->at, "undefined field '%s'", pair->name.text);
                return;
        }
        type = unwrap_optional(c, pair->value, pair->optional);
        if (!hf__cel_check_assign_one(c, field, type) && !c->in.failed) {
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

/* The type Object, or one such as Object.spec, if the declarations have it. NULL: they do not, or
 * memory ran out. MutatingAdmissionPolicies write such objects. Their fields are those of a kind
 * that is not known here. */
static const struct hf__cel_type *open_object(struct hf__cel_checker *c, const char *name) {
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

static void check_object(struct hf__cel_checker *c, struct hf__cel_node *node) {
        const char *name = node->as.map.name.text;
        const char *plain = name + (name[0] == '.' ? 1 : 0);
        const struct hf__cel_type *object = open_object(c, plain);

        for (size_t i = 0; !object && i < c->declarations->n_objects; i++)
                if (strcmp(c->declarations->objects[i]->name, plain) == 0)
                        object = c->declarations->objects[i];
        node->type = object ? object : hf__cel_check_error_type();
        if (!object) {
                hf__cel_check_undeclared(c, node->at, name);
                return;
        }
        for (uint32_t i = 0; i < node->as.map.n; i++)
                check_object_field(c, object, &node->as.map.pairs[i]);
}

void hf__cel_check_node(struct hf__cel_checker *c, struct hf__cel_node *node) {
        switch ((enum hf__cel_node_kind)node->kind) {
        case HF__CEL_NODE_CONST: node->type = hf__cel_value_type(node->as.constant); break;
        case HF__CEL_NODE_NAME: check_name(c, node); break;
        case HF__CEL_NODE_SELECT:
        case HF__CEL_NODE_HAS: check_select(c, node); break;
        case HF__CEL_NODE_CALL: hf__cel_check_call(c, node); break;
        case HF__CEL_NODE_LIST: check_list(c, node); break;
        case HF__CEL_NODE_MAP: check_map(c, node); break;
        case HF__CEL_NODE_OBJECT: check_object(c, node); break;
        case HF__CEL_NODE_FOLD: hf__cel_check_fold(c, node); break;
        }
        assert(node->type);
}

const struct hf__cel_type *hf__cel_check(struct hf__cel_node *root,
                                         const struct hf__cel_declarations *declarations,
                                         struct hf__cel_issues *issues,
                                         struct hf__cel_checked *ret_checked) {
        struct hf__cel_checker c = {.declarations = declarations,
                                    .issues = issues,
                                    .arena = issues->arena,
                                    .in = {.arena = issues->arena}};
        const struct hf__cel_type *type;

        hf__cel_check_node(&c, root);
        type = hf__cel_substitute(&c.in, root->type, true);
        /* A type has too many parts or levels, or the inference took too many steps. No issue says
         * so yet, and the author must learn why the expression is refused. */
        if (c.in.failed && issues->n == 0 && !c.arena->failed)
                hf__cel_issues_add(issues, HF__CEL_NO_PLACE,
                                   "the types of the expression are too complex");
        if (issues->n == 0 && !c.in.failed)
                hf__cel_validate(root, declarations->mixed_literals, &c.in, issues);
        else
                type = NULL;
        *ret_checked = (struct hf__cel_checked){.n_locals = c.max_locals,
                                                .used = c.used,
                                                .steps = c.in.steps};
        return c.arena->failed ? NULL : type;
}

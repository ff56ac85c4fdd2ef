/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Checks the types in the validations of a policy.
 *
 * Invariant: a check never changes what the policy does; its result is only text in the status.
 * Kinds that are not served, rules with a wildcard as group or version, and resources with a
 * wildcard are left out, as in Kubernetes. The number of kinds is limited here, and that of
 * expressions in the validation of policies, because whoever may write a policy chooses both.
 */
#include "server/admission/policy/types/type_check.h"

#include <assert.h>
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/arena.h"
#include "base/json.h"
#include "base/strbuf.h"
#include "server/admission/policy/param_kind.h"
#include "server/admission/policy/types/schema_types.h"
#include "server/resources/custom/custom_kind.h"
#include "server/resources/custom/custom_table.h"
#include "server/resources/expressions/expressions.h"

#define KINDS_MAX   10    /* as in Kubernetes; each one means to compile all expressions again */
#define LOOKUPS_MAX 10000 /* of combinations of a group, a version and a resource */
#define WARNING_MAX (32U << 10) /* bytes of an expression's warning; a longer one is dropped */

struct checking {
        const struct hf__json *spec;
        struct hfd_custom_table *table;
        struct hf__arena arena;                     /* of the types */
        const struct hfd_resource *rows[KINDS_MAX]; /* references, sorted */
        struct hfd_expressions *sets[KINDS_MAX];    /* with the variables */
        size_t n_rows, n_lookups;
        bool has_params;
        const struct hfd_resource *params_row;  /* a reference; params_type borrows its texts */
        const struct hf__cel_type *params_type; /* NULL: dyn */
        struct hf__json *warnings;
        int r;
};

/* ---- the kinds ---- */

static const char *text_of(const struct hf__json *json) {
        return hf__json_is_string(json) ? hf__json_text(json) : "";
}

/* The lookups are limited, because there are as many combinations as the product of the lengths of
 * three lists. */
static bool may_look_up(const struct checking *c) {
        return c->n_rows < KINDS_MAX && c->n_lookups < LOOKUPS_MAX;
}

/* Adds the row of a kind, unless it is there already. Subresources are left out: their bodies may
 * be of another kind, or of only a part of the object. */
static void add_row(struct checking *c, const char *group, const char *version,
                    const char *plural) {
        const struct hfd_resource *row;

        c->n_lookups++;
        if (strpbrk(plural, "*/"))
                return;
        row = hfd_custom_table_find(c->table, group, version, plural);
        for (size_t i = 0; row && i < c->n_rows; i++)
                if (c->rows[i] == row)
                        row = hfd_resource_unref(row);
        assert(c->n_rows < KINDS_MAX); /* may_look_up was asked */
        if (row && row->schema)
                c->rows[c->n_rows++] = row;
        else
                hfd_resource_unref(row);
}

static void add_rule(struct checking *c, const struct hf__json *rule) {
        const struct hf__json *groups = hf__json_get(rule, "apiGroups");
        const struct hf__json *versions = hf__json_get(rule, "apiVersions");
        const struct hf__json *resources = hf__json_get(rule, "resources");

        if (hf__json_has_element(groups, "*") || hf__json_has_element(versions, "*"))
                return;
        for (const struct hf__json *g = hf__json_first(groups); g && may_look_up(c);
             g = hf__json_next(g))
                for (const struct hf__json *v = hf__json_first(versions); v && may_look_up(c);
                     v = hf__json_next(v))
                        for (const struct hf__json *m = hf__json_first(resources);
                             m && may_look_up(c); m = hf__json_next(m))
                                add_row(c, text_of(g), text_of(v), text_of(m));
}

/* Warnings come in this order, so that the status does not change when the rules change places,
 * unless they name more than KINDS_MAX kinds. */
static int compare_rows(const void *a, const void *b) {
        const struct hfd_resource *const *x = a;
        const struct hfd_resource *const *y = b;
        int r = strcmp((*x)->group, (*y)->group);

        if (r == 0)
                r = strcmp((*x)->version, (*y)->version);
        return r != 0 ? r : strcmp((*x)->kind, (*y)->kind);
}

static unsigned features_of(const struct checking *c) {
        return HFD_EXPRESSION_VARIABLES | HFD_EXPRESSION_AUTHORIZER |
               (c->has_params ? HFD_EXPRESSION_PARAMS : 0);
}

/* As in Kubernetes, params of a kind that is not served, or has no schema, have any type. 0 or
 * -ENOMEM. */
static int make_params_type(struct checking *c) {
        const struct hf__json *wanted = hf__json_get(c->spec, "paramKind");
        char name[200];

        c->has_params = wanted != NULL;
        if (!wanted)
                return 0;
        c->params_row =
                hfd_policy_params_kind_in(c->table, text_of(hf__json_get(wanted, "apiVersion")),
                                          text_of(hf__json_get(wanted, "kind")));
        if (!c->params_row || !c->params_row->schema)
                return 0;
        /* The objects may be of a kind with the same name, and types with one name are one type. */
        (void)snprintf(name, sizeof name, "params.%s", c->params_row->kind);
        c->params_type = hfd_schema_type(&c->arena, c->params_row->schema, name);
        return c->params_type ? 0 : -ENOMEM;
}

/* Makes one set of expressions for each kind, in which `object` has the type of that kind. A
 * variable beyond the limit is left out, as in the policy itself (compiled_policy.c). */
static int make_sets(struct checking *c) {
        for (size_t i = 0; i < c->n_rows; i++) {
                const struct hf__cel_type *type =
                        hfd_schema_type(&c->arena, c->rows[i]->schema, c->rows[i]->kind);
                const struct hfd_expression *expression;
                int r = type ? hfd_expressions_new(features_of(c), type, c->params_type,
                                                   &c->sets[i])
                             : -ENOMEM;

                for (const struct hf__json *m = hf__json_first(hf__json_get(c->spec, "variables"));
                     m && r >= 0; m = hf__json_next(m))
                        r = hfd_expressions_add_variable(c->sets[i],
                                                         text_of(hf__json_get(m, "name")),
                                                         text_of(hf__json_get(m, "expression")),
                                                         &expression);
                if (r < 0)
                        return r;
        }
        return 0;
}

/* ---- the expressions ---- */

/* Appends what is wrong with an expression for one kind, without the words "compilation failed: "
 * that the compilation puts in front. */
static void check_kind(struct checking *c, size_t i, const char *text, struct hf__strbuf *warning) {
        static const char before[] = "compilation failed: ";
        const struct hfd_resource *row = c->rows[i];
        const struct hfd_expression *expression;
        const char *error;

        if (hfd_expressions_compile(c->sets[i], text, features_of(c), HFD_RESULT_ANY,
                                    &expression) != 0) {
                c->r = -ENOMEM;
                return;
        }
        error = expression->error;
        if (!error)
                return;
        if (strncmp(error, before, sizeof before - 1) == 0)
                error += sizeof before - 1;
        hf__strbuf_printf(warning, "%s%s/%s, Kind=%s: %s\n", warning->n > 0 ? "\n" : "", row->group,
                          row->version, row->kind, error);
}

static void check_expression(struct checking *c, size_t number, const char *member,
                             const char *text) {
        struct hf__strbuf warning = {.max = WARNING_MAX};
        struct hf__json *item;
        char field[80];
        int r = 0;

        for (size_t i = 0; i < c->n_rows && c->r == 0; i++)
                check_kind(c, i, text, &warning);
        if (warning.n > 0 && warning.error == 0) {
                snprintf(field, sizeof field, "spec.validations[%zu].%s", number, member);
                if (!c->warnings)
                        c->warnings = hf__json_array();
                item = hf__json_object();
                r = c->warnings && item ? hf__json_add_string(item, "fieldRef", field) : -ENOMEM;
                if (r == 0)
                        r = hf__json_add_string(item, "warning", warning.data);
                if (r == 0)
                        r = hf__json_append(c->warnings, item);
                else
                        hf__json_free(item);
        }
        if (r != 0)
                c->r = r;
        hf__strbuf_done(&warning);
}

static void check_validations(struct checking *c) {
        size_t i = 0;

        for (const struct hf__json *m = hf__json_first(hf__json_get(c->spec, "validations"));
             m && c->r == 0; m = hf__json_next(m), i++) {
                const char *message = hf__json_string(m, "messageExpression");

                check_expression(c, i, "expression", text_of(hf__json_get(m, "expression")));
                if (message && message[0])
                        check_expression(c, i, "messageExpression", message);
        }
}

int hfd_policy_type_check(const struct hf__json *policy, struct hfd_custom_table *table,
                          struct hf__json **ret_checking) {
        struct checking c = {.spec = hf__json_get(policy, "spec"), .table = table};
        struct hf__json *checking = hf__json_object();
        const struct hf__json *rules = hf__json_path(c.spec, "matchConstraints.resourceRules");

        hf__arena_init(&c.arena);
        for (const struct hf__json *m = hf__json_first(rules); m; m = hf__json_next(m))
                add_rule(&c, m);
        if (c.n_rows > 0)
                qsort((void *)c.rows, c.n_rows, sizeof c.rows[0], compare_rows);
        c.r = checking ? make_params_type(&c) : -ENOMEM;
        if (c.r == 0)
                c.r = make_sets(&c);
        if (c.r == 0)
                check_validations(&c);
        if (c.r == 0 && c.warnings) {
                c.r = hf__json_add(checking, "expressionWarnings", c.warnings);
                c.warnings = NULL;
        }
        for (size_t i = 0; i < c.n_rows; i++) {
                hfd_expressions_free(c.sets[i]);
                hfd_resource_unref(c.rows[i]);
        }
        hfd_resource_unref(c.params_row);
        hf__json_free(c.warnings);
        hf__arena_deinit(&c.arena);
        if (c.r != 0) {
                hf__json_free(checking);
                return -ENOMEM;
        }
        *ret_checking = checking;
        return 0;
}

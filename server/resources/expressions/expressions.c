/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Compiles the expressions of admission policies and of match conditions. A set has those of one
 * policy or webhook, with the variables that they share.
 *
 * Invariants: the declarations that a program was compiled with do not change later. So each added
 * variable makes a new type of `variables`. The types share an array of fields until it is full;
 * each type sees a prefix of it. An expression sees only the variables before it, so none refers to
 * itself.
 */
#include "server/resources/expressions/expressions.h"

#include <assert.h>
#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include <holdfast/error.h>

#include "base/arena.h"
#include "base/strbuf.h"
#include "cel/cel.h"
#include "cel/values/authorizer.h"
#include "server/resources/custom/rules/rule.h"
#include "server/resources/custom/rules/rule_library.h"
#include "server/resources/expressions/request_types.h"
#include "server/resources/zones/zones.h"

/* The declarations of one combination of features, as long as no variable is added. Programs borrow
 * them, so they stay in the arena when a variable makes them obsolete. */
struct scope {
        struct hf__cel_variable variables[HFD_SLOTS_OF_EXPRESSION];
        struct hf__cel_declarations declarations;
};

struct hfd_expressions {
        struct hf__arena arena; /* what the programs borrow: texts, types and scopes */
        const struct hf__cel_library *library;     /* a counted reference; NULL = not got yet */
        unsigned features;                         /* those that some expression may use */
        const struct hf__cel_type *object_type;    /* borrowed */
        const struct hf__cel_type *params_type;    /* borrowed */
        struct hfd_expression *all;                /* in the arena; owns its program */
        struct hfd_expression_variable *variables; /* owned */
        struct hf__cel_field *fields; /* owned by the arena; in the order of variables */
        size_t n_variables;
        size_t variables_space;                    /* elements of variables, and of fields */
        const struct hf__cel_type *variables_type; /* of `variables` for the next expression */
        const struct scope *scopes[16];            /* by features; NULL: not made yet */
        uint64_t work;                             /* of compiling the expressions */
};

int hfd_expressions_new(unsigned features, const struct hf__cel_type *object_type,
                        const struct hf__cel_type *params_type, struct hfd_expressions **ret_set) {
        /* The type of `variables` before the first one is added: an object without fields. */
        static const struct hf__cel_type none = {.kind = HF__CEL_OBJECT,
                                                 .weight = 1,
                                                 .name = "kubernetes.variables"};
        struct hfd_expressions *set = calloc(1, sizeof *set);

        if (!set)
                return -ENOMEM;
        hf__arena_init(&set->arena);
        set->features = features;
        set->object_type = object_type ? object_type : hf__cel_type_of(HF__CEL_DYN);
        set->params_type = params_type ? params_type : hf__cel_type_of(HF__CEL_DYN);
        set->variables_type = &none;
        if (hfd_rule_library_ref(&set->library) != 0) {
                set->library = NULL;
                hfd_expressions_free(set);
                return -ENOMEM;
        }
        *ret_set = set;
        return 0;
}

struct hfd_expressions *hfd_expressions_free(struct hfd_expressions *set) {
        if (!set)
                return NULL;
        /* Programs are not in the arena, because each has memory of its own. */
        for (struct hfd_expression *e = set->all; e; e = e->next)
                hf__cel_program_free(e->program);
        free(set->variables);
        hf__arena_deinit(&set->arena);
        if (set->library)
                hfd_rule_library_unref();
        free(set);
        return NULL;
}

/* The declarations for expressions with these features, which are made when they are first needed.
 * NULL = out of memory. */
static const struct scope *scope_of(struct hfd_expressions *set, unsigned features) {
        const struct hf__cel_type *dyn = hf__cel_type_of(HF__CEL_DYN);
        bool params = (features & HFD_EXPRESSION_PARAMS) != 0;
        bool authorizer = (features & HFD_EXPRESSION_AUTHORIZER) != 0;
        bool variables = (features & HFD_EXPRESSION_VARIABLES) != 0;
        struct scope *scope;

        assert(features < 16 && (features & ~set->features) == 0);
        if (set->scopes[features])
                return set->scopes[features];
        scope = hf__arena_alloc(&set->arena, sizeof *scope);
        if (!scope)
                return NULL;
        /* A variable that the expression may not use gets a name that no expression can contain. */
        *scope = (struct scope){
                .variables = {[HFD_SLOT_OBJECT] = {"object", set->object_type},
                              [HFD_SLOT_OLD_OBJECT] = {"oldObject", set->object_type},
                              [HFD_SLOT_NAMESPACE_OBJECT] = {"namespaceObject",
                                                             hfd_namespace_type()},
                              [HFD_SLOT_REQUEST] = {"request", hfd_admission_request_type()},
                              [HFD_SLOT_PARAMS] = {params ? "params" : "", set->params_type},
                              [HFD_SLOT_AUTHORIZER] = {authorizer ? "authorizer" : "",
                                                       &hf__cel_authorizer_type},
                              [HFD_SLOT_REQUEST_RESOURCE] = {authorizer
                                                                     ? "authorizer.requestResource"
                                                                     : "",
                                                             &hf__cel_resource_check_type},
                              [HFD_SLOT_VARIABLES] = {variables ? "variables" : "",
                                                      variables ? set->variables_type : dyn}},
                .declarations = {.functions = set->library,
                                 .zones = hfd_zones(),
                                 .n_variables = HFD_SLOTS_OF_EXPRESSION,
                                 .max_depth = HFD_RULE_DEPTH},
        };
        scope->declarations.variables = scope->variables;
        if ((features & HFD_EXPRESSION_PATCH) != 0) {
                scope->declarations.open_object = "Object";
                scope->declarations.objects = hfd_patch_types(&scope->declarations.n_objects);
        }
        set->scopes[features] = scope;
        return scope;
}

/* Prints the name of a type as messages about results have it. */
static void print_type(struct hf__strbuf *out, const struct hf__cel_type *type) {
        if (type->n_params > 0)
                hf__cel_type_print(out, type);
        else
                hf__strbuf_puts(out, hf__cel_type_name(type));
}

/* Whether `type`, that of a program's result, is one that `result` allows. If not, the message says
 * so. */
static bool check_result(const struct hf__cel_type *type, enum hfd_expression_result result,
                         struct hf__strbuf *message) {
        static const char *const wanted[] = {
                [HFD_RESULT_BOOL] = "bool",
                [HFD_RESULT_STRING] = "string",
                [HFD_RESULT_STRING_OR_NULL] = "[string null_type]",
                [HFD_RESULT_OBJECT] = "Object",
                [HFD_RESULT_JSON_PATCH] = "list(JSONPatch)",
        };
        struct hf__strbuf name = {.max = 400};
        bool fits = result == HFD_RESULT_ANY;

        print_type(&name, type);
        if (name.error == 0 && !fits)
                fits = result == HFD_RESULT_STRING_OR_NULL
                               ? type->kind == HF__CEL_STRING || type->kind == HF__CEL_NULL
                               : strcmp(name.data, wanted[result]) == 0;
        if (!fits)
                hf__strbuf_printf(message, "must evaluate to %s%s but got %s",
                                  result == HFD_RESULT_STRING_OR_NULL ? "one of " : "",
                                  wanted[result], name.error == 0 ? name.data : "another type");
        if (name.error == -ENOMEM)
                message->error = -ENOMEM;
        hf__strbuf_done(&name);
        return fits;
}

/* Compiles the text of an expression. 0 or -ENOMEM. */
static int compile_expression(struct hfd_expressions *set, struct hfd_expression *expression,
                              unsigned features, enum hfd_expression_result result) {
        const struct scope *scope = scope_of(set, features);
        /* The limit bounds what a client with a long expression makes the server keep and send. */
        struct hf__strbuf message = {.max = 16384};
        uint64_t work;
        int r;

        if (!scope)
                return -ENOMEM;
        hf__strbuf_puts(&message, "compilation failed: ");
        r = hf__cel_compile(&scope->declarations, expression->text, strlen(expression->text),
                            &message, &expression->program, &work);
        set->work += work;
        if (r == 0) {
                hf__strbuf_reset(&message);
                if (check_result(hf__cel_program_type(expression->program), result, &message)) {
                        expression->depth = hf__cel_program_depth(expression->program);
                } else {
                        hf__cel_program_free(expression->program);
                        expression->program = NULL;
                }
        }
        if (message.error == -ENOMEM)
                r = -ENOMEM;
        if (r >= 0 && !expression->program)
                expression->error = hf__arena_text(&set->arena, message.data, message.n);
        hf__strbuf_done(&message);
        if (r < 0 || (!expression->program && !expression->error))
                return -ENOMEM;
        return 0;
}

int hfd_expressions_compile(struct hfd_expressions *set, const char *text, unsigned features,
                            enum hfd_expression_result result,
                            const struct hfd_expression **ret_expression) {
        struct hfd_expression *expression = hf__arena_alloc(&set->arena, sizeof *expression);
        int r;

        if (!expression)
                return -ENOMEM;
        *expression = (struct hfd_expression){.next = set->all};
        expression->text = hf__arena_text(&set->arena, text, strlen(text));
        if (!expression->text)
                return -ENOMEM;
        set->all = expression;
        r = compile_expression(set, expression, features, result);
        if (r == 0)
                *ret_expression = expression;
        return r;
}

/* The type that a variable has for other expressions, as in Kubernetes: that of its values if they
 * are scalars, lists or maps; dyn for all others, also within lists and maps. */
static const struct hf__cel_type *seen_as(struct hf__arena *arena,
                                          const struct hf__cel_type *type) {
        const struct hf__cel_type *made;

        if (type->kind == HF__CEL_LIST || type->kind == HF__CEL_MAP) {
                /* After -ENOMEM any type will do: the caller looks at the arena. */
                made = hf__cel_type_new(arena, type->kind, seen_as(arena, type->params[0]),
                                        type->n_params > 1 ? seen_as(arena, type->params[1])
                                                           : NULL);
                return made ? made : hf__cel_type_of(HF__CEL_DYN);
        }
        if (type->kind <= HF__CEL_DURATION && type->kind != HF__CEL_ERROR)
                return hf__cel_type_of(type->kind);
        return hf__cel_type_of(HF__CEL_DYN);
}

/* Makes room for one more variable. The space doubles, so that adding n variables takes linear
 * time. false: out of memory. */
static bool grow_set(struct hfd_expressions *set) {
        size_t space = set->n_variables < 8 ? 8 : 2 * set->n_variables;
        struct hfd_expression_variable *variables;
        struct hf__cel_field *fields;

        if (set->n_variables < set->variables_space)
                return true;
        variables = reallocarray(set->variables, space, sizeof *variables);
        if (!variables)
                return false;
        set->variables = variables;
        /* Older types point to the old array, and their programs still read it. So the arrays of
         * fields are in the arena, which keeps each until the set is freed. */
        fields = hf__arena_alloc(&set->arena, space * sizeof *fields);
        if (!fields)
                return false;
        if (set->n_variables > 0)
                memcpy(fields, set->fields, set->n_variables * sizeof *fields);
        set->fields = fields;
        set->variables_space = space;
        return true;
}

int hfd_expressions_add_variable(struct hfd_expressions *set, const char *name, const char *text,
                                 const struct hfd_expression **ret_expression) {
        const struct hfd_expression *expression;
        struct hf__cel_type *type;
        const char *copy;
        int r;

        assert((set->features & HFD_EXPRESSION_VARIABLES) != 0);
        if (set->n_variables == HFD_EXPRESSION_VARIABLES_MAX)
                return HF_E_TOO_LARGE;
        r = hfd_expressions_compile(set, text, set->features, HFD_RESULT_ANY, &expression);
        if (r != 0)
                return r;
        copy = hf__arena_text(&set->arena, name, strlen(name));
        /* A variable that does not compile is added as well, with the type dyn: then its mistake
         * causes no further ones in the expressions that use it. */
        type = hf__arena_alloc(&set->arena, sizeof *type);
        if (!copy || !type || !grow_set(set))
                return -ENOMEM;
        set->variables[set->n_variables] =
                (struct hfd_expression_variable){.name = copy, .expression = expression};
        set->fields[set->n_variables].name = copy;
        set->fields[set->n_variables].type =
                expression->program
                        ? seen_as(&set->arena, hf__cel_program_type(expression->program))
                        : hf__cel_type_of(HF__CEL_DYN);
        *type = *set->variables_type;
        type->fields = set->fields;
        type->n_fields = ++set->n_variables;
        set->variables_type = type;
        /* Later expressions get declarations with the new type of `variables`. */
        memset((void *)set->scopes, 0, sizeof set->scopes);
        *ret_expression = expression;
        return set->arena.failed ? -ENOMEM : 0;
}

const struct hfd_expression_variable *hfd_expressions_variables(const struct hfd_expressions *set,
                                                                size_t *ret_n) {
        *ret_n = set->n_variables;
        return set->variables;
}

uint64_t hfd_expressions_work(const struct hfd_expressions *set) { return set->work; }

const char *hfd_expressions_text(struct hfd_expressions *set, const char *text) {
        return hf__arena_text(&set->arena, text, strlen(text));
}

const struct hfd_expression_variable *hfd_expressions_variable(const struct hfd_expressions *set,
                                                               const char *name, size_t n_name) {
        /* If several variables have the same name, the last one counts, as in Kubernetes. */
        for (size_t i = set->n_variables; i-- > 0;)
                if (strlen(set->variables[i].name) == n_name &&
                    memcmp(set->variables[i].name, name, n_name) == 0)
                        return &set->variables[i];
        return NULL;
}

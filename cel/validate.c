/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Validates literals: the elements of a list or map must have one type, and a format must suit its
 * arguments.
 *
 * CEL itself allows what is refused here: these are two validators that Kubernetes adds to cel-go.
 * With mixed_literals the first of them is left out.
 *
 * Invariants: only a tree that the checker has accepted is validated, as in Kubernetes. The
 * recursion is bounded by the depth of the tree.
 */
#include "cel/validate.h"

#include <stdio.h>
#include <string.h>

#include "cel/functions/format_clause.h"
#include "cel/type_issues.h"

struct validator {
        bool mixed; /* literals may mix types: always, or within the arguments of format */
        struct hf__cel_inference *in;
        struct hf__cel_issues *issues;
};

static void validate_node(struct validator *v, const struct hf__cel_node *node);

static const struct hf__cel_type *type_of(struct validator *v, const struct hf__cel_node *node) {
        return hf__cel_substitute(v->in, node->type, true);
}

/* ---- literals of one type ---- */

/* The type of an element; if it is marked as optional, the type of the value that it holds. */
static const struct hf__cel_type *element_type(struct validator *v, const struct hf__cel_node *node,
                                               bool optional) {
        const struct hf__cel_type *type = type_of(v, node);

        return optional && type->kind == HF__CEL_OPTIONAL ? type->params[0] : type;
}

/* Whether the type of the element is that of the first one, or literals may mix types. Sets *first
 * if this is the first one. False: an issue was added. */
static bool has_same_type(struct validator *v, const struct hf__cel_type **first,
                          const struct hf__cel_node *node, bool optional) {
        const struct hf__cel_type *type = element_type(v, node, optional);

        if (!*first)
                *first = type;
        if (v->mixed || hf__cel_type_same(*first, type))
                return true;
        hf__cel_type_issue(v->issues, v->in, node->at, "expected type '%s' but found '%s'", *first,
                           type);
        return false;
}

static void validate_list(struct validator *v, const struct hf__cel_node *node) {
        const struct hf__cel_type *first = NULL;
        bool one = true;

        for (uint32_t i = 0; i < node->as.list.n; i++) {
                bool optional = node->as.list.optional && node->as.list.optional[i];

                /* One issue for each list: the elements after the first wrong one would likely
                 * repeat it. */
                one = one && has_same_type(v, &first, node->as.list.items[i], optional);
                validate_node(v, node->as.list.items[i]);
        }
}

static void validate_map(struct validator *v, const struct hf__cel_node *node) {
        const struct hf__cel_type *key = NULL;
        const struct hf__cel_type *value = NULL;

        for (uint32_t i = 0; i < node->as.map.n; i++) {
                const struct hf__cel_pair *pair = &node->as.map.pairs[i];

                if (node->kind == HF__CEL_NODE_MAP) {
                        has_same_type(v, &key, pair->key, false);
                        has_same_type(v, &value, pair->value, pair->optional);
                        validate_node(v, pair->key);
                }
                validate_node(v, pair->value);
        }
}

/* ---- formats ---- */

/* Whether the clause takes an argument whose type is of this kind. A dyn passes: format.c checks
 * its value during the evaluation. */
static bool clause_takes(char clause, enum hf__cel_kind kind) {
        bool integer = kind == HF__CEL_INT || kind == HF__CEL_UINT;

        switch (clause) {
        case 's':
                return kind != HF__CEL_OPTIONAL && kind != HF__CEL_OPAQUE && kind != HF__CEL_OBJECT;
        case 'f':
        case 'e': return kind == HF__CEL_DYN || kind == HF__CEL_DOUBLE || kind == HF__CEL_STRING;
        case 'b': return kind == HF__CEL_DYN || integer || kind == HF__CEL_BOOL;
        case 'x':
        case 'X':
                return kind == HF__CEL_DYN || integer || kind == HF__CEL_STRING ||
                       kind == HF__CEL_BYTES;
        default: return kind == HF__CEL_DYN || integer;
        }
}

/* The argument, or the part of a literal argument, that the clause does not accept. NULL: there is
 * none. */
static const struct hf__cel_node *find_bad(struct validator *v, char clause,
                                           const struct hf__cel_node *arg) {
        const struct hf__cel_node *bad = clause_takes(clause, type_of(v, arg)->kind) ? NULL : arg;

        if (bad || clause != 's')
                return bad;
        for (uint32_t i = 0; arg->kind == HF__CEL_NODE_LIST && !bad && i < arg->as.list.n; i++)
                bad = find_bad(v, clause, arg->as.list.items[i]);
        for (uint32_t i = 0; arg->kind == HF__CEL_NODE_MAP && !bad && i < arg->as.map.n; i++) {
                bad = find_bad(v, clause, arg->as.map.pairs[i].key);
                if (!bad)
                        bad = find_bad(v, clause, arg->as.map.pairs[i].value);
        }
        return bad;
}

/* Checks the clause after a '%'. Returns its length; 0: an issue was added. */
static size_t check_clause(struct validator *v, const struct hf__cel_node *call, const char *text,
                           size_t n, uint32_t n_used) {
        const struct hf__cel_node *args = call->as.call.args[1];
        const struct hf__cel_node *bad;
        char message[400] = "unexpected end of string";
        size_t end = 0;
        int precision;

        if (n > 0 && n_used >= args->as.list.n)
                snprintf(message, sizeof message, "index %u out of range", n_used);
        else if (n > 0)
                end = hf__cel_format_clause(text, n, &precision, message, sizeof message);
        if (end == 0) {
                hf__cel_issues_add(v->issues, call->at, "%s", message);
                return 0;
        }
        bad = find_bad(v, text[end - 1], args->as.list.items[n_used]);
        if (!bad)
                return end;
        hf__cel_issues_add(v->issues, bad->at, "error during formatting: %s, was given %.200s",
                           hf__cel_format_refusal(text[end - 1]),
                           hf__cel_type_name(type_of(v, bad)));
        return 0;
}

/* Validates a call "text".format([...]). Only literals can be compared: for other formats and lists
 * the evaluation finds out. */
static void validate_format(struct validator *v, const struct hf__cel_node *call) {
        struct hf__cel_value format = call->as.call.args[0]->as.constant;
        uint32_t n_args = call->as.call.args[1]->as.list.n;
        uint32_t n_used = 0;

        for (size_t i = 0; i < format.n; i++) {
                const char *text = format.as.text + i + 1;
                size_t n = format.n - i - 1;

                if (text[-1] != '%')
                        continue;
                /* %% is a percent sign and takes no argument. */
                if (n > 0 && *text == '%') {
                        i++;
                        continue;
                }
                n = check_clause(v, call, text, n, n_used++);
                if (n == 0)
                        return;
                i += n;
        }
        if (n_args > n_used)
                hf__cel_issues_add(v->issues, call->at,
                                   "too many arguments supplied to string.format (expected %u, got "
                                   "%u)",
                                   n_used, n_args);
}

static bool is_format(const struct hf__cel_node *node) {
        return node->op == HF__CEL_OP_NONE && node->as.call.member &&
               strcmp(node->as.call.function, "format") == 0;
}

static void validate_call(struct validator *v, const struct hf__cel_node *node) {
        bool mixed = v->mixed;

        if (is_format(node)) {
                /* The clauses of a format take arguments of different types. */
                v->mixed = true;
                if (node->as.call.n_args == 2 &&
                    node->as.call.args[0]->kind == HF__CEL_NODE_CONST &&
                    node->as.call.args[0]->as.constant.kind == HF__CEL_STRING &&
                    node->as.call.args[1]->kind == HF__CEL_NODE_LIST)
                        validate_format(v, node);
        }
        for (uint32_t i = 0; i < node->as.call.n_args; i++)
                validate_node(v, node->as.call.args[i]);
        v->mixed = mixed;
}

static void validate_node(struct validator *v, const struct hf__cel_node *node) {
        switch ((enum hf__cel_node_kind)node->kind) {
        case HF__CEL_NODE_CONST:
        case HF__CEL_NODE_NAME: break;
        case HF__CEL_NODE_SELECT:
        case HF__CEL_NODE_HAS: validate_node(v, node->as.select.operand); break;
        case HF__CEL_NODE_CALL: validate_call(v, node); break;
        case HF__CEL_NODE_LIST: validate_list(v, node); break;
        case HF__CEL_NODE_MAP:
        case HF__CEL_NODE_OBJECT: validate_map(v, node); break;
        case HF__CEL_NODE_FOLD:
                validate_node(v, node->as.fold.range);
                if (node->as.fold.test)
                        validate_node(v, node->as.fold.test);
                if (node->as.fold.result)
                        validate_node(v, node->as.fold.result);
                break;
        }
}

void hf__cel_validate(const struct hf__cel_node *root, bool mixed_literals,
                      struct hf__cel_inference *in, struct hf__cel_issues *issues) {
        struct validator v = {.mixed = mixed_literals, .in = in, .issues = issues};

        validate_node(&v, root);
}

/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Prepares a checked tree for evaluation.
 *
 * Invariant: the value of a node does not change. A literal that cannot be prepared stays as it is.
 */
#include "cel/prepare.h"

#include <errno.h>
#include <string.h>

#include <holdfast/error.h>

#include "base/arena.h"
#include "cel/eval.h"
#include "cel/regex/regex.h"
#include "cel/regex/regex_program.h"
#include "cel/values/issues.h"

/* The defaults of an evaluation (cel.c). A literal that exceeds them stays as it is: an evaluation
 * with these limits could not make it either. */
#define WORK_MAX  1000000
#define BYTES_MAX (16U * 1024 * 1024)
/* Instructions and memory of all literal patterns of a program. The program of a served
 * CustomResourceDefinition stays in memory, and a dozen bytes of text are enough for a pattern of
 * 5,000 instructions, or for four classes of hundreds of ranges. The work of compiling all patterns
 * is at most WORK_MAX, plus that of one pattern. */
#define PATTERNS_MAX       20000U
#define PATTERNS_BYTES_MAX ((size_t)2 << 20)
/* Bytes of compiled patterns that count as a step of work. So a caller who limits the work of all
 * his programs limits the memory of their patterns, too. */
#define STEP_BYTES 2

struct preparer {
        struct hf__cel_issues *issues;
        uint32_t n_instructions; /* of the patterns so far */
        size_t n_bytes;          /* of their memory */
        uint64_t work;           /* of compiling them, the invalid ones too */
        bool full;               /* one of the three is beyond its limit */
        int r;
};

static void prepare_node(struct preparer *p, struct hf__cel_node *node);

static bool is_const(const struct hf__cel_node *node) { return node->kind == HF__CEL_NODE_CONST; }

/* Evaluates a node that consists of constants. False: the value is not known, because a limit was
 * exceeded or memory ran out. */
static bool evaluate_node(struct preparer *p, const struct hf__cel_node *node,
                          struct hf__cel_value *ret_value) {
        struct hf__cel_run run = {.arena = p->issues->arena,
                                  .cost_limit = WORK_MAX,
                                  .work_limit = WORK_MAX,
                                  .bytes_limit = BYTES_MAX};

        *ret_value = hf__cel_eval_node(&run, node);
        if (run.failed < 0)
                p->r = run.failed;
        return run.failed == 0;
}

static void become_constant(struct hf__cel_node *node, struct hf__cel_value value) {
        node->kind = HF__CEL_NODE_CONST;
        node->as.constant = value;
}

/* Replaces the node by its value, unless that is an error. An error stays where it is: it counts
 * only if the evaluation gets there. cel-go folds the same constants, so the costs of evaluations
 * agree. */
static void fold_node(struct preparer *p, struct hf__cel_node *node) {
        struct hf__cel_value value;

        if (evaluate_node(p, node, &value) && !hf__cel_is_error(value))
                become_constant(node, value);
}

static void prepare_list(struct preparer *p, struct hf__cel_node *node) {
        /* A list with optional elements (marked with ?) is not folded: which of them it gets is
         * known only when it is made. */
        bool constant = node->as.list.optional == NULL;

        for (uint32_t i = 0; i < node->as.list.n; i++) {
                prepare_node(p, node->as.list.items[i]);
                constant = constant && is_const(node->as.list.items[i]);
        }
        if (constant)
                fold_node(p, node);
}

static void prepare_map(struct preparer *p, struct hf__cel_node *node) {
        bool constant = node->kind == HF__CEL_NODE_MAP;

        for (uint32_t i = 0; i < node->as.map.n; i++) {
                struct hf__cel_pair *pair = &node->as.map.pairs[i];

                if (pair->key)
                        prepare_node(p, pair->key);
                prepare_node(p, pair->value);
                constant =
                        constant && !pair->optional && is_const(pair->key) && is_const(pair->value);
        }
        if (constant)
                fold_node(p, node);
}

/* A literal pattern is compiled once. If it is invalid, the expression is refused with the message
 * of Kubernetes; if only a limit refuses it that Kubernetes does not have, the issue says so. A
 * pattern that the evaluation computes is compiled when it is wanted
 * (functions/computed_pattern.c). */
static void prepare_pattern(struct preparer *p, struct hf__cel_node *node) {
        const struct hf__cel_node *pattern = node->as.call.args[1];
        const struct hf__cel_regex *regex;
        char message[400] = "the pattern is too long";
        uint64_t work = 0;
        int r = HF_E_TOO_LARGE;

        if (p->full || !is_const(pattern) || pattern->as.constant.kind != HF__CEL_STRING)
                return;
        if (pattern->as.constant.n <= HF__CEL_PATTERN_MAX)
                r = hf__cel_regex_compile(p->issues->arena, pattern->as.constant.as.text,
                                          pattern->as.constant.n, &regex, message, sizeof message,
                                          &work);
        if (r < 0)
                p->r = r;
        else if (r > 0)
                hf__cel_issues_add(p->issues, pattern->at, "invalid %s argument%s%s",
                                   node->as.call.function, r == HF_E_TOO_LARGE ? ": " : "",
                                   r == HF_E_TOO_LARGE ? message : "");
        else
                node->as.call.prepared = regex;
        p->work += work;
        if (r == 0) {
                p->n_instructions += regex->n;
                p->n_bytes += regex->n_bytes;
        }
        if (p->n_instructions > PATTERNS_MAX || p->n_bytes > PATTERNS_BYTES_MAX ||
            p->work > WORK_MAX)
                p->full = true;
}

static bool is_time(const char *name) {
        return strcmp(name, "timestamp") == 0 || strcmp(name, "duration") == 0;
}

/* Conversions depend on their argument alone. So do many other functions, but cel-go folds only
 * calls of conversions, and what is folded has no cost. */
static bool is_conversion(const char *name) {
        static const char *const names[] = {"bool", "bytes",  "double", "dyn",
                                            "int",  "string", "type",   "uint"};

        for (size_t i = 0; i < sizeof names / sizeof names[0]; i++)
                if (strcmp(names[i], name) == 0)
                        return true;
        return is_time(name);
}

/* The conversion of a constant becomes its value. If it must fail, the expression is refused, as in
 * Kubernetes, also if no evaluation would get there. */
static void prepare_conversion(struct preparer *p, struct hf__cel_node *node) {
        const struct hf__cel_node *arg = node->as.call.args[0];
        const char *name = node->as.call.function;
        struct hf__cel_value value;

        if (!is_const(arg) || !evaluate_node(p, node, &value))
                return;
        if (!hf__cel_is_error(value))
                become_constant(node, value);
        else if (is_time(name) &&
                 (arg->as.constant.kind == HF__CEL_STRING || arg->as.constant.kind == HF__CEL_INT))
                hf__cel_issues_add(p->issues, arg->at, "invalid %s argument", name);
        else
                hf__cel_issues_add(p->issues, arg->at, "%s", value.as.text);
}

static void prepare_call(struct preparer *p, struct hf__cel_node *node) {
        const char *name = node->as.call.function;
        uint32_t n = node->as.call.n_args;

        for (uint32_t i = 0; i < n; i++)
                prepare_node(p, node->as.call.args[i]);
        if (node->op != HF__CEL_OP_NONE || node->as.call.n_overloads == 0)
                return;
        if (n >= 2 && (strcmp(name, "matches") == 0 || strcmp(name, "find") == 0 ||
                       strcmp(name, "findAll") == 0))
                prepare_pattern(p, node);
        if (n == 1 && is_conversion(name))
                prepare_conversion(p, node);
}

static void prepare_node(struct preparer *p, struct hf__cel_node *node) {
        switch ((enum hf__cel_node_kind)node->kind) {
        case HF__CEL_NODE_CONST:
        case HF__CEL_NODE_NAME: break;
        case HF__CEL_NODE_SELECT:
        case HF__CEL_NODE_HAS: prepare_node(p, node->as.select.operand); break;
        case HF__CEL_NODE_CALL: prepare_call(p, node); break;
        case HF__CEL_NODE_LIST: prepare_list(p, node); break;
        case HF__CEL_NODE_MAP:
        case HF__CEL_NODE_OBJECT: prepare_map(p, node); break;
        case HF__CEL_NODE_FOLD:
                prepare_node(p, node->as.fold.range);
                if (node->as.fold.test)
                        prepare_node(p, node->as.fold.test);
                if (node->as.fold.result)
                        prepare_node(p, node->as.fold.result);
                break;
        }
}

int hf__cel_prepare(struct hf__cel_node *root, struct hf__cel_issues *issues, uint64_t *work) {
        struct preparer p = {.issues = issues};

        prepare_node(&p, root);
        *work += p.work + p.n_bytes / STEP_BYTES;
        if (p.full)
                hf__cel_issues_add(issues, HF__CEL_NO_PLACE, "the patterns are too large in all");
        return p.r;
}

/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Programs: an expression from its text to its value.
 *
 * Invariant: after hf__cel_compile a program does not change.
 */
#include "cel/cel.h"

#include <assert.h>
#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include <holdfast/error.h>

#include "base/arena.h"
#include "base/strbuf.h"
#include "cel/checker.h"
#include "cel/estimate.h"
#include "cel/eval.h"
#include "cel/prepare.h"
#include "cel/syntax/parser.h"
#include "cel/values/issues.h"

/* Kubernetes' PerCallLimit. Memory has a limit of its own, which Kubernetes does not have: nothing
 * is freed before an evaluation ends, and a cheap expression can make large values. BYTES_LIMIT
 * leaves room for several copies of a large object. */
#define COST_LIMIT  1000000
#define BYTES_LIMIT (16U * 1024 * 1024)

struct hf__cel_program {
        struct hf__arena arena; /* of all that the program owns */
        struct hf__cel_node *root;
        const struct hf__cel_type *type;
        const struct hf__cel_declarations *declarations;
        struct hf__cel_checked checked;
        uint64_t estimate;
        uint64_t work; /* of compiling it */
};

static int compile_source(struct hf__cel_program *program, struct hf__cel_issues *issues,
                          const struct hf__cel_declarations *declarations) {
        unsigned max_depth = declarations->max_depth;

        /* Callers whose threads have small stacks lower the limit. Nobody can raise it: the array
         * of locals in check_state.h has room for HF__CEL_DEPTH_MAX levels. */
        if (max_depth == 0 || max_depth > HF__CEL_DEPTH_MAX)
                max_depth = HF__CEL_DEPTH_MAX;
        program->declarations = declarations;
        program->root = hf__cel_parse(issues, max_depth);
        if (program->root)
                program->type =
                        hf__cel_check(program->root, declarations, issues, &program->checked);
        program->work = program->checked.steps;
        /* The estimate comes before hf__cel_prepare: making a literal has a cost, but
         * hf__cel_prepare turns literals into values, which cost nothing. */
        if (program->type && !hf__cel_estimate_tree(&program->arena, program->root, declarations,
                                                    program->checked.n_locals, &program->estimate))
                return -ENOMEM;
        if (program->type && hf__cel_prepare(program->root, issues, &program->work) != 0)
                return -ENOMEM;
        if (program->arena.failed)
                return -ENOMEM;
        return issues->n > 0 ? HF_E_INVALID : 0;
}

int hf__cel_compile(const struct hf__cel_declarations *declarations, const char *text, size_t n,
                    struct hf__strbuf *reterr_message, struct hf__cel_program **ret_program,
                    uint64_t *ret_work) {
        struct hf__cel_program *program = calloc(1, sizeof *program);
        struct hf__cel_issues issues = {.text = text, .n_text = n};
        int r;

        assert(declarations->functions);
        if (ret_work)
                *ret_work = 0;
        if (!program)
                return -ENOMEM;
        hf__arena_init(&program->arena);
        issues.arena = &program->arena;
        r = compile_source(program, &issues, declarations);
        if (ret_work)
                *ret_work = program->work;
        if (r == 0) {
                *ret_program = program;
                return 0;
        }
        if (r > 0)
                hf__cel_issues_print(&issues, reterr_message);
        hf__cel_program_free(program);
        return r;
}

void hf__cel_program_free(struct hf__cel_program *program) {
        if (!program)
                return;
        hf__arena_deinit(&program->arena);
        free(program);
}

const struct hf__cel_type *hf__cel_program_type(const struct hf__cel_program *program) {
        return program->type;
}

unsigned hf__cel_program_depth(const struct hf__cel_program *program) {
        return program->root->depth;
}

uint64_t hf__cel_estimate(const struct hf__cel_program *program) { return program->estimate; }

bool hf__cel_program_uses(const struct hf__cel_program *program, unsigned variable) {
        assert(variable < 64);
        /* A caller may leave out the inputs that no expression reads, such as a large old object.
         */
        return (program->checked.used >> variable & 1) != 0;
}

int hf__cel_eval(const struct hf__cel_program *program, const struct hf__cel_value *inputs,
                 const struct hf__cel_limits *limits, struct hf__arena *arena,
                 struct hf__cel_value *ret_value, struct hf__cel_usage *ret_usage) {
        struct hf__cel_run run = {.arena = arena,
                                  .zones = program->declarations->zones,
                                  .inputs = inputs};
        int r = 0;

        run.cost_limit = limits && limits->cost > 0 ? limits->cost : COST_LIMIT;
        /* Work is what this evaluator does beyond what Kubernetes charges for. */
        run.work_limit = limits && limits->work > 0 ? limits->work : run.cost_limit;
        run.bytes_limit = limits && limits->bytes > 0 ? limits->bytes : BYTES_LIMIT;
        run.shared_bytes = limits ? limits->shared_bytes : NULL;
        run.shared_bytes_limit = limits ? limits->shared_bytes_max : 0;
        run.watch = limits ? limits->watch : NULL;
        run.watch_ctx = limits ? limits->watch_ctx : NULL;
        /* One array for all macros: the checker gives a macro inside another one slots of its own,
         * so it does not overwrite the variables outside of it. */
        run.locals = hf__cel_alloc(&run, program->checked.n_locals * sizeof *run.locals);
        *ret_value = run.locals ? hf__cel_eval_node(&run, program->root) : hf__cel_failure(&run);
        /* A failure has a cost, too, because the expressions of one object share a budget. */
        if (ret_usage)
                *ret_usage = (struct hf__cel_usage){.cost = run.cost,
                                                    .work = run.work,
                                                    .bytes = run.n_bytes,
                                                    .own_limit = run.own_limit};
        if (run.failed != 0) {
                *ret_value = hf__cel_failure(&run);
                r = run.failed;
        } else if (hf__cel_is_error(*ret_value)) {
                r = HF_E_INVALID;
        }
        return r;
}

/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Evaluates expressions of admission.
 *
 * Invariants: in a run, each variable of the policy is evaluated once at most, when it is first
 * read, and costs nothing afterwards, as in Kubernetes. A variable may only read those before it,
 * so the evaluation ends. (If it reads an earlier one that has its own name, it finds itself
 * instead, and the limit of the levels ends that.) An expression that reads a variable is suspended
 * on the stack meanwhile, so the levels of all suspended expressions are counted, and limited:
 * beyond the limit the thread would run out of stack. A value may contain the map `variables`
 * itself. Then variables are also evaluated when the caller reads the value, after the expression
 * has ended: so the evaluation of a variable never frees what the expression before has made.
 *
 * Cost is limited as in Kubernetes, where it is an error of the expression to exceed it, for which
 * the policy has a failurePolicy. Work, memory and the levels of variables have limits that
 * Kubernetes does not have. Who writes an object chooses its size, and with it the work. If
 * exceeding these limits were an error like others, the writer could escape each policy whose
 * failurePolicy is Ignore. So these limits end the run, even if an operator absorbs the error, and
 * the callers refuse the request. The limit of work is shared, and in proportion to the objects. So
 * the work of a request is in proportion to the sizes of its objects, times the policies, bindings
 * and params that apply to it. Every few thousand steps an evaluation charges what it has used: so
 * the limits hold for suspended expressions, too, and it ends at the deadline of its request.
 */
#include "server/admission/expressions/expression_run.h"

#include <assert.h>
#include <errno.h>
#include <string.h>

#include <holdfast/error.h>

#include "base/strbuf.h"
#include "cel/cel.h"
#include "server/admission/expressions/expression_values.h"
#include "server/admission/expressions/expression_work.h"

#define BUDGET_TEXT                                                                                \
        "validation failed due to running out of cost budget, no further validation rules will "   \
        "be run"
#define LIMIT_TEXT "operation cancelled: actual cost limit exceeded"

#define LOOKUP_STEP 8 /* variables whose names are compared in a step of work */

struct hfd_expression_memo {
        bool known;
        struct hf__cel_value value;
};

/* The values are not initialized: `made` says which of them are valid, and most expressions read
 * only one or two. */
void hfd_expression_run_init(struct hfd_expression_run *run, const struct hfd_expressions *set,
                             const struct hfd_expression_input *input, uint64_t budget) {
        assert(set);
        run->set = set;
        run->input = input;
        run->budget = budget;
        run->allowance = NULL;
        run->work = NULL;
        run->may_go_on = NULL;
        run->ended = 0;
        run->own_work = (struct hfd_expression_work){0};
        run->memos = NULL;
        run->used = 0;
        run->variables_cost = 0;
        run->depth = 0;
        memset(run->made, 0, sizeof run->made);
        run->bytes = 0;
        run->kept_bytes = 0;
        hf__arena_init(&run->arena);
        hf__arena_init(&run->scratch);
}

void hfd_expression_run_done(struct hfd_expression_run *run) {
        hf__arena_deinit(&run->scratch);
        hf__arena_deinit(&run->arena);
}

/* ---- limits ---- */

/* Ends the run for this reason, unless it has ended already. Returns why it has ended. */
static int end_run(struct hfd_expression_run *run, int reason) {
        assert(reason != 0);
        if (run->ended == 0)
                run->ended = reason;
        return run->ended;
}

/* Charges what an allowance counts, and steps of work. 0, or why the run has ended: a limit is
 * exceeded, or the request may not go on. */
static int charge_run(struct hfd_expression_run *run, uint64_t used, uint64_t steps) {
        struct hfd_expression_work *work = run->work ? run->work : &run->own_work;
        int r = 0;

        run->used += used;
        if (!hfd_expression_allow(run->allowance, used))
                r = HF_E_TOO_LARGE;
        else if (!hfd_expression_take_work(work, steps, run->input))
                r = HF_E_TOO_MANY;
        else if (run->may_go_on)
                r = run->may_go_on(run->may_ctx);
        return r == 0 ? run->ended : end_run(run, r);
}

/* Charges what an expression and its variables have cost. false: the budget is spent. */
static bool pay_cost(struct hfd_expression_run *run, uint64_t cost) {
        if (cost > run->budget) {
                run->budget = 0;
                return false;
        }
        run->budget -= cost;
        return true;
}

/* ---- variables of the policy ---- */

static int evaluate_expression(struct hfd_expression_run *run,
                               const struct hfd_expression *expression, bool nested,
                               struct hf__cel_value *ret_value);

/* Evaluates a variable of the policy. Its cost is charged as pay_evaluation says. A variable that
 * fails is an error value. The run goes on (`has()` and `||` may still decide), unless run->ended
 * is set. */
static struct hf__cel_value eval_variable(struct hfd_expression_run *run,
                                          const struct hfd_expression_variable *variable) {
        struct hf__strbuf message = {.max = 400};
        struct hf__cel_value value;
        char *text = NULL;

        if (!variable->expression->program) {
                hf__strbuf_printf(&message,
                                  "composited variable \"%.100s\" fails to compile: %.200s",
                                  variable->name, variable->expression->error);
        } else {
                int r = evaluate_expression(run, variable->expression, true, &value);
                if (r == 0)
                        return value;
                hf__strbuf_printf(&message,
                                  "composited variable \"%.100s\" fails to evaluate: %.200s",
                                  variable->name, value.as.text);
        }
        if (message.error == 0)
                text = hf__arena_text(&run->arena, message.data, message.n);
        hf__strbuf_done(&message);
        return hf__cel_error_text(text ? text : "out of memory");
}

/* The function `find` of the map `variables`. A value is kept even if it is an error, so a variable
 * that fails is not evaluated again by each expression that reads it. */
static bool find_variable(const struct hf__cel_map *map, struct hf__cel_value key,
                          struct hf__cel_value *ret_value) {
        /*
         * The map belongs to one run, which one thread uses, so the cast from const is safe here.
         */
        struct hfd_expression_run *run = (struct hfd_expression_run *)(uintptr_t)map->data;
        const struct hfd_expression_variable *variable;
        const struct hfd_expression_variable *all;
        struct hfd_expression_memo *memo;
        size_t n;

        if (key.kind != HF__CEL_STRING)
                return false;
        /* The look-up is linear, and an expression may read a variable often. */
        all = hfd_expressions_variables(run->set, &n);
        if (n >= LOOKUP_STEP && charge_run(run, n / LOOKUP_STEP, n / LOOKUP_STEP) != 0) {
                *ret_value = hf__cel_error_text("the run has ended");
                return true;
        }
        variable = hfd_expressions_variable(run->set, key.as.text, key.n);
        if (!variable)
                return false;
        memo = &run->memos[variable - all];
        if (!memo->known) {
                memo->value = eval_variable(run, variable);
                memo->known = true;
        }
        *ret_value = memo->value;
        return true;
}

static struct hf__cel_entry variable_at(const struct hf__cel_map *map, size_t i) {
        struct hfd_expression_run *run = (struct hfd_expression_run *)(uintptr_t)map->data;
        const struct hfd_expression_variable *all;
        struct hf__cel_entry entry;
        size_t n;

        all = hfd_expressions_variables(run->set, &n);
        entry.key = hf__cel_string(all[i].name, strlen(all[i].name));
        (void)find_variable(map, entry.key, &entry.value);
        return entry;
}

/* Makes the map `variables`. Its values are computed when they are read. 0 or -ENOMEM. */
static int make_variables(struct hfd_expression_run *run) {
        size_t n;

        (void)hfd_expressions_variables(run->set, &n);
        run->memos = hf__arena_alloc(&run->arena, n * sizeof *run->memos);
        if (!run->memos)
                return -ENOMEM;
        memset(run->memos, 0, n * sizeof *run->memos);
        run->variables =
                (struct hf__cel_map){.n = n, .at = variable_at, .find = find_variable, .data = run};
        run->values[HFD_SLOT_VARIABLES] = hf__cel_map_value(&run->variables);
        return 0;
}

/* Makes the values that the program reads and that the run does not have yet. 0; -ENOMEM; or
 * HF_E_TOO_LARGE: the allowance is spent. */
static int make_values(struct hfd_expression_run *run, const struct hf__cel_program *program) {
        struct hfd_expression_maker maker = {.input = run->input,
                                             .arena = &run->arena,
                                             .authorizer = &run->authorizer,
                                             .allowance = run->allowance};
        int r = 0;

        for (unsigned i = 0; i < HFD_SLOTS_OF_EXPRESSION && r == 0; i++) {
                if (run->made[i] || !hf__cel_program_uses(program, i))
                        continue;
                if (i == HFD_SLOT_VARIABLES)
                        r = make_variables(run);
                else
                        r = hfd_expression_value(&maker, i, &run->values[i]);
                run->made[i] = r == 0;
        }
        run->used += maker.used;
        return r;
}

/* ---- evaluation ---- */

/* An evaluation that is under way. */
struct evaluation {
        struct hfd_expression_run *run;
        uint64_t cost, work; /* what was charged so far */
};

static uint64_t larger(uint64_t a, uint64_t b) { return a > b ? a : b; }

/* Charges what the evaluation has used since the last call. Allowances limit time, as do the turns
 * of a request (turn.h), so work counts as much as cost does. 0, or why the run has ended. */
static int charge_usage(void *ctx, uint64_t cost, uint64_t work) {
        struct evaluation *evaluation = ctx;
        uint64_t used = larger(cost, work) - larger(evaluation->cost, evaluation->work);
        uint64_t steps = work - evaluation->work;

        assert(cost >= evaluation->cost && work >= evaluation->work);
        evaluation->cost = cost;
        evaluation->work = work;
        return charge_run(evaluation->run, used, steps);
}

/* The cost of a variable is charged to the expression that reads it. If the caller reads it in a
 * result, after the evaluation, the next expression pays, or nobody if there is none; the budget
 * limits the cost in any case. false: the budget is spent. */
static bool pay_evaluation(struct hfd_expression_run *run, bool nested, uint64_t cost) {
        if (nested) {
                run->variables_cost += cost;
                return run->variables_cost <= run->budget;
        }
        cost += run->variables_cost;
        run->variables_cost = 0;
        return pay_cost(run, cost);
}

/* Frees what the expression before has made. Variables stay. */
static void forget_last(struct hfd_expression_run *run) {
        assert(run->depth == 0);
        hf__arena_deinit(&run->scratch);
        run->bytes = run->kept_bytes;
}

/* Evaluates, and charges what is used. Returns as hf__cel_eval does. */
static int run_program(struct hfd_expression_run *run, const struct hfd_expression *expression,
                       bool nested, struct hf__cel_value *ret_value,
                       struct hf__cel_usage *ret_usage) {
        struct hf__arena *arena = nested ? &run->arena : &run->scratch;
        struct evaluation evaluation = {.run = run};
        /* The work has a limit because code of cel/ ends an evaluation by exceeding it. */
        const struct hf__cel_limits limits = {.cost = HFD_EXPRESSION_COST,
                                              .work = UINT64_MAX / 2,
                                              .shared_bytes = &run->bytes,
                                              .shared_bytes_max = HFD_EXPRESSIONS_BYTES,
                                              .watch = charge_usage,
                                              .watch_ctx = &evaluation};

        run->depth += expression->depth;
        int r = hf__cel_eval(expression->program, run->values, &limits, arena, ret_value,
                             ret_usage);
        assert(run->depth >= expression->depth);
        run->depth -= expression->depth;
        if (nested)
                run->kept_bytes += ret_usage->bytes;
        (void)charge_usage(&evaluation, ret_usage->cost, ret_usage->work);
        return arena->failed || run->arena.failed ? -ENOMEM : r;
}

/* As hfd_expression_eval, without a message. */
static int evaluate_program(struct hfd_expression_run *run, const struct hfd_expression *expression,
                            bool nested, struct hf__cel_value *ret_value) {
        struct hf__cel_usage usage = {0};
        int r = run_program(run, expression, nested, ret_value, &usage);

        if (r < 0 || (r == HF_E_TOO_LARGE && usage.own_limit))
                (void)end_run(run, r < 0 ? r : HF_E_TOO_MANY);
        /* An expression may absorb the error of a variable that has ended the run. */
        if (run->ended != 0)
                return run->ended;
        if (!pay_evaluation(run, nested, usage.cost))
                return HF_E_TOO_LARGE;
        return r == 0 ? 0 : HF_E_INVALID;
}

/* Evaluates an expression that compiles. nested: it is that of a variable, and what it makes stays
 * until the end of the run. Results as those of hfd_expression_eval. */
static int evaluate_expression(struct hfd_expression_run *run,
                               const struct hfd_expression *expression, bool nested,
                               struct hf__cel_value *ret_value) {
        *ret_value = hf__cel_error_text(LIMIT_TEXT);
        if (run->ended != 0)
                return run->ended;
        if (run->depth + expression->depth > HFD_EXPRESSION_DEPTH_SUM) {
                *ret_value = hf__cel_error_text("the variables depend on too many others");
                return end_run(run, HF_E_TOO_MANY);
        }
        int r = hfd_expression_allow(run->allowance, 0) ? make_values(run, expression->program)
                                                        : HF_E_TOO_LARGE;
        r = r == 0 ? evaluate_program(run, expression, nested, ret_value) : end_run(run, r);
        if (r != 0 && !hf__cel_is_error(*ret_value))
                *ret_value = hf__cel_error_text(LIMIT_TEXT);
        return r;
}

int hfd_expression_eval(struct hfd_expression_run *run, const struct hfd_expression *expression,
                        struct hf__cel_value *ret_value, struct hf__strbuf *reterr_message) {
        assert(run->set && run->depth == 0 && expression && ret_value);

        *ret_value = hf__cel_error_text("it does not compile");
        if (!expression->program) {
                if (reterr_message)
                        hf__strbuf_printf(reterr_message, "compilation error: %s",
                                          expression->error);
                return HF_E_INVALID;
        }
        forget_last(run);
        int r = evaluate_expression(run, expression, false, ret_value);
        if (r == HF_E_TOO_LARGE && reterr_message)
                hf__strbuf_puts(reterr_message, BUDGET_TEXT);
        else if ((r == HF_E_INVALID || r == HF_E_TOO_MANY) && reterr_message)
                hf__strbuf_printf(reterr_message, "expression '%s' resulted in error: %s",
                                  expression->text, ret_value->as.text);
        return r;
}

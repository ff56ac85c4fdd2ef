/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Evaluates expressions of admission.
 *
 * Invariants: in a run, each variable of the policy is evaluated once at most, when it is first
 * read, and costs nothing afterwards, as in Kubernetes. A variable may only read those before it,
 * so the evaluation ends. An expression that reads a variable is suspended on the stack meanwhile,
 * so the levels of all suspended expressions are counted, and limited: beyond the limit the thread
 * would run out of stack. A value is paid for before it is made, so that no thread that serves
 * connections converts a large object.
 */
#include "server/admission/expressions/expression_run.h"

#include <assert.h>
#include <errno.h>
#include <string.h>

#include <holdfast/error.h>

#include "base/json.h"
#include "base/strbuf.h"
#include "cel/cel.h"
#include "server/admission/expressions/expression_objects.h"
#include "server/admission/expressions/request_value.h"
#include "server/admission/expressions/rights.h"
#include "server/resources/custom/rules/values/rule_value.h"

#define BUDGET_TEXT                                                                                \
        "validation failed due to running out of cost budget, no further validation rules will "   \
        "be run"

/* What it takes to make the value of one part of an object, as allowances count it: 0.05 to 1 us,
 * because large maps are sorted. */
#define PART_WORK 10

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
        run->memos = NULL;
        run->used = 0;
        run->variables_cost = 0;
        run->depth = 0;
        memset(run->made, 0, sizeof run->made);
        hf__arena_init(&run->arena);
}

void hfd_expression_run_done(struct hfd_expression_run *run) { hf__arena_deinit(&run->arena); }

/* ---- the values of variables ---- */

/* Evaluates a variable of the policy. Its cost is charged to the expression that reads it. A
 * variable that fails is an error value, and not the end of the run: `has()` and `||` may still
 * decide. */
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
                int r = hfd_expression_eval(run, variable->expression, &value, NULL);
                if (r == 0)
                        return value;
                /* This does end the run: without memory nobody knows what the policy says. */
                if (r == -ENOMEM)
                        run->arena.failed = true;
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
        variable = hfd_expressions_variable(run->set, key.as.text, key.n);
        if (!variable)
                return false;
        all = hfd_expressions_variables(run->set, &n);
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

/* The map `variables`. Its values are computed when they are read. */
static struct hf__cel_value variables_value(struct hfd_expression_run *run) {
        size_t n;

        (void)hfd_expressions_variables(run->set, &n);
        run->memos = hf__arena_alloc(&run->arena, n * sizeof *run->memos);
        if (!run->memos)
                return hf__cel_null();
        memset(run->memos, 0, n * sizeof *run->memos);
        run->variables =
                (struct hf__cel_map){.n = n, .at = variable_at, .find = find_variable, .data = run};
        return hf__cel_map_value(&run->variables);
}

/* ---- budgets ---- */

/* Charges what an expression and its variables have cost. false: the budget is spent. */
static bool pay_cost(struct hfd_expression_run *run, uint64_t cost) {
        if (cost > run->budget) {
                run->budget = 0;
                return false;
        }
        run->budget -= cost;
        return true;
}

/* Whether what was used is within the allowance of the request; if so, it is taken from it. */
static bool is_allowed(struct hfd_expression_run *run, uint64_t used) {
        struct hfd_expression_allowance *allowance = run->allowance;

        if (!allowance)
                return true;
        if (used > allowance->left || allowance->spent) {
                allowance->spent = true;
                return false;
        }
        assert(used <= allowance->left && !allowance->spent);
        allowance->left -= used;
        return true;
}

/* ---- values ---- */

/* The parts of a value; more than max are not counted. */
static size_t count_parts(const struct hf__json *json, size_t max) {
        size_t n = 1;

        for (const struct hf__json *m = hf__json_first(json); m && n <= max; m = hf__json_next(m))
                n += count_parts(m, max - n);
        return n;
}

/* Makes the value of JSON in the arena. 0; -ENOMEM; -EDQUOT: the allowance is spent. */
static int convert_json(struct hfd_expression_run *run, struct hf__arena *arena,
                        const struct hf__json *json, struct hf__cel_value *ret_value) {
        const struct hfd_expression_allowance *allowance = run->allowance;
        uint64_t used;

        *ret_value = hf__cel_null();
        if (!json)
                return 0;
        used = PART_WORK *
               (uint64_t)count_parts(json, allowance ? allowance->left / PART_WORK : SIZE_MAX);
        run->used += used;
        if (!is_allowed(run, used))
                return -EDQUOT;
        *ret_value = hfd_rule_value(arena, NULL, json);
        return arena->failed ? -ENOMEM : 0;
}

/* The value of the object (i 0) or the old object (i 1): a shared one, if there is one. */
static int object_value(struct hfd_expression_run *run, size_t i, const struct hf__json *json,
                        struct hf__cel_value *ret_value) {
        struct hfd_expression_objects *objects = run->input->objects;
        int r = 0;

        if (!objects || !json)
                return convert_json(run, &run->arena, json, ret_value);
        assert(!objects->of[i] || objects->of[i] == json);
        if (!objects->of[i]) {
                r = convert_json(run, &objects->arena, json, &objects->values[i]);
                if (r == 0)
                        objects->of[i] = json;
        }
        *ret_value = objects->values[i];
        return r;
}

/* 0, -ENOMEM or -EDQUOT, as convert_json. */
static int make_value(struct hfd_expression_run *run, enum hfd_expression_slot slot) {
        const struct hfd_expression_input *input = run->input;
        struct hf__cel_value *value = &run->values[slot];

        switch (slot) {
        case HFD_SLOT_OBJECT: return object_value(run, 0, input->object, value);
        case HFD_SLOT_OLD_OBJECT: return object_value(run, 1, input->old, value);
        case HFD_SLOT_NAMESPACE_OBJECT:
                *value = hfd_namespace_value(&run->arena, input->namespace_object);
                break;
        case HFD_SLOT_REQUEST: *value = hfd_request_value(&run->arena, input); break;
        case HFD_SLOT_PARAMS: return convert_json(run, &run->arena, input->params, value);
        case HFD_SLOT_AUTHORIZER:
                *value = hfd_rights_value(&run->arena, &run->authorizer, input);
                break;
        case HFD_SLOT_REQUEST_RESOURCE:
                *value = hfd_rights_resource_value(&run->arena, &run->authorizer, input);
                break;
        case HFD_SLOT_VARIABLES: *value = variables_value(run); break;
        case HFD_SLOTS_OF_EXPRESSION: *value = hf__cel_null(); break;
        }
        return run->arena.failed ? -ENOMEM : 0;
}

/* Makes the values that the program reads and that the run does not have yet. */
static int make_values(struct hfd_expression_run *run, const struct hf__cel_program *program) {
        int r = 0;

        for (unsigned i = 0; i < HFD_SLOTS_OF_EXPRESSION && r == 0; i++)
                if (!run->made[i] && hf__cel_program_uses(program, i)) {
                        r = make_value(run, i);
                        run->made[i] = r == 0;
                }
        return r;
}

/* ---- evaluation ---- */

/* The limits of one evaluation. With an allowance it ends soon after that is spent: then more was
 * used than is left, which is_allowed sees, so no such end is taken for an error of the expression.
 */
static struct hf__cel_limits limits_of(const struct hfd_expression_run *run) {
        struct hf__cel_limits limits = {.cost = HFD_EXPRESSION_COST, .work = HFD_EXPRESSION_WORK};
        uint64_t left = run->allowance ? run->allowance->left : UINT64_MAX;

        /* A limit of 0 would mean the default limit. */
        if (left < limits.cost)
                limits.cost = left + 1;
        if (left < limits.work)
                limits.work = left + 1;
        return limits;
}

/* 0; -ENOMEM; -EDQUOT: the allowance or the budget of the run is spent; or another error of
 * hf__cel_eval. */
static int evaluate_expression(struct hfd_expression_run *run,
                               const struct hfd_expression *expression,
                               struct hf__cel_value *ret_value) {
        struct hf__cel_usage usage = {0};
        struct hf__cel_limits limits;
        uint64_t used;
        int r;

        if (!is_allowed(run, 0))
                return -EDQUOT;
        r = make_values(run, expression->program);
        if (r != 0)
                return r;
        limits = limits_of(run);
        run->depth += expression->depth;
        r = hf__cel_eval(expression->program, run->values, &limits, &run->arena, ret_value, &usage);
        assert(run->depth >= expression->depth);
        run->depth -= expression->depth;
        if (run->arena.failed)
                return -ENOMEM;
        /* Allowances and turns are about time, so work counts as much as cost does. */
        used = usage.cost > usage.work ? usage.cost : usage.work;
        run->used += used;
        if (!is_allowed(run, used))
                return -EDQUOT;
        /* The cost of a variable is charged to the expression that reads it. */
        if (run->depth > 0) {
                run->variables_cost += usage.cost;
                return r;
        }
        usage.cost += run->variables_cost;
        run->variables_cost = 0;
        if (!pay_cost(run, usage.cost))
                return -EDQUOT;
        return r;
}

int hfd_expression_eval(struct hfd_expression_run *run, const struct hfd_expression *expression,
                        struct hf__cel_value *ret_value, struct hf__strbuf *reterr_message) {
        assert(run->set && expression && ret_value);
        int r;

        *ret_value = hf__cel_error_text("it does not compile");
        if (!expression->program) {
                if (reterr_message)
                        hf__strbuf_printf(reterr_message, "compilation error: %s",
                                          expression->error);
                return HF_E_INVALID;
        }
        if (run->depth + expression->depth > HFD_EXPRESSION_DEPTH_SUM) {
                *ret_value = hf__cel_error_text("the variables depend on too many others");
                r = HF_E_INVALID;
        } else {
                r = evaluate_expression(run, expression, ret_value);
        }
        if (r == -EDQUOT) {
                if (reterr_message)
                        hf__strbuf_puts(reterr_message, BUDGET_TEXT);
                return HF_E_TOO_LARGE;
        }
        if (r <= 0)
                return r;
        if (reterr_message)
                hf__strbuf_printf(reterr_message, "expression '%s' resulted in error: %s",
                                  expression->text, ret_value->as.text);
        return HF_E_INVALID;
}

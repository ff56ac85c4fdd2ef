/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Evaluates the rules of one part of an object, and writes causes.
 *
 * Invariants: an evaluation ends when its cost exceeds CALL_COST_MAX, or its steps exceed
 * CALL_WORK_MAX. The first evaluation that the budgets of the object do not cover stops the run. A
 * value counts as work before it is made, and only once: it contains the values of the parts below
 * (part_values.h). The memory of the evaluations of a rule is freed before the next rule.
 */
#include "server/resources/custom/rules/rule_run.h"

#include <errno.h>
#include <stdarg.h>
#include <stdio.h>
#include <string.h>

#include <holdfast/error.h>

#include "base/json.h"
#include "base/quote.h"
#include "cel/cel.h"
#include "server/resources/causes.h"
#include "server/resources/custom/rules/part_values.h"
#include "server/resources/custom/rules/rule_node.h"
#include "server/resources/custom/rules/values/rule_value.h"

#define CALL_COST_MAX 1000000 /* Kubernetes' limit for one evaluation */
/* Steps of one evaluation, which Kubernetes does not limit: enough to search the longest text of a
 * request (3 MiB) a few times, and less than 0.2 s. */
#define CALL_WORK_MAX 10000000
/* Steps of work to make the value of one part of an object: 0.05 us and more. */
#define PART_WORK   2
#define MESSAGE_MAX (5 * 1024) /* bytes of a message that an expression made, as in Kubernetes */
#define SPACE       " \t\n\v\f\r"

/* One part of an object, and the values for its rules. */
struct subject {
        struct hfd_rule_run *run;
        struct hfd_part_values *made; /* what the parts below get */
        const struct hfd_rule_node *node;
        const struct hf__json *object;
        struct hf__cel_value values[2]; /* self, oldSelf */
        struct hf__cel_value optional;  /* oldSelf of a rule that takes an optional */
        /* oldSelf of any other rule. */
        struct hf__cel_value old;
};

static const char *path_of(const struct hfd_rule_run *run) {
        return run->path.n > 0 ? run->path.data : "<nil>";
}

/* Adds the cause "Invalid value: TYPE: detail" for the part. */
static void refuse_type(const struct subject *s, const char *detail) {
        hfd_cause_invalid_text(s->run->causes, path_of(s->run), s->node->type, detail);
}

static void __attribute__((format(printf, 2, 3)))
refuse(const struct subject *s, const char *format, ...) {
        char shown[1024];
        va_list args;

        va_start(args, format);
        (void)vsnprintf(shown, sizeof shown, format, args);
        va_end(args);
        refuse_type(s, shown);
}

/* No rule is evaluated any more. r < 0: memory ran out, so the causes are incomplete. */
static void stop_run(struct hfd_rule_run *run, int r) {
        run->stopped = true;
        if (r < 0)
                run->failed = true;
}

static void stop_over_budget(const struct subject *s) {
        refuse_type(s, "validation failed due to running out of cost budget, no further validation "
                       "rules will be run");
        stop_run(s->run, 0);
}

/* ---- a broken rule ---- */

/* Appends the value as causes show it. An object or a list is not shown, because it may be large.
 */
static void print_value(struct hf__strbuf *out, const struct subject *s) {
        char quoted[300];

        if (strcmp(s->node->type, "object") == 0 || strcmp(s->node->type, "array") == 0)
                return;
        hf__strbuf_puts(out, ": ");
        if (hf__json_is_string(s->object)) {
                hfd_quote(hf__json_text(s->object), quoted, sizeof quoted);
                hf__strbuf_puts(out, quoted);
        } else {
                hf__json_print(s->object, out);
        }
}

/* Adds the cause for a rule that is not fulfilled. detail: its message. */
static void add_broken(const struct subject *s, const struct hfd_rule *rule, const char *detail) {
        struct hf__strbuf field = {0};
        struct hf__strbuf text = {0};

        hf__strbuf_puts(&field, s->run->path.n > 0 ? s->run->path.data : "");
        if (rule->field_path) {
                hf__strbuf_puts(&field, field.n > 0 ? "." : "");
                hf__strbuf_puts(&field, rule->field_path);
        } else if (field.n == 0) {
                hf__strbuf_puts(&field, "<nil>");
        }
        if (rule->reason == HFD_RULE_INVALID || rule->reason == HFD_RULE_DUPLICATE) {
                hf__strbuf_puts(&text, rule->reason == HFD_RULE_INVALID ? "Invalid value"
                                                                        : "Duplicate value");
                print_value(&text, s);
                if (rule->reason == HFD_RULE_INVALID)
                        hf__strbuf_printf(&text, ": %s", detail);
        }
        if (field.error != 0 || text.error != 0)
                stop_run(s->run, -ENOMEM);
        else if (rule->reason == HFD_RULE_FORBIDDEN)
                hfd_cause_forbidden(s->run->causes, field.data, detail);
        else if (rule->reason == HFD_RULE_REQUIRED)
                hfd_cause_required(s->run->causes, field.data, detail);
        else
                hfd_cause_add(s->run->causes,
                              rule->reason == HFD_RULE_INVALID ? "FieldValueInvalid"
                                                               : "FieldValueDuplicate",
                              field.data, text.data);
        hf__strbuf_done(&field);
        hf__strbuf_done(&text);
}

/* Whether a pair around this one is known to be equal. Without this check, an unchanged object
 * that breaks rules at many levels would be compared once for each level. (Each part that differs
 * adds a cause, and the run stops when the causes are full.) */
static bool is_in_equal_pair(const struct hfd_rule_pair *pair) {
        const struct hfd_rule_pair *around = pair->around;

        while (around && !around->compared)
                around = around->around;
        return around && around->equal;
}

/* Whether the part is as it was. If it has no counterpart in the old object, the nearest part above
 * that has one decides. A rule without oldSelf that an unchanged part breaks is not reported: the
 * object may be older than the rule. */
static bool is_unchanged(struct hfd_rule_run *run, struct hfd_rule_correlation correlation) {
        struct hfd_rule_pair *pair =
                correlation.current ? correlation.current : correlation.nearest;

        if (!pair)
                return false;
        if (!pair->compared && is_in_equal_pair(pair))
                pair->equal = true;
        else if (!pair->compared && hf__json_are_equal(pair->object, pair->old, &pair->equal) != 0)
                stop_run(run, -ENOMEM);
        pair->compared = true;
        return pair->equal;
}

/* ---- evaluation ---- */

/* Evaluates the program, and reduces the budgets by what it has used. 0, HF_E_INVALID,
 * HF_E_TOO_LARGE or -ENOMEM, as hf__cel_eval; *ret_over: a budget does not suffice. */
static int evaluate_program(struct subject *s, const struct hf__cel_program *program,
                            struct hf__cel_value *ret_value, bool *ret_over) {
        const struct hf__cel_limits limits = {.cost = CALL_COST_MAX, .work = CALL_WORK_MAX};
        struct hf__cel_usage usage;
        int r = hf__cel_eval(program, s->values, &limits, &s->run->evaluation, ret_value, &usage);

        *ret_over = usage.cost > s->run->budget || usage.work > s->run->work_budget;
        if (!*ret_over) {
                s->run->budget -= usage.cost;
                s->run->work_budget -= usage.work;
        }
        return r;
}

/* The text without the space around it. NULL: it is empty, longer than MESSAGE_MAX bytes or has a
 * line break, or memory ran out. */
static char *usable_message(struct hf__arena *arena, struct hf__cel_value value) {
        const char *start = value.as.text;
        size_t n = value.n;

        while (n > 0 && strchr(SPACE, *start) && *start) {
                start++;
                n--;
        }
        while (n > 0 && start[n - 1] && strchr(SPACE, start[n - 1]))
                n--;
        if (n == 0 || n > MESSAGE_MAX || memchr(start, '\n', n))
                return NULL;
        return hf__arena_text(arena, start, n);
}

/* Only its text tells this error from others (hf__cel_failure). */
static bool exceeds_cost(struct hf__cel_value error) {
        static const char start[] = "operation cancelled: actual cost limit exceeded";

        return strncmp(error.as.text, start, sizeof start - 1) == 0;
}

/* The result of messageExpression. NULL: it fails or is not usable, so rule->detail is used. If a
 * budget, CALL_COST_MAX or CALL_WORK_MAX is exceeded, the result is NULL, and ret_text is the cause
 * with which the caller stops the run; otherwise ret_text is "". */
static const char *evaluate_message(struct subject *s, const struct hfd_rule *rule, char *ret_text,
                                    size_t max) {
        struct hf__cel_value value;
        bool over;
        int r = evaluate_program(s, rule->message_program, &value, &over);

        *ret_text = 0;
        if (r < 0) {
                stop_run(s->run, r);
                return NULL;
        }
        if (over) {
                snprintf(ret_text, max,
                         "messageExpression evaluation failed due to running out of cost budget, "
                         "no "
                         "further validation rules will be run");
        } else if (r > 0 && exceeds_cost(value)) {
                char quoted[400];

                hf__quote_bytes(rule->message_expression, strlen(rule->message_expression), quoted,
                                sizeof quoted);
                snprintf(ret_text, max,
                         "no further validation rules will be run due to call cost exceeds limit "
                         "for messageExpression: %s",
                         quoted);
        } else if (r == 0 && value.kind == HF__CEL_STRING) {
                return usable_message(&s->run->evaluation, value);
        }
        return NULL;
}

/* Reports a rule that is not fulfilled, unless the part is unchanged. */
static void report_broken(struct subject *s, const struct hfd_rule *rule,
                          struct hfd_rule_correlation correlation) {
        const char *detail = NULL;
        char text[600] = "";

        if (!rule->uses_old && is_unchanged(s->run, correlation))
                return;
        if (rule->message_program)
                detail = evaluate_message(s, rule, text, sizeof text);
        if (s->run->failed)
                return;
        if (*text) {
                refuse_type(s, text);
                stop_run(s->run, 0);
                return;
        }
        add_broken(s, rule, detail ? detail : rule->detail);
}

/* Adds the cause for a rule whose evaluation has failed. */
static void report_error(struct subject *s, const struct hfd_rule *rule,
                         struct hf__cel_value error) {
        if (strncmp(error.as.text, "no such overload", 16) == 0) {
                refuse(s,
                       "'%s': call arguments did not match a supported operator, function or macro "
                       "signature for rule: %s",
                       error.as.text, rule->shown);
        } else if (exceeds_cost(error)) {
                refuse(s,
                       "'%s': no further validation rules will be run due to call cost exceeds "
                       "limit for rule: %s",
                       error.as.text, rule->shown);
                stop_run(s->run, 0);
        } else {
                refuse(s, "%s evaluating rule: %s", error.as.text, rule->shown);
        }
}

static void run_rule(struct subject *s, const struct hfd_rule *rule,
                     struct hfd_rule_correlation correlation) {
        struct hf__cel_value value;
        bool over;
        int r;

        s->values[1] = rule->optional_old ? s->optional : s->old;
        r = evaluate_program(s, rule->program, &value, &over);
        if (r < 0) {
                stop_run(s->run, r);
        } else if (over) {
                stop_over_budget(s);
        } else if (r > 0) {
                report_error(s, rule, value);
        } else if (value.kind != HF__CEL_BOOL || !value.as.boolean) {
                report_broken(s, rule, correlation);
        }
        hf__arena_deinit(&s->run->evaluation);
}

/* ---- the rules of a part ---- */

/* The number of parts of a value, itself included. Above max the count stops. */
static size_t count_parts(const struct hf__json *json, size_t max) {
        size_t n = 1;

        for (const struct hf__json *m = hf__json_first(json); m && n <= max; m = hf__json_next(m))
                n += count_parts(m, max - n);
        return n;
}

/* Makes the value of the part, or of its old form. false: the budget does not cover it. If memory
 * runs out, run->values.failed is set, and the value must not be used. */
static bool make_value(struct subject *s, const struct hf__json *json,
                       struct hf__cel_value *ret_value) {
        const uint64_t max = s->run->work_budget / PART_WORK;
        size_t n = count_parts(json, max);

        if (n > max) {
                stop_over_budget(s);
                return false;
        }
        s->run->work_budget -= n * PART_WORK;
        s->run->has_values = true;
        *ret_value = hfd_rule_value(&s->run->values, s->node->declared, json);
        return true;
}

/* Makes oldSelf. If old is NULL, a rule with optionalOldSelf gets an empty optional. Any other rule
 * that uses oldSelf is not evaluated (rule_applies); if only the messageExpression of a rule uses
 * it, the evaluation of the messageExpression fails. */
static void set_old(struct subject *s, const struct hf__json *old) {
        struct hf__cel_value *held;

        s->old = hf__cel_error_text("no such attribute(s): oldSelf");
        s->optional = (struct hf__cel_value){.kind = HF__CEL_OPTIONAL, .as.optional = NULL};
        if (!old)
                return;
        if (!s->made->has_old && !make_value(s, old, &s->made->old))
                return;
        s->made->has_old = true;
        s->old = s->made->old;
        held = hf__arena_alloc(&s->run->values, sizeof *held);
        if (!held)
                return;
        *held = s->old;
        s->optional.as.optional = held;
}

/* Whether the rule is evaluated now. Adds the cause for a rule that does not compile. The old value
 * is made when the first rule needs it. */
static bool rule_applies(struct subject *s, const struct hfd_rule *rule, const struct hf__json *old,
                         bool *has_old) {
        if (rule->error) {
                refuse(s, "rule compile error: %s", rule->error);
                return false;
        }
        if (!rule->program || (rule->uses_old && !old && !rule->optional_old))
                return false;
        if ((rule->uses_old || rule->message_uses_old) && !*has_old) {
                set_old(s, old);
                *has_old = true;
        }
        return true;
}

void hfd_rule_run_node(struct hfd_rule_run *run, const struct hfd_rule_node *node,
                       const struct hf__json *object, const struct hf__json *old,
                       struct hfd_rule_correlation correlation, struct hfd_part_values *values) {
        struct subject s = {.run = run, .node = node, .object = object, .made = values};
        bool has_old = false;

        if (node->n_rules == 0 || run->stopped)
                return;
        if (run->budget == 0) {
                stop_over_budget(&s);
                return;
        }
        if (values->declared != node->declared)
                *values = (struct hfd_part_values){.declared = node->declared};
        if (!values->has_self && !make_value(&s, object, &values->self))
                return;
        values->has_self = true;
        s.values[0] = values->self;
        for (size_t i = 0; i < node->n_rules && !run->stopped; i++) {
                bool now = rule_applies(&s, &node->rules[i], old, &has_old);

                if (run->values.failed || run->path.error != 0)
                        stop_run(run, -ENOMEM);
                else if (now && !run->stopped)
                        run_rule(&s, &node->rules[i], correlation);
                if (run->causes->n == HFD_CAUSES_MAX)
                        stop_run(run, 0);
        }
}

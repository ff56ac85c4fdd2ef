/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Compiles one rule of x-kubernetes-validations.
 *
 * Invariant: making a rule of a stored definition fails only when memory runs out. An expression
 * that does not compile is kept as an error of the rule, which then refuses every object that has
 * the part of the rule. Other faults cost less: a blank rule is passed over, and a wrong
 * messageExpression or fieldPath is left out.
 */
#include "server/resources/custom/rules/rule.h"

#include <errno.h>
#include <string.h>

#include "base/arena.h"
#include "base/json.h"
#include "cel/cel.h"
#include "cel/values/type.h"
#include "server/resources/custom/rules/rule_field.h"
#include "server/resources/custom/rules/values/declared.h"
#include "server/resources/zones/zones.h"

#define SPACE    " \t\n\v\f\r" /* what Go's strings.TrimSpace removes, of ASCII */
#define OLD_SELF 1             /* the number of the variable in struct hfd_rule_scope */

int hfd_rule_scope_init(struct hfd_rule_scope *scope, struct hf__arena *arena,
                        const struct hf__cel_library *library,
                        const struct hfd_declared *declared) {
        const struct hf__cel_type *optional =
                hf__cel_type_new(arena, HF__CEL_OPTIONAL, declared->type, NULL);

        if (!optional)
                return -ENOMEM;
        *scope = (struct hfd_rule_scope){
                .variables = {{"self", declared->type}, {"oldSelf", declared->type}},
                .optional = {{"self", declared->type}, {"oldSelf", optional}},
                .declarations = {.functions = library,
                                 .zones = hfd_zones(),
                                 .n_variables = 2,
                                 .max_depth = HFD_RULE_DEPTH},
        };
        scope->optional_declarations = scope->declarations;
        scope->declarations.variables = scope->variables;
        scope->optional_declarations.variables = scope->optional;
        return 0;
}

/* A text without the space around it; "" if it is missing. NULL: out of memory. */
static const char *trimmed_text(struct hf__arena *arena, const char *text) {
        size_t n;

        text = text ? text : "";
        text += strspn(text, SPACE);
        n = strlen(text);
        while (n > 0 && strchr(SPACE, text[n - 1]))
                n--;
        return hf__arena_text(arena, text, n);
}

static enum hfd_rule_reason reason_of(const char *text) {
        if (text && strcmp(text, "FieldValueForbidden") == 0)
                return HFD_RULE_FORBIDDEN;
        if (text && strcmp(text, "FieldValueRequired") == 0)
                return HFD_RULE_REQUIRED;
        if (text && strcmp(text, "FieldValueDuplicate") == 0)
                return HFD_RULE_DUPLICATE;
        return HFD_RULE_INVALID;
}

/* The message of a rule that has none of its own. NULL = out of memory. */
static const char *failed_rule(struct hf__arena *arena, const char *rule) {
        static const char start[] = "failed rule: ";
        char *text = hf__arena_alloc(arena, sizeof start + strlen(rule));

        if (text)
                stpcpy(stpcpy(text, start), rule);
        return text;
}

/* The texts that causes show. 0 or -ENOMEM. */
static int set_texts(struct hfd_rule *rule, struct hf__arena *arena, const struct hf__json *json) {
        const char *text = trimmed_text(arena, hf__json_string(json, "rule"));
        const char *message = trimmed_text(arena, hf__json_string(json, "message"));

        if (!text || !message)
                return -ENOMEM;
        rule->shown = *message ? message : text;
        rule->detail = *message ? message : failed_rule(arena, text);
        rule->reason = reason_of(hf__json_string(json, "reason"));
        rule->optional_old = hf__json_bool(json, "optionalOldSelf", false);
        return rule->detail ? 0 : -ENOMEM;
}

/* Sets rule->field_path, which causes append to the path of the part. A path with a mistake is left
 * out; rule_texts.c refuses it in a new definition. 0 or -ENOMEM. */
static int set_field_path(struct hfd_rule *rule, struct hf__arena *arena,
                          struct hfd_structure *members, const struct hf__json *props,
                          const char *path) {
        struct hf__strbuf shown = {0};
        int r = 0;

        if (!path || !*path)
                return 0;
        if (hfd_rule_field(members, props, path, &shown) == 0 && shown.n > 0) {
                rule->field_path = hf__arena_text(arena, shown.data, shown.n);
                r = rule->field_path ? 0 : -ENOMEM;
        }
        r = shown.error != 0 ? -ENOMEM : r;
        hf__strbuf_done(&shown);
        return r;
}

/* Compiles an expression that must have the type `wanted`. failed: the beginning of the message if
 * it cannot be compiled; other_type: the message for another type. 0: *ret_program is the program,
 * or NULL, and then `error` has the message; or -ENOMEM. What it takes is added to *work. */
static int compile_text(const struct hf__cel_declarations *declarations, const char *text,
                        enum hf__cel_kind wanted, const char *failed, const char *other_type,
                        struct hf__strbuf *error, uint64_t *work,
                        struct hf__cel_program **ret_program) {
        struct hf__cel_program *program = NULL;
        uint64_t taken;
        int r;

        *ret_program = NULL;
        hf__strbuf_puts(error, failed);
        r = hf__cel_compile(declarations, text, strlen(text), error, &program, &taken);
        *work += taken;
        if (r < 0 || error->error != 0)
                goto out;
        if (r > 0)
                return 0;
        hf__strbuf_reset(error);
        if (hf__cel_program_type(program)->kind == wanted) {
                *ret_program = program;
                return 0;
        }
        hf__strbuf_puts(error, other_type);
out:
        hf__cel_program_free(program);
        return r < 0 || error->error != 0 ? -ENOMEM : 0;
}

/* Compiles the expression that makes the message of a cause. If it has a mistake, the rule goes on
 * without it. 0 or -ENOMEM. */
static int compile_message(struct hfd_rule *rule, struct hf__arena *arena,
                           const struct hf__cel_declarations *declarations, const char *text,
                           struct hfd_rule_findings *findings) {
        int r;

        if (!text || !*text)
                return 0;
        rule->message_expression = hf__arena_text(arena, text, strlen(text));
        if (!rule->message_expression)
                return -ENOMEM;
        r = compile_text(declarations, text, HF__CEL_STRING,
                         "messageExpression compilation failed: ",
                         "messageExpression must evaluate to a string", &findings->message_error,
                         &findings->work, &rule->message_program);
        if (rule->message_program) {
                findings->message_cost = hf__cel_estimate(rule->message_program);
                rule->message_uses_old = hf__cel_program_uses(rule->message_program, OLD_SELF);
        }
        return r;
}

int hfd_rule_init(struct hfd_rule *rule, struct hf__arena *arena,
                  const struct hfd_rule_scope *scope, struct hfd_structure *members,
                  const struct hf__json *props, const struct hf__json *json,
                  struct hfd_rule_findings *findings) {
        const char *text = hf__json_string(json, "rule");
        const struct hf__cel_declarations *declarations;
        int r;

        *rule = (struct hfd_rule){.next = NULL};
        r = set_texts(rule, arena, json);
        if (r != 0 || !text || text[strspn(text, SPACE)] == 0)
                return r;
        declarations = rule->optional_old ? &scope->optional_declarations : &scope->declarations;
        r = compile_text(declarations, text, HF__CEL_BOOL,
                         "compilation failed: ", "cel expression must evaluate to a bool",
                         &findings->error, &findings->work, &rule->program);
        if (r == 0 && !rule->program) {
                rule->error = hf__arena_text(arena, findings->error.data, findings->error.n);
                return rule->error ? 0 : -ENOMEM;
        }
        if (r != 0)
                return r;
        rule->uses_old = hf__cel_program_uses(rule->program, OLD_SELF);
        findings->cost = hf__cel_estimate(rule->program);
        r = compile_message(rule, arena, declarations, hf__json_string(json, "messageExpression"),
                            findings);
        if (r != 0)
                return r;
        return set_field_path(rule, arena, members, props, hf__json_string(json, "fieldPath"));
}

void hfd_rule_done(struct hfd_rule *rule) {
        hf__cel_program_free(rule->program);
        hf__cel_program_free(rule->message_program);
        rule->program = NULL;
        rule->message_program = NULL;
}

/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Validates matchConditions: expressions (CEL) that must all be true before a webhook or a policy
 * gets a request.
 *
 * Invariants: an expression is compiled with the same features as when it is evaluated later, so
 * one that is accepted here works there. (One exception: a vertical tab around it, which is no
 * white space in CEL, is cut off only here.) The number of conditions is limited before any of them
 * is compiled.
 */
#include <stdlib.h>
#include <string.h>

#include "base/json.h"
#include "base/json_index.h"
#include "server/resources/causes.h"
#include "server/resources/expressions/expressions.h"
#include "server/resources/strategies/admission/match_schema.h"
#include "server/resources/strategies/admission/rule_path.h"
#include "server/resources/validation/names.h"

#define CONDITIONS_MAX 64 /* Kubernetes' limit */
#define FIELD_MAX      HFD_RULE_PATH_MAX

static const char spaces[] = " \t\n\v\f\r";

static bool is_blank(const char *text) { return text[strspn(text, spaces)] == 0; }

/* Compiles the expression without the spaces around it, because kube-apiserver's causes show it
 * without them. work: that of the expressions compiled before those of the set. */
static void validate_expression(struct hfd_expressions *set, const char *whole, unsigned features,
                                const char *field, uint64_t work, struct hfd_causes *causes) {
        const char *start = whole + strspn(whole, spaces);
        const struct hfd_expression *expression;
        size_t n = strlen(start);
        char *text;

        if (work + hfd_expressions_work(set) > HFD_EXPRESSIONS_COMPILE_MAX)
                return; /* an earlier cause says that the limit is exceeded */
        while (n > 0 && strchr(spaces, start[n - 1]))
                n--;
        text = strndup(start, n);
        if (!text ||
            hfd_expressions_compile(set, text, features, HFD_RESULT_BOOL, &expression) != 0)
                hfd_causes_no_memory(causes);
        else if (expression->error)
                hfd_cause_invalid_text(causes, field, text, expression->error);
        if (work + hfd_expressions_work(set) > HFD_EXPRESSIONS_COMPILE_MAX)
                hfd_cause_forbidden(causes, field, HFD_EXPRESSIONS_COMPILE_TEXT);
        free(text);
}

/* set: gets the compiled expression. features: HFD_EXPRESSION_... */
static void validate_condition(struct hfd_expressions *set, const struct hf__json *condition,
                               unsigned features, const char *field, uint64_t work,
                               struct hfd_causes *causes) {
        const char *text = hf__json_string(condition, "expression");
        const char *name = hf__json_string(condition, "name");
        char path[FIELD_MAX];

        hfd_rule_path(path, field, "expression");
        if (!text || is_blank(text))
                hfd_cause_required(causes, path, NULL);
        else
                validate_expression(set, text, features, path, work, causes);
        hfd_rule_path(path, field, "name");
        if (!name || !name[0])
                hfd_cause_required(causes, path, NULL);
        else if (!hfd_is_qualified_name(name))
                hfd_cause_invalid_text(causes, path, name, hfd_qualified_name_rule);
}

void hfd_match_conditions_validate(const struct hf__json *conditions, bool params,
                                   const char *field, uint64_t *work, struct hfd_causes *causes) {
        unsigned features = HFD_EXPRESSION_AUTHORIZER | (params ? HFD_EXPRESSION_PARAMS : 0);
        size_t n = hf__json_count(conditions);
        struct hfd_expressions *set = NULL;
        struct hf__json_index names;
        char path[FIELD_MAX];
        size_t i = 0;

        if (n == 0)
                return;
        if (n > CONDITIONS_MAX) {
                hfd_cause_too_many(causes, field, n, CONDITIONS_MAX);
                return;
        }
        if (!hfd_causes_check(causes, hf__json_index_init(&names, conditions, "name")))
                return;
        if (hfd_expressions_new(features, NULL, NULL, &set) != 0)
                hfd_causes_no_memory(causes);
        for (const struct hf__json *m = set ? hf__json_first(conditions) : NULL; m;
             m = hf__json_next(m), i++) {
                const char *name = hf__json_string(m, "name");
                struct hf__json_index_entry *entry =
                        name && name[0] ? hf__json_index_find(&names, name) : NULL;

                hfd_rule_path_at(path, field, NULL, i);
                validate_condition(set, m, features, path, *work, causes);
                if (entry && entry->position < i) {
                        char name_path[FIELD_MAX];

                        hfd_cause_duplicate_text(causes, hfd_rule_path(name_path, path, "name"),
                                                 name);
                }
        }
        if (set)
                *work += hfd_expressions_work(set);
        hfd_expressions_free(set);
        hf__json_index_done(&names);
}

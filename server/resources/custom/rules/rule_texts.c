/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Checks the texts of the rules in x-kubernetes-validations without compiling them: required texts
 * are there, no text is blank, messages are one line, the reason is a known one, and fieldPath
 * leads to a field.
 *
 * Invariants: the texts of the causes and their order are those of kube-apiserver. A static
 * function with the parameters path and n does not change the first n bytes of path, which are the
 * path of the rule.
 */
#include "server/resources/custom/rules/rule_texts.h"

#include <errno.h>
#include <stdbool.h>
#include <string.h>

#include "base/json.h"
#include "base/strbuf.h"
#include "server/resources/causes.h"
#include "server/resources/custom/rules/rule_field.h"
#include "server/resources/custom/rules/rule_schema.h"

#define SPACE " \t\n\v\f\r" /* what Go's strings.TrimSpace removes, of ASCII */

static bool is_blank(const char *text) { return text[strspn(text, SPACE)] == 0; }

/* Whether there is a line break within the text, and not only around it. */
static bool has_break(const char *text) {
        const char *start = text + strspn(text, SPACE);
        size_t n = strlen(start);

        while (n > 0 && strchr(SPACE, start[n - 1]))
                n--;
        return memchr(start, '\n', n) || memchr(start, '\r', n);
}

static const char *text_of(const struct hf__json *rule, const char *name) {
        const char *text = hf__json_string(rule, name);

        return text ? text : "";
}

/* The path of a member of the rule; valid until path changes. */
static const char *path_with_name(struct hf__strbuf *path, size_t n, const char *name) {
        hfd_rule_path_cut(path, n);
        hf__strbuf_putc(path, '.');
        hf__strbuf_puts(path, name);
        return path->data ? path->data : "";
}

/* Checks `rule` and `message`. A rule of several lines is no readable message, so the rule must
 * have a `message`. */
static void check_message(const struct hf__json *rule, struct hf__strbuf *path, size_t n,
                          struct hfd_causes *causes) {
        const char *text = text_of(rule, "rule");
        const char *message = text_of(rule, "message");

        if (is_blank(text))
                hfd_cause_required(causes, path_with_name(path, n, "rule"),
                                   "rule is not specified");
        else if (*message && is_blank(message))
                hfd_cause_invalid_text(causes, path_with_name(path, n, "message"), message,
                                       "must be non-empty if specified");
        else if (has_break(message))
                hfd_cause_invalid_text(causes, path_with_name(path, n, "message"), message,
                                       "must not contain line breaks");
        else if (has_break(text) && !*message)
                hfd_cause_required(causes, path_with_name(path, n, "message"),
                                   "message must be specified if rule contains line breaks");
}

/* Checks fieldPath, which must name a field of the schema props. */
static void check_field_path(struct hfd_structure *members, const struct hf__json *props,
                             const struct hf__json *rule, struct hf__strbuf *path, size_t n,
                             struct hfd_causes *causes) {
        const char *text = text_of(rule, "fieldPath");
        struct hf__strbuf shown = {0};

        if (!*text)
                return;
        if (is_blank(text))
                hfd_cause_invalid_text(causes, path_with_name(path, n, "fieldPath"), text,
                                       "must be non-empty if specified");
        if (strchr(text, '\n'))
                hfd_cause_invalid_text(causes, path_with_name(path, n, "fieldPath"), text,
                                       "must not contain line breaks");
        if (hfd_rule_field(members, props, text, &shown) != 0 && shown.error != -ENOMEM)
                hfd_cause_invalid_text(causes, path_with_name(path, n, "fieldPath"), text,
                                       "must be a valid path");
        (void)hfd_causes_check(causes, shown.error);
        hf__strbuf_done(&shown);
}

static bool is_reason(const char *text) {
        static const char *const reasons[] = {"FieldValueDuplicate", "FieldValueForbidden",
                                              "FieldValueInvalid", "FieldValueRequired"};

        for (size_t i = 0; i < sizeof reasons / sizeof reasons[0]; i++)
                if (strcmp(reasons[i], text) == 0)
                        return true;
        return false;
}

static void check_rule(struct hfd_structure *members, const struct hf__json *props,
                       const struct hf__json *rule, struct hf__strbuf *path,
                       struct hfd_causes *causes) {
        const char *reason = hf__json_string(rule, "reason");
        const char *expression = text_of(rule, "messageExpression");
        size_t n = path->n;

        check_message(rule, path, n, causes);
        if (*expression && is_blank(expression))
                hfd_cause_required(causes, path_with_name(path, n, "messageExpression"),
                                   "messageExpression must be non-empty if specified");
        if (reason && !is_reason(reason))
                hfd_cause_unsupported_text(causes, path_with_name(path, n, "reason"), reason,
                                           "\"FieldValueDuplicate\", \"FieldValueForbidden\", "
                                           "\"FieldValueInvalid\", \"FieldValueRequired\"");
        check_field_path(members, props, rule, path, n, causes);
        hfd_rule_path_cut(path, n);
}

void hfd_rule_texts_check(struct hfd_structure *members, const struct hf__json *props,
                          struct hf__strbuf *path, struct hfd_causes *causes) {
        size_t n = path->n;
        size_t i = 0;

        for (const struct hf__json *c = hfd_rule_schema_first(props); c;
             c = hfd_rule_schema_next(props, c)) {
                hfd_rule_path_enter(path, props, c);
                hfd_rule_texts_check(members, c, path, causes);
                hfd_rule_path_cut(path, n);
        }
        for (const struct hf__json *rule =
                     hf__json_first(hf__json_get(props, "x-kubernetes-validations"));
             rule && path->error == 0; rule = hf__json_next(rule)) {
                hf__strbuf_printf(path, ".x-kubernetes-validations[%zu]", i++);
                check_rule(members, props, rule, path, causes);
                hfd_rule_path_cut(path, n);
        }
}

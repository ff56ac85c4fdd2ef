/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Reports what is wrong with the rules of a definition.
 *
 * Invariant: paths, texts and values, except the texts of hfd_rule_issues_spent, are those of
 * Kubernetes, which shows a rule as the JSON of its Go struct. The fields of that struct have no
 * JSON names, so their Go names appear ("Rule").
 */
#include "server/resources/custom/rules/rule_issues.h"

#include <stdio.h>
#include <string.h>

#include "base/json.h"
#include "server/resources/causes.h"
#include "server/resources/custom/rules/rule.h"
#include "server/resources/custom/rules/rule_schema.h"

/* Bytes of the largest request, as in kube-apiserver. A part below a list or map without a largest
 * size is estimated to occur as often as its shortest JSON fits into such a request. */
#define REQUEST_MAX ((int64_t)3 * 1024 * 1024)

void hfd_rule_place_enter(struct hfd_rule_place *place, const struct hf__json *props, size_t n_path,
                          bool property) {
        bool list = hf__json_has_text(props, "type", "array");
        int64_t max = 1;

        /* A property occurs once. Of elements and values there are as many as the limit allows. */
        if (!property && !hf__json_i64(props, list ? "maxItems" : "maxProperties", &max))
                place->bounded = false;
        place->times = hfd_rule_cost_times(place->times, max < 0 ? 0 : (uint64_t)max);
        if (list && !hf__json_has_text(props, "x-kubernetes-list-type", "map"))
                place->n_uncorrelatable = n_path;
}

/* A member of a struct, as Go's encoder of JSON writes it: it escapes characters that are special
 * in HTML. */
static void print_text(struct hf__strbuf *out, const char *name, const char *text) {
        struct hf__strbuf quoted = {0};

        hf__strbuf_printf(out, "\"%s\":", name);
        hf__strbuf_json(&quoted, text ? text : "", text ? strlen(text) : 0);
        for (size_t i = 0; i < quoted.n; i++)
                if (strchr("<>&", quoted.data[i]))
                        hf__strbuf_printf(out, "\\u%04x", (unsigned)quoted.data[i]);
                else
                        hf__strbuf_putc(out, quoted.data[i]);
        hf__strbuf_putc(out, ',');
        hf__strbuf_done(&quoted);
}

static void print_rule(struct hf__strbuf *out, const struct hf__json *json) {
        const struct hf__json *old = hf__json_get(json, "optionalOldSelf");

        hf__strbuf_putc(out, '{');
        print_text(out, "Rule", hf__json_string(json, "rule"));
        print_text(out, "Message", hf__json_string(json, "message"));
        print_text(out, "MessageExpression", hf__json_string(json, "messageExpression"));
        if (hf__json_string(json, "reason"))
                print_text(out, "Reason", hf__json_string(json, "reason"));
        else
                hf__strbuf_puts(out, "\"Reason\":null,");
        print_text(out, "FieldPath", hf__json_string(json, "fieldPath"));
        hf__strbuf_puts(out, "\"OptionalOldSelf\":");
        if (hf__json_is_bool(old))
                hf__strbuf_puts(out, hf__json_is_true(old) ? "true}" : "false}");
        else
                hf__strbuf_puts(out, "null}");
}

/* The path of a member of rule number `index`; valid until the path changes. n: bytes of the path
 * of the part, as in the functions below. */
static const char *path_of_rule(struct hfd_rule_issues *issues, size_t n, size_t index,
                                const char *name) {
        hfd_rule_path_cut(&issues->path, n);
        hf__strbuf_printf(&issues->path, ".x-kubernetes-validations[%zu].%s", index, name);
        return issues->path.data ? issues->path.data : "";
}

static void refuse_rule(struct hfd_rule_issues *issues, size_t n, size_t index, const char *name,
                        const struct hf__json *json, const char *detail) {
        struct hf__strbuf value = {0};

        print_rule(&value, json);
        hfd_cause_invalid(issues->causes, path_of_rule(issues, n, index, name),
                          value.data ? value.data : "", detail);
        hf__strbuf_done(&value);
}

/* Checks how a rule uses oldSelf. */
static void check_old(struct hfd_rule_issues *issues, const struct hfd_rule_place *place, size_t n,
                      size_t index, const struct hfd_rule *rule, const struct hf__json *json) {
        const struct hf__json *optional = hf__json_get(json, "optionalOldSelf");
        char text[400];

        if (rule->uses_old && place->n_uncorrelatable > 0) {
                snprintf(text, sizeof text,
                         "oldSelf cannot be used on the uncorrelatable portion of the schema "
                         "within %.*s",
                         (int)place->n_uncorrelatable, issues->path.data);
                hfd_cause_invalid_text(issues->causes, path_of_rule(issues, n, index, "rule"),
                                       hf__json_string(json, "rule"), text);
        } else if (!rule->uses_old && hf__json_is_bool(optional)) {
                hfd_cause_invalid(issues->causes, path_of_rule(issues, n, index, "optionalOldSelf"),
                                  hf__json_is_true(optional) ? "true" : "false",
                                  "may not be set if oldSelf is not used in rule");
        }
}

void hfd_rule_issues_add(struct hfd_rule_issues *issues, const struct hfd_rule_place *place,
                         size_t index, const struct hfd_rule *rule, const struct hf__json *json,
                         const struct hfd_rule_findings *findings, int64_t min_size) {
        /* An element needs its JSON and a comma. */
        uint64_t times = place->bounded ? place->times : (uint64_t)(REQUEST_MAX / (min_size + 1));
        size_t n = issues->path.n;

        if (!issues->causes)
                return;
        hfd_rule_budget_add(&issues->budget, "estimated rule cost",
                            path_of_rule(issues, n, index, "rule"),
                            hfd_rule_cost_times(findings->cost, times), issues->causes);
        if (rule->error)
                refuse_rule(issues, n, index, "rule", json, rule->error);
        if (findings->message_error.n > 0)
                refuse_rule(issues, n, index, "messageExpression", json,
                            findings->message_error.data);
        else if (rule->message_program)
                hfd_rule_budget_add(&issues->budget, "estimated messageExpression cost",
                                    path_of_rule(issues, n, index, "messageExpression"),
                                    findings->message_cost, issues->causes);
        check_old(issues, place, n, index, rule, json);
        hfd_rule_path_cut(&issues->path, n);
}

void hfd_rule_issues_spent(struct hfd_rule_issues *issues, const char *problem) {
        size_t n = issues->path.n;

        if (!issues->causes)
                return;
        hf__strbuf_puts(&issues->path, ".x-kubernetes-validations");
        hfd_cause_forbidden(issues->causes, issues->path.data ? issues->path.data : "", problem);
        hfd_rule_path_cut(&issues->path, n);
}

void hfd_rule_issues_undeclared(struct hfd_rule_issues *issues,
                                const struct hfd_rule_place *place) {
        size_t n = issues->path.n;

        if (!issues->causes)
                return;
        hf__strbuf_puts(&issues->path, ".x-kubernetes-validations");
        hfd_cause_add(issues->causes, "InternalError", issues->path.data ? issues->path.data : "",
                      "Internal error: internal error: failed to construct type information for "
                      "x-kubernetes-validations rules: unable to convert structural schema to CEL "
                      "declarations");
        hfd_rule_path_cut(&issues->path, n);
}

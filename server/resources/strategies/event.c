/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The rules for Events. Both versions have the rules of v1, which know two kinds of Events. A newer
 * Event has an eventTime. It must name its reporter, the reporter's instance, an action and a
 * reason. It may be in any namespace if its object is in one, else in "default" or "kube-system".
 * An older Event has no eventTime. Its namespace must be that of its object, or "default" if the
 * object has no namespace.
 *
 * A write through events.k8s.io/v1 is also checked strictly: it may only create newer Events, and
 * of the fields outside metadata it may only change the series.
 *
 * Invariant: in causes, fields have the names of Kubernetes' internal type, whatever the version.
 * The reporter is the exception: in a write through v1 it is called reportingComponent.
 */
#include <stdio.h>
#include <string.h>

#include "base/json.h"
#include "base/strbuf.h"
#include "server/resources/causes.h"
#include "server/resources/strategies/strategies.h"
#include "server/resources/validation/names.h"

#define TEXT_MAX 128  /* bytes of action, reason and reportingInstance */
#define NOTE_MAX 1024 /* bytes of message */

/* The members whose names differ between the two versions. */
struct names {
        const char *object, *message, *reporter, *first, *last, *count, *source;
};
static const struct names v1_names = {.object = "involvedObject",
                                      .message = "message",
                                      .reporter = "reportingComponent",
                                      .first = "firstTimestamp",
                                      .last = "lastTimestamp",
                                      .count = "count",
                                      .source = "source"};
static const struct names new_names = {.object = "regarding",
                                       .message = "note",
                                       .reporter = "reportingController",
                                       .first = "deprecatedFirstTimestamp",
                                       .last = "deprecatedLastTimestamp",
                                       .count = "deprecatedCount",
                                       .source = "deprecatedSource"};

/* ---- the rules of v1 ---- */

static void limit_text(const char *text, size_t max, const char *field, struct hfd_causes *causes) {
        char detail[60];

        if (strlen(text) <= max)
                return;
        (void)snprintf(detail, sizeof detail, "can have at most %zu characters", max);
        hfd_cause_invalid_text(causes, field, "", detail);
}

static void require_text(const struct hf__json *object, const char *name,
                         struct hfd_causes *causes) {
        const char *text = hf__json_string_or_empty(object, name);

        if (!*text)
                hfd_cause_required(causes, name, "");
        limit_text(text, TEXT_MAX, name, causes);
}

/* field: the name that the member has in the version. As in kube-apiserver, an absent reporter gets
 * three causes: it is required, and "" breaks two rules of qualified names. */
static void validate_reporter(const char *reporter, const char *field, struct hfd_causes *causes) {
        if (!*reporter) {
                hfd_cause_required(causes, field, "");
                hfd_cause_invalid_text(causes, field, "", "name part must be non-empty");
        }
        if (!hfd_is_qualified_name(reporter))
                hfd_cause_invalid_text(causes, field, reporter, hfd_qualified_name_rule);
}

/* The rules that both versions have. names: those of the version in which object is. */
static void validate_always(const struct hf__json *object, const struct names *names,
                            struct hfd_causes *causes) {
        const char *ns = hf__json_string_or_empty(object, "metadata.namespace"),
                   *of_object = hf__json_string_or_empty(hf__json_get(object, names->object),
                                                         "namespace");
        bool is_new = hf__json_get(object, "eventTime") != NULL, matches;

        if (*of_object)
                matches = is_new || strcmp(ns, of_object) == 0;
        else
                matches = strcmp(ns, "default") == 0 || (is_new && strcmp(ns, "kube-system") == 0);
        if (!matches)
                hfd_cause_invalid_text(causes, "involvedObject.namespace", of_object,
                                       "does not match event.namespace");
        if (!is_new)
                return;
        validate_reporter(hf__json_string_or_empty(object, names->reporter), names->reporter,
                          causes);
        require_text(object, "reportingInstance", causes);
        require_text(object, "action", causes);
        require_text(object, "reason", causes);
        limit_text(hf__json_string_or_empty(object, names->message), NOTE_MAX, "message", causes);
}

void hfd_event_validate(const struct hf__json *object, const struct hf__json *old,
                        struct hfd_causes *causes) {
        validate_always(object, &v1_names, causes);
}

/* ---- the rules of events.k8s.io/v1 ---- */

static void validate_series(const struct hf__json *object, struct hfd_causes *causes) {
        const struct hf__json *series = hf__json_get(object, "series");
        int64_t count = 0;

        if (!series)
                return;
        (void)hf__json_i64(series, "count", &count);
        if (count < 2)
                hfd_cause_invalid_text(causes, "series.count", "", "should be at least 2");
        if (!hf__json_get(series, "lastObservedTime"))
                hfd_cause_required(causes, "series.lastObservedTime", "");
}

static void validate_create(const struct hf__json *object, struct hfd_causes *causes) {
        const struct hf__json *source = hf__json_get(object, new_names.source);
        const char *type = hf__json_string_or_empty(object, "type");
        char detail[300];
        int64_t count = 0;

        validate_series(object, causes);
        if (!hf__json_get(object, "eventTime"))
                hfd_cause_required(causes, "eventTime", "");
        (void)snprintf(detail, sizeof detail, "has invalid value: %s", type);
        if (strcmp(type, "Normal") != 0 && strcmp(type, "Warning") != 0)
                hfd_cause_invalid_text(causes, "type", "", detail);
        if (hf__json_get(object, new_names.first))
                hfd_cause_invalid_text(causes, "firstTimestamp", "", "needs to be unset");
        if (hf__json_get(object, new_names.last))
                hfd_cause_invalid_text(causes, "lastTimestamp", "", "needs to be unset");
        if (hf__json_i64(object, new_names.count, &count) && count != 0)
                hfd_cause_invalid_text(causes, "count", "", "needs to be unset");
        if (*hf__json_string_or_empty(source, "component") ||
            *hf__json_string_or_empty(source, "host"))
                hfd_cause_invalid_text(causes, "source", "", "needs to be unset");
}

static void refuse_change(const struct hf__json *value, const char *field,
                          struct hfd_causes *causes) {
        struct hf__strbuf text = {0};

        if (value)
                hf__json_print(value, &text);
        else
                hf__strbuf_puts(&text, "\"\"");
        hfd_cause_invalid(causes, field, hfd_causes_check(causes, text.error) ? text.data : "",
                          "field is immutable");
        hf__strbuf_done(&text);
}

static void validate_update(const struct hf__json *object, const struct hf__json *old,
                            struct hfd_causes *causes) {
        const struct {
                const char *name, *field;
        } fixed[] = {{new_names.object, "involvedObject"},
                     {"reason", "reason"},
                     {new_names.message, "message"},
                     {new_names.source, "source"},
                     {new_names.first, "firstTimestamp"},
                     {new_names.last, "lastTimestamp"},
                     {new_names.count, "count"},
                     {"type", "type"},
                     {"eventTime", "eventTime"},
                     {"action", "action"},
                     {"related", "related"},
                     {new_names.reporter, "reportingController"},
                     {"reportingInstance", "reportingInstance"}};

        if (!hfd_causes_equal_member(causes, &hfd_new_event_schema, object, old, "series"))
                validate_series(object, causes);
        for (size_t i = 0; i < sizeof fixed / sizeof fixed[0]; i++)
                if (!hfd_causes_equal_member(causes, &hfd_new_event_schema, object, old,
                                             fixed[i].name))
                        refuse_change(hf__json_get(object, fixed[i].name), fixed[i].field, causes);
}

void hfd_new_event_validate(const struct hf__json *object, const struct hf__json *old,
                            struct hfd_causes *causes) {
        validate_always(object, &new_names, causes);
        if (old)
                validate_update(object, old, causes);
        else
                validate_create(object, causes);
}

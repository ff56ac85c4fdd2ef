/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The rules of the parts of a version: its warning, its subresources and its columns.
 *
 * Invariant: a warning that is accepted is short and printable, because it becomes a header of
 * responses.
 */
#include <stdint.h>
#include <stdio.h>
#include <string.h>

#include "base/json.h"
#include "base/quote.h"
#include "base/text.h"
#include "base/utf8.h"
#include "server/resources/causes.h"
#include "server/resources/strategies/definition/definition_rules.h"

#define WARNING_MAX 256 /* bytes of a deprecation warning */

/* ---- the warning ---- */

/* The warning becomes a header of responses, so it must be printable. */
static void check_printable(const char *text, const char *field, struct hfd_causes *causes) {
        size_t n = strlen(text);

        for (size_t i = 0, length; i < n; i += length) {
                uint32_t character = 0;
                char detail[120];
                length = hf__utf8_decode(text + i, n - i, &character);
                if (length == 0) /* does not occur: bodies are valid UTF-8 */
                        length = 1;
                else if (hf__is_printable(character))
                        continue;
                (void)snprintf(detail, sizeof detail,
                               "must only contain printable UTF-8 characters; non-printable "
                               "character found at index %zu",
                               i);
                hfd_cause_invalid_text(causes, field, text, detail);
                return;
        }
}

void hfd_definition_check_deprecation(const struct hf__json *version, const char *path,
                                      struct hfd_causes *causes) {
        const char *text = hf__json_string(version, "deprecationWarning");
        char field[HFD_DEFINITION_PATH_MAX];

        if (!text)
                return;
        (void)snprintf(field, sizeof field, "%s.deprecationWarning", path);
        if (!hf__json_bool(version, "deprecated", false)) {
                hfd_cause_invalid_text(causes, field, text,
                                       "can only be set for deprecated versions");
                return;
        }
        if (strlen(text) > WARNING_MAX)
                hfd_cause_invalid_text(causes, field, text, "must be <= 256 characters long");
        if (!*text)
                hfd_cause_invalid_text(causes, field, text, "must not be an empty string");
        check_printable(text, field, causes);
}

/* ---- subresources ---- */

/* False: path is not a simple JSON path; a cause was added. path is not empty. */
static bool check_simple_path(const char *path, const char *field, struct hfd_causes *causes) {
        if (*path == '.')
                return true;
        hfd_cause_invalid_text(causes, field, path, "must be a simple json path starting with .");
        return false;
}

/* The path of a number of replicas, which must be below `start`. */
static void check_replicas_path(const struct hf__json *scale, const char *key, const char *start,
                                const char *detail, const char *path, struct hfd_causes *causes) {
        const char *found = hfd_definition_text(scale, key);
        char field[HFD_DEFINITION_PATH_MAX];

        (void)snprintf(field, sizeof field, "%s.scale.%s", path, key);
        if (!*found)
                hfd_cause_required(causes, field, "");
        else if (check_simple_path(found, field, causes) && !hf__text_begins_with(found, start))
                hfd_cause_invalid_text(causes, field, found, detail);
}

void hfd_definition_check_subresources(const struct hf__json *subresources, const char *path,
                                       struct hfd_causes *causes) {
        const struct hf__json *scale = hf__json_get(subresources, "scale");
        const char *selector = hfd_definition_text(scale, "labelSelectorPath");
        char field[HFD_DEFINITION_PATH_MAX];

        if (!scale)
                return;
        check_replicas_path(scale, "specReplicasPath", ".spec.",
                            "should be a json path under .spec", path, causes);
        check_replicas_path(scale, "statusReplicasPath", ".status.",
                            "should be a json path under .status", path, causes);
        (void)snprintf(field, sizeof field, "%s.scale.labelSelectorPath", path);
        if (*selector && check_simple_path(selector, field, causes) &&
            !hf__text_begins_with(selector, ".spec.") &&
            !hf__text_begins_with(selector, ".status."))
                hfd_cause_invalid_text(causes, field, selector,
                                       "should be a json path under either .spec or .status");
}

/* ---- columns ---- */

static void check_column(const struct hf__json *column, const char *path,
                         struct hfd_causes *causes) {
        static const char *const types[] = {"boolean", "date", "integer", "number", "string", NULL};
        static const char *const formats[] = {"byte",  "date",  "date-time", "double", "float",
                                              "int32", "int64", "password",  NULL};
        static const char of_type[] = "must be one of boolean,date,integer,number,string";
        const char *type = hfd_definition_text(column, "type"),
                   *format = hfd_definition_text(column, "format"),
                   *json_path = hfd_definition_text(column, "jsonPath");
        char field[HFD_DEFINITION_PATH_MAX];

        (void)snprintf(field, sizeof field, "%s.name", path);
        if (!*hfd_definition_text(column, "name"))
                hfd_cause_required(causes, field, "");
        (void)snprintf(field, sizeof field, "%s.type", path);
        if (!*type)
                hfd_cause_required(causes, field, of_type);
        else if (!hf__text_is_one_of(type, types))
                hfd_cause_invalid_text(causes, field, type, of_type);
        (void)snprintf(field, sizeof field, "%s.format", path);
        if (*format && !hf__text_is_one_of(format, formats))
                hfd_cause_invalid_text(causes, field, format,
                                       "must be one of "
                                       "byte,date,date-time,double,float,int32,int64,password");
        (void)snprintf(field, sizeof field, "%s.JSONPath", path);
        if (!*json_path)
                hfd_cause_required(causes, field, "");
        else
                (void)check_simple_path(json_path, field, causes);
}

void hfd_definition_check_columns(const struct hf__json *columns, const char *path,
                                  struct hfd_causes *causes) {
        char field[100];
        size_t i = 0;

        for (const struct hf__json *m = hf__json_first(columns); m; m = hf__json_next(m), i++) {
                (void)snprintf(field, sizeof field, "%s.additionalPrinterColumns[%zu]", path, i);
                check_column(m, field, causes);
        }
}

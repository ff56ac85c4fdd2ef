/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Validates spec.versions[*].selectableFields: the fields that field selectors may name. They are
 * paths through properties and maps of the schema, which end at a text, a boolean or an integer.
 *
 * Invariants: at most MAX_FIELDS different paths are accepted, because every object in memory has
 * their values; only a list that an update leaves as it is may be longer. Following a path takes
 * time in proportion to the schema, so the check ends after CHECKED_MAX good paths, or when there
 * is no room for further causes.
 */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/json.h"
#include "server/resources/causes.h"
#include "server/resources/strategies/definition/definition_rules.h"

#define MAX_FIELDS  8
#define TOKEN_MAX   250 /* bytes of a token that a message shows */
#define CHECKED_MAX 64  /* different good paths; what comes after them is ignored */

/* Reads a token: a delimiter, or the text before the next one. A quoted text may contain
 * delimiters. Returns its length; 0 = the end. */
static size_t token_length(const char *at) {
        size_t n = 0;

        if (!*at || strchr(".[]", *at))
                return *at ? 1 : 0;
        if (*at == '\'') {
                for (n = 1; at[n]; n++)
                        if (at[n] == '\'' && at[n - 1] != '\\')
                                return n + 1;
                return n;
        }
        return strcspn(at, ".[]");
}

/* The schema below props under a name of n bytes; NULL: there is none. */
static const struct hf__json *property_below(const struct hf__json *props, const char *name,
                                             size_t n) {
        const struct hf__json *properties = hf__json_get(props, "properties"),
                              *values = hf__json_get(props, "additionalProperties");

        if (!hf__json_first(properties))
                return hf__json_is_object(values) ? values : NULL;
        for (const struct hf__json *m = hf__json_first(properties); m; m = hf__json_next(m))
                if (strlen(hf__json_key(m)) == n && memcmp(hf__json_key(m), name, n) == 0)
                        return m;
        return NULL;
}

/* The schema that a path such as ".spec.color" leads to. NULL: the path is wrong; why gets the
 * reason. */
static const struct hf__json *follow_path(const struct hf__json *props, const char *path, char *why,
                                          size_t max_why) {
        for (size_t n = token_length(path); n > 0; n = token_length(path)) {
                if (*path == '[') {
                        (void)snprintf(why, max_why, "array notation is not allowed");
                        return NULL;
                }
                if (*path != '.') {
                        (void)snprintf(why, max_why, "expected [ or . but got: %.*s",
                                       (int)(n < TOKEN_MAX ? n : TOKEN_MAX), path);
                        return NULL;
                }
                path++;
                n = token_length(path);
                if (n == 0) {
                        (void)snprintf(why, max_why, "unexpected end of JSON path");
                        return NULL;
                }
                props = property_below(props, path, n);
                if (!props) {
                        (void)snprintf(why, max_why, "does not refer to a valid field");
                        return NULL;
                }
                path += n;
        }
        return props;
}

static bool is_selectable_type(const struct hf__json *props) {
        const char *type = hfd_definition_text(props, "type");

        return strcmp(type, "string") == 0 || strcmp(type, "boolean") == 0 ||
               strcmp(type, "integer") == 0;
}

/* Whether a valid path leads into metadata. */
static bool is_in_metadata(const struct hf__json *props, const char *path) {
        return hf__json_first(hf__json_get(props, "properties")) &&
               strncmp(path, ".metadata", 9) == 0 && (path[9] == '\0' || strchr(".[]", path[9]));
}

/* Whether the path leads to a field. Adds a cause if not, or if selectors cannot use the field. */
static bool check_path(const struct hf__json *props, const char *path, const char *field,
                       struct hfd_causes *causes) {
        char why[TOKEN_MAX + 60], detail[TOKEN_MAX + 100];
        const struct hf__json *found = follow_path(props, path, why, sizeof why);

        if (!found) {
                (void)snprintf(detail, sizeof detail, "is an invalid path: %s", why);
                hfd_cause_invalid_text(causes, field, path, detail);
                return false;
        }
        if (is_in_metadata(props, path))
                hfd_cause_invalid_text(causes, field, path, "must not point to fields in metadata");
        if (!is_selectable_type(found))
                hfd_cause_invalid_text(causes, field, path,
                                       "must point to a field of type string, boolean or integer. "
                                       "Enum string "
                                       "fields and strings with formats are allowed.");
        return true;
}

void hfd_definition_check_selectable(const struct hf__json *fields, const struct hf__json *props,
                                     const char *path, bool unchanged, struct hfd_causes *causes) {
        const char *seen[CHECKED_MAX];
        char field[HFD_DEFINITION_PATH_MAX];
        size_t n = 0, i = 0;

        for (const struct hf__json *m = hf__json_first(fields);
             m && n < CHECKED_MAX && causes->n < HFD_CAUSES_MAX; m = hf__json_next(m), i++) {
                const char *json_path = hfd_definition_text(m, "jsonPath");
                size_t k = 0;
                (void)snprintf(field, sizeof field, "%s.selectableFields[%zu].jsonPath", path, i);
                if (!*json_path)
                        hfd_cause_required(causes, field, "");
                if (!*json_path || !check_path(props, json_path, field, causes))
                        continue;
                while (k < n && strcmp(seen[k], json_path) != 0)
                        k++;
                if (k < n)
                        hfd_cause_duplicate_text(causes, field, json_path);
                else
                        seen[n++] = json_path;
        }
        (void)snprintf(field, sizeof field, "%s.selectableFields", path);
        if (n > MAX_FIELDS && !unchanged)
                hfd_cause_too_many(causes, field, n, MAX_FIELDS);
}

/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Evaluates a JSON path, step by step.
 *
 * Invariant: only a step that selects several values ([*], .* and filters) branches: for one value
 * after the other, it evaluates the rest of the path, until there is a result. Even with
 * several of these steps, a path visits each value of the object at most once, and once more for
 * each filter.
 */
#include "server/resources/custom/json_path.h"

#include <assert.h>
#include <stdbool.h>
#include <stdlib.h>
#include <string.h>

#include "base/json.h"

/* A path that exceeds one of these limits finds nothing. They bound the stack: each step has a
 * buffer for a name. The path in a filter counts its own steps, and a filter in that path finds
 * nothing. */
#define KEY_MAX   256
#define STEPS_MAX 64

static const struct hf__json *evaluate_path(const struct hf__json *json, const char *path,
                                            int n_steps);

/* Reads a name up to one of `ends`, without its backslashes, and returns its end in the path. NULL:
 * the name is too long, or empty. */
static const char *read_name(const char *at, const char *ends, char name[KEY_MAX]) {
        size_t n = 0;

        while (*at && !strchr(ends, *at)) {
                if (*at == '\\' && at[1])
                        at++;
                if (n == KEY_MAX - 1)
                        return NULL;
                name[n++] = *at++;
        }
        name[n] = '\0';
        return n > 0 ? at : NULL;
}

/* ---- filters ---- */

/* Whether the value equals the literal of a filter: "text", 'text', a number, true or false. */
static bool equals_literal(const struct hf__json *value, const char *literal, size_t n) {
        const char *text = hf__json_text(value);
        char *end;

        if (n >= 2 && (*literal == '"' || *literal == '\'') && literal[n - 1] == *literal)
                return text && strlen(text) == n - 2 && memcmp(text, literal + 1, n - 2) == 0;
        if (hf__json_is_bool(value))
                return n == (hf__json_is_true(value) ? 4u : 5u) &&
                       memcmp(literal, hf__json_is_true(value) ? "true" : "false", n) == 0;
        if (!hf__json_is_number(value))
                return false;
        double number = strtod(literal, &end);
        return end == literal + n && hf__json_number(value) >= number &&
               hf__json_number(value) <= number;
}

static size_t skip_spaces(const char *at) { return strspn(at, " \t"); }

/* Whether the element passes the filter `@.type=="Ready"`, or `@.type` alone, or with `!=`. Nothing
 * passes a filter of another form, or one whose path does not fit in the buffer: behind the cut
 * there is no operator. */
static bool passes_filter(const struct hf__json *element, const char *filter, size_t n) {
        const char *at = filter + skip_spaces(filter), *end = filter + n;
        char path[KEY_MAX];
        size_t n_path = 0;

        if (*at != '@')
                return false;
        at++;
        while (at < end && !strchr("=!<> ", *at) && n_path < sizeof path - 1)
                path[n_path++] = *at++;
        path[n_path] = '\0';
        const struct hf__json *value = evaluate_path(element, path, 0);
        at += skip_spaces(at);
        if (at >= end)
                return value != NULL;
        bool equals = strncmp(at, "==", 2) == 0;
        if (!equals && strncmp(at, "!=", 2) != 0)
                return false;
        at += 2;
        at += skip_spaces(at);
        while (end > at && end[-1] == ' ')
                end--;
        return value && at < end && equals_literal(value, at, (size_t)(end - at)) == equals;
}

/* ---- steps ---- */

/* Tries the elements; filter NULL = all of them. */
static const struct hf__json *evaluate_elements(const struct hf__json *json, const char *filter,
                                                size_t n_filter, const char *rest, int n_steps) {
        for (const struct hf__json *e = hf__json_first(json); e; e = hf__json_next(e)) {
                if (filter && !passes_filter(e, filter, n_filter))
                        continue;
                const struct hf__json *found = evaluate_path(e, rest, n_steps);
                if (found)
                        return found;
        }
        return NULL;
}

static const struct hf__json *element_at(const struct hf__json *json, long index) {
        if (!hf__json_is_array(json))
                return NULL;
        if (index < 0)
                index += (long)hf__json_count(json);
        const struct hf__json *e = index < 0 ? NULL : hf__json_first(json);
        while (e && index-- > 0)
                e = hf__json_next(e);
        return e;
}

/* at: after the '['. */
static const struct hf__json *evaluate_bracket(const struct hf__json *json, const char *at,
                                               int n_steps) {
        char name[KEY_MAX], *end;

        if (*at == '\'' || *at == '"') {
                const char quote[] = {*at, '\0'};
                at = read_name(at + 1, quote, name);
                if (!at || at[0] != *quote || at[1] != ']' || !hf__json_is_object(json))
                        return NULL;
                return evaluate_path(hf__json_get(json, name), at + 2, n_steps);
        }
        if (strncmp(at, "*]", 2) == 0)
                return evaluate_elements(json, NULL, 0, at + 2, n_steps);
        if (strncmp(at, "?(", 2) == 0) {
                const char *close = strstr(at, ")]");
                if (!close || !hf__json_is_array(json))
                        return NULL;
                return evaluate_elements(json, at + 2, (size_t)(close - at - 2), close + 2,
                                         n_steps);
        }
        long index = strtol(at, &end, 10);
        if (end == at || *end != ']')
                return NULL;
        return evaluate_path(element_at(json, index), end + 1, n_steps);
}

/* json NULL: there is no value at the steps so far. */
static const struct hf__json *evaluate_path(const struct hf__json *json, const char *path,
                                            int n_steps) {
        char name[KEY_MAX];

        if (!json || !*path)
                return json;
        if (n_steps == STEPS_MAX)
                return NULL;
        if (*path == '[')
                return evaluate_bracket(json, path + 1, n_steps + 1);
        if (*path != '.')
                return NULL;
        if (path[1] == '[') /* ".[0]" is "[0]" */
                return evaluate_bracket(json, path + 2, n_steps + 1);
        if (path[1] == '*')
                return evaluate_elements(json, NULL, 0, path + 2, n_steps + 1);
        path = read_name(path + 1, ".[", name);
        if (!path || !hf__json_is_object(json))
                return NULL;
        return evaluate_path(hf__json_get(json, name), path, n_steps + 1);
}

const struct hf__json *hfd_json_path_first(const struct hf__json *json, const char *path) {
        assert(path);
        return evaluate_path(json, path, 0);
}

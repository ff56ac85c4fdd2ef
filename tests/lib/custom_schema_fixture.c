/* SPDX-License-Identifier: Apache-2.0 */
/* See custom_schema_fixture.h. */
#include "custom_schema_fixture.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#include "base/strbuf.h"

struct hf__json *json_of(const char *text) {
        struct hf__json *json = NULL;

        if (!text)
                return NULL;
        char *copy = strdup(text);
        assert_non_null(copy);
        for (char *c = copy; *c; c++)
                if (*c == '\'')
                        *c = '"';
        if (hf__json_parse(copy, strlen(copy), &json, NULL) != 0)
                fail_msg("no JSON: %s", text);
        free(copy);
        return json;
}

struct hfd_custom_schema *schema_of(const char *props) {
        struct hf__json *json = json_of(props);
        struct hfd_custom_schema *schema = NULL;

        assert_int_equal(hfd_custom_schema_new(json, &schema), 0);
        hf__json_free(json);
        return schema;
}

static struct hf__json *object_of(const char *spec) {
        struct hf__json *object = hf__json_object();

        assert_int_equal(hf__json_set(object, "spec", json_of(spec)), 0);
        return object;
}

struct hfd_custom_schema *schema_of_spec(const char *spec) {
        struct hf__json *json = json_of("{'type':'object','properties':{}}");
        struct hfd_custom_schema *schema = NULL;

        assert_int_equal(hf__json_set(json, "properties.spec", json_of(spec)), 0);
        assert_int_equal(hfd_custom_schema_new(json, &schema), 0);
        hf__json_free(json);
        return schema;
}

void expect_json(const struct hf__json *json, const char *text) {
        struct hf__json *expected = json_of(text);
        struct hf__strbuf printed = {0};

        if (!hf__json_equal(json, expected)) {
                hf__json_print(json, &printed);
                fail_msg("%s\ninstead of %s", printed.data, text);
        }
        hf__json_free(expected);
}

void expect_causes(const struct hfd_causes *causes, const char *lines) {
        char line[1024];
        size_t n = 0;

        for (const char *c = lines; *c; c++)
                if (c[0] == '\n' || c[1] == '\0')
                        n++;
        for (size_t i = 0; i < causes->n; i++) {
                const struct hfd_cause *cause = &causes->items[i];
                (void)snprintf(line, sizeof line, "%s: %s", cause->field, cause->text);
                const char *found = strstr(lines, line);
                size_t length = strlen(line);
                if (!found || (found > lines && found[-1] != '\n') ||
                    (found[length] != '\0' && found[length] != '\n'))
                        fail_msg("unexpected: %s\nexpected: %s", line, lines);
        }
        if (causes->n != n)
                fail_msg("%zu causes instead of %zu: %s", causes->n, n, lines);
}

void expect_validation(const char *schema, const char *spec, const char *old, const char *lines) {
        struct hfd_custom_schema *compiled = schema_of_spec(schema);
        struct hf__json *object = object_of(spec), *stored = old ? object_of(old) : NULL;
        struct hfd_causes causes = {.n = 0};

        hfd_custom_schema_validate(compiled, object, stored, &causes);
        expect_causes(&causes, lines);
        hf__json_free(object);
        hf__json_free(stored);
        hfd_custom_schema_free(compiled);
}

/* SPDX-License-Identifier: Apache-2.0 */
/* The rules of custom resources need no more stack than their header says. */
#undef NDEBUG
#include <pthread.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>

#include <cmocka.h>

#include "base/json.h"
#include "base/strbuf.h"
#include "server/resources/causes.h"
#include "server/resources/custom/rules/custom_rules.h"
#include "server/resources/custom/schema/compile/effort.h"

#define PATH "spec.versions[0].schema.openAPIV3Schema"

static struct hf__json *parse(const char *text) {
        struct hf__json *json = NULL;
        size_t at = 0;

        if (text && hf__json_parse(text, strlen(text), &json, &at) != 0)
                fail_msg("not JSON from byte %zu on: %s", at, text);
        return json;
}

/* Appends "field: text" lines. */
struct deep {
        const char *before;
        const char *after;
        size_t n;
        size_t groups; /* of a pattern */
};

#define PARTS 45 /* levels of the schema: those of its JSON are limited to 100 */

static void add_times(struct hf__strbuf *out, const char *text, size_t n) {
        for (size_t i = 0; i < n; i++)
                hf__strbuf_puts(out, text);
}

/* Makes and evaluates the rules of a deep schema, whose innermost part has a deep rule: `before`
 * and `after` n times. The value there is as deep as JSON may be. */
static void *run_deep(void *ctx) {
        const struct deep *deep = ctx;
        struct hf__strbuf schema_text = {0};
        struct hf__strbuf text = {0};
        struct hf__json *schema;
        struct hf__json *object;
        struct hf__json *old;
        struct hfd_custom_rules *rules = NULL;
        struct hfd_schema_effort effort = {0};
        struct hfd_causes causes;

        hfd_causes_init(&causes);
        add_times(&schema_text, "{\"type\":\"object\",\"properties\":{\"p\":", PARTS);
        hf__strbuf_puts(&schema_text,
                        "{\"type\":\"object\",\"x-kubernetes-preserve-unknown-fields\":true,"
                        "\"properties\":{\"l\":{\"type\":\"array\",\"maxItems\":1,\"items\":{"
                        "\"type\":\"string\"}}},\"x-kubernetes-validations\":[{\"rule\":\"");
        add_times(&schema_text, deep->before, deep->n);
        hf__strbuf_puts(&schema_text, "(self == oldSelf && '");
        add_times(&schema_text, "(", deep->groups);
        add_times(&schema_text, ")", deep->groups);
        hf__strbuf_puts(&schema_text, "' != 'x' && ''.matches('");
        add_times(&schema_text, "(", deep->groups);
        add_times(&schema_text, ")*(?i)*", deep->groups);
        hf__strbuf_puts(&schema_text, "'))");
        add_times(&schema_text, deep->after, deep->n);
        hf__strbuf_puts(&schema_text, "\"}]}");
        add_times(&schema_text, "}}", PARTS);
        schema = parse(schema_text.data);
        add_times(&text, "{\"p\":", PARTS);
        hf__strbuf_puts(&text, "{\"l\":[\"a\"],\"u\":");
        add_times(&text, "[", 99 - PARTS - 1);
        add_times(&text, "]", 99 - PARTS - 1);
        add_times(&text, "}", PARTS + 1);
        object = parse(text.data);
        old = parse(text.data);
        assert_int_equal(hfd_custom_rules_new(schema, PATH, &effort, &causes, &rules), 0);
        assert_non_null(rules);
        hfd_causes_init(&causes);
        assert_int_equal(hfd_custom_rules_check(rules, object, old, &causes), 0);
        hfd_custom_rules_free(rules);
        hf__json_free(schema);
        hf__json_free(object);
        hf__json_free(old);
        hf__strbuf_done(&schema_text);
        hf__strbuf_done(&text);
        return NULL;
}

/* A thread that needs more ends the process: the page below its stack is not accessible. */
static void run_with_stack(struct deep *deep, size_t stack) {
        pthread_attr_t attr;
        pthread_t thread;

        assert_int_equal(pthread_attr_init(&attr), 0);
        assert_int_equal(pthread_attr_setstacksize(&attr, stack), 0);
        assert_int_equal(pthread_create(&thread, &attr, run_deep, deep), 0);
        assert_int_equal(pthread_join(thread, NULL), 0);
        pthread_attr_destroy(&attr);
}

static void test_rules_need_no_more_stack_than_they_say(void **state) {
#if defined(__SANITIZE_ADDRESS__) || defined(__SANITIZE_THREAD__)
        skip(); /* Sanitizers make stack frames several times as large. */
#endif
        static const struct {
                const char *before;
                const char *after;
        } pairs[] = {
                {"(", ")"},
                {"[", "][0]"},
                {"!(", ")"},
                {"self.l.all(a, ", ")"},
                {"(true || true && 1 < 2 + 3 * 4 && ", ")"},
                {"true ? true : ", ""},
                {"self.l[size([", "])] == '' || "},
                {"{'a': ", "}['a']"},
                {"true == ", ""},
                {"dyn(", ")"},
        };

        for (size_t i = 0; i < sizeof pairs / sizeof pairs[0]; i++)
                for (size_t n = 20; n < 400; n += n < 62 ? 3 : 100) {
                        struct deep deep = {pairs[i].before, pairs[i].after, n, 99};

                        run_with_stack(&deep, HFD_CUSTOM_RULES_STACK);
                }
}

int main(void) {
        const struct CMUnitTest tests[] = {
                cmocka_unit_test(test_rules_need_no_more_stack_than_they_say),
        };

        return cmocka_run_group_tests(tests, NULL, NULL);
}

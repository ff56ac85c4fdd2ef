/* SPDX-License-Identifier: Apache-2.0 */
/* The estimated costs of rules. They decide which definitions are accepted, so the numbers must be
 * those of kube-apiserver. */
#undef NDEBUG
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#include "base/arena.h"
#include "base/json.h"
#include "base/strbuf.h"
#include "server/resources/causes.h"
#include "server/resources/custom/rules/custom_rules.h"
#include "server/resources/custom/rules/rule.h"
#include "server/resources/custom/rules/rule_library.h"
#include "server/resources/custom/rules/values/declared.h"
#include "server/resources/custom/schema/compile/effort.h"
#include "server/resources/custom/schema/structure/structure.h"

static struct hf__json *parse(const char *text) {
        struct hf__json *json = NULL;
        size_t at = 0;

        if (hf__json_parse(text, strlen(text), &json, &at) != 0)
                fail_msg("not JSON from byte %zu on: %s", at, text);
        return json;
}

static uint64_t cost_of(const char *schema, const char *rule) {
        const struct hf__cel_library *library;
        struct hf__arena arena;
        struct hfd_declaring declaring = {.arena = &arena};
        struct hf__json *props = parse(schema);
        struct hf__json *json = hf__json_object();
        const struct hfd_declared *declared;
        struct hfd_rule_findings findings = {.cost = 0};
        struct hfd_rule_scope scope;
        struct hfd_structure members;
        struct hfd_rule compiled;
        uint64_t cost;

        assert_int_equal(hf__json_set_string(json, "rule", rule), 0);
        assert_int_equal(hfd_rule_library_ref(&library), 0);
        hf__arena_init(&arena);
        declared = hfd_declare(&declaring, props, HFD_DECLARE_PART);
        assert_non_null(declared);
        assert_int_equal(hfd_rule_scope_init(&scope, &arena, library, declared), 0);
        hfd_structure_init(&members, NULL);
        assert_int_equal(hfd_rule_init(&compiled, &arena, &scope, &members, props, json, &findings),
                         0);
        if (compiled.error)
                fail_msg("%s: %s", rule, compiled.error);
        cost = findings.cost;
        hfd_rule_done(&compiled);
        hfd_structure_done(&members);
        hf__strbuf_done(&findings.error);
        hf__strbuf_done(&findings.message_error);
        hf__arena_deinit(&arena);
        hfd_rule_library_unref();
        hf__json_free(json);
        hf__json_free(props);
        return cost;
}

#define TYPE(type)         "\"type\":\"" type "\""
#define FORMAT(format)     "\"type\":\"string\",\"format\":\"" format "\""
#define EITHER             "\"x-kubernetes-int-or-string\":true"
#define LIST(item)         "{\"type\":\"array\",\"items\":{" item "}}"
#define LIST_OF(max, item) "{\"type\":\"array\",\"maxItems\":" #max ",\"items\":{" item "}}"
#define MAP(value)         "{\"type\":\"object\",\"additionalProperties\":{" value "}}"
#define MAP_OF(max, value)                                                                         \
        "{\"type\":\"object\",\"maxProperties\":" #max ",\"additionalProperties\":{" value "}}"
#define TEXT         "{\"type\":\"string\"}"
#define TEXT_OF(max) "{\"type\":\"string\",\"maxLength\":" #max "}"
#define OBJECT                                                                                     \
        "\"type\":\"object\",\"required\":[\"required\"],\"properties\":{\"required\":{"           \
        "\"type\":\"string\"},\"optional\":{\"type\":\"string\"}}"
#define LISTS "\"type\":\"array\",\"items\":{\"type\":\"number\"}"
#define MAPS  "\"type\":\"object\",\"additionalProperties\":{\"type\":\"number\"}"

static const struct {
        const char *schema;
        const char *rule;
        uint64_t cost; /* UINT64_MAX: above the limit of a rule */
} cases[] = {
        {LIST(TYPE("number")), "self.all(x, true)", 4718591},
        {LIST_OF(10, TYPE("number")), "self.all(x, true)", 32},
        {LIST(TYPE("string")), "self.all(x, true)", 3145727},
        {LIST(TYPE("boolean")), "self.all(x, true)", 1887437},
        {LIST(LISTS), "self.all(x, true)", 3145727},
        {LIST(OBJECT), "self.all(x, true)", 555128},
        {LIST_OF(50, OBJECT), "self.all(x, true)", 152},
        {MAP(TYPE("number")), "self.all(x, true)", 1348169},
        {MAP(TYPE("string")), "self.all(x, true)", 1179647},
        {MAP_OF(3, TYPE("string")), "self.all(x, true)", 11},
        {MAP(TYPE("boolean")), "self.all(x, true)", 943718},
        {TEXT, "self.contains('test')", 314574},
        {TEXT_OF(10), "self.contains('test')", 5},
        {TEXT, "self.startsWith('test')", 2},
        {TEXT, "self.endsWith('test')", 2},
        {TEXT, "size(self + 'hello') > size('hello')", 314578},
        {TEXT_OF(4), "size(self + 'hello') > size('hello')", 7},
        {LIST(TYPE("number")), "self[1] == 0.0", 2},
        {LIST(TYPE("string")), "self[1] == self[1]", 314577},
        {LIST(TYPE("number")), "self.all(x, self.all(y, true))", UINT64_MAX},
        {LIST_OF(10, TYPE("number")), "self.all(x, self.all(y, true))", 352},
        {LIST_OF(10, TYPE("number")), "self.all(x, self.all(y, self.all(z, true)))", 3552},
        {TEXT, "self.matches('x')", 314574},
        {TEXT_OF(50), "self.matches('x')", 22},
        {TEXT, "''.matches('(((((((((())))))))))[0-9]')", 7},
        {TEXT, "self.matches('')", 1},
        {MAP(TYPE("string")), "self.all(x, x.contains(self[x]))", 2752507},
        {MAP_OF(10, "\"type\":\"string\",\"maxLength\":10"), "self.all(x, x.contains(self[x]))",
         72},
        {LIST_OF(0, TYPE("number")), "self[3] == 0.0", 2},
        {MAP(TYPE("number")), "self['x'] == 0.0", 2},
        {TEXT, "self == 'x'", 2},
        {TEXT_OF(0), "self == 'x'", 1},
        {"{" FORMAT("byte") "}", "self == b'x'", 2},
        {"{" FORMAT("byte") ",\"maxLength\":0}", "self == b'x'", 1},
        {LIST(TYPE("number")), "self.all(x, x == 0.0)", 6291454},
        {LIST_OF(6291456, TYPE("number")), "self.all(x, x == 0.0)", 25165826},
        {LIST("\"type\":\"object\",\"additionalProperties\":{" OBJECT "}"),
         "self.all(x, x['y'].required == 'z')", 7340027},
        {LIST_OF(10, "\"type\":\"object\",\"additionalProperties\":{" OBJECT "}"),
         "self.all(x, x['y'].required == 'z')", 72},
        {LIST(EITHER), "self.all(x, true)", 4718591},
        {LIST(EITHER), "self[0] == 5", 3},
        {LIST(OBJECT), "self[0] == null", 2},
        {LIST(LISTS), "self[0][0] == -1.0", 3},
        {LIST(MAPS), "self.all(x, x.y == 25.2)", 6291452},
        {LIST_OF(12, MAPS), "self.all(x, x.y == 25.2)", 74},
        {LIST(MAPS), "self[0].x > 2.0", 4},
        {LIST(FORMAT("duration")), "self.all(x, true)", 2359295},
        {LIST(FORMAT("duration")), "self[0].getHours() == 2", 4},
        {LIST(FORMAT("date")), "self.all(x, true)", 725936},
        {LIST(FORMAT("date-time")), "self.all(x, true)", 428963},
        {MAP(EITHER), "self.all(x, true)", 1348169},
        {MAP(OBJECT), "self.all(x, true)", 428963},
        {MAP(MAPS), "self.all(x, true)", 1179647},
        {MAP(FORMAT("duration")), "self.all(x, true)", 1048577},
        {MAP(FORMAT("date")), "self.all(x, true)", 524288},
        {MAP(FORMAT("date-time")), "self.all(x, true)", 349526},
        {TEXT, "self.find('[0-9]+') == ''", 629147},
        {TEXT_OF(10), "self.find('[0-9]+') == ''", 11},
        {LIST(TYPE("string")), "self.join(' ') == 'aa bb'", 329853068905},
        {LIST_OF(10, "\"type\":\"string\",\"maxLength\":10"), "self.join(' ') == 'aa bb'", 43},
        {LIST(TYPE("string")), "self.isSorted() == true", 329854432052},
        {LIST_OF(10, "\"type\":\"string\",\"maxLength\":10"), "self.isSorted() == true", 52},
        {"{\"type\":\"object\",\"properties\":{\"str\":" TEXT
         ",\"before\":" TEXT_OF(2) ",\"after\":" TEXT_OF(4) "}}",
         "self.str.replace(self.before, self.after) == 'does not matter'", 629154},
        {"{\"type\":\"object\",\"properties\":{\"str\":" TEXT_OF(4) ",\"before\":" TEXT_OF(
                 2) ",\"after\":" TEXT_OF(4) "}}",
         "self.str.replace(self.before, self.after) == 'does not matter'", 12},
        {"{\"type\":\"object\",\"properties\":{\"str\":" TEXT ",\"separator\":" TEXT "}}",
         "self.str.split(self.separator) == []", 629160},
        {TEXT, "self.lowerAscii() == 'lower!'", 314575},
        {TEXT_OF(10), "self.lowerAscii() == 'lower!'", 6},
        {MAP(TYPE("integer")), "oldSelf.size() == self.size()", 5},
        {MAP(FORMAT("date-time")), "self['a'] == self['b']", 8},
        {"{" EITHER "}", "isQuantity(self)", 314574},
        {"{" EITHER ",\"maxLength\":20}", "isQuantity(self)", 9},
        {TEXT_OF(100), "url(self) == url(self)", 122},
        {TEXT_OF(100), "url('https://a') == url(self)", 82},
        {TEXT_OF(100), "url(self) == url('https://a')", 43},
        {TEXT_OF(10), "format.uri() == format.date()", 9},
        {TEXT_OF(100), "quantity(self) == quantity(self)", 83},
        {"{\"type\":\"string\",\"enum\":[\"A\",\"B\",\"C\",\"LongValue\"]}", "self.contains('A')",
         2},
};

static void test_estimates_are_those_of_kubernetes(void **state) {
        for (size_t i = 0; i < sizeof cases / sizeof cases[0]; i++) {
                uint64_t cost = cost_of(cases[i].schema, cases[i].rule);

                if (cases[i].cost == UINT64_MAX ? cost <= 10000000 : cost != cases[i].cost)
                        fail_msg("%s with %s costs %llu, not %llu", cases[i].schema, cases[i].rule,
                                 (unsigned long long)cost, (unsigned long long)cases[i].cost);
        }
}

#define PATH "spec.versions[0].schema.openAPIV3Schema"
#define ADVICE                                                                                     \
        "(try simplifying the rule, or adding maxItems, maxProperties, and maxLength where "       \
        "arrays, "                                                                                 \
        "maps, and strings are declared)"

/* Checks that a definition gives exactly these causes, as "field: text" lines. */
static void check(const char *schema, const char *expected) {
        struct hf__json *props = parse(schema);
        struct hfd_custom_rules *rules = NULL;
        struct hfd_schema_effort effort = {0};
        struct hfd_causes causes = {.n = 0};
        struct hf__strbuf text = {0};

        assert_int_equal(hfd_custom_rules_new(props, PATH, &effort, &causes, &rules), 0);
        hf__strbuf_puts(&text, "");
        for (size_t i = 0; i < causes.n; i++)
                hf__strbuf_printf(&text, "%s: %s\n", causes.items[i].field, causes.items[i].text);
        assert_string_equal(text.data, expected);
        hf__strbuf_done(&text);
        hfd_custom_rules_free(rules);
        hf__json_free(props);
}

static void test_expensive_rules_are_refused(void **state) {
        /* The cost of a rule of an element is multiplied by the largest number of elements. */
        check("{\"type\":\"object\",\"properties\":{\"l\":{\"type\":\"array\",\"items\":{"
              "\"type\":\"string\",\"x-kubernetes-validations\":[{\"rule\":"
              "\"self.contains('x')\"}]}}}}",
              PATH ".properties[l].items.x-kubernetes-validations[0].rule: Forbidden: estimated "
                   "rule cost exceeds budget by factor of more than 100x " ADVICE "\n" PATH
                   ".properties[l].items.x-kubernetes-validations[0].rule: Forbidden: contributed "
                   "to estimated rule cost total exceeding cost limit for entire OpenAPIv3 "
                   "schema\n" PATH
                   ": Forbidden: x-kubernetes-validations estimated rule cost total for entire "
                   "OpenAPIv3 schema exceeds budget by factor of more than 100x " ADVICE "\n");
        check("{\"type\":\"object\",\"properties\":{\"l\":{\"type\":\"array\",\"maxItems\":100,"
              "\"items\":{\"type\":\"string\",\"maxLength\":64,\"x-kubernetes-validations\":[{"
              "\"rule\":\"self.contains('x')\"}]}}}}",
              "");
        check("{\"type\":\"object\",\"properties\":{\"l\":{\"type\":\"array\",\"items\":{"
              "\"type\":\"integer\"},\"x-kubernetes-validations\":[{\"rule\":"
              "\"self.all(x, x + x + x + 1 > 0)\"}]}}}",
              PATH
              ".properties[l].x-kubernetes-validations[0].rule: Forbidden: estimated rule cost "
              "exceeds budget by factor of 1.6x " ADVICE "\n");
}

/* The members that were passed over by lookups without an index. */
static size_t n_steps;

struct hf__json *__real_hf__json_get(const struct hf__json *object, const char *key);
struct hf__json *__wrap_hf__json_get(const struct hf__json *object, const char *key);
struct hf__json *__wrap_hf__json_get(const struct hf__json *object, const char *key) {
        struct hf__json *found = __real_hf__json_get(object, key);

        for (const struct hf__json *m = hf__json_first(object); m && m != found;
             m = hf__json_next(m))
                n_steps++;
        return found;
}

/* Every rule names the last of many properties. A search from the first one would make the work
 * the product of rules and properties, each time that the definition is read. */
static void test_the_fields_of_rules_are_found_in_an_index(void **state) {
        enum { N = 1000 };
        struct hf__strbuf text = {0};
        size_t first;

        hf__strbuf_puts(&text, "{\"type\":\"object\",\"properties\":{");
        for (int i = 0; i < N; i++)
                hf__strbuf_printf(&text, "%s\"p%d\":{\"type\":\"string\"}", i > 0 ? "," : "", i);
        hf__strbuf_puts(&text, "},\"x-kubernetes-validations\":[{\"rule\":\"true\"}");
        first = text.n;
        for (int round = 0; round < 2; round++) {
                if (round == 1)
                        text.n = first;
                for (int i = 0; i < N; i++)
                        hf__strbuf_printf(&text, ",{\"rule\":\"true\",\"fieldPath\":\".p%d\"}",
                                          round == 0 ? 0 : N - 1);
                hf__strbuf_puts(&text, "]}");
                n_steps = 0;
                check(text.data, "");
                assert_true(n_steps < (size_t)100 * N);
        }
        hf__strbuf_done(&text);
}

int main(void) {
        const struct CMUnitTest tests[] = {
                cmocka_unit_test(test_estimates_are_those_of_kubernetes),
                cmocka_unit_test(test_expensive_rules_are_refused),
                cmocka_unit_test(test_the_fields_of_rules_are_found_in_an_index),
        };

        return cmocka_run_group_tests(tests, NULL, NULL);
}

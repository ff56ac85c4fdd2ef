/* SPDX-License-Identifier: Apache-2.0 */
/* The rules of custom resources: which objects they accept, and the causes of refusals. */
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
#include "server/resources/custom/rules/values/decimal.h"
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
static void print(struct hf__strbuf *out, const struct hfd_causes *causes) {
        for (size_t i = 0; i < causes->n; i++)
                hf__strbuf_printf(out, "%s%s: %s", i > 0 ? "\n" : "", causes->items[i].field,
                                  causes->items[i].text);
        hf__strbuf_puts(out, "");
}

static void assert_causes(const struct hfd_causes *causes, const char *expected,
                          const char *subject) {
        struct hf__strbuf text = {0};

        print(&text, causes);
        if (strcmp(text.data, expected) != 0)
                fail_msg("%s\n-- gives --\n%s\n-- rather than --\n%s", subject, text.data,
                         expected);
        hf__strbuf_done(&text);
}

/* ---- definitions ---- */

struct definition {
        const char *schema;
        const char *causes; /* "" = none */
};

static void check_definition(const struct definition *c) {
        struct hf__json *schema = parse(c->schema);
        struct hfd_custom_rules *rules = NULL;
        struct hfd_schema_effort effort = {0};
        struct hfd_causes causes;

        hfd_causes_init(&causes);
        assert_int_equal(hfd_custom_rules_new(schema, PATH, &effort, &causes, &rules), 0);
        assert_causes(&causes, c->causes, c->schema);
        hfd_custom_rules_free(rules);
        hf__json_free(schema);
}

/* A schema whose spec has a, b (integers), and this rule. */
#define SPEC(rule)                                                                                 \
        "{\"type\":\"object\",\"properties\":{\"spec\":{\"type\":\"object\",\"properties\":{"      \
        "\"a\":{\"type\":\"integer\"},\"b\":{\"type\":\"integer\"}},"                              \
        "\"x-kubernetes-validations\":[" rule "]}}}"
#define AT PATH ".properties[spec].x-kubernetes-validations[0]"
#define SHOWN(rule)                                                                                \
        "{\"Rule\":\"" rule "\",\"Message\":\"\",\"MessageExpression\":\"\",\"Reason\":null,"      \
        "\"FieldPath\":\"\",\"OptionalOldSelf\":null}"

static void test_mistakes_of_definitions_have_kubernetes_messages(void **state) {
        static const struct definition cases[] = {
                {SPEC("{\"rule\":\"self.a == self.b\"}"), ""},
                {SPEC("{\"rule\":\"self.a = self.c\"}"),
                 AT ".rule: Invalid value: " SHOWN(
                         "self.a = self.c") ": compilation failed: ERROR: <input>:1:8: Syntax "
                                            "error: token "
                                            "recognition error at: '= '\n"
                                            " | self.a = self.c\n | .......^\n"
                                            "ERROR: <input>:1:10: Syntax error: mismatched input "
                                            "'self' expecting "
                                            "<EOF>\n"
                                            " | self.a = self.c\n | .........^"},
                {SPEC("{\"rule\":\"self.a == self.c\"}"),
                 AT ".rule: Invalid value: " SHOWN(
                         "self.a == self.c") ": compilation failed: ERROR: <input>:1:15: undefined "
                                             "field 'c'\n"
                                             " | self.a == self.c\n | ..............^"},
                {SPEC("{\"rule\":\"self.a + 1\"}"),
                 AT ".rule: Invalid value: " SHOWN(
                         "self.a + 1") ": cel expression must evaluate to a bool"},
                {SPEC("{\"rule\":\" \"}"), AT ".rule: Required value: rule is not specified"},
                {SPEC("{\"rule\":\"true\",\"message\":\" \"}"),
                 AT ".message: Invalid value: \" \": must be non-empty if specified"},
                {SPEC("{\"rule\":\"true\",\"message\":\"a\\nb\"}"),
                 AT ".message: Invalid value: \"a\\nb\": must not contain line breaks"},
                {SPEC("{\"rule\":\"true ||\\nfalse\"}"),
                 AT ".message: Required value: message must be specified if rule contains line "
                    "breaks"},
                {SPEC("{\"rule\":\"true\",\"reason\":\"No\"}"),
                 AT ".reason: Unsupported value: \"No\": supported values: "
                    "\"FieldValueDuplicate\", \"FieldValueForbidden\", \"FieldValueInvalid\", "
                    "\"FieldValueRequired\""},
                {SPEC("{\"rule\":\"true\",\"fieldPath\":\".c\"}"),
                 AT ".fieldPath: Invalid value: \".c\": must be a valid path"},
                {SPEC("{\"rule\":\"true\",\"fieldPath\":\".a\"}"), ""},
                {SPEC("{\"rule\":\"true\",\"fieldPath\":\"['a']\"}"), ""},
                {SPEC("{\"rule\":\"true\",\"optionalOldSelf\":true}"),
                 AT ".optionalOldSelf: Invalid value: true: may not be set if oldSelf is not used "
                    "in rule"},
                {SPEC("{\"rule\":\"!oldSelf.hasValue() || oldSelf.value().a == self.a\","
                      "\"optionalOldSelf\":true}"),
                 ""},
                {SPEC("{\"rule\":\"true\",\"messageExpression\":\"1\"}"),
                 AT ".messageExpression: Invalid value: "
                    "{\"Rule\":\"true\",\"Message\":\"\",\"MessageExpression\":\"1\","
                    "\"Reason\":null,\"FieldPath\":\"\",\"OptionalOldSelf\":null}: "
                    "messageExpression must evaluate to a string"},
                {"{\"type\":\"object\",\"properties\":{\"l\":{\"type\":\"array\",\"maxItems\":9,"
                 "\"items\":{\"type\":\"integer\",\"x-kubernetes-validations\":[{\"rule\":"
                 "\"self >= oldSelf\"}]}}}}",
                 PATH ".properties[l].items.x-kubernetes-validations[0].rule: Invalid value: "
                      "\"self >= oldSelf\": oldSelf cannot be used on the uncorrelatable portion "
                      "of the schema within " PATH ".properties[l]"},
                {"{\"type\":\"object\",\"properties\":{\"u\":{"
                 "\"x-kubernetes-preserve-unknown-fields\":true,"
                 "\"x-kubernetes-validations\":[{\"rule\":\"true\"}]}}}",
                 PATH ".properties[u].x-kubernetes-validations: Internal error: internal error: "
                      "failed to construct type information for x-kubernetes-validations rules: "
                      "unable to convert structural schema to CEL declarations"},
        };

        for (size_t i = 0; i < sizeof cases / sizeof cases[0]; i++)
                check_definition(&cases[i]);
}

/* A schema with n rules, each with a pattern that takes more than 100,000 steps to compile.
 * `wrong`: the patterns are not valid. */
static struct hf__json *dear_schema(unsigned n, bool wrong) {
        struct hf__strbuf text = {0};
        struct hf__json *schema;

        hf__strbuf_puts(&text, "{\"type\":\"object\",\"properties\":{\"f\":{\"type\":\"string\","
                               "\"maxLength\":9,\"x-kubernetes-validations\":[");
        for (unsigned i = 0; i < n; i++) {
                hf__strbuf_printf(&text, "%s{\"rule\":\"!self.matches(r'(?i)%u[", i > 0 ? "," : "",
                                  i);
                for (int k = 0; k < 30; k++)
                        hf__strbuf_puts(&text, "\\\\pL");
                hf__strbuf_printf(&text, "]%s')\"}", wrong ? "(" : "");
        }
        hf__strbuf_puts(&text, "]}}}");
        assert_int_equal(text.error, 0);
        schema = parse(text.data);
        hf__strbuf_done(&text);
        return schema;
}

static void test_the_work_of_all_rules_is_limited(void **state) {
        struct hfd_custom_rules *rules = NULL;
        static struct hfd_causes causes;

        for (int wrong = 0; wrong < 2; wrong++) {
                struct hf__json *schema = dear_schema(120, wrong == 1);
                struct hfd_schema_effort effort = {0};

                hfd_causes_init(&causes);
                assert_int_equal(hfd_custom_rules_new(schema, PATH, &effort, &causes, &rules), 0);
                assert_null(rules);
                assert_true(causes.n > 0);
                if (wrong == 0)
                        assert_causes(&causes,
                                      PATH
                                      ".properties[f].x-kubernetes-validations: Forbidden: the "
                                      "patterns and rules of the definition take more than "
                                      "10,000,000 steps of work to compile in all",
                                      "many rules");
                assert_true(effort.work > HFD_SCHEMA_WORK_MAX);
                assert_true(effort.work < HFD_SCHEMA_WORK_MAX + 400000);
                /* A stored definition has no limit. */
                assert_int_equal(hfd_custom_rules_new(schema, PATH, NULL, NULL, &rules), 0);
                assert_non_null(rules);
                hfd_custom_rules_free(rules);
                hf__json_free(schema);
        }
}

static void test_a_schema_without_rules_makes_none(void **state) {
        struct hf__json *schema = parse("{\"type\":\"object\",\"properties\":{\"a\":{}}}");
        struct hfd_custom_rules *rules = NULL;
        struct hfd_causes causes = {.n = 0};

        assert_int_equal(hfd_custom_rules_new(schema, PATH, NULL, NULL, &rules), 0);
        assert_null(rules);
        assert_int_equal(hfd_custom_rules_check(NULL, schema, NULL, &causes), 0);
        assert_int_equal(causes.n, 0);
        hf__json_free(schema);
}

/* ---- objects ---- */

struct object_case {
        const char *schema;
        const char *object;
        const char *old; /* NULL = create */
        const char *causes;
};

static void check_object(const struct object_case *c) {
        struct hf__json *schema = parse(c->schema);
        struct hf__json *object = parse(c->object);
        struct hf__json *old = parse(c->old);
        struct hfd_custom_rules *rules = NULL;
        struct hfd_causes causes = {.n = 0};
        char subject[600];

        snprintf(subject, sizeof subject, "%s\n%s\n%s", c->schema, c->object, c->old ? c->old : "");
        assert_int_equal(hfd_custom_rules_new(schema, PATH, NULL, NULL, &rules), 0);
        hf__json_free(schema);
        assert_non_null(rules);
        assert_int_equal(hfd_custom_rules_check(rules, object, old, &causes), 0);
        assert_causes(&causes, c->causes, subject);
        hfd_custom_rules_free(rules);
        hf__json_free(object);
        hf__json_free(old);
}

#define CHECK_OBJECTS(cases)                                                                       \
        for (size_t i = 0; i < sizeof cases / sizeof cases[0]; i++)                                \
        check_object(&cases[i])

/* A schema of one field "f", and this rule on it. */
#define FIELD(type, rule)                                                                          \
        "{\"type\":\"object\",\"properties\":{\"f\":{" type ",\"x-kubernetes-validations\":[" rule \
        "]}}}"
/* A schema with a rule on the whole object. */
#define ROOT(properties, rule)                                                                     \
        "{\"type\":\"object\",\"properties\":{" properties "},\"x-kubernetes-validations\":["      \
        "{\"rule\":\"" rule "\"}]}"

static void test_a_broken_rule_has_its_message_and_reason(void **state) {
        static const struct object_case cases[] = {
                {SPEC("{\"rule\":\"self.a <= self.b\"}"), "{\"spec\":{\"a\":1,\"b\":2}}", NULL, ""},
                {SPEC("{\"rule\":\" self.a <= self.b \"}"), "{\"spec\":{\"a\":3,\"b\":2}}", NULL,
                 "spec: Invalid value: failed rule: self.a <= self.b"},
                {SPEC("{\"rule\":\"false\",\"message\":\" no \"}"), "{\"spec\":{}}", NULL,
                 "spec: Invalid value: no"},
                {SPEC("{\"rule\":\"false\",\"message\":\"no\",\"fieldPath\":\".a\","
                      "\"reason\":\"FieldValueRequired\"}"),
                 "{\"spec\":{}}", NULL, "spec.a: Required value: no"},
                {SPEC("{\"rule\":\"false\",\"message\":\"no\",\"reason\":\"FieldValueForbidden\"}"),
                 "{\"spec\":{}}", NULL, "spec: Forbidden: no"},
                {SPEC("{\"rule\":\"false\",\"reason\":\"FieldValueDuplicate\"}"), "{\"spec\":{}}",
                 NULL, "spec: Duplicate value"},
                {SPEC("{\"rule\":\"false\",\"messageExpression\":\"'a is ' + string(self.a)\"}"),
                 "{\"spec\":{\"a\":7}}", NULL, "spec: Invalid value: a is 7"},
                {SPEC("{\"rule\":\"false\",\"message\":\"m\",\"messageExpression\":"
                      "\"string(1 / self.a)\"}"),
                 "{\"spec\":{\"a\":0}}", NULL, "spec: Invalid value: m"},
                {SPEC("{\"rule\":\"false\",\"message\":\"m\",\"messageExpression\":\"' '\"}"),
                 "{\"spec\":{}}", NULL, "spec: Invalid value: m"},
                {SPEC("{\"rule\":\"1 / self.a == 1\"}"), "{\"spec\":{\"a\":0}}", NULL,
                 "spec: Invalid value: \"object\": division by zero evaluating rule: "
                 "1 / self.a == 1"},
                {SPEC("{\"rule\":\"self.a == 1\",\"message\":\"m\"}"), "{\"spec\":{}}", NULL,
                 "spec: Invalid value: \"object\": no such key: a evaluating rule: m"},
                {FIELD("\"type\":\"string\"", "{\"rule\":\"self.size() < 3\"}"), "{\"f\":\"abc\"}",
                 NULL, "f: Invalid value: \"abc\": failed rule: self.size() < 3"},
                {FIELD("\"type\":\"integer\"", "{\"rule\":\"self < 3\"}"), "{\"f\":5}", NULL,
                 "f: Invalid value: 5: failed rule: self < 3"},
                {FIELD("\"x-kubernetes-int-or-string\":true", "{\"rule\":\"self.size() < 3\"}"),
                 "{\"f\":5}", NULL,
                 "f: Invalid value: \"\": 'no such overload: size': call arguments did not match a "
                 "supported operator, function or macro signature for rule: self.size() < 3"},
                {FIELD("\"type\":\"integer\"", "{\"rule\":\"self.x\"}"), "{\"f\":5}", NULL,
                 "f: Invalid value: \"integer\": rule compile error: compilation failed: ERROR: "
                 "<input>:1:5: type 'int' does not support field selection\n | self.x\n | ....^"},
                {ROOT("\"a\":{\"type\":\"integer\"}", "self.metadata.name == 'x'"),
                 "{\"metadata\":{\"name\":\"y\"},\"a\":1}", NULL,
                 "<nil>: Invalid value: failed rule: self.metadata.name == 'x'"},
                {"{\"type\":\"object\",\"properties\":{\"m\":{\"type\":\"object\","
                 "\"additionalProperties\":{\"type\":\"array\",\"items\":{\"type\":\"integer\","
                 "\"x-kubernetes-validations\":[{\"rule\":\"self > 0\"}]}}}}}",
                 "{\"m\":{\"k\":[1,0]}}", NULL, "m[k][1]: Invalid value: 0: failed rule: self > 0"},
                {"{\"type\":\"object\",\"properties\":{\"f\":{\"type\":\"integer\",\"allOf\":["
                 "{\"x-kubernetes-validations\":[{\"rule\":\"self > 1\"}]}],"
                 "\"x-kubernetes-validations\":[{\"rule\":\"self > 0\"}]}}}",
                 "{\"f\":1}", NULL, "f: Invalid value: 1: failed rule: self > 1"},
        };

        CHECK_OBJECTS(cases);
}

static void test_values_have_the_types_of_their_schemas(void **state) {
        static const struct object_case cases[] = {
                {ROOT("\"a-b\":{\"type\":\"integer\"},\"for\":{\"type\":\"integer\"},"
                      "\"namespace\":{\"type\":\"string\"},\"x__y\":{\"type\":\"integer\"}",
                      "self.a__dash__b == 1 && self.__for__ == 2 && self.namespace == 'n' && "
                      "self.x__underscores__y == 3 && self.kind == 'K'"),
                 "{\"kind\":\"K\",\"a-b\":1,\"for\":2,\"namespace\":\"n\",\"x__y\":3}", NULL, ""},
                {FIELD("\"type\":\"string\",\"format\":\"date-time\"",
                       "{\"rule\":\"self.getFullYear() == 2024\"}"),
                 "{\"f\":\"2024-02-29T01:02:03Z\"}", NULL, ""},
                {FIELD("\"type\":\"string\",\"format\":\"date\"",
                       "{\"rule\":\"self == timestamp('2024-02-29T00:00:00Z')\"}"),
                 "{\"f\":\"2024-02-29\"}", NULL, ""},
                {FIELD("\"type\":\"string\",\"format\":\"duration\"",
                       "{\"rule\":\"self > duration('1h')\"}"),
                 "{\"f\":\"90m\"}", NULL, ""},
                {FIELD("\"type\":\"string\",\"format\":\"byte\"", "{\"rule\":\"self == b'hi'\"}"),
                 "{\"f\":\"aGk=\"}", NULL, ""},
                {FIELD("\"x-kubernetes-int-or-string\":true",
                       "{\"rule\":\"type(self) == string ? self == '5%' : self == 5\"}"),
                 "{\"f\":\"5%\"}", NULL, ""},
                {FIELD("\"type\":\"number\"", "{\"rule\":\"self == 1.0\"}"), "{\"f\":1}", NULL, ""},
                {ROOT("\"n\":{\"type\":\"integer\",\"nullable\":true}", "!has(self.n)"),
                 "{\"n\":null}", NULL, ""},
                {FIELD("\"type\":\"array\",\"items\":{\"type\":\"string\",\"nullable\":true}",
                       "{\"rule\":\"self.exists(x, dyn(x) == null)\"}"),
                 "{\"f\":[\"a\",null]}", NULL, ""},
                {FIELD("\"type\":\"object\",\"x-kubernetes-embedded-resource\":true",
                       "{\"rule\":\"self.kind == 'Pod' && self.metadata.name == 'p'\"}"),
                 "{\"f\":{\"kind\":\"Pod\",\"metadata\":{\"name\":\"p\"}}}", NULL, ""},
                {FIELD("\"type\":\"object\",\"additionalProperties\":{\"type\":\"integer\"}",
                       "{\"rule\":\"self.all(k, self[k] > 0) && 'a' in self\"}"),
                 "{\"f\":{\"a\":1,\"b\":2}}", NULL, ""},
                {FIELD("\"type\":\"integer\"", "{\"rule\":\"self > 1\"}"), "{\"f\":\"x\"}", NULL,
                 "f: Invalid value: \"integer\": invalid data, expected int, got string "
                 "evaluating rule: self > 1"},
        };

        CHECK_OBJECTS(cases);
}

#define SET "\"type\":\"array\",\"items\":{\"type\":\"string\"},\"x-kubernetes-list-type\":\"set\""
#define KEYED                                                                                      \
        "\"type\":\"array\",\"x-kubernetes-list-type\":\"map\",\"x-kubernetes-list-map-keys\":["   \
        "\"k\"],\"items\":{\"type\":\"object\",\"properties\":{\"k\":{\"type\":\"string\"},"       \
        "\"v\":{\"type\":\"integer\"}}}"
#define KEYED_RULE                                                                                 \
        "{\"type\":\"object\",\"properties\":{\"f\":{\"type\":\"array\","                          \
        "\"x-kubernetes-list-type\":\"map\",\"x-kubernetes-list-map-keys\":[\"k\"],\"items\":{"    \
        "\"type\":\"object\",\"properties\":{\"k\":{\"type\":\"string\"},\"v\":{"                  \
        "\"type\":\"integer\",\"x-kubernetes-validations\":[{\"rule\":\"self >= oldSelf\"}]}}}}}}"

/* Each rule must hold for an object. */
static void expect_rules_hold(const char *const *rules, size_t n) {
        for (size_t i = 0; i < n; i++) {
                char schema[400];
                struct object_case c = {schema, "{\"f\":\"\"}", NULL, ""};
                int length = snprintf(schema, sizeof schema,
                                      "{\"type\":\"object\",\"x-kubernetes-validations\":[{"
                                      "\"rule\":\"%s\"}]}",
                                      rules[i]);

                assert_in_range(length, 1, sizeof schema - 1);
                check_object(&c);
        }
}

static void test_quantities_have_functions(void **state) {
        static const char *const rules[] = {
                "isQuantity('1.5Gi') && !isQuantity('1x')",
                "isQuantity('Ki') && isQuantity('0Pi') && !isQuantity('Pi') && "
                "!isQuantity('-e-10')",
                "!isQuantity('1\\\\x00') && !isQuantity('1\\\\x00Gi')",
                "quantity('1Ki') == quantity('1024') && quantity('1k') != quantity('1Ki')",
                "quantity('500m').isLessThan(quantity('1')) && quantity('2').isGreaterThan("
                "quantity('1'))",
                "quantity('1').compareTo(quantity('1000m')) == 0 && sign(quantity('-3')) == -1",
                "quantity('700m').add(quantity('800m')) == quantity('1500m')",
                "quantity('1').sub(quantity('1500m')) == quantity('-500m')",
                "quantity('-1').add(2) == quantity('1') && quantity('1').sub(-2) == quantity('3')",
                "quantity('5').sub(5) == quantity('0') && sign(quantity('5').sub(5)) == 0",
                /* Only one with a binary suffix has a bound. */
                "quantity('9223372036854775807').add(1) == quantity('9223372036854775808') && "
                "quantity('8Ei') == quantity('9223372036854775807')",
                "quantity('99999999999999999999').compareTo(quantity('1e20')) == -1 && "
                "quantity('-1e20').isLessThan(quantity('-99999999999999999999'))",
                "quantity('1e40').add(1).sub(quantity('1e40')) == quantity('1') && "
                "sign(quantity('1e40').sub(quantity('1e41'))) == -1",
                "quantity('9E').add(quantity('9E')) == quantity('18E') && "
                "quantity('99999999999999999999').asApproximateFloat() == 1e20",
                "quantity('9999999999999999999.00000000001').sub(quantity('9999999999999999999')) "
                "== quantity('1n') && quantity('-0.00000000001') == quantity('-1n')",
                "quantity('999999999999999999999999999').add(1) == quantity('1e27')",
                "quantity('0').sub(-9223372036854775808).asInteger() == -9223372036854775808",
                "quantity('2k').asInteger() == 2000 && !quantity('1.5').isInteger()",
                "quantity('1.5').asApproximateFloat() == 1.5",
                /* As Go computes it: three times a tenth. */
                "quantity('0.3').asApproximateFloat() == 3.0 * 0.1",
                "quantity('1e30').asApproximateFloat() == 1e30",
                "quantity('0e-20').add(quantity('1')).asApproximateFloat() == 1.0",
                "quantity('0.0000000000').add(1).asApproximateFloat() == 1.0",
                "quantity('-1.5Gi').asApproximateFloat() == -1610612736.0",
                "quantity('12345678901234567890123Ki').asApproximateFloat() > 9.2e18",
                /* Digits after the point are not reduced, nor are long numbers kept. */
                "!quantity('1.0').isInteger() && !quantity('1.0').sub(quantity('1.0')).isInteger()",
                "!quantity('0.5').add(quantity('0.5')).isInteger() && quantity('0').isInteger()",
                "!quantity('1.5Ki').isInteger() && quantity('-3Ki').asInteger() == -3072",
                "quantity('0.0').add(7).asInteger() == 7 && quantity('1E').isInteger()",
                "!quantity('10E').isInteger() && quantity('1e3').asInteger() == 1000",
                "!quantity('1234567890123456789').isInteger() && "
                "quantity('123456789012345678').isInteger()",
                "!quantity('9e18').add(quantity('9e18')).isInteger() && "
                "quantity('1k').sub(1).asInteger() == 999",
        };

        expect_rules_hold(rules, sizeof rules / sizeof rules[0]);
}

/* Kubernetes charges one for a call, however long the quantity is. */
static void test_comparisons_of_long_quantities_are_limited(void **state) {
#define COMPARES(how) "[quantity('1e900').add(1)].all(q, lists.range(100000).all(i, " how "))"
#define FAILS(rule)                                                                                \
        {                                                                                          \
                ROOT("", rule), "{}", NULL,                                                        \
                        "<nil>: Invalid value: \"object\": 'operation cancelled: actual cost "     \
                        "limit exceeded': no "                                                     \
                        "further validation rules will be run due to call cost exceeds limit for " \
                        "rule: " rule                                                              \
        }
        static const struct object_case cases[] = {
                FAILS(COMPARES("!q.isLessThan(q)")),
                FAILS(COMPARES("!q.isGreaterThan(q)")),
                FAILS(COMPARES("q.compareTo(q) == 0")),
                FAILS(COMPARES("q == q")),
                /* as many comparisons of a short one */
                {ROOT("", "[quantity('1').add(1)].all(q, lists.range(100000).all(i, q == q))"),
                 "{}", NULL, ""},
        };

        CHECK_OBJECTS(cases);
#undef COMPARES
#undef FAILS
}

static void test_the_digits_of_quantities_are_work(void **state) {
        enum { N = 900, GROUPS = N / 9 };
        char nines[N], expected[9 + N + 9 + 1];
        struct hf__arena arena;
        struct hf__cel_run run = {.arena = &arena,
                                  .cost_limit = UINT64_MAX,
                                  .work_limit = UINT64_MAX,
                                  .bytes_limit = SIZE_MAX};
        struct hfd_decimal decimal, sum;

        hf__arena_init(&arena);
        memset(nines, '9', sizeof nines);
        assert_true(hfd_decimal_read(&run, false, nines, N, 0, &decimal));
        assert_in_range(run.work, GROUPS, 2 * GROUPS);
        run.work = 0;
        assert_true(hfd_decimal_add(&run, &decimal, &decimal, &sum));
        assert_in_range(run.work, GROUPS, 2 * GROUPS);
        run.work = 0;
        const char *digits = hfd_decimal_digits(&run, &sum);
        assert_in_range(run.work, 4 * GROUPS, 8 * GROUPS);
        /* 1, N - 1 nines and 8, before nine zeros */
        memset(expected, '9', sizeof expected);
        memcpy(expected, "000000001", 9);
        memcpy(expected + 8 + N, "8000000000", 11);
        assert_string_equal(digits, expected);
        hf__arena_deinit(&arena);
}

static void test_urls_have_functions(void **state) {
        static const char *const rules[] = {
                "isURL('https://a.b:80/c') && isURL('/path') && isURL('mailto:x') && isURL('*')",
                "!isURL('') && !isURL('a/b') && !isURL(':x') && !isURL('http://a b/')",
                "!isURL('http://a:x/') && !isURL('http://[::1/') && !isURL('/%zz')",
                "isURL('http://a%25b%C3/') && !isURL('http://a%41/') && !isURL('http://a%2')",
                "url('HTTPS://u@[::1]:80/p').getScheme() == 'https'",
                "url('https://u@[::1]:80/p').getHost() == '[::1]:80'",
                "url('https://u@[::1]:80/p').getHostname() == '::1'",
                "url('https://u@[::1]:80/p').getPort() == '80' && url('http://a/').getPort() == ''",
                "url('https://a/b%20c?d').getEscapedPath() == '/b%20c'",
                "url('https://a/?x=1&y=%20+&x=2&z').getQuery() == "
                "{'x': ['1', '2'], 'y': ['  '], 'z': ['']}",
                "url('/?y=1&' + lists.range(2000).map(i, 'k' + string(i) + '=' + "
                "string(i)).join('&')"
                " + '&y=2&;&y').getQuery() == lists.range(2000).transformMapEntry(i, v, "
                "i == 0 ? {'y': ['1', '2', ''], 'k0': ['0']} : {'k' + string(i): [string(v)]})",
                "url('/?' + lists.range(10000).map(i, 'a').join('&')).getQuery()['a'].size() == "
                "10000",
                "url('/?' + lists.range(10001).map(i, 'a').join('&')).getQuery() == {} && "
                "url('/?').getQuery() == {} && !('a' in url('/?;').getQuery())",
                "url('https://a/') == url('https://a/') && url('/a').getHost() == ''",
                /* Without a fragment, and with the escapes that Go chooses. */
                "url('https://a/b c/%41?d=e#f').getEscapedPath() == '/b%20c/A'",
                "url('https://a/%41?d=e#f').getEscapedPath() == '/%41' && isURL('/a?b#%zz')",
                "url('https://a/?d=e#f').getQuery() == {'d': ['e']} && isURL('*')",
                "url('http://a%C3%A9/').getHost() == 'a\xc3\xa9' && !isURL('*?a')",
                "url('http://[fe80::1%25e%20]:8/').getHost() == '[fe80::1%e ]:8'",
                "url('http://[fe80::1%25e%20]:8/').getHostname() == 'fe80::1%e '",
                "url('//a:1/b').getHost() == 'a:1' && url('///a').getEscapedPath() == '///a'",
                "url('*').getEscapedPath() == '*' && url('mailto:a?b').getEscapedPath() == ''",
                "url('HTTP://a%3Ab@c/d e#f g') == url('http://a%3ab@c/d%20e#f%20g')",
                "url('/a?') != url('/a') && url('file:///a') != url('file:/a')",
                "!isURL('http://[1.2.3.4]/') && !isURL('http://a[::1]/') && isURL('x://a:1:2')",
                "!isURL('http://[::1%25]/') && !isURL('http://a:1:2/') && !isURL('http://[x]/')",
                "!isURL('http://[::1%25%41%zz]') && !isURL('http://u\xc3\xa9@a/') && "
                "isURL('http://u%41@a')",
        };

        expect_rules_hold(rules, sizeof rules / sizeof rules[0]);
}

static void test_formats_have_functions(void **state) {
        static const char *const rules[] = {
                "!format.dns1123Label().validate('a-1').hasValue()",
                "format.dns1123Label().validate('a.b').value() == ['must not contain dots']",
                "format.dns1123Label().validate('A').value()[0].startsWith('a lowercase RFC 1123 "
                "l')",
                "format.dns1123Label().validate('a-').hasValue()",
                "!format.dns1123LabelPrefix().validate('a-').hasValue()",
                "format.dns1035Label().validate('1a').hasValue()",
                "format.dns1035LabelPrefix().validate('') != optional.none()",
                "!format.dns1123Subdomain().validate('a.b-c').hasValue()",
                "format.dns1123Subdomain().validate('a..b').value().size() == 1",
                "!format.dns1123SubdomainPrefix().validate('a.-').hasValue()",
                "!format.qualifiedName().validate('a.b/C_d').hasValue()",
                "format.qualifiedName().validate('/').value()[0] == 'prefix part must be "
                "non-empty'",
                "format.qualifiedName().validate('/').value()[1] == 'name part must be non-empty'",
                "format.qualifiedName().validate('a/b/c').value()[0].contains("
                "'example.com/MyName')",
                "format.labelValue().validate('-').hasValue()",
                "!format.labelValue().validate('').hasValue()",
                "!format.uri().validate('http://a/').hasValue()",
                "format.uri().validate('a').value() == ['parse \\\"a\\\": invalid URI for "
                "request']",
                "format.uuid().validate('x').value() == ['does not match the UUID format']",
                "format.byte().validate('=').value() == ['invalid base64']",
                "!format.byte().validate('YQ==').hasValue()",
                "format.date().validate('2026-13-01').value() == ['invalid date']",
                "format.datetime().validate('x').value() == ['invalid datetime']",
                "format.named('uuid').value() == format.uuid() && format.uuid() != format.uri()",
                "!format.named('x').hasValue()",
        };

        expect_rules_hold(rules, sizeof rules / sizeof rules[0]);
}

static void test_lists_compare_by_their_types(void **state) {
        static const struct object_case cases[] = {
                {FIELD(SET, "{\"rule\":\"self == oldSelf\"}"), "{\"f\":[\"a\",\"b\"]}",
                 "{\"f\":[\"b\",\"a\"]}", ""},
                {FIELD(SET, "{\"rule\":\"self == oldSelf\"}"), "{\"f\":[\"a\",\"b\"]}",
                 "{\"f\":[\"b\",\"c\"]}", "f: Invalid value: failed rule: self == oldSelf"},
                {FIELD(SET, "{\"rule\":\"(self + oldSelf).size() == 3\"}"), "{\"f\":[\"a\",\"b\"]}",
                 "{\"f\":[\"b\",\"c\"]}", ""},
                {FIELD("\"type\":\"array\",\"items\":{\"type\":\"string\"}",
                       "{\"rule\":\"self == oldSelf\"}"),
                 "{\"f\":[\"a\",\"b\"]}", "{\"f\":[\"b\",\"a\"]}",
                 "f: Invalid value: failed rule: self == oldSelf"},
                {FIELD(KEYED, "{\"rule\":\"self == oldSelf\"}"),
                 "{\"f\":[{\"k\":\"a\",\"v\":1},{\"k\":\"b\",\"v\":2}]}",
                 "{\"f\":[{\"k\":\"b\",\"v\":2},{\"k\":\"a\",\"v\":1}]}", ""},
                {FIELD(KEYED, "{\"rule\":\"(oldSelf + self)[0].v == 5 && "
                              "(oldSelf + self).size() == 2\"}"),
                 "{\"f\":[{\"k\":\"a\",\"v\":5},{\"k\":\"b\",\"v\":2}]}",
                 "{\"f\":[{\"k\":\"a\",\"v\":1}]}", ""},
                /* The sum of an empty list is of its type. */
                {FIELD(SET, "{\"rule\":\"self + ['x', 'y', 'x'] == ['y', 'x']\"}"), "{\"f\":[]}",
                 NULL, ""},
                {FIELD(KEYED, "{\"rule\":\"self + oldSelf == [oldSelf[1], oldSelf[0]]\"}"),
                 "{\"f\":[]}", "{\"f\":[{\"k\":\"b\",\"v\":2},{\"k\":\"a\",\"v\":1}]}", ""},
                /* A plain list equals a set of the same size that has its elements. */
                {FIELD(SET, "{\"rule\":\"self == ['a', 'a'] && self != ['a', 'c']\"}"),
                 "{\"f\":[\"a\",\"b\"]}", NULL, ""},
                /* If a key occurs twice, the last element with it counts. */
                {FIELD(KEYED, "{\"rule\":\"self == [self[1], self[1]] && "
                              "(self + [self[0]])[1].v == 1\"}"),
                 "{\"f\":[{\"k\":\"a\",\"v\":1},{\"k\":\"a\",\"v\":2}]}", NULL, ""},
        };

        CHECK_OBJECTS(cases);
}

static void test_transition_rules_need_an_old_value(void **state) {
        static const struct object_case cases[] = {
                {FIELD("\"type\":\"integer\"", "{\"rule\":\"self >= oldSelf\"}"), "{\"f\":1}", NULL,
                 ""},
                {FIELD("\"type\":\"integer\"", "{\"rule\":\"self >= oldSelf\"}"), "{\"f\":1}", "{}",
                 ""},
                {FIELD("\"type\":\"integer\"", "{\"rule\":\"self >= oldSelf\"}"), "{\"f\":1}",
                 "{\"f\":2}", "f: Invalid value: 1: failed rule: self >= oldSelf"},
                {FIELD("\"type\":\"integer\"", "{\"rule\":\"oldSelf.hasValue()\","
                                               "\"optionalOldSelf\":true}"),
                 "{\"f\":1}", NULL, "f: Invalid value: 1: failed rule: oldSelf.hasValue()"},
                {FIELD("\"type\":\"integer\"", "{\"rule\":\"oldSelf.value() < self\","
                                               "\"optionalOldSelf\":true}"),
                 "{\"f\":1}", "{\"f\":0}", ""},
                {FIELD("\"type\":\"integer\"",
                       "{\"rule\":\"self < 0\",\"messageExpression\":\"'was ' + "
                       "string(oldSelf)\"}"),
                 "{\"f\":1}", "{\"f\":2}", "f: Invalid value: 1: was 2"},
                {FIELD("\"type\":\"integer\"",
                       "{\"rule\":\"self < 0\",\"messageExpression\":\"'was ' + "
                       "string(oldSelf)\"}"),
                 "{\"f\":1}", NULL, "f: Invalid value: 1: failed rule: self < 0"},
                {FIELD("\"type\":\"array\",\"items\":{\"type\":\"integer\"}",
                       "{\"rule\":\"self.sum() > oldSelf.sum()\"}"),
                 "{\"f\":[1]}", "{\"f\":[\"x\"]}",
                 "f: Invalid value: \"array\": invalid data, expected int, got string evaluating "
                 "rule: self.sum() > oldSelf.sum()"},
                /* Elements of a list that is a map are found by their keys, wherever they are. */
                {KEYED_RULE, "{\"f\":[{\"k\":\"b\",\"v\":1},{\"k\":\"a\",\"v\":3}]}",
                 "{\"f\":[{\"k\":\"a\",\"v\":3},{\"k\":\"b\",\"v\":2}]}",
                 "f[0].v: Invalid value: 1: failed rule: self >= oldSelf"},
                /* Fields that the schema does not declare are compared, too. */
                {FIELD("\"type\":\"object\",\"x-kubernetes-preserve-unknown-fields\":true",
                       "{\"rule\":\"self == oldSelf\"}"),
                 "{\"f\":{\"x\":[1,{\"y\":2}]}}", "{\"f\":{\"x\":[1,{\"y\":3}]}}",
                 "f: Invalid value: failed rule: self == oldSelf"},
        };

        CHECK_OBJECTS(cases);
}

static void test_unchanged_values_are_forgiven(void **state) {
        static const struct object_case cases[] = {
                {FIELD("\"type\":\"integer\"", "{\"rule\":\"self > 5\"}"), "{\"f\":1,\"g\":2}",
                 "{\"f\":1,\"g\":1}", ""},
                {FIELD("\"type\":\"integer\"", "{\"rule\":\"self > 5\"}"), "{\"f\":1}", "{\"f\":2}",
                 "f: Invalid value: 1: failed rule: self > 5"},
                /*
                 * An invalid element of an atomic list is allowed if the whole list is unchanged.
                 */
                {"{\"type\":\"object\",\"properties\":{\"f\":{\"type\":\"array\",\"items\":{"
                 "\"type\":\"integer\",\"x-kubernetes-validations\":[{\"rule\":\"self > 5\"}]}}}}",
                 "{\"f\":[1,9],\"g\":1}", "{\"f\":[1,9]}", ""},
                {"{\"type\":\"object\",\"properties\":{\"f\":{\"type\":\"array\",\"items\":{"
                 "\"type\":\"integer\",\"x-kubernetes-validations\":[{\"rule\":\"self > 5\"}]}}}}",
                 "{\"f\":[1,8]}", "{\"f\":[1,9]}", "f[0]: Invalid value: 1: failed rule: self > 5"},
                /* A transition rule is checked even if the value is unchanged. */
                {FIELD("\"type\":\"integer\"", "{\"rule\":\"self > oldSelf\"}"), "{\"f\":1}",
                 "{\"f\":1}", "f: Invalid value: 1: failed rule: self > oldSelf"},
        };

        CHECK_OBJECTS(cases);
}

static void test_a_very_wrong_object_is_not_evaluated(void **state) {
        struct hf__json *schema = parse(FIELD("\"type\":\"integer\"", "{\"rule\":\"false\"}"));
        struct hf__json *object = parse("{\"f\":1}");
        struct hfd_custom_rules *rules = NULL;
        struct hfd_causes causes = {.n = 0};

        assert_int_equal(hfd_custom_rules_new(schema, PATH, NULL, NULL, &rules), 0);
        hfd_cause_required(&causes, "g", NULL);
        assert_int_equal(hfd_custom_rules_check(rules, object, NULL, &causes), 0);
        assert_causes(&causes,
                      "g: Required value\n<nil>: Invalid value: null: some validation rules were "
                      "not checked because the object was invalid; correct the existing errors to "
                      "complete validation",
                      "");
        hfd_custom_rules_free(rules);
        hf__json_free(schema);
        hf__json_free(object);
}

/* ---- limits ---- */

/* A list of n equal elements, between two texts. The caller frees it. */
static char *list_of(const char *before, const char *element, size_t n, const char *after) {
        struct hf__strbuf text = {0};

        hf__strbuf_puts(&text, before);
        for (size_t i = 0; i < n; i++)
                hf__strbuf_printf(&text, "%s%s", i > 0 ? "," : "", element);
        hf__strbuf_puts(&text, after);
        assert_int_equal(text.error, 0);
        return text.data;
}

static void test_an_evaluation_has_limits(void **state) {
        char *object = list_of("{\"f\":[", "1", 1000, "]}");
        char *objects = list_of("{\"f\":[", "[1,2,3,4,5,6,7,8,9,10]", 4000, "]}");
        char *url = list_of("{\"f\":\"/", "a", 20000, "\"}");
        char *texts = list_of("{\"f\":[", "\"a\"", 5000, "]}");
        char *text = list_of("{\"f\":\"", "a", 100000, "\"}");
        const struct object_case cases[] = {
                {FIELD("\"type\":\"array\",\"items\":{\"type\":\"integer\"}",
                       "{\"rule\":\"self.all(a, self.all(b, a == b))\",\"message\":\"m\"}"),
                 object, NULL,
                 "f: Invalid value: \"array\": 'operation cancelled: actual cost limit exceeded': "
                 "no further validation rules will be run due to call cost exceeds limit for "
                 "rule: m"},
                /* Each evaluation is cheap enough, but all of them are not. */
                {"{\"type\":\"object\",\"properties\":{\"f\":{\"type\":\"array\",\"items\":{"
                 "\"type\":\"array\",\"items\":{\"type\":\"integer\"},"
                 "\"x-kubernetes-validations\":[{\"rule\":"
                 "\"self.all(a, self.all(b, self.all(c, a + b + c > 0)))\"}]}}}}",
                 objects, NULL,
                 "f[1046]: Invalid value: \"array\": validation failed due to running out of cost "
                 "budget, no further validation rules will be run"},
                /* A comparison of long URLs is not cheap, although they are single values. */
                {FIELD("\"type\":\"string\",\"maxLength\":50000",
                       "{\"rule\":\"[url(self)].all(u, lists.range(300).all(i, "
                       "lists.range(300).all(j, u == u)))\",\"message\":\"m\"}"),
                 url, NULL,
                 "f: Invalid value: \"string\": 'operation cancelled: actual cost limit exceeded': "
                 "no further validation rules will be run due to call cost exceeds limit for "
                 "rule: m"},
                /* Compiling twenty patterns of many classes costs little, but takes 12 ms. */
                {"{\"type\":\"object\",\"properties\":{\"f\":{\"type\":\"array\",\"items\":{"
                 "\"type\":\"string\",\"x-kubernetes-validations\":[{\"rule\":"
                 "\"lists.range(20).all(i, !self.matches(string(i) + lists.range(30).map(c, "
                 "r'\\\\pL').join()))\"}]}}}}",
                 texts, NULL,
                 "f[25]: Invalid value: \"string\": validation failed due to running out of cost "
                 "budget, no further validation rules will be run"},
                /* Kubernetes accepts this: each of the searches costs a fifth of its steps. */
                {FIELD("\"type\":\"string\",\"maxLength\":500000",
                       "{\"rule\":\"lists.range(20).all(i, !self.matches('secret'))\"}"),
                 text, NULL, ""},
        };

        CHECK_OBJECTS(cases);
        free(object);
        free(objects);
        free(url);
        free(texts);
        free(text);
}

/* Checks a chain of n objects, the last of which has a long list. Each object has a rule. */
static int check_chain(size_t n, const char *rule, struct hfd_causes *causes) {
        struct hf__strbuf schema = {0}, object = {0};
        struct hfd_custom_rules *rules = NULL;
        int r;

        for (size_t i = 0; i < n; i++) {
                hf__strbuf_printf(&schema,
                                  "{\"type\":\"object\",\"x-kubernetes-validations\":[{"
                                  "\"rule\":\"%s\"}],\"properties\":{\"f\":",
                                  rule);
                hf__strbuf_puts(&object, "{\"f\":");
        }
        hf__strbuf_puts(&schema, "{\"type\":\"array\",\"items\":{\"type\":\"integer\"}}");
        hf__strbuf_puts(&object, "[0");
        for (size_t i = 0; i < 400000; i++)
                hf__strbuf_puts(&object, ",0");
        hf__strbuf_puts(&object, "]");
        for (size_t i = 0; i < n; i++) {
                hf__strbuf_puts(&schema, "}}");
                hf__strbuf_puts(&object, "}");
        }
        struct hf__json *props = parse(schema.data), *json = parse(object.data);
        assert_int_equal(hfd_custom_rules_new(props, PATH, NULL, NULL, &rules), 0);
        r = hfd_custom_rules_check(rules, json, json, causes);
        hfd_custom_rules_free(rules);
        hf__json_free(props);
        hf__json_free(json);
        hf__strbuf_done(&schema);
        hf__strbuf_done(&object);
        return r;
}

/* Otherwise the list would be made for each object, and the work be more than the limit. */
static void test_a_value_is_made_once_for_all_parts_that_contain_it(void **state) {
        struct hfd_causes current = {.n = 0}, old = {.n = 0};

        assert_int_equal(check_chain(60, "true", &current), 0);
        assert_causes(&current, "", "a chain of rules");
        assert_int_equal(check_chain(60, "has(self.f) == has(oldSelf.f)", &old), 0);
        assert_causes(&old, "", "a chain of rules with oldSelf");
}

/* Rules of parts below a part with rules, which all see the values of their own part. */
static void test_parts_of_a_value_are_the_values_of_parts(void **state) {
#define SEES(self, old)                                                                            \
        "\"x-kubernetes-validations\":[{\"rule\":\"self == " self " && oldSelf == " old "\"}]"
#define ANY "\"x-kubernetes-validations\":[{\"rule\":\"self == oldSelf || true\"}]"
        static const struct object_case cases[] = {
                /* the members of an object, one of them null, one with a name that is escaped, and
                 * one that has a word of CEL as its name */
                {"{\"type\":\"object\"," ANY ",\"properties\":{\"a\":{\"type\":\"integer\"},"
                 "\"b.c\":{\"type\":\"object\",\"properties\":{\"d\":{\"type\":\"integer\"," SEES(
                         "2", "12") "}}},"
                                    "\"in\":{\"type\":\"integer\"," SEES(
                                            "3", "13") "},\"n\":{\"type\":\"integer\","
                                                       "\"nullable\":true,\"x-kubernetes-"
                                                       "validations\":[{\"rule\":\"self == 4\"}]"
                                                       "}}}",
                 "{\"n\":null,\"in\":3,\"b.c\":{\"x\":0,\"d\":2},\"a\":1}",
                 "{\"b.c\":{\"d\":12,\"x\":9},\"n\":5,\"in\":13}", ""},
                /* the values of a map, in another order */
                {FIELD("\"type\":\"object\",\"additionalProperties\":{\"type\":\"string\"," SEES(
                               "'k' + string(int(oldSelf) + 1)", "oldSelf") "}",
                       "{\"rule\":\"self == oldSelf || true\"}"),
                 "{\"f\":{\"b\":\"k2\",\"a\":\"k1\",\"x\":\"k9\"}}",
                 "{\"f\":{\"a\":\"0\",\"b\":\"1\",\"c\":\"7\",\"x\":\"8\"}}", ""},
                /* the elements of a list whose old elements are in another order, and have one
                 * without the key before them */
                {FIELD("\"type\":\"array\",\"x-kubernetes-list-type\":\"map\","
                       "\"x-kubernetes-list-map-keys\":[\"k\"],\"items\":{\"type\":\"object\","
                       "\"properties\":{\"k\":{\"type\":\"string\"},\"v\":{\"type\":"
                       "\"integer\"," SEES("oldSelf + 1", "oldSelf") "}}}",
                       "{\"rule\":\"self.size() <= oldSelf.size()\"}"),
                 "{\"f\":[{\"k\":\"b\",\"v\":2},{\"k\":\"a\",\"v\":1}]}",
                 "{\"f\":[{\"v\":5},{\"k\":\"a\",\"v\":0},{\"k\":\"b\",\"v\":1}]}", ""},
                /* A value of a wrong type has no parts, and the next one has. */
                {"{\"type\":\"object\"," ANY
                 ",\"properties\":{\"a\":{\"type\":\"array\",\"items\":{\"type\":\"integer\"},"
                 "\"properties\":{\"x\":{\"type\":\"integer\"," ANY
                 "}}},\"b\":{\"type\":\"string\",\"x-kubernetes-validations\":[{\"rule\":"
                 "\"self == 'bb'\"}]}}}",
                 "{\"a\":{\"x\":1},\"b\":\"bb\"}", NULL, ""},
        };

        CHECK_OBJECTS(cases);
#undef SEES
#undef ANY
}

int main(void) {
        const struct CMUnitTest tests[] = {
                cmocka_unit_test(test_mistakes_of_definitions_have_kubernetes_messages),
                cmocka_unit_test(test_the_work_of_all_rules_is_limited),
                cmocka_unit_test(test_a_schema_without_rules_makes_none),
                cmocka_unit_test(test_a_broken_rule_has_its_message_and_reason),
                cmocka_unit_test(test_values_have_the_types_of_their_schemas),
                cmocka_unit_test(test_quantities_have_functions),
                cmocka_unit_test(test_comparisons_of_long_quantities_are_limited),
                cmocka_unit_test(test_the_digits_of_quantities_are_work),
                cmocka_unit_test(test_urls_have_functions),
                cmocka_unit_test(test_formats_have_functions),
                cmocka_unit_test(test_lists_compare_by_their_types),
                cmocka_unit_test(test_transition_rules_need_an_old_value),
                cmocka_unit_test(test_unchanged_values_are_forgiven),
                cmocka_unit_test(test_a_very_wrong_object_is_not_evaluated),
                cmocka_unit_test(test_a_value_is_made_once_for_all_parts_that_contain_it),
                cmocka_unit_test(test_parts_of_a_value_are_the_values_of_parts),
                cmocka_unit_test(test_an_evaluation_has_limits),
        };

        return cmocka_run_group_tests(tests, NULL, NULL);
}

/* SPDX-License-Identifier: Apache-2.0 */
/* Bodies in YAML: what they mean as JSON, and which are refused. */
#undef NDEBUG
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#include <holdfast/error.h>

#include "base/json.h"
#include "base/strbuf.h"
#include "client/yaml_body.h"
#include "client/yaml_duplicates.h"

#define MAX ((size_t)1 << 20)

static int convert(const char *yaml, struct hf__strbuf *out, struct hf_status *status) {
        *out = (struct hf__strbuf){.max = MAX};
        *status = (struct hf_status){0};
        return hf__yaml_body_to_json(yaml, strlen(yaml), out, status);
}

static void expect_json(const char *yaml, const char *json) {
        struct hf__strbuf out;
        struct hf_status status;

        assert_int_equal(convert(yaml, &out, &status), 0);
        assert_string_equal(out.data, json);
        assert_string_equal(status.message, "");
        hf__strbuf_done(&out);
}

static void expect_refused(const char *yaml, int error, const char *message) {
        struct hf__strbuf out;
        struct hf_status status;

        assert_int_equal(convert(yaml, &out, &status), error);
        assert_string_equal(status.message, message);
        hf__strbuf_done(&out);
}

/* Scalars have the same meaning as in go-yaml v2, which Kubernetes uses. */
static void test_plain_scalars_follow_yaml_1_1(void **state) {
        static const char *const cases[][2] = {
                {"yes", "true"},
                {"On", "true"},
                {"y", "true"},
                {"TRUE", "true"},
                {"no", "false"},
                {"OFF", "false"},
                {"N", "false"},
                {"yEs", "\"yEs\""},
                {"y Y", "\"y Y\""}, /* two words in a row of the table */
                {"yes Yes", "\"yes Yes\""},
                {"~", "null"},
                {"Null", "null"},
                {"nULL", "\"nULL\""},
                {"2026-01-02T03:04:05Z", "\"2026-01-02T03:04:05Z\""},
                {"2026-01-02", "\"2026-01-02\""},
                {"'yes'", "\"yes\""},
                {"\"12\"", "\"12\""},
                {"!!str 12", "\"12\""},
                {"!!int '12'", "12"},
                {"!!binary aGk=", "\"hi\""},
                {"a b: c", "{\"a b\":\"c\"}"},
                {"|\n  x\n  y\n", "\"x\\ny\\n\""},
        };

        for (size_t i = 0; i < sizeof cases / sizeof cases[0]; i++)
                expect_json(cases[i][0], cases[i][1]);
        expect_json("", "null");
}

static void test_numbers_follow_yaml_1_1(void **state) {
        static const char *const cases[][2] = {
                {"12", "12"},
                {"-12", "-12"},
                {"+12", "12"},
                {"1_000", "1000"},
                {"0777", "511"},
                {"0o17", "15"},
                {"0x1F", "31"},
                {"-0x1f", "-31"},
                {"0b101", "5"},
                {"08", "8"},
                {"9223372036854775807", "9223372036854775807"},
                {"18446744073709551615", "18446744073709551615"},
                {"1.50", "1.5"},
                {".5", "0.5"},
                {"1e3", "1000"},
                {"1.", "1"},
                {"0.0", "0"},
                {"1e15", "1000000000000000"},
                {"-1.2345678901234567e20", "-123456789012345670000"},
                {"1e21", "1e+21"},
                {"1.5e300", "1.5e+300"},
                {"12.5", "12.5"},
                {"0.000001", "0.000001"},
                {"1.25e-7", "1.25e-7"},
                {"0.1", "0.1"},
                {"-1.25e-2", "-0.0125"},
                {"-9223372036854775809", "-9223372036854776000"}, /* no integer of 64 bits */
                {"18446744073709551616", "18446744073709552000"},
                {"-18446744073709551615", "-18446744073709552000"},
                {"+9223372036854775807", "9223372036854775807"},
                {"+18446744073709551615", "18446744073709552000"},
                {"+0xffffffffffffffff", "\"+0xffffffffffffffff\""},
                {"+1.5", "1.5"},
                {"-.5", "-0.5"},
                {"1.5e+2", "150"},
                {"1E2", "100"},
                {"1e20", "100000000000000000000"},
                {"1e-400", "0"},
                {"4.94065645841247e-324", "5e-324"}, /* fewer digits tell subnormal numbers apart */
                {"-1.5e-323", "-1.5e-323"},
                {"2.2250738585072014e-308", "2.2250738585072014e-308"},
                {"1e400", "\"1e400\""},
                {"0.00001", "0.00001"},
                {"0.0000001", "1e-7"},
                {"123456789.125", "123456789.125"},
                {"1_", "1"},
                {"0_1", "1"},
                {"00", "0"},
                {"-0", "0"},
                {"_1", "\"_1\""},
                {".", "\".\""},
                {"+", "\"+\""},
                {"1x", "\"1x\""},
                {"1e", "\"1e\""},
                {"1e+", "\"1e+\""},
                {"1e5.", "\"1e5.\""},
                {".e5", "\".e5\""},
                {"0b2", "\"0b2\""},
                {"0o8", "\"0o8\""},
                {"0xg", "\"0xg\""},
                {"0x10000000000000000", "\"0x10000000000000000\""},
                {"1.2.3", "\"1.2.3\""},
                {"0x", "\"0x\""},
                {"1:30", "\"1:30\""},
        };

        for (size_t i = 0; i < sizeof cases / sizeof cases[0]; i++)
                expect_json(cases[i][0], cases[i][1]);
        expect_refused(".inf", HF_E_INVALID, "json: unsupported value: +Inf");
        expect_refused("a: -.INF", HF_E_INVALID, "json: unsupported value: -Inf");
        expect_refused(".NaN", HF_E_INVALID, "json: unsupported value: NaN");
}

static void test_keys_become_texts(void **state) {
        expect_json("1: a\nyes: b\n0x10: c\n1.5: d\n'x': e\n",
                    "{\"1\":\"a\",\"true\":\"b\",\"16\":\"c\","
                    "\"1.5\":\"d\",\"x\":\"e\"}");
        expect_refused("~: a", HF_E_INVALID, "line 1: a key is null");
        expect_refused("? [a]\n: b\n", HF_E_INVALID, "line 1: a key is not a scalar");
        expect_refused("<<: {a: b}\n", HF_E_INVALID, "line 1: merge keys are not accepted");
        expect_json("'<<': 1\n", "{\"<<\":1}");
        /* The registry decides about duplicates, as in JSON. */
        expect_json("a: 1\na: 2\n", "{\"a\":1,\"a\":2}");
}

static void test_aliases_repeat_what_their_anchors_name(void **state) {
        expect_json("a: &x {b: [1, yes]}\nc: *x\nd: &y text\ne: *y\n",
                    "{\"a\":{\"b\":[1,true]},\"c\":{\"b\":[1,true]},\"d\":\"text\",\"e\":"
                    "\"text\"}");
        expect_json("a: &x 1\nb: &x 2\nc: *x\n", "{\"a\":1,\"b\":2,\"c\":2}");
        expect_json("&k a: 1\nb: *k\n", "{\"a\":1,\"b\":\"a\"}");
        expect_json("&k 1: 2\nb: *k\n*k : 3\n", "{\"1\":2,\"b\":1,\"1\":3}");
        expect_refused("a: *x\n", HF_E_INVALID, "unknown anchor 'x' referenced");
        expect_json("a: &x [&x 1, *x]\n", "{\"a\":[1,1]}"); /* while the outer one is open */
        expect_refused("a: &x [*x]\n", HF_E_INVALID, "anchor 'x' value contains itself");
}

/* A key that is an alias stands for a scalar that is not null. */
static void test_an_alias_as_a_key_is_a_text(void **state) {
        expect_json("a: &x yes\n*x : 2\n", "{\"a\":true,\"true\":2}");
        expect_json("a: &x b\nc: {*x : 2}\n", "{\"a\":\"b\",\"c\":{\"b\":2}}");
        expect_refused("a: &x [1]\n*x : 2\n", HF_E_INVALID, "line 2: a key is not a scalar");
        expect_refused("a: &x {b: 1}\n*x : 2\n", HF_E_INVALID, "line 2: a key is not a scalar");
        expect_refused("a: &x []\n*x : 2\n", HF_E_INVALID, "line 2: a key is not a scalar");
        expect_refused("a: &x ~\n*x : 2\n", HF_E_INVALID, "line 2: a key is not a scalar");
}

static void test_a_text_of_many_documents_means_the_first_one(void **state) {
        expect_json("---\na: 1\n---\nb: 2\n", "{\"a\":1}");
        expect_json("{\"a\": [1, {\"b\": null}], \"c\": \"\\u00e9\"}",
                    "{\"a\":[1,{\"b\":null}],\"c\":\"\xc3\xa9\"}");
}

static void test_errors_have_the_words_of_go_yaml(void **state) {
        expect_refused("a: b: c\n", HF_E_INVALID, "mapping values are not allowed in this context");
        expect_refused("x: 1\na: b: c\n", HF_E_INVALID,
                       "line 2: mapping values are not allowed in this context");
        expect_refused("x: 1\na: @\n", HF_E_INVALID,
                       "line 2: found character that cannot start any token");
        expect_refused("x:\n  - b\n  c: d\n", HF_E_INVALID,
                       "line 2: did not find expected '-' indicator");
        expect_refused("- [a\n", HF_E_INVALID, "line 1: did not find expected ',' or ']'");
        expect_refused("a: !!set {b}\n", HF_E_INVALID,
                       "line 1: the tag tag:yaml.org,2002:set is not accepted");
}

/* Each level repeats the previous one ten times: 10^9 texts from 400 bytes. */
static void test_the_size_is_limited(void **state) {
        struct hf__strbuf bomb = {0}, out;
        struct hf_status status;

        hf__strbuf_puts(&bomb, "a: &a0 [lol]\n");
        for (int i = 1; i < 10; i++) {
                hf__strbuf_printf(&bomb, "b%d: &a%d [", i, i);
                for (int k = 0; k < 10; k++)
                        hf__strbuf_printf(&bomb, "%s*a%d", k > 0 ? "," : "", i - 1);
                hf__strbuf_puts(&bomb, "]\n");
        }
        assert_int_equal(convert(bomb.data, &out, &status), HF_E_TOO_LARGE);
        assert_true(out.space <= 2 * MAX);
        hf__strbuf_done(&out);
        hf__strbuf_reset(&bomb);
        for (int i = 0; i < HF__JSON_DEPTH_MAX + 1; i++)
                hf__strbuf_puts(&bomb, "[");
        assert_int_equal(convert(bomb.data, &out, &status), HF_E_INVALID);
        assert_string_equal(status.message, "line 1: the value is nested too deeply");
        hf__strbuf_done(&out);
        /* Aliases must not get around the depth. */
        hf__strbuf_reset(&bomb);
        hf__strbuf_puts(&bomb, "x0: &x0 [1]\n");
        for (int i = 1; i < 120; i++)
                hf__strbuf_printf(&bomb, "x%d: &x%d [[[[[[[[[[*x%d]]]]]]]]]]\n", i, i, i - 1);
        assert_int_equal(convert(bomb.data, &out, &status), HF_E_INVALID);
        hf__strbuf_done(&out);
        hf__strbuf_done(&bomb);
}

static void test_an_anchor_may_be_used_again(void **state) {
        expect_json("a: &x 1\nb: *x\nc: &x [2]\nd: *x\n", "{\"a\":1,\"b\":1,\"c\":[2],\"d\":[2]}");
        expect_refused("a: &x [*x]\n", HF_E_INVALID, "anchor 'x' value contains itself");
        expect_refused("a: &x 1\nb: &x [*x]\n", HF_E_INVALID, "anchor 'x' value contains itself");
}

/* n lists within each other around the text. */
static char *nest(unsigned n, const char *before, const char *text) {
        struct hf__strbuf out = {0};

        hf__strbuf_puts(&out, before);
        for (unsigned i = 0; i < n; i++)
                hf__strbuf_puts(&out, "[");
        hf__strbuf_puts(&out, text);
        for (unsigned i = 0; i < n; i++)
                hf__strbuf_puts(&out, "]");
        hf__strbuf_putc(&out, '\0');
        return out.data;
}

/* An alias counts with the depth of the value that it stands for. */
static void test_an_alias_is_as_deep_as_its_anchor(void **state) {
        static const struct {
                const char *plain, *before, *anchored;
        } cases[] = {{"a: [[[1]]]\nb: ", "a: &x [[[1]]]\nb: ", "[[[1]]]"},
                     {"a: [[1], 1]\nb: ", "a: &x [[1], 1]\nb: ", "[[1], 1]"},
                     {"a: [1, [1]]\nb: ", "a: &x [1, [1]]\nb: ", "[1, [1]]"},
                     {"z: [[[[[0]]]]]\na: [[[1]]]\nb: ", "z: [[[[[0]]]]]\na: &x [[[1]]]\nb: ",
                      "[[[1]]]"}};
        enum { N = sizeof cases / sizeof cases[0] };
        unsigned n_accepted = 0;

        for (unsigned i = 0; i < N * 10; i++) {
                unsigned n = HF__JSON_DEPTH_MAX - 8 + i % 10;
                char *plain = nest(n, cases[i / 10].plain, cases[i / 10].anchored);
                char *alias = nest(n, cases[i / 10].before, "*x");
                struct hf__strbuf out;
                struct hf_status status;
                int r = convert(plain, &out, &status);
                hf__strbuf_done(&out);
                assert_int_equal(convert(alias, &out, &status), r);
                hf__strbuf_done(&out);
                n_accepted += r == 0;
                free(plain);
                free(alias);
        }
        assert_true(n_accepted > 3 && n_accepted < N * 10 - 3);
}

static void test_a_container_may_have_its_own_tag_only(void **state) {
        expect_json("!!map {a: !!seq [1]}\n", "{\"a\":[1]}");
        expect_refused("!!seq {a: 1}\n", HF_E_INVALID,
                       "line 1: the tag tag:yaml.org,2002:seq is not accepted");
        expect_refused("!!map [1]\n", HF_E_INVALID,
                       "line 1: the tag tag:yaml.org,2002:map is not accepted");
        expect_refused("a: !!binary '*'\n", HF_E_INVALID,
                       "!!binary value contains invalid base64 data");
        expect_refused("!!null '~': 1\n", HF_E_INVALID, "line 1: a key is null");
        expect_refused("[a]: 1\n", HF_E_INVALID, "line 1: a key is not a scalar");
        expect_refused("{a: 1}: 1\n", HF_E_INVALID, "line 1: a key is not a scalar");
        expect_json("- <<\n- a: <<\n", "[\"<<\",{\"a\":\"<<\"}]"); /* only a key can merge */
}

static void test_the_smallest_number_is_one(void **state) {
        expect_json("-9223372036854775808", "-9223372036854775808");
        expect_json("9223372036854775807", "9223372036854775807");
        expect_json("-0x8000000000000000", "-9223372036854775808");
}

/* A tag decides the type, also of a quoted scalar. */
static void test_scalars_follow_their_tag(void **state) {
        expect_json("!!str 5", "\"5\"");
        expect_json("! 5", "\"5\"");
        expect_json("!!timestamp 2026-01-02", "\"2026-01-02\"");
        expect_json("!!int \"5\"", "5");
        expect_json("!!float '1.5'", "1.5");
        expect_json("!!bool \"yes\"", "true");
        expect_json("!!null '~'", "null");
        expect_json("!!binary aGVsbG8=", "\"hello\"");
        expect_json("!!int \"5\": x", "{\"5\":\"x\"}");
        expect_refused("!foo x", HF_E_INVALID, "line 1: the tag !foo is not accepted");
        expect_refused("!!omap x", HF_E_INVALID,
                       "line 1: the tag tag:yaml.org,2002:omap is not accepted");
}

/* Asserts which lines are reported for the text; NULL = none. */
static void expect_duplicates(const char *yaml, const char *lines) {
        struct hf__strbuf out = {0};

        assert_int_equal(hf__yaml_duplicates(yaml, strlen(yaml), 3, &out), 0);
        if (lines)
                assert_string_equal(out.data, lines);
        else
                assert_int_equal(out.n, 0);
        hf__strbuf_done(&out);
}

#define ERRORS "yaml: unmarshal errors:"

/* As a strict go-yaml v2 reports them: the line is that of the value, and a mistake in a value
 * comes before one of its key. */
static void test_duplicate_keys_have_lines(void **state) {
        expect_duplicates("", NULL);
        expect_duplicates("a: 1\nb: {a: 1}\nc: [{a: 1}, {a: 1}]\n", NULL);
        expect_duplicates("a: 1\n\"1\": 1\n1: 2\n", NULL);
        expect_duplicates("a: 1\na: 2\n", ERRORS "\n  line 2: key \"a\" already set in map");
        expect_duplicates("a: 1\nc: 1\nb: 1\na: 2\n",
                          ERRORS "\n  line 4: key \"a\" already set in map");
        struct hf__strbuf many = {0};
        for (int i = 0; i < 300; i++)
                hf__strbuf_printf(&many, "k%d: 1\n", i);
        expect_duplicates(many.data, NULL);
        hf__strbuf_puts(&many, "k7: 2\n");
        expect_duplicates(many.data, ERRORS "\n  line 301: key \"k7\" already set in map");
        hf__strbuf_done(&many);
        expect_duplicates("1: 1\n1: 2\n", ERRORS "\n  line 2: key 1 already set in map");
        expect_duplicates("a: 1\na:\n  b: 1\n  b: 2\n",
                          ERRORS "\n  line 4: key \"b\" already set in map"
                                 "\n  line 3: key \"a\" already set in map");
        expect_duplicates("{\"a\": 1, \"a\": 2, \"a\": 3, \"a\": 4, \"a\": 5}",
                          ERRORS "\n  line 1: key \"a\" already set in map"
                                 "\n  line 1: key \"a\" already set in map"
                                 "\n  line 1: key \"a\" already set in map");
        expect_duplicates("x: [&p q, &r s]\ny: {*p : 1, *r : 2}\n", NULL);
        expect_duplicates("x: &p q\ny: {*p : 1, *p : 2}\n",
                          ERRORS "\n  line 2: key *p already set in map");
        expect_duplicates("? [a]\n: 1\n? [a]\n: 2\n", NULL); /* other code refuses such keys */
        expect_duplicates("a: 1\na: 2\nb: ]\n", ERRORS "\n  line 2: key \"a\" already set in map");
}

int main(void) {
        const struct CMUnitTest tests[] = {
                cmocka_unit_test(test_scalars_follow_their_tag),
                cmocka_unit_test(test_an_anchor_may_be_used_again),
                cmocka_unit_test(test_an_alias_is_as_deep_as_its_anchor),
                cmocka_unit_test(test_a_container_may_have_its_own_tag_only),
                cmocka_unit_test(test_the_smallest_number_is_one),
                cmocka_unit_test(test_plain_scalars_follow_yaml_1_1),
                cmocka_unit_test(test_numbers_follow_yaml_1_1),
                cmocka_unit_test(test_keys_become_texts),
                cmocka_unit_test(test_aliases_repeat_what_their_anchors_name),
                cmocka_unit_test(test_an_alias_as_a_key_is_a_text),
                cmocka_unit_test(test_a_text_of_many_documents_means_the_first_one),
                cmocka_unit_test(test_errors_have_the_words_of_go_yaml),
                cmocka_unit_test(test_the_size_is_limited),
                cmocka_unit_test(test_duplicate_keys_have_lines),
        };

        return cmocka_run_group_tests(tests, NULL, NULL);
}

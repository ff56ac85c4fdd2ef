/* SPDX-License-Identifier: Apache-2.0 */
/* The limits of expressions: size, depth, cost, memory, types. */
#undef NDEBUG
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <string.h>

#include <cmocka.h>

#include "cel_fixture.h"

#include <stdlib.h>

#include <holdfast/error.h>

#include "base/arena.h"
#include "cel/functions/tables.h"
#include "cel/values/run.h"

/* `n` times the first text, the second, and `n` times the third. The caller frees it. */
static char *repeat(const char *before, const char *middle, const char *after, size_t n) {
        char *text = malloc(n * (strlen(before) + strlen(after)) + strlen(middle) + 1);
        char *at = text;

        assert_non_null(text);
        for (size_t i = 0; i < n; i++)
                at = stpcpy(at, before);
        at = stpcpy(at, middle);
        for (size_t i = 0; i < n; i++)
                at = stpcpy(at, after);
        return text;
}

static void assert_result(const char *before, const char *middle, const char *after, size_t n,
                          int expected) {
        char *text = repeat(before, middle, after, n);

        assert_int_equal(cel_result(text, NULL), expected);
        free(text);
}

static void test_deep_and_large_expressions_are_refused(void **state) {
        assert_result("(", "1", ")", 200, 0);
        assert_result("(", "1", ")", 250, HF_E_INVALID);
        assert_result("[", "1", "]", 40000, HF_E_INVALID);
        assert_result("", "1", "+1", 200, 0);
        assert_result("", "1", "+1", 300, HF_E_INVALID);
        assert_result("", "x", ".a", 300, HF_E_INVALID);
        assert_result("!", "true", "", 20000, 0);
        assert_result("", "true", " && true", 5000, 0);
}

/* A quoted text of n characters of four bytes, the quotes included. The caller frees it. */
static char *quoted_text(size_t n) {
        char *start = repeat("", "'", "\xf0\x9f\x98\x80", n - 2);
        char *text = malloc(strlen(start) + 2);

        assert_non_null(text);
        strcpy(stpcpy(text, start), "'");
        free(start);
        return text;
}

static void test_the_characters_of_an_expression_are_limited(void **state) {
        char *longest = quoted_text(100000);
        char *longer = quoted_text(100001);

        assert_result("", "1", " ", 99999, 0);
        assert_result("", "1", " ", 100000, HF_E_INVALID);
        assert_int_equal(cel_result(longest, NULL), 0);
        cel_check((const struct cel_case[]){{longer, "? -1:0: expression code point size exceeds "
                                                     "limit: size: 100001, limit 100000"}},
                  1);
        free(longest);
        free(longer);
}

static void test_the_counted_bytes_never_exceed_the_limit(void **state) {
        for (size_t n = 0; n <= 300; n++) {
                struct hf__cel_run run = {.bytes_limit = 200};
                bool fits = hf__cel_reserve(&run, n) && hf__cel_reserve(&run, 20);

                assert_true(run.n_bytes <= run.bytes_limit);
                assert_int_equal(run.failed, fits ? 0 : HF_E_TOO_LARGE);
        }
}

static void test_without_memory_left_no_text_is_formatted(void **state) {
        const struct hf__cel_value items[] = {hf__cel_int(1), hf__cel_int(2)};
        const struct hf__cel_list list = {.n = 2, .items = items};
        const struct hf__cel_value args[] = {hf__cel_string("%s %s", 5), hf__cel_list_value(&list)};
        struct hf__cel_run run = {.bytes_limit = 200, .n_bytes = 200, .work_limit = 100};

        assert_true(hf__cel_is_error(hf__cel_formats[0].call(&run, args, 2)));
        assert_int_equal(run.failed, HF_E_TOO_LARGE);
        assert_true(run.work == 0);
}

/* 200 long keys, which differ only at their ends, and one of them twice: then each is compared with
 * those before it. */
static void test_the_bytes_of_repeated_keys_are_work(void **state) {
        static char texts[201][1600];
        struct hf__cel_entry entries[201];
        struct hf__arena arena;
        struct hf__cel_run run = {.arena = &arena,
                                  .cost_limit = UINT64_MAX,
                                  .work_limit = UINT64_MAX,
                                  .bytes_limit = SIZE_MAX};
        struct hf__cel_value map;

        hf__arena_init(&arena);
        for (int i = 0; i < 201; i++) {
                memset(texts[i], 'x', sizeof texts[i]);
                (void)snprintf(texts[i] + sizeof texts[i] - 4, 4, "%03d", i % 200);
                entries[i].key = hf__cel_string(texts[i], sizeof texts[i]);
                entries[i].value = hf__cel_int(i);
        }
        map = hf__cel_new_map(&run, entries, 201);
        assert_int_equal(map.kind, HF__CEL_MAP);
        assert_int_equal(map.as.map->n, 200);
        assert_true(run.work > 1000000);
        hf__arena_deinit(&arena);
}

static struct hf__cel_value key_is_element(struct hf__cel_run *run, const struct hf__cel_list *list,
                                           struct hf__cel_value element) {
        return element;
}

/* The same for sets of bytes, which are joined by key. */
static void test_the_bytes_of_repeated_elements_are_work(void **state) {
        static char texts[201][1600];
        struct hf__cel_value items[201];
        const struct hf__cel_list set = {.n = 1, .items = items, .key = key_is_element};
        const struct hf__cel_list list = {.n = 201, .items = items};
        struct hf__arena arena;
        struct hf__cel_run run = {.arena = &arena,
                                  .cost_limit = UINT64_MAX,
                                  .work_limit = UINT64_MAX,
                                  .bytes_limit = SIZE_MAX};
        struct hf__cel_value joined;

        hf__arena_init(&arena);
        for (int i = 0; i < 201; i++) {
                memset(texts[i], 'x', sizeof texts[i]);
                (void)snprintf(texts[i] + sizeof texts[i] - 4, 4, "%03d", i % 200);
                items[i] = hf__cel_bytes(texts[i], sizeof texts[i]);
        }
        joined = hf__cel_union(&run, &set, &list);
        assert_int_equal(joined.kind, HF__CEL_LIST);
        assert_int_equal(joined.as.list->n, 200);
        assert_true(run.work > 1000000);
        hf__arena_deinit(&arena);
}

/* The caller sees what is used at least every 4,096 steps, and can end the evaluation. */
struct watched {
        uint64_t cost, work, longest;
        int r;
};

static int watch(void *ctx, uint64_t cost, uint64_t work) {
        struct watched *w = ctx;
        uint64_t step = cost - w->cost > work - w->work ? cost - w->cost : work - w->work;

        w->longest = step > w->longest ? step : w->longest;
        w->cost = cost;
        w->work = work;
        return work > 20000 ? w->r : 0;
}

static void test_a_watched_evaluation_can_be_ended(void **state) {
        static const char nested[] = "l.all(a, l.all(b, l.all(c, l.all(d, l.all(e, l.all(f, l.all("
                                     "g, l.all(h, l.all(i, l.all(j, true)))))))))) || true";
        struct watched watched = {.r = HF_E_TIMEOUT};
        struct hf__cel_limits limits = {.cost = UINT64_MAX,
                                        .work = UINT64_MAX,
                                        .watch = watch,
                                        .watch_ctx = &watched};

        assert_int_equal(cel_result(nested, &limits), HF_E_TIMEOUT);
        assert_in_range(watched.longest, 1, 5000);
        assert_in_range(watched.work, 20000, 26000);
}

static void test_types_that_double_are_refused(void **state) {
        assert_result("", "[1]", ".map(v, {v: v})", 30, HF_E_INVALID);
        assert_result("", "[1]", ".map(v, [v, v])", 10, 0);
}

static void test_the_cost_limit_ends_an_evaluation(void **state) {
        const char *nested = "l.all(a, l.all(b, l.all(c, a + b + c > 0)))";
        struct hf__cel_limits limits = {.cost = 100};

        assert_int_equal(cel_result(nested, NULL), 0);
        assert_int_equal(cel_result(nested, &limits), HF_E_TOO_LARGE);
        /* `||` absorbs an error of its left side, but not that a limit was reached. */
        assert_int_equal(cel_result("l.all(a, l.all(b, l.all(c, a + b + c > 0))) || true", &limits),
                         HF_E_TOO_LARGE);
}

static void test_large_values_are_refused(void **state) {
        struct hf__cel_limits limits = {.bytes = 1 << 20};
        /* Each round doubles the list. Its parts are shared, so it needs little memory, but a
         * comparison takes exponential time. */
        char *equal = repeat("", "[1]", ".map(v, dyn([v, v]))", 40);
        char *both = malloc(2 * strlen(equal) + 8);
        char *joined = repeat("", "[s]", ".map(v, v + v)", 40);

        assert_non_null(both);
        sprintf(both, "%s == %s", equal, equal);
        assert_int_equal(cel_result(both, NULL), HF_E_TOO_LARGE);
        assert_int_equal(cel_result(joined, &limits), HF_E_TOO_LARGE);
        free(equal);
        free(both);
        free(joined);
}

/* A look-up that finds nothing needs a text only if it is an error. */
static void test_what_is_absent_takes_no_memory(void **state) {
        struct hf__cel_limits limits = {.bytes = 24000};

        assert_int_equal(cel_result("lists.range(1000).all(y, !(s in m))", &limits), 0);
        assert_int_equal(cel_result("lists.range(1000).all(y, !m[?s].hasValue())", &limits), 0);
        assert_int_equal(cel_result("lists.range(1000).all(y, m[s] == y) || true", &limits),
                         HF_E_TOO_LARGE);
}

static void test_long_names_in_a_message_are_cut(void **state) {
        char *key = repeat("", "{?'", "k", 200);
        char *type = repeat("", "': dyn(Object.", "t", 240);
        char *text = malloc(strlen(key) + strlen(type) + 8);

        assert_non_null(text);
        strcpy(stpcpy(stpcpy(text, key), type), "{})}");
        assert_int_equal(cel_result(text, NULL), HF_E_INVALID);
        free(key);
        free(type);
        free(text);
}

/* Evaluates an expression whose variable v is the middle text after n doublings. */
static int result_of_large(const char *middle, size_t n, const char *expression) {
        char *large = repeat("[", middle, "].map(v, v + v)[0]", n);
        size_t space = strlen(large) + strlen(expression) + 32;
        char *text = malloc(space);
        int r;

        assert_non_null(text);
        snprintf(text, space, "[%s].all(v, %s)", large, expression);
        r = cel_result(text, NULL);
        free(large);
        free(text);
        return r;
}

static void test_work_that_costs_nothing_is_limited_too(void **state) {
        static const struct {
                const char *middle;
                size_t doublings;
                const char *expression;
                int result;
        } cases[] = {
                {"l", 12, "v.exists_one(a, v.exists_one(b, false)) || true", HF_E_TOO_LARGE},
                {"l", 12, "v.map(a, false, a).size() == 0", 0},
                {"l", 12, "v.all(a, v.map(b, false, b).size() == 0)", HF_E_TOO_LARGE},
                {"s", 17, "v.size() > 0", 0},
                {"s", 17, "l.all(a, l.all(b, l.all(c, v.size() + v.size() > 0)))", HF_E_TOO_LARGE},
                {"s", 17, "l.all(a, l.all(b, l.all(c, v != 'x' && v != 'y')))", HF_E_TOO_LARGE},
                {"s", 17, "l.all(a, l.all(b, l.all(c, v in m || v in m || true)))", HF_E_TOO_LARGE},
                {"s", 17, "lists.range(20).all(i, v.charAt(600000 + i) != 'x')", HF_E_TOO_LARGE},
                {"s", 17, "v.charAt(600000) != 'x'", 0},
                {"s", 14, "v.matches('(\\b?){1000}x') || true", HF_E_TOO_LARGE},
                {"'1'", 14, "[semver('1.0.0-' + v + 'x')].all(a, a == a && a.compareTo(a) == 0)",
                 0},
                {"'1'", 14,
                 "[semver('1.0.0-' + v + 'x')].all(a, "
                 "lists.range(300).all(i, lists.range(300).all(j, a == a)))",
                 HF_E_TOO_LARGE},
                {"'1'", 14,
                 "[semver('1.0.0-' + v + 'x')].all(a, [semver('1.0.0-a')].all(b, "
                 "lists.range(300).all(i, lists.range(300).all(j, a.isLessThan(b)))))",
                 HF_E_TOO_LARGE},
                {"s", 10, "v.matches('^([a-z]+)*$')", 0},
        };

        for (size_t i = 0; i < sizeof cases / sizeof cases[0]; i++) {
                int r = result_of_large(cases[i].middle, cases[i].doublings, cases[i].expression);

                if (r != cases[i].result)
                        fail_msg("%s gives %d, not %d", cases[i].expression, r, cases[i].result);
        }
}

static void test_the_patterns_of_a_program_are_limited_in_all(void **state) {
        assert_result("", "true", " && !s.matches('x{900}')", 10, 0);
        assert_result("", "true", " && !s.matches('x{900}')", 30, HF_E_INVALID);
}

#define CLASSES "lists.range(60).map(c, r'\\pL').join()" /* a pattern of 300 KiB */

static void test_the_memory_of_patterns_is_limited(void **state) {
        struct hf__cel_limits limits = {.bytes = 1 << 20};
        char *classes = repeat("", "true && !s.matches(r'", "\\pL", 60);
        char *one = repeat("", classes, "')", 1);

        assert_result("", one, "", 1, 0);
        assert_result("", one, one + strlen("true"), 10, HF_E_INVALID);
        assert_int_equal(cel_result("lists.range(2).all(i, !s.matches(string(i) + " CLASSES "))",
                                    &limits),
                         0);
        assert_int_equal(cel_result("lists.range(5).all(i, !s.matches(string(i) + " CLASSES "))",
                                    &limits),
                         HF_E_TOO_LARGE);
        assert_int_equal(cel_result("lists.range(50).all(i, !s.matches(" CLASSES "))", &limits), 0);
        /* Small programs, and patterns that are refused, take little memory or none. */
        assert_int_equal(cel_result("lists.range(1000).all(i, !s.matches(s + string(i)))", NULL),
                         0);
        assert_int_equal(cel_result("lists.range(1000).all(i, s.matches(s + '(') || true)", NULL),
                         0);
        free(one);
        free(classes);
}

/* `(?i)`, then 17 classes of all characters. */
#define ALL_CASES "'(?i)' + lists.range(17).map(c, r'[\\x{0}-\\x{10ffff}]').join()"
/* More instructions than a program may have. */
#define LONG "'a{1000}b{1000}c{1000}d{1000}e{1000}f{1000}'"
/* n words, then a mistake that is found at the end. */
#define WORDS(n) "'(?i)' + lists.range(" n ").map(c, r'\\w').join() + '('"
/* Thousands of empty groups, which need no instruction, 961 times. */
#define EMPTY_GROUPS "'((a' + lists.range(4900).map(c, '()').join() + '){31}){31}'"

/* Compiles a pattern, which may be invalid, n times: each time with another number before it. */
static int result_of_pattern(const char *pattern, unsigned n) {
        char text[400];
        int length =
                snprintf(text, sizeof text,
                         "[%s].all(p, lists.range(%u).all(i, s.matches(string(i) + p) || true))",
                         pattern, n);

        assert_in_range(length, 0, sizeof text - 1);
        return cel_result(text, NULL);
}

static void test_the_time_of_patterns_is_limited(void **state) {
        static const struct {
                const char *pattern;
                unsigned n; /* so many compilations are too much; a tenth of them is not */
        } cases[] = {
                {CLASSES, 20},       {CLASSES " + '('", 20},
                {ALL_CASES, 300},    {ALL_CASES " + '('", 300},
                {WORDS("1000"), 20},
        };
        /* One of these is too much, because Kubernetes would compile it. */
        static const char *const large[] = {WORDS("4990"), LONG, EMPTY_GROUPS};

        for (size_t i = 0; i < sizeof cases / sizeof cases[0]; i++) {
                if (result_of_pattern(cases[i].pattern, cases[i].n) != HF_E_TOO_LARGE)
                        fail_msg("%s is compiled %u times", cases[i].pattern, cases[i].n);
                if (result_of_pattern(cases[i].pattern, cases[i].n / 10) != 0)
                        fail_msg("%s is not compiled %u times", cases[i].pattern, cases[i].n / 10);
        }
        for (size_t i = 0; i < sizeof large / sizeof large[0]; i++)
                if (result_of_pattern(large[i], 1) != HF_E_TOO_LARGE)
                        fail_msg("%s is compiled", large[i]);
}

static void test_a_pattern_is_compiled_once(void **state) {
        static const char inner[] = "lists.range(100).all(x, lists.range(100).all(y, "
                                    "!s.matches('^' + string(x) + '0000001$')))";
        static const char outer[] = "lists.range(100).all(y, lists.range(100).all(x, "
                                    "!s.matches('^' + string(x) + '0000001$')))";
        static const char invalid[] = "lists.range(20000).all(x, s.matches(s + '(') || true)";
        static const struct cel_case cases[] = {
                {"[1, 2, 1, 3, 2].map(i, ['1', '2', '3'].map(t, t.matches(string(i))))",
                 "= [[true, false, false], [false, true, false], [true, false, false], "
                 "[false, false, true], [false, true, false]]"},
                /* More than the first table has room for. */
                {"lists.range(300).all(i, lists.range(300).all(j, i % 37 != 0 || j % 37 != 0 || "
                 "string(i).matches('^' + string(j) + '$') == (i == j)))",
                 "= true"},
                {"lists.range(300).all(i, ('a' + string(i)).matches('^a' + string(i) + '$') && "
                 "'a0'.matches('^a' + string(i) + '$') == (i == 0))",
                 "= true"},
                {"'a'.find('[' + 'ab]') + 'b'.find('[' + 'ab]')", "= 'ab'"},
        };

        CEL_CHECK(cases);
        assert_int_equal(cel_result(inner, NULL), 0);
        assert_int_equal(cel_result(outer, NULL), 0);
        assert_int_equal(cel_result(invalid, NULL), HF_E_TOO_LARGE);
}

/* The programs are small. */
static void test_the_time_of_literal_patterns_is_limited(void **state) {
        char *classes = repeat("", " && !s.matches(r'(?i)1", "[\\x{0}-\\x{10ffff}]", 17);
        char *one = repeat("", classes, "')", 1);

        assert_result("", "true", one, 100, 0);
        assert_result("", "true", one, 200, HF_E_INVALID);
        free(one);
        free(classes);
}

/* A definition has many expressions, and the steps of all of them have a limit. */
static void test_what_a_compilation_takes_is_known(void **state) {
        char *classes = repeat("", "!s.matches(r'(?i)1", "[\\x{0}-\\x{10ffff}]", 17);
        char *valid = repeat("", classes, "')", 1);
        char *wrong = repeat("", classes, "(')", 1);
        char *types = repeat("", "[1]", ".map(v, {v: v})", 30);

        assert_in_range(cel_compile_work("i + 1 > 2 && s.matches('a') && l.all(x, x > 0)"), 1, 500);
        assert_true(cel_compile_work(valid) > 5000);
        assert_true(cel_compile_work(wrong) > 5000);
        assert_true(cel_compile_work(types) > 5000);
        assert_int_equal(cel_compile_work("1 +"), 0);
        free(classes);
        free(valid);
        free(wrong);
        free(types);
}

static void test_unclosed_texts_take_linear_time(void **state) {
        assert_result("", "1", "\\\"\"\"", 24000, HF_E_INVALID);
        assert_result("", "'' ", "\"\"\" ", 24000, HF_E_INVALID);
}

static void test_costs_are_those_of_kubernetes(void **state) {
        static const struct {
                const char *expression;
                unsigned long long cost;
        } cases[] = {
                {"1 + 2", 1},
                {"i", 1},
                {"x.a", 2},
                {"i == 7 ? 1 : 2", 2},
                {"s + s", 3},
                {"i in l", 5},
                {"[1, 2]", 0},
                {"[i, 1]", 11},
                {"{'a': i}", 31},
                {"l.all(y, y > 0)", 17},
                {"l.all(y, y > 1)", 9},
                {"l.exists(y, y > 0)", 11},
                {"l.exists(y, y > 5)", 20},
                {"l.exists_one(y, y > 2)", 11},
                {"l.map(y, y * 2)", 44},
                {"l.map(y, y > 1, y * 2)", 36},
                {"l.filter(y, y > 1)", 34},
                {"l.transformList(k, v, v)", 41},
                {"l.transformMap(k, v, v > 1, v)", 16},
                {"m.transformMapEntry(k, v, {v: k})", 36},
                {"sets.equivalent(l, [1])", 8},
                {"s.matches('h.*o')", 2},
                {"has(x.a)", 1},
        };

        for (size_t i = 0; i < sizeof cases / sizeof cases[0]; i++)
                if (cel_cost(cases[i].expression) != cases[i].cost)
                        fail_msg("%s costs %llu, not %llu", cases[i].expression,
                                 cel_cost(cases[i].expression), cases[i].cost);
}

int main(void) {
        const struct CMUnitTest tests[] = {
                cmocka_unit_test(test_deep_and_large_expressions_are_refused),
                cmocka_unit_test(test_the_characters_of_an_expression_are_limited),
                cmocka_unit_test(test_the_counted_bytes_never_exceed_the_limit),
                cmocka_unit_test(test_without_memory_left_no_text_is_formatted),
                cmocka_unit_test(test_the_bytes_of_repeated_keys_are_work),
                cmocka_unit_test(test_the_bytes_of_repeated_elements_are_work),
                cmocka_unit_test(test_a_watched_evaluation_can_be_ended),
                cmocka_unit_test(test_what_is_absent_takes_no_memory),
                cmocka_unit_test(test_long_names_in_a_message_are_cut),
                cmocka_unit_test(test_types_that_double_are_refused),
                cmocka_unit_test(test_the_cost_limit_ends_an_evaluation),
                cmocka_unit_test(test_large_values_are_refused),
                cmocka_unit_test(test_work_that_costs_nothing_is_limited_too),
                cmocka_unit_test(test_the_patterns_of_a_program_are_limited_in_all),
                cmocka_unit_test(test_the_memory_of_patterns_is_limited),
                cmocka_unit_test(test_the_time_of_patterns_is_limited),
                cmocka_unit_test(test_a_pattern_is_compiled_once),
                cmocka_unit_test(test_the_time_of_literal_patterns_is_limited),
                cmocka_unit_test(test_what_a_compilation_takes_is_known),
                cmocka_unit_test(test_unclosed_texts_take_linear_time),
                cmocka_unit_test(test_costs_are_those_of_kubernetes),
        };

        return cmocka_run_group_tests(tests, NULL, NULL);
}

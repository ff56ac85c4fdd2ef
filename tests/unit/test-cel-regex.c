/* SPDX-License-Identifier: Apache-2.0 */
/* Regular expressions in expressions. */
#undef NDEBUG
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <string.h>

#include <cmocka.h>
#include <holdfast/error.h>

#include "base/arena.h"
#include "cel/regex/regex.h"
#include "cel/regex/regex_program.h"
#include "cel/regex/unicode.h"
#include "cel/regex/unicode_folds.h"
#include "cel_fixture.h"

static void test_patterns_match_as_re2_does(void **state) {
        static const struct cel_case cases[] = {
                {"s.matches('h.*o') && s.matches('ell') && !s.matches('^ell')", "= true"},
                {"s.matches('^(hello|bye)$')", "= true"},
                {"'aXb'.matches('(?i)AXB') && 'a\\nb'.matches('(?s)a.b')", "= true"},
                {"'a\\nb'.matches('a.b') || 'a\\nb'.matches('^b')", "= false"},
                {"'a\\nb'.matches('(?m)^b$')", "= true"},
                {"'abc'.find('b?')", "= ''"},
                {"'xaaay'.find('a+') + 'xaaay'.find('a+?')", "= 'aaaa'"},
                {"'abcd'.find('ab|abcd')", "= 'ab'"},
                {"'a1b22'.findAll('[0-9]+')", "= ['1', '22']"},
                {"'a1b22'.findAll('[0-9]', 2)", "= ['1', '2']"},
                {"'abc'.findAll('x*')", "= ['', '', '', '']"},
                {"'\xc3\xa9t\xc3\xa9'.findAll('[^t]')", "= ['\xc3\xa9', '\xc3\xa9']"},
                {"'a.b'.matches(r'^a\\.b$') && 'a b'.matches(r'\\bb\\b')", "= true"},
                {"'aaa'.matches('^a{2,3}$') && !'a'.matches('^a{2,}$')", "= true"},
                {"'a{,2}'.matches('^a{,2}$') && ']'.matches('^[]]$')", "= true"},
                {"'x-1'.matches('^[[:alpha:]][^[:alpha:]]+$')", "= true"},
                {"'\\x00'.matches('^[[:ascii:]]$') && '\\x00'.matches('^[[:cntrl:]]$')", "= true"},
                {"'\\x00'.matches('[[:^ascii:]]') || '\\x00'.matches('[[:^cntrl:]]')", "= false"},
                {"'a+b'.matches(r'^\\Qa+b\\E$') && 'A'.matches(r'^\\x{41}$')", "= true"},
                {"''.matches('^(a*)*$') && ''.matches('^()*$')", "= true"},
        };

        CEL_CHECK(cases);
}

/* An operator repeats the last thing that the pattern matches, even if flags or quotes stand
 * between. */
static void test_a_repetition_applies_to_what_was_last(void **state) {
        static const struct cel_case cases[] = {
                {"'abb'.matches(r'^\\Qab\\E*$') && !'abab'.matches(r'^\\Qab\\E*$')", "= true"},
                {"'aa'.matches(r'^a\\Q\\E{2}$') && 'aaa'.matches(r'^a+(?i)?$')", "= true"},
                {"'aaa'.matches('^a(?i)*$') && 'aA'.matches('^a(?i)a$')", "= true"},
                {"'a{02}'.matches('^a{02}$') && 'a{1,02}'.matches('^a{1,02}$')", "= true"},
        };

        CEL_CHECK(cases);
}

/* A round that matches the empty text ends the repetition, as in RE2 and Perl. */
static void test_an_empty_round_ends_a_repetition(void **state) {
        static const struct cel_case cases[] = {
                {"'aa'.find('(|a)*') + 'aa'.find('(|a)+') + 'aa'.find('(|a){2,}')", "= ''"},
                {"'aa'.find('(a|)*') + 'aa'.find('(a|)+')", "= 'aaaa'"},
                {"'aab'.find('(|a)*b') + 'aa'.find('(|a)*?') + 'aa'.find('(a*)*')", "= 'aabaa'"},
                {"'aaa'.find('a{2,}') + 'aaa'.find('a{2,}?') + 'a'.find('a{2,}')", "= 'aaaaa'"},
        };

        CEL_CHECK(cases);
}

static void test_an_escape_takes_any_character_but_letters_and_digits(void **state) {
        static const struct cel_case cases[] = {
                {"'a b'.matches('^a\\\\ b$') && 'a\\tb'.matches('^a\\\\\\tb$')", "= true"},
                {"'\\x00\\x7f'.matches('^\\\\\\x00[\\\\\\x7f]$') && '_'.matches(r'^\\_$')",
                 "= true"},
                {"s.matches(s + r'\\y')", "! error parsing regexp: invalid escape sequence: `\\y`"},
                {"s.matches(s + r'\\\u00e9')",
                 "! error parsing regexp: invalid escape sequence: `\\\u00e9`"},
                {"s.matches(s + r'\\x{g}')",
                 "! error parsing regexp: invalid escape sequence: `\\x{g`"},
                {"s.matches(s + r'[\\xg^]')",
                 "! error parsing regexp: invalid escape sequence: `\\xg^`"},
                {"s.matches(s + r'\\x4')",
                 "! error parsing regexp: invalid escape sequence: `\\x4`"},
        };

        CEL_CHECK(cases);
}

static void test_classes_of_unicode(void **state) {
        static const struct cel_case cases[] = {
                {"s.matches(r'^\\pL+$') && s.matches(r'^\\p{Ll}+$') && !s.matches(r'\\PL')",
                 "= true"},
                {"'\u03b1\u03b2'.matches(r'^\\p{Greek}+$') && !s.matches(r'\\p{Greek}')", "= true"},
                {"'\u03b1u'.matches(r'^[\\p{Greek}u]+$') && s.matches(r'[\\p{^Greek}]')", "= true"},
                {"'\u65e5\u672c'.matches(r'^\\p{Han}+$') && '\u0661'.matches(r'^\\p{Nd}$')",
                 "= true"},
                {"s.matches(r'\\p{lower case-letter}') && !s.matches(r'\\P{^Greek}')", "= true"},
                {"s.matches(r'\\p{Any}') && s.matches(r'\\p{ASCII}') && "
                 "s.matches(r'\\p{Assigned}')",
                 "= true"},
                {"'\u0378'.matches(r'^\\p{Cn}$') && '\u0378'.matches(r'^\\pC$')", "= true"},
                {"'\u212a'.matches(r'(?i)^k$') && '\u212a'.matches(r'(?i)^[a-z]$')", "= true"},
                {"'\u212a'.matches(r'(?i)^\\w$') && !'\u212a'.matches(r'(?i)^\\W$')", "= true"},
                {"'\u03c3\u03c2'.matches(r'(?i)^\u03a3+$') && 'a'.matches(r'(?i)^\\p{Lu}$')",
                 "= true"},
                {"'\u0130'.matches(r'(?i)^i$') || 'a'.matches(r'(?i)^\\P{Lu}$')", "= false"},
                {"'\u0345'.matches(r'(?i)\\p{LC}|\\p{cased_letter}')", "= false"},
                {"'\u0345'.matches(r'(?i)\\p{Ll}') && '\u0345'.matches(r'(?i)\\P{LC}')", "= true"},
                {"s.matches(r'\\p{Foo}')", "? 1:11: invalid matches argument"},
                {"s.matches(s + r'\\p{Old_Italic}')",
                 "! error parsing regexp: invalid character class range: `\\p{Old_Italic}`"},
                {"s.matches(s + r'[\\pX]')",
                 "! error parsing regexp: invalid character class range: `\\pX`"},
                {"s.matches(s + r'\\p{L')",
                 "! error parsing regexp: invalid character class range: `\\p{L`"},
                {"s.matches(s + r'\\p')",
                 "! error parsing regexp: invalid character class range: `\\p`"},
        };

        CEL_CHECK(cases);
}

/* The pattern is not a literal, so the message comes from the evaluation and not from the
 * compilation. */
static void test_refuses_what_re2_refuses(void **state) {
        static const struct cel_case cases[] = {
                {"s.matches(s + '(')", "! error parsing regexp: missing closing ): `hello(`"},
                {"s.matches(s + ')')", "! error parsing regexp: unexpected ): `hello)`"},
                {"s.matches(s + '[')", "! error parsing regexp: missing closing ]: `[`"},
                {"s.matches('' + '*')",
                 "! error parsing regexp: missing argument to repetition operator: `*`"},
                {"s.matches(s + 'a**')",
                 "! error parsing regexp: invalid nested repetition operator: `**`"},
                {"s.matches(s + 'a{1001}')",
                 "! error parsing regexp: invalid repeat count: `{1001}`"},
                {"s.matches(s + '(?=a)')",
                 "! error parsing regexp: invalid or unsupported Perl syntax: `(?=`"},
                {"s.matches(s + r'(a)\\1')",
                 "! error parsing regexp: invalid escape sequence: `\\1`"},
                {"s.matches(s + '[b-a]')",
                 "! error parsing regexp: invalid character class range: `b-a`"},
                {"s.matches('' + '((a{10}){100}){6}')",
                 "! error parsing regexp: invalid repeat count: `{6}`"},
                {"s.matches(s + '(a{500}){3}')",
                 "! error parsing regexp: invalid repeat count: `{3}`"},
                {"s.matches(s + '((a{500}){0}b){3}|(a{10}){100}')", "= false"},
                {"s.matches(s + '((((a{1000}b)+c{1000})d{1000}){1}e{1000})f{1000}')",
                 "! error parsing regexp: expression too large"},
                {"s.matches('' + '{2}')",
                 "! error parsing regexp: missing argument to repetition operator: `{2}`"},
                {"s.matches('' + '(?i)*')",
                 "! error parsing regexp: missing argument to repetition operator: `*`"},
                {"s.matches(s + r'|\\Q\\E+?')",
                 "! error parsing regexp: missing argument to repetition operator: `+?`"},
                {"s.matches(s + 'a**?')",
                 "! error parsing regexp: invalid nested repetition operator: `**?`"},
                {"s.matches(s + 'a*(?i)*(?i)*')",
                 "! error parsing regexp: expression nests too deeply: `helloa*(?i)*(?i)*`"},
        };

        CEL_CHECK(cases);
}

static void test_flags_and_names_of_groups_are_checked(void **state) {
        static const struct cel_case cases[] = {
                {"'aB'.matches('^(?i-s:A)B$') && 'ab'.matches('^(?<x_1>a)(?P<y>b)$')", "= true"},
                {"s.matches(s + '(?-)')",
                 "! error parsing regexp: invalid or unsupported Perl syntax: `(?-)`"},
                {"s.matches(s + '(?-:a)')",
                 "! error parsing regexp: invalid or unsupported Perl syntax: `(?-:`"},
                {"s.matches(s + '(?i-)')",
                 "! error parsing regexp: invalid or unsupported Perl syntax: `(?i-)`"},
                {"s.matches(s + '(?i-m-s)')",
                 "! error parsing regexp: invalid or unsupported Perl syntax: `(?i-m-`"},
                {"s.matches(s + '(?i')",
                 "! error parsing regexp: invalid or unsupported Perl syntax: `(?i`"},
                {"s.matches(s + '(?\u00e9a)')",
                 "! error parsing regexp: invalid or unsupported Perl syntax: `(?\u00e9`"},
                {"s.matches(s + '(?P<a b>c)')",
                 "! error parsing regexp: invalid named capture: `(?P<a b>`"},
                {"s.matches(s + '(?<>c)')",
                 "! error parsing regexp: invalid named capture: `(?<>`"},
                {"s.matches(s + '(?<!c)')",
                 "! error parsing regexp: invalid named capture: `(?<!c)`"},
        };

        CEL_CHECK(cases);
}

/* The message shows at most 200 bytes of the pattern, and no part of a character. */
static void test_a_long_pattern_is_cut_between_characters(void **state) {
        char pattern[205] = "(";
        char message[300];
        const struct hf__cel_regex *regex;
        struct hf__arena arena;
        uint64_t work;

        memset(pattern + 1, 'a', 198);
        memcpy(pattern + 199, "\xe6\x97\xa5", 4);
        hf__arena_init(&arena);
        assert_int_equal(hf__cel_regex_compile(&arena, pattern, strlen(pattern), &regex, message,
                                               sizeof message, &work),
                         HF_E_INVALID);
        assert_non_null(strstr(message, "aaa`"));
        hf__arena_deinit(&arena);
}

/* A class has hundreds of ranges. */
static void test_many_classes_are_refused(void **state) {
        assert_int_equal(cel_result("s.matches(lists.range(30).map(v, r'\\pL').join())", NULL), 0);
        assert_int_equal(cel_result("s.matches(lists.range(200).map(v, r'\\pL').join())", NULL),
                         HF_E_TOO_LARGE);
        assert_int_equal(cel_result("s.matches('[' + lists.range(50).map(v, r'\\pL').join() + ']')",
                                    NULL),
                         0);
        assert_int_equal(
                cel_result("s.matches('[' + lists.range(200).map(v, r'\\pL').join() + ']')", NULL),
                HF_E_TOO_LARGE);
}

/* Compiles `start`, n times `part`, and `end`. Returns the work; *ret_r gets the result. */
static uint64_t work_of(const char *start, const char *part, size_t n, const char *end,
                        int *ret_r) {
        char pattern[HF__CEL_PATTERN_MAX + 1];
        const struct hf__cel_regex *regex;
        struct hf__arena arena;
        char *at = pattern;
        char message[100];
        uint64_t work;

        assert_true(strlen(start) + n * strlen(part) + strlen(end) < sizeof pattern);
        at = stpcpy(at, start);
        for (size_t i = 0; i < n; i++)
                at = stpcpy(at, part);
        at = stpcpy(at, end);
        hf__arena_init(&arena);
        *ret_r = hf__cel_regex_compile(&arena, pattern, (size_t)(at - pattern), &regex, message,
                                       sizeof message, &work);
        hf__arena_deinit(&arena);
        return work;
}

/* Each of these parts takes more time than its bytes tell. */
static void test_the_work_of_one_pattern_is_limited(void **state) {
        static const struct {
                const char *start;
                const char *part;
                size_t n;
                const char *end;
        } cases[] = {
                {"(?i)", "\\p{Lu}", 1000, ""},
                {"(?i)[", "\\p{Lu}", 1000, "]"},
                {"", "\\pZ", 3000, ""},
                {"[", "\\PL", 3000, "]"},
                {"(?i)", "\\w", 4990, ""},
                {"(?i)[", "\\W", 4990, "]"},
                {"(?i)[", "[:word:]", 1245, "]"},
                {"(?i)[", "A-Z", 3000, "]"},
                {"((a", "()", 4900, "){31}){31}"},
                {"(?i)[", "!-\xf4\x8f\xbf\xbf", 1660, "]"},
        };
        int r;

        for (size_t i = 0; i < sizeof cases / sizeof cases[0]; i++) {
                uint64_t work =
                        work_of(cases[i].start, cases[i].part, cases[i].n, cases[i].end, &r);

                /* One part, or a sort, comes after the limit at most. */
                if (r != HF_E_TOO_LARGE || work > 2 * HF__CEL_REGEX_WORK_MAX)
                        fail_msg("%s%s: %d after %llu", cases[i].start, cases[i].part, r,
                                 (unsigned long long)work);
        }
}

/* Patterns without classes take few steps for each byte, also those that once took the square. */
static void test_the_work_grows_with_the_pattern(void **state) {
        static const struct {
                const char *start;
                const char *part;
                const char *end;
        } cases[] = {
                {"", "a", ""},        {"(?i)", "k", ""}, {"", "()", ""},     {"[", "za", "]"},
                {"(?i)[", "za", "]"}, {"[", "[:", "a]"}, {"[", "z[:", "a]"}, {"", "a{10}", ""},
        };
        int r;

        for (size_t i = 0; i < sizeof cases / sizeof cases[0]; i++)
                for (size_t n = 64; n <= 8192; n *= 2) {
                        uint64_t work = work_of(cases[i].start, cases[i].part,
                                                n / strlen(cases[i].part), cases[i].end, &r);

                        if (work > 100 + 20 * n)
                                fail_msg("%s: %llu for %zu bytes", cases[i].part,
                                         (unsigned long long)work, n);
                }
}

/* The sum of what is left of the first part of an arena, which has no other part. */
static size_t free_bytes(const struct hf__arena *arena) {
        assert_null(arena->chunks);
        return arena->n_free;
}

static void test_an_invalid_pattern_takes_no_memory(void **state) {
        static const char pattern[] = "(?i)[\\pL\\pN]+(";
        const struct hf__cel_regex *regex;
        struct hf__arena arena;
        char message[100];
        uint64_t work;

        hf__arena_init(&arena);
        size_t before = free_bytes(&arena);
        assert_int_equal(hf__cel_regex_compile(&arena, pattern, strlen(pattern), &regex, message,
                                               sizeof message, &work),
                         HF_E_INVALID);
        assert_int_equal(free_bytes(&arena), before);
        assert_string_equal(message, "error parsing regexp: missing closing ): `(?i)[\\pL\\pN]+(`");
        hf__arena_deinit(&arena);
}

static void test_the_memory_of_a_program_is_counted(void **state) {
        /* Two sets, of which the repetition shares the first, and 12 instructions. */
        static const char pattern[] = "a{10}b";
        const struct hf__cel_regex *regex;
        struct hf__arena arena;
        char message[100];
        uint64_t work;

        hf__arena_init(&arena);
        assert_int_equal(hf__cel_regex_compile(&arena, pattern, strlen(pattern), &regex, message,
                                               sizeof message, &work),
                         0);
        assert_int_equal(regex->n_bytes,
                         sizeof *regex + 12 * sizeof *regex->instructions +
                                 2 * (sizeof(struct hf__cel_set) + sizeof(struct hf__cel_range)));
        assert_ptr_equal(regex->instructions[0].set, regex->instructions[9].set);
        hf__arena_deinit(&arena);
}

static void test_a_range_has_all_cases_of_its_characters(void **state) {
        for (size_t i = 0; i < hf__cel_n_folds; i += 5) {
                uint32_t first = hf__cel_folds[i].from;
                struct hf__cel_set set = {0};
                struct hf__arena arena;
                struct hf__cel_set_maker maker = {.arena = &arena};

                hf__arena_init(&arena);
                assert_true(hf__cel_set_add(&maker, &set, first, first + (uint32_t)i % 70, true));
                assert_true(hf__cel_set_finish(&maker, &set, false));
                for (size_t k = 0; k < hf__cel_n_folds; k++)
                        if (hf__cel_set_has(&set, hf__cel_folds[k].from) !=
                            hf__cel_set_has(&set, hf__cel_folds[k].to))
                                fail_msg("only one case of U+%04x is in the set from U+%04x",
                                         (unsigned)hf__cel_folds[k].from, (unsigned)first);
                hf__arena_deinit(&arena);
        }
}

/* Every character has the class Any, so ignoring case adds none to it. */
static void test_the_class_of_all_characters_is_one_range(void **state) {
        struct hf__cel_set set = {0};
        struct hf__arena arena;
        struct hf__cel_set_maker maker = {.arena = &arena};
        bool known;

        hf__arena_init(&arena);
        assert_true(hf__cel_set_add_unicode(&maker, &set, "Any", 3, false, true, &known) && known);
        assert_int_equal(set.n, 1);
        assert_true(free_bytes(&arena) > 0);
        hf__arena_deinit(&arena);
}

static void test_hostile_patterns_end(void **state) {
        assert_int_equal(cel_result("'aaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaa'.matches("
                                    "'^(a?){40}(a*)*(a|aa)+$b')",
                                    NULL),
                         0);
        assert_int_not_equal(cel_result("''.matches('((((){1000}){1000}){1000}){1000}')", NULL),
                             -1);
}

int main(void) {
        const struct CMUnitTest tests[] = {
                cmocka_unit_test(test_patterns_match_as_re2_does),
                cmocka_unit_test(test_a_repetition_applies_to_what_was_last),
                cmocka_unit_test(test_an_empty_round_ends_a_repetition),
                cmocka_unit_test(test_an_escape_takes_any_character_but_letters_and_digits),
                cmocka_unit_test(test_classes_of_unicode),
                cmocka_unit_test(test_refuses_what_re2_refuses),
                cmocka_unit_test(test_flags_and_names_of_groups_are_checked),
                cmocka_unit_test(test_a_long_pattern_is_cut_between_characters),
                cmocka_unit_test(test_many_classes_are_refused),
                cmocka_unit_test(test_the_work_of_one_pattern_is_limited),
                cmocka_unit_test(test_the_work_grows_with_the_pattern),
                cmocka_unit_test(test_an_invalid_pattern_takes_no_memory),
                cmocka_unit_test(test_the_memory_of_a_program_is_counted),
                cmocka_unit_test(test_a_range_has_all_cases_of_its_characters),
                cmocka_unit_test(test_the_class_of_all_characters_is_one_range),
                cmocka_unit_test(test_hostile_patterns_end),
        };

        return cmocka_run_group_tests(tests, NULL, NULL);
}

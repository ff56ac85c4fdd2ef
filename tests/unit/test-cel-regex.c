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
                {"s.matches(s + '((a{100}){100}){100}')",
                 "! error parsing regexp: expression too large"},
        };

        CEL_CHECK(cases);
}

/* A class has hundreds of ranges. */
static void test_many_classes_are_refused(void **state) {
        assert_int_equal(cel_result("s.matches(lists.range(30).map(v, r'\\pL').join())", NULL), 0);
        assert_int_equal(cel_result("s.matches(lists.range(200).map(v, r'\\pL').join())", NULL),
                         HF_E_INVALID);
        assert_int_equal(cel_result("s.matches('[' + lists.range(50).map(v, r'\\pL').join() + ']')",
                                    NULL),
                         HF_E_INVALID);
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

        hf__arena_init(&arena);
        size_t before = free_bytes(&arena);
        assert_int_equal(hf__cel_regex_compile(&arena, pattern, strlen(pattern), &regex, message,
                                               sizeof message),
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

        hf__arena_init(&arena);
        assert_int_equal(hf__cel_regex_compile(&arena, pattern, strlen(pattern), &regex, message,
                                               sizeof message),
                         0);
        assert_int_equal(regex->n_bytes,
                         sizeof *regex + 12 * sizeof *regex->instructions +
                                 2 * (sizeof(struct hf__cel_set) + sizeof(struct hf__cel_range)));
        assert_ptr_equal(regex->instructions[0].set, regex->instructions[9].set);
        hf__arena_deinit(&arena);
}

/* Every character has the class Any, so ignoring case adds none to it. */
static void test_the_class_of_all_characters_is_one_range(void **state) {
        struct hf__cel_set set = {0};
        struct hf__arena arena;
        bool known;

        hf__arena_init(&arena);
        assert_true(hf__cel_set_add_unicode(&arena, &set, "Any", 3, false, true, &known) && known);
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
                cmocka_unit_test(test_classes_of_unicode),
                cmocka_unit_test(test_refuses_what_re2_refuses),
                cmocka_unit_test(test_many_classes_are_refused),
                cmocka_unit_test(test_an_invalid_pattern_takes_no_memory),
                cmocka_unit_test(test_the_memory_of_a_program_is_counted),
                cmocka_unit_test(test_the_class_of_all_characters_is_one_range),
                cmocka_unit_test(test_hostile_patterns_end),
        };

        return cmocka_run_group_tests(tests, NULL, NULL);
}

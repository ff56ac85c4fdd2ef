/* SPDX-License-Identifier: Apache-2.0 */
/* The syntax of expressions: literals, precedence, and where and how mistakes are reported. */
#undef NDEBUG
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <string.h>

#include <cmocka.h>

#include "cel_fixture.h"

static void test_literals_have_exact_values(void **state) {
        static const struct cel_case cases[] = {
                {"0x7fffffffffffffff", "= 9223372036854775807"},
                {"-9223372036854775808", "= -9223372036854775808"},
                {"18446744073709551615u", "= 18446744073709551615u"},
                {"0xffu", "= 255u"},
                {".5e1", "= double 5"},
                {"1.7976931348623157e308", "= double 1.7976931348623157e+308"},
                {"'a\\n\\x41\\101\\u00e9'", "= 'a\\x0aAA\xc3\xa9'"},
                {"r'a\\n'", "= 'a\\x5cn'"},
                {"b'\\xff\\303'", "= b'\\xff\\xc3'"},
                {"'''a'b''c'''", "= 'a\\x27b\\x27\\x27c'"},
                {"\"\"\"x\r\ny\"\"\"", "= 'x\\x0ay'"},
                {"[null, true, false]", "= [null, true, false]"},
                {"// comment\n1", "= 1"},
        };

        CEL_CHECK(cases);
}

static void test_operators_bind_by_their_precedence(void **state) {
        static const struct cel_case cases[] = {
                {"1 + 2 * 3 - 4 / 2", "= 5"},
                {"10 - 3 - 2", "= 5"},
                {"-(1 + 2) == -3", "= true"},
                {"!false && true || false", "= true"},
                {"false ? 1 : true ? 2 : 3", "= 2"},
                {"1 < 2 == true", "= true"},
                {"1 in [1] == true", "= true"},
                {"--1", "= 1"},
                {"!!true", "= true"},
                {"-1.5", "= double -1.5"},
                {"[1, 2,][1]", "= 2"},
                {"{'a': 1,}.a", "= 1"},
                {"{'a-b': 1}.`a-b`", "= 1"},
        };

        CEL_CHECK(cases);
}

#define OPERAND                                                                                    \
        "{'[', '{', '(', '.', '-', '!', 'true', 'false', 'null', NUM_FLOAT, NUM_INT, NUM_UINT, "   \
        "STRING, BYTES, IDENTIFIER}"

static void test_reports_a_mistake_where_it_is(void **state) {
        static const struct cel_case cases[] = {
                {"", "? 1:1: Syntax error: mismatched input '<EOF>' expecting " OPERAND},
                {"1 +", "? 1:4: Syntax error: mismatched input '<EOF>' expecting " OPERAND},
                {"1 +\n )", "? 2:2: Syntax error: mismatched input ')' expecting " OPERAND},
                {"i s", "? 1:3: Syntax error: extraneous input 's' expecting <EOF>"},
                {"i | s", "? 1:3: Syntax error: token recognition error at: '| '"},
                {"(1", "? 1:3: Syntax error: missing ')' at '<EOF>'"},
                {"[1, 2", "? 1:6: Syntax error: mismatched input '<EOF>' expecting {']', ','}"},
                {"{1, 2}", "? 1:3: Syntax error: mismatched input ',' expecting ':'"},
                {"i.", "? 1:3: Syntax error: no viable alternative at input '.'"},
                {"i . 5", "? 1:5: Syntax error: no viable alternative at input '. 5'"},
                {"i.true", "? 1:3: Syntax error: mismatched input 'true' expecting IDENTIFIER"},
                {"i.?", "? 1:4: Syntax error: mismatched input '<EOF>' expecting {IDENTIFIER, "
                        "ESC_IDENTIFIER}"},
                {".", "? 1:2: Syntax error: no viable alternative at input '.'"},
                {". 'x'", "? 1:3: Syntax error: no viable alternative at input '. 'x''"},
                {".true", "? 1:2: Syntax error: mismatched input 'true' expecting IDENTIFIER"},
                {". for", "? 1:1: reserved identifier: for"},
                {"a.`b`{}", "? 1:6: Syntax error: mismatched input '{' expecting <EOF>"},
                {"a.`b`.c{}", "? 1:8: Syntax error: mismatched input '{' expecting <EOF>"},
                {"'\xc3\xa9' + \"x", "? 1:7: Syntax error: token recognition error at: '\"x'"},
                {"99999999999999999999", "? 1:1: invalid int literal"},
                {"-9223372036854775809", "? 1:1: invalid int literal"},
                {"18446744073709551616u", "? 1:1: invalid uint literal"},
                {"1e999", "? 1:1: invalid double literal"},
                {"'\\U00110000'", "? 1:1: invalid unicode code point"},
                {"b'\\u00e9'", "? 1:1: unable to unescape string"},
                {"for", "? 1:1: reserved identifier: for"},
                {"has(i)", "? 1:5: invalid argument to has() macro"},
                {"l.all(1, true)", "? 1:7: argument must be a simple name"},
                {"l.exists(a, a, true)", "? 1:13: duplicate variable name: a"},
                {"l.map(__result__, 1)",
                 "? 1:7: iteration variable overwrites accumulator variable"},
        };

        CEL_CHECK(cases);
}

int main(void) {
        const struct CMUnitTest tests[] = {
                cmocka_unit_test(test_literals_have_exact_values),
                cmocka_unit_test(test_operators_bind_by_their_precedence),
                cmocka_unit_test(test_reports_a_mistake_where_it_is),
        };

        return cmocka_run_group_tests(tests, NULL, NULL);
}

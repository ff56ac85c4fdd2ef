/* SPDX-License-Identifier: Apache-2.0 */
/* The evaluation of operators and macros, and how errors propagate. */
#undef NDEBUG
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <string.h>

#include <cmocka.h>

#include "cel_fixture.h"

static void test_numbers_never_wrap(void **state) {
        static const struct cel_case cases[] = {
                {"9223372036854775807 + 1", "! integer overflow"},
                {"-9223372036854775808 - 1", "! integer overflow"},
                {"9223372036854775807 * 2", "! integer overflow"},
                {"-9223372036854775808 / -1", "! integer overflow"},
                {"-9223372036854775808 % -1", "! integer overflow"},
                {"-(-9223372036854775808)", "! integer overflow"},
                {"18446744073709551615u + 1u", "! unsigned integer overflow"},
                {"0u - 1u", "! unsigned integer overflow"},
                {"1 / 0", "! division by zero"},
                {"1u % 0u", "! modulus by zero"},
                {"1.0 / 0.0", "= double +Inf"},
                {"-7 / 2", "= -3"},
                {"-7 % 2", "= -1"},
        };

        CEL_CHECK(cases);
}

static void test_numbers_of_different_types_compare_by_value(void **state) {
        static const struct cel_case cases[] = {
                {"dyn(1) == 1u && dyn(1u) == 1.0", "= true"},
                {"-1 < 1u", "= true"},
                {"18446744073709551615u > 9223372036854775807", "= true"},
                {"1 < 1.5 && 2u > 1.5", "= true"},
                {"{1: 'a'}[dyn(1.0)]", "= 'a'"},
                {"dyn(1) in {1u: 2}", "= true"},
                {"0.0 / 0.0 == 0.0 / 0.0", "= false"},
                {"1 < 0.0 / 0.0", "! NaN values cannot be ordered"},
        };

        CEL_CHECK(cases);
}

static void test_equality_looks_into_containers(void **state) {
        static const struct cel_case cases[] = {
                {"[1, [2, 'a']] == [1, [2, 'a']]", "= true"},
                {"{'a': [1], 'b': 2} == {'b': 2, 'a': [1]}", "= true"},
                {"dyn([1]) == 1", "= false"},
                {"optional.of(1) == optional.of(1)", "= true"},
                {"optional.none() == optional.of(1)", "= false"},
                {"{'a': 1, 'a': 2}", "= {'a': 2}"},
                {"{1.5: 2}", "! unsupported key type"},
                {"[1][1]", "! index out of bounds: 1"},
                {"m.b", "! no such key: b"},
                {"{5: 1}[6]", "! no such key: 6"},
                {"{5: 1}[dyn(5.5)]", "! no such key: 5.5"},
        };

        CEL_CHECK(cases);
}

static void test_logic_absorbs_errors_that_do_not_matter(void **state) {
        static const struct cel_case cases[] = {
                {"1 / 0 > 1 && false", "= false"},
                {"1 / 0 > 1 || true", "= true"},
                {"1 / 0 > 1 && true", "! division by zero"},
                {"false && 1 / 0 > 1", "= false"},
                {"true ? 1 : 1 / 0", "= 1"},
                {"dyn('a') && true", "! no such overload"},
                {"dyn('a') + 1 == 2", "! no such overload"},
                {"dyn(1).startsWith('a')", "! no such overload"},
                {"dyn(1).size() > 0", "! no such overload: size"},
                {"dyn(1).split(',') == []", "! no such overload: split(int, string)"},
                {"dyn(1).all(y, true)", "! got 'types.Int', expected iterable type"},
                {"[1, 2].exists(v, v == 2 || 1 / (v - 1) > 5)", "= true"},
                {"[1, 2].all(v, 1 / (v - 1) > 5)", "= false"},
                {"[1, 2].all(v, 1 / (v - 1) > 0)", "! division by zero"},
                {"[1, 2].exists_one(v, v / 0 == 1)", "! division by zero"},
        };

        CEL_CHECK(cases);
}

static void test_macros_walk_lists_and_maps(void **state) {
        static const struct cel_case cases[] = {
                {"[].all(v, false)", "= true"},
                {"[].exists(v, true)", "= false"},
                {"l.exists_one(v, v > 2)", "= true"},
                {"l.map(v, v > 1, v * 10)", "= [20, 30]"},
                {"l.filter(v, v % 2 == 1)", "= [1, 3]"},
                {"{'a': 1, 'b': 2}.map(k, k + '!')", "= ['a!', 'b!']"},
                {"{'a': 1, 'b': 2}.all(k, v, v > 0 && k != 'c')", "= true"},
                {"l.exists(k, v, k == 2 && v == 3)", "= true"},
                {"l.transformList(k, v, k * v)", "= [0, 2, 6]"},
                {"l.transformMap(k, v, v > 1, v * v)", "= {1: 4, 2: 9}"},
                {"m.transformMapEntry(k, v, {v: k})", "= {1: 'a'}"},
                {"[1, 2, 1].transformMapEntry(i, v, {v: i})",
                 "! insert failed: key 1 already exists"},
                {"[5, 6].transformMapEntry(i, v, {'a': i})",
                 "! insert failed: key a already exists"},
                {"lists.range(20).transformMapEntry(i, v, {uint(v % 19): i})",
                 "! insert failed: key 0 already exists"},
                {"[5, 6].transformMapEntry(i, v, {true: i})",
                 "! insert failed: key true already exists"},
                {"lists.range(20).transformMapEntry(i, v, {v: i}).size()", "= 20"},
                {"l.map(a, l.map(b, a * b))", "= [[1, 2, 3], [2, 4, 6], [3, 6, 9]]"},
                {"has(m.a) && !has(m.b) && has(x.b)", "= true"},
                {"dyn(i).all(v, false)", "! got 'types.Int', expected iterable type"},
                {"dyn(optional.of(l)).all(v, false)", "! no such overload"},
                {"dyn(optional.of(l)).map(v, v)", "! no such overload"},
        };

        CEL_CHECK(cases);
}

static void test_optional_values(void **state) {
        static const struct cel_case cases[] = {
                {"m.?b", "= optional.none()"},
                {"m.?a", "= optional(1)"},
                {"m.?a.orValue(5) + m.?b.orValue(5)", "= 6"},
                {"l[?5].or(optional.of(9)).value()", "= 9"},
                {"m[?'a'].hasValue()", "= true"},
                {"optional.none().value()", "! optional.none() dereference"},
                {"optional.ofNonZeroValue('')", "= optional.none()"},
                {"[?m.?a, ?m.?b, 3]", "= [1, 3]"},
                {"{?'x': m.?b, ?'y': m.?a}", "= {'y': 1}"},
                {"optional.of(1).orValue(1 / 0)", "= 1"},
                {"m.?b.optMap(v, v / 0)", "= optional.none()"},
                {"m.?a.optFlatMap(v, m.?b)", "= optional.none()"},
                {"dyn(m.?a).optMap(v, v + 1)", "= optional(2)"},
                {"dyn(i).optMap(v, v + 1)", "! no such overload"},
                /* What is no container has no fields and no elements. */
                {"dyn(i).?a.orValue(1) + dyn(s)[?0].orValue(2)", "= 3"},
                {"x.?a.b.?c", "= optional.none()"},
                {"dyn(optional.of(1)).a", "= optional.none()"},
                {"has(dyn(i).?a.b) || has(dyn(i).a)", "= false"},
                {"dyn(s)[0]", "! no such key: 0"},
                {"dyn(l).?a", "! unsupported index type 'string' in list"},
                {"has(dyn(l).a)", "! unsupported index type 'string' in list"},
                {"dyn(l)[?'a']", "! unsupported index type 'string' in list"},
                {"dyn(l)[1.5]", "! unsupported index value 1.5 in list"},
                {"dyn(optional.of(l))['a']", "! unsupported index type 'string' in list"},
                {"[?dyn(s)]",
                 "! cannot initialize optional list element from non-optional value hello"},
                {"{?'a': dyn(i)}",
                 "! cannot initialize optional entry 'a' from non-optional value 7"},
                {"{?1: dyn(true)}",
                 "! cannot initialize optional entry '1' from non-optional value true"},
                {"[?dyn(1.5)]",
                 "! cannot initialize optional list element from non-optional value 1.5"},
                {"[?dyn(l)]",
                 "! cannot initialize optional list element from non-optional value list"},
        };

        CEL_CHECK(cases);
}

int main(void) {
        const struct CMUnitTest tests[] = {
                cmocka_unit_test(test_numbers_never_wrap),
                cmocka_unit_test(test_numbers_of_different_types_compare_by_value),
                cmocka_unit_test(test_equality_looks_into_containers),
                cmocka_unit_test(test_logic_absorbs_errors_that_do_not_matter),
                cmocka_unit_test(test_macros_walk_lists_and_maps),
                cmocka_unit_test(test_optional_values),
        };

        return cmocka_run_group_tests(tests, NULL, NULL);
}

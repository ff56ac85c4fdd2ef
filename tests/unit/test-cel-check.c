/* SPDX-License-Identifier: Apache-2.0 */
/* The checker of expressions: types of results, and the messages of its issues. */
#undef NDEBUG
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <string.h>

#include <cmocka.h>

#include "cel_fixture.h"

static void test_accepts_what_fits(void **state) {
        static const struct cel_case cases[] = {
                {"x.anything == 1 || true", "= true"},
                {"type(i) == int && type(null) == null_type", "= true"},
                {"type(duration('1s')) == google.protobuf.Duration", "= true"},
                {"dyn(i) + 1", "= 8"},
                {"i < 7.5 && i > 6u", "= true"},
                {"[1, 'a', 2.5]", "= [1, 'a', double 2.5]"},
                {"[[], [1]][1]", "= [1]"},
                {"optional.of(1).optMap(v, v + 1)", "= optional(2)"},
                {"[optional.none(), optional.of(1)][1].value()", "= 1"},
                {"true ? null : timestamp(0)", "= null"},
                {".i", "= 7"},
                {"l.map(i, i * 2)", "= [2, 4, 6]"},
        };

        CEL_CHECK(cases);
}

static void test_refuses_what_does_not_fit(void **state) {
        static const struct cel_case cases[] = {
                {"unknown", "? 1:1: undeclared reference to 'unknown' (in container '')"},
                {"f(1)", "? 1:2: undeclared reference to 'f' (in container '')"},
                {"i.f()", "? 1:4: undeclared reference to 'f' (in container '')"},
                {"Foo{a: 1}", "? 1:4: undeclared reference to 'Foo' (in container '')"},
                {"i + s", "? 1:3: found no matching overload for '_+_' applied to '(int, string)'"},
                {"i + 1u", "? 1:3: found no matching overload for '_+_' applied to '(int, uint)'"},
                {"i == s",
                 "? 1:3: found no matching overload for '_==_' applied to '(int, string)'"},
                {"s.size(1)",
                 "? 1:7: found no matching overload for 'size' applied to 'string.(int)'"},
                {"1 in m", "? 1:3: found no matching overload for '@in' applied to '(int, "
                           "map(string, int))'"},
                {"m[1]", "? 1:2: found no matching overload for '_[_]' applied to '(map(string, "
                         "int), int)'"},
                {"i ? 1 : 2",
                 "? 1:3: found no matching overload for '_?_:_' applied to '(int, int, int)'"},
                {"s && true", "? 1:1: expected type 'bool' but found 'string'"},
                {"-duration('1s')",
                 "? 1:1: found no matching overload for '-_' applied to '(duration)'"},
                {"i.foo", "? 1:2: type 'int' does not support field selection"},
                {"m.a.b", "? 1:4: type 'int' does not support field selection"},
                {"i.all(y, true)", "? 1:1: expression of type 'int' cannot be range of a "
                                   "comprehension (must be list, map, or dynamic)"},
                {"l.all(y, y)", "? 1:10: expected type 'bool' but found 'int'"},
                {"l.filter(y, y)", "? 1:9: found no matching overload for '_?_:_' applied to "
                                   "'(int, list(int), list(int))'"},
                {"l.exists_one(y, y)", "? 1:13: found no matching overload for '_?_:_' applied to "
                                       "'(int, int, int)'"},
                {"[?1]", "? 1:3: expected type 'optional_type(int)' but found 'int'"},
                {"s.matches('(')", "? 1:11: invalid matches argument"},
                /* Only a limit that Kubernetes does not have refuses it. */
                {"s.matches('((a?){1000}){1}((b?){1000}){1}((c?){1000}){1}')",
                 "? 1:11: invalid matches argument: error parsing regexp: expression too large"},
                {"timestamp('x')", "? 1:11: invalid timestamp argument"},
                {"duration('1')", "? 1:10: invalid duration argument"},
        };

        CEL_CHECK(cases);
}

/* As in cel-go 0.26 it does not reach past the variable of a macro. */
static void test_a_leading_dot_changes_nothing_but_macros(void **state) {
        static const struct cel_case cases[] = {
                {".sets.contains(l, [1]) && .  sets . contains(l, [2])", "= true"},
                {"l.all(y, .sets.contains(l, [y]))", "= true"},
                {". i + .int('1') + . size(l)", "= 11"},
                {". google . protobuf.Timestamp == type(timestamp(0))", "= true"},
                {"l.map(y, .y + . y)", "= [2, 4, 6]"},
                {"l.map(int, .int)", "= [1, 2, 3]"},
                {"[m].map(y, .y.a)", "= [1]"},
                {"has(.Object{a: . Object.a{}}.a) && !has(Object{}.a)", "= true"},
                {".Foo{}", "? 1:5: undeclared reference to '.Foo' (in container '')"},
                {".has(m.a)", "? 1:5: undeclared reference to '.has' (in container '')"},
                {".nope(1)", "? 1:6: undeclared reference to '.nope' (in container '')"},
                {". nope", "? 1:3: undeclared reference to '.nope' (in container '')"},
                {".dyn(i).startsWith('a')", "! no such overload"},
                {".split(i)", "? 1:7: found no matching overload for 'split' applied to '(int)'"},
        };

        CEL_CHECK(cases);
}

/* Local variables have no dots in their names. */
static void test_a_name_with_dots_is_found_before_the_variable_of_a_macro(void **state) {
        static const struct cel_case cases[] = {
                {"l.all(sets, sets.contains([sets], [sets]))", "= true"},
                {"[{'protobuf': {'Timestamp': 1}}].map(google, google.protobuf.Timestamp)",
                 "= [type(google.protobuf.Timestamp)]"},
                {"[{'protobuf': {'Any': 1}}].map(google, google.protobuf.Any)", "= [1]"},
        };

        CEL_CHECK(cases);
}

static void test_literals_do_not_mix_types_where_kubernetes_forbids_it(void **state) {
        static const struct cel_case cases[] = {
                {"[1, 'a']", "? 1:5: expected type 'int' but found 'string'"},
                {"{'a': 1, 'b': 2u}", "? 1:15: expected type 'int' but found 'uint'"},
                {"[1, dyn('a')]", "? 1:8: expected type 'int' but found 'dyn'"},
                {"[dyn(1), dyn('a')]", "= [1, 'a']"},
                {"[[], ['a'], [1]]", "? 1:13: expected type 'list(string)' but found 'list(int)'"},
                {"[1, 'a'] == y", "? 1:13: undeclared reference to 'y' (in container '')"},
                {"'%s'.format([[1, 'a'].map(y, [y, 'b'])])", "= '[[1, \"b\"], [\"a\", \"b\"]]'"},
        };

        cel_check_strict(cases, sizeof cases / sizeof cases[0]);
}

int main(void) {
        const struct CMUnitTest tests[] = {
                cmocka_unit_test(test_accepts_what_fits),
                cmocka_unit_test(test_refuses_what_does_not_fit),
                cmocka_unit_test(test_a_leading_dot_changes_nothing_but_macros),
                cmocka_unit_test(test_a_name_with_dots_is_found_before_the_variable_of_a_macro),
                cmocka_unit_test(test_literals_do_not_mix_types_where_kubernetes_forbids_it),
        };

        return cmocka_run_group_tests(tests, NULL, NULL);
}

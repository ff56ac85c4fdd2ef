/* SPDX-License-Identifier: Apache-2.0 */
/* Functions that return new lists, and their costs. */
#undef NDEBUG
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <string.h>

#include <cmocka.h>
#include <holdfast/error.h>

#include "cel_fixture.h"

#include <math.h>

#include "base/arena.h"
#include "cel/values/run.h"

static void test_lists_are_cut_and_joined(void **state) {
        static const struct cel_case cases[] = {
                {"l.slice(0, 2)", "= [1, 2]"},
                {"l.slice(3, 3)", "= []"},
                {"l.slice(-1, 2)", "! cannot slice(-1, 2), negative indexes not supported"},
                {"l.slice(2, 1)",
                 "! cannot slice(2, 1), start index must be less than or equal to end index"},
                {"l.slice(0, 4)", "! cannot slice(0, 4), list is length 3"},
                {"[[1], [2, 3]].flatten()", "= [1, 2, 3]"},
                {"[[1], [[2], [3, [4]]]].flatten(2)", "= [1, 2, 3, [4]]"},
                {"[[1], [2]].flatten(0)", "= [[1], [2]]"},
                {"[[1]].flatten(-1)", "! level must be non-negative"},
                {"x.b.flatten()", "= [1, double 2.5, 'c']"},
                {"[1, 2].flatten()",
                 "? 1:15: found no matching overload for 'flatten' applied to 'list(int).()'"},
                {"l.reverse()", "= [3, 2, 1]"},
                {"[].reverse()", "= []"},
                {"s.reverse()",
                 "? 1:10: found no matching overload for 'reverse' applied to 'string.()'"},
                {"[1, 2, 1, 3, 2].distinct()", "= [1, 2, 3]"},
                {"[dyn(1), dyn(1.0), dyn(1u), dyn('1')].distinct()", "= [1, '1']"},
                {"[[1], [1], [2]].distinct()", "= [[1], [2]]"},
                {"lists.range(4)", "= [0, 1, 2, 3]"},
                {"lists.range(-1)", "= []"},
                {"l.first().value() + l.last().orValue(0)", "= 4"},
                {"[].first().hasValue() || l.filter(y, y > 3).last().hasValue()", "= false"},
                {"optional.unwrap([optional.of(1), optional.none(), optional.of(2)])", "= [1, 2]"},
                {"[optional.of(1), optional.none()].unwrapOpt()", "= [1]"},
        };

        CEL_CHECK(cases);
}

static void test_lists_are_sorted(void **state) {
        static const struct cel_case cases[] = {
                {"[3, 1, 2].sort()", "= [1, 2, 3]"},
                {"['b', 'ab', 'a', ''].sort()", "= ['', 'a', 'ab', 'b']"},
                {"[true, false].sort()", "= [false, true]"},
                {"[duration('2s'), duration('1s')].sort()", "= [1s, 2s]"},
                {"[2.5, -0.5].sort()", "= [double -0.5, double 2.5]"},
                {"[].sort()", "= []"},
                /* What comes after a NaN does not pass it, in a list of at most twelve. */
                {"[3.0, 2.0, 0.0 / 0.0, 1.0, 0.0].sort().map(y, y == y, y)",
                 "= [double 2, double 3, double 0, double 1]"},
                {"x.b.sort()", "! list elements must have the same type"},
                {"[dyn(l), dyn(l)].sort()", "! list elements must be comparable"},
                {"[l].sort()",
                 "? 1:9: found no matching overload for 'sort' applied to 'list(list(int)).()'"},
                {"l.sortBy(y, -y)", "= [3, 2, 1]"},
                {"['ccc', 'a', 'bb'].sortBy(y, y.size())", "= ['a', 'bb', 'ccc']"},
                {"['b1', 'a2', 'a1', 'b2'].sortBy(y, y.charAt(0))", "= ['a2', 'a1', 'b1', 'b2']"},
                {"[{'n': 2}, {'n': 1}].sortBy(y, y.n)", "= [{'n': 1}, {'n': 2}]"},
                {"[{'n': 2}, {'n': 1}].sortBy(y, y.o)", "! no such key: o"},
                {"lists.range(100).sortBy(y, -y).slice(0, 3)", "= [99, 98, 97]"},
                {"l.sortBy(y, [y])",
                 "? 1:9: found no matching overload for '@sortByAssociatedKeys' applied to "
                 "'list(int).(list(list(int)))'"},
                {"m.sortBy(y, y)",
                 "? 1:9: found no matching overload for '@sortByAssociatedKeys' applied to "
                 "'map(string, int).(list(string))'"},
                {"s.sortBy(y.z, y)", "? 1:11: argument is not an identifier"},
                {"'abc'.sortBy(y, y)", "? 1:1: sortBy can only be applied to a list, identifier, "
                                       "comprehension, call or select expression"},
        };

        CEL_CHECK(cases);
}

static void test_costs_are_those_of_kubernetes(void **state) {
        static const struct {
                const char *expression;
                unsigned long long cost;
        } cases[] = {
                {"l.slice(0, 2)", 14},
                {"l.slice(1, 1)", 12},
                {"[[1], [2, 3]].flatten()", 13},
                {"[l, l].flatten(i)", 38},
                {"lists.range(5)", 16},
                {"lists.range(0)", 11},
                {"l.reverse()", 15},
                {"l.distinct()", 30},
                {"l.sort()", 30},
                {"['b', 'a'].sort()", 19},
                {"l.sortBy(y, -y)", 75},
                {"['c', 'bb', 'a'].sortBy(y, y)", 71},
                {"[].sortBy(y, y)", 14},
                {"l.first()", 2},
                {"l.isSorted()", 4},
                {"['a', 'b'].isSorted()", 0},
                {"['a', 'b', 'abcdefghijklmnopqrstuvwxyz'].max()", 2},
                {"[m, m].indexOf(m)", 15},
                {"['abc', 'defg'].join('----')", 3},
                {"s.replace('l', 'xx')", 2},
                {"s.indexOf('l')", 1},
        };

        for (size_t i = 0; i < sizeof cases / sizeof cases[0]; i++)
                if (cel_cost(cases[i].expression) != cases[i].cost)
                        fail_msg("%s costs %llu, not %llu", cases[i].expression,
                                 cel_cost(cases[i].expression), cases[i].cost);
}

/* A short expression that names a huge list ends before the list is made. */
static void test_huge_lists_end_at_the_limit(void **state) {
        static const char *const expressions[] = {
                "lists.range(9223372036854775807).size() > 0",
                "lists.range(2000000).size() > 0",
                "lists.range(2000).distinct().size() > 0",
                "lists.range(2000).sort().size() > 0",
                "[l].flatten(9223372036854775807).size() > 0",
                "lists.range(900).map(a, lists.range(900)).flatten().size() > 0",
        };

        for (size_t i = 0; i < sizeof expressions / sizeof expressions[0]; i++)
                assert_int_equal(cel_result(expressions[i], NULL), HF_E_TOO_LARGE);
}

static struct hf__cel_value key_itself(struct hf__cel_run *run, const struct hf__cel_list *list,
                                       struct hf__cel_value element) {
        return element;
}

/* Go's maps find no NaN, so Kubernetes adds each. */
static void test_a_nan_is_new_to_a_set(void **state) {
        const struct hf__cel_value old[] = {hf__cel_double(1)};
        const struct hf__cel_value added[] = {hf__cel_double(NAN), hf__cel_double(2),
                                              hf__cel_double(NAN), hf__cel_double(2),
                                              hf__cel_double(1)};
        const struct hf__cel_list a = {.n = 1, .items = old, .key = key_itself};
        const struct hf__cel_list b = {.n = 5, .items = added};
        struct hf__arena arena;
        struct hf__cel_run run = {.arena = &arena,
                                  .cost_limit = UINT64_MAX,
                                  .work_limit = UINT64_MAX,
                                  .bytes_limit = SIZE_MAX};
        struct hf__cel_value sum;

        hf__arena_init(&arena);
        sum = hf__cel_union(&run, &a, &b);
        assert_int_equal(sum.kind, HF__CEL_LIST);
        assert_int_equal(sum.as.list->n, 4);
        assert_true(isnan(hf__cel_list_at(sum.as.list, 1).as.d));
        assert_true(hf__cel_list_at(sum.as.list, 2).as.d == 2);
        assert_true(isnan(hf__cel_list_at(sum.as.list, 3).as.d));
        assert_false(hf__cel_equal(&run, sum, sum).as.boolean);
        hf__arena_deinit(&arena);
}

int main(void) {
        const struct CMUnitTest tests[] = {
                cmocka_unit_test(test_lists_are_cut_and_joined),
                cmocka_unit_test(test_lists_are_sorted),
                cmocka_unit_test(test_costs_are_those_of_kubernetes),
                cmocka_unit_test(test_huge_lists_end_at_the_limit),
                cmocka_unit_test(test_a_nan_is_new_to_a_set),
        };

        return cmocka_run_group_tests(tests, NULL, NULL);
}

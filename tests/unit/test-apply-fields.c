/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Sets of fields: their JSON form is Kubernetes' FieldsV1, and the laws of sets hold.
 */
#undef NDEBUG
#include <assert.h>
#include <errno.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#include <holdfast/error.h>

#include "apply_fixture.h"
#include "base/arena.h"
#include "base/json.h"
#include "base/strbuf.h"
#include "failing_memory.h"
#include "server/apply/reconcile.h"
#include "server/apply/sets/fields_json.h"
#include "server/apply/sets/step.h"
#include "server/apply/shape.h"
#include "server/schema/common.h"

/* The linker redirects the function. */
static size_t n_compared;
int __real_hfd_step_compare(const struct hfd_step *a, const struct hfd_step *b);
int __wrap_hfd_step_compare(const struct hfd_step *a, const struct hfd_step *b);
int __wrap_hfd_step_compare(const struct hfd_step *a, const struct hfd_step *b) {
        n_compared++;
        return __real_hfd_step_compare(a, b);
}

static struct hf__arena scratch;
static struct hf__json *parsed[200]; /* sets borrow from them */
static size_t n_parsed;

static int set_up(void **state) {
        hf__arena_init(&scratch);
        return 0;
}

static int tear_down(void **state) {
        hf__arena_deinit(&scratch);
        while (n_parsed > 0)
                hf__json_free(parsed[--n_parsed]);
        return 0;
}

static const struct hfd_fields *set(const char *text) {
        const struct hfd_fields *fields = NULL;

        assert(n_parsed < sizeof parsed / sizeof parsed[0]);
        parsed[n_parsed] = apply_fixture_parse(text);
        assert_int_equal(hfd_fields_parse(&scratch, parsed[n_parsed++], &fields), 0);
        return fields;
}

static const char *text(const struct hfd_fields *fields) {
        struct hf__json *json = hfd_fields_to_json(fields);
        const char *printed = apply_fixture_print(json);

        assert_non_null(json);
        hf__json_free(json);
        return printed;
}

/* ---- FieldsV1 ---- */

static void test_fields_are_printed_in_the_order_of_kubernetes(void **state) {
        static const char *const table[][2] = {
                {"{}", "{}"},
                {"{'f:b':{},'f:a':{}}", "{'f:a':{},'f:b':{}}"},
                /* A step by name comes before keys, values and indices, and `.` before all. */
                {"{'f:x':{'i:1':{},'v:2':{},'k:{\\'n\\':1}':{},'f:z':{},'.':{}}}",
                 "{'f:x':{'.':{},'f:z':{},'k:{\\'n\\':1}':{},'v:2':{},'i:1':{}}}"},
                /* Numbers come before texts, texts before booleans, null is last. */
                {"{'v:null':{},'v:true':{},'v:false':{},'v:\\'b\\'':{},'v:\\'a\\'':{},'v:10':{},"
                 "'v:9.5':{},'v:9':{}}",
                 "{'v:9':{},'v:9.5':{},'v:10':{},'v:\\'a\\'':{},'v:\\'b\\'':{},'v:false':{},"
                 "'v:true':{},'v:null':{}}"},
                /* The keys of an element are sorted. Equal steps are one. */
                {"{'k:{\\'protocol\\':\\'TCP\\', \\'port\\':80}':{'f:a':{}},"
                 "'k:{\\'port\\':80,\\'protocol\\':\\'TCP\\'}':{'.':{}}}",
                 "{'k:{\\'port\\':80,\\'protocol\\':\\'TCP\\'}':{'.':{},'f:a':{}}}"},
                {"{'k:{\\'a\\':1,\\'b\\':2}':{},'k:{\\'a\\':1}':{}}",
                 "{'k:{\\'a\\':1}':{},'k:{\\'a\\':1,\\'b\\':2}':{}}"},
                /* The object itself has no owner. `.` alone means a member without fields below it.
                 */
                {"{'.':{},'f:a':{'.':{}}}", "{'f:a':{}}"},
                /* A step of an unknown kind is ignored, together with the fields below it. */
                {"{'f:a':{'x:new':{'f:b':{}},'f:c':{}},'z:':{}}", "{'f:a':{'f:c':{}}}"},
                {"{'f:':{},'f:a.b/c':{},'f:\\u00e9':{}}", "{'f:':{},'f:a.b/c':{},'f:\303\251':{}}"},
                {"{'i:-3':{},'i:12':{}}", "{'i:-3':{},'i:12':{}}"},
        };

        for (size_t i = 0; i < sizeof table / sizeof table[0]; i++) {
                assert_string_equal(text(set(table[i][0])), table[i][1]);
                assert_string_equal(text(set(table[i][1])), table[i][1]);
        }
}

static void test_malformed_fields_are_refused(void **state) {
        static const char *const table[] = {
                "[]",
                "null",
                "'f:a'",
                "{'a':{}}",
                "{'':{}}",
                "{'f':{}}",
                "{'f:a':1}",
                "{'f:a':null}",
                "{'k:':{}}",
                "{'k:{}':{}}",
                "{'k:[1]':{}}",
                "{'k:{\\'a\\':[]}':{}}",
                "{'v:':{}}",
                "{'v:{}':{}}",
                "{'v:1 2':{}}",
                "{'i:':{}}",
                "{'i:x':{}}",
                "{'i:1.5':{}}",
                "{'k:{\\'a\\':1,\\'a\\':2}':{}}",
        };
        const struct hfd_fields *fields;

        for (size_t i = 0; i < sizeof table / sizeof table[0]; i++) {
                struct hf__json *json = apply_fixture_parse(table[i]);
                if (hfd_fields_parse(&scratch, json, &fields) != HF_E_INVALID)
                        fail_msg("%s was accepted", table[i]);
                hf__json_free(json);
        }
}

#define N_KEYS 70

/* Prints the step and parses it again. */
static void expect_same_after_parsing(const struct hfd_step *step) {
        struct hf__strbuf printed = {0};
        struct hfd_step again;

        hfd_step_put(step, &printed);
        assert_int_equal(hfd_step_parse(&scratch, printed.data, &again), 0);
        assert_int_equal(hfd_step_compare(step, &again), 0);
        hf__strbuf_done(&printed);
}

/* Sets the keys of two elements, from number `from` on, to the same values, except that the last
 * key has another value in the second element. */
static void fill_elements(struct hf__json *list, const char *const names[], int from) {
        struct hf__json *first = hf__json_first(list), *second = hf__json_next(first);

        for (int i = from; i < N_KEYS; i++) {
                assert_int_equal(hf__json_set_i64(first, names[i], i), 0);
                assert_int_equal(hf__json_set_i64(second, names[i], i == N_KEYS - 1 ? -1 : i), 0);
        }
}

static const struct hfd_schema *many_keys; /* a list of type map, whose keys all have a default */
static const struct hf__json *elements_with_keys;

static void many_keys_life(int n) {
        struct hfd_elements elements;
        struct hf__arena arena;

        hf__arena_init(&arena);
        failing_memory_arm(n);
        int r = hfd_shape_elements(&arena, many_keys, elements_with_keys, &elements, NULL);
        failing_memory_disarm();
        assert_int_equal(r, failing_memory_hit() ? -ENOMEM : 0);
        assert_int_equal(arena.failed, failing_memory_hit());
        hf__arena_deinit(&arena);
}

static void test_all_keys_of_an_element_count(void **state) {
        static struct hfd_schema_field fields[N_KEYS];
        static const char *names[N_KEYS + 1];
        static char texts[N_KEYS][8];
        const struct hfd_schema item = {HFD_STRUCT("io.example.v1.Item", fields)};
        const struct hfd_schema schema = {.type = HFD_SCHEMA_LIST,
                                          .items = &item,
                                          .list_type = HFD_LIST_MAP,
                                          .list_keys = names};
        struct hfd_elements elements;

        for (int i = 0; i < N_KEYS; i++) {
                (void)snprintf(texts[i], sizeof texts[i], "k%02d", i);
                names[i] = texts[i];
                fields[i] = (struct hfd_schema_field){.name = names[i],
                                                      .schema = &hfd_schema_text,
                                                      .key_default = "x"};
        }
        struct hf__json *list = apply_fixture_parse("[{'a':1},{'a':1}]");
        /* So many defaults are not copied into each element. */
        fill_elements(list, names, N_KEYS / 2);
        assert_int_equal(hfd_shape_elements(&scratch, &schema, list, &elements, NULL),
                         HF_E_INVALID);
        fill_elements(list, names, N_KEYS / 3);
        assert_int_equal(hfd_shape_elements(&scratch, &schema, list, &elements, NULL), 0);
        assert_true(elements.in_order[0].single && elements.in_order[1].single);
        const struct hfd_step *step = &elements.in_order[0].step;
        assert_int_equal(step->n_keys, N_KEYS);
        assert_string_equal(step->keys[0].value.text, "x");
        assert_int_equal(step->keys[N_KEYS - 1].value.integer, N_KEYS - 1);
        expect_same_after_parsing(step);
        many_keys = &schema;
        elements_with_keys = list;
        failing_memory_try_all(many_keys_life, 2);
        hf__json_free(list);
}

/* {"f:a":{"f:a":...}} with this many steps. */
static struct hf__json *make_deep(unsigned n) {
        struct hf__strbuf out = {0};

        for (unsigned i = 0; i < n; i++)
                hf__strbuf_puts(&out, "{'f:a':");
        hf__strbuf_puts(&out, "{}");
        for (unsigned i = 0; i < n; i++)
                hf__strbuf_puts(&out, "}");
        struct hf__json *json = apply_fixture_parse(out.data);
        hf__strbuf_done(&out);
        return json;
}

/* Other programs may write one step in several forms. */
static void test_equal_steps_are_joined(void **state) {
        static const char *const table[][2] = {
                {"{'f:x':{'k:{\\'a\\':1}':{'f:b':{}},'k:{\\'a\\':1 }':{'.':{},'f:c':{}},"
                 "'k:{\\'a\\': 1}':{'f:b':{'f:d':{}}}}}",
                 "{'f:x':{'k:{\\'a\\':1}':{'.':{},'f:b':{'.':{},'f:d':{}},'f:c':{}}}}"},
                {"{'v:1':{},'v: 1':{'v:2':{}},'v:1 ':{'v: 2':{'f:a':{}}}}",
                 "{'v:1':{'.':{},'v:2':{'.':{},'f:a':{}}}}"},
        };

        for (size_t i = 0; i < sizeof table / sizeof table[0]; i++) {
                const struct hfd_fields *fields = set(table[i][0]);
                assert_true(hfd_fields_equal(fields, set(table[i][1])));
        }
}

static void test_fields_have_a_limited_depth(void **state) {
        const struct hfd_fields *fields = NULL;
        struct hf__json *deep = make_deep(HFD_FIELDS_DEPTH),
                        *deeper = make_deep(HFD_FIELDS_DEPTH + 1);

        assert_int_equal(hfd_fields_parse(&scratch, deep, &fields), 0);
        assert_int_equal(hfd_fields_count(fields), 1);
        assert_int_equal(hfd_fields_parse(&scratch, deeper, &fields), HF_E_INVALID);
        hf__json_free(deep);
        hf__json_free(deeper);
}

/* ---- operations ---- */

static void test_sets_are_united_intersected_and_subtracted(void **state) {
        /* a, b, union, intersection, a without b */
        static const char *const table[][5] = {
                {"{}", "{}", "{}", "{}", "{}"},
                {"{'f:a':{}}", "{}", "{'f:a':{}}", "{}", "{'f:a':{}}"},
                {"{}", "{'f:a':{}}", "{'f:a':{}}", "{}", "{}"},
                {"{'f:a':{},'f:b':{}}", "{'f:b':{},'f:c':{}}", "{'f:a':{},'f:b':{},'f:c':{}}",
                 "{'f:b':{}}", "{'f:a':{}}"},
                /* A path does not include the paths below it. */
                {"{'f:a':{}}", "{'f:a':{'f:b':{}}}", "{'f:a':{'.':{},'f:b':{}}}", "{}",
                 "{'f:a':{}}"},
                {"{'f:a':{'f:b':{}}}", "{'f:a':{}}", "{'f:a':{'.':{},'f:b':{}}}", "{}",
                 "{'f:a':{'f:b':{}}}"},
                {"{'f:a':{'.':{},'f:b':{}}}", "{'f:a':{'f:b':{}}}", "{'f:a':{'.':{},'f:b':{}}}",
                 "{'f:a':{'f:b':{}}}", "{'f:a':{}}"},
                {"{'f:a':{'.':{},'f:b':{},'f:c':{}}}", "{'f:a':{'.':{},'f:c':{}},'f:d':{}}",
                 "{'f:a':{'.':{},'f:b':{},'f:c':{}},'f:d':{}}", "{'f:a':{'.':{},'f:c':{}}}",
                 "{'f:a':{'f:b':{}}}"},
                {"{'k:{\\'n\\':1}':{'.':{},'f:v':{}}}", "{'k:{\\'n\\':2}':{'.':{},'f:v':{}}}",
                 "{'k:{\\'n\\':1}':{'.':{},'f:v':{}},'k:{\\'n\\':2}':{'.':{},'f:v':{}}}", "{}",
                 "{'k:{\\'n\\':1}':{'.':{},'f:v':{}}}"},
                /* 1 is not "1". */
                {"{'v:1':{}}", "{'v:\\'1\\'':{}}", "{'v:1':{},'v:\\'1\\'':{}}", "{}", "{'v:1':{}}"},
        };

        for (size_t i = 0; i < sizeof table / sizeof table[0]; i++) {
                const struct hfd_fields *a = set(table[i][0]), *b = set(table[i][1]);
                assert_string_equal(text(hfd_fields_union(&scratch, a, b)), table[i][2]);
                assert_string_equal(text(hfd_fields_intersect(&scratch, a, b)), table[i][3]);
                assert_string_equal(text(hfd_fields_subtract(&scratch, a, b)), table[i][4]);
                assert_int_equal(hfd_fields_equal(a, b),
                                 strcmp(text(a), text(b)) == 0); /* the form is canonical */
        }
}

static void test_an_operation_without_effect_returns_its_argument(void **state) {
        const struct hfd_fields *a = set("{'f:a':{'f:b':{},'f:c':{}}}");

        assert_ptr_equal(hfd_fields_union(&scratch, a, set("{'f:a':{'f:c':{}}}")), a);
        assert_ptr_equal(hfd_fields_union(&scratch, a, NULL), a);
        assert_ptr_equal(hfd_fields_subtract(&scratch, a, set("{'f:a':{'f:x':{}}}")), a);
        assert_ptr_equal(hfd_fields_subtract(&scratch, a, NULL), a);
}

/* n fields and one more, `last`, 60 levels deep. */
static const struct hfd_fields *deep_set(unsigned n, const char *last) {
        struct hf__strbuf out = {0};

        for (unsigned i = 0; i < 60; i++)
                hf__strbuf_puts(&out, "{'f:a':");
        hf__strbuf_putc(&out, '{');
        for (unsigned i = 0; i < n; i++)
                hf__strbuf_printf(&out, "'f:k%u':{},", i);
        hf__strbuf_printf(&out, "'f:%s':{}}", last);
        for (unsigned i = 0; i < 60; i++)
                hf__strbuf_putc(&out, '}');
        const struct hfd_fields *fields = set(out.data);
        hf__strbuf_done(&out);
        return fields;
}

/* Not once for each level above it. */
static void test_a_union_visits_each_field_once(void **state) {
        enum { N = 1000, LOG_N = 10 };
        const struct hfd_fields *a = deep_set(N, "x"), *b = deep_set(N, "y"), *both;

        n_compared = 0;
        both = hfd_fields_union(&scratch, a, b);
        assert_in_range(n_compared, N, 4 * N * LOG_N);
        assert_int_equal(hfd_fields_count(both), N + 2);
        n_compared = 0;
        assert_ptr_equal(hfd_fields_union(&scratch, both, b), both);
        assert_in_range(n_compared, N, 4 * N * LOG_N);
}

/* Adds random fields to the builder. */
static const struct hfd_fields *random_level(struct hfd_fields_builder *builder, uint64_t *seed,
                                             unsigned depth) {
        static const char *const names[] = {"a", "b", "c", "d", "e", "f"};
        static const struct hfd_scalar values[] = {{HFD_SCALAR_INTEGER, {.integer = 1}},
                                                   {HFD_SCALAR_TEXT, {.text = "1"}},
                                                   {HFD_SCALAR_NULL, {0}}};
        static const struct hfd_step_key keys[] = {{"x", {HFD_SCALAR_INTEGER, {.integer = 1}}},
                                                   {"y", {HFD_SCALAR_TEXT, {.text = "t"}}}};
        size_t level = hfd_fields_open(builder);

        for (unsigned i = apply_fixture_random(seed, 6); i > 0; i--) {
                struct hfd_step step = {.kind = HFD_STEP_FIELD,
                                        .name = names[apply_fixture_random(seed, 6)]};
                if (apply_fixture_random(seed, 4) == 0)
                        step = (struct hfd_step){.kind = HFD_STEP_VALUE,
                                                 .value = &values[apply_fixture_random(seed, 3)]};
                else if (apply_fixture_random(seed, 4) == 0)
                        step = (struct hfd_step){.kind = HFD_STEP_KEY,
                                                 .n_keys = 1 + apply_fixture_random(seed, 2),
                                                 .keys = keys};
                const struct hfd_fields *below = depth > 0 && apply_fixture_random(seed, 2)
                                                         ? random_level(builder, seed, depth - 1)
                                                         : NULL;
                hfd_fields_add(builder, &step, apply_fixture_random(seed, 2), below);
        }
        return hfd_fields_close(builder, level);
}

static const struct hfd_fields *random_set(uint64_t *seed) {
        struct hfd_fields_builder builder = {.scratch = &scratch};

        return random_level(&builder, seed, 4);
}

static void assert_same(uint64_t seed, const struct hfd_fields *a, const struct hfd_fields *b) {
        if (!hfd_fields_equal(a, b))
                fail_msg("seed %llu: %s is not %s", (unsigned long long)seed, text(a), text(b));
}

static void test_the_laws_of_sets_hold(void **state) {
        for (uint64_t i = 1; i <= 3000; i++) {
                uint64_t seed = i * 7919;
                struct hf__arena *s = &scratch;
                const struct hfd_fields *a = random_set(&seed), *b = random_set(&seed),
                                        *c = random_set(&seed);
                const struct hfd_fields *both = hfd_fields_intersect(s, a, b);
                const struct hfd_fields *any = hfd_fields_union(s, a, b);
                const struct hfd_fields *only = hfd_fields_subtract(s, a, b);

                assert_same(i, any, hfd_fields_union(s, b, a));
                assert_same(i, both, hfd_fields_intersect(s, b, a));
                assert_same(i, hfd_fields_union(s, any, c),
                            hfd_fields_union(s, a, hfd_fields_union(s, b, c)));
                assert_same(i, hfd_fields_union(s, only, both), a);
                assert_same(i, hfd_fields_intersect(s, only, b), NULL);
                assert_same(i, hfd_fields_union(s, only, b), any);
                assert_same(i, hfd_fields_subtract(s, a, a), NULL);
                assert_same(i, hfd_fields_subtract(s, any, c),
                            hfd_fields_union(s, hfd_fields_subtract(s, a, c),
                                             hfd_fields_subtract(s, b, c)));
                assert_int_equal(hfd_fields_count(any) + hfd_fields_count(both),
                                 hfd_fields_count(a) + hfd_fields_count(b));
                assert_ptr_equal(hfd_fields_union(s, any, a), any);
                assert_ptr_equal(hfd_fields_union(s, a, both), a);
                assert_int_equal(hfd_fields_union(s, b, a) == b, only == NULL);

                const struct hfd_fields *again = NULL;
                struct hf__json *json = hfd_fields_to_json(a);
                assert_int_equal(hfd_fields_parse(s, json, &again), 0);
                assert_same(i, a, again);
                hf__json_free(json);
                hf__arena_deinit(&scratch);
                hf__arena_init(&scratch);
        }
}

/* ---- schemas that have changed ---- */

static void test_parts_of_a_value_that_is_whole_now_own_the_value(void **state) {
        static const char *const table[][2] = {
                {"{'f:spec':{'f:selector':{'f:name':{}}}}", "{'f:spec':{'f:selector':{}}}"},
                {"{'f:spec':{'f:selector':{'.':{},'f:name':{}}}}", "{'f:spec':{'f:selector':{}}}"},
                {"{'f:spec':{'f:atomicList':{'v:\\'a\\'':{}}}}", "{'f:spec':{'f:atomicList':{}}}"},
                {"{'f:spec':{'f:whole':{'k:{\\'name\\':\\'a\\'}':{'.':{},'f:name':{}}}}}",
                 "{'f:spec':{'f:whole':{'k:{\\'name\\':\\'a\\'}':{}}}}"},
                {"{'f:spec':{'f:atomicMap':{},'f:items':{'k:{\\'name\\':\\'a\\'}':{'.':{},"
                 "'f:name':{}}},'f:wild':{'f:x':{'f:y':{}}}}}",
                 NULL},
        };

        for (size_t i = 0; i < sizeof table / sizeof table[0]; i++) {
                const struct hfd_fields *fields = set(table[i][0]);
                const struct hfd_fields *result =
                        hfd_reconcile(&scratch, apply_fixture_thing, fields);
                if (table[i][1])
                        assert_string_equal(text(result), table[i][1]);
                else
                        assert_ptr_equal(result, fields);
        }
}

#define TEST(name) cmocka_unit_test_setup_teardown(name, set_up, tear_down)

int main(void) {
        const struct CMUnitTest tests[] = {
                TEST(test_fields_are_printed_in_the_order_of_kubernetes),
                TEST(test_malformed_fields_are_refused),
                TEST(test_all_keys_of_an_element_count),
                TEST(test_equal_steps_are_joined),
                TEST(test_fields_have_a_limited_depth),
                TEST(test_sets_are_united_intersected_and_subtracted),
                TEST(test_an_operation_without_effect_returns_its_argument),
                TEST(test_a_union_visits_each_field_once),
                TEST(test_the_laws_of_sets_hold),
                TEST(test_parts_of_a_value_that_is_whole_now_own_the_value),
        };
        return cmocka_run_group_tests(tests, NULL, NULL);
}

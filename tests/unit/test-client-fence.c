/* SPDX-License-Identifier: Apache-2.0 */
/* The header that carries a fence. */
#undef NDEBUG
#include <errno.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>

#include <cmocka.h>

#include <holdfast/fence.h>

static int parse(const char *text, struct hf_fence *ret_fence) {
        return hf_fence_parse(text, strlen(text), ret_fence);
}

static void test_a_fence_survives_the_round_trip(void **state) {
        const struct hf_fence fence = {.ns = "kube-system",
                                       .name = "controllers",
                                       .term = 1234,
                                       .identity = "host_1;a b"};
        struct hf_fence back;
        char text[600];

        int n = hf_fence_format(&fence, text, sizeof text);
        assert_int_equal(n, (int)strlen(text));
        assert_string_equal(text, "kube-system/controllers;1234;host_1;a b");
        assert_int_equal(hf_fence_parse(text, (size_t)n, &back), 0);
        assert_memory_equal(&back, &fence, sizeof fence);
        assert_int_equal(hf_fence_format(&fence, text, (size_t)n), -ENOSPC);
        assert_int_equal(hf_fence_format(&fence, text, (size_t)n + 1), n);
}

static void test_a_fence_of_two_leases_survives_the_round_trip(void **state) {
        const struct hf_fence fence = {.ns = "a",
                                       .name = "new",
                                       .term = 12,
                                       .identity = "h;5,x/y;6;b",
                                       .also_ns = "b",
                                       .also_name = "old",
                                       .also_term = UINT64_MAX};
        struct hf_fence back;
        char text[HF_FENCE_MAX];

        int n = hf_fence_format(&fence, text, sizeof text);
        assert_string_equal(text, "a/new;12,b/old;18446744073709551615;h;5,x/y;6;b");
        assert_int_equal(hf_fence_parse(text, (size_t)n, &back), 0);
        assert_memory_equal(&back, &fence, sizeof fence);
        /* An identity may contain the separators: everything after the term belongs to it. */
        assert_int_equal(parse("a/b;1;2,c/d;3;e", &back), 0);
        assert_true(back.term == 1 && back.also_term == 0);
        assert_string_equal(back.identity, "2,c/d;3;e");
}

static void test_values_that_would_break_a_header_are_refused(void **state) {
        const struct hf_fence bad[] = {
                {.ns = "a", .name = "b", .term = 0, .identity = "c"},
                {.ns = "", .name = "b", .term = 1, .identity = "c"},
                {.ns = "a", .name = "", .term = 1, .identity = "c"},
                {.ns = "a", .name = "b", .term = 1, .identity = ""},
                {.ns = "a", .name = "b", .term = 1, .identity = "c\r\nX: y"},
                {.ns = "a", .name = "b", .term = 1, .identity = " c"},
                {.ns = "a;1", .name = "b", .term = 1, .identity = "c"},
                {.ns = "a/b", .name = "b", .term = 1, .identity = "c"},
                {.ns = "a", .name = "b", .term = 1, .identity = "c", .also_term = 2},
        };
        char text[600];

        for (size_t i = 0; i < sizeof bad / sizeof bad[0]; i++)
                assert_int_equal(hf_fence_format(&bad[i], text, sizeof text), -EINVAL);
}

static void test_bad_values_are_refused(void **state) {
        static const char *const bad[] = {
                "",
                "a",
                "a/b",
                "a/b;1",
                "a/b;1;",
                "/b;1;c",
                "a/;1;c",
                "a/b;0;c",
                "a/b;01;c",
                "a/b;-1;c",
                "a/b;+1;c",
                "a/b; 1;c",
                "a/b;1x;c",
                "a/b;;c",
                "a/b;1;c\n",
                "a/b;1;c\x7f",
                "a/b;1; c",
                "a/b;1;c ",
                "a/b/c;1;d",
                "a b/c;1;d",
                "a\n/b;1;c",
                "a/b;18446744073709551616;c",
                ";1;a/b",
                "a/b;1,c/d;2;",
                "a/b;1,c/d;0;e",
                "a/b;0,c/d;1;e",
                "a/b;1,c/;2;e",
                "a/b;1,/d;2;e",
                "a/b;1,c/d;e",
                "a/b;1,2;e",
                "a/b;,c/d;2;e",
        };
        struct hf_fence fence = {.term = 77};

        for (size_t i = 0; i < sizeof bad / sizeof bad[0]; i++)
                if (parse(bad[i], &fence) != -EINVAL)
                        fail_msg("accepted: %s", bad[i]);
        assert_int_equal(fence.term, 77); /* set on success only */
        assert_int_equal(hf_fence_parse(NULL, 0, &fence), -EINVAL);
        assert_int_equal(parse("a/b;18446744073709551615;c", &fence), 0);
        assert_true(fence.term == UINT64_MAX);
}

static void test_names_and_identities_are_limited_in_size(void **state) {
        char text[HF_NAME_MAX + HF_IDENTITY_MAX + 16];
        struct hf_fence fence;

        for (size_t extra = 0; extra < 2; extra++) {
                int expected = extra ? -EINVAL : 0;
                size_t n = HF_IDENTITY_MAX + extra;
                memcpy(text, "a/b;1;", 6);
                memset(text + 6, 'i', n);
                assert_int_equal(hf_fence_parse(text, 6 + n, &fence), expected);
                n = HF_NAME_MAX + extra;
                memset(text, 'n', n);
                memcpy(text + n, "/b;1;c", 6);
                assert_int_equal(hf_fence_parse(text, n + 6, &fence), expected);
                memcpy(text, "b/", 2);
                memset(text + 2, 'n', n);
                memcpy(text + 2 + n, ";1;c", 4);
                assert_int_equal(hf_fence_parse(text, n + 6, &fence), expected);
        }
}

/* Arrays of the struct that are full have no NUL. */
static void test_texts_that_fill_their_arrays_are_no_names(void **state) {
        char text[HF_FENCE_MAX];
        struct hf_fence full = {.term = 1, .ns = "a", .name = "b", .identity = "c"}, fence = full;

        memset(fence.ns, 'n', sizeof fence.ns);
        assert_int_equal(hf_fence_format(&fence, text, sizeof text), -EINVAL);
        fence = full;
        memset(fence.name, 'n', sizeof fence.name);
        assert_int_equal(hf_fence_format(&fence, text, sizeof text), -EINVAL);
        fence = full;
        memset(fence.identity, 'n', sizeof fence.identity);
        assert_int_equal(hf_fence_format(&fence, text, sizeof text), -EINVAL);
        fence = full;
        memset(fence.ns, 'n', HF_NAME_MAX);
        memset(fence.name, 'n', HF_NAME_MAX);
        assert_true(hf_fence_format(&fence, text, sizeof text) > 2 * HF_NAME_MAX);
}

int main(void) {
        const struct CMUnitTest tests[] = {
                cmocka_unit_test(test_a_fence_survives_the_round_trip),
                cmocka_unit_test(test_a_fence_of_two_leases_survives_the_round_trip),
                cmocka_unit_test(test_values_that_would_break_a_header_are_refused),
                cmocka_unit_test(test_bad_values_are_refused),
                cmocka_unit_test(test_names_and_identities_are_limited_in_size),
                cmocka_unit_test(test_texts_that_fill_their_arrays_are_no_names),
        };
        return cmocka_run_group_tests(tests, NULL, NULL);
}

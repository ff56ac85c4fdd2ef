/* SPDX-License-Identifier: Apache-2.0 */
/* The set of controllers: which texts are copied, and which controllers are refused with which
 * message. */
#undef NDEBUG
#include <assert.h>
#include <errno.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>

#include <cmocka.h>

#include "leader/controller_set.h"

static int run(struct hf_term *term, void *ctx) { return 0; }

#define AFTER(...)                                                                                 \
        ((const char *const[]){__VA_ARGS__}),                                                      \
                .n_after = sizeof((const char *const[]){__VA_ARGS__}) / sizeof(char *)

static void expect_refused(const struct hf_controller *controllers, size_t n, int error,
                           const char *words) {
        struct hf_controller *set = NULL;
        struct hf_status status = {0};
        assert_int_equal(hf__controller_set_copy(controllers, n, "ns/lead", &set, &status), error);
        assert_string_equal(status.message, words);
        assert_null(set);
}

static void test_a_set_is_copied(void **state) {
        char a[] = "a", b[] = "b", before[] = "a";
        const char *after[] = {before, NULL};
        const struct hf_controller controllers[] =
                {{.size = sizeof(struct hf_controller),
                  .name = b,
                  .run = run,
                  .after = after,
                  .n_after = 1},
                 {.size = sizeof(struct hf_controller), .name = a, .run = run, .ctx = a}};
        struct hf_controller *set = NULL;
        assert_int_equal(hf__controller_set_copy(controllers, 2, "ns/lead", &set, NULL), 0);
        a[0] = b[0] = before[0] = 'x';
        after[0] = NULL;
        assert_string_equal(set[0].name, "b");
        assert_string_equal(set[0].after[0], "a");
        assert_null(set[0].after[1]);
        assert_null(set[1].after[0]);
        assert_ptr_equal(set[1].ctx, a);
        assert_ptr_equal(hf__controller_set_find(set, 2, "a"), &set[1]);
        assert_null(hf__controller_set_find(set, 2, "x"));
        hf__controller_set_free(set, 2);
        assert_int_equal(hf__controller_set_copy(NULL, 0, "ns/lead", &set, NULL), 0);
        hf__controller_set_free(set, 0);
}

static void test_names_and_functions_are_required(void **state) {
        expect_refused(&(struct hf_controller){.size = sizeof(struct hf_controller), .run = run}, 1,
                       HF_E_INVALID, "elector ns/lead: controller 0 has no name");
        expect_refused(&(struct hf_controller){.size = sizeof(struct hf_controller),
                                               .name = "",
                                               .run = run},
                       1, HF_E_INVALID, "elector ns/lead: controller 0 has no name");
        expect_refused(&(struct hf_controller){.size = sizeof(struct hf_controller), .name = "a"},
                       1, HF_E_INVALID, "elector ns/lead: controller 0 has no run function");
        struct hf_controller *set = NULL;
        assert_int_equal(hf__controller_set_copy(&(struct hf_controller){.name = "a", .run = run},
                                                 1, "ns/lead", &set, NULL),
                         -EINVAL); /* it has no size */
        assert_null(set);
        expect_refused((struct hf_controller[]){{.size = sizeof(struct hf_controller),
                                                 .name = "a",
                                                 .run = run},
                                                {.size = sizeof(struct hf_controller),
                                                 .name = "a",
                                                 .run = run}},
                       2, HF_E_EXISTS, "elector ns/lead: controller \"a\" is registered twice");
}

static void test_after_must_name_controllers_of_the_set_once(void **state) {
        expect_refused((struct hf_controller[]){{.size = sizeof(struct hf_controller),
                                                 .name = "a",
                                                 .run = run,
                                                 .after = AFTER("nobody")}},
                       1, HF_E_INVALID,
                       "elector ns/lead: controller \"a\" is after \"nobody\", which is not in its "
                       "set");
        expect_refused((struct hf_controller[]){{.size = sizeof(struct hf_controller),
                                                 .name = "a",
                                                 .run = run},
                                                {.size = sizeof(struct hf_controller),
                                                 .name = "b",
                                                 .run = run,
                                                 .after = AFTER("a", "a")}},
                       2, HF_E_INVALID, "elector ns/lead: controller \"b\" is after \"a\" twice");
        expect_refused((struct hf_controller[]){{.size = sizeof(struct hf_controller),
                                                 .name = "a",
                                                 .run = run,
                                                 .runs = HF_EVERY_INSTANCE},
                                                {.size = sizeof(struct hf_controller),
                                                 .name = "b",
                                                 .run = run,
                                                 .after = AFTER("a")}},
                       2, HF_E_INVALID,
                       "elector ns/lead: controller \"b\" is after \"a\", but one of the two is "
                       "leader-only and the other is not");
}

static void test_a_cycle_is_named(void **state) {
        expect_refused((struct hf_controller[]){{.size = sizeof(struct hf_controller),
                                                 .name = "a",
                                                 .run = run,
                                                 .after = AFTER("a")}},
                       1, HF_E_INVALID,
                       "elector ns/lead: controllers wait for each other in a cycle: \"a\" after "
                       "\"a\"");
        /* one without order, then a cycle of three, then one that follows it */
        expect_refused(
                (struct hf_controller[]){
                        {.size = sizeof(struct hf_controller), .name = "free", .run = run},
                        {.size = sizeof(struct hf_controller),
                         .name = "a",
                         .run = run,
                         .after = AFTER("free", "b")},
                        {.size = sizeof(struct hf_controller),
                         .name = "b",
                         .run = run,
                         .after = AFTER("c", "free")},
                        {.size = sizeof(struct hf_controller),
                         .name = "c",
                         .run = run,
                         .after = AFTER("a")},
                        {.size = sizeof(struct hf_controller),
                         .name = "hangs",
                         .run = run,
                         .after = AFTER("free", "c")},
                },
                5, HF_E_INVALID,
                "elector ns/lead: controllers wait for each other in a cycle: \"a\" after \"b\" "
                "after \"c\" after \"a\"");
}

int main(void) {
        const struct CMUnitTest tests[] = {
                cmocka_unit_test(test_a_set_is_copied),
                cmocka_unit_test(test_names_and_functions_are_required),
                cmocka_unit_test(test_after_must_name_controllers_of_the_set_once),
                cmocka_unit_test(test_a_cycle_is_named),
        };
        return cmocka_run_group_tests(tests, NULL, NULL);
}

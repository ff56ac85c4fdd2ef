/* SPDX-License-Identifier: Apache-2.0 */
/* Evaluations when memory runs out: each allocation fails once. The result is then -ENOMEM, never
 * an error of the expression, which an operator could absorb. */
#undef NDEBUG
#include <assert.h>
#include <errno.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>

#include <cmocka.h>

#include "base/arena.h"
#include "cel/cel.h"
#include "cel/library.h"
#include "cel/values/type.h"
#include "failing_memory.h"

static struct hf__cel_program *program;
static struct hf__cel_value inputs[3]; /* a call without a variable is made while compiling */
static int n_shortages;

static void life(int n) {
        struct hf__cel_value value;
        struct hf__arena arena;

        hf__arena_init(&arena);
        failing_memory_arm(n);
        int r = hf__cel_eval(program, inputs, NULL, &arena, &value, NULL);
        failing_memory_disarm();
        n_shortages += failing_memory_hit();
        assert_int_equal(r, failing_memory_hit() ? -ENOMEM : 0);
        assert_true(r != 0 || (value.kind == HF__CEL_BOOL && value.as.boolean));
        hf__arena_deinit(&arena);
}

static void test_a_shortage_is_no_error_of_the_expression(void **state) {
        static const char *const texts[] = {
                "string(d) == '1.5' && string(d > 1.0) == 'true'",
                "string(i) + string(uint(i)) == '77' || true",
                "string(timestamp(i)) == '1970-01-01T00:00:07Z'",
                "string(duration(s)) == '90s'",
                "'%s %d %.2f'.format([{s: [i]}, i, d]) == '{90s: [7]} 7 1.50' || true",
                "dyn([1])[dyn(d)] == 1 || true",
        };
        struct hf__cel_library *library = NULL;

        (void)state;
        inputs[0] = hf__cel_int(7);
        inputs[1] = hf__cel_double(1.5);
        inputs[2] = hf__cel_string("90s", 3);
        const struct hf__cel_variable variables[] = {
                {"i", hf__cel_type_of(HF__CEL_INT)},
                {"d", hf__cel_type_of(HF__CEL_DOUBLE)},
                {"s", hf__cel_type_of(HF__CEL_STRING)},
        };
        assert_int_equal(hf__cel_library_new(NULL, &library), 0);
        const struct hf__cel_declarations declarations = {.functions = library,
                                                          .variables = variables,
                                                          .n_variables = 3,
                                                          .mixed_literals = true};
        for (size_t i = 0; i < sizeof texts / sizeof texts[0]; i++) {
                assert_int_equal(hf__cel_compile(&declarations, texts[i], strlen(texts[i]), NULL,
                                                 &program, NULL),
                                 0);
                failing_memory_try_all(life, 0);
                hf__cel_program_free(program);
        }
        assert_true(n_shortages > 6);
        hf__cel_library_free(library);
}

int main(void) {
        const struct CMUnitTest tests[] = {
                cmocka_unit_test(test_a_shortage_is_no_error_of_the_expression),
        };

        return cmocka_run_group_tests(tests, NULL, NULL);
}

/* SPDX-License-Identifier: Apache-2.0 */
/* Files beside the running program. */
#undef NDEBUG
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>
#include <unistd.h>

#include <cmocka.h>

#include "base/program_file.h"

static void test_a_file_beside_the_program_is_found(void **state) {
        char path[PATH_MAX];
        char *program = realpath("/proc/self/exe", NULL);

        assert_non_null(program);
        assert_true(hf__program_file_find("test-base-program-file", path));
        assert_string_equal(path, program);
        free(program);
}

/* The directory of the program counts, and not the one in which it was started. */
static void test_other_files_are_not_found(void **state) {
        char path[PATH_MAX];

        assert_int_equal(chdir("/proc"), 0);
        assert_int_equal(access("version", F_OK), 0);
        assert_false(hf__program_file_find("version", path));
}

int main(void) {
        const struct CMUnitTest tests[] = {
                cmocka_unit_test(test_a_file_beside_the_program_is_found),
                cmocka_unit_test(test_other_files_are_not_found),
        };
        return cmocka_run_group_tests(tests, NULL, NULL);
}

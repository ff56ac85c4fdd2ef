/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The mark of a process where the kernel cannot clear a page in children: the linker replaces
 * madvise, which then refuses. test-leader-gate.c has the tests with such a page.
 */
#undef NDEBUG
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include <errno.h>
#include <sys/wait.h>
#include <unistd.h>

#include "base/process_mark.h"

static int n_refused;
int __wrap_madvise(void *page, size_t n, int advice);
int __wrap_madvise(void *page, size_t n, int advice) {
        n_refused++;
        errno = EINVAL;
        return -1;
}

static void test_a_child_has_another_mark_without_the_kernels_help(void **state) {
        int status = 0;

        assert_int_equal(hf__process_mark_init(), 0);
        assert_int_equal(hf__process_mark_init(), 0);
        assert_int_equal(n_refused, 1);
        uint64_t mark = hf__process_mark();
        assert_int_not_equal(mark, 0);
        pid_t pid = fork();
        assert_true(pid >= 0);
        if (pid == 0) {
                uint64_t own = hf__process_mark();
                _exit(own != 0 && own != mark && own == hf__process_mark() ? 0 : 1);
        }
        assert_int_equal(waitpid(pid, &status, 0), pid);
        assert_int_equal(status, 0);
        assert_int_equal(hf__process_mark(), mark);
}

int main(void) {
        const struct CMUnitTest tests[] = {
                cmocka_unit_test(test_a_child_has_another_mark_without_the_kernels_help),
        };
        return cmocka_run_group_tests(tests, NULL, NULL);
}

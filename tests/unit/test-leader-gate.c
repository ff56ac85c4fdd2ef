/* SPDX-License-Identifier: Apache-2.0 */
/* The gate: until when a process may act. */
#undef NDEBUG
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include <errno.h>
#include <sched.h>
#include <signal.h>
#include <stdbool.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <unistd.h>

#include "base/process_mark.h"
#include "leader/gate.h"

static void test_a_new_gate_is_shut(void **state) {
        struct hf__gate gate = {0};

        assert_false(hf__gate_may_act(&gate, 0));
        assert_false(hf__gate_may_act(&gate, -1));
        hf__gate_extend(&gate, 100); /* an extension opens nothing */
        assert_false(hf__gate_may_act(&gate, 50));
}

static void test_a_gate_shuts_when_its_validity_ends(void **state) {
        struct hf__gate gate = {0};

        hf__gate_open(&gate, 100);
        assert_true(hf__gate_may_act(&gate, 99));
        assert_false(hf__gate_may_act(&gate, 100)); /* up to that time, not at it */
        assert_int_equal(hf__gate_valid_until(&gate), 100);
}

static void test_a_gate_is_only_extended_forwards(void **state) {
        struct hf__gate gate = {0};

        hf__gate_open(&gate, 100);
        hf__gate_extend(&gate, 50);
        assert_int_equal(hf__gate_valid_until(&gate), 100);
        hf__gate_extend(&gate, 200);
        assert_true(hf__gate_may_act(&gate, 199));
        hf__gate_shut(&gate);
        assert_false(hf__gate_may_act(&gate, 1));
        hf__gate_extend(&gate, 300);
        assert_false(hf__gate_may_act(&gate, 1));
        hf__gate_open(&gate, 150); /* a new term may begin with less */
        assert_true(hf__gate_may_act(&gate, 149));
}

static void test_a_gate_is_shut_in_a_forked_child(void **state) {
        struct hf__gate gate = {0};
        int status = 0;
        pid_t pid;

        hf__gate_open(&gate, 100);
        pid = fork();
        assert_true(pid >= 0);
        if (pid == 0)
                _exit(hf__gate_may_act(&gate, 1) ? 1 : 0);
        assert_int_equal(waitpid(pid, &status, 0), pid);
        assert_int_equal(status, 0);
        assert_true(hf__gate_may_act(&gate, 1));
}

/* Creates a child in a pid namespace of its own, as a container runtime does. Like fork it returns
 * 0 in the child, but it runs no pthread_atfork handlers. */
static pid_t fork_into_namespace(void) {
        return (pid_t)syscall(SYS_clone, CLONE_NEWPID | SIGCHLD, NULL, NULL, NULL, NULL);
}

static int exit_status_of(pid_t pid) {
        int status = 0;
        return waitpid(pid, &status, 0) == pid && WIFEXITED(status) ? WEXITSTATUS(status) : -1;
}

enum { CANNOT_CLONE = 2, NOT_THE_FIRST = 3, STAYS_OPEN = 4, NOT_OPEN = 5 };

/* Runs as process 1 of its namespace, and makes a child with the same id. */
static int open_gate_as_first_process(void) {
        struct hf__gate gate = {0};

        if (getpid() != 1)
                return NOT_THE_FIRST;
        hf__gate_open(&gate, 100);
        pid_t pid = fork_into_namespace();
        if (pid < 0)
                return CANNOT_CLONE;
        if (pid == 0) {
                if (getpid() != 1)
                        _exit(NOT_THE_FIRST);
                if (hf__gate_may_act(&gate, 1))
                        _exit(STAYS_OPEN);
                hf__gate_open(&gate, 100); /* the child's own term */
                _exit(hf__gate_may_act(&gate, 1) ? 0 : NOT_OPEN);
        }
        int status = exit_status_of(pid);
        return status == 0 && !hf__gate_may_act(&gate, 1) ? NOT_OPEN : status;
}

static void test_a_gate_is_shut_in_a_child_with_the_same_process_id(void **state) {
        pid_t pid = fork_into_namespace();

        if (pid == 0)
                _exit(open_gate_as_first_process());
        if (pid < 0 && (errno == EPERM || errno == EINVAL))
                skip(); /* it needs CAP_SYS_ADMIN */
        assert_true(pid > 0);
        assert_int_equal(exit_status_of(pid), 0);
}

/* A child opens its own gate. That must not open its copy of the parent's gate. */
static void test_each_generation_has_its_own_gate(void **state) {
        struct hf__gate first = {0}, second = {0};

        hf__gate_open(&first, 100);
        pid_t pid = fork();
        assert_true(pid >= 0);
        if (pid == 0) {
                hf__gate_open(&second, 100);
                bool fine = !hf__gate_may_act(&first, 1) && hf__gate_may_act(&second, 1);
                pid = fork();
                if (pid == 0)
                        _exit(hf__gate_may_act(&first, 1) || hf__gate_may_act(&second, 1));
                _exit(fine && exit_status_of(pid) == 0 ? 0 : 1);
        }
        assert_int_equal(exit_status_of(pid), 0);
        assert_true(hf__gate_may_act(&first, 1));
}

static int init_mark(void **state) { return hf__process_mark_init(); }

int main(void) {
        const struct CMUnitTest tests[] = {
                cmocka_unit_test(test_a_new_gate_is_shut),
                cmocka_unit_test(test_a_gate_shuts_when_its_validity_ends),
                cmocka_unit_test(test_a_gate_is_only_extended_forwards),
                cmocka_unit_test(test_a_gate_is_shut_in_a_forked_child),
                cmocka_unit_test(test_a_gate_is_shut_in_a_child_with_the_same_process_id),
                cmocka_unit_test(test_each_generation_has_its_own_gate),
        };
        return cmocka_run_group_tests(tests, init_mark, NULL);
}

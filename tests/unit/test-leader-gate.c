/* SPDX-License-Identifier: Apache-2.0 */
/* The gate: until when a process may act. */
#undef NDEBUG
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include <sys/wait.h>
#include <unistd.h>

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

int main(void) {
        const struct CMUnitTest tests[] = {
                cmocka_unit_test(test_a_new_gate_is_shut),
                cmocka_unit_test(test_a_gate_shuts_when_its_validity_ends),
                cmocka_unit_test(test_a_gate_is_only_extended_forwards),
                cmocka_unit_test(test_a_gate_is_shut_in_a_forked_child),
        };
        return cmocka_run_group_tests(tests, NULL, NULL);
}

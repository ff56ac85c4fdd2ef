/* SPDX-License-Identifier: Apache-2.0 */
/* The examples with an event loop end each term once, in whichever order its end is requested. */
#undef NDEBUG
#include <assert.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#pragma GCC diagnostic ignored "-Wunused-function"
#include "examples/loop_counter.h"

static struct hf_loop_run *const run = (struct hf_loop_run *)0x10; /* only compared */
static int n_done;

void __wrap_hf_loop_run_done(struct hf_loop_run *done, int result);
void __wrap_hf_loop_run_done(struct hf_loop_run *done, int result) {
        assert_ptr_equal(done, run);
        n_done++;
}

static const struct hf_response ok = {.size = sizeof ok, .error = 0};

static void test_a_term_is_ended_once(void **state) {
        struct loop_counter counter = {.run = run, .writing = 1};

        n_done = 0;
        assert_int_equal(hf_loop_new(&counter.loop), 0);
        loop_counter_drain(&counter, run);
        loop_counter_tick(&counter);
        assert_int_equal(n_done, 0); /* a write is under way */
        loop_counter_written(&counter, &ok);
        loop_counter_drain(&counter, run); /* the abort, before anything else */
        assert_int_equal(n_done, 1);
        (void)hf_loop_dispatch(counter.loop);
        loop_counter_tick(&counter);
        assert_int_equal(n_done, 1);
        counter.loop = hf_loop_free(counter.loop);
}

static void test_a_term_ends_soon_after_its_last_write(void **state) {
        struct loop_counter counter = {.run = run, .writing = 1};

        n_done = 0;
        assert_int_equal(hf_loop_new(&counter.loop), 0);
        loop_counter_drain(&counter, run);
        loop_counter_written(&counter, &ok);
        (void)hf_loop_dispatch(counter.loop);
        loop_counter_tick(&counter);
        assert_int_equal(n_done, 1);
        counter.loop = hf_loop_free(counter.loop);
}

int main(void) {
        const struct CMUnitTest tests[] = {
                cmocka_unit_test(test_a_term_is_ended_once),
                cmocka_unit_test(test_a_term_ends_soon_after_its_last_write),
        };
        return cmocka_run_group_tests(tests, NULL, NULL);
}

/* SPDX-License-Identifier: Apache-2.0 */
/* Reads that are ready and are passed to their threads. */
#undef NDEBUG
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>

#include <cmocka.h>

#include "server/cacher/sync/consistent_read.h"

#define N_READS 12

static struct hfd_consistent_read reads[N_READS];
static size_t n_ready[N_READS], n_passed, n_refused;
static struct hfd_consistent_read *passed[N_READS];
static const char threads[3];

static size_t index_of(const struct hfd_consistent_read *read) { return (size_t)(read - reads); }

static void on_ready(struct hfd_consistent_read *read) {
        n_ready[index_of(read)]++;
        memset(read, 0xff, sizeof *read); /* ready may free it */
}

static bool pass(struct hfd_consistent_read *group) {
        if (n_refused > 0) {
                n_refused--;
                return false;
        }
        passed[n_passed++] = group;
        return true;
}

/* Every third read has the same thread; reads of the third thread are not passed. */
static struct hfd_consistent_read *start(size_t refusals) {
        memset(reads, 0, sizeof reads);
        memset(n_ready, 0, sizeof n_ready);
        n_passed = 0;
        n_refused = refusals;
        for (size_t i = 0; i < N_READS; i++) {
                reads[i].ready = on_ready;
                reads[i].thread = &threads[i % 3];
                reads[i].pass = i % 3 == 2 ? NULL : pass;
                reads[i].next = i + 1 < N_READS ? &reads[i + 1] : NULL;
        }
        return reads;
}

static void expect_each_ready_once(void) {
        for (size_t i = 0; i < N_READS; i++)
                assert_int_equal(n_ready[i], 1);
}

static void test_reads_of_one_thread_are_passed_together(void **state) {
        hfd_consistent_reads_call_ready(start(0));
        assert_int_equal(n_passed, 2);
        for (size_t i = 0; i < N_READS; i++)
                assert_int_equal(n_ready[i], i % 3 == 2 ? 1 : 0);
        for (size_t i = 0; i < n_passed; i++) {
                for (const struct hfd_consistent_read *read = passed[i]; read; read = read->next)
                        assert_ptr_equal(read->thread, &threads[i]);
                hfd_consistent_reads_call_ready_here(passed[i]);
        }
        expect_each_ready_once();
}

static void test_a_read_that_cannot_be_passed_is_called_here(void **state) {
        hfd_consistent_reads_call_ready(start(2));
        assert_int_equal(n_passed, 2);
        assert_int_equal(n_ready[0], 1);
        assert_int_equal(n_ready[3], 1);
        assert_ptr_equal(passed[0], &reads[6]);
        for (size_t i = 0; i < n_passed; i++)
                hfd_consistent_reads_call_ready_here(passed[i]);
        expect_each_ready_once();
        hfd_consistent_reads_call_ready(start(N_READS));
        assert_int_equal(n_passed, 0);
        expect_each_ready_once();
}

int main(void) {
        const struct CMUnitTest tests[] = {
                cmocka_unit_test(test_reads_of_one_thread_are_passed_together),
                cmocka_unit_test(test_a_read_that_cannot_be_passed_is_called_here),
        };

        return cmocka_run_group_tests(tests, NULL, NULL);
}

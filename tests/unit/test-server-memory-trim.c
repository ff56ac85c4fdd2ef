/* SPDX-License-Identifier: Apache-2.0 */
/* When freed memory is returned to the kernel: the decision, and a real peak. */
#undef NDEBUG
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>
#include <malloc.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "base/thread.h"
#include "server/process/memory_trim.h"

#define MIB ((size_t)1 << 20)

static const struct hf_host host = {.size = sizeof host};

static void test_a_trim_is_due_when_much_memory_is_unused_for_long(void **state) {
        struct hfd_memory_trim trim = {0};

        assert_false(hfd_memory_trim_is_due(&trim, 50 * MIB, 10 * MIB));   /* too little */
        assert_false(hfd_memory_trim_is_due(&trim, 500 * MIB, 100 * MIB)); /* just now */
        assert_false(hfd_memory_trim_is_due(&trim, 500 * MIB, 300 * MIB)); /* it changes */
        assert_true(hfd_memory_trim_is_due(&trim, 500 * MIB, 300 * MIB));
        /* A trim has left 190 MiB, which are not worth another one until there is more. */
        trim.tolerated = 190 * MIB;
        assert_false(hfd_memory_trim_is_due(&trim, 500 * MIB, 300 * MIB));
        assert_false(hfd_memory_trim_is_due(&trim, 600 * MIB, 300 * MIB));
        assert_true(hfd_memory_trim_is_due(&trim, 600 * MIB, 300 * MIB));
        /* A large process tolerates more. */
        trim = (struct hfd_memory_trim){.waste = 100 * MIB};
        assert_false(hfd_memory_trim_is_due(&trim, 2100 * MIB, 2000 * MIB));
}

static size_t resident(void) {
        unsigned long size, pages;
        FILE *file = fopen("/proc/self/statm", "re");

        assert_non_null(file);
        assert_int_equal(fscanf(file, "%lu %lu", &size, &pages), 2);
        fclose(file);
        return pages * (size_t)sysconf(_SC_PAGESIZE);
}

/* Allocates *ctx MiB in small blocks, and frees all but one in a thousand: those keep the heap from
 * shrinking by itself. */
static void *make_peak(void *ctx) {
        const size_t n = *(const size_t *)ctx * 1024;
        char **blocks = calloc(n, sizeof *blocks);

        for (size_t i = 0; i < n; i++) {
                blocks[i] = malloc(1000);
                memset(blocks[i], 1, 1000);
        }
        for (size_t i = 0; i < n; i++)
                if (i % 1000 != 999)
                        free(blocks[i]);
        return blocks;
}

static void free_rest(char **blocks, size_t n_mib) {
        for (size_t i = 999; i < n_mib * 1024; i += 1000)
                free(blocks[i]);
        free(blocks);
}

static void test_the_memory_of_a_peak_is_given_back(void **state) {
        struct hfd_memory_trim trim = {.phase = HFD_MEMORY_TRIM_SETTLED};
        const size_t n_mib = 200;
        pthread_t thread;
        void *blocks;

        assert_int_equal(hf__thread_start(&host, "peak", make_peak, (void *)&n_mib, &thread), 0);
        blocks = hf__thread_join(thread);
        size_t before = resident();
        if (mallinfo2().arena < 150 * MIB) {
                free_rest(blocks, n_mib);
                skip(); /* another allocator, as with a sanitizer */
        }
        hfd_memory_trim_tick(&trim, &host, 1);
        assert_true(resident() > 150 * MIB); /* the first call only records the amount */
        hfd_memory_trim_tick(&trim, &host, 2);
        assert_true(resident() > 150 * MIB); /* it is not time */
        assert_true(hfd_memory_trim_next(&trim) >= 1 + HFD_MEMORY_TRIM_INTERVAL);
        hfd_memory_trim_tick(&trim, &host, hfd_memory_trim_next(&trim));
        assert_true(resident() < before / 2);
        free_rest(blocks, n_mib);
}

/* The amount of an earlier check does not count as one that has lasted. */
static void test_a_small_process_has_no_waste(void **state) {
        struct hfd_memory_trim trim = {.phase = HFD_MEMORY_TRIM_SETTLED,
                                       .waste = 200 * MIB,
                                       .tolerated = SIZE_MAX / 2};

        hfd_memory_trim_tick(&trim, &host, 1);
        assert_int_equal(trim.waste, 0);
}

/* Returns the blocks, and the resident memory with them in *ret_before. */
static void *make_peak_of(size_t n_mib, size_t *ret_before) {
        pthread_t thread;

        assert_int_equal(hf__thread_start(&host, "peak", make_peak, &n_mib, &thread), 0);
        void *blocks = hf__thread_join(thread);
        *ret_before = resident();
        if (mallinfo2().arena < 20 * MIB) {
                free_rest(blocks, n_mib);
                skip(); /* another allocator, as with a sanitizer */
        }
        return blocks;
}

/* Directly after the start, a peak is given back that would be too small later; and once more when
 * the start is forgotten. */
static void test_the_memory_of_the_start_is_given_back(void **state) {
        const hf_nsec first = 1 + HFD_MEMORY_TRIM_INTERVAL, second = first + HFD_MEMORY_TRIM_FORGET;
        struct hfd_memory_trim trim = {0};
        const size_t n_mib = 30;
        size_t before;
        void *blocks = make_peak_of(n_mib, &before);

        hfd_memory_trim_tick(&trim, &host, 1);
        assert_true(resident() > before - MIB); /* the start has just ended */
        assert_true(hfd_memory_trim_next(&trim) == first);
        hfd_memory_trim_tick(&trim, &host, first);
        assert_true(resident() < before - 15 * MIB);
        assert_true(hfd_memory_trim_next(&trim) == first + HFD_MEMORY_TRIM_INTERVAL);
        free_rest(blocks, n_mib);

        blocks = make_peak_of(n_mib, &before);
        hfd_memory_trim_tick(&trim, &host, second - 1);
        assert_true(resident() > before - MIB);
        hfd_memory_trim_tick(&trim, &host, second + HFD_MEMORY_TRIM_INTERVAL);
        assert_true(resident() < before - 15 * MIB);
        /* The checks go on, because a peak may come at any time. */
        assert_true(hfd_memory_trim_next(&trim) == second + 2 * HFD_MEMORY_TRIM_INTERVAL);
        free_rest(blocks, n_mib);
}

int main(void) {
        const struct CMUnitTest tests[] = {
                cmocka_unit_test(test_a_trim_is_due_when_much_memory_is_unused_for_long),
                cmocka_unit_test(test_a_small_process_has_no_waste),
                cmocka_unit_test(test_the_memory_of_the_start_is_given_back),
                cmocka_unit_test(test_the_memory_of_a_peak_is_given_back),
        };
        return cmocka_run_group_tests(tests, NULL, NULL);
}

/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Compactors over the memory store, driven by ticks: which one compacts, at which revision, and how
 * they agree.
 */
#undef NDEBUG
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#include "server/storage/compactor.h"
#include "server/storage/memory/store.h"
#include "store_client.h"

#define KEY "/registry.holdfast/compact"

static const struct hf_host host = {.size = sizeof(struct hf_host)};

#define INTERVAL (300 * HF_NSEC_PER_SEC)
#define STEP     (INTERVAL / HFD_COMPACT_N_STEPS)

struct fixture {
        struct hfd_store *store;
        struct hfd_compactor *compactors[2];
        hf_nsec now;
};

static int setup(void **state) {
        struct fixture *f = calloc(1, sizeof *f);

        assert_non_null(f);
        assert_int_equal(hfd_memory_store_new(&host, &f->store), 0);
        for (int i = 0; i < 2; i++)
                assert_int_equal(hfd_compactor_new(&host, f->store, "/registry", INTERVAL,
                                                   &f->compactors[i]),
                                 0);
        f->now = HF_NSEC_PER_SEC;
        *state = f;
        return 0;
}

static int teardown(void **state) {
        struct fixture *f = *state;

        for (int i = 0; i < 2; i++)
                hfd_compactor_free(f->compactors[i]);
        f->store->ops->free(f->store);
        free(f);
        return 0;
}

/*
 * Ticks, and waits for what the tick started. The store replies in order, and each operation of an
 * attempt starts in the callback of the one before: the key is read, written, the store compacted.
 */
static void tick(struct fixture *f, int which) {
        hfd_compactor_tick(f->compactors[which], f->now);
        for (int i = 0; i < 3; i++)
                store_client_revision(f->store);
}

/* The revision of the next compaction, as the key says. */
static uint64_t noted(struct fixture *f) {
        struct store_reply response;
        uint64_t revision;

        assert_int_equal(store_client_get(f->store, KEY, &response), 0);
        assert_int_equal(response.n_kvs, 1);
        revision = strtoull(store_reply_value(&response, 0), NULL, 10);
        store_reply_deinit(&response);
        return revision;
}

static bool gone(struct fixture *f, uint64_t revision) {
        int r = store_client_list(f->store, "/", NULL, revision, 0, true, NULL);

        assert_true(r == 0 || r == HF_E_GONE);
        return r == HF_E_GONE;
}

static void pass_steps(struct fixture *f, int which, int n) {
        for (int i = 0; i < n; i++) {
                f->now += STEP;
                tick(f, which);
        }
}

static void restart(struct fixture *f, int which) {
        hfd_compactor_free(f->compactors[which]);
        assert_int_equal(hfd_compactor_new(&host, f->store, "/registry", INTERVAL,
                                           &f->compactors[which]),
                         0);
}

static void test_compacts_at_the_target_after_its_last_step(void **state) {
        struct fixture *f = *state;
        uint64_t first, later;

        first = store_client_put(f->store, "/a", "1");
        tick(f, 0);
        assert_int_equal(noted(f), first);
        later = store_client_put(f->store, "/a", "2");
        f->now += STEP - 1;
        tick(f, 0);
        assert_int_equal(store_client_revision(f->store), later); /* not due: nothing was written */
        f->now -= STEP - 1;
        pass_steps(f, 0, HFD_COMPACT_N_STEPS - 1);
        assert_int_equal(noted(f), first);
        assert_false(gone(f, 1));
        pass_steps(f, 0, 1);
        assert_true(gone(f, first - 1));
        assert_false(gone(f, first));
        assert_true(noted(f) >= later);
        later = noted(f);
        pass_steps(f, 0, HFD_COMPACT_N_STEPS);
        assert_true(gone(f, later - 1));
        assert_false(gone(f, later));
}

/* Instances that run for little more than one step each: the store is compacted nevertheless, and
 * not earlier than otherwise. */
static void test_a_restart_goes_on_from_the_steps_in_the_store(void **state) {
        struct fixture *f = *state;
        uint64_t target = store_client_put(f->store, "/a", "1");

        tick(f, 0);
        for (int i = 0; i < HFD_COMPACT_N_STEPS; i++) {
                assert_int_equal(noted(f), target);
                assert_false(gone(f, 1));
                restart(f, 0);
                tick(f, 0); /* reads the key, and cannot know how old it is */
                pass_steps(f, 0, 1);
        }
        assert_true(gone(f, target - 1));
        assert_false(gone(f, target));
}

static void test_only_one_instance_adds_a_step(void **state) {
        struct fixture *f = *state;
        uint64_t target, after;

        store_client_put(f->store, "/a", "1");
        for (int i = 0; i < 2; i++)
                tick(f, i);
        target = noted(f);
        for (int i = 0; i < HFD_COMPACT_N_STEPS; i++) {
                assert_false(gone(f, 1));
                pass_steps(f, 0, 1);
                after = store_client_revision(f->store);
                tick(f, 1); /* sees the newer value, and does nothing */
                assert_int_equal(store_client_revision(f->store), after);
        }
        assert_true(gone(f, target - 1));
        assert_false(gone(f, target));
        target = noted(f);
        pass_steps(f, 1, HFD_COMPACT_N_STEPS); /* goes on from the target of the other one */
        assert_true(gone(f, target - 1));
        assert_false(gone(f, target));
        tick(f, 0);
        assert_false(gone(f, target));
}

static void test_a_deleted_key_is_written_anew(void **state) {
        struct fixture *f = *state;
        uint64_t seen;

        tick(f, 0);
        pass_steps(f, 0, 1);
        seen = store_client_delete(f->store, KEY);
        pass_steps(f, 0, 1);
        assert_int_equal(noted(f), seen);
        store_client_put(f->store, "/a", "1");
        pass_steps(f, 0, HFD_COMPACT_N_STEPS);
        assert_true(gone(f, seen - 1));
}

/* A value that is not a revision of this store compacts nothing and is replaced. */
static void test_a_useless_target_is_replaced(void **state) {
        static const char *const useless[] = {"999999", "rubbish", "", "2 10", "2 x"};
        struct fixture *f = *state;

        for (size_t i = 0; i < sizeof useless / sizeof *useless; i++) {
                store_client_put(f->store, KEY, useless[i]);
                restart(f, 0);
                tick(f, 0);
                pass_steps(f, 0, 1);
                assert_int_equal(noted(f), store_client_revision(f->store) - 1);
                assert_false(gone(f, 1));
        }
}

static void test_a_compactor_can_be_freed_with_a_round_under_way(void **state) {
        struct fixture *f = *state;

        tick(f, 0);
        f->now += STEP;
        hfd_compactor_tick(f->compactors[0], f->now);
        f->compactors[0] = hfd_compactor_free(f->compactors[0]);
        assert_null(f->compactors[0]);
}

static void test_the_interval_is_that_of_all_steps(void **state) {
        struct fixture *f = *state;

        hfd_compactor_free(f->compactors[0]);
        assert_int_equal(hfd_compactor_new(&host, f->store, "/registry", 10 * HF_NSEC_PER_SEC,
                                           &f->compactors[0]),
                         0);
        uint64_t first = store_client_put(f->store, "/a", "1");
        tick(f, 0);
        (void)store_client_put(f->store, "/a", "2");
        for (int i = 0; i < HFD_COMPACT_N_STEPS; i++) {
                assert_false(gone(f, 1));
                assert_true(hfd_compactor_next(f->compactors[0]) == f->now + HF_NSEC_PER_SEC);
                f->now += HF_NSEC_PER_SEC;
                tick(f, 0);
        }
        assert_true(gone(f, first - 1));
}

static void test_an_interval_of_zero_compacts_nothing(void **state) {
        struct fixture *f = *state;

        hfd_compactor_free(f->compactors[0]);
        assert_int_equal(hfd_compactor_new(&host, f->store, "/registry", 0, &f->compactors[0]), 0);
        uint64_t last = store_client_put(f->store, "/a", "1");
        for (int i = 0; i < 3 * HFD_COMPACT_N_STEPS; i++) {
                assert_true(hfd_compactor_next(f->compactors[0]) == INT64_MAX);
                f->now += INTERVAL;
                tick(f, 0);
        }
        assert_int_equal(store_client_revision(f->store), last); /* not even the key was written */
        assert_false(gone(f, 1));
}

static void test_a_long_prefix_is_refused(void **state) {
        struct fixture *f = *state;
        struct hfd_compactor *compactor;
        char prefix[2000];

        memset(prefix, 'p', sizeof prefix - 1);
        prefix[sizeof prefix - 1] = 0;
        assert_int_equal(hfd_compactor_new(&host, f->store, prefix, INTERVAL, &compactor),
                         HF_E_TOO_LARGE);
}

int main(void) {
#define CASE(name) cmocka_unit_test_setup_teardown(name, setup, teardown)
        const struct CMUnitTest cases[] = {
                CASE(test_compacts_at_the_target_after_its_last_step),
                CASE(test_a_restart_goes_on_from_the_steps_in_the_store),
                CASE(test_only_one_instance_adds_a_step),
                CASE(test_a_deleted_key_is_written_anew),
                CASE(test_a_useless_target_is_replaced),
                CASE(test_a_compactor_can_be_freed_with_a_round_under_way),
                CASE(test_the_interval_is_that_of_all_steps),
                CASE(test_an_interval_of_zero_compacts_nothing),
                CASE(test_a_long_prefix_is_refused),
        };

        return cmocka_run_group_tests(cases, NULL, NULL);
}

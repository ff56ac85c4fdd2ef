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
                assert_int_equal(hfd_compactor_new(&host, f->store, "/registry", &f->compactors[i]),
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
 * Ticks, and waits until the work of the tick is done. The store replies in order: the first probe
 * comes after the agreement, whose callback may have started a compaction, and the second probe
 * after that.
 */
static void tick(struct fixture *f, int which) {
        hfd_compactor_tick(f->compactors[which], f->now);
        store_client_revision(f->store);
        store_client_revision(f->store);
}

static bool gone(struct fixture *f, uint64_t revision) {
        int r = store_client_list(f->store, "/", NULL, revision, 0, true, NULL);

        assert_true(r == 0 || r == HF_E_GONE);
        return r == HF_E_GONE;
}

static void test_compacts_at_the_revision_of_the_previous_round(void **state) {
        struct fixture *f = *state;
        uint64_t first, seen, later;
        struct store_reply response;

        first = store_client_put(f->store, "/a", "1");
        tick(f, 0);
        f->now += HFD_COMPACT_INTERVAL - 1;
        tick(f, 0);
        assert_int_equal(store_client_revision(f->store),
                         first); /* not due yet: nothing was written */
        f->now += 1;
        tick(f, 0);
        seen = store_client_revision(f->store); /* the revision of the agreement */
        assert_int_equal(seen, first + 1);
        assert_false(gone(f, first)); /* the first round only notes the revision */
        later = store_client_put(f->store, "/a", "2");
        f->now += HFD_COMPACT_INTERVAL;
        tick(f, 0);
        assert_true(gone(f, seen - 1));
        assert_false(gone(f, seen));
        assert_false(gone(f, later));
        assert_int_equal(store_client_get(f->store, KEY, &response), 0);
        assert_int_equal(strtoull(store_reply_value(&response, 0), NULL, 10), seen);
        store_reply_deinit(&response);
}

static void test_only_the_winner_compacts(void **state) {
        struct fixture *f = *state;
        uint64_t first_seen, second_seen;

        for (int i = 0; i < 2; i++)
                tick(f, i);
        f->now += HFD_COMPACT_INTERVAL;
        tick(f, 0); /* writes the agreement */
        first_seen = store_client_revision(f->store);
        store_client_put(f->store, "/a", "1");
        tick(f, 1); /* loses, and learns the agreement */
        second_seen = store_client_revision(f->store);
        assert_true(second_seen > first_seen);
        assert_false(gone(f, first_seen - 1));
        store_client_put(f->store, "/a", "2");
        f->now += HFD_COMPACT_INTERVAL;
        tick(f, 1); /* wins: at the revision that it noted, not at that of the other */
        assert_true(gone(f, second_seen - 1));
        assert_false(gone(f, second_seen));
        tick(f, 0); /* loses: compacts nothing */
        assert_false(gone(f, second_seen));
}

static void test_a_deleted_agreement_is_recreated(void **state) {
        struct fixture *f = *state;
        uint64_t seen;

        tick(f, 0);
        f->now += HFD_COMPACT_INTERVAL;
        tick(f, 0);
        store_client_delete(f->store, KEY);
        f->now += HFD_COMPACT_INTERVAL;
        tick(f, 0); /* a conflict: it learns that there is no agreement */
        seen = store_client_revision(f->store);
        store_client_put(f->store, "/a", "1");
        f->now += HFD_COMPACT_INTERVAL;
        tick(f, 0);
        assert_true(gone(f, seen - 1));
}

static void test_a_compactor_can_be_freed_with_a_round_under_way(void **state) {
        struct fixture *f = *state;

        tick(f, 0);
        f->now += HFD_COMPACT_INTERVAL;
        hfd_compactor_tick(f->compactors[0], f->now);
        f->compactors[0] = hfd_compactor_free(f->compactors[0]);
        assert_null(f->compactors[0]);
}

static void test_a_long_prefix_is_refused(void **state) {
        struct fixture *f = *state;
        struct hfd_compactor *compactor;
        char prefix[2000];

        memset(prefix, 'p', sizeof prefix - 1);
        prefix[sizeof prefix - 1] = 0;
        assert_int_equal(hfd_compactor_new(&host, f->store, prefix, &compactor), HF_E_TOO_LARGE);
}

int main(void) {
#define CASE(name) cmocka_unit_test_setup_teardown(name, setup, teardown)
        const struct CMUnitTest cases[] = {
                CASE(test_compacts_at_the_revision_of_the_previous_round),
                CASE(test_only_the_winner_compacts),
                CASE(test_a_deleted_agreement_is_recreated),
                CASE(test_a_compactor_can_be_freed_with_a_round_under_way),
                CASE(test_a_long_prefix_is_refused),
        };

        return cmocka_run_group_tests(cases, NULL, NULL);
}

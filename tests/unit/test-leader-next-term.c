/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The next term of a standby: when it is prepared, and that it begins once or is freed. The clock
 * moves only when the test moves it, so what happens does so without a wait.
 */
#undef NDEBUG
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <string.h>

#include <cmocka.h>

#include "clocked_elector.h"

#include "leader/next_term.h"

static const struct clocked_options plain = {0};

static void finish(void) {
        clocked_elector_stop();
        assert_null(clocked.elector->next_term);
        assert_int_equal(clocked.electors->n_waiting_threads, 0);
        clocked_elector_free();
}

static bool follows_b(void) {
        return clocked_is(HF_FOLLOWING) && strcmp(clocked_info().holder, "b") == 0;
}

static void begin_as_standby(const struct clocked_options *options) {
        clocked_elector_init();
        clocked_put_lease("b", "");
        clocked_elector_start(options);
        CLOCKED_AWAIT(follows_b());
}

static void test_a_standby_begins_the_term_that_it_has_prepared(void **state) {
        begin_as_standby(&plain);
        struct hf__term *prepared = clocked.elector->next_term;
        assert_non_null(prepared);
        assert_int_equal(clocked.n_runs, 0);
        clocked_put_lease("", "");
        clocked_await_term();
        assert_ptr_equal(clocked.elector->term, prepared);
        assert_null(clocked.elector->next_term);
        assert_int_equal(clocked.n_runs, 1);
        assert_int_equal(clocked.electors->n_waiting_threads, 0);
        finish();
}

static void test_a_standby_that_stops_has_run_nothing(void **state) {
        begin_as_standby(&plain);
        assert_non_null(clocked.elector->next_term);
        finish();
        assert_int_equal(clocked.n_runs, 0);
}

static void test_a_process_that_leads_at_once_prepares_nothing(void **state) {
        clocked_elector_init();
        clocked_elector_start(&plain);
        clocked_await_term();
        assert_null(clocked.elector->next_term);
        finish();
}

static void test_after_a_lost_term_another_is_prepared(void **state) {
        begin_as_standby(&plain);
        clocked_put_lease("", "");
        clocked_await_term();
        clocked_elector_let_end();
        clocked_put_lease("b", "");
        CLOCKED_AWAIT(follows_b());
        assert_null(clocked.elector->term);
        assert_non_null(clocked.elector->next_term);
        clocked_put_lease("", "");
        clocked_move(100 * SEC); /* longer than the pause after the loss */
        clocked_await_term();
        assert_int_equal(clocked.n_runs, 2);
        finish();
}

/* The threads of controllers that run on each instance exist anyway. */
static int return_at_once(struct hf_term *term, void *ctx) { return 0; }

static void test_only_controllers_of_a_leader_are_prepared(void **state) {
        begin_as_standby(&(struct clocked_options){.local = return_at_once, .n_more = 2});
        assert_int_equal(clocked.electors->n_waiting_threads, 1);
        assert_null(clocked.more[0]->next_term);
        finish();
}

enum { N_EACH = 40 }; /* of two electors; the limit is between one and two of them */

static struct hf_elector *add_elector(const char *name, const char *prefix) {
        static const struct hf_controller empty = {.size = sizeof empty, .run = return_at_once};
        struct hf_controller controllers[N_EACH];
        char names[N_EACH][16];
        struct hf_elector *elector = NULL;
        const struct hf_elector_config config = {.size = sizeof config,
                                                 .ns = "kube-system",
                                                 .name = name,
                                                 .identity = "a",
                                                 .client = &clocked.client->base,
                                                 .controllers = controllers,
                                                 .n_controllers = N_EACH};

        for (int i = 0; i < N_EACH; i++) {
                (void)snprintf(names[i], sizeof names[i], "%s-%d", prefix, i);
                controllers[i] = empty;
                controllers[i].name = names[i];
        }
        assert_int_equal(hf_electors_add(clocked.electors, &config, &elector, NULL), 0);
        return elector;
}

static void put_other_lease(const char *holder) {
        char text[200];

        (void)snprintf(text, sizeof text,
                       "{\"metadata\":{\"name\":\"other\"},\"spec\":{\"holderIdentity\":\"%s\","
                       "\"leaseDurationSeconds\":100,\"acquireTime\":\"" HAND_CLOCK_REAL_Z "\","
                       "\"renewTime\":\"" HAND_CLOCK_REAL_Z "\"}}",
                       holder);
        fake_api_put(clocked.api, "leases/kube-system/other", text);
}

static bool leads(struct hf_elector *elector) {
        struct hf_leader_info info = {.size = sizeof info};

        assert_int_equal(hf_elector_info(elector, &info), 0);
        return info.state == HF_LEADING;
}

/* The elector that has no place begins its term all the same. */
static void test_the_threads_of_all_next_terms_are_limited(void **state) {
        clocked_elector_init();
        clocked_put_lease("b", "");
        put_other_lease("b");
        assert_int_equal(hf_electors_new(&clocked.host, &clocked.electors), 0);
        clocked.elector = add_elector("lead", "x");
        struct hf_elector *other = add_elector("other", "y");
        assert_int_equal(hf_electors_start(clocked.electors, NULL), 0);
        CLOCKED_AWAIT(follows_b());
        clocked_settle();
        assert_int_equal(clocked.electors->n_waiting_threads, N_EACH);
        assert_true(!clocked.elector->next_term != !other->next_term);
        clocked_put_lease("", "");
        put_other_lease("");
        CLOCKED_AWAIT(leads(clocked.elector) && leads(other));
        assert_int_equal(clocked.electors->n_waiting_threads, 0);
        finish();
}

int main(void) {
        const struct CMUnitTest tests[] = {
                cmocka_unit_test(test_a_standby_begins_the_term_that_it_has_prepared),
                cmocka_unit_test(test_a_standby_that_stops_has_run_nothing),
                cmocka_unit_test(test_a_process_that_leads_at_once_prepares_nothing),
                cmocka_unit_test(test_after_a_lost_term_another_is_prepared),
                cmocka_unit_test(test_only_controllers_of_a_leader_are_prepared),
                cmocka_unit_test(test_the_threads_of_all_next_terms_are_limited),
        };
        return cmocka_run_group_tests(tests, NULL, NULL);
}

/* SPDX-License-Identifier: Apache-2.0 */
/* The texts that the cores of a set keep (leader/kept_texts.h): equal ones once, and no longer than
 * a core has a pointer to them. */
#undef NDEBUG
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <string.h>

#include <cmocka.h>

#include "leader/kept_texts.h"
#include "time_units.h"

static struct {
        struct hf__kept_texts texts;
        struct hf__core cores[2];
        hf_nsec now;
        uint64_t revision;
} f;

/* As the loop does it. */
static void step(struct hf__core *core, const struct hf__core_event *event) {
        struct hf__kept_texts_step step;
        struct hf__core_actions actions;

        assert_int_equal(hf__kept_texts_begin(&f.texts, core, event, &step), 0);
        hf__core_step(core, event, (struct hf__core_time){.boot = f.now, .real_us = f.now / 1000},
                      &actions);
        hf__kept_texts_end(&f.texts, core, &step);
}

static int set_up(void **state) {
        static const char *const identities[] = {"a", "b"};

        memset(&f, 0, sizeof f);
        f.now = 1000 * SEC;
        hf__kept_texts_init(&f.texts);
        for (int i = 0; i < 2; i++) {
                struct hf__core_config config = {.identity = identities[i], .texts = &f.texts.port};
                struct hf__core_event tick = {.type = HF__EV_TICK};

                hf_leader_timing_defaults(&config.timing);
                hf__core_init(&f.cores[i], &config, (struct hf__core_time){.boot = f.now});
                step(&f.cores[i], &tick);
        }
        return 0;
}

static int tear_down(void **state) {
        hf__kept_texts_done(&f.texts);
        return 0;
}

/* The core reads, or its watch reports, a Lease with this holder and this successor. */
static void see(struct hf__core *core, const char *holder, const char *successor) {
        struct hf__core_event event = {.type = core->observed_once ? HF__EV_WATCHED
                                                                   : HF__EV_READ_DONE,
                                       .op_id = core->op_id,
                                       .record = {.exists = true,
                                                  .duration_s = 15,
                                                  .rv_number = ++f.revision,
                                                  .rv = "1"}};

        event.record.acquire_us = event.record.renew_us = (int64_t)f.revision;
        strcpy(event.record.holder, holder);
        strcpy(event.record.successor, successor);
        step(core, &event);
}

static void test_equal_texts_are_kept_once(void **state) {
        see(&f.cores[0], "leader", "");
        see(&f.cores[1], "leader", "");
        assert_int_equal(f.texts.index.n, 1);
        assert_ptr_equal(f.cores[0].observed.holder, f.cores[1].observed.holder);
        assert_string_equal(f.cores[0].last_holder, "leader");
}

static void test_a_core_has_its_own_identity_already(void **state) {
        see(&f.cores[0], "a", "");
        assert_int_equal(f.texts.index.n, 0);
        assert_ptr_equal(f.cores[0].observed.holder, f.cores[0].config.identity);
        see(&f.cores[1], "a", ""); /* to this one it is another's */
        assert_int_equal(f.texts.index.n, 1);
}

/* A process may run for years, and see a new holder each day. */
static void test_a_text_is_freed_when_no_core_has_it(void **state) {
        see(&f.cores[0], "first", "");
        see(&f.cores[1], "first", "");
        for (int i = 0; i < 100; i++) {
                char holder[16], successor[16];

                (void)snprintf(holder, sizeof holder, "holder-%d", i);
                (void)snprintf(successor, sizeof successor, "next-%d", i);
                see(&f.cores[0], holder, successor);
                assert_string_equal(f.cores[0].observed.holder, holder);
                assert_string_equal(f.cores[0].observed.successor, successor);
                assert_string_equal(f.cores[1].observed.holder, "first");
        }
        assert_int_equal(f.texts.index.n, 3);
        see(&f.cores[0], "first", "");
        assert_int_equal(f.texts.index.n, 1);
}

/* The name moves from one member of the core to another within a step. */
static void test_a_text_may_move_within_a_core(void **state) {
        see(&f.cores[0], "x", "y");
        see(&f.cores[0], "y", "x");
        assert_int_equal(f.texts.index.n, 2);
        assert_string_equal(f.cores[0].observed.holder, "y");
        assert_string_equal(f.cores[0].observed.successor, "x");
        see(&f.cores[0], "", "x");
        assert_string_equal(f.cores[0].last_holder, "y");
        assert_int_equal(f.texts.index.n, 2);
}

/* An old event changes nothing, so its texts are not kept. */
static void test_a_text_that_the_core_ignores_is_not_kept(void **state) {
        f.revision = 10;
        see(&f.cores[0], "x", "");
        f.revision = 0;
        see(&f.cores[0], "old", "older");
        assert_int_equal(f.texts.index.n, 1);
        assert_string_equal(f.cores[0].observed.holder, "x");
}

#define TEST(name) cmocka_unit_test_setup_teardown(name, set_up, tear_down)

int main(void) {
        const struct CMUnitTest tests[] = {
                TEST(test_equal_texts_are_kept_once),
                TEST(test_a_core_has_its_own_identity_already),
                TEST(test_a_text_is_freed_when_no_core_has_it),
                TEST(test_a_text_may_move_within_a_core),
                TEST(test_a_text_that_the_core_ignores_is_not_kept),
        };
        return cmocka_run_group_tests(tests, NULL, NULL);
}

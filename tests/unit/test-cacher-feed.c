/* SPDX-License-Identifier: Apache-2.0 */
/* A thread that follows the cacher: when it builds its index again, and what it finds. */
#undef NDEBUG
#include <errno.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <string.h>

#include <cmocka.h>

#include "base/json.h"
#include "patience.h"
#include "scripted_cacher.h"
#include "server/cacher/feed/feed.h"
#include "server/resources/rows/resource_table.h"
#include "time_units.h"

#define SHORTAGE "memory ran out: reading the objects again in a second"

static struct {
        struct hfd_feed *feed;
        atomic_uint n_made, n_wakes; /* n_wakes: how many of the next runs wake the feed */
        atomic_int r;                /* the result of make */
        _Atomic hf_nsec takes;       /* how long it runs */
} f;

static int make(void *ctx, struct hfd_cacher *cacher) {
        assert_ptr_equal(ctx, &f);
        assert_ptr_equal(cacher, scripted.cacher);
        hand_clock_move(atomic_load(&f.takes));
        if (atomic_load(&f.n_wakes) > 0) {
                atomic_fetch_sub(&f.n_wakes, 1);
                hfd_feed_wake(f.feed);
        }
        int r = atomic_load(&f.r);
        atomic_fetch_add(&f.n_made, 1);
        return r;
}

static void begin(void) {
        const struct hfd_feed_config config = {.cacher = scripted.cacher,
                                               .thread = "feed",
                                               .component = "test",
                                               .pause_max = 500 * MSEC,
                                               .make = make,
                                               .ctx = &f};

        assert_int_equal(hfd_feed_new(&scripted.host, &config, &f.feed), 0);
}

/* Waits for this many runs in all, and until the thread waits. */
static void expect_made(unsigned n) {
        PATIENCE_AWAIT(atomic_load(&f.n_made) >= n);
        hand_clock_await_waiter();
        assert_int_equal(atomic_load(&f.n_made), n);
}

/* Makes this many runs, which owe all pauses that may be owed. */
static void begin_without_credit(unsigned n_runs) {
        begin();
        for (unsigned i = 1; i < n_runs; i++) {
                expect_made(i);
                hfd_feed_wake(f.feed);
        }
        expect_made(n_runs);
}

/* The next run comes after exactly this time. */
static void expect_made_after(hf_nsec pause, unsigned n) {
        scripted_cacher_move(pause - 1);
        assert_int_equal(atomic_load(&f.n_made), n - 1);
        scripted_cacher_move(1);
        expect_made(n);
}

static int set_up(void **state) {
        memset(&f, 0, sizeof f);
        return scripted_cacher_set_up(state);
}

static int tear_down(void **state) {
        assert_null(hfd_feed_free(f.feed));
        return scripted_cacher_tear_down(state);
}

/* ---- when ---- */

static void test_it_runs_once_for_each_change(void **state) {
        begin();
        expect_made(1);
        scripted_cacher_move(60 * SEC);
        expect_made(1);
        hfd_feed_wake(f.feed);
        expect_made(2);
        scripted_cacher_move(60 * SEC);
        expect_made(2);
}

/* A client creates a role, then its binding, and then uses them. */
static void test_a_few_changes_are_seen_at_once(void **state) {
        begin_without_credit(11);
        hfd_feed_wake(f.feed);
        expect_made_after(10 * MSEC, 12);
        scripted_cacher_move(30 * MSEC); /* pays for three pauses */
        for (unsigned n = 13; n <= 15; n++) {
                hfd_feed_wake(f.feed);
                expect_made(n);
        }
        hfd_feed_wake(f.feed);
        expect_made_after(10 * MSEC, 16);
}

/* A change that a run has missed is seen by the next run. */
static void test_a_change_during_a_run_needs_another(void **state) {
        begin();
        expect_made(1);
        atomic_store(&f.n_wakes, 2);
        hfd_feed_wake(f.feed);
        expect_made(4);
}

/* Frequent changes keep no processor busy. */
static void test_it_pauses_four_times_as_long_as_it_runs(void **state) {
        atomic_store(&f.takes, 25 * MSEC);
        begin_without_credit(2);
        hfd_feed_wake(f.feed);
        expect_made_after(100 * MSEC, 3);
        hfd_feed_wake(f.feed);
        hfd_feed_wake(f.feed);
        expect_made_after(100 * MSEC, 4);
        scripted_cacher_move(SEC);
        expect_made(4);
}

static void test_it_pauses_for_half_a_second_at_most(void **state) {
        atomic_store(&f.takes, 10 * SEC);
        begin();
        expect_made(1);
        hfd_feed_wake(f.feed);
        expect_made_after(400 * MSEC, 2); /* 100 ms may be owed */
        hfd_feed_wake(f.feed);
        expect_made_after(500 * MSEC, 3);
}

static void test_without_memory_it_tries_again_after_a_second(void **state) {
        atomic_store(&f.r, -ENOMEM);
        begin();
        expect_made(1);
        assert_int_equal(scripted_cacher_n_logged("4 test: " SHORTAGE), 1);
        expect_made_after(SEC, 2);
        assert_int_equal(scripted_cacher_n_logged(SHORTAGE), 2);
        atomic_store(&f.r, 0);
        expect_made_after(SEC, 3);
        scripted_cacher_move(60 * SEC);
        expect_made(3);
        assert_int_equal(scripted_cacher_n_logged(SHORTAGE), 2);
}

/* The cacher wakes the feed when it is filled. */
static void test_a_cacher_that_is_not_filled_is_no_reason_to_try_again(void **state) {
        atomic_store(&f.r, -EAGAIN);
        begin();
        expect_made(1);
        scripted_cacher_move(60 * SEC);
        expect_made(1);
        assert_int_equal(scripted_cacher_n_logged(SHORTAGE), 0);
}

static void test_a_stop_ends_a_pause(void **state) {
        atomic_store(&f.takes, 10 * SEC);
        begin();
        expect_made(1);
        hfd_feed_wake(f.feed);
        hfd_feed_stop(f.feed);
        hfd_feed_stop(f.feed);
        hfd_feed_wake(f.feed); /* the cacher may still wake it */
        assert_int_equal(atomic_load(&f.n_made), 1);
        hfd_feed_stop(NULL);
}

/* ---- what ---- */

struct found {
        char text[256];
        size_t n, n_wanted;
};

static int find(void *ctx, const char *ns, const char *name, const struct hf__json *object) {
        struct found *found = ctx;
        const char *inside = hf__json_string(object, "metadata.name");

        found->n += (size_t)snprintf(found->text + found->n, sizeof found->text - found->n,
                                     "%s/%s=%s ", ns, name, inside ? inside : "?");
        return --found->n_wanted > 0 ? 0 : -ENOMEM;
}

static const struct hfd_resource *configmaps(void) {
        return hfd_resource_find("", "v1", "configmaps");
}

/* Finds the objects of now. */
static int each(const struct hfd_resource *resource, struct found *found) {
        uint64_t revision = 0;

        return hfd_feed_each(scripted.cacher, resource, &revision, find, found);
}

/* No object of the API has such a namespace, but the store may have it. */
static void test_a_namespace_that_is_too_long_is_left_out(void **state) {
        struct found found = {.n_wanted = 9};
        char key[400];

        (void)snprintf(key, sizeof key, "/registry/configmaps/%0*d/x", HF_NAME_MAX + 1, 0);
        scripted_cacher_fill();
        scripted_store_event(&scripted.store, key, SCRIPTED_OBJECT("x"), 11);
        assert_int_equal(each(configmaps(), &found), 0);
        assert_string_equal(found.text, "ns/a=a ns/b=b ");
}

static void test_each_object_is_passed(void **state) {
        const struct hfd_resource *namespaces = hfd_resource_find("", "v1", "namespaces");
        struct found found = {.n_wanted = 9};

        assert_int_equal(each(configmaps(), &found), -EAGAIN);
        scripted_cacher_fill();
        assert_int_equal(each(configmaps(), &found), 0);
        assert_string_equal(found.text, "ns/a=a ns/b=b ");
        found = (struct found){.n_wanted = 1};
        assert_int_equal(each(configmaps(), &found), -ENOMEM);
        assert_string_equal(found.text, "ns/a=a ");
        found = (struct found){.n_wanted = 9};
        assert_int_equal(each(namespaces, &found), 0);
        assert_string_equal(found.text, "");
        scripted_store_event(&scripted.store, "/registry/namespaces/x",
                             "{\"metadata\":{\"name\":\"x\"}}", 11);
        assert_int_equal(each(namespaces, &found), 0);
        assert_string_equal(found.text, "/x=x ");
}

static int find_and_write(void *ctx, const char *ns, const char *name,
                          const struct hf__json *object) {
        scripted_store_event(&scripted.store, "/registry/namespaces/y",
                             "{\"metadata\":{\"name\":\"y\"}}", 12);
        return find(ctx, ns, name, object);
}

/* Otherwise an index of roles could join a new binding to what its role granted before. */
static void test_several_kinds_have_one_revision(void **state) {
        const struct hfd_resource *namespaces = hfd_resource_find("", "v1", "namespaces");
        struct found found = {.n_wanted = 9};
        uint64_t revision = 0, unknown = 1;

        scripted_cacher_fill();
        scripted_store_event(&scripted.store, "/registry/namespaces/x",
                             "{\"metadata\":{\"name\":\"x\"}}", 11);
        assert_int_equal(hfd_feed_each(scripted.cacher, namespaces, &revision, find_and_write,
                                       &found),
                         0);
        assert_string_equal(found.text, "/x=x ");
        assert_int_equal(revision, 11);
        assert_int_equal(hfd_feed_each(scripted.cacher, namespaces, &revision, find, &found), 0);
        assert_string_equal(found.text, "/x=x /x=x ");
        /* Of a state that is not known the cacher has only the present. */
        found = (struct found){.n_wanted = 9};
        assert_int_equal(hfd_feed_each(scripted.cacher, namespaces, &unknown, find, &found), 0);
        assert_string_equal(found.text, "/x=x /y=y ");
}

#define TEST(name) cmocka_unit_test_setup_teardown(name, set_up, tear_down)

int main(void) {
        const struct CMUnitTest tests[] = {
                TEST(test_it_runs_once_for_each_change),
                TEST(test_a_few_changes_are_seen_at_once),
                TEST(test_a_change_during_a_run_needs_another),
                TEST(test_it_pauses_four_times_as_long_as_it_runs),
                TEST(test_it_pauses_for_half_a_second_at_most),
                TEST(test_without_memory_it_tries_again_after_a_second),
                TEST(test_a_cacher_that_is_not_filled_is_no_reason_to_try_again),
                TEST(test_a_stop_ends_a_pause),
                TEST(test_a_namespace_that_is_too_long_is_left_out),
                TEST(test_each_object_is_passed),
                TEST(test_several_kinds_have_one_revision),
        };
        return cmocka_run_group_tests(tests, NULL, NULL);
}

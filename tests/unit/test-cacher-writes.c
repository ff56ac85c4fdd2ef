/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The version on which a write of this instance is based: one that the instance has stored itself,
 * before the store's watch delivers them. And where watches begin and end.
 */
#undef NDEBUG
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>

#include <cmocka.h>

#include "base/buf.h"
#include "patience.h"
#include "scripted_cacher.h"
#include "scripted_watch.h"
#include "server/resources/rows/resource_table.h"
#include "time_units.h"

#define TOO_OLD "The resourceVersion for the provided watch is too old."

static const struct hfd_resource *configmaps(void) {
        return hfd_resource_find("", "v1", "configmaps");
}

/* Records that this instance has written the object. */
static void record(const char *path, uint64_t revision) {
        static const char text[] = SCRIPTED_OBJECT("x");
        struct hf__buf *value = hf__buf_copy(text, strlen(text));
        struct hfd_object *object = hfd_object_new(configmaps(), path, revision, value);

        assert_non_null(object);
        hf__buf_unref(value);
        hfd_cacher_record_write(scripted.cacher, object);
        hfd_object_unref(object);
}

/* Returns the revision of the version on which a write is based; 0 = none. */
static uint64_t newest(const char *path) {
        bool synced = false;
        struct hfd_object *object = hfd_cacher_newest(scripted.cacher, configmaps(), path, &synced);
        uint64_t revision = object ? object->revision : 0;

        assert_true(synced);
        hfd_object_unref(object);
        return revision;
}

static void put(const char *name, uint64_t revision) {
        scripted_store_event(&scripted.store, scripted_cacher_key(name), SCRIPTED_OBJECT("x"),
                             revision);
}

/* ---- newer versions ---- */

/* Readers see a write no earlier than watches do. */
static void test_only_writes_see_what_was_just_written(void **state) {
        scripted_cacher_fill();
        record("ns/a", 12);
        assert_int_equal(newest("ns/a"), 12);
        assert_int_equal(scripted_cacher_seen("ns/a"), 5);
        put("a", 12);
        assert_int_equal(scripted_cacher_seen("ns/a"), 12);
        assert_int_equal(newest("ns/a"), 12);
        put("a", 13);
        assert_int_equal(newest("ns/a"), 13);
        assert_int_equal(newest("ns/b"), 7);
        assert_int_equal(newest("ns/c"), 0);
}

/* The event has the same bytes as the write, so only one object is kept. */
static void test_the_event_of_a_write_shares_its_object(void **state) {
        bool synced;

        scripted_cacher_fill();
        record("ns/a", 12);
        struct hfd_object *written =
                hfd_cacher_newest(scripted.cacher, configmaps(), "ns/a", &synced);
        put("a", 12);
        struct hfd_object *seen = hfd_cacher_get(scripted.cacher, configmaps(), "ns/a");
        assert_ptr_equal(seen, written);
        hfd_object_unref(seen);
        hfd_object_unref(written);
        record("ns/a", 14);
        written = hfd_cacher_newest(scripted.cacher, configmaps(), "ns/a", &synced);
        put("a", 13); /* by another instance */
        seen = hfd_cacher_get(scripted.cacher, configmaps(), "ns/a");
        assert_ptr_not_equal(seen, written);
        assert_int_equal(newest("ns/a"), 14);
        hfd_object_unref(seen);
        hfd_object_unref(written);
}

/* Replies and events may come in any order. */
static void test_the_newest_version_stays(void **state) {
        scripted_cacher_fill();
        record("ns/a", 5); /* the cache has it */
        record("ns/a", 4);
        assert_int_equal(newest("ns/a"), 5);
        record("ns/a", 13);
        record("ns/a", 12);
        assert_int_equal(newest("ns/a"), 13);
        record("ns/a", 14);
        assert_int_equal(newest("ns/a"), 14);
        record("ns/c", 14); /* the object may have been deleted since */
        assert_int_equal(newest("ns/c"), 0);
        scripted_store_event(&scripted.store, scripted_cacher_key("a"), NULL, 15);
        assert_int_equal(newest("ns/a"), 0);
}

/* A filling has all that was written before, so nothing newer is kept. */
static void test_a_filling_forgets_what_was_written(void **state) {
        scripted_cacher_fill();
        record("ns/a", 12);
        scripted_store_end_watch(&scripted.store, HF_E_GONE, NULL);
        scripted_cacher_move(50 * MSEC);
        scripted_cacher_reply_epoch(NULL, 20);
        scripted_cacher_reply_list(20);
        scripted_cacher_await_watch(2);
        assert_int_equal(newest("ns/a"), 5);
}

static void test_all_of_a_namespace(void **state) {
        struct hfd_object *objects[3] = {0};
        bool synced = true;

        assert_int_equal(hfd_cacher_newest_in(scripted.cacher, configmaps(), "ns", objects, 3,
                                              &synced),
                         0);
        assert_false(synced);
        assert_null(hfd_cacher_newest(scripted.cacher, configmaps(), "ns/a", &synced));
        assert_false(synced);
        scripted_cacher_fill();
        record("ns/b", 12);
        assert_int_equal(hfd_cacher_newest_in(scripted.cacher, configmaps(), "ns", objects, 3,
                                              &synced),
                         2);
        assert_true(synced);
        assert_int_equal(objects[0]->revision, 5);
        assert_int_equal(objects[1]->revision, 12);
        assert_null(objects[2]);
        hfd_object_unref(objects[0]);
        hfd_object_unref(objects[1]);
        objects[1] = NULL;
        assert_int_equal(hfd_cacher_newest_in(scripted.cacher, configmaps(), "ns", objects, 1,
                                              &synced),
                         2);
        assert_null(objects[1]);
        hfd_object_unref(objects[0]);
        assert_int_equal(hfd_cacher_newest_in(scripted.cacher, configmaps(), "n", objects, 3,
                                              &synced),
                         0);
        assert_true(synced);
}

/* ---- where a watch begins ---- */

static void test_a_watch_begins_after_its_revision(void **state) {
        struct scripted_watch all, from_10, from_11, now;

        scripted_cacher_fill();
        put("c", 11);
        scripted_store_event(&scripted.store, scripted_cacher_key("a"), NULL, 12);
        scripted_watch_begin(&all, (struct scripted_watch_spec){0});
        scripted_watch_expect(&all, "+b@7 +c@11 ");
        scripted_watch_begin(&from_10, (struct scripted_watch_spec){.revision = 10});
        scripted_watch_expect(&from_10, "+c@11 -a@12 ");
        scripted_watch_begin(&from_11, (struct scripted_watch_spec){.revision = 11});
        scripted_watch_expect(&from_11, "-a@12 ");
        scripted_watch_begin(&now, (struct scripted_watch_spec){.from_now = true});
        scripted_watch_expect_refused((struct scripted_watch_spec){.revision = 9}, 410, TOO_OLD);
        put("d", 13);
        scripted_watch_expect(&all, "+d@13 ");
        scripted_watch_expect(&from_10, "+d@13 ");
        scripted_watch_expect(&from_11, "+d@13 ");
        scripted_watch_expect(&now, "+d@13 ");
        scripted_watch_done(&from_10); /* in another order than they began */
        scripted_watch_done(&now);
        put("d", 14);
        scripted_watch_expect(&all, "~d@14 ");
        scripted_watch_expect(&from_11, "~d@14 ");
        scripted_watch_done(&all);
        scripted_watch_expect(&all, "END:canceled ");
        scripted_watch_begin(&all, (struct scripted_watch_spec){.from_now = true});
        put("d",
            15); /* the list of watches is intact, although memory of ended ones is in use again */
        scripted_watch_expect(&from_11, "~d@15 ");
        scripted_watch_expect(&all, "~d@15 ");
        scripted_watch_done(&from_11);
        scripted_watch_done(&all);
        put("d", 16);
        scripted_watch_expect(&from_10, "END:canceled ");
        scripted_watch_expect(&now, "END:canceled ");
        scripted_watch_expect(&all, "END:canceled ");
        scripted_watch_expect(&from_11, "END:canceled ");
}

static void test_a_watch_says_what_it_selects(void **state) {
        const struct hfd_selector *labels = NULL, *fields = NULL;
        struct scripted_watch watch;
        const char *name = "";

        scripted_cacher_fill();
        scripted_watch_begin(&watch, (struct scripted_watch_spec){.ns = "ns", .name = "c"});
        hfd_watcher_filter(watch.watcher, &labels, &fields, &name);
        assert_string_equal(name, "c");
        assert_int_equal(labels->n + fields->n, 0);
        scripted_watch_done(&watch);
        scripted_watch_begin(&watch, (struct scripted_watch_spec){.labels = "k=v"});
        hfd_watcher_filter(watch.watcher, &labels, &fields, &name);
        assert_null(name);
        assert_int_equal(labels->n, 1);
        assert_int_equal(fields->n, 0);
        assert_ptr_not_equal(labels, fields);
        scripted_watch_done(&watch);
}

/* The cache may be late, or the revision belongs to a history that the store has lost. The store's
 * revision decides. */
static void test_a_watch_from_a_later_revision_asks_the_store(void **state) {
        struct scripted_watch late, lost, unknown, unasked;

        scripted_cacher_fill();
        scripted_watch_begin(&late, (struct scripted_watch_spec){.revision = 12});
        struct scripted_request request = scripted_store_next(&scripted.store, SCRIPTED_REVISION);
        assert_true(request.deadline == hand_clock_now() + 10 * SEC);
        scripted_reply_revision(&request, 12);
        scripted_watch_begin(&lost, (struct scripted_watch_spec){.revision = 14});
        request = scripted_store_next(&scripted.store, SCRIPTED_REVISION);
        scripted_reply_revision(&request, 13);
        scripted_watch_expect(&lost, "END:410 ");
        scripted_watch_begin(&unknown, (struct scripted_watch_spec){.revision = 20});
        request = scripted_store_next(&scripted.store, SCRIPTED_REVISION);
        scripted_reply_error(&request, HF_E_TIMEOUT);
        scripted_store_refuse(&scripted.store, SCRIPTED_REVISION, HF_E_CLOSED);
        scripted_watch_begin(&unasked, (struct scripted_watch_spec){.revision = 13});
        put("c", 11);
        put("c", 13);
        scripted_watch_expect(&late, "~c@13 ");
        scripted_watch_expect(&unknown, "");
        scripted_watch_expect(&unasked, "");
        put("c", 14);
        scripted_watch_expect(&unasked, "~c@14 ");
        scripted_watch_done(&late);
        scripted_watch_done(&lost);
        scripted_watch_done(&unknown);
        scripted_watch_done(&unasked);
        scripted_watch_begin(&late, (struct scripted_watch_spec){.revision = 14}); /* reached */
        scripted_watch_done(&late);
        assert_int_equal(scripted_store_n_waiting(&scripted.store), 0);
}

static void test_watches_are_refused_before_the_filling_and_after_the_end(void **state) {
        struct scripted_watch watch, secrets;

        scripted_watch_expect_refused((struct scripted_watch_spec){0}, 429,
                                      "storage is (re)initializing");
        scripted_cacher_fill();
        scripted_watch_begin(&watch, (struct scripted_watch_spec){.from_now = true});
        scripted_watch_begin(&secrets, (struct scripted_watch_spec){.plural = "secrets"});
        hfd_cacher_end_watches(scripted.cacher);
        scripted_watch_expect(&watch, "END:0 ");
        scripted_watch_expect(&secrets, "END:0 ");
        put("c", 11);
        scripted_watch_expect(&watch, "");
        scripted_watch_expect_refused((struct scripted_watch_spec){0}, 503,
                                      "the server is shutting down");
        scripted_watch_done(&watch);
        scripted_watch_done(&secrets);
        scripted_watch_expect(&watch, "");
}

static struct scripted_watch last;

static int free_and_check(void **state) {
        int r = scripted_cacher_tear_down(state);

        scripted_watch_expect(&last, "END:0 ");
        return r;
}

/* The sink is called for the end, because the owner waits for it. */
static void test_a_free_ends_the_watches(void **state) {
        scripted_cacher_fill();
        scripted_watch_begin(&last, (struct scripted_watch_spec){.from_now = true});
        assert_null(hfd_watcher_unref(last.watcher)); /* the cacher keeps it until its end */
        put("c", 11);
        scripted_watch_expect(&last, "+c@11 ");
}

int main(void) {
        const struct CMUnitTest tests[] = {
                SCRIPTED_TEST(test_only_writes_see_what_was_just_written),
                SCRIPTED_TEST(test_the_event_of_a_write_shares_its_object),
                SCRIPTED_TEST(test_the_newest_version_stays),
                SCRIPTED_TEST(test_a_filling_forgets_what_was_written),
                SCRIPTED_TEST(test_all_of_a_namespace),
                SCRIPTED_TEST(test_a_watch_begins_after_its_revision),
                SCRIPTED_TEST(test_a_watch_says_what_it_selects),
                SCRIPTED_TEST(test_a_watch_from_a_later_revision_asks_the_store),
                SCRIPTED_TEST(test_watches_are_refused_before_the_filling_and_after_the_end),
                cmocka_unit_test_setup_teardown(test_a_free_ends_the_watches,
                                                scripted_cacher_set_up, free_and_check),
        };
        return cmocka_run_group_tests(tests, NULL, NULL);
}

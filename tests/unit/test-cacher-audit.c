/* SPDX-License-Identifier: Apache-2.0 */
/* The comparison of the cache with the store: its pages, and what counts as a difference. */
#undef NDEBUG
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>

#include <cmocka.h>

#include "patience.h"
#include "scripted_cacher.h"
#include "server/cacher/requests/store_identity.h"
#include "server/cacher/sync/cache_audit.h"
#include "time_units.h"

#define DIFFERENCES "holdfast_watch_cache_differences_total"

/* The keys of a page, with the revisions of their last writes. */
struct page {
        struct hfd_kv kvs[4];
        size_t n;
        bool more;
};

static const struct page equal = {.kvs = {{.key = "/registry/configmaps/ns/a", .mod_revision = 5},
                                          {.key = "/registry/configmaps/ns/b", .mod_revision = 7}},
                                  .n = 2};

/* Lets the next comparison begin, and returns the request for its first page. An idle store is
 * asked for its revision at the same time. */
static struct scripted_request begin(void) {
        scripted_cacher_move(HFD_CACHE_AUDIT_INTERVAL);
        struct scripted_request page = scripted_store_next(&scripted.store, SCRIPTED_LIST);
        struct scripted_request probe = scripted_store_next(&scripted.store, SCRIPTED_REVISION);
        scripted_reply_revision(&probe, 10);
        assert_true(page.keys_only);
        assert_string_equal(page.key, "/registry/");
        assert_string_equal(page.start, "");
        return page;
}

static void reply(const struct scripted_request *request, const struct page *page) {
        scripted_reply(request, &(struct hfd_store_reply){.revision = 10,
                                                          .kvs = page->kvs,
                                                          .n_kvs = page->n,
                                                          .more = page->more});
}

static void expect_no_difference(void) {
        assert_int_equal(scripted_cacher_n_logged("differs"), 0);
        assert_int_equal((int)scripted_cacher_metric(DIFFERENCES), 0);
        assert_true(scripted_store_is_watched(&scripted.store));
        assert_int_equal(scripted_store_n_waiting(&scripted.store), 0);
}

/* Asserts that a difference is logged and counted once, and that the cache is filled again. */
static void expect_difference(const char *why) {
        assert_int_equal(scripted_cacher_n_logged("differs from the store at revision 10"), 1);
        assert_int_equal(scripted_cacher_n_logged(why), 1);
        assert_int_equal((int)scripted_cacher_metric(DIFFERENCES), 1);
        assert_false(scripted_store_is_watched(&scripted.store));
        scripted_cacher_move(50 * MSEC);
        scripted_cacher_reply_epoch(NULL, 11);
        scripted_cacher_reply_list(11);
        scripted_cacher_await_watch(2);
        assert_int_equal(hfd_cacher_revision(scripted.cacher), 11);
}

static void test_equal_contents_are_no_difference(void **state) {
        scripted_cacher_fill();
        for (int i = 0; i < 2; i++) {
                struct scripted_request page = begin();
                assert_int_equal(page.revision, 10);
                assert_true(page.limit > 1000);
                assert_true(page.deadline == hand_clock_now() + 30 * SEC);
                reply(&page, &equal);
                expect_no_difference();
        }
}

/* All pages are of one revision. Each begins after the last key of the previous one, and has its
 * own deadline. */
static void test_pages_are_compared_one_after_the_other(void **state) {
        struct page first = equal, second = equal;
        char next[HFD_KEY_MAX];

        first.n = second.n = 1;
        first.more = true;
        second.kvs[0] = equal.kvs[1];
        scripted_cacher_fill();
        struct scripted_request page = begin();
        hand_clock_move(SEC);
        reply(&page, &first);
        page = scripted_store_next(&scripted.store, SCRIPTED_LIST);
        hfd_key_after(next, first.kvs[0].key);
        assert_string_equal(page.start, next);
        assert_string_equal(page.key, "/registry/");
        assert_int_equal(page.revision, 10);
        assert_true(page.keys_only);
        assert_true(page.deadline == hand_clock_now() + 30 * SEC);
        reply(&page, &second);
        expect_no_difference();
}

/* An event that arrives during the comparison does not count, because the pages are of an earlier
 * revision. */
static void test_later_events_do_not_count(void **state) {
        scripted_cacher_fill();
        struct scripted_request page = begin();
        scripted_store_event(&scripted.store, scripted_cacher_key("b"), NULL, 11);
        scripted_store_event(&scripted.store, scripted_cacher_key("c"), SCRIPTED_OBJECT("c"), 12);
        reply(&page, &equal);
        expect_no_difference();
}

static void test_another_revision_is_a_difference(void **state) {
        struct page page = equal;

        page.kvs[1].mod_revision = 8;
        scripted_cacher_fill();
        struct scripted_request request = begin();
        reply(&request, &page);
        expect_difference("(/registry/configmaps/ns/b is stored at revision 8)");
}

/* After the first difference nothing more is compared. */
static void test_the_first_difference_ends_the_comparison(void **state) {
        struct page page = equal;

        page.kvs[0].mod_revision = 4;
        page.kvs[1].mod_revision = 8;
        page.more = true;
        scripted_cacher_fill();
        struct scripted_request request = begin();
        reply(&request, &page);
        expect_difference("(/registry/configmaps/ns/a is stored at revision 4)");
}

static void test_a_key_that_is_not_cached_is_a_difference(void **state) {
        struct page page = equal;

        page.kvs[page.n++] = (struct hfd_kv){.key = "/registry/configmaps/ns/c", .mod_revision = 9};
        scripted_cacher_fill();
        struct scripted_request request = begin();
        reply(&request, &page);
        expect_difference("(/registry/configmaps/ns/c is stored at revision 9)");
}

static void test_a_key_that_is_not_stored_is_a_difference(void **state) {
        struct page page = equal;

        page.n = 1;
        scripted_cacher_fill();
        struct scripted_request request = begin();
        reply(&request, &page);
        expect_difference("(2 objects cached, 1 stored)");
}

static void test_an_empty_store_is_a_difference(void **state) {
        const struct page page = {.more = true};

        scripted_cacher_fill();
        struct scripted_request request = begin();
        reply(&request, &page);
        expect_difference("(2 objects cached, 0 stored)");
}

/* The cache has no objects of such keys, and need not have them. */
static void test_keys_of_no_resource_do_not_count(void **state) {
        struct page page = equal;

        page.kvs[page.n++] = (struct hfd_kv){.key = "/registry/unknown/ns/c", .mod_revision = 9};
        scripted_cacher_fill();
        struct scripted_request request = begin();
        reply(&request, &page);
        expect_no_difference();
}

/* A stored value that is not a valid object is not served, but the cache knows its key and
 * revision. */
static void test_values_that_are_no_objects_are_compared_too(void **state) {
        struct page page = equal;

        page.kvs[page.n++] =
                (struct hfd_kv){.key = "/registry/configmaps/ns/c", .mod_revision = 11};
        scripted_cacher_fill();
        scripted_store_event(&scripted.store, scripted_cacher_key("c"), "nonsense", 11);
        struct scripted_request request = begin();
        assert_int_equal(request.revision, 11);
        reply(&request, &page);
        expect_no_difference();
        page.n--; /* it was deleted, and the event was lost */
        request = begin();
        reply(&request, &page);
        assert_int_equal(scripted_cacher_n_logged("(3 objects cached, 2 stored)"), 1);
}

/* A page fails. The pages before it prove nothing, and the next comparison tries again. */
static void test_a_page_that_fails_shows_nothing(void **state) {
        struct page first = equal;

        first.n = 1;
        first.more = true;
        scripted_cacher_fill();
        struct scripted_request page = begin();
        scripted_reply_error(&page, HF_E_GONE);
        expect_no_difference();
        page = begin();
        reply(&page, &first);
        page = scripted_store_next(&scripted.store, SCRIPTED_LIST);
        scripted_reply_error(&page, HF_E_UNAVAILABLE);
        expect_no_difference();
        scripted_store_refuse(&scripted.store, SCRIPTED_LIST, HF_E_CLOSED);
        scripted_cacher_move(HFD_CACHE_AUDIT_INTERVAL);
        page = scripted_store_next(&scripted.store, SCRIPTED_REVISION);
        scripted_reply_revision(&page, 10);
        expect_no_difference();
        scripted_store_refuse(&scripted.store, SCRIPTED_LIST, 0);
        page = begin();
        reply(&page, &equal);
        expect_no_difference();
}

/* The next comparison begins one interval after the end of the running one. */
static void test_one_comparison_runs_at_a_time(void **state) {
        scripted_cacher_fill();
        struct scripted_request page = begin(), probe;
        scripted_cacher_move(HFD_CACHE_AUDIT_INTERVAL);
        probe = scripted_store_next(&scripted.store, SCRIPTED_REVISION);
        scripted_reply_revision(&probe, 10);
        scripted_cacher_move(HFD_CACHE_AUDIT_INTERVAL / 2);
        probe = scripted_store_next(&scripted.store, SCRIPTED_REVISION);
        scripted_reply_revision(&probe, 10);
        assert_int_equal(scripted_store_n_waiting(&scripted.store), 0);
        reply(&page, &equal);
        scripted_cacher_move(HFD_CACHE_AUDIT_INTERVAL - 1);
        probe = scripted_store_next(&scripted.store, SCRIPTED_REVISION);
        scripted_reply_revision(&probe, 10);
        assert_int_equal(scripted_store_n_waiting(&scripted.store), 0);
        scripted_cacher_move(1);
        page = scripted_store_next(&scripted.store, SCRIPTED_LIST);
        reply(&page, &equal);
        expect_no_difference();
}

/* The cache has the old history; the page may have the new one. */
static void test_a_replacement_of_the_store_ends_it_without_a_result(void **state) {
        struct page page = equal;

        page.kvs[0].mod_revision = 99;
        scripted_cacher_fill();
        struct scripted_request request = begin();
        hfd_store_identity_replaced(scripted.cacher, "a test");
        reply(&request, &page);
        assert_int_equal(scripted_cacher_n_logged("differs"), 0);
        assert_int_equal((int)scripted_cacher_metric(DIFFERENCES), 0);
        scripted_cacher_move(50 * MSEC);
        scripted_cacher_reply_epoch(NULL, 3);
        scripted_cacher_reply_list(20);
        scripted_cacher_await_watch(2);
        hfd_store_identity_replaced(scripted.cacher, "another test");
        scripted_cacher_move(HFD_CACHE_AUDIT_INTERVAL);
        scripted_cacher_reply_epoch(NULL, 3); /* the cache is about to be filled: no comparison */
        assert_int_equal(scripted_cacher_n_logged("differs"), 0);
}

static void test_the_cache_of_a_new_history_is_compared_too(void **state) {
        struct page page = equal;

        page.kvs[1].mod_revision = 8;
        scripted_cacher_fill();
        hfd_store_identity_replaced(scripted.cacher, "a test");
        scripted_cacher_move(50 * MSEC);
        scripted_cacher_reply_epoch(NULL, 10);
        scripted_cacher_reply_list(10);
        scripted_cacher_await_watch(2);
        struct scripted_request request = begin();
        reply(&request, &page);
        assert_int_equal(scripted_cacher_n_logged("(/registry/configmaps/ns/b is stored at "
                                                  "revision 8)"),
                         1);
        assert_false(scripted_store_is_watched(&scripted.store));
}

/* A cache without a watch is known to be late. */
static void test_nothing_is_compared_without_a_watch(void **state) {
        assert_int_equal(hfd_cacher_start(scripted.cacher), 0);
        struct scripted_request epoch = scripted_store_next(&scripted.store, SCRIPTED_GET);
        scripted_cacher_move(HFD_CACHE_AUDIT_INTERVAL);
        assert_int_equal(scripted_store_n_waiting(&scripted.store), 0);
        scripted_reply_revision(&epoch, 10);
        scripted_cacher_reply_list(10);
        scripted_cacher_await_watch(1);
        scripted_store_end_watch(&scripted.store, HF_E_UNAVAILABLE, NULL);
        scripted_cacher_move(50 * MSEC);
        epoch = scripted_store_next(&scripted.store, SCRIPTED_GET);
        scripted_cacher_move(HFD_CACHE_AUDIT_INTERVAL);
        assert_int_equal(scripted_store_n_waiting(&scripted.store), 0);
        scripted_reply_revision(&epoch, 10);
        scripted_cacher_await_watch(2);
        struct scripted_request page = begin();
        reply(&page, &equal);
        expect_no_difference();
}

int main(void) {
        const struct CMUnitTest tests[] = {
                SCRIPTED_TEST(test_equal_contents_are_no_difference),
                SCRIPTED_TEST(test_pages_are_compared_one_after_the_other),
                SCRIPTED_TEST(test_later_events_do_not_count),
                SCRIPTED_TEST(test_another_revision_is_a_difference),
                SCRIPTED_TEST(test_the_first_difference_ends_the_comparison),
                SCRIPTED_TEST(test_a_key_that_is_not_cached_is_a_difference),
                SCRIPTED_TEST(test_a_key_that_is_not_stored_is_a_difference),
                SCRIPTED_TEST(test_an_empty_store_is_a_difference),
                SCRIPTED_TEST(test_keys_of_no_resource_do_not_count),
                SCRIPTED_TEST(test_values_that_are_no_objects_are_compared_too),
                SCRIPTED_TEST(test_a_page_that_fails_shows_nothing),
                SCRIPTED_TEST(test_one_comparison_runs_at_a_time),
                SCRIPTED_TEST(test_a_replacement_of_the_store_ends_it_without_a_result),
                SCRIPTED_TEST(test_the_cache_of_a_new_history_is_compared_too),
                SCRIPTED_TEST(test_nothing_is_compared_without_a_watch),
        };
        return cmocka_run_group_tests(tests, NULL, NULL);
}

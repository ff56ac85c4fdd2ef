/* SPDX-License-Identifier: Apache-2.0 */
/* Accounts of unread responses: limits for one user and for all, whose connection is cut, and who
 * is still served. */
#undef NDEBUG
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

#include "fake_request.h"
#include "server/filters/limits/unsent.h"

#define MANY 64

/* Time passes only when a test moves it. */
static hf_nsec boot_time = 1000 * HF_NSEC_PER_SEC;

static hf_nsec read_boot_time(void *ctx) { return boot_time; }

static const struct hf_clock test_clock = {.boot = read_boot_time};
static const struct hf_host host = {.size = sizeof host, .clock = &test_clock};

struct reader {
        struct hfd_unsent_entry entry;
        struct hfd_http_request *request;
};

static struct hfd_unsent *make(size_t user_bytes, size_t user_responses, size_t total_bytes) {
        const struct hfd_unsent_limits limits = {user_bytes, user_responses, total_bytes};
        struct hfd_unsent *unsent;

        assert_int_equal(hfd_unsent_new(&host, &limits, &unsent), 0);
        return unsent;
}

static void charge(struct hfd_unsent *unsent, struct reader *reader, const char *user,
                   size_t bytes) {
        memset(reader, 0, sizeof *reader);
        reader->request = fake_request_new("GET", "/", "");
        hfd_unsent_add(unsent, &reader->entry, user, reader->request, bytes);
}

static void release(struct hfd_unsent *unsent, struct reader *reader) {
        hfd_unsent_remove(unsent, &reader->entry);
        assert_int_equal(reader->request->refs, 2); /* no reference was left behind */
        hfd_http_request_unref(reader->request);
        hfd_http_request_unref(reader->request);
}

/* A user whose account is full gets no further list. Others do, and the user still gets objects. */
static void test_a_user_whose_account_is_full_gets_no_further_list(void **state) {
        struct hfd_unsent *unsent = make(4 * HFD_UNSENT_STREAM, 1000, 1000 * HFD_UNSENT_STREAM);
        struct reader readers[4];

        for (int i = 0; i < 4; i++) {
                assert_true(hfd_unsent_admit(unsent, "a", true));
                charge(unsent, &readers[i], "a", HFD_UNSENT_STREAM);
        }
        assert_int_equal(hfd_unsent_bytes(unsent), 4 * HFD_UNSENT_STREAM);
        assert_false(hfd_unsent_admit(unsent, "a", true));
        assert_true(hfd_unsent_admit(unsent, "b", true));
        assert_true(hfd_unsent_admit(unsent, "a", false));
        release(unsent, &readers[0]);
        assert_true(hfd_unsent_admit(unsent, "a", true));
        for (int i = 1; i < 4; i++)
                release(unsent, &readers[i]);
        assert_int_equal(hfd_unsent_bytes(unsent), 0);
        hfd_unsent_free(unsent);
}

/* A list that runs may soon be unread, so it counts as one when half of the limit is charged. */
static void test_lists_that_run_are_reserved_for(void **state) {
        struct hfd_unsent *unsent = make(8 * HFD_UNSENT_STREAM, 1000, 1000 * HFD_UNSENT_STREAM);
        struct reader readers[4], lists[9] = {0};

        for (int i = 0; i < 9; i++)
                hfd_unsent_reserve(unsent, &lists[i].entry, "a");
        assert_int_equal(hfd_unsent_bytes(unsent), 0);
        assert_true(hfd_unsent_admit(unsent, "a", true)); /* nobody is known to be slow */
        for (int i = 0; i < 3; i++)
                charge(unsent, &readers[i], "a", HFD_UNSENT_STREAM);
        assert_true(hfd_unsent_admit(unsent, "a", true));
        charge(unsent, &readers[3], "a", HFD_UNSENT_STREAM);
        assert_false(hfd_unsent_admit(unsent, "a", true));
        assert_true(hfd_unsent_admit(unsent, "a", false));
        assert_true(hfd_unsent_admit(unsent, "b", true));
        for (int i = 3; i < 9; i++)
                hfd_unsent_remove(unsent, &lists[i].entry);
        assert_true(hfd_unsent_admit(unsent, "a", true)); /* four are charged, and three run */
        hfd_unsent_reserve(unsent, &lists[3].entry, "a");
        assert_false(hfd_unsent_admit(unsent, "a", true));
        lists[3].request = fake_request_new("GET", "/", "");
        hfd_unsent_add(unsent, &lists[3].entry, "a", lists[3].request, HFD_UNSENT_STREAM);
        assert_int_equal(hfd_unsent_bytes(unsent), 5 * HFD_UNSENT_STREAM);
        assert_false(hfd_unsent_admit(unsent, "a", true)); /* still four and four */
        release(unsent, &lists[3]);
        assert_true(hfd_unsent_admit(unsent, "a", true));
        for (int i = 0; i < 3; i++)
                hfd_unsent_remove(unsent, &lists[i].entry);
        for (int i = 0; i < 4; i++)
                release(unsent, &readers[i]);
        hfd_unsent_free(unsent); /* asserts that no account is left */
}

/* Unread objects have a limit too, at twice that of lists. */
static void test_unread_objects_have_a_limit_too(void **state) {
        struct hfd_unsent *unsent = make(1 << 20, MANY / 2, 64 << 20);
        struct reader readers[MANY];

        for (int i = 0; i < MANY; i++) {
                assert_true(hfd_unsent_admit(unsent, "a", false));
                charge(unsent, &readers[i], "a", 100);
        }
        assert_false(hfd_unsent_admit(unsent, "a", true));
        assert_false(hfd_unsent_admit(unsent, "a", false));
        assert_true(hfd_unsent_admit(unsent, "b", false));
        for (int i = 0; i < MANY; i++)
                release(unsent, &readers[i]);
        hfd_unsent_free(unsent);
}

/* Only the stalled reader of the full account is cut. */
static void test_the_stalled_reader_is_cut(void **state) {
        struct hfd_unsent *unsent = make(3 * HFD_UNSENT_STREAM, 1000, 1000 * HFD_UNSENT_STREAM);
        hf_nsec now = boot_time;
        struct reader readers[3];

        for (int i = 0; i < 3; i++) {
                charge(unsent, &readers[i], "a", HFD_UNSENT_STREAM);
                readers[i].request->read_at = now; /* just now */
        }
        assert_false(hfd_unsent_admit(unsent, "a", true));
        readers[1].request->read_at = now - 2 * HFD_UNSENT_STALL;
        assert_true(hfd_unsent_admit(unsent, "a", true));
        assert_true(readers[1].request->cut);
        assert_false(readers[0].request->cut || readers[2].request->cut);
        assert_false(hfd_unsent_admit(unsent, "a", true)); /* only one was stalled */
        for (int i = 0; i < 3; i++)
                release(unsent, &readers[i]);
        hfd_unsent_free(unsent);
}

/* A stalled reader behind many healthy ones is found, although one search looks at a few only. */
static void test_every_reader_is_looked_at(void **state) {
        struct hfd_unsent *unsent = make(1, 1000, 1000 * HFD_UNSENT_STREAM);
        hf_nsec now = boot_time;
        struct reader readers[MANY];
        int attempts = 1;

        for (int i = 0; i < MANY; i++) {
                charge(unsent, &readers[i], "a", HFD_UNSENT_STREAM);
                readers[i].request->read_at = now;
        }
        readers[MANY - 1].request->read_at = now - 2 * HFD_UNSENT_STALL;
        while (!hfd_unsent_admit(unsent, "a", true))
                assert_true(++attempts <= MANY / 16);
        assert_true(readers[MANY - 1].request->cut);
        for (int i = 0; i < MANY; i++)
                release(unsent, &readers[i]);
        hfd_unsent_free(unsent);
}

/* Small responses that are cut let a list in only if they give back what a list may need. */
static void test_a_list_needs_as_much_as_it_may_hold(void **state) {
        struct hfd_unsent *unsent = make(HFD_UNSENT_STREAM, 1000, 1000 * HFD_UNSENT_STREAM);
        struct reader readers[32];
        int n_cut = 0;

        for (int i = 0; i < 32; i++) {
                charge(unsent, &readers[i], "a", HFD_UNSENT_STREAM / 20);
                readers[i].request->read_at = boot_time - 2 * HFD_UNSENT_STALL;
        }
        assert_false(hfd_unsent_admit(unsent, "a", true));
        for (int i = 0; i < 32; i++)
                n_cut += readers[i].request->cut;
        assert_int_equal(n_cut, 16);
        for (int i = 0; i < 32; i++)
                release(unsent, &readers[i]);
        assert_true(hfd_unsent_admit(unsent, "a", true));
        hfd_unsent_free(unsent);
}

/*
 * The total is the limit of all accounts together. When it is reached, users with small accounts
 * are still served, and a stalled reader of the largest account is cut.
 */
static void test_beyond_the_total_the_largest_account_is_cut(void **state) {
        struct hfd_unsent *unsent = make(100 * HFD_UNSENT_STREAM, 1000, 12 * HFD_UNSENT_STREAM);
        struct reader large[9], small[3];
        hf_nsec now = boot_time;

        for (int i = 0; i < 9; i++) {
                charge(unsent, &large[i], "large", HFD_UNSENT_STREAM);
                large[i].request->read_at = now;
        }
        for (int i = 0; i < 3; i++)
                charge(unsent, &small[i], "small", HFD_UNSENT_STREAM);
        assert_false(hfd_unsent_admit(unsent, "large", true));
        assert_true(hfd_unsent_admit(unsent, "small", true));
        assert_true(hfd_unsent_admit(unsent, "new", true));
        large[0].request->read_at = now - 2 * HFD_UNSENT_STALL;
        assert_true(hfd_unsent_admit(unsent, "large", true));
        assert_true(large[0].request->cut);
        for (int i = 0; i < 9; i++)
                release(unsent, &large[i]);
        for (int i = 0; i < 3; i++)
                release(unsent, &small[i]);
        hfd_unsent_free(unsent);
}

/* With many users, an account is freed with its last response. */
static void test_an_account_goes_with_its_last_answer(void **state) {
        struct hfd_unsent *unsent = make(1 << 20, 1000, 1 << 30);
        static struct reader readers[2000];
        char name[32];

        for (size_t i = 0; i < 2000; i++) {
                (void)snprintf(name, sizeof name, "user-%zu", i % 1000);
                charge(unsent, &readers[i], name, i);
        }
        for (size_t i = 0; i < 2000; i++)
                release(unsent, &readers[i * 7 % 2000]);
        assert_int_equal(hfd_unsent_bytes(unsent), 0);
        hfd_unsent_free(unsent); /* asserts that no account remains */
}

/* ---- watches ---- */

struct watcher {
        struct hfd_unsent_watch watch; /* first member: the callbacks cast it back */
        size_t bytes;                  /* the bytes that wait */
        unsigned n_ends;
};

static size_t measure(void *ctx) {
        const struct watcher *watcher = ctx;
        return watcher->bytes;
}

static void end(void *ctx) {
        struct watcher *watcher = ctx;
        watcher->n_ends++;
}

static void begin(struct hfd_unsent *unsent, struct watcher *watcher, const char *user) {
        *watcher = (struct watcher){.watch = {.unsent = unsent,
                                              .user = user,
                                              .request = fake_request_new("GET", "/", ""),
                                              .measure = measure,
                                              .end = end,
                                              .ctx = watcher}};
}

static void wait_for(struct watcher *watcher, size_t bytes) {
        watcher->bytes = bytes;
        hfd_unsent_watch_charge(&watcher->watch);
}

/* After this, every watch that is behind has been behind for long enough to be ended. */
static void pass_stall(void) { boot_time += HFD_UNSENT_STALL; }

static void leave(struct watcher *watcher) {
        hfd_unsent_watch_remove(&watcher->watch);
        assert_int_equal(watcher->watch.request->refs, 2);
        hfd_http_request_unref(watcher->watch.request);
        hfd_http_request_unref(watcher->watch.request);
}

static void test_a_watch_is_charged_while_it_is_behind(void **state) {
        struct hfd_unsent *unsent = make(1 << 20, 1000, 1 << 30);
        struct watcher a, none;

        begin(unsent, &a, "a");
        begin(NULL, &none, "a");
        wait_for(&none, 1 << 30);
        hfd_unsent_watch_update(&none.watch);
        wait_for(&a, HFD_UNSENT_WATCH - 1);
        assert_int_equal(hfd_unsent_bytes(unsent), 0);
        wait_for(&a, 70000);
        assert_int_equal(hfd_unsent_bytes(unsent), 70000);
        a.bytes = 50000;
        hfd_unsent_watch_update(&a.watch);
        assert_int_equal(hfd_unsent_bytes(unsent), 50000);
        a.bytes = 100;
        hfd_unsent_watch_update(&a.watch);
        assert_int_equal(hfd_unsent_bytes(unsent), 0);
        wait_for(&a, 70000);
        leave(&a);
        leave(&none);
        assert_int_equal(hfd_unsent_bytes(unsent), 0);
        hfd_unsent_free(unsent);
}

/* Among the user's watches that have been behind for long enough, the one with the most bytes is
 * ended. If its client does not read the rest either, its connection is cut. */
static void test_the_largest_late_watch_is_ended(void **state) {
        struct hfd_unsent *unsent = make(300000, 1000, 1 << 30);
        struct watcher of_a[3], of_b;

        begin(unsent, &of_b, "b");
        wait_for(&of_b, 200000);
        for (int i = 0; i < 3; i++)
                begin(unsent, &of_a[i], "a");
        wait_for(&of_a[0], 90000); /* behind for the longest time */
        boot_time++;
        wait_for(&of_a[1], 180000);
        boot_time++;
        wait_for(&of_a[2], 100000);
        assert_int_equal(hfd_unsent_bytes(unsent), 570000);
        assert_int_equal(of_a[0].n_ends + of_a[1].n_ends + of_a[2].n_ends,
                         0); /* none was behind for long enough */
        boot_time += HFD_UNSENT_STALL - 1;
        wait_for(&of_a[2], 190000); /* it has the most, but not for long */
        assert_int_equal(of_a[1].n_ends, 1);
        assert_int_equal(of_a[0].n_ends + of_a[2].n_ends, 0);
        wait_for(&of_a[1], 20000); /* sends its last bytes; now there is room */
        assert_int_equal(of_a[0].n_ends + of_a[2].n_ends, 0);
        boot_time += HFD_UNSENT_STALL;
        of_a[1].watch.request->read_at = boot_time;
        wait_for(&of_a[2], 290000);
        assert_int_equal(of_a[2].n_ends, 1);
        wait_for(&of_a[2], 280000);
        assert_int_equal(of_a[0].n_ends, 1);
        assert_int_equal(of_b.n_ends, 0);
        boot_time += HFD_UNSENT_STALL;
        of_a[2].watch.request->read_at = boot_time - 2 * HFD_UNSENT_STALL;
        wait_for(&of_a[0], 90000); /* the client of of_a[2] did not read its end */
        assert_true(of_a[2].watch.request->cut);
        assert_false(of_a[0].watch.request->cut || of_a[1].watch.request->cut);
        assert_int_equal(of_a[2].n_ends, 1);
        for (int i = 0; i < 3; i++)
                leave(&of_a[i]);
        leave(&of_b);
        hfd_unsent_free(unsent);
}

/* When all accounts together are full, the one with the most bytes of watches loses one. */
static void test_the_total_ends_a_watch_of_the_largest_account(void **state) {
        struct hfd_unsent *unsent = make(1 << 30, 1000, 300000);
        struct watcher small, large;

        begin(unsent, &small, "small");
        begin(unsent, &large, "large");
        wait_for(&small, 50000);
        wait_for(&large, 200000);
        pass_stall();
        wait_for(&small, 120000);
        assert_int_equal(small.n_ends, 0);
        assert_int_equal(large.n_ends, 1);
        leave(&small);
        leave(&large);
        hfd_unsent_free(unsent);
}

/* Watches that are behind do not make lists or other requests of their user fail. */
static void test_watches_refuse_no_request(void **state) {
        struct hfd_unsent *unsent = make(4 * HFD_UNSENT_STREAM, 1, 8 * HFD_UNSENT_STREAM);
        struct watcher watcher;

        begin(unsent, &watcher, "a");
        wait_for(&watcher, 100 * HFD_UNSENT_STREAM);
        assert_true(hfd_unsent_admit(unsent, "a", true));
        assert_true(hfd_unsent_admit(unsent, "b", true));
        leave(&watcher);
        hfd_unsent_free(unsent);
}

/* Users with watches only have a share of the bytes of watches, but not of those of lists. */
static void test_users_with_watches_only_take_no_share_of_lists(void **state) {
        struct hfd_unsent *unsent = make(100 * HFD_UNSENT_STREAM, 1000, 12 * HFD_UNSENT_STREAM);
        struct watcher watchers[MANY];
        struct reader large[11], small;
        char names[MANY][16];

        for (int i = 0; i < 11; i++)
                charge(unsent, &large[i], "large", HFD_UNSENT_STREAM);
        charge(unsent, &small, "small", HFD_UNSENT_STREAM);
        for (int i = 0; i < MANY; i++) {
                (void)snprintf(names[i], sizeof names[i], "watcher-%d", i);
                begin(unsent, &watchers[i], names[i]);
                wait_for(&watchers[i], HFD_UNSENT_WATCH);
        }
        assert_true(hfd_unsent_admit(unsent, "small", true));
        for (int i = 0; i < MANY; i++)
                leave(&watchers[i]);
        for (int i = 0; i < 11; i++)
                release(unsent, &large[i]);
        release(unsent, &small);
        hfd_unsent_free(unsent);
}

/* ---- cost ---- */

static hf_nsec processor_time(void) {
        struct timespec now;

        assert_int_equal(clock_gettime(CLOCK_THREAD_CPUTIME_ID, &now), 0);
        return now.tv_sec * HF_NSEC_PER_SEC + now.tv_nsec;
}

#define CHARGES 4000

/* The processor time of CHARGES charges while the total is exceeded and each user has a watch. */
static hf_nsec cost_of_charges(size_t n_users) {
        struct hfd_unsent *unsent = make(1 << 30, 1000, 1);
        struct watcher *watchers = calloc(n_users, sizeof *watchers);
        char(*names)[32] = calloc(n_users, sizeof *names);

        assert_true(watchers && names);
        for (size_t i = 0; i < n_users; i++) {
                (void)snprintf(names[i], sizeof names[i], "user-%zu", i);
                begin(unsent, &watchers[i], names[i]);
                wait_for(&watchers[i], HFD_UNSENT_WATCH + i);
        }
        hf_nsec before = processor_time();
        for (size_t i = 0; i < CHARGES; i++)
                wait_for(&watchers[i % 16], HFD_UNSENT_WATCH + i);
        hf_nsec cost = processor_time() - before;
        for (size_t i = 0; i < n_users; i++)
                leave(&watchers[i]);
        hfd_unsent_free(unsent);
        free(names);
        free(watchers);
        return cost;
}

/* A search among all users would take 256 times as long. */
static void test_a_charge_does_not_look_at_all_users(void **state) {
        hf_nsec few = cost_of_charges(32), many = cost_of_charges(256 * 32);

        print_message("%d charges: %lld us with 32 users, %lld us with 8192\n", CHARGES,
                      (long long)(few / 1000), (long long)(many / 1000));
        assert_true(many < 32 * few);
}

int main(void) {
        const struct CMUnitTest tests[] = {
                cmocka_unit_test(test_a_user_whose_account_is_full_gets_no_further_list),
                cmocka_unit_test(test_lists_that_run_are_reserved_for),
                cmocka_unit_test(test_unread_objects_have_a_limit_too),
                cmocka_unit_test(test_the_stalled_reader_is_cut),
                cmocka_unit_test(test_every_reader_is_looked_at),
                cmocka_unit_test(test_beyond_the_total_the_largest_account_is_cut),
                cmocka_unit_test(test_a_list_needs_as_much_as_it_may_hold),
                cmocka_unit_test(test_an_account_goes_with_its_last_answer),
                cmocka_unit_test(test_a_watch_is_charged_while_it_is_behind),
                cmocka_unit_test(test_the_largest_late_watch_is_ended),
                cmocka_unit_test(test_the_total_ends_a_watch_of_the_largest_account),
                cmocka_unit_test(test_watches_refuse_no_request),
                cmocka_unit_test(test_users_with_watches_only_take_no_share_of_lists),
                cmocka_unit_test(test_a_charge_does_not_look_at_all_users),
        };
        return cmocka_run_group_tests(tests, NULL, NULL);
}

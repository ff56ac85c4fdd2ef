/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The reads of a copy from its source, request by request: a thread reads, and the test replies. A
 * store that does not work for a while is asked again, on a clock that the test moves.
 */
#undef NDEBUG
#include <errno.h>
#include <pthread.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stdatomic.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#include "base/thread.h"
#include "failing_memory.h"
#include "hand_clock.h"
#include "patience.h"
#include "scripted_store.h"
#include "server/storage/copy.h"
#include "server/storage/copy_source.h"
#include "server/storage/memory/store.h"
#include "server/storage/patient.h"
#include "store_client.h"
#include "time_units.h"

static const struct hf_host host = {.size = sizeof host, .clock = &hand_clock};

static struct {
        struct scripted_store store;
        struct hfd_copy_source source;
        struct hf_status status;
        const char *prefix;
        pthread_t thread;
        int r;
        size_t n_live;
} f;

static int set_up(void **state) {
        memset(&f, 0, sizeof f);
        f.n_live = failing_memory_n_live();
        f.prefix = "/registry";
        hand_clock_reset();
        scripted_store_init(&f.store, &host);
        return 0;
}

static int tear_down(void **state) {
        hfd_copy_source_deinit(&f.source);
        hfd_copy_source_deinit(&f.source); /* now it is empty */
        scripted_store_deinit(&f.store);
        assert_int_equal(failing_memory_n_live(), f.n_live);
        return 0;
}

static void *read_source(void *ctx) {
        f.r = hfd_copy_source_read(&f.source, &f.store.base, f.prefix, &f.status);
        return NULL;
}

static void begin(void) { assert_int_equal(pthread_create(&f.thread, NULL, read_source, NULL), 0); }

static void expect_end(int r, const char *message) {
        pthread_join(f.thread, NULL);
        assert_int_equal(f.r, r);
        if (r != 0)
                assert_int_equal(f.status.error, r);
        assert_string_equal(f.status.message, message);
}

/* The next page that is requested. */
static struct scripted_request next_page(const char *prefix, const char *start, uint64_t revision) {
        struct scripted_request page = scripted_store_next(&f.store, SCRIPTED_LIST);

        assert_string_equal(page.key, prefix);
        assert_string_equal(page.start, start);
        assert_int_equal(page.revision, revision);
        assert_true(page.keys_only);
        assert_true(page.limit > 100);
        assert_true(page.deadline > hand_clock_now());
        return page;
}

static void reply(const struct scripted_request *request, uint64_t revision,
                  const struct hfd_kv *kvs, size_t n, bool more) {
        scripted_reply(request, &(struct hfd_store_reply){.revision = revision,
                                                          .kvs = kvs,
                                                          .n_kvs = n,
                                                          .more = more});
}

static struct scripted_request next_mark(void) {
        struct scripted_request mark = scripted_store_next(&f.store, SCRIPTED_GET);

        assert_string_equal(mark.key, "/registry.holdfast/copying");
        assert_false(mark.urgent);
        assert_true(mark.deadline > hand_clock_now());
        return mark;
}

/* ---- what is read ---- */

static void test_keys_are_sorted_by_their_last_writes(void **state) {
        static const struct hfd_kv own[] =
                {{.key = "/registry.holdfast/compact", .mod_revision = 1},
                 {.key = "/registry.holdfast/copying", .mod_revision = 1},
                 {.key = "/registry.holdfast/epoch", .mod_revision = 1},
                 {.key = "/registry.holdfast/progress", .mod_revision = 1},
                 {.key = "/registry.holdfast/terms/a", .mod_revision = 9}},
                                   first[] = {{.key = "/registry/b", .mod_revision = 7},
                                              {.key = "/registry/c", .mod_revision = 12}},
                                   second[] = {{.key = "/registry/d", .mod_revision = 7},
                                               {.key = "/registry/e", .mod_revision = 3}};
        static const char *const keys[] = {"/registry/e", "/registry/b", "/registry/d",
                                           "/registry.holdfast/terms/a", "/registry/c"};
        static const uint64_t revisions[] = {3, 7, 7, 9, 12};
        char start[HFD_KEY_MAX];

        begin();
        struct scripted_request request = next_page("/registry.holdfast/", "", 0);
        reply(&request, 20, own, 5,
              false); /* but each store has its own values under these names */
        request = next_page("/registry/", "", 20);
        reply(&request, 21, first, 2, true);
        hfd_key_after(start, "/registry/c");
        request = next_page("/registry/", start, 20);
        reply(&request, 22, second, 2, false);
        request = next_mark();
        scripted_reply_revision(&request, 22);
        expect_end(0, "");
        assert_int_equal(f.source.revision, 20);
        assert_int_equal(f.source.n_entries, 5);
        for (size_t i = 0; i < 5; i++) {
                assert_string_equal(f.source.entries[i].key, keys[i]);
                assert_int_equal(f.source.entries[i].mod_revision, revisions[i]);
        }
}

/* A page that says that more follow, but has none, is the last one. */
static void test_an_empty_page_is_the_last(void **state) {
        static const struct hfd_kv key = {.key = "/registry/b", .mod_revision = 7};

        begin();
        struct scripted_request request = next_page("/registry.holdfast/", "", 0);
        reply(&request, 20, NULL, 0, true);
        request = next_page("/registry/", "", 20);
        reply(&request, 20, &key, 1, false);
        request = next_mark();
        scripted_reply_revision(&request, 20);
        expect_end(0, "");
        assert_int_equal(f.source.n_entries, 1);
}

static void test_many_keys_are_kept(void **state) {
        enum { N = 2500 };
        static char keys[N][32];
        static struct hfd_kv kvs[N];

        for (size_t i = 0; i < N; i++) {
                (void)snprintf(keys[i], sizeof keys[i], "/registry/k%05zu", i);
                kvs[i] = (struct hfd_kv){.key = keys[i], .mod_revision = N - i};
        }
        begin();
        struct scripted_request request = next_page("/registry.holdfast/", "", 0);
        reply(&request, N, NULL, 0, false);
        request = next_page("/registry/", "", N);
        reply(&request, N, kvs, N, false);
        request = next_mark();
        scripted_reply_revision(&request, N);
        expect_end(0, "");
        assert_int_equal(f.source.n_entries, N);
        for (size_t i = 0; i < N; i++)
                assert_string_equal(f.source.entries[i].key, keys[N - 1 - i]);
}

static void reply_without_keys(void) {
        struct scripted_request request = next_page("/registry.holdfast/", "", 0);

        reply(&request, 20, NULL, 0, false);
        request = next_page("/registry/", "", 20);
        reply(&request, 20, NULL, 0, false);
}

static void test_what_is_no_source_is_refused(void **state) {
        static char prefix[HFD_KEY_MAX];

        begin();
        reply_without_keys();
        struct scripted_request mark = next_mark();
        scripted_reply_revision(&mark, 20);
        expect_end(HF_E_NOT_FOUND, "the source has no key below /registry: see --etcd-prefix");
        begin();
        reply_without_keys();
        mark = next_mark();
        scripted_reply_key(&mark, 20, mark.key, "x", 5);
        expect_end(HF_E_INVALID, "the source is a copy that was not completed");
        memset(prefix, 'p', HFD_KEY_MAX - strlen(".holdfast/")); /* the shortest of these */
        f.prefix = prefix;
        begin();
        expect_end(HF_E_TOO_LARGE, "the prefix is too long");
}

/* ---- a store that does not work ---- */

static void test_a_list_is_repeated_after_a_pause(void **state) {
        static const int errors[] = {HF_E_UNAVAILABLE, HF_E_TIMEOUT};

        begin();
        for (size_t i = 0; i < 2; i++) {
                struct scripted_request request = next_page("/registry.holdfast/", "", 0);
                scripted_reply_error(&request, errors[i]);
                hand_clock_await_waiter();
                hand_clock_move(200 * MSEC - 1);
                hand_clock_await_waiter();
                assert_int_equal(scripted_store_n_waiting(&f.store), 0);
                hand_clock_move(1);
        }
        reply_without_keys();
        struct scripted_request mark = next_mark();
        scripted_reply_error(&mark, HF_E_UNAVAILABLE);
        hand_clock_await_waiter();
        hand_clock_move(200 * MSEC);
        mark = next_mark();
        scripted_reply_error(&mark, HF_E_CANCELED);
        pthread_join(f.thread, NULL);
        assert_int_equal(f.r, HF_E_CANCELED);
}

static void test_after_twenty_seconds_it_is_given_up(void **state) {
        begin();
        struct scripted_request request = next_page("/registry.holdfast/", "", 0);
        scripted_reply_error(&request, HF_E_UNAVAILABLE);
        hand_clock_await_waiter();
        hand_clock_move(20 * SEC - 1);
        request = next_page("/registry.holdfast/", "", 0);
        hand_clock_move(1);
        scripted_reply(&request, &(struct hfd_store_reply){.error = HF_E_UNAVAILABLE,
                                                           .status.message = "nobody answers"});
        expect_end(HF_E_UNAVAILABLE, "the source: nobody answers");
}

static void test_other_failures_are_not_repeated(void **state) {
        static const int errors[] = {HF_E_GONE, -EBADMSG, HF_E_CANCELED};

        for (size_t i = 0; i < 3; i++) {
                begin();
                struct scripted_request request = next_page("/registry.holdfast/", "", 0);
                scripted_reply_error(&request, errors[i]);
                pthread_join(f.thread, NULL);
                assert_int_equal(f.r, errors[i]);
                assert_true(strncmp(f.status.message, "the source: ", 12) == 0);
        }
        scripted_store_refuse(&f.store, SCRIPTED_LIST, HF_E_CLOSED);
        begin();
        pthread_join(f.thread, NULL);
        assert_int_equal(f.r, HF_E_CLOSED);
        scripted_store_refuse(&f.store, SCRIPTED_LIST, 0);
        scripted_store_refuse(&f.store, SCRIPTED_GET, HF_E_CLOSED);
        begin();
        reply_without_keys();
        pthread_join(f.thread, NULL);
        assert_int_equal(f.r, HF_E_CLOSED);
        assert_int_equal(f.status.error, HF_E_CLOSED);
}

/* ---- without memory ---- */

static int next_init_error; /* 0 = it works */

int __real_hf__mutex_cond_init(pthread_mutex_t *mutex, pthread_cond_t *cond);
int __wrap_hf__mutex_cond_init(pthread_mutex_t *mutex, pthread_cond_t *cond);

int __wrap_hf__mutex_cond_init(pthread_mutex_t *mutex, pthread_cond_t *cond) {
        int error = next_init_error;

        next_init_error = 0;
        return error != 0 ? error : __real_hf__mutex_cond_init(mutex, cond);
}

static void test_what_cannot_wait_is_refused(void **state) {
        struct hfd_copy_source source = {.store = &f.store.base, .prefix = "/registry"};
        const struct hfd_copy copy = {.source = &source, .to = &f.store.base};
        struct hfd_copy_result result;

        next_init_error = -EAGAIN;
        assert_int_equal(hfd_copy_source_read(&f.source, &f.store.base, "/registry", &f.status),
                         -EAGAIN);
        assert_int_equal(f.status.error, -EAGAIN);
        memset(&f.status, 0, sizeof f.status);
        next_init_error = -EAGAIN;
        assert_int_equal(hfd_copy_run(&copy, &result, &f.status), -EAGAIN);
        assert_int_equal(f.status.error, -EAGAIN);
        assert_int_equal(scripted_store_n_waiting(&f.store), 0);
}

/* The store may lack it as well as the copy. */
static void source_life(int n) {
        static const struct hf_host host_of_system = {.size = sizeof host_of_system};
        struct hfd_copy_source source;
        struct hf_status status = {0};
        struct hfd_store *memory;

        assert_int_equal(hfd_memory_store_new(&host_of_system, &memory), 0);
        assert_true(store_client_put(memory, "/registry/a", "1") != 0);
        assert_true(store_client_put(memory, "/registry/b", "2") != 0);
        assert_true(store_client_put(memory, "/registry/c", "3") != 0);
        failing_memory_arm(n);
        int r = hfd_copy_source_read(&source, memory, "/registry", &status);
        failing_memory_disarm();
        if (r == 0)
                assert_int_equal(source.n_entries, 3);
        else
                assert_int_equal(status.error, r);
        assert_int_equal(r, failing_memory_hit() ? -ENOMEM : 0);
        if (r != 0)
                assert_string_not_equal(status.message, "");
        hfd_copy_source_deinit(&source);
        memory->ops->free(memory);
}

static void test_a_source_without_memory_is_not_read(void **state) {
        failing_memory_try_all(source_life, 8);
}

#define TEST(name) cmocka_unit_test_setup_teardown(name, set_up, tear_down)

int main(void) {
        const struct CMUnitTest tests[] = {
                TEST(test_keys_are_sorted_by_their_last_writes),
                TEST(test_an_empty_page_is_the_last),
                TEST(test_many_keys_are_kept),
                TEST(test_what_is_no_source_is_refused),
                TEST(test_a_list_is_repeated_after_a_pause),
                TEST(test_after_twenty_seconds_it_is_given_up),
                TEST(test_other_failures_are_not_repeated),
                TEST(test_what_cannot_wait_is_refused),
                TEST(test_a_source_without_memory_is_not_read),
        };
        return cmocka_run_group_tests(tests, NULL, NULL);
}

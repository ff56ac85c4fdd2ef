/* SPDX-License-Identifier: Apache-2.0 */
/* Accounts of unread answers: limits for a user and for all, who is cut, and who is still served.
 */
#undef NDEBUG
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>
#include <stdio.h>
#include <string.h>

#include "fake_request.h"
#include "server/filters/unsent.h"

#define MANY 64

static const struct hf_host host = {.size = sizeof host};

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
static void test_user_limit(void **state) {
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

/* Unread objects have a limit too, at twice that of lists. */
static void test_hard_limit(void **state) {
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

/* The one that has stalled is cut; those that read are not. */
static void test_the_stalled_reader_is_cut(void **state) {
        struct hfd_unsent *unsent = make(3 * HFD_UNSENT_STREAM, 1000, 1000 * HFD_UNSENT_STREAM);
        hf_nsec now = hf_now(hf_clock_system());
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
        hf_nsec now = hf_now(hf_clock_system());
        struct reader readers[MANY];
        int attempts = 1;

        for (int i = 0; i < MANY; i++) {
                charge(unsent, &readers[i], "a", 1);
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

/*
 * The sum of all users. A user with little is served also when it is reached, and a stalled reader
 * of the largest account is cut.
 */
static void test_total_limit(void **state) {
        struct hfd_unsent *unsent = make(100 * HFD_UNSENT_STREAM, 1000, 12 * HFD_UNSENT_STREAM);
        struct reader large[9], small[3];
        hf_nsec now = hf_now(hf_clock_system());

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

/* Many users: an account goes with its last answer. */
static void test_many_users(void **state) {
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

int main(void) {
        const struct CMUnitTest tests[] = {
                cmocka_unit_test(test_user_limit),
                cmocka_unit_test(test_hard_limit),
                cmocka_unit_test(test_the_stalled_reader_is_cut),
                cmocka_unit_test(test_every_reader_is_looked_at),
                cmocka_unit_test(test_total_limit),
                cmocka_unit_test(test_many_users),
        };
        return cmocka_run_group_tests(tests, NULL, NULL);
}

/* SPDX-License-Identifier: Apache-2.0 */
/*
 * When a client reads its token file again, step by step: with a clock that the test moves, and
 * with an engine that only keeps what is scheduled.
 */
#undef NDEBUG
#include <errno.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include <cmocka.h>

#include <holdfast/error.h>

#include "base/http/engine.h"
#include "client/bearer.h"
#include "hand_clock.h"
#include "time_units.h"

static struct {
        char path[32];
        struct hf_host host;
        struct hf__bearer *bearer;
        void (*scheduled)(void *ctx); /* NULL = nothing */
        void *ctx;
        int refusal; /* what scheduling returns */
        unsigned n_scheduled, n_logged;
} f;

int __wrap_hf__http_schedule(struct hf__http_engine *engine, hf_nsec when, void (*fn)(void *ctx),
                             void *ctx);
int __wrap_hf__http_schedule(struct hf__http_engine *engine, hf_nsec when, void (*fn)(void *ctx),
                             void *ctx) {
        assert_ptr_equal(engine, &f);
        f.n_scheduled++;
        if (f.refusal == 0) {
                assert_null(f.scheduled);
                f.scheduled = fn;
                f.ctx = ctx;
        }
        return f.refusal;
}

static void run_scheduled(void) {
        void (*fn)(void *ctx) = f.scheduled;

        assert_non_null(fn);
        f.scheduled = NULL;
        fn(f.ctx);
}

static void count_line(void *ctx, enum hf_log_level level, const char *component,
                       const char *message) {
        assert_int_equal(level, HF_LOG_WARNING);
        assert_non_null(strstr(message, "; keeping the previous token"));
        f.n_logged++;
}

static void write_token(const char *text) {
        FILE *file = fopen(f.path, "w");

        assert_non_null(file);
        assert_true(fputs(text, file) >= 0);
        assert_int_equal(fclose(file), 0);
}

static int set_up(void **state) {
        memset(&f, 0, sizeof f);
        hand_clock_reset();
        strcpy(f.path, "/tmp/hf-bearer-XXXXXX");
        assert_int_equal(close(mkstemp(f.path)), 0);
        write_token("one\n");
        f.host = (struct hf_host){.size = sizeof f.host,
                                  .clock = &hand_clock,
                                  .log = {.write = count_line, .max_level = HF_LOG_DEBUG}};
        assert_int_equal(hf__bearer_new(&f.host, NULL, f.path, &f.bearer, NULL), 0);
        hf__bearer_attach(f.bearer, (struct hf__http_engine *)(void *)&f);
        return 0;
}

static int tear_down(void **state) {
        assert_null(hf__bearer_free(f.bearer));
        (void)unlink(f.path);
        return 0;
}

/* Asserts that a request gets this token. */
static void expect_token(const char *text) {
        struct hf__token *token = hf__bearer_get(f.bearer);
        char header[64];

        (void)snprintf(header, sizeof header, "Authorization: Bearer %s", text);
        assert_string_equal(hf__token_header(token), header);
        assert_null(hf__token_unref(token));
}

/* ---- by age ---- */

/* The file is read once a minute, however many requests there are. */
static void test_a_file_is_read_again_after_a_minute(void **state) {
        write_token("two\n");
        hand_clock_move(60 * SEC - 1);
        expect_token("one");
        assert_int_equal(f.n_scheduled, 0);
        hand_clock_move(1);
        expect_token("one"); /* for the last time before the file is read again */
        expect_token("one");
        assert_int_equal(f.n_scheduled, 1);
        run_scheduled();
        expect_token("two");
        hand_clock_move(60 * SEC - 1);
        expect_token("two");
        assert_int_equal(f.n_scheduled, 1);
        hand_clock_move(1);
        expect_token("two");
        assert_int_equal(f.n_scheduled, 2);
        run_scheduled();
        expect_token("two");
}

static void test_what_cannot_be_scheduled_is_tried_by_the_next_request(void **state) {
        write_token("two\n");
        hand_clock_move(60 * SEC);
        f.refusal = -ENOMEM;
        expect_token("one");
        expect_token("one");
        assert_int_equal(f.n_scheduled, 2);
        f.refusal = 0;
        expect_token("one");
        assert_int_equal(f.n_scheduled, 3);
        run_scheduled();
        expect_token("two");
}

/* The file may be missing for a moment. That is logged once, and counts as a reading of the file.
 */
static void test_a_file_that_cannot_be_read_leaves_the_token(void **state) {
        assert_int_equal(unlink(f.path), 0);
        for (unsigned i = 1; i <= 2; i++) {
                hand_clock_move(60 * SEC);
                expect_token("one");
                assert_int_equal(f.n_scheduled, i);
                run_scheduled();
                expect_token("one");
                assert_int_equal(f.n_scheduled, i);
                assert_int_equal(f.n_logged, 1);
        }
        write_token("two\n");
        hand_clock_move(60 * SEC);
        expect_token("one");
        run_scheduled();
        expect_token("two");
        assert_int_equal(unlink(f.path), 0);
        hand_clock_move(60 * SEC);
        expect_token("two");
        run_scheduled();
        assert_int_equal(f.n_logged, 2);
        expect_token("two");
}

/* ---- after a refusal ---- */

static void test_a_refused_token_is_replaced_at_once(void **state) {
        struct hf__token *used = hf__bearer_get(f.bearer);

        write_token("two\n");
        hand_clock_move(SEC - 1);
        assert_false(hf__bearer_renew(f.bearer, used)); /* read less than a second ago */
        expect_token("one");
        hand_clock_move(1);
        assert_true(hf__bearer_renew(f.bearer, used));
        expect_token("two");
        /* Another request that used the old token need not read the file again. */
        write_token("three\n");
        hand_clock_move(SEC);
        assert_true(hf__bearer_renew(f.bearer, used));
        expect_token("two");
        (void)hf__token_unref(used);
        used = hf__bearer_get(f.bearer);
        assert_true(hf__bearer_renew(f.bearer, used));
        expect_token("three");
        (void)hf__token_unref(used);
        assert_int_equal(f.n_scheduled, 0);
}

/* The server refuses the newest token too, so a retry makes no sense. */
static void test_the_same_token_again_is_no_new_one(void **state) {
        struct hf__token *used = hf__bearer_get(f.bearer);

        hand_clock_move(SEC);
        assert_false(hf__bearer_renew(f.bearer, used));
        write_token("two\n");
        assert_false(hf__bearer_renew(f.bearer, used)); /* at most once a second */
        hand_clock_move(SEC);
        assert_true(hf__bearer_renew(f.bearer, used));
        (void)hf__token_unref(used);
}

static void test_a_token_without_a_file_stays(void **state) {
        struct hf__bearer *fixed, *none;

        assert_int_equal(hf__bearer_new(&f.host, "fixed", NULL, &fixed, NULL), 0);
        assert_int_equal(hf__bearer_new(&f.host, NULL, NULL, &none, NULL), 0);
        hand_clock_move(3600 * SEC);
        struct hf__token *token = hf__bearer_get(fixed);
        assert_string_equal(hf__token_header(token), "Authorization: Bearer fixed");
        assert_false(hf__bearer_renew(fixed, token));
        assert_false(hf__bearer_renew(fixed, NULL));
        (void)hf__token_unref(token);
        assert_null(hf__bearer_get(none));
        assert_int_equal(f.n_scheduled, 0);
        assert_null(hf__bearer_free(fixed));
        assert_null(hf__bearer_free(none));
        assert_null(hf__bearer_free(NULL));
}

static void test_what_is_no_token_is_refused(void **state) {
        struct hf__bearer *bearer = NULL;
        struct hf_status status = {0};

        assert_int_equal(hf__bearer_new(&f.host, "a\nb", NULL, &bearer, &status), HF_E_INVALID);
        assert_string_equal(status.message,
                            "the bearer token is empty, too long or has control characters");
        assert_int_equal(hf__bearer_new(&f.host, "", NULL, &bearer, &status), HF_E_INVALID);
        write_token("\n");
        assert_int_equal(hf__bearer_new(&f.host, NULL, f.path, &bearer, &status), HF_E_INVALID);
        assert_non_null(strstr(status.message, f.path));
        assert_int_equal(hf__bearer_new(&f.host, NULL, "/nonexistent/t", &bearer, &status),
                         -ENOENT);
        assert_non_null(strstr(status.message, "cannot read the token file /nonexistent/t: "));
        assert_null(bearer);
}

#define TEST(name) cmocka_unit_test_setup_teardown(name, set_up, tear_down)

int main(void) {
        const struct CMUnitTest tests[] = {
                TEST(test_a_file_is_read_again_after_a_minute),
                TEST(test_what_cannot_be_scheduled_is_tried_by_the_next_request),
                TEST(test_a_file_that_cannot_be_read_leaves_the_token),
                TEST(test_a_refused_token_is_replaced_at_once),
                TEST(test_the_same_token_again_is_no_new_one),
                TEST(test_a_token_without_a_file_stays),
                TEST(test_what_is_no_token_is_refused),
        };
        return cmocka_run_group_tests(tests, NULL, NULL);
}

/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The state of one gRPC call, without a connection: which messages come out of the pieces of a
 * body, what headers and trailers mean, and when the call's timer must run.
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

#include <cmocka.h>

#include <holdfast/error.h>

#include "base/buf.h"
#include "failing_memory.h"
#include "server/storage/grpc/prefix.h"
#include "server/storage/grpc/stream.h"
#include "time_units.h"

static struct hfd_grpc_stream stream;
static char seen[256]; /* what the callbacks were told */
static int message_result, n_done;

static void note(const char *format, ...) __attribute__((format(printf, 1, 2)));
static void note(const char *format, ...) {
        size_t n = strlen(seen);
        va_list arguments;

        va_start(arguments, format);
        (void)vsnprintf(seen + n, sizeof seen - n, format, arguments);
        va_end(arguments);
}

static int on_message(void *ctx, const char *data, size_t n) {
        note("[%.*s]", (int)n, data);
        return message_result;
}

static void on_done(void *ctx, const struct hfd_grpc_result *result) {
        assert_ptr_equal(ctx, &stream);
        n_done++;
        note("%d code %d status %d (%s) error (%s)", result->outcome, result->code, result->status,
             result->status_text, result->error_text);
        if (result->message)
                note(" {%.*s}", (int)result->n_message, result->message);
}

static void begin(bool unary, size_t max_message) {
        const struct hfd_grpc_request request = {.path = "/Test",
                                                 .deadline = HF_NSEC_NEVER,
                                                 .max_message = max_message,
                                                 .on_message = unary ? NULL : on_message,
                                                 .on_done = on_done,
                                                 .ctx = &stream};

        seen[0] = 0;
        message_result = n_done = 0;
        hfd_grpc_stream_init(&stream, &request, 1000);
        stream.code = 200;
}

/* Ends the call, and asserts what its callbacks were told. */
static void end(int outcome, const char *error_text, const char *expected) {
        hfd_grpc_stream_finish(&stream, outcome, error_text);
        assert_true(stream.ended);
        assert_int_equal(n_done, 1);
        assert_string_equal(seen, expected);
}

static void header(const char *name, const char *value) {
        hfd_grpc_stream_add_header(&stream, name, strlen(name), value, strlen(value));
}

/* Writes a message with its prefix. Returns its end. */
static char *put_message(char *to, const char *text) {
        hfd_grpc_prefix_write(to, (uint32_t)strlen(text));
        memcpy(to + HFD_GRPC_PREFIX, text, strlen(text));
        return to + HFD_GRPC_PREFIX + strlen(text);
}

/* Adds the body in pieces of n bytes, each of which is memory of its own. */
static int add_in_pieces(const char *body, size_t n_body, size_t n) {
        int r = 0;

        for (size_t at = 0; at < n_body && r == 0; at += n) {
                size_t left = n_body - at, n_piece = left < n ? left : n;
                char *piece = malloc(n_piece);
                assert_non_null(piece);
                memcpy(piece, body + at, n_piece);
                r = hfd_grpc_stream_add_data(&stream, piece, n_piece);
                free(piece);
        }
        return r;
}

/* ---- messages ---- */

static void test_a_stream_passes_on_the_messages_in_pieces_of_any_size(void **state) {
        char body[128], *to = put_message(body, "one");

        to = put_message(put_message(to, ""), "the third");
        for (size_t n = 1; n <= (size_t)(to - body); n++) {
                begin(false, 9);
                assert_int_equal(add_in_pieces(body, (size_t)(to - body), n), 0);
                assert_string_equal(seen, "[one][][the third]");
                end(0, "", "[one][][the third]0 code 200 status -1 () error ()");
        }
}

static void test_a_unary_call_keeps_one_message(void **state) {
        char body[64], *to = put_message(body, "result");
        size_t n_body = (size_t)(to - body);

        for (size_t n = 1; n <= n_body; n++) {
                begin(true, 6);
                assert_int_equal(add_in_pieces(body, n_body, n), 0);
                assert_int_equal(hfd_grpc_stream_add_data(&stream, "", 0), 0);
                end(0, "", "0 code 200 status -1 () error () {result}");
        }
        for (size_t n = 1; n <= HFD_GRPC_PREFIX; n++) {
                begin(true, 6);
                (void)put_message(body, "");
                assert_int_equal(add_in_pieces(body, HFD_GRPC_PREFIX, n), 0);
                end(0, "", "0 code 200 status -1 () error () {}");
        }
}

static void test_a_unary_call_has_no_second_message(void **state) {
        char body[64], *to = put_message(body, "result");
        size_t n_body = (size_t)(to - body);

        begin(true, 6);
        body[n_body] = 0;
        assert_int_equal(hfd_grpc_stream_add_data(&stream, body, n_body + 1), -EPROTO);
        end(-EPROTO, "why", "-71 code 200 status -1 () error (why) {result}");
        begin(true, 6);
        assert_int_equal(hfd_grpc_stream_add_data(&stream, body, n_body), 0);
        assert_int_equal(hfd_grpc_stream_add_data(&stream, body, 1), -EPROTO);
        end(-EPROTO, "", "-71 code 200 status -1 () error () {result}");
}

static void test_an_incomplete_message_is_none(void **state) {
        char body[64], *to = put_message(body, "result");
        size_t n_body = (size_t)(to - body);

        for (size_t n = 0; n < n_body; n++) {
                begin(true, 6);
                assert_int_equal(hfd_grpc_stream_add_data(&stream, body, n), 0);
                hfd_grpc_stream_finish(&stream, -EPIPE, "gone");
                assert_string_equal(seen, "-32 code 200 status -1 () error (gone)");
        }
}

static void test_a_message_that_is_too_long_ends_the_call(void **state) {
        char body[64], *to = put_message(body, "result");

        for (int unary = 0; unary < 2; unary++) {
                begin(unary, 5);
                assert_int_equal(hfd_grpc_stream_add_data(&stream, body, (size_t)(to - body)),
                                 HF_E_TOO_LARGE);
                assert_string_equal(seen, "");
                hfd_grpc_stream_finish(&stream, HF_E_TOO_LARGE, "");
                assert_null(strstr(seen, "{"));
        }
}

static void test_a_compressed_message_ends_the_call(void **state) {
        char body[64], *to = put_message(body, "result");

        body[0] = 1;
        begin(false, 64);
        assert_int_equal(hfd_grpc_stream_add_data(&stream, body, (size_t)(to - body)), -EPROTO);
        end(-EPROTO, "", "-71 code 200 status -1 () error ()");
}

static void test_the_receiver_may_end_a_stream_at_any_message(void **state) {
        char body[64], *to = put_message(put_message(body, "one"), "two");

        for (size_t n = 1; n <= (size_t)(to - body); n++) {
                begin(false, 64);
                message_result = -1;
                assert_int_equal(add_in_pieces(body, (size_t)(to - body), n), HF_E_CANCELED);
                assert_string_equal(seen, "[one]");
                hfd_grpc_stream_finish(&stream, HF_E_CANCELED, "");
        }
}

static void test_the_page_of_a_proxy_is_no_message(void **state) {
        begin(true, 4);
        header(":status", "502");
        assert_int_equal(hfd_grpc_stream_add_data(&stream, "<html>Bad gateway</html>", 24), 0);
        end(0, "", "0 code 502 status -1 () error ()");
}

/* ---- headers ---- */

static void expect_status(const char *value, int expected) {
        begin(true, 0);
        header(":status", value);
        header("grpc-status", value);
        assert_int_equal(stream.code, expected);
        assert_int_equal(stream.status, expected);
}

static void test_statuses_are_numbers_of_up_to_four_digits(void **state) {
        expect_status("0", 0);
        expect_status("5", 5);
        expect_status("16", 16);
        expect_status("200", 200);
        expect_status("9999", 9999);
        expect_status("1090", 1090);
        expect_status("10000", -1);
        expect_status("", -1);
        expect_status("2x", -1);
        expect_status("x2", -1);
        expect_status("-1", -1);
        expect_status("1/", -1);
        expect_status("1:", -1);
}

static void expect_text(const char *value, const char *expected) {
        begin(true, 0);
        header("grpc-message", value);
        assert_string_equal(stream.status_text ? stream.status_text : "", expected);
        hfd_grpc_stream_finish(&stream, 0, "");
}

static void test_the_text_of_a_status_is_decoded(void **state) {
        expect_text("", "");
        expect_text("a b", "a b");
        expect_text("a%20b", "a b");
        expect_text("%41%4a%4A%0a", "AJJ\n");
        expect_text("%c3%a9%C3%A9", "\xc3\xa9\xc3\xa9");
        expect_text("%af%FA%99%00x", "\xaf\xfa\x99");
        expect_text("100%", "100%");
        expect_text("%4", "%4");
        expect_text("%%41", "%A");
        expect_text("%4g%g4%4G%/0%0:%`a%a`%4{", "%4g%g4%4G%/0%0:%`a%a`%4{");
        expect_text("%@a%a@", "%@a%a@");
        expect_text("%41", "A");
}

/* Bytes behind the value in memory are not part of it. */
static void test_an_escape_that_is_cut_off_is_none(void **state) {
        static const char value[] = "a%20";

        begin(true, 100);
        hfd_grpc_stream_add_header(&stream, "grpc-message", 12, value, 3);
        assert_string_equal(stream.status_text, "a%2");
        hfd_grpc_stream_finish(&stream, 0, "");
}

static void test_headers_have_whole_names_and_the_last_one_counts(void **state) {
        begin(true, 0);
        header("grpc-status", "5");
        header("grpc-messag", "short");
        header("grpc-messagf", "other");
        header(":statut", "404");
        header("grpc-statut", "7");
        header("x-grpc-status", "8");
        assert_null(stream.status_text);
        header("grpc-message", "first");
        header("grpc-message", "second");
        header(":status", "201");
        end(0, "", "0 code 201 status 5 (second) error ()");
}

/* ---- without memory ---- */

/* The last byte is missing, so that a stream must keep the rest, too. */
static void test_a_message_without_memory_ends_the_call(void **state) {
        char body[64], *to = put_message(body, "result");
        size_t n_body = (size_t)(to - body);

        for (int unary = 0; unary < 2; unary++) {
                begin(unary, 64);
                failing_memory_arm(0);
                assert_int_equal(hfd_grpc_stream_add_data(&stream, body, n_body - 1), -ENOMEM);
                failing_memory_disarm();
                assert_true(failing_memory_hit());
                end(-ENOMEM, "", "-12 code 200 status -1 () error ()");
        }
}

/* Only the text is lost. */
static void test_a_status_needs_no_memory(void **state) {
        begin(true, 0);
        header("grpc-status", "5");
        failing_memory_arm(0);
        header("grpc-message", "text");
        failing_memory_disarm();
        assert_true(failing_memory_hit());
        end(0, "", "0 code 200 status 5 () error ()");
}

/* ---- time ---- */

static void begin_at(hf_nsec deadline, hf_nsec head_timeout, struct hf__buf *probe) {
        const struct hfd_grpc_request request = {.deadline = deadline,
                                                 .head_timeout = head_timeout,
                                                 .probe = probe,
                                                 .probe_after = 2 * SEC,
                                                 .probe_time = 3 * SEC};

        hfd_grpc_stream_init(&stream, &request, 100 * SEC);
}

static void test_the_timer_runs_at_the_first_of_its_times(void **state) {
        struct hf__buf *probe = hf__buf_copy("probe", 5);

        begin_at(HF_NSEC_NEVER, 0, NULL);
        assert_true(hfd_grpc_stream_due(&stream) == HF_NSEC_NEVER);
        begin_at(HF_NSEC_NEVER, HF_NSEC_NEVER - 100 * SEC, NULL); /* a sum that does not fit */
        assert_true(hfd_grpc_stream_due(&stream) == HF_NSEC_NEVER);
        begin_at(107 * SEC, 0, probe);
        assert_true(hfd_grpc_stream_due(&stream) == 107 * SEC); /* no probe before the headers */
        begin_at(107 * SEC, 8 * SEC, probe);
        assert_true(hfd_grpc_stream_due(&stream) == 107 * SEC);
        begin_at(107 * SEC, 5 * SEC, probe);
        assert_true(hfd_grpc_stream_due(&stream) == 105 * SEC);
        stream.head_done = true;
        assert_true(hfd_grpc_stream_due(&stream) == 102 * SEC);
        stream.received_at = 104 * SEC;
        assert_true(hfd_grpc_stream_due(&stream) == 106 * SEC);
        stream.received_at = 106 * SEC;
        assert_true(hfd_grpc_stream_due(&stream) == 107 * SEC);
        stream.probed_at = 103 * SEC;
        assert_true(hfd_grpc_stream_due(&stream) == 106 * SEC);
        stream.probed_at = 105 * SEC;
        assert_true(hfd_grpc_stream_due(&stream) == 107 * SEC);
        begin_at(107 * SEC, 5 * SEC, NULL);
        stream.head_done = true;
        assert_true(hfd_grpc_stream_due(&stream) == 107 * SEC);
        hf__buf_unref(probe);
}

static void test_a_new_call_has_received_nothing(void **state) {
        struct hf__buf *body = hf__buf_copy("body", 4);
        const struct hfd_grpc_request request = {.body = body, .on_done = on_done, .ctx = &stream};

        memset(&stream, 0xa5, sizeof stream);
        seen[0] = 0;
        n_done = 0;
        hfd_grpc_stream_init(&stream, &request, 7 * SEC);
        assert_ptr_equal(stream.out, body);
        assert_true(stream.received_at == 7 * SEC);
        end(-EPIPE, "stopped", "-32 code 0 status -1 () error (stopped)");
        hf__buf_unref(body);
}

/* ---- what all of them leave ---- */

static size_t n_live_before;

static int note_blocks(void **state) {
        n_live_before = failing_memory_n_live();
        return 0;
}

static void test_no_memory_is_left(void **state) {
        assert_int_equal(failing_memory_n_live(), n_live_before);
}

int main(void) {
        const struct CMUnitTest tests[] = {
                cmocka_unit_test(test_a_stream_passes_on_the_messages_in_pieces_of_any_size),
                cmocka_unit_test(test_a_unary_call_keeps_one_message),
                cmocka_unit_test(test_a_unary_call_has_no_second_message),
                cmocka_unit_test(test_an_incomplete_message_is_none),
                cmocka_unit_test(test_a_message_that_is_too_long_ends_the_call),
                cmocka_unit_test(test_a_compressed_message_ends_the_call),
                cmocka_unit_test(test_the_receiver_may_end_a_stream_at_any_message),
                cmocka_unit_test(test_the_page_of_a_proxy_is_no_message),
                cmocka_unit_test(test_statuses_are_numbers_of_up_to_four_digits),
                cmocka_unit_test(test_the_text_of_a_status_is_decoded),
                cmocka_unit_test(test_an_escape_that_is_cut_off_is_none),
                cmocka_unit_test(test_headers_have_whole_names_and_the_last_one_counts),
                cmocka_unit_test(test_a_message_without_memory_ends_the_call),
                cmocka_unit_test(test_a_status_needs_no_memory),
                cmocka_unit_test(test_the_timer_runs_at_the_first_of_its_times),
                cmocka_unit_test(test_a_new_call_has_received_nothing),
                cmocka_unit_test(test_no_memory_is_left),
        };
        return cmocka_run_group_tests(tests, note_blocks, NULL);
}

/* SPDX-License-Identifier: Apache-2.0 */
/* Which error and status the client reports for a response that is not a success. */
#undef NDEBUG
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#include "client/status.h"

static int map(int code, const char *body, bool is_write, struct hf_status *ret_status) {
        const struct hf__status_context context = {.is_write = is_write, .what = "PUT http://x/y"};
        return hf__status_from_response(code, body, body ? strlen(body) : 0, &context, ret_status);
}

struct answer {
        int code;
        const char *body;
        bool is_write;
        int error; /* the error that the client reports */
};

static void expect_errors(const struct answer *answers, size_t n) {
        struct hf_status status;

        for (size_t i = 0; i < n; i++) {
                int error = map(answers[i].code, answers[i].body, answers[i].is_write, &status);
                if (error != answers[i].error || status.error != error)
                        fail_msg("case %zu: HTTP %d gives %d, not %d", i, answers[i].code, error,
                                 answers[i].error);
        }
}

static void test_codes_of_refusals_become_errors(void **state) {
        static const struct answer answers[] = {
                {400, NULL, true, HF_E_INVALID},
                {401, NULL, false, HF_E_UNAUTHORIZED},
                {403, NULL, false, HF_E_FORBIDDEN},
                {404, NULL, false, HF_E_NOT_FOUND},
                {405, NULL, false, HF_E_INVALID},
                {409, "{\"reason\":\"AlreadyExists\"}", true, HF_E_EXISTS},
                {409, "{\"reason\":\"Conflict\"}", true, HF_E_CONFLICT},
                {409, NULL, true, HF_E_CONFLICT},
                {409,
                 "{\"reason\":\"Conflict\",\"details\":{\"causes\":[{\"reason\":\"x\"},{\"reason\":"
                 "\"StaleLeaderTerm\"}]}}",
                 true, HF_E_STALE_TERM},
                {409,
                 "{\"reason\":\"AlreadyExists\",\"details\":{\"causes\":[{\"reason\":"
                 "\"StaleLeaderTerm\"}]}}",
                 true, HF_E_EXISTS},
                {410, NULL, false, HF_E_GONE},
                {400, "{\"reason\":\"Expired\"}", false, HF_E_GONE},
                {413, NULL, true, HF_E_TOO_LARGE},
                {422, NULL, true, HF_E_INVALID},
                {429, NULL, true, HF_E_TOO_MANY},
                {301, NULL, false, HF_E_INVALID},
                {300, NULL, false, HF_E_INVALID},
        };

        expect_errors(answers, sizeof answers / sizeof answers[0]);
}

static void test_a_write_that_may_have_happened_is_a_timeout(void **state) {
        static const struct answer answers[] = {
                {500, NULL, false, HF_E_UNAVAILABLE},
                {500, NULL, true, HF_E_TIMEOUT}, /* the write may have been applied */
                {502, NULL, true, HF_E_TIMEOUT},
                {503, NULL, true,
                 HF_E_TIMEOUT}, /* a proxy may send this after the write was applied */
                {503, "{\"kind\":\"Status\",\"details\":{\"retryAfterSeconds\":1}}", true,
                 HF_E_TIMEOUT},
                {503, "{\"details\":{\"causes\":[{\"reason\":\"NotApplied\"}]}}", true,
                 HF_E_UNAVAILABLE},
                {503, NULL, false, HF_E_UNAVAILABLE},
                {500, "{\"details\":{\"causes\":[{\"reason\":\"NotApplied\"}]}}", true,
                 HF_E_TIMEOUT},
                /* a reason of a read says nothing about a write */
                {500, "{\"reason\":\"Expired\"}", true, HF_E_TIMEOUT},
                {503, "{\"reason\":\"Gone\"}", true, HF_E_TIMEOUT},
                {500, "{\"reason\":\"Expired\"}", false, HF_E_GONE},
                {408, NULL, true, HF_E_TIMEOUT},
                {408, NULL, false, HF_E_TIMEOUT},
                {504, NULL, true, HF_E_TIMEOUT},
                {504, NULL, false, HF_E_TIMEOUT},
        };

        expect_errors(answers, sizeof answers / sizeof answers[0]);
}

static void test_a_body_may_name_a_code_of_its_own(void **state) {
        static const struct answer answers[] = {
                {200, "{\"code\":410,\"reason\":\"Expired\"}", false,
                 HF_E_GONE}, /* an ERROR event */
                {200, "{}", false, HF_E_UNAVAILABLE},
                {299, NULL, false, HF_E_UNAVAILABLE},
                {200, "{\"code\":300}", false, HF_E_INVALID},
                {200, "{\"code\":299}", false, HF_E_UNAVAILABLE},
                {200, "{\"code\":404}", false, HF_E_NOT_FOUND},
                {200, "{\"code\":999}", false, HF_E_UNAVAILABLE},
                {200, "{\"code\":1000}", false, HF_E_UNAVAILABLE},
                /* the HTTP code counts if it is that of a failure */
                {300, "{\"code\":404}", false, HF_E_INVALID},
                {500, "{\"code\":404}", false, HF_E_UNAVAILABLE},
        };

        expect_errors(answers, sizeof answers / sizeof answers[0]);
}

/* Returns the code in the status. */
static int code_of(int code, const char *body) {
        struct hf_status status;

        (void)map(code, body, false, &status);
        return status.http_code;
}

static void test_a_code_of_the_body_has_three_digits(void **state) {
        assert_int_equal(code_of(200, "{\"code\":300}"), 300);
        assert_int_equal(code_of(200, "{\"code\":299}"), 200);
        assert_int_equal(code_of(200, "{\"code\":999}"), 999);
        assert_int_equal(code_of(200, "{\"code\":1000}"), 200);
        assert_int_equal(code_of(299, "{\"code\":404}"), 404);
        assert_int_equal(code_of(300, "{\"code\":404}"), 300);
}

static void test_messages_are_kept_on_one_line(void **state) {
        struct hf_status status;

        map(409,
            "{\"message\":\"the object\\nhas been modified\\u001b[31m\",\"reason\":\"Conflict\"}",
            true, &status);
        assert_string_equal(status.message, "the object has been modified [31m");
        assert_string_equal(status.reason, "Conflict");
        assert_int_equal(status.http_code, 409);
        map(500, "Too many\r\n  requests\n", false, &status);
        assert_string_equal(status.message, "PUT http://x/y: HTTP 500: Too many    requests");
        map(404, "", false, &status);
        assert_string_equal(status.message, "PUT http://x/y: HTTP 404");
        map(404, "{\"reason\":\"NotFound\"}", false, &status);
        assert_string_equal(status.message, "PUT http://x/y: HTTP 404");
}

/* Memory before the text must not be read as a part of it. */
static void test_a_text_of_spaces_is_empty(void **state) {
        struct hf_status status;

        map(429,
            "{\"reason\":\" \",\"message\":\" \\n\",\"details\":{\"retryAfterSeconds\":538976288}}",
            false, &status);
        assert_string_equal(status.reason, "");
        assert_string_equal(status.message, "");
        assert_int_equal(status.retry_after_s, 0x20202020); /* bytes that are spaces */
}

static void test_a_body_of_256_kib_is_read(void **state) {
        const struct hf__status_context context = {.what = "GET http://x/y"};
        const size_t n = (size_t)256 << 10;
        char *body = malloc(n + 2);

        assert_non_null(body);
        memset(body, ' ', n + 1);
        body[n + 1] = '\0';
        memcpy(body, "{\"message\":\"m\"}", 15);
        struct hf_status status;
        hf__status_from_response(404, body, n, &context, &status);
        assert_string_equal(status.message, "m");
        hf__status_from_response(404, body, n + 1, &context, &status);
        assert_string_equal(status.message, "GET http://x/y: HTTP 404: {\"message\":\"m\"}");
        free(body);
}

static void test_retry_after_is_taken_from_header_or_body(void **state) {
        const struct hf__status_context context = {.retry_after_s = 7};
        const char *body = "{\"details\":{\"retryAfterSeconds\":3}}";
        struct hf_status status;

        map(429, body, false, &status);
        assert_int_equal(status.retry_after_s, 3);
        hf__status_from_response(429, body, strlen(body), &context, &status);
        assert_int_equal(status.retry_after_s, 7);
        map(429, "{\"details\":{\"retryAfterSeconds\":-3}}", false, &status);
        assert_int_equal(status.retry_after_s, 0);
}

int main(void) {
        const struct CMUnitTest tests[] = {
                cmocka_unit_test(test_codes_of_refusals_become_errors),
                cmocka_unit_test(test_a_write_that_may_have_happened_is_a_timeout),
                cmocka_unit_test(test_a_body_may_name_a_code_of_its_own),
                cmocka_unit_test(test_a_code_of_the_body_has_three_digits),
                cmocka_unit_test(test_messages_are_kept_on_one_line),
                cmocka_unit_test(test_a_text_of_spaces_is_empty),
                cmocka_unit_test(test_a_body_of_256_kib_is_read),
                cmocka_unit_test(test_retry_after_is_taken_from_header_or_body),
        };
        return cmocka_run_group_tests(tests, NULL, NULL);
}

/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The conversions of one request by a webhook: each is made once, and when there are too many the
 * failure says so.
 */
#undef NDEBUG
#include <errno.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>

#include <cmocka.h>

#include <holdfast/error.h>

#include "base/json.h"
#include "server/admission/forms.h"
#include "server/resources/custom/custom_kind.h"
#include "server/resources/resource.h"
#include "server/resources/response.h"

static struct hfd_custom_kind kind = {.is_converted_elsewhere = true};
static struct hfd_custom_version first = {.kind = &kind}, second = {.kind = &kind};
static const struct hfd_resource from = {.version = "v1", .custom = &first},
                                 to = {.version = "v2", .custom = &second};
static int n_calls, n_resumed;

static struct hf__json *make_object(int number) {
        struct hf__json *object = hf__json_object();

        assert_non_null(object);
        assert_int_equal(hf__json_set_i64(object, "number", number), 0);
        return object;
}

static void convert(void *ctx, const struct hfd_resource *of, const struct hfd_resource *into,
                    const struct hf__json *source, hfd_forms_converted *done, void *done_ctx) {
        struct hf__json *result = hf__json_dup(source);

        assert_true(of == &from && into == &to);
        assert_int_equal(hf__json_set_i64(result, "converted", ++n_calls), 0);
        done(done_ctx, result, NULL);
}

static void resume(void *ctx) { n_resumed++; }

/* Asks for the conversion of object number `number`, and calls the webhook if it is needed. */
static int find(struct hfd_admission_forms **forms, int number, struct hf__json **ret_result) {
        struct hf__json *object = make_object(number);
        int r = hfd_forms_find(forms, &from, &to, object, ret_result);

        if (r == -EAGAIN) {
                assert_true(hfd_forms_is_wanted(*forms));
                hfd_forms_fetch(*forms, convert, NULL, resume, NULL);
                r = hfd_forms_find(forms, &from, &to, object, ret_result);
        }
        hf__json_free(object);
        return r;
}

static void test_each_object_is_converted_once(void **state) {
        struct hfd_admission_forms *forms = NULL;
        struct hf__json *result;
        int64_t converted;

        for (int i = 0; i < 2 * HFD_FORMS_MAX; i++) {
                assert_int_equal(find(&forms, i % HFD_FORMS_MAX, &result), 0);
                assert_true(hf__json_i64(result, "converted", &converted));
                assert_int_equal(converted, 1 + i % HFD_FORMS_MAX);
                hf__json_free(result);
        }
        assert_int_equal(n_calls, HFD_FORMS_MAX);
        assert_int_equal(n_resumed, HFD_FORMS_MAX);
        /* One more is refused, with a reason, and the others are still there. */
        assert_null(hfd_forms_failure(forms));
        assert_int_equal(find(&forms, HFD_FORMS_MAX, &result), HF_E_INVALID);
        assert_null(result);
        assert_non_null(hfd_forms_failure(forms));
        assert_int_equal(hfd_forms_failure(forms)->code, 500);
        assert_string_equal(hfd_forms_failure(forms)->status.message,
                            "the request needs too many conversions by a webhook");
        assert_int_equal(find(&forms, 0, &result), 0);
        hf__json_free(result);
        hfd_forms_free(forms);
}

/* ctx: why the conversion fails. */
static void refuse(void *ctx, const struct hfd_resource *of, const struct hfd_resource *into,
                   const struct hf__json *source, hfd_forms_converted *done, void *done_ctx) {
        done(done_ctx, NULL, ctx);
}

static int find_refused(struct hfd_admission_forms **forms, int error) {
        struct hfd_response failure = {.code = 500, .status = {.error = error}};
        struct hf__json *object = make_object(0), *result;

        assert_int_equal(hfd_forms_find(forms, &from, &to, object, &result), -EAGAIN);
        hfd_forms_fetch(*forms, refuse, &failure, resume, NULL);
        int r = hfd_forms_find(forms, &from, &to, object, &result);
        assert_null(result);
        hf__json_free(object);
        return r;
}

/* A failurePolicy decides only about failures that Kubernetes would have, too. */
static void test_lack_of_memory_and_limits_are_no_failures_of_the_webhook(void **state) {
        static const struct {
                int error, r;
        } cases[] = {{-ENOMEM, -ENOMEM},
                     {HF_E_TOO_MANY, HF_E_TOO_MANY},
                     {HF_E_TOO_LARGE, HF_E_TOO_MANY},
                     {HF_E_UNAVAILABLE, HF_E_INVALID}};

        for (size_t i = 0; i < sizeof cases / sizeof cases[0]; i++) {
                struct hfd_admission_forms *forms = NULL;
                int r = find_refused(&forms, cases[i].error);
                if (r == HF_E_INVALID)
                        r = hfd_forms_error(hfd_forms_failure(forms));
                assert_int_equal(r, cases[i].r);
                hfd_forms_free(forms);
        }
}

int main(void) {
        const struct CMUnitTest tests[] = {
                cmocka_unit_test(test_each_object_is_converted_once),
                cmocka_unit_test(test_lack_of_memory_and_limits_are_no_failures_of_the_webhook),
        };
        return cmocka_run_group_tests(tests, NULL, NULL);
}

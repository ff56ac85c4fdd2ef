/* SPDX-License-Identifier: Apache-2.0 */
/* Reviews, refusals, reinvocation and notes: the parts of admission webhooks that send no requests.
 */
#undef NDEBUG
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

#include <cmocka.h>

#include "base/base64.h"
#include "base/json.h"
#include "base/strbuf.h"
#include "server/admission/webhooks/admission_review.h"
#include "server/admission/webhooks/refusal.h"
#include "server/admission/webhooks/reinvocation.h"
#include "server/patch/json_patch.h"
#include "server/resources/resource.h"
#include "server/resources/rows/resource_table.h"

static struct hf__json *parse(const char *text, size_t n) {
        struct hf__json *json = NULL;

        assert_int_equal(hf__json_parse(text, n, &json, NULL), 0);
        return json;
}

/* ---- reviews ---- */

static void a_review_says_what_is_asked_for(void **state) {
        const struct hfd_resource *row = hfd_resource_find("", "v1", "configmaps");
        const struct hfd_admission_attributes of = {.operation = HFD_ADMIT_UPDATE,
                                                    .resource = row,
                                                    .kind = row,
                                                    .subresource = "",
                                                    .ns = "default",
                                                    .name = "a\"b",
                                                    .dry_run = true};
        struct hf__json *object = parse("{\"data\":{}}", 11), *review;
        struct hf__strbuf out = {0};

        hfd_admission_review_print(&out, "u", &of, row, object, NULL, NULL);
        assert_int_equal(out.error, 0);
        review = parse(out.data, out.n);
        assert_true(hf__json_has_text(review, "kind", "AdmissionReview"));
        assert_true(hf__json_has_text(review, "apiVersion", "admission.k8s.io/v1"));
        assert_true(hf__json_has_text(review, "request.uid", "u"));
        assert_true(hf__json_has_text(review, "request.kind.kind", "ConfigMap"));
        assert_true(hf__json_has_text(review, "request.requestResource.resource", "configmaps"));
        assert_true(hf__json_has_text(review, "request.name", "a\"b"));
        assert_true(hf__json_has_text(review, "request.operation", "UPDATE"));
        assert_true(hf__json_has_text(review, "request.userInfo.username", "system:apiserver"));
        assert_true(hf__json_is_object(hf__json_path(review, "request.object.data")));
        assert_true(hf__json_is_null(hf__json_path(review, "request.oldObject")));
        assert_true(hf__json_bool(review, "request.dryRun", false));
        assert_null(hf__json_path(review, "request.subResource"));
        hf__json_free(review);
        hf__json_free(object);
        hf__strbuf_done(&out);
}

#define REVIEW(response)                                                                           \
        "{\"apiVersion\":\"admission.k8s.io/"                                                      \
        "v1\",\"kind\":\"AdmissionReview\",\"response\":" response "}"

static int read_review(const char *text, bool mutating,
                       struct hfd_admission_review_response *answer,
                       char why[HFD_ADMISSION_REVIEW_WHY_MAX]) {
        return hfd_admission_review_read(text, strlen(text), "u", mutating, answer, why);
}

static void an_answer_is_read(void **state) {
        struct hfd_admission_review_response answer;
        char why[HFD_ADMISSION_REVIEW_WHY_MAX];

        /* W3sib3AiOiJyZW1vdmUiLCJwYXRoIjoiL2EifV0= is [{"op":"remove","path":"/a"}] */
        assert_int_equal(
                read_review(REVIEW("{\"uid\":\"u\",\"allowed\":true,\"patchType\":\"JSONPatch\","
                                   "\"patch\":\"W3sib3AiOiJyZW1vdmUiLCJwYXRoIjoiL2EifV0=\","
                                   "\"warnings\":[\"w\"],\"auditAnnotations\":{\"k\":\"v\"}}"),
                            true, &answer, why),
                0);
        assert_true(answer.allowed);
        assert_int_equal(hf__json_count(answer.patch), 1);
        assert_int_equal(hf__json_count(answer.warnings), 1);
        assert_true(hf__json_has_text(answer.annotations, "k", "v"));
        hfd_admission_review_response_done(&answer);
        assert_int_equal(read_review(REVIEW("{\"uid\":\"u\"}"), false, &answer, why), 0);
        assert_false(answer.allowed); /* without `allowed` the request is refused */
        hfd_admission_review_response_done(&answer);
}

/* It can be applied to no object, and that must not look like a failure of the webhook, which
 * failurePolicy Ignore forgives. */
static void a_value_of_a_patch_may_be_as_deep_as_an_object(void **state) {
        struct hfd_admission_review_response answer;
        struct hfd_patch_outcome outcome = {0};
        struct hf__strbuf patch = {0}, review = {0};
        char why[HFD_ADMISSION_REVIEW_WHY_MAX];
        struct hf__json *object = parse("{\"spec\":1}", 10);

        hf__strbuf_puts(&patch, "[{\"op\":\"replace\",\"path\":\"/spec\",\"value\":");
        for (int i = 0; i < HF__JSON_DEPTH_MAX; i++)
                hf__strbuf_putc(&patch, '[');
        for (int i = 0; i < HF__JSON_DEPTH_MAX; i++)
                hf__strbuf_putc(&patch, ']');
        hf__strbuf_puts(&patch, "}]");
        hf__strbuf_puts(&review, "{\"apiVersion\":\"admission.k8s.io/v1\",\"kind\":"
                                 "\"AdmissionReview\",\"response\":{\"uid\":\"u\",\"allowed\":"
                                 "true,\"patchType\":\"JSONPatch\",\"patch\":\"");
        hf__base64_encode(&review, patch.data, patch.n);
        hf__strbuf_puts(&review, "\"}}");
        assert_int_equal(review.error, 0);
        assert_int_equal(read_review(review.data, true, &answer, why), 0);
        assert_int_equal(hfd_json_patch_apply(&object, answer.patch, &outcome), HF_E_TOO_LARGE);
        assert_true(outcome.too_deep);
        hfd_admission_review_response_done(&answer);
        hf__json_free(object);
        hf__strbuf_done(&patch);
        hf__strbuf_done(&review);
}

static void of_equal_keys_the_last_counts(void **state) {
        struct hfd_admission_review_response answer;
        char why[HFD_ADMISSION_REVIEW_WHY_MAX];

        /* The patch is [{"op":"add","path":"/a","value":{"k":1,"k":2}}]. */
        assert_int_equal(read_review(REVIEW("{\"uid\":\"u\",\"allowed\":false,\"allowed\":true,"
                                            "\"patchType\":\"JSONPatch\",\"patch\":"
                                            "\"W3sib3AiOiJhZGQiLCJwYXRoIjoiL2EiLCJ2YWx1ZSI6eyJrIjox"
                                            "LCJrIjoyfX1d\"}"),
                                     true, &answer, why),
                         0);
        assert_true(answer.allowed);
        const struct hf__json *value = hf__json_get(hf__json_first(answer.patch), "value");
        assert_int_equal(hf__json_count(value), 1);
        assert_int_equal(hf__json_check_unique(answer.json, NULL), 0);
        hfd_admission_review_response_done(&answer);
}

static void a_malformed_answer_is_refused_with_its_mistake(void **state) {
        static const struct {
                const char *text, *why;
                bool mutating;
        } cases[] = {
                {"", "failed to call webhook: unexpected end of JSON input"},
                {"[]", "failed to call webhook: couldn't get version/kind; json parse error: "},
                {"{", "failed to call webhook: couldn't get version/kind; json parse error: "},
                {"{}", "received invalid webhook response: webhook response was absent"},
                {REVIEW("null"), "received invalid webhook response: webhook response was absent"},
                {REVIEW("7"), "failed to call webhook: json: cannot unmarshal"},
                {REVIEW("{\"uid\":\"v\",\"allowed\":true}"),
                 "received invalid webhook response: expected response.uid=\"u\", got \"v\""},
                {REVIEW("{\"allowed\":true}"),
                 "received invalid webhook response: expected response.uid=\"u\", got \"\""},
                {"{\"response\":{\"uid\":\"u\"}}",
                 "received invalid webhook response: expected webhook response of "
                 "admission.k8s.io/v1, Kind=AdmissionReview, got /, Kind="},
                {"{\"apiVersion\":\"admission.k8s.io/v1beta1\",\"kind\":\"AdmissionReview\","
                 "\"response\":{\"uid\":\"u\"}}",
                 "received invalid webhook response: expected webhook response of "
                 "admission.k8s.io/v1, Kind=AdmissionReview, got admission.k8s.io/v1beta1, "
                 "Kind=AdmissionReview"},
                {REVIEW("{\"uid\":\"u\",\"allowed\":1}"),
                 "failed to call webhook: json: cannot unmarshal the value of field "
                 "AdmissionReview.response.allowed"},
                {REVIEW("{\"uid\":\"u\",\"warnings\":[1]}"),
                 "failed to call webhook: json: cannot unmarshal the value of field "
                 "AdmissionReview.response.warnings"},
                {REVIEW("{\"uid\":\"u\",\"auditAnnotations\":{\"a\":{}}}"),
                 "failed to call webhook: json: cannot unmarshal the value of field "
                 "AdmissionReview.response.auditAnnotations"},
                {REVIEW("{\"uid\":\"u\",\"patch\":\"e30=\"}"),
                 "received invalid webhook response: validating webhook may not return "
                 "response.patch"},
                {REVIEW("{\"uid\":\"u\",\"patch\":\"e30=\"}"),
                 "received invalid webhook response: webhook returned response.patch but not "
                 "response.patchType",
                 true},
                {REVIEW("{\"uid\":\"u\",\"patchType\":\"JSONPatch\"}"),
                 "received invalid webhook response: webhook returned response.patchType but not "
                 "response.patch",
                 true},
                {REVIEW("{\"uid\":\"u\",\"allowed\":true,\"patch\":\"e30=\",\"patchType\":\"x\"}"),
                 "unsupported patch type \"x\"", true},
                {REVIEW("{\"uid\":\"u\",\"allowed\":true,\"patch\":\"e30=\","
                        "\"patchType\":\"JSONPatch\"}"),
                 "received undecodable patch in webhook response: ", true},
                /* [{"op":"add","path":"/a","value":"?"}], in which ? is the byte 0xff */
                {REVIEW("{\"uid\":\"u\",\"allowed\":true,\"patchType\":\"JSONPatch\",\"patch\":"
                        "\"W3sib3AiOiJhZGQiLCJwYXRoIjoiL2EiLCJ2YWx1ZSI6Iv8ifV0=\"}"),
                 "received undecodable patch in webhook response: ", true},
        };
        struct hfd_admission_review_response answer;
        char why[HFD_ADMISSION_REVIEW_WHY_MAX];

        for (size_t i = 0; i < sizeof cases / sizeof cases[0]; i++) {
                assert_int_equal(read_review(cases[i].text, cases[i].mutating, &answer, why),
                                 HF_E_INVALID);
                if (strncmp(why, cases[i].why, strlen(cases[i].why)) != 0)
                        fail_msg("%s: %s", cases[i].text, why);
        }
}

/* ---- refusals ---- */

static void check_denied(const char *status, int code, const char *message) {
        struct hf__json *json = status ? parse(status, strlen(status)) : NULL;
        struct hfd_response response = {0};

        hfd_refusal_denied(&response, "x.example.com", json);
        assert_int_equal(response.code, code);
        assert_string_equal(response.status.message, message);
        assert_non_null(strstr(response.body->data, "\"status\":\"Failure\""));
        hfd_response_done(&response);
        hf__json_free(json);
}

static void a_refusal_never_looks_like_a_success(void **state) {
        check_denied(NULL, 400,
                     "admission webhook \"x.example.com\" denied the request without explanation");
        check_denied("{\"code\":200,\"status\":\"Success\",\"message\":\"m\"}", 400,
                     "admission webhook \"x.example.com\" denied the request: m");
        check_denied("{\"code\":409,\"reason\":\"Conflict\"}", 409,
                     "admission webhook \"x.example.com\" denied the request: Conflict");
        check_denied("{\"code\":99999}", 400,
                     "admission webhook \"x.example.com\" denied the request without explanation");
}

static uint32_t retry_after_of(const char *details) {
        struct hf__json *json = parse(details, strlen(details));
        struct hfd_response response = {0};

        hfd_refusal_denied(&response, "x.example.com", json);
        uint32_t retry_after_s = response.status.retry_after_s;
        hfd_response_done(&response);
        hf__json_free(json);
        return retry_after_s;
}

/* As in Kubernetes, the number of the details also becomes a header. */
static void a_refusal_says_when_to_try_again(void **state) {
        assert_int_equal(retry_after_of("{\"code\":429,\"details\":{\"retryAfterSeconds\":7}}"), 7);
        assert_int_equal(retry_after_of("{\"code\":429,\"details\":{\"retryAfterSeconds\":-1}}"),
                         0);
        assert_int_equal(retry_after_of("{\"code\":429,\"details\":{}}"), 0);
        assert_int_equal(retry_after_of("{\"code\":429}"), 0);
}

/* The body of a Status has a limit; with a longer reason it had no message at all. */
static void a_long_reason_is_cut(void **state) {
        const size_t n_long = 100000;
        struct hf__json *status = hf__json_object();
        struct hfd_response response = {0};
        char *reason = calloc(1, n_long + 1);

        assert_non_null(reason);
        memset(reason, 'x', n_long);
        assert_int_equal(hf__json_put_string(status, "reason", reason), 0);
        assert_int_equal(hf__json_put_string(status, "message", "not today"), 0);
        hfd_refusal_denied(&response, "x.example.com", status);
        assert_non_null(response.body);
        assert_non_null(strstr(response.body->data, "denied the request: not today\""));
        assert_non_null(strstr(response.body->data, "\"reason\":\"xxx"));
        assert_true(response.body->n < 2000);
        hfd_response_done(&response);
        hf__json_free(status);
        free(reason);
}

/* ---- reinvocation ---- */

static void a_change_makes_earlier_webhooks_due_but_not_its_own(void **state) {
        struct hfd_reinvocation r;

        assert_int_equal(hfd_reinvocation_init(&r, 4), 0);
        hfd_reinvocation_called(&r, 0, true, false);
        hfd_reinvocation_called(&r, 1, false, false); /* Never */
        assert_true(hfd_reinvocation_has_earlier(&r));
        hfd_reinvocation_called(&r, 2, true, true);

        assert_true(hfd_reinvocation_is_due(&r, 0));
        assert_false(hfd_reinvocation_is_due(&r, 1));
        assert_false(hfd_reinvocation_is_due(&r, 2));
        assert_false(hfd_reinvocation_is_due(&r, 3));
        hfd_reinvocation_object_changed(&r); /* another plug-in changed it */
        assert_true(hfd_reinvocation_is_due(&r, 2));
        assert_false(
                hfd_reinvocation_is_due(&r, 3)); /* webhook 3 was not called in the first round */
        assert_false(hfd_reinvocation_has_earlier(&r));
        hfd_reinvocation_done(&r);
}

/* ---- notes ---- */

static void notes_are_bounded_and_without_duplicates(void **state) {
        struct hfd_admission_notes notes = {0}, more = {0};
        char text[200];

        hfd_admission_warn(&notes, "one\ntwo");
        hfd_admission_warn(&notes, "one two");
        hfd_admission_warn(&notes, "one\177two");
        hfd_admission_warn(&notes, "");
        assert_string_equal(notes.warnings.data, "one two\n");
        hfd_admission_annotate(&notes, "k", "first");
        hfd_admission_annotate(&notes, "k", "second");
        assert_int_equal(notes.annotations.n, 8);
        hfd_admission_warn(&more, "one two");
        hfd_admission_warn(&more, "three");
        hfd_admission_annotate(&more, "l", "x");
        hfd_admission_notes_merge(&notes, &more);
        assert_string_equal(notes.warnings.data, "one two\nthree\n");
        assert_int_equal(notes.annotations.n, 12);
        for (int i = 0; i < 1000; i++) {
                (void)snprintf(text, sizeof text, "%0150d", i);
                hfd_admission_warn(&notes, text);
                hfd_admission_annotate(&notes, text, text);
        }
        assert_true(notes.warnings.n <= HFD_ADMISSION_WARNINGS_MAX);
        assert_true(notes.annotations.n <= HFD_ADMISSION_ANNOTATIONS_MAX);
        hfd_admission_notes_done(&notes);
        hfd_admission_notes_done(&more);
        hfd_admission_warn(NULL, "nobody reads it");
}

/* The processor time of 100,000 equal notes beside n_kept others. Other processes on the machine
 * hardly change it. */
static int64_t cost_of_equal_notes(int n_kept) {
        struct hfd_admission_notes notes = {0};
        struct timespec begin, end;
        char text[12];

        for (int i = 0; i < n_kept; i++) {
                (void)snprintf(text, sizeof text, "%x", i);
                hfd_admission_warn(&notes, text);
                hfd_admission_annotate(&notes, text, "");
        }
        size_t n = notes.warnings.n, n_annotations = notes.annotations.n;
        assert_int_equal(clock_gettime(CLOCK_THREAD_CPUTIME_ID, &begin), 0);
        for (int i = 0; i < 100 * 1000; i++) {
                hfd_admission_warn(&notes, text); /* the last one that was kept */
                hfd_admission_annotate(&notes, text, "");
        }
        assert_int_equal(clock_gettime(CLOCK_THREAD_CPUTIME_ID, &end), 0);
        assert_int_equal(notes.warnings.n, n);
        assert_int_equal(notes.annotations.n, n_annotations);
        hfd_admission_notes_done(&notes);
        return (int64_t)(end.tv_sec - begin.tv_sec) * 1000000000 + end.tv_nsec - begin.tv_nsec;
}

/* If each text were compared with all kept ones, it would cost some 200 times as much beside 4,096
 * others as beside 16. */
static void equal_notes_cost_no_more_than_their_length(void **state) {
        int64_t beside_few = cost_of_equal_notes(16), beside_many = cost_of_equal_notes(4096);

        if (beside_many > 20 * beside_few)
                fail_msg("%lld ns beside many, %lld ns beside few", (long long)beside_many,
                         (long long)beside_few);
}

int main(void) {
        const struct CMUnitTest tests[] = {
                cmocka_unit_test(a_review_says_what_is_asked_for),
                cmocka_unit_test(an_answer_is_read),
                cmocka_unit_test(a_value_of_a_patch_may_be_as_deep_as_an_object),
                cmocka_unit_test(of_equal_keys_the_last_counts),
                cmocka_unit_test(a_malformed_answer_is_refused_with_its_mistake),
                cmocka_unit_test(a_refusal_never_looks_like_a_success),
                cmocka_unit_test(a_refusal_says_when_to_try_again),
                cmocka_unit_test(a_long_reason_is_cut),
                cmocka_unit_test(a_change_makes_earlier_webhooks_due_but_not_its_own),
                cmocka_unit_test(notes_are_bounded_and_without_duplicates),
                cmocka_unit_test(equal_notes_cost_no_more_than_their_length),
        };

        return cmocka_run_group_tests(tests, NULL, NULL);
}

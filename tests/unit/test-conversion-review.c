/* SPDX-License-Identifier: Apache-2.0 */
/* ConversionReviews: the requests to a webhook, and which responses are accepted. */
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

#include "base/json.h"
#include "server/resources/custom/custom_table.h"
#include "server/resources/custom/webhook_config.h"
#include "server/resources/forms/conversion.h"
#include "server/resources/forms/conversion_review.h"
#include "server/resources/objects/custom_object.h"

#define VERSION(name, storage, field)                                                              \
        "{\"name\":\"" name "\",\"served\":" storage ",\"storage\":" storage                       \
        ",\"schema\":{\"openAPIV3Schema\":{\"type\":\"object\",\"properties\":{\"" field           \
        "\":{\"type\":\"string\",\"default\":\"d\"}}}}}"
static const char DEFINITION[] =
        "{\"metadata\":{\"name\":\"gates.example.com\",\"uid\":\"1\"},\"spec\":{\"group\":"
        "\"example.com\",\"scope\":\"Namespaced\",\"names\":{\"plural\":\"gates\",\"kind\":"
        "\"Gate\"},\"versions\":[" VERSION("v1", "false", "old") "," VERSION(
                "v2", "true",
                "new") "],"
                       "\"conversion\":{\"strategy\":\"Webhook\",\"webhook\":{"
                       "\"conversionReviewVersions\":[\"v1\"],"
                       "\"clientConfig\":{\"caBundle\":\"UEVN\",\"service\":{\"namespace\":\"ns\","
                       "\"name\":\"s\","
                       "\"path\":\"/"
                       "c\",\"port\":8443}}}}},\"status\":{\"acceptedNames\":{\"plural\":\"gates\","
                       "\"kind\":\"Gate\"}}}";

static struct hfd_custom_table *table;
static struct hfd_custom_kind *kind;
static const struct hfd_resource *v1, *v2;
static struct hfd_object *object;

static struct hfd_object *object_of(const char *stored) {
        struct hf__buf *bytes = hf__buf_copy(stored, strlen(stored));
        struct hfd_object *made = hfd_custom_object_new(v2, "ns/a", 5, bytes);

        hf__buf_unref(bytes);
        assert_non_null(made);
        return made;
}

static int setup(void **state) {
        const struct hfd_resource *slot;
        struct hf__json *definition;

        table = hfd_custom_table_new();
        assert_int_equal(hfd_custom_table_slot(table, "example.com", "gates", &slot), 0);
        assert_int_equal(hf__json_parse(DEFINITION, strlen(DEFINITION), &definition, NULL), 0);
        assert_int_equal(hfd_custom_kind_new(definition, NULL, slot, 1, &kind), 0);
        hf__json_free(definition);
        v1 = &hfd_custom_kind_version(kind, "v1")->row;
        v2 = &hfd_custom_kind_version(kind, "v2")->row;
        object = object_of(
                "{\"kind\":\"Gate\",\"apiVersion\":\"example.com/v1\",\"metadata\":{\"name\":\"a\","
                "\"namespace\":\"ns\",\"uid\":\"u\",\"labels\":{\"a\":\"b\"}},\"old\":\"x\","
                "\"unknown\":1}");
        return 0;
}

static int teardown(void **state) {
        hfd_object_unref(object);
        hfd_custom_kind_unref(kind);
        hfd_custom_table_free(table);
        return 0;
}

/* ---- objects and definitions ---- */

static void test_an_object_keeps_the_version_that_it_has(void **state) {
        struct hfd_object *stored =
                object_of("{\"kind\":\"Gate\",\"apiVersion\":\"example.com/v2\",\"metadata\":{}}");
        struct hfd_object *strange =
                object_of("{\"kind\":\"Gate\",\"apiVersion\":\"example.com/v7\",\"metadata\":{}}");

        /* a version that is not served any more, pruned and with defaults by its own schema */
        assert_ptr_equal(object->resource, v1);
        assert_non_null(strstr(object->bytes->data, "\"old\":\"x\""));
        assert_null(strstr(object->bytes->data, "unknown"));
        assert_ptr_equal(stored->resource, v2);
        assert_non_null(strstr(stored->bytes->data, "\"new\":\"d\""));
        assert_ptr_equal(strange->resource, v2);
        assert_true(hfd_conversion_is_pending(v2, object));
        assert_false(hfd_conversion_is_pending(v1, object));
        assert_false(hfd_conversion_is_pending(v2, stored));
        assert_ptr_equal(hfd_conversion_row(v2, object), v1);
        hfd_object_unref(stored);
        hfd_object_unref(strange);
}

static void test_the_webhook_of_a_definition_is_read(void **state) {
        struct hfd_webhook_config config;

        assert_true(hfd_webhook_config_read(kind, &config));
        assert_null(config.url);
        assert_string_equal(config.service_ns, "ns");
        assert_string_equal(config.service_name, "s");
        assert_string_equal(config.service_path, "/c");
        assert_int_equal(config.service_port, 8443);
        assert_string_equal(config.ca_pem, "PEM");
        assert_true(config.takes_v1);
        free(config.ca_pem);
}

/* ---- the review ---- */

static void test_the_request_has_the_objects(void **state) {
        struct hfd_object *new_object = hfd_object_at(object, 0), *both[] = {object, new_object};
        struct hf__strbuf s = {0};

        hfd_conversion_review_put(&s, "id", v2, both, 2);
        assert_string_equal(s.data,
                            "{\"kind\":\"ConversionReview\",\"apiVersion\":\"apiextensions.k8s.io/"
                            "v1\",\"request\":{"
                            "\"uid\":\"id\",\"desiredAPIVersion\":\"example.com/v2\",\"objects\":["
                            "{\"kind\":\"Gate\",\"apiVersion\":\"example.com/"
                            "v1\",\"metadata\":{\"resourceVersion\":\"5\","
                            "\"name\":\"a\",\"namespace\":\"ns\",\"uid\":\"u\",\"labels\":{\"a\":"
                            "\"b\"}},\"old\":\"x\"},"
                            "{\"kind\":\"Gate\",\"apiVersion\":\"example.com/v1\",\"metadata\":{"
                            "\"name\":\"a\",\"namespace\":\"ns\",\"uid\":\"u\",\"labels\":{\"a\":"
                            "\"b\"}},\"old\":\"x\"}]}}");
        hf__strbuf_done(&s);
        hfd_object_unref(new_object);
}

#define ANSWER(response)                                                                           \
        "{\"kind\":\"ConversionReview\",\"apiVersion\":\"apiextensions.k8s.io/"                    \
        "v1\",\"response\":" response "}"
#define CONVERTED(objects)                                                                         \
        ANSWER("{\"uid\":\"id\",\"result\":{\"status\":\"Success\"},\"convertedObjects\":"         \
               "[" objects "]}")
#define GATE(metadata)                                                                             \
        "{\"kind\":\"Gate\",\"apiVersion\":\"example.com/v2\",\"metadata\":" metadata              \
        ",\"new\":\"y\"}"
#define SAME "\"name\":\"a\",\"namespace\":\"ns\",\"uid\":\"u\""

static void test_the_answer_is_taken(void **state) {
        static const char answer[] =
                CONVERTED(GATE("{" SAME ",\"labels\":{\"c\":\"b\",\"c\":\"d\"},\"annotations\":"
                               "null,\"finalizers\":[\"x/y\"]}"));
        struct hfd_object *converted = NULL;
        struct hf__strbuf why = {0};

        assert_int_equal(hfd_conversion_review_read(answer, strlen(answer), "id", v2, &object, 1,
                                                    &converted, &why),
                         0);
        assert_ptr_equal(converted->resource, v2);
        assert_string_equal(converted->path, "ns/a");
        assert_string_equal(converted->bytes->data,
                            "{\"kind\":\"Gate\",\"apiVersion\":\"example.com/v2\",\"metadata\":{"
                            "\"resourceVersion\":\"5\",\"name\":\"a\",\"namespace\":\"ns\",\"uid\":"
                            "\"u\","
                            "\"labels\":{\"c\":\"d\"}},\"new\":\"y\"}");
        hfd_object_unref(converted);
        hf__strbuf_done(&why);
}

static void test_other_answers_are_refused(void **state) {
        static const struct {
                const char *answer, *why;
        } cases[] = {
                {"", "failed: the response is not JSON, at byte 0"},
                {CONVERTED(GATE("{" SAME ",\"annotations\":{\"a\":\"\xff\"}}")),
                 "failed: the response is not JSON, at byte 0"},
                {"[]", "failed: expected webhook response of apiextensions.k8s.io/v1, "
                       "Kind=ConversionReview, got "
                       "/, Kind="},
                {"{\"kind\":\"ConversionReview\",\"apiVersion\":\"apiextensions.k8s.io/v1beta1\"}",
                 "failed: expected webhook response of apiextensions.k8s.io/v1, "
                 "Kind=ConversionReview, got "
                 "apiextensions.k8s.io/v1beta1, Kind=ConversionReview"},
                {ANSWER("7"), "failed: no response provided"},
                {ANSWER("{\"uid\":\"x\"}"), "failed: expected response.uid=\"id\", got \"x\""},
                {ANSWER("{\"uid\":\"id\"}"),
                 "failed: response.result.status was '', not 'Success'"},
                {ANSWER("{\"uid\":\"id\",\"result\":{\"status\":\"Failure\",\"message\":\"why\"}}"),
                 "failed: why"},
                {ANSWER("{\"uid\":\"id\",\"result\":{\"status\":\"Success\"}}"),
                 "returned 0 objects, expected 1"},
                {ANSWER("{\"uid\":\"id\",\"result\":{\"status\":\"Success\"},\"convertedObjects\":{"
                        "\"a\":1}}"),
                 "returned 0 objects, expected 1"},
                {CONVERTED("1,2"), "returned 2 objects, expected 1"},
                {CONVERTED("1"), "returned invalid converted object at index 0: it is no object"},
                {CONVERTED("{}"),
                 "returned invalid object at index 0: invalid groupVersion (expected "
                 "example.com/v2, received )"},
                {CONVERTED("{\"apiVersion\":\"example.com/v2\"}"),
                 "returned invalid object at index 0: invalid kind (expected Gate, received )"},
                {CONVERTED(GATE("1")), "returned invalid object: must have the same name: a != "},
                {CONVERTED(GATE("{" SAME ",\"labels\":[]}")),
                 "returned invalid metadata: invalid metadata.labels of type []interface {} in "
                 "converted object"},
                {CONVERTED(GATE("{" SAME ",\"annotations\":{\"a\":null}}")),
                 "returned invalid metadata: metadata.annotations[a] must be a string, but is "
                 "<nil> in converted object"},
                {CONVERTED(GATE("{" SAME ",\"labels\":{\"a\":\"a b\"}}")),
                 "returned invalid metadata: metadata.labels: Invalid value: \"a b\": a valid "
                 "label must be"},
        };

        for (size_t i = 0; i < sizeof cases / sizeof cases[0]; i++) {
                struct hfd_object *converted = NULL;
                struct hf__strbuf why = {0};
                assert_int_equal(hfd_conversion_review_read(cases[i].answer,
                                                            strlen(cases[i].answer), "id", v2,
                                                            &object, 1, &converted, &why),
                                 HF_E_INVALID);
                assert_null(converted);
                if (strncmp(why.data, cases[i].why, strlen(cases[i].why)) != 0)
                        fail_msg("%s\nexpected %s", why.data, cases[i].why);
                hf__strbuf_done(&why);
        }
}

/* The first object is good, and is freed with the rest. */
static void test_one_bad_object_refuses_the_answer(void **state) {
        static const char answer[] = CONVERTED(GATE("{" SAME "}") "," GATE("{}"));
        struct hfd_object *both[] = {object, object}, *converted[2] = {0};
        struct hf__strbuf why = {0};

        assert_int_equal(hfd_conversion_review_read(answer, strlen(answer), "id", v2, both, 2,
                                                    converted, &why),
                         HF_E_INVALID);
        assert_null(converted[0]);
        assert_null(converted[1]);
        hf__strbuf_done(&why);
}

/* A webhook cannot make the server allocate much more than the objects take, nor send a longer
 * message than a page. */
static void test_an_answer_has_a_fair_size(void **state) {
        static const char head[] = "{\"kind\":\"ConversionReview\",\"apiVersion\":"
                                   "\"apiextensions.k8s.io/v1\",\"response\":{\"uid\":\"id\","
                                   "\"result\":{\"status\":\"Failure\",\"message\":\"";
        struct hfd_object *converted[1] = {0};
        struct hf__strbuf answer = {0}, why = {0};

        hf__strbuf_puts(&answer, head);
        for (int i = 0; i < 100000; i++)
                hf__strbuf_puts(&answer, "\\\"[,");
        hf__strbuf_puts(&answer, "\"}}}");
        assert_int_equal(hfd_conversion_review_read(answer.data, answer.n, "id", v2, &object, 1,
                                                    converted, &why),
                         HF_E_INVALID);
        assert_non_null(strstr(why.data, "failed: \"[,\"[,"));
        assert_int_equal(why.n, 4096);
        hf__strbuf_reset(&why);
        hf__strbuf_reset(&answer);
        hf__strbuf_puts(&answer, head);
        hf__strbuf_puts(&answer, "\"}},\"more\":[[]");
        for (int i = 0; i < 1000 * 1000; i++)
                hf__strbuf_puts(&answer, ",[]");
        hf__strbuf_puts(&answer, "]}");
        assert_int_equal(hfd_conversion_review_read(answer.data, answer.n, "id", v2, &object, 1,
                                                    converted, &why),
                         HF_E_INVALID);
        assert_string_equal(why.data, "failed: the response has too many values");
        assert_in_range(hfd_conversion_review_max_response(&object, 1), 4 << 20, 5 << 20);
        hf__strbuf_done(&answer);
        hf__strbuf_done(&why);
}

#define TEST(name) cmocka_unit_test_setup_teardown(name, setup, teardown)

int main(void) {
        const struct CMUnitTest tests[] = {
                TEST(test_an_object_keeps_the_version_that_it_has),
                TEST(test_the_webhook_of_a_definition_is_read),
                TEST(test_the_request_has_the_objects),
                TEST(test_the_answer_is_taken),
                TEST(test_other_answers_are_refused),
                TEST(test_one_bad_object_refuses_the_answer),
                TEST(test_an_answer_has_a_fair_size),
        };

        return cmocka_run_group_tests(tests, NULL, NULL);
}

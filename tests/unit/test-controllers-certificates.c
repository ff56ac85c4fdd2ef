/* SPDX-License-Identifier: Apache-2.0 */
/* The decisions of the controllers about certificate requests and the published CA. */
#undef NDEBUG
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <string.h>

#include <cmocka.h>

#include "base/json.h"
#include "base/time_format.h"
#include "server/controllers/certificates/request_core.h"
#include "server/controllers/namespaces/root_ca_core.h"

#define CLIENT "\"signerName\":\"kubernetes.io/kube-apiserver-client\""
#define APPROVED                                                                                   \
        "{\"type\":\"Approved\",\"status\":\"True\",\"lastUpdateTime\":\"1970-01-02T00:00:00Z\"}"
#define DENIED                                                                                     \
        "{\"type\":\"Denied\",\"status\":\"True\",\"lastUpdateTime\":\"1970-01-02T00:00:00Z\"}"
#define FAILED                                                                                     \
        "{\"type\":\"Failed\",\"status\":\"True\",\"lastUpdateTime\":\"1970-01-02T00:00:00Z\"}"
#define ISSUED ",\"certificate\":\"eA==\""
#define DAY    INT64_C(86400)

static struct hf__json *parsed(const char *text) {
        struct hf__json *json = NULL;
        assert_int_equal(hf__json_parse(text, strlen(text), &json, NULL), 0);
        return json;
}

/* A request that was created at 1970-01-01, with these members. */
static struct hf__json *request(const char *spec, const char *conditions, const char *certificate) {
        char text[1024];
        (void)snprintf(text, sizeof text,
                       "{\"metadata\":{\"creationTimestamp\":\"1970-01-01T00:00:00Z\"},\"spec\":{%"
                       "s},"
                       "\"status\":{\"conditions\":[%s]%s}}",
                       spec, conditions, certificate);
        return parsed(text);
}

static void expect_step(const char *spec, const char *conditions, const char *certificate,
                        enum hfd_request_step step, const char *message) {
        struct hf__json *json = request(spec, conditions, certificate);
        char why[HFD_REQUEST_WHY_MAX] = "";

        assert_int_equal(hfd_request_next(json, why), step);
        if (step == HFD_REQUEST_FAIL)
                assert_string_equal(why, message);
        hf__json_free(json);
}

static void test_only_approved_requests_of_clients_are_signed(void **state) {
        static const char auth[] = CLIENT ",\"usages\":[\"client auth\"]";

        (void)state;
        expect_step(auth, APPROVED, "", HFD_REQUEST_SIGN, NULL);
        expect_step(CLIENT
                    ",\"usages\":[\"digital signature\",\"key encipherment\",\"client auth\"]",
                    APPROVED, "", HFD_REQUEST_SIGN, NULL);
        expect_step(auth, "", "", HFD_REQUEST_NOTHING, NULL);
        expect_step(auth, DENIED, "", HFD_REQUEST_NOTHING, NULL);
        expect_step(auth, APPROVED "," DENIED, "", HFD_REQUEST_NOTHING, NULL);
        expect_step(auth, APPROVED "," FAILED, "", HFD_REQUEST_NOTHING, NULL);
        expect_step(auth, APPROVED, ISSUED, HFD_REQUEST_NOTHING, NULL);
        expect_step("\"signerName\":\"example.com/x\",\"usages\":[\"client auth\"]", APPROVED, "",
                    HFD_REQUEST_NOTHING, NULL);
        expect_step(CLIENT ",\"usages\":[\"client auth\",\"cert sign\"]", APPROVED, "",
                    HFD_REQUEST_FAIL, "invalid usage for client certificate: cert sign");
        expect_step(CLIENT ",\"usages\":[]", APPROVED, "", HFD_REQUEST_FAIL,
                    "missing required usage for client certificate: client auth");
        struct hf__json *deleted = parsed(
                "{\"metadata\":{\"deletionTimestamp\":\"t\"},\"spec\":{" CLIENT
                ",\"usages\":[\"client auth\"]},\"status\":{\"conditions\":[" APPROVED "]}}");
        char why[HFD_REQUEST_WHY_MAX];
        assert_int_equal(hfd_request_next(deleted, why), HFD_REQUEST_NOTHING);
        hf__json_free(deleted);
}

static void test_the_requested_time_is_kept_within_bounds(void **state) {
        static const struct {
                const char *spec;
                int64_t seconds;
        } cases[] = {{"", 365 * DAY},
                     {"\"expirationSeconds\":1", 600},
                     {"\"expirationSeconds\":600", 600},
                     {"\"expirationSeconds\":3601", 3601},
                     {"\"expirationSeconds\":31536000", 365 * DAY},
                     {"\"expirationSeconds\":2147483647", 365 * DAY}};

        (void)state;
        for (size_t i = 0; i < sizeof cases / sizeof cases[0]; i++) {
                struct hf__json *json = request(cases[i].spec, "", "");
                assert_int_equal(hfd_request_seconds(json), cases[i].seconds);
                hf__json_free(json);
        }
}

static void test_a_failure_is_a_condition_beside_the_others(void **state) {
        struct hf__json *json = request(CLIENT, APPROVED, "");

        (void)state;
        assert_int_equal(hfd_request_fail(json, "no", "1970-01-02T00:00:00Z"), 0);
        struct hf__json *expected =
                parsed("[" APPROVED ",{\"type\":\"Failed\",\"status\":\"True\",\"reason\":"
                       "\"SignerValidationFailure\",\"message\":\"no\",\"lastUpdateTime\":"
                       "\"1970-01-02T00:00:00Z\"}]");
        assert_true(hf__json_equal(hf__json_path(json, "status.conditions"), expected));
        hf__json_free(expected);
        hf__json_free(json);
}

static void test_requests_are_forgotten_in_time(void **state) {
        /* The conditions are a day younger than the request. */
        static const struct {
                const char *conditions, *certificate;
                int64_t valid_until, forgotten_at; /* -1 = never */
        } cases[] = {{"", "", 0, DAY},
                     {APPROVED, "", 0, 2 * DAY},
                     {APPROVED, ISSUED, 0, DAY + 3600},
                     {APPROVED, ISSUED, 3 * DAY, DAY + 3600},
                     {APPROVED, ISSUED, DAY + 60, DAY + 60},
                     {DENIED, "", 0, DAY + 3600},
                     {APPROVED "," FAILED, "", 0, DAY + 3600},
                     {"{\"type\":\"Other\",\"status\":\"True\"}", "", 0, -1},
                     {"{\"type\":\"Denied\",\"lastUpdateTime\":\"soon\"}", "", 0, -1}};

        (void)state;
        for (size_t i = 0; i < sizeof cases / sizeof cases[0]; i++) {
                struct hf__json *json = request(CLIENT, cases[i].conditions, cases[i].certificate);
                int64_t left = hfd_request_time_left(json, DAY, cases[i].valid_until);
                if (cases[i].forgotten_at < 0)
                        assert_true(left == HFD_REQUEST_KEPT);
                else
                        assert_int_equal(left, cases[i].forgotten_at - DAY);
                hf__json_free(json);
        }
}

static void test_the_published_ca_is_restored(void **state) {
        static const char described[] =
                "\"metadata\":{\"annotations\":{\"kubernetes.io/description\":\"x\"}}";
        static const struct {
                const char *data, *more;
                enum hfd_root_ca_step step;
        } cases[] = {{"\"data\":{\"ca.crt\":\"pem\"}", described, HFD_ROOT_CA_KEEP},
                     {"\"data\":{\"ca.crt\":\"pem\"}", "\"immutable\":false", HFD_ROOT_CA_UPDATE},
                     {"\"data\":{\"ca.crt\":\"pem\",\"x\":\"\"}", described, HFD_ROOT_CA_UPDATE},
                     {"\"data\":{\"ca.crt\":\"old\"}", described, HFD_ROOT_CA_UPDATE},
                     {"\"data\":{}", described, HFD_ROOT_CA_UPDATE},
                     {"\"kind\":\"ConfigMap\"", described, HFD_ROOT_CA_UPDATE},
                     {"\"data\":{\"ca.crt\":\"old\"}", "\"immutable\":true", HFD_ROOT_CA_REPLACE},
                     {"\"data\":{\"ca.crt\":\"pem\"}", "\"immutable\":true", HFD_ROOT_CA_UPDATE}};

        (void)state;
        for (size_t i = 0; i < sizeof cases / sizeof cases[0]; i++) {
                char text[256];
                (void)snprintf(text, sizeof text, "{%s,%s}", cases[i].data, cases[i].more);
                struct hf__json *map = parsed(text);
                assert_int_equal(hfd_root_ca_next(map, "pem"), cases[i].step);
                assert_int_equal(hfd_root_ca_restore(map, "pem"), 0);
                assert_int_equal(hfd_root_ca_next(map, "pem"), HFD_ROOT_CA_KEEP);
                hf__json_free(map);
        }
        struct hf__json *map = NULL;
        assert_int_equal(hfd_root_ca_new("pem", &map), 0);
        assert_int_equal(hfd_root_ca_next(map, "pem"), HFD_ROOT_CA_KEEP);
        assert_string_equal(hf__json_string(map, "metadata.name"), "kube-root-ca.crt");
        hf__json_free(map);
}

int main(void) {
        const struct CMUnitTest tests[] = {
                cmocka_unit_test(test_only_approved_requests_of_clients_are_signed),
                cmocka_unit_test(test_the_requested_time_is_kept_within_bounds),
                cmocka_unit_test(test_a_failure_is_a_condition_beside_the_others),
                cmocka_unit_test(test_requests_are_forgotten_in_time),
                cmocka_unit_test(test_the_published_ca_is_restored),
        };
        return cmocka_run_group_tests(tests, NULL, NULL);
}

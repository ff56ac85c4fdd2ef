/* SPDX-License-Identifier: Apache-2.0 */
/* The APIServices that the server restores, and the condition of all APIServices, as tables. */
#undef NDEBUG
#include <assert.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#include "base/json.h"
#include "base/strbuf.h"
#include "rbac_fixture.h"
#include "server/controllers/api_services/api_service_core.h"

#define N(array) (sizeof(array) / sizeof(array)[0])

static const struct hfd_api_version core = {"", "v1", 18000, 1, false},
                                    leases = {"coordination.k8s.io", "v1", 16500, 15, false};

#define MANAGED "'metadata':{'labels':{'kube-aggregator.kubernetes.io/automanaged':'onstart'}}"
#define LEASES_SPEC                                                                                \
        "'spec':{'group':'coordination.k8s.io','version':'v1','groupPriorityMinimum':16500,"       \
        "'versionPriority':15}"

static void expect_json(const struct hf__json *json, const char *wanted) {
        struct hf__json *expected = rbac_fixture_json(wanted);
        struct hf__strbuf out = {0};

        hf__json_print(json, &out);
        if (!hf__json_equal(json, expected))
                fail_msg("%s instead of %s", out.data, wanted);
        hf__strbuf_done(&out);
        hf__json_free(expected);
}

static void test_an_api_service_is_named_after_version_and_group(void **state) {
        struct hf__json *service = hfd_api_service_make(&core);

        assert_string_equal(hf__json_string(service, "metadata.name"), "v1.");
        expect_json(hf__json_get(service, "spec"),
                    "{'version':'v1','groupPriorityMinimum':18000,'versionPriority':1}");
        hf__json_free(service);
        service = hfd_api_service_make(&leases);
        assert_string_equal(hf__json_string(service, "metadata.name"), "v1.coordination.k8s.io");
        assert_string_equal(hf__json_string(service, "kind"), "APIService");
        hf__json_free(service);
}

static void test_what_the_server_keeps_is_restored(void **state) {
        static const struct {
                const char *stored, *restored; /* restored NULL = unchanged */
        } rows[] = {
                {"{" MANAGED "," LEASES_SPEC "}", NULL},
                {"{" MANAGED "}", "{" MANAGED "," LEASES_SPEC "}"},
                {"{" MANAGED ",'spec':{'service':{'name':'s'}}}", "{" MANAGED "," LEASES_SPEC "}"},
                {"{'spec':{'service':{'name':'s'}}}", NULL}, /* made by a user */
        };

        for (size_t i = 0; i < N(rows); i++) {
                struct hf__json *service = rbac_fixture_json(rows[i].stored);
                bool changed;
                assert_int_equal(hfd_api_service_restore(service, &leases, &changed), 0);
                assert_int_equal(changed, rows[i].restored != NULL);
                expect_json(service, rows[i].restored ? rows[i].restored : rows[i].stored);
                hf__json_free(service);
        }
}

static void test_an_api_service_of_definitions_has_a_low_priority(void **state) {
        static const char *const others[] = {"v1", "v1.", "v1.apps", ".example.com", ""};
        char space[HFD_API_SERVICE_NAME_MAX];
        struct hfd_api_version version;

        for (size_t i = 0; i < N(others); i++)
                assert_false(hfd_api_service_custom_version(others[i], space, &version));
        assert_true(hfd_api_service_custom_version("v1beta1.example.com", space, &version));
        struct hf__json *service = hfd_api_service_make(&version);
        expect_json(hf__json_path(service, "metadata"),
                    "{'name':'v1beta1.example.com',"
                    "'labels':{'kube-aggregator.kubernetes.io/automanaged':'true'}}");
        expect_json(hf__json_get(service, "spec"),
                    "{'group':'example.com','version':'v1beta1','groupPriorityMinimum':1000,"
                    "'versionPriority':100}");
        assert_true(hfd_api_service_is_custom(service));
        hf__json_free(service);
        service = hfd_api_service_make(&leases);
        assert_false(hfd_api_service_is_custom(service));
        hf__json_free(service);
}

#define LOCAL(time)                                                                                \
        "{'type':'Available','lastTransitionTime':'" time "','status':'True','reason':'Local',"    \
        "'message':'Local APIServices are always available'}"
#define MISSING(time)                                                                              \
        "{'type':'Available','lastTransitionTime':'" time "','status':'False',"                    \
        "'reason':'ServiceNotFound','message':'service/s in \\\"n\\\" is not present'}"

static void test_the_condition_says_whether_it_is_available(void **state) {
        static const struct {
                const char *spec, *before, *after; /* after NULL = unchanged */
        } rows[] = {
                {"{}", "[" LOCAL("old") "]", NULL},
                {"{}", "[]", "[" LOCAL("now") "]"},
                {"{}", "[{'type':'Other'}]", "[{'type':'Other'}," LOCAL("now") "]"},
                {"{}", "[" MISSING("old") "]", "[" LOCAL("now") "]"},
                {"{'service':{'name':'s','namespace':'n'}}", "[" LOCAL("old") "]",
                 "[" MISSING("now") "]"},
                {"{'service':{'name':'s','namespace':'n'}}", "[" MISSING("old") "]", NULL},
        };
        char text[900];

        for (size_t i = 0; i < N(rows); i++) {
                (void)snprintf(text, sizeof text, "{'spec':%s,'status':{'conditions':%s}}",
                               rows[i].spec, rows[i].before);
                struct hf__json *service = rbac_fixture_json(text);
                bool changed;
                assert_int_equal(hfd_api_service_set_available(service, "now", &changed), 0);
                assert_int_equal(changed, rows[i].after != NULL);
                expect_json(hf__json_path(service, "status.conditions"),
                            rows[i].after ? rows[i].after : rows[i].before);
                hf__json_free(service);
        }
}

int main(void) {
        const struct CMUnitTest tests[] = {
                cmocka_unit_test(test_an_api_service_is_named_after_version_and_group),
                cmocka_unit_test(test_an_api_service_of_definitions_has_a_low_priority),
                cmocka_unit_test(test_what_the_server_keeps_is_restored),
                cmocka_unit_test(test_the_condition_says_whether_it_is_available),
        };

        return cmocka_run_group_tests(tests, NULL, NULL);
}

/* SPDX-License-Identifier: Apache-2.0 */
/* The rules of workload kinds hold for a spec that is new or changes. A spec that was stored before
 * there were such rules stays as it is, so that the object can lose its finalizers. */
#undef NDEBUG
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <string.h>

#include <cmocka.h>

#include "base/json.h"
#include "server/resources/causes.h"
#include "server/resources/label_selector.h"
#include "server/resources/workloads/workloads.h"

typedef void (*validate)(const struct hf__json *object, const struct hf__json *old,
                         struct hfd_causes *causes);

static struct hf__json *parse(const char *text) {
        struct hf__json *json = NULL;

        assert_int_equal(hf__json_parse(text, strlen(text), &json, NULL), 0);
        return json;
}

static size_t count_causes(validate rules, const struct hf__json *object,
                           const struct hf__json *old) {
        struct hfd_causes causes;

        hfd_causes_init(&causes);
        rules(object, old, &causes);
        return causes.n;
}

static void test_a_spec_that_is_kept_is_not_refused(void **state) {
        static const struct {
                validate rules;
                const char *bad, *other; /* specs */
        } cases[] = {
                {hfd_service_validate, "{\"spec\":{\"type\":\"x\"}}",
                 "{\"spec\":{\"type\":\"y\"}}"},
                {hfd_claim_validate, "{\"spec\":{}}", "{\"spec\":{\"a\":1}}"},
                {hfd_ingress_validate, "{\"spec\":{}}", "{\"spec\":{\"a\":1}}"},
                {hfd_budget_validate, "{\"spec\":{\"minAvailable\":1,\"maxUnavailable\":1}}",
                 "{\"spec\":{\"minAvailable\":2,\"maxUnavailable\":1}}"},
                {hfd_autoscaler_validate, "{\"spec\":{}}", "{\"spec\":{\"a\":1}}"},
                {hfd_replication_controller_validate, "{\"spec\":{}}", "{\"spec\":{\"a\":1}}"},
                {hfd_deployment_validate, "{\"spec\":{}}", "{\"spec\":{\"a\":1}}"},
                {hfd_stateful_set_validate, "{\"spec\":{}}", "{\"spec\":{\"a\":1}}"},
                {hfd_cron_job_validate, "{\"spec\":{}}", "{\"spec\":{\"a\":1}}"},
                {hfd_network_policy_validate, "{\"spec\":{\"policyTypes\":[\"x\"]}}",
                 "{\"spec\":{\"policyTypes\":[\"y\"]}}"},
                {hfd_volume_attachment_validate, "{\"spec\":{}}", "{\"spec\":{\"a\":1}}"},
                {hfd_ingress_class_validate, "{\"spec\":{}}", "{\"spec\":{\"a\":1}}"},
        };

        for (size_t i = 0; i < sizeof cases / sizeof cases[0]; i++) {
                struct hf__json *bad = parse(cases[i].bad), *same = hf__json_dup(bad),
                                *other = parse(cases[i].other);
                assert_int_equal(hf__json_set_string(same, "metadata.labels.a", "b"), 0);
                assert_true(count_causes(cases[i].rules, bad, NULL) > 0);
                assert_int_equal(count_causes(cases[i].rules, same, bad), 0);
                assert_true(count_causes(cases[i].rules, other, bad) > 0);
                hf__json_free(bad);
                hf__json_free(same);
                hf__json_free(other);
        }
}

/* Many labels are found by an index. */
static void test_selectors_select_by_few_and_by_many_labels(void **state) {
        static const unsigned sizes[] = {1, 32, 33, 500};
        static const char *const selectors[] =
                {"{\"matchExpressions\":[{\"key\":\"k0\",\"operator\":\"In\",\"values\":[\"v\"]},"
                 "{\"key\":\"none\",\"operator\":\"DoesNotExist\"}]}",
                 "{\"matchLabels\":{\"none\":\"v\"}}",
                 "{\"matchExpressions\":[{\"key\":\"k0\",\"operator\":\"NotIn\",\"values\":[\"v\"]}"
                 "]}"};
        char key[16];

        for (size_t s = 0; s < sizeof sizes / sizeof sizes[0]; s++) {
                struct hf__json *labels = hf__json_object();
                for (unsigned i = sizes[s]; i-- > 0;) {
                        (void)snprintf(key, sizeof key, "k%u", i);
                        assert_int_equal(hf__json_add_string(labels, key, "v"), 0);
                }
                assert_true(hfd_labels_contain(labels, labels));
                for (size_t i = 0; i < sizeof selectors / sizeof selectors[0]; i++) {
                        struct hf__json *selector = parse(selectors[i]);
                        assert_int_equal(hfd_label_selector_matches(selector, labels), i == 0);
                        hf__json_free(selector);
                }
                assert_int_equal(hf__json_put_string(labels, "k0", "w"), 0);
                struct hf__json *wanted = parse("{\"k0\":\"v\"}");
                assert_false(hfd_labels_contain(labels, wanted));
                hf__json_free(wanted);
                hf__json_free(labels);
        }
}

int main(void) {
        const struct CMUnitTest tests[] = {
                cmocka_unit_test(test_a_spec_that_is_kept_is_not_refused),
                cmocka_unit_test(test_selectors_select_by_few_and_by_many_labels),
        };
        return cmocka_run_group_tests(tests, NULL, NULL);
}

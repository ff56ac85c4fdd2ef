/* SPDX-License-Identifier: Apache-2.0 */
/* What remains in a terminating namespace, its conditions, and when it is finalized. */
#undef NDEBUG
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <string.h>

#include <cmocka.h>

#include "base/json.h"
#include "server/controllers/namespace_report.h"

static struct hf__json *parsed(const char *text) {
        struct hf__json *json = NULL;
        assert_int_equal(hf__json_parse(text, strlen(text), &json, NULL), 0);
        return json;
}

static const struct hf__json *condition(const struct hf__json *ns, const char *type) {
        for (const struct hf__json *m = hf__json_first(hf__json_path(ns, "status.conditions")); m;
             m = hf__json_next(m))
                if (strcmp(hf__json_string(m, "type"), type) == 0)
                        return m;
        fail_msg("no condition %s", type);
        return NULL;
}

static void expect(const struct hf__json *ns, const char *type, const char *status,
                   const char *reason, const char *message, const char *since) {
        const struct hf__json *found = condition(ns, type);
        assert_string_equal(hf__json_string(found, "status"), status);
        assert_string_equal(hf__json_string(found, "reason"), reason);
        assert_string_equal(hf__json_string(found, "message"), message);
        assert_string_equal(hf__json_string(found, "lastTransitionTime"), since);
}

static void test_conditions_say_what_remains_in_the_namespace(void **state) {
        struct hf__json *ns = parsed("{\"metadata\":{\"name\":\"n\"}}"),
                        *held = parsed("{\"metadata\":{\"finalizers\":[\"x/y\",\"z\"]}}");
        struct hfd_namespace_report report = {0};
        bool changed;

        (void)state;
        hfd_namespace_report_remaining(&report, "configmaps", "", 2);
        hfd_namespace_report_remaining(&report, "secrets", "", 0);
        hfd_namespace_report_remaining(&report, "leases", "coordination.k8s.io", 1);
        hfd_namespace_report_finalizers(&report, held);
        hfd_namespace_report_finalizers(&report, held);
        assert_false(hfd_namespace_report_is_clean(&report));
        assert_int_equal(hfd_namespace_report_set_conditions(&report, ns, "t1", &changed), 0);
        assert_true(changed);
        assert_int_equal(hf__json_count(hf__json_path(ns, "status.conditions")), 5);
        expect(ns, "NamespaceContentRemaining", "True", "SomeResourcesRemain",
               "Some resources are remaining: configmaps. has 2 resource instances, "
               "leases.coordination.k8s.io has 1 resource instances",
               "t1");
        expect(ns, "NamespaceFinalizersRemaining", "True", "SomeFinalizersRemain",
               "Some content in the namespace has finalizers remaining: x/y in 2 resource "
               "instances, z in 2 resource instances",
               "t1");
        expect(ns, "NamespaceDeletionContentFailure", "False", "ContentDeleted",
               "All content successfully deleted, may be waiting on finalization", "t1");
        expect(ns, "NamespaceDeletionDiscoveryFailure", "False", "ResourcesDiscovered",
               "All resources successfully discovered", "t1");

        /* The same condition again needs no write. */
        assert_int_equal(hfd_namespace_report_set_conditions(&report, ns, "t2", &changed), 0);
        assert_false(changed);
        hfd_namespace_report_done(&report);

        /* Another message does not change the time; another status does. */
        hfd_namespace_report_remaining(&report, "configmaps", "", 1);
        hfd_namespace_report_failure(&report, "secrets: forbidden");
        assert_int_equal(hfd_namespace_report_set_conditions(&report, ns, "t3", &changed), 0);
        assert_true(changed);
        expect(ns, "NamespaceContentRemaining", "True", "SomeResourcesRemain",
               "Some resources are remaining: configmaps. has 1 resource instances", "t1");
        expect(ns, "NamespaceDeletionContentFailure", "True", "ContentDeletionFailed",
               "Failed to delete all resource types, 1 remaining: secrets: forbidden", "t3");
        expect(ns, "NamespaceFinalizersRemaining", "False", "ContentHasNoFinalizers",
               "All content-preserving finalizers finished", "t3");
        assert_int_equal(hf__json_count(hf__json_path(ns, "status.conditions")), 5);
        hfd_namespace_report_done(&report);
        assert_true(hfd_namespace_report_is_clean(&report));
        hf__json_free(held);
        hf__json_free(ns);
}

static void test_the_list_of_finalizers_is_bounded(void **state) {
        struct hfd_namespace_report report = {0};

        (void)state;
        for (int i = 0; i < 100; i++) {
                char text[100];
                (void)snprintf(text, sizeof text, "{\"metadata\":{\"finalizers\":[\"f%d\"]}}", i);
                struct hf__json *object = parsed(text);
                hfd_namespace_report_finalizers(&report, object);
                hf__json_free(object);
        }
        assert_int_equal(report.n_finalizers, HFD_NAMESPACE_REPORT_FINALIZERS);
        assert_int_equal(report.finalizers[HFD_NAMESPACE_REPORT_FINALIZERS - 1].n,
                         100 - HFD_NAMESPACE_REPORT_FINALIZERS + 1);
        hfd_namespace_report_done(&report);
}

static void test_only_deleted_namespaces_with_the_kubernetes_finalizer_are_finalized(void **state) {
        static const struct {
                const char *text;
                bool wants;
        } cases[] = {
                {"{\"metadata\":{},\"spec\":{\"finalizers\":[\"kubernetes\"]}}", false},
                {"{\"metadata\":{\"deletionTimestamp\":\"t\"},\"spec\":{\"finalizers\":["
                 "\"kubernetes\"]}}",
                 true},
                {"{\"metadata\":{\"deletionTimestamp\":\"t\"},"
                 "\"spec\":{\"finalizers\":[\"other\"]}}",
                 false},
                {"{\"metadata\":{\"deletionTimestamp\":\"t\"}}", false},
        };
        (void)state;
        for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
                struct hf__json *ns = parsed(cases[i].text);
                assert_int_equal(hfd_namespace_report_is_due(ns), cases[i].wants);
                hf__json_free(ns);
        }
}

int main(void) {
        const struct CMUnitTest tests[] = {
                cmocka_unit_test(test_conditions_say_what_remains_in_the_namespace),
                cmocka_unit_test(test_the_list_of_finalizers_is_bounded),
                cmocka_unit_test(
                        test_only_deleted_namespaces_with_the_kubernetes_finalizer_are_finalized),
        };
        return cmocka_run_group_tests(tests, NULL, NULL);
}

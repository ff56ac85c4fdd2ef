/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The cells of pods, jobs, nodes and services in a Table, whose texts kubectl prints and scripts
 * compare: what each shows of a status that says several things at once. Each expected text is that
 * of kube-apiserver.
 */
#undef NDEBUG
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>

#include <cmocka.h>

#include <string.h>

#include "base/json.h"
#include "base/strbuf.h"
#include "base/time_format.h"
#include "server/registry/list/cells/policy_cells.h"
#include "server/registry/list/cells/workload_cells.h"

#define NOW "2026-11-29T12:00:00Z"

/* object: JSON. expected: the cell, as JSON. */
static void expect_cell(const char *object, const char *path, const char *expected) {
        struct hf__strbuf cell = {0};
        struct hf__json *json = NULL;
        int64_t now_s;

        assert_int_equal(hf__time_parse(NOW, &now_s), 0);
        assert_int_equal(hf__json_parse(object, strlen(object), &json, NULL), 0);
        assert_true(hfd_workload_put_cell(&cell, json, path, now_s));
        assert_int_equal(cell.error, 0);
        assert_string_equal(cell.data, expected);
        hf__strbuf_done(&cell);
        hf__json_free(json);
}

#define READY           "\"ready\":true,\"state\":{\"running\":{}}"
#define WAITING(reason) "\"state\":{\"waiting\":{\"reason\":\"" reason "\"}}"
#define ENDED(code, reason)                                                                        \
        "\"state\":{\"terminated\":{\"exitCode\":" #code ",\"reason\":\"" reason "\"}}"
#define RESTARTED(n, time)                                                                         \
        ",\"restartCount\":" #n ",\"lastState\":{\"terminated\":{\"finishedAt\":\"" time "\"}}"

static void test_the_first_container_with_a_reason_gives_the_status(void **state) {
        expect_cell("{\"status\":{\"phase\":\"Running\",\"containerStatuses\":["
                    "{" READY "},{" WAITING("CrashLoopBackOff") "},{" ENDED(0, "Completed") "}]}}",
                    "@pod:status", "\"CrashLoopBackOff\"");
        expect_cell("{\"status\":{\"phase\":\"Running\",\"containerStatuses\":["
                    "{\"state\":{\"terminated\":{\"exitCode\":3}}},{" READY "}]}}",
                    "@pod:status", "\"ExitCode:3\"");
        expect_cell("{\"status\":{\"phase\":\"Running\",\"containerStatuses\":["
                    "{\"state\":{\"terminated\":{\"signal\":9}}},{" ENDED(1, "Error") "}]}}",
                    "@pod:status", "\"Signal:9\"");
}

static void test_a_completed_container_does_not_hide_one_that_runs(void **state) {
        expect_cell("{\"status\":{\"phase\":\"Running\",\"conditions\":["
                    "{\"type\":\"Ready\",\"status\":\"True\"}],\"containerStatuses\":["
                    "{" ENDED(0, "Completed") "},{" READY "}]}}",
                    "@pod:status", "\"Running\"");
        expect_cell("{\"status\":{\"phase\":\"Running\",\"containerStatuses\":["
                    "{" ENDED(0, "Completed") "},{" READY "}]}}",
                    "@pod:status", "\"NotReady\"");
        expect_cell("{\"status\":{\"phase\":\"Running\",\"containerStatuses\":["
                    "{" ENDED(0, "Completed") "},{" WAITING("CrashLoopBackOff") "},{" READY "}]}}",
                    "@pod:status", "\"NotReady\"");
}

static void test_a_deleted_pod_is_terminating_until_it_has_ended(void **state) {
#define DELETED "\"metadata\":{\"deletionTimestamp\":\"" NOW "\"},"
        expect_cell("{" DELETED "\"status\":{\"phase\":\"Running\"}}", "@pod:status",
                    "\"Terminating\"");
        expect_cell("{" DELETED "\"status\":{\"phase\":\"Pending\"}}", "@pod:status",
                    "\"Terminating\"");
        expect_cell("{" DELETED "\"status\":{\"phase\":\"Running\",\"reason\":\"NodeLost\"}}",
                    "@pod:status", "\"Unknown\"");
        expect_cell("{" DELETED "\"status\":{\"phase\":\"Succeeded\",\"containerStatuses\":["
                    "{" ENDED(0, "Completed") "}]}}",
                    "@pod:status", "\"Completed\"");
        expect_cell("{" DELETED "\"status\":{\"phase\":\"Failed\",\"reason\":\"Evicted\"}}",
                    "@pod:status", "\"Evicted\"");
}

static void test_the_first_init_container_that_is_not_done_gives_the_status(void **state) {
#define TWO_INIT                                                                                   \
        "\"spec\":{\"initContainers\":[{\"name\":\"a\"},{\"name\":\"b\"}],"                        \
        "\"containers\":[{\"name\":\"c\"}]},"
        expect_cell("{" TWO_INIT "\"status\":{\"phase\":\"Pending\",\"initContainerStatuses\":["
                    "{\"name\":\"a\"," ENDED(0, "Completed") "},"
                                                             "{\"name\":\"b\"," WAITING(
                                                                     "PodInitializing") "}]}}",
                    "@pod:status", "\"Init:1/2\"");
        expect_cell("{" TWO_INIT "\"status\":{\"phase\":\"Pending\",\"initContainerStatuses\":["
                    "{\"name\":\"a\"," ENDED(1, "Error") "},"
                                                         "{\"name\":\"b\"," WAITING(
                                                                 "ImagePullBackOff") "}]}}",
                    "@pod:status", "\"Init:Error\"");
        expect_cell("{" TWO_INIT "\"status\":{\"phase\":\"Running\",\"conditions\":["
                    "{\"type\":\"Initialized\",\"status\":\"True\"}],\"initContainerStatuses\":["
                    "{\"name\":\"a\"," ENDED(1, "Error") "}],\"containerStatuses\":["
                                                         "{" WAITING("CrashLoopBackOff") "}]}}",
                    "@pod:status", "\"CrashLoopBackOff\"");
}

/* Until the pod is initialized, its containers have not run yet. */
static void test_an_initializing_pod_shows_the_restarts_of_init_containers(void **state) {
        static const char initializing[] =
                "{" TWO_INIT "\"status\":{\"phase\":\"Pending\",\"initContainerStatuses\":["
                "{\"name\":\"a\"," WAITING("CrashLoopBackOff")
                        RESTARTED(3,
                                  "2026-11-29T11:58:00Z") "}],\"containerStatuses\":["
                                                          "{\"name\":\"c\"," WAITING(
                                                                  "PodInitializing") ",\"restartCou"
                                                                                     "nt\":5}]}}";

        expect_cell(initializing, "@pod:status", "\"Init:CrashLoopBackOff\"");
        expect_cell(initializing, "@pod:restarts", "\"3 (2m ago)\"");
        expect_cell(initializing, "@pod:ready", "\"0/1\"");
        expect_cell("{" TWO_INIT "\"status\":{\"phase\":\"Running\",\"initContainerStatuses\":["
                    "{\"name\":\"a\"," ENDED(0, "Completed")
                            RESTARTED(3, "2026-11-29T11:58:00Z") "}],\"containerStatuses\":["
                                                                 "{\"name\":\"c\"," READY
                                                                         RESTARTED(1,
                                                                                   "2026-11-29T11:"
                                                                                   "00:00Z") "}]}}",
                    "@pod:restarts", "\"1 (60m ago)\"");
}

static void test_sidecars_count_as_containers(void **state) {
#define SIDECAR                                                                                    \
        "\"spec\":{\"initContainers\":[{\"name\":\"a\"},"                                          \
        "{\"name\":\"b\",\"restartPolicy\":\"Always\"}],\"containers\":[{\"name\":\"c\"}]},"
        static const char running[] =
                "{" SIDECAR "\"status\":{\"phase\":\"Running\",\"initContainerStatuses\":["
                "{\"name\":\"a\"," ENDED(
                        0,
                        "Completed") ",\"restartCount\":7},"
                                     "{\"name\":\"b\",\"started\":true," READY RESTARTED(
                                             2,
                                             "2026-11-29T11:58:00Z") "}],\"containerStatuses\":["
                                                                     "{\"name\":\"c\"," READY
                                                                             RESTARTED(1,
                                                                                       "2026-11-"
                                                                                       "29T11:00:"
                                                                                       "00Z") "}]}"
                                                                                              "}";

        expect_cell(running, "@pod:status", "\"Running\"");
        expect_cell(running, "@pod:ready", "\"2/2\"");
        expect_cell(running, "@pod:restarts", "\"3 (2m ago)\"");
        /* Not started yet: the pod still initializes. */
        expect_cell("{" SIDECAR "\"status\":{\"phase\":\"Pending\",\"initContainerStatuses\":["
                    "{\"name\":\"a\"," ENDED(0, "Completed") "},"
                                                             "{\"name\":\"b\",\"started\":false,"
                                                             "\"state\":{\"running\":{}}}]}}",
                    "@pod:status", "\"Init:1/2\"");
}

static void test_a_status_that_nobody_would_write_gives_a_text(void **state) {
#define MOST "{\"restartCount\":9223372036854775807}"
        expect_cell("{\"status\":{\"containerStatuses\":[" MOST "," MOST "]}}", "@pod:restarts",
                    "\"9223372036854775807\"");
        expect_cell("{\"status\":{\"initContainerStatuses\":[null,3],\"containerStatuses\":7}}",
                    "@pod:status", "\"Init:0/0\"");
        expect_cell("{}", "@pod:status", "\"\"");
        expect_cell("{}", "@pod:ready", "\"0/0\"");
}

static void test_a_deleted_job_is_terminating_until_it_has_ended(void **state) {
#define IS(type)                "{\"type\":\"" type "\",\"status\":\"True\"}"
#define JOB(conditions)         "{\"status\":{\"conditions\":[" conditions "]}}"
#define DELETED_JOB(conditions) "{" DELETED "\"status\":{\"conditions\":[" conditions "]}}"
        expect_cell(JOB(""), "@job:status", "\"Running\"");
        expect_cell(JOB(IS("Suspended")), "@job:status", "\"Suspended\"");
        expect_cell(JOB(IS("FailureTarget") "," IS("Failed")), "@job:status", "\"Failed\"");
        expect_cell(JOB("{\"type\":\"Complete\",\"status\":\"False\"}"), "@job:status",
                    "\"Running\"");
        expect_cell(DELETED_JOB(""), "@job:status", "\"Terminating\"");
        expect_cell(DELETED_JOB(IS("Suspended")), "@job:status", "\"Terminating\"");
        expect_cell(DELETED_JOB(IS("SuccessCriteriaMet")), "@job:status", "\"Terminating\"");
        expect_cell(DELETED_JOB(IS("Complete")), "@job:status", "\"Complete\"");
}

static void test_roles_of_a_node_are_sorted_and_shown_once(void **state) {
#define NODE(labels) "{\"metadata\":{\"labels\":{" labels "}}}"
        expect_cell(NODE("\"node-role.kubernetes.io/worker\":\"\","
                         "\"node-role.kubernetes.io/control-plane\":\"\""),
                    "@node:roles", "\"control-plane,worker\"");
        expect_cell(NODE("\"kubernetes.io/role\":\"worker\",\"node-role.kubernetes.io/\":\"\","
                         "\"node-role.kubernetes.io/worker\":\"\""),
                    "@node:roles", "\"worker\"");
        expect_cell(NODE("\"kubernetes.io/role\":\"\",\"zone\":\"a\""), "@node:roles",
                    "\"<none>\"");
        /* The store may have a label that is no text. */
        expect_cell(NODE("\"kubernetes.io/role\":3,\"node-role.kubernetes.io/worker\":null"),
                    "@node:roles", "\"worker\"");
        expect_cell("{}", "@node:roles", "\"<none>\"");
}

static void test_addresses_of_a_load_balancer_are_sorted_and_shown_once(void **state) {
        expect_cell("{\"status\":{\"loadBalancer\":{\"ingress\":[{\"ip\":\"10.0.0.2\"},"
                    "{\"hostname\":\"a.example\"},{},{\"ip\":\"10.0.0.1\",\"hostname\":\"b\"},"
                    "{\"ip\":\"10.0.0.2\"}]}}}",
                    "@ingress:address", "\"10.0.0.1,10.0.0.2,a.example\"");
        expect_cell("{}", "@ingress:address", "\"\"");
}

/* As in Kubernetes, whatever order the object has. */
static void test_selectors_are_sorted(void **state) {
        static const char labels[] = "\"matchLabels\":{\"z\":\"1\",\"b\":\"2\"}";
        char object[400];
        struct hf__strbuf cell = {0};
        struct hf__json *json = NULL;

        (void)snprintf(object, sizeof object,
                       "{\"spec\":{\"selector\":{%s,\"matchExpressions\":[{\"key\":\"y\","
                       "\"operator\":\"Exists\"},{\"key\":\"a\",\"operator\":\"In\","
                       "\"values\":[\"d\",\"\",\"c\"]}]}}}",
                       labels);
        expect_cell(object, "@selector:spec.selector", "\"a in (,c,d),b=2,y,z=1\"");
        (void)snprintf(object, sizeof object, "{\"spec\":{\"paramRef\":{\"selector\":{%s}}}}",
                       labels);
        assert_int_equal(hf__json_parse(object, strlen(object), &json, NULL), 0);
        hfd_policy_put_param_ref(&cell, json);
        assert_string_equal(cell.data, "\"&LabelSelector{MatchLabels:map[string]string{b: 2,z: 1,},"
                                       "MatchExpressions:[]LabelSelectorRequirement{},}\"");
        hf__strbuf_done(&cell);
        hf__json_free(json);
}

static void test_endpoints_show_each_address_with_each_port(void **state) {
        expect_cell("{\"subsets\":[{\"addresses\":[{\"ip\":\"10.0.0.1\"},{\"ip\":\"10.0.0.2\"}],"
                    "\"ports\":[{\"port\":53},{\"port\":53},{\"port\":9153}]}]}",
                    "@endpoints", "\"10.0.0.1:53,10.0.0.2:53,10.0.0.1:53 + 3 more...\"");
        expect_cell("{\"subsets\":[{\"addresses\":[{\"ip\":\"10.0.0.1\"}],\"ports\":[{\"port\":1}]}"
                    ","
                    "{\"addresses\":[{\"ip\":\"::1\"}],\"ports\":[{\"port\":80}]},"
                    "{\"addresses\":[{\"ip\":\"::2\"}]}]}",
                    "@endpoints", "\"10.0.0.1:1,[::1]:80,::2\"");
        expect_cell("{\"subsets\":[{\"notReadyAddresses\":[{\"ip\":\"10.0.0.1\"}],"
                    "\"ports\":[{\"port\":1}]}]}",
                    "@endpoints", "\"\"");
        expect_cell("{\"subsets\":[]}", "@endpoints", "\"<none>\"");
        expect_cell("{}", "@endpoints", "\"<none>\"");
}

int main(void) {
        const struct CMUnitTest tests[] = {
                cmocka_unit_test(test_the_first_container_with_a_reason_gives_the_status),
                cmocka_unit_test(test_a_completed_container_does_not_hide_one_that_runs),
                cmocka_unit_test(test_a_deleted_pod_is_terminating_until_it_has_ended),
                cmocka_unit_test(test_the_first_init_container_that_is_not_done_gives_the_status),
                cmocka_unit_test(test_an_initializing_pod_shows_the_restarts_of_init_containers),
                cmocka_unit_test(test_sidecars_count_as_containers),
                cmocka_unit_test(test_a_status_that_nobody_would_write_gives_a_text),
                cmocka_unit_test(test_a_deleted_job_is_terminating_until_it_has_ended),
                cmocka_unit_test(test_roles_of_a_node_are_sorted_and_shown_once),
                cmocka_unit_test(test_addresses_of_a_load_balancer_are_sorted_and_shown_once),
                cmocka_unit_test(test_selectors_are_sorted),
                cmocka_unit_test(test_endpoints_show_each_address_with_each_port),
        };
        return cmocka_run_group_tests(tests, NULL, NULL);
}

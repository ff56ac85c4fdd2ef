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
#include "server/resources/strategies/strategies.h"
#include "server/resources/workloads/workloads.h"
#include "server/resources/zones/zones.h"

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
#define ARMORED(profile)                                                                           \
        "{\"metadata\":{\"annotations\":{\"container.apparmor.security.beta.kubernetes.io/"        \
        "gone\":" profile "}},\"spec\":{}}"
        static const struct {
                validate rules;
                const char *bad, *other; /* specs */
        } cases[] = {
                {hfd_service_validate, "{\"spec\":{\"type\":\"x\"}}",
                 "{\"spec\":{\"type\":\"y\"}}"},
                {hfd_claim_validate, "{\"spec\":{}}", "{\"spec\":{\"accessModes\":[\"a\"]}}"},
                {hfd_ingress_validate, "{\"spec\":{}}", "{\"spec\":{\"ingressClassName\":\"a\"}}"},
                {hfd_budget_validate, "{\"spec\":{\"minAvailable\":1,\"maxUnavailable\":1}}",
                 "{\"spec\":{\"minAvailable\":2,\"maxUnavailable\":1}}"},
                {hfd_autoscaler_validate, "{\"spec\":{}}", "{\"spec\":{\"minReplicas\":2}}"},
                {hfd_replication_controller_validate, "{\"spec\":{}}",
                 "{\"spec\":{\"replicas\":1}}"},
                {hfd_pod_validate, "{\"spec\":{}}", "{\"spec\":{\"hostname\":\"a\"}}"},
                {hfd_pod_validate, ARMORED("\"x\""), ARMORED("\"y\"")},
                {hfd_pod_validate, ARMORED("\"x\""), "{\"spec\":{}}"},
                {hfd_deployment_validate, "{\"spec\":{}}", "{\"spec\":{\"paused\":true}}"},
                {hfd_stateful_set_validate, "{\"spec\":{}}", "{\"spec\":{\"serviceName\":\"a\"}}"},
                {hfd_cron_job_validate, "{\"spec\":{}}", "{\"spec\":{\"suspend\":true}}"},
                {hfd_network_policy_validate, "{\"spec\":{\"policyTypes\":[\"x\"]}}",
                 "{\"spec\":{\"policyTypes\":[\"y\"]}}"},
                {hfd_volume_attachment_validate, "{\"spec\":{}}",
                 "{\"spec\":{\"nodeName\":\"n\"}}"},
                {hfd_ingress_class_validate, "{\"spec\":{}}",
                 "{\"spec\":{\"controller\":\"nginx\"}}"},
                {hfd_pod_template_validate, "{\"template\":{\"spec\":{}}}",
                 "{\"template\":{\"spec\":{\"hostname\":\"a\"}}}"},
                {hfd_controller_revision_validate, "{\"revision\":-1}", "{\"revision\":-2}"},
                {hfd_endpoint_slice_validate, "{\"addressType\":\"X\"}", "{\"addressType\":\"\"}"},
                {hfd_volume_attributes_class_validate, "{\"driverName\":\"-\"}",
                 "{\"driverName\":\"+\"}"},
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

/* A typed client leaves out what is zero. */
static void test_a_zero_that_is_left_out_keeps_the_spec(void **state) {
        static const struct {
                validate rules;
                const char *stored, *sent;
        } cases[] = {
                {hfd_deployment_validate, "{\"spec\":{\"paused\":false}}", "{\"spec\":{}}"},
                {hfd_job_validate,
                 "{\"spec\":{\"template\":{\"spec\":{\"containers\":[{\"tty\":false}]}}}}",
                 "{\"spec\":{\"template\":{\"spec\":{\"containers\":[{}]}}}}"},
                {hfd_claim_validate,
                 "{\"spec\":{\"resources\":{\"requests\":{\"storage\":\"1024\"}}}}",
                 "{\"spec\":{\"resources\":{\"requests\":{\"storage\":\"1Ki\"}}}}"},
                {hfd_pod_template_validate, "{\"template\":{\"spec\":{\"hostPID\":false}}}",
                 "{\"template\":{\"spec\":{}}}"},
        };

        for (size_t i = 0; i < sizeof cases / sizeof cases[0]; i++) {
                struct hf__json *stored = parse(cases[i].stored), *sent = parse(cases[i].sent);
                assert_true(count_causes(cases[i].rules, sent, NULL) > 0);
                assert_int_equal(count_causes(cases[i].rules, sent, stored), 0);
                hf__json_free(stored);
                hf__json_free(sent);
        }
}

/* A workload whose stored template breaks a rule can still be scaled. */
static void test_a_template_that_is_kept_is_not_refused(void **state) {
#define SCALED(replicas)                                                                           \
        "{\"spec\":{\"replicas\":" replicas ",\"parallelism\":" replicas                           \
        ",\"template\":{\"metadata\":{\"labels\":{\"-\":\"a\"}},\"spec\":{}}}}"
        static const validate kinds[] = {hfd_deployment_validate,
                                         hfd_replica_set_validate,
                                         hfd_daemon_set_validate,
                                         hfd_stateful_set_validate,
                                         hfd_job_validate,
                                         hfd_replication_controller_validate};

        for (size_t i = 0; i < sizeof kinds / sizeof kinds[0]; i++) {
                struct hf__json *stored = parse(SCALED("1")), *scaled = parse(SCALED("2"));
                struct hfd_causes causes;

                assert_true(count_causes(kinds[i], scaled, NULL) > 0);
                hfd_causes_init(&causes);
                kinds[i](scaled, stored, &causes);
                for (size_t k = 0; k < causes.n; k++)
                        assert_null(strstr(causes.items[k].field, "spec.template.spec.containers"));
                hf__json_free(stored);
                hf__json_free(scaled);
        }
}

/* ' stands for ". */
static struct hf__json *parse_quoted(const char *text) {
        char quoted[512];
        size_t n = strlen(text);

        assert_true(n < sizeof quoted);
        memcpy(quoted, text, n + 1);
        for (char *c = strchr(quoted, '\''); c; c = strchr(c, '\''))
                *c = '"';
        return parse(quoted);
}

/* The rules hold for a part of an object if the update changes this part. */
static void test_a_part_that_is_kept_is_not_refused(void **state) {
#define SLICE(type, ports, address)                                                                \
        "{'addressType':'" type "','ports':[" ports "],"                                           \
        "'endpoints':[{'addresses':['" address "']}]}"
#define PORT "{'name':'HTTP','protocol':'TCP'}"
#define VOLUME(csi)                                                                                \
        "{'spec':{'accessModes':['ReadWriteOnce'],'capacity':{'storage':'1'},"                     \
        "'persistentVolumeReclaimPolicy':'Retain','volumeMode':'Block','csi':{" csi "}}}"
        static const struct {
                validate rules;
                const char *old, *object;
                size_t n_causes;
        } cases[] = {
                {hfd_controller_revision_validate, "{'revision':1}", "{'revision':2}", 0},
                {hfd_controller_revision_validate, "{'revision':-1,'data':{}}",
                 "{'revision':-2,'data':{}}", 1},
                {hfd_controller_revision_validate, "{'revision':1,'data':{}}", "{'revision':1}", 2},
                {hfd_endpoint_slice_validate, SLICE("IPv4", PORT, "127.0.0.1"),
                 SLICE("IPv4", "", "127.0.0.1"), 0},
                {hfd_endpoint_slice_validate, SLICE("IPv4", PORT, "127.0.0.1"),
                 SLICE("IPv4", PORT, "::2"), 1},
                {hfd_endpoint_slice_validate, SLICE("IPv4", "", "127.0.0.1"),
                 SLICE("IPv4", PORT, "127.0.0.1"), 1},
                {hfd_endpoint_slice_validate, SLICE("IPv4", PORT, "10.0.0.1"),
                 SLICE("IPv6", PORT, "10.0.0.1"), 1},
                {hfd_ingress_class_validate,
                 "{'spec':{'controller':'a','parameters':{'kind':'K'}}}",
                 "{'spec':{'controller':'a','parameters':{'kind':'K','scope':'Cluster'}}}", 0},
                {hfd_ingress_class_validate,
                 "{'spec':{'controller':'a','parameters':{'kind':'K'}}}",
                 "{'spec':{'controller':'a','parameters':{'kind':'L','scope':'Cluster'}}}", 1},
                {hfd_ingress_class_validate,
                 "{'spec':{'controller':'a','parameters':{'kind':'K'}}}",
                 "{'spec':{'controller':'a','parameters':{'kind':'K','scope':'X'}}}", 2},
                {hfd_ingress_class_validate, "{'spec':{'controller':'a'}}",
                 "{'spec':{'controller':'a','parameters':{'kind':'K','scope':'Cluster'}}}", 1},
                {hfd_ingress_class_validate, "{}", "{'spec':{}}", 0},
                {hfd_persistent_volume_validate, VOLUME("'driver':'d','volumeHandle':'h'"),
                 VOLUME("'driver':'d','volumeHandle':'h','controllerExpandSecretRef':{'name':'s','"
                        "namespace':'n'}"),
                 0},
                {hfd_persistent_volume_validate, VOLUME("'driver':'d','volumeHandle':'h'"),
                 VOLUME("'driver':'e','volumeHandle':'h','controllerExpandSecretRef':{'name':'s','"
                        "namespace':'n'}"),
                 1},
                {hfd_persistent_volume_validate,
                 VOLUME("'driver':'d','volumeHandle':'h','controllerExpandSecretRef':{'name':'s','"
                        "namespace':'n'}"),
                 VOLUME("'driver':'d','volumeHandle':'h','controllerExpandSecretRef':{'name':'t','"
                        "namespace':'n'}"),
                 1},
                {hfd_persistent_volume_validate,
                 VOLUME("'driver':'d','volumeHandle':'h','controllerExpandSecretRef':{'name':'s','"
                        "namespace':'n'}"),
                 VOLUME("'driver':'d','volumeHandle':'h'"), 1},
        };

        for (size_t i = 0; i < sizeof cases / sizeof cases[0]; i++) {
                struct hf__json *old = parse_quoted(cases[i].old),
                                *object = parse_quoted(cases[i].object);
                size_t n = count_causes(cases[i].rules, object, old);
                if (n != cases[i].n_causes)
                        fail_msg("%s: %zu causes", cases[i].object, n);
                hf__json_free(old);
                hf__json_free(object);
        }
}

/* A stored schedule with a zone may have one again, and spaces after it. */
static void test_spaces_around_a_schedule_with_a_zone_are_dropped(void **state) {
        static const struct {
                const char *schedule;
                size_t n_causes;
        } cases[] = {{"{'schedule':'TZ=UTC  @daily '}", 0},
                     {"{'schedule':'CRON_TZ=UTC @every 1h\\t'}", 0},
                     {"{'schedule':'TZ=UTC 0 * * * * '}", 0},
                     {"{'schedule':'TZ=UTC @often '}", 1},
                     {"{'schedule':'TZ=UTC '}", 1},
                     {"{'schedule':'@daily '}", 1}};
        struct hf__json *was = parse_quoted("{'schedule':'TZ=UTC @hourly'}");

        for (size_t i = 0; i < sizeof cases / sizeof cases[0]; i++) {
                struct hf__json *spec = parse_quoted(cases[i].schedule);
                struct hfd_causes causes;
                hfd_causes_init(&causes);
                hfd_cron_schedule_validate(spec, was, &causes);
                assert_int_equal(causes.n, cases[i].n_causes);
                hf__json_free(spec);
        }
        hf__json_free(was);
}

static void test_a_job_has_a_zone_that_exists(void **state) {
        static const struct {
                const char *zone;
                size_t n_causes, of_form; /* if the machine knows all zones, and if not */
        } cases[] = {{"{'timeZone':'Europe/Berlin'}", 0, 0},
                     {"{'timeZone':'UTC'}", 0, 0},
                     {"{'timeZone':'US/Eastern'}", 0, 0},
                     {"{'timeZone':'Europe/Berln'}", 1, 0},
                     {"{'timeZone':'Local'}", 1, 1},
                     {"{'timeZone':'local'}", 2, 1},
                     {"{'timeZone':'zone.tab'}", 1, 0},
                     {"{'timeZone':'../etc/passwd'}", 1, 1},
                     {"{'timeZone':''}", 1, 1},
                     {"{'timeZone':'Europe/-'}", 1, 1}};
        bool knows_all = !hfd_zone_may_exist("Europe/Berln");

        for (size_t i = 0; i < sizeof cases / sizeof cases[0]; i++) {
                struct hf__json *spec = parse_quoted(cases[i].zone);
                struct hfd_causes causes;
                hfd_causes_init(&causes);
                hfd_cron_zone_validate(hf__json_get(spec, "timeZone"), &causes);
                assert_int_equal(causes.n, knows_all ? cases[i].n_causes : cases[i].of_form);
                hf__json_free(spec);
        }
}

#define CONTAINER(name, more)                                                                      \
        "[{\"name\":\"" name "\",\"image\":\"i\",\"imagePullPolicy\":\"Always\","                  \
        "\"terminationMessagePolicy\":\"File\"" more "}]"
#define JOB(suspend, status)                                                                       \
        "{\"spec\":{\"selector\":{},\"suspend\":" suspend                                          \
        ",\"template\":{\"spec\":{\"restartPolicy\":\"Never\","                                    \
        "\"dnsPolicy\":\"Default\",\"terminationGracePeriodSeconds\":30,"                          \
        "\"containers\":" CONTAINER("c", "") "}}},\"status\":{" status "}}"
#define STARTED   "\"startTime\":\"2026-01-01T00:00:00Z\""
#define STOPPED   STARTED ",\"conditions\":[{\"type\":\"Suspended\",\"status\":\"True\"}]"
#define RESOURCES ",\"resources\":{\"limits\":{\"cpu\":\"1\"}}"

/* A change of the template of a Job, and how many causes it has. The old object says whether the
 * Job is idle. */
static void test_the_template_of_an_idle_job_gets_its_place(void **state) {
        static const struct {
                const char *old, *path, *value;
                size_t causes;
        } cases[] = {
                {JOB("true", ""), "spec.nodeSelector", "{\"a\":\"b\"}", 0},
                {JOB("true", ""), "spec.tolerations", "[{\"operator\":\"Exists\"}]", 0},
                {JOB("true", ""), "spec.schedulingGates", "[{\"name\":\"a/b\"}]", 0},
                {JOB("true", ""), "spec.affinity", "{\"nodeAffinity\":{}}", 0},
                {JOB("true", ""), "spec.affinity", "{\"podAffinity\":{}}", 1},
                {JOB("true", ""), "metadata.labels", "{\"a\":\"b\"}", 0},
                {JOB("true", ""), "metadata.annotations", "{\"a\":\"b\"}", 0},
                {JOB("true", ""), "spec.containers", CONTAINER("c", RESOURCES), 0},
                {JOB("true", ""), "spec.containers", CONTAINER("d", RESOURCES), 1},
                {JOB("true", ""), "spec.nodeName", "\"n\"", 1},
                {JOB("false", ""), "spec.nodeSelector", "{\"a\":\"b\"}", 1},
                {JOB("false", ""), "spec.containers", CONTAINER("c", RESOURCES), 1},
                {JOB("false", ""), "spec.hostNetwork", "false", 0},
                {JOB("true", STARTED), "spec.nodeSelector", "{\"a\":\"b\"}", 1},
                {JOB("true", STOPPED), "spec.nodeSelector", "{\"a\":\"b\"}", 0},
                {JOB("true", STOPPED ",\"active\":1"), "spec.nodeSelector", "{\"a\":\"b\"}", 1},
        };
        char path[64];

        for (size_t i = 0; i < sizeof cases / sizeof cases[0]; i++) {
                struct hf__json *old = parse(cases[i].old), *job = hf__json_dup(old);
                (void)snprintf(path, sizeof path, "spec.template.%s", cases[i].path);
                assert_int_equal(hf__json_set(job, path, parse(cases[i].value)), 0);
                assert_int_equal(hf__json_set_bool(job, "spec.suspend", false), 0);
                size_t n = count_causes(hfd_job_validate, job, old);
                if (n != cases[i].causes)
                        fail_msg("%s: %s: %zu causes", cases[i].path, cases[i].value, n);
                hf__json_free(old);
                hf__json_free(job);
        }
}

/* It could not be mended, because the rest of the template never changes. */
static void test_a_mistake_in_the_template_of_an_idle_job_may_stay(void **state) {
        struct hf__json *old = parse(JOB("true", "")), *job;

        assert_int_equal(hf__json_set(old, "spec.template.spec.hostAliases",
                                      parse("[{\"ip\":\"a\"}]")),
                         0);
        assert_int_equal(count_causes(hfd_job_validate, old, NULL), 1);
        job = hf__json_dup(old);
        assert_int_equal(hf__json_set_string(job, "spec.template.spec.nodeSelector.a", "b"), 0);
        assert_int_equal(count_causes(hfd_job_validate, job, old), 0);
        assert_int_equal(hf__json_set_string(job, "spec.template.spec.nodeSelector.-", "b"), 0);
        assert_int_equal(count_causes(hfd_job_validate, job, old), 1);
        hf__json_free(old);
        hf__json_free(job);
}

/* What an update must not change may have zeros, and quantities in another form. */
static void test_what_must_not_change_is_compared_by_its_schema(void **state) {
        static const struct {
                validate rules;
                const char *old, *same, *path; /* path: a member that makes it differ */
        } cases[] = {
                {hfd_volume_attachment_validate,
                 "{\"spec\":{\"attacher\":\"a\",\"nodeName\":\"n\",\"source\":{"
                 "\"inlineVolumeSpec\":"
                 "{\"nfs\":{\"path\":\"/\",\"readOnly\":false}}}}}",
                 "{\"spec\":{\"attacher\":\"a\",\"nodeName\":\"n\",\"source\":{"
                 "\"inlineVolumeSpec\":"
                 "{\"nfs\":{\"path\":\"/\"}}}}}",
                 "spec.source.inlineVolumeSpec.nfs.readOnly"},
                {hfd_persistent_volume_validate,
                 "{\"spec\":{\"accessModes\":[\"ReadWriteOnce\"],\"capacity\":{\"storage\":\"1\"},"
                 "\"persistentVolumeReclaimPolicy\":\"Retain\",\"volumeMode\":\"Block\","
                 "\"nfs\":{\"path\":\"/\",\"readOnly\":false}}}",
                 "{\"spec\":{\"accessModes\":[\"ReadWriteOnce\"],\"capacity\":{\"storage\":\"1\"},"
                 "\"persistentVolumeReclaimPolicy\":\"Retain\",\"volumeMode\":\"Block\","
                 "\"nfs\":{\"path\":\"/\"}}}",
                 "spec.nfs.readOnly"},
                {hfd_claim_validate,
                 "{\"spec\":{\"accessModes\":[\"ReadWriteOnce\"],\"resources\":{\"requests\":"
                 "{\"storage\":\"1Gi\"}}}}",
                 "{\"spec\":{\"accessModes\":[\"ReadWriteOnce\"],\"resources\":{\"requests\":"
                 "{\"storage\":\"1073741824\"}},\"volumeName\":\"\"}}",
                 "spec.dataSource"},
        };

        for (size_t i = 0; i < sizeof cases / sizeof cases[0]; i++) {
                struct hf__json *old = parse(cases[i].old), *same = parse(cases[i].same);
                assert_int_equal(count_causes(cases[i].rules, same, old), 0);
                assert_int_equal(hf__json_set_bool(same, cases[i].path, true), 0);
                assert_true(count_causes(cases[i].rules, same, old) > 0);
                hf__json_free(old);
                hf__json_free(same);
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
                cmocka_unit_test(test_a_zero_that_is_left_out_keeps_the_spec),
                cmocka_unit_test(test_a_template_that_is_kept_is_not_refused),
                cmocka_unit_test(test_a_part_that_is_kept_is_not_refused),
                cmocka_unit_test(test_spaces_around_a_schedule_with_a_zone_are_dropped),
                cmocka_unit_test(test_a_job_has_a_zone_that_exists),
                cmocka_unit_test(test_the_template_of_an_idle_job_gets_its_place),
                cmocka_unit_test(test_a_mistake_in_the_template_of_an_idle_job_may_stay),
                cmocka_unit_test(test_what_must_not_change_is_compared_by_its_schema),
                cmocka_unit_test(test_selectors_select_by_few_and_by_many_labels),
        };
        return cmocka_run_group_tests(tests, NULL, NULL);
}

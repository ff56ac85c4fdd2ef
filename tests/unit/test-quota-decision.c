/* SPDX-License-Identifier: Apache-2.0 */
/* Which quotas count a create, what it adds to them, the message of a refusal, and the status that
 * a recount writes. */
#undef NDEBUG
#include <assert.h>
#include <errno.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#include <holdfast/error.h>

#include "base/json.h"
#include "base/strbuf.h"
#include "server/quota/quota.h"

static struct hf__json *parse(const char *text) {
        struct hf__json *json = NULL;

        assert_int_equal(hf__json_parse(text, strlen(text), &json, NULL), 0);
        return json;
}

/* Charges a create of group/plural to a quota q with this spec and status. Puts the message into
 * `why`, and the member `used` of the new status into `used`. */
static char why[1000], used[1000];

#define NOW 1000000

static enum hfd_quota_verdict charge_change(const char *group, const char *plural,
                                            const char *object, const char *before,
                                            const char *spec, const char *status) {
        struct hf__strbuf text = {0}, message = {0}, printed = {0};
        struct hfd_quota_change change;
        enum hfd_quota_verdict verdict;
        struct hf__json *new = parse(object), *old = before ? parse(before) : NULL;
        int r;

        if (!hfd_quota_change_init(&change, group, plural, new, old, HFD_QUOTA_OF_OBJECT, NOW,
                                   &r)) {
                hf__json_free(new);
                hf__json_free(old);
                return HFD_QUOTA_UNCOUNTED;
        }
        assert_int_equal(r, 0);
        hf__strbuf_printf(&text, "{\"metadata\":{\"name\":\"q\"},\"spec\":%s,\"status\":%s}", spec,
                          status);
        struct hf__json *quota = parse(text.data);
        assert_int_equal(hfd_quota_charge(quota, &change, &verdict, &message), 0);
        hf__json_print(hf__json_path(quota, "status.used"), &printed);
        strcpy(why, message.data ? message.data : "");
        strcpy(used, printed.data ? printed.data : "");
        hfd_quota_change_done(&change);
        hf__json_free(quota);
        hf__json_free(new);
        hf__json_free(old);
        hf__strbuf_done(&text);
        hf__strbuf_done(&message);
        hf__strbuf_done(&printed);
        return verdict;
}

static enum hfd_quota_verdict charge(const char *group, const char *plural, const char *spec,
                                     const char *status) {
        return charge_change(group, plural, "{}", NULL, spec, status);
}

#define STATUS(hard, used) "{\"hard\":{" hard "},\"used\":{" used "}}"

static void a_create_within_the_limit_adds_one(void **state) {
        assert_int_equal(charge("", "configmaps", "{\"hard\":{\"configmaps\":\"3\"}}",
                                STATUS("\"configmaps\":\"3\",\"pods\":\"1\"",
                                       "\"configmaps\":\"2\",\"pods\":\"0\"")),
                         HFD_QUOTA_CHARGED);
        assert_string_equal(used, "{\"configmaps\":\"3\",\"pods\":\"0\"}");
        assert_int_equal(charge("", "configmaps", "{}",
                                STATUS("\"count/configmaps\":\"1k\",\"configmaps\":\"1k\"",
                                       "\"count/configmaps\":\"999\",\"configmaps\":\"998\"")),
                         HFD_QUOTA_CHARGED);
        assert_string_equal(used, "{\"count/configmaps\":\"1k\",\"configmaps\":\"999\"}");
        assert_int_equal(charge("example.com", "widgets", "{}",
                                STATUS("\"count/widgets.example.com\":\"1\"",
                                       "\"count/widgets.example.com\":\"0\"")),
                         HFD_QUOTA_CHARGED);
        assert_string_equal(used, "{\"count/widgets.example.com\":\"1\"}");
}

static void a_create_beyond_the_limit_is_told_what_it_exceeds(void **state) {
        assert_int_equal(charge("", "configmaps", "{}",
                                STATUS("\"configmaps\":\"3\"", "\"configmaps\":\"3\"")),
                         HFD_QUOTA_REFUSED);
        assert_string_equal(why, "exceeded quota: q, requested: configmaps=1, used: configmaps=3, "
                                 "limited: configmaps=3");
        assert_string_equal(used, "{\"configmaps\":\"3\"}");
        /* Both names, sorted; then only the one that is exceeded. */
        (void)charge("", "secrets", "{}",
                     STATUS("\"secrets\":\"1\",\"count/secrets\":\"0\"",
                            "\"secrets\":\"4\",\"count/secrets\":\"4\""));
        assert_string_equal(why, "exceeded quota: q, requested: count/secrets=1,secrets=1, used: "
                                 "count/secrets=4,secrets=4, limited: count/secrets=0,secrets=1");
        (void)charge("", "secrets", "{}",
                     STATUS("\"secrets\":\"1k\",\"count/secrets\":\"0\"",
                            "\"secrets\":\"4\",\"count/secrets\":\"4\""));
        assert_string_equal(why, "exceeded quota: q, requested: count/secrets=1, used: "
                                 "count/secrets=4, limited: count/secrets=0");
}

static void a_quota_without_a_known_use_refuses(void **state) {
        assert_int_equal(charge("", "configmaps", "{}", STATUS("\"configmaps\":\"3\"", "")),
                         HFD_QUOTA_REFUSED);
        assert_string_equal(why, "status unknown for quota: q, resources: configmaps");
        (void)charge("", "configmaps", "{}",
                     STATUS("\"count/configmaps\":\"3\",\"configmaps\":\"3\"",
                            "\"configmaps\":\"1\""));
        assert_string_equal(why,
                            "status unknown for quota: q, resources: configmaps,count/configmaps");
}

static void other_kinds_and_scopes_are_not_counted(void **state) {
        static const char status[] = STATUS("\"configmaps\":\"0\"", "\"configmaps\":\"0\"");
        struct hfd_quota_names names;

        assert_int_equal(charge("", "secrets", "{}", status), HFD_QUOTA_UNCOUNTED);
        assert_int_equal(charge("example.com", "configmaps", "{}", status), HFD_QUOTA_UNCOUNTED);
        assert_int_equal(charge("", "configmaps", "{\"scopes\":[\"Terminating\"]}", status),
                         HFD_QUOTA_UNCOUNTED);
        assert_int_equal(charge("", "configmaps", "{\"scopeSelector\":{\"matchExpressions\":[{}]}}",
                                status),
                         HFD_QUOTA_UNCOUNTED);
        assert_int_equal(charge("", "serviceaccounts", "{}",
                                STATUS("\"serviceaccounts\":\"0\"", "\"serviceaccounts\":\"0\"")),
                         HFD_QUOTA_UNCOUNTED);
        assert_false(hfd_quota_names("", "events", &names));
        assert_false(hfd_quota_names("events.k8s.io", "events", &names));
}

static void a_quota_that_was_never_counted_is_pending(void **state) {
        assert_int_equal(charge("", "configmaps", "{\"hard\":{\"configmaps\":\"3\"}}", "{}"),
                         HFD_QUOTA_PENDING);
        assert_int_equal(charge("", "configmaps", "{\"hard\":{\"count/configmaps\":\"3\"}}",
                                STATUS("\"secrets\":\"3\"", "\"secrets\":\"3\"")),
                         HFD_QUOTA_PENDING);
        assert_int_equal(charge("", "secrets", "{\"hard\":{\"configmaps\":\"3\"}}", "{}"),
                         HFD_QUOTA_UNCOUNTED);
}

/* ---- recounts ---- */

static int count(void *ctx, const char *group, const char *plural, uint64_t *ret_n,
                 bool *ret_served) {
        int *error = ctx;

        *ret_served = strcmp(plural, "configmaps") == 0 ||
                      (strcmp(plural, "leases") == 0 && strcmp(group, "coordination.k8s.io") == 0);
        *ret_n = *ret_served ? 1000 + strlen(group) : 0;
        return *error;
}

/* The pods, claims and services of the namespace. */
static const char *const *objects;

static int visit(void *ctx, const char *plural, hfd_quota_each_fn each, void *each_ctx,
                 bool *ret_served) {
        int r = *(int *)ctx;

        *ret_served = objects != NULL;
        for (size_t i = 0; objects && objects[i] && r == 0; i++) {
                struct hf__json *object = parse(objects[i]);
                if (hf__json_has_text(object, "kind", plural))
                        r = each(each_ctx, object);
                hf__json_free(object);
        }
        return r;
}

static bool recount(const char *quota_text, char status[1000]) {
        struct hf__json *quota = parse(quota_text);
        struct hf__strbuf printed = {0};
        bool changed;
        int error = 0;

        const struct hfd_quota_source source = {count, visit, &error, NOW};
        assert_int_equal(hfd_quota_recount(quota, &source, &changed), 0);
        hf__json_print(hf__json_get(quota, "status"), &printed);
        strcpy(status, printed.data ? printed.data : "");
        hf__strbuf_done(&printed);
        hf__json_free(quota);
        return changed;
}

static void a_recount_writes_what_there_is(void **state) {
        char status[1000], again[1000];
        struct hf__strbuf text = {0};

        assert_true(recount("{\"spec\":{\"hard\":{\"configmaps\":\"5\",\"cpu\":\"4\",\"pods\":"
                            "\"2\",\"count/"
                            "leases.coordination.k8s.io\":\"7\",\"count/x.y\":\"1\",\"count/"
                            "events\":\"1\"}},"
                            "\"status\":{\"hard\":{\"secrets\":\"1\"},\"used\":{\"secrets\":"
                            "\"1\"}}}",
                            status));
        assert_string_equal(status, "{\"hard\":{\"configmaps\":\"5\",\"cpu\":\"4\",\"pods\":\"2\","
                                    "\"count/leases.coordination.k8s.io\":\"7\",\"count/x.y\":"
                                    "\"1\",\"count/events\":\"1\"},"
                                    "\"used\":{\"configmaps\":\"1k\",\"cpu\":\"0\",\"pods\":\"0\","
                                    "\"count/leases.coordination.k8s.io\":\"1019\"}}");
        hf__strbuf_printf(&text,
                          "{\"spec\":{\"hard\":{\"count/events\":\"1\",\"cpu\":\"4\","
                          "\"configmaps\":\"5\",\"pods\":\"2\",\"count/x.y\":\"1\",\"count/"
                          "leases.coordination.k8s.io\":\"7\"}},\"status\":%s}",
                          status);
        assert_false(recount(text.data, again)); /* nothing has changed */
        assert_string_equal(again, status);
        hf__strbuf_done(&text);
        assert_true(recount("{\"spec\":{\"hard\":{\"pods\":\"5\"},\"scopes\":[\"BestEffort\"]}}",
                            status));
        assert_string_equal(status, "{\"hard\":{\"pods\":\"5\"},\"used\":{\"pods\":\"0\"}}");
        assert_true(recount("{\"spec\":{}}", status));
        assert_string_equal(status, "{\"used\":{}}");
}

static void a_count_that_fails_ends_the_recount(void **state) {
        struct hf__json *quota = parse("{\"spec\":{\"hard\":{\"configmaps\":\"5\"}}}");
        int error = HF_E_UNAVAILABLE;
        bool changed;

        const struct hfd_quota_source source = {count, visit, &error, NOW};
        assert_int_equal(hfd_quota_recount(quota, &source, &changed), HF_E_UNAVAILABLE);
        hf__json_free(quota);
}

/* ---- pods, claims and services ---- */

#define CONTAINER(name, requests, limits)                                                          \
        "{\"name\":\"" name "\",\"resources\":{\"requests\":{" requests "},\"limits\":{" limits    \
        "}}}"
#define SIDECAR(requests)                                                                          \
        "{\"name\":\"s\",\"restartPolicy\":\"Always\",\"resources\":{\"requests\":{" requests "}}" \
        "}"
#define REQUESTED              "\"cpu\":\"500m\",\"memory\":\"64Mi\""
#define PLAIN                  CONTAINER("c", REQUESTED, "\"cpu\":\"1\"")
#define POD(rest)              "{\"kind\":\"pods\"," rest "}"
#define SPEC(containers, rest) "\"spec\":{\"containers\":[" containers "]" rest "}"

/* What one object uses of a resource, as a recount writes it. spec: the rest of the quota's spec.
 */
static void assert_uses(const char *object, const char *spec, const char *resource,
                        const char *expected) {
        const char *const all[] = {object, NULL};
        struct hf__strbuf text = {0}, wanted = {0};
        char status[1000];

        objects = all;
        hf__strbuf_printf(&text, "{\"spec\":{\"hard\":{\"%s\":\"1\"}%s}}", resource, spec);
        (void)recount(text.data, status);
        hf__strbuf_printf(&wanted, "{\"hard\":{\"%s\":\"1\"},\"used\":{\"%s\":\"%s\"}}", resource,
                          resource, expected);
        assert_string_equal(status, wanted.data);
        hf__strbuf_done(&text);
        hf__strbuf_done(&wanted);
        objects = NULL;
}

static void a_pod_uses_what_its_containers_ask_for(void **state) {
        static const char
                two[] = POD(SPEC(PLAIN "," PLAIN, "")),
                init[] = POD(
                        SPEC(PLAIN, ",\"initContainers\":[" SIDECAR("\"cpu\":\"1\"") "," CONTAINER(
                                            "i", "\"cpu\":\"2\",\"memory\":\"1Mi\"",
                                            "") "],\"overhead\":{\"cpu\":\"250m\"}")),
                own[] = POD(SPEC(PLAIN, ",\"resources\":{\"requests\":{\"cpu\":\"3\"}}")),
                special[] = POD(
                        SPEC(CONTAINER("c", "\"example.com/gpu\":\"2\",\"hugepages-2Mi\":\"4Mi\"",
                                       ""),
                             ""));
        static const struct {
                const char *pod, *resource, *expected;
        } cases[] = {
                {two, "pods", "1"},
                {two, "cpu", "1"},
                {two, "requests.cpu", "1"},
                {two, "memory", "128Mi"},
                {two, "limits.cpu", "2"},
                {two, "limits.memory", "0"},
                {two, "requests.example.com/gpu", "0"},
                /* The sidecar beside the second init container, and the overhead: 1 + 2 + 0.25. */
                {init, "cpu", "3250m"},
                {init, "requests.memory", "64Mi"},
                {own, "cpu", "3"},
                {own, "memory", "64Mi"},
                {special, "requests.example.com/gpu", "2"},
                {special, "hugepages-2Mi", "4Mi"},
                {special, "requests.hugepages-2Mi", "4Mi"},
        };

        for (size_t i = 0; i < sizeof cases / sizeof cases[0]; i++)
                assert_uses(cases[i].pod, "", cases[i].resource, cases[i].expected);
}

static void a_pod_that_has_ended_uses_nothing(void **state) {
        static const char failed[] = POD(SPEC(PLAIN, "") ",\"status\":{\"phase\":\"Failed\"}"),
                          overdue[] =
                                  POD(SPEC(PLAIN,
                                           "") ",\"metadata\":{\"deletionTimestamp\":\"1970-01-"
                                               "01T00:00:30Z\",\"deletionGracePeriodSeconds\":30}"),
                          running[] = POD(SPEC(PLAIN, "") ",\"status\":{\"phase\":\"Running\"}");

        assert_uses(failed, "", "pods", "0");
        assert_uses(failed, "", "cpu", "0");
        assert_uses(overdue, "", "pods", "0");
        assert_uses(running, "", "pods", "1");
        assert_uses(failed, ",\"scopes\":[\"NotBestEffort\"]", "count/pods", "1");
}

#define MATCHES(scope, op, values)                                                                 \
        ",\"scopeSelector\":{\"matchExpressions\":[{\"scopeName\":\"" scope                        \
        "\",\"operator\":\"" op "\",\"values\":[" values "]}]}"
#define SCOPE(name) ",\"scopes\":[\"" name "\"]"

static void scopes_select_pods_and_claims(void **state) {
        static const char best[] =
                POD(SPEC(CONTAINER("c", "\"cpu\":\"0\"", ""), ",\"activeDeadlineSeconds\":5")),
                          high[] = POD(SPEC(PLAIN, ",\"priorityClassName\":\"high\"")),
                          cross[] =
                                  POD(SPEC(PLAIN,
                                           ",\"affinity\":{\"podAntiAffinity\":{"
                                           "\"preferredDuringSchedulingIgnoredDuringExecution\":[{"
                                           "\"podAffinityTerm\":{\"namespaceSelector\":{}}}]}}"));
        static const struct {
                const char *pod, *scope, *expected;
        } cases[] = {
                {best, SCOPE("Terminating"), "1"},
                {best, SCOPE("NotTerminating"), "0"},
                {best, SCOPE("BestEffort"), "1"},
                {best, SCOPE("NotBestEffort"), "0"},
                {high, SCOPE("Terminating"), "0"},
                {high, SCOPE("NotTerminating"), "1"},
                {high, SCOPE("BestEffort"), "0"},
                {high, SCOPE("NotBestEffort"), "1"},
                {high, SCOPE("PriorityClass"), "1"},
                {best, SCOPE("PriorityClass"), "0"},
                {high, MATCHES("PriorityClass", "In", "\"low\",\"high\""), "1"},
                {high, MATCHES("PriorityClass", "In", "\"low\""), "0"},
                {best, MATCHES("PriorityClass", "In", "\"low\""), "0"},
                {high, MATCHES("PriorityClass", "NotIn", "\"low\""), "1"},
                {high, MATCHES("PriorityClass", "NotIn", "\"high\""), "0"},
                {best, MATCHES("PriorityClass", "NotIn", "\"high\""), "1"},
                {best, MATCHES("PriorityClass", "DoesNotExist", ""), "1"},
                {high, MATCHES("PriorityClass", "DoesNotExist", ""), "0"},
                {high, MATCHES("NotTerminating", "Exists", ""), "1"},
                {cross, SCOPE("CrossNamespacePodAffinity"), "1"},
                {high, SCOPE("CrossNamespacePodAffinity"), "0"},
                {high, SCOPE("VolumeAttributesClass"), "0"},
        };
        static const char claim[] = "{\"kind\":\"persistentvolumeclaims\",\"spec\":{"
                                    "\"volumeAttributesClassName\":\"gold\"}}";

        for (size_t i = 0; i < sizeof cases / sizeof cases[0]; i++)
                assert_uses(cases[i].pod, cases[i].scope, "pods", cases[i].expected);
        assert_uses(claim, MATCHES("VolumeAttributesClass", "In", "\"gold\""),
                    "persistentvolumeclaims", "1");
        assert_uses(claim, MATCHES("VolumeAttributesClass", "NotIn", "\"gold\""),
                    "persistentvolumeclaims", "0");
        assert_uses(claim, SCOPE("Terminating"), "persistentvolumeclaims", "0");
}

#define CLAIM(size)                                                                                \
        "{\"kind\":\"persistentvolumeclaims\",\"spec\":{\"storageClassName\":\"gold\","            \
        "\"resources\":{"                                                                          \
        "\"requests\":{\"storage\":\"" size "\"}}}}"
#define GOLD "gold.storageclass.storage.k8s.io/"
#define SERVICE(type, rest)                                                                        \
        "{\"kind\":\"services\",\"spec\":{\"type\":\"" type                                        \
        "\",\"ports\":[{\"port\":1},{\"port\":2,\"nodePort\":30000}]" rest "}}"

static void claims_and_services_use_what_they_name(void **state) {
        assert_uses(CLAIM("2Gi"), "", "requests.storage", "2Gi");
        assert_uses(CLAIM("2Gi"), "", GOLD "requests.storage", "2Gi");
        assert_uses(CLAIM("2Gi"), "", GOLD "persistentvolumeclaims", "1");
        assert_uses(CLAIM("2Gi"), "", "iron.storageclass.storage.k8s.io/requests.storage", "0");
        assert_uses(CLAIM("1500m"), "", "requests.storage", "2");
        assert_uses(SERVICE("ClusterIP", ""), "", "services.nodeports", "0");
        assert_uses(SERVICE("NodePort", ""), "", "services.nodeports", "2");
        assert_uses(SERVICE("LoadBalancer", ""), "", "services.loadbalancers", "1");
        assert_uses(SERVICE("LoadBalancer", ""), "", "services.nodeports", "2");
        assert_uses(SERVICE("LoadBalancer", ",\"allocateLoadBalancerNodePorts\":false"), "",
                    "services.nodeports", "1");
}

static void a_pod_beyond_a_limit_is_told_what_it_exceeds(void **state) {
        static const char status[] = STATUS("\"limits.cpu\":\"2\",\"cpu\":\"1\",\"pods\":\"9\"",
                                            "\"limits.cpu\":\"0\",\"cpu\":\"600m\",\"pods\":\"1\"");

        assert_int_equal(charge_change("", "pods", POD(SPEC(PLAIN, "")), NULL, "{}", status),
                         HFD_QUOTA_REFUSED);
        assert_string_equal(why, "exceeded quota: q, requested: cpu=500m, used: cpu=600m, limited: "
                                 "cpu=1");
        assert_int_equal(charge_change("", "pods",
                                       POD(SPEC(CONTAINER("b", "", "") "," CONTAINER("a", "", ""),
                                                "")),
                                       NULL, "{}", status),
                         HFD_QUOTA_REFUSED);
        assert_string_equal(why, "failed quota: q: must specify cpu for: a,b; limits.cpu for: a,b");
        assert_int_equal(charge_change("", "pods",
                                       POD(SPEC(CONTAINER("c", "\"cpu\":\"100m\"",
                                                          "\"cpu\":\"200m\""),
                                                "")),
                                       NULL, "{}", status),
                         HFD_QUOTA_CHARGED);
        assert_string_equal(used, "{\"limits.cpu\":\"200m\",\"cpu\":\"700m\",\"pods\":\"2\"}");
        assert_int_equal(charge_change("", "pods",
                                       POD(SPEC(CONTAINER("c", "\"cpu\":\"-1\"", "\"cpu\":\"1\""),
                                                "")),
                                       NULL, "{}", status),
                         HFD_QUOTA_REFUSED);
        assert_string_equal(why, "quota usage is negative for resource(s): cpu");
        /* A claim counts under its own class only. */
        assert_int_equal(
                charge_change("", "persistentvolumeclaims",
                              "{\"spec\":{\"storageClassName\":\"silver\",\"resources\":{"
                              "\"requests\":{\"storage\":\"-1Gi\"}}}}",
                              NULL, "{}",
                              STATUS("\"gold.storageclass.storage.k8s.io/requests.storage\":"
                                     "\"9\"",
                                     "\"gold.storageclass.storage.k8s.io/requests.storage\":"
                                     "\"0\"")),
                HFD_QUOTA_UNCOUNTED);
}

static void an_update_is_charged_for_what_it_adds(void **state) {
        static const char storage[] =
                STATUS("\"requests.storage\":\"5Gi\",\"persistentvolumeclaims\":\"1\"",
                       "\"requests.storage\":\"3Gi\",\"persistentvolumeclaims\":\"1\"");
        static const char ports[] = STATUS("\"services.nodeports\":\"2\",\"services\":\"1\"",
                                           "\"services.nodeports\":\"0\",\"services\":\"1\"");
        static const char ending[] = POD(SPEC(PLAIN, ",\"activeDeadlineSeconds\":5"));

        assert_int_equal(charge_change("", "persistentvolumeclaims", CLAIM("4Gi"), CLAIM("3Gi"),
                                       "{}", storage),
                         HFD_QUOTA_CHARGED);
        assert_string_equal(used,
                            "{\"requests.storage\":\"4Gi\",\"persistentvolumeclaims\":\"1\"}");
        assert_int_equal(charge_change("", "persistentvolumeclaims", CLAIM("6Gi"), CLAIM("3Gi"),
                                       "{}", storage),
                         HFD_QUOTA_REFUSED);
        assert_string_equal(why, "exceeded quota: q, requested: requests.storage=3Gi, used: "
                                 "requests.storage=3Gi, limited: requests.storage=5Gi");
        assert_int_equal(charge_change("", "persistentvolumeclaims", CLAIM("1Gi"), CLAIM("3Gi"),
                                       "{}", storage),
                         HFD_QUOTA_UNCOUNTED);
        assert_int_equal(charge_change("", "services", SERVICE("NodePort", ""),
                                       SERVICE("ClusterIP", ""), "{}", ports),
                         HFD_QUOTA_CHARGED);
        assert_string_equal(used, "{\"services.nodeports\":\"2\",\"services\":\"1\"}");
        /* A pod that comes into the scope of a quota is charged as a whole. */
        assert_int_equal(charge_change("", "pods", ending, POD(SPEC(PLAIN, "")),
                                       "{\"scopes\":[\"Terminating\"]}",
                                       STATUS("\"pods\":\"1\"", "\"pods\":\"0\"")),
                         HFD_QUOTA_CHARGED);
        assert_int_equal(charge_change("", "pods", ending, ending, "{}",
                                       STATUS("\"pods\":\"0\"", "\"pods\":\"9\"")),
                         HFD_QUOTA_UNCOUNTED);
        assert_int_equal(charge_change("", "configmaps", "{}", "{}", "{}",
                                       STATUS("\"configmaps\":\"0\"", "\"configmaps\":\"9\"")),
                         HFD_QUOTA_UNCOUNTED);
}

int main(void) {
        const struct CMUnitTest tests[] = {
                cmocka_unit_test(a_create_within_the_limit_adds_one),
                cmocka_unit_test(a_create_beyond_the_limit_is_told_what_it_exceeds),
                cmocka_unit_test(a_quota_without_a_known_use_refuses),
                cmocka_unit_test(other_kinds_and_scopes_are_not_counted),
                cmocka_unit_test(a_quota_that_was_never_counted_is_pending),
                cmocka_unit_test(a_recount_writes_what_there_is),
                cmocka_unit_test(a_count_that_fails_ends_the_recount),
                cmocka_unit_test(a_pod_uses_what_its_containers_ask_for),
                cmocka_unit_test(a_pod_that_has_ended_uses_nothing),
                cmocka_unit_test(scopes_select_pods_and_claims),
                cmocka_unit_test(claims_and_services_use_what_they_name),
                cmocka_unit_test(a_pod_beyond_a_limit_is_told_what_it_exceeds),
                cmocka_unit_test(an_update_is_charged_for_what_it_adds),
        };

        return cmocka_run_group_tests(tests, NULL, NULL);
}

/* SPDX-License-Identifier: Apache-2.0 */
/* The rules of single kinds: each case is a write, and all causes with which it is refused. */
#undef NDEBUG
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>

#include <cmocka.h>

#include "base/json.h"
#include "custom_schema_fixture.h"
#include "server/resources/causes.h"
#include "server/resources/strategies/strategies.h"
#include "server/resources/validation/names.h"
#include "server/resources/workloads/workloads.h"

struct write {
        const char *old, *object; /* ' stands for "; old NULL = a create */
        const char *lines;        /* the causes; "" = it is accepted */
};

#define N(array) (sizeof(array) / sizeof(array)[0])

static void try_writes(void (*rules)(const struct hf__json *object, const struct hf__json *old,
                                     struct hfd_causes *causes),
                       const struct write *writes, size_t n) {
        for (size_t i = 0; i < n; i++) {
                struct hf__json *old = json_of(writes[i].old), *object = json_of(writes[i].object);
                struct hfd_causes causes;
                hfd_causes_init(&causes);
                rules(object, old, &causes);
                assert_int_equal(causes.error, 0);
                expect_causes(&causes, writes[i].lines);
                hf__json_free(old);
                hf__json_free(object);
        }
}

/* ---- Events ---- */

#define EVENT(more)                                                                                \
        "{'metadata':{'namespace':'default'},'regarding':{'namespace':'default'}" more "}"

static void test_an_event_of_a_typed_client_is_the_same(void **state) {
        static const struct write writes[] = {
                {EVENT(""), EVENT(",'deprecatedSource':{}"), ""},
                {EVENT(",'deprecatedSource':{'host':''},'type':''"), EVENT(""), ""},
                {EVENT(""), EVENT(",'deprecatedCount':0"), ""},
                {EVENT(",'deprecatedCount':0"), EVENT(""), ""},
                {EVENT(",'series':{'count':0}"), EVENT(",'series':{}"), ""},
                {EVENT(""), EVENT(",'deprecatedSource':{'host':'h'}"),
                 "source: Invalid value: {\"host\":\"h\"}: field is immutable"},
                {EVENT(",'deprecatedCount':1"), EVENT(""),
                 "count: Invalid value: \"\": field is immutable"},
                {EVENT(""), EVENT(",'related':{}"),
                 "related: Invalid value: {}: field is immutable"},
        };

        try_writes(hfd_new_event_validate, writes, N(writes));
}

/* ---- roles ---- */

#define AGGREGATE(selector)                                                                        \
        "{'aggregationRule':{'clusterRoleSelectors':[{'matchLabels':{'a':'b'}}," selector "]}}"
#define SELECTOR "aggregationRule.clusterRoleSelectors[1]"
#define NO_VALUE                                                                                   \
        "a valid label must be an empty string or consist of alphanumeric characters, '-', '_' "   \
        "or '.', and must start and end with an alphanumeric character (e.g. 'MyValue',  or "      \
        "'my_value',  or '12345', regex used for validation is "                                   \
        "'(([A-Za-z0-9][-A-Za-z0-9_.]*)?[A-Za-z0-9])?')"

static void test_the_selectors_of_cluster_roles_are_checked(void **state) {
#define ODD "{'matchExpressions':[{'key':'a','operator':'Foo'}]}"
        static const char odd[] = SELECTOR ".matchExpressions[0].operator: Invalid value: \"Foo\": "
                                           "not a valid selector operator\n" SELECTOR
                                           ": Invalid value: null: invalid label selector.";
        static const struct write writes[] = {
                {NULL, AGGREGATE("{}"), ""},
                {NULL, AGGREGATE(ODD), odd},
                {NULL, AGGREGATE("{'matchLabels':{'a':'-'}}"),
                 SELECTOR ".matchLabels: Invalid value: \"-\": " NO_VALUE "\n" SELECTOR
                          ": Invalid value: null: invalid label selector."},
                {AGGREGATE(ODD), AGGREGATE(ODD), ""},
                {AGGREGATE("{}"), AGGREGATE(ODD), odd},
        };

        try_writes(hfd_cluster_role_validate, writes, N(writes));
}

static void test_the_name_of_a_bound_role_is_a_segment(void **state) {
#define BINDING(name, more)                                                                        \
        "{'roleRef':{'apiGroup':'rbac.authorization.k8s.io','kind':'ClusterRole','name':'" name    \
        "'}" more "}"
        static const struct write writes[] = {
                {NULL, BINDING("system:a", ""), ""},
                {NULL, BINDING("a/b", ""),
                 "roleRef.name: Invalid value: \"a/b\": may not contain '/'"},
                {NULL, BINDING("..", ""), "roleRef.name: Invalid value: \"..\": may not be '..'"},
                {BINDING("a/b", ""), BINDING("a/b", ",'subjects':[]"), ""},
                {BINDING("a", ""), BINDING("a%", ""),
                 "roleRef.name: Invalid value: \"a%\": may not contain '%'\n"
                 "roleRef: Invalid value: {\"APIGroup\":\"rbac.authorization.k8s.io\",\"Kind\":"
                 "\"ClusterRole\",\"Name\":\"a%\"}: cannot change roleRef"},
        };

        try_writes(hfd_role_binding_validate, writes, N(writes));
        try_writes(hfd_cluster_role_binding_validate, writes, N(writes));
}

/* ---- RuntimeClasses ---- */

#define CLASS(fixed, more) "{'handler':'h','overhead':{'podFixed':{" fixed "}}" more "}"

static void test_the_overhead_of_a_class_is_that_of_a_container(void **state) {
        static const struct write writes[] = {
                {NULL, CLASS("'cpu':'500m','example.com/x':'2','example.com/y':'2000m'", ""), ""},
                {NULL, CLASS("'example.com/x':'500m'", ""),
                 "overhead.limits[example.com/x]: Invalid value: \"500m\": must be an integer"},
                {NULL, CLASS("'hugepages-2Mi':'4Mi','ephemeral-storage':'1'", ""),
                 "overhead: Forbidden: HugePages require cpu or memory"},
                {NULL, CLASS("'hugepages-2Mi':'4Mi','memory':'1'", ""), ""},
                {NULL, CLASS("'memory':'-1'", ""),
                 "overhead.limits[memory]: Invalid value: \"-1\": must be greater than or equal to "
                 "0"},
        };

        try_writes(hfd_runtime_class_validate, writes, N(writes));
}

static void test_a_changed_part_of_a_class_is_checked(void **state) {
        static const struct write writes[] = {
                {CLASS("'example.com/x':'500m'", ""),
                 CLASS("'example.com/x':'500m'", ",'scheduling':{'nodeSelector':{'a':'b'}}"), ""},
                {CLASS("'example.com/x':'5'", ""), CLASS("'example.com/x':'500m'", ""),
                 "overhead.limits[example.com/x]: Invalid value: \"500m\": must be an integer"},
                {CLASS("", ",'scheduling':{'nodeSelector':{'a':'-'}}"),
                 CLASS("'cpu':'1'", ",'scheduling':{'nodeSelector':{'a':'-'}}"), ""},
                {CLASS("", ""), CLASS("", ",'scheduling':{'nodeSelector':{'a':'-'}}"),
                 "scheduling.nodeSelector: Invalid value: \"-\": " NO_VALUE},
                {"{'handler':'A_'}", "{'handler':'A_','metadata':{'labels':{'a':'b'}}}", ""},
                {"{'handler':'a'}", "{'handler':''}",
                 "handler: Required value\nhandler: Invalid value: \"\": field is immutable"},
        };

        try_writes(hfd_runtime_class_validate, writes, N(writes));
}

/* ---- Secrets ---- */

/* Bits after the last byte say nothing. */
static void test_the_bytes_of_an_immutable_secret_stay(void **state) {
#define SECRET(data) "{'type':'Opaque','immutable':true,'data':{" data "}}"
        static const char changed[] = "data: Forbidden: field is immutable when `immutable` is set";
        static const struct write writes[] = {
                {SECRET("'k':'QR=='"), SECRET("'k':'QQ=='"), ""},
                {SECRET("'k':'QQ==','l':'YWI='"), SECRET("'l':'YWJ=','k':'QQ=='"), ""},
                {SECRET("'k':'QQ=='"), SECRET("'k':'Qg=='"), changed},
                {SECRET("'k':'QQ=='"), SECRET("'k':'QUE='"), changed},
                {SECRET("'k':'!'"), SECRET("'k':'QQ=='"), changed},
                {SECRET("'k':'QR=='"), SECRET("'k':'QQ==','l':''"), changed},
        };

        try_writes(hfd_secret_validate, writes, N(writes));
}

/* ---- Services ---- */

#define SERVICE(type, ports)                                                                       \
        "{'spec':{'type':'" type "','sessionAffinity':'None','externalName':'x.y','ports':[" ports \
        "]}}"
#define PORT(name, node)                                                                           \
        "{'name':'" name "','port':8" name ",'protocol':'TCP','targetPort':8,'nodePort':" node "}"

static void test_a_port_of_the_nodes_is_a_port(void **state) {
        static const struct write writes[] = {
                {NULL, SERVICE("NodePort", PORT("1", "65535") "," PORT("2", "0")), ""},
                {NULL, SERVICE("NodePort", PORT("1", "70000")),
                 "spec.ports[0].nodePort: Invalid value: 70000: must be between 1 and 65535, "
                 "inclusive"},
                {NULL, SERVICE("LoadBalancer", PORT("1", "30000") "," PORT("2", "-1")),
                 "spec.ports[1].nodePort: Invalid value: -1: must be between 1 and 65535, "
                 "inclusive"},
                {NULL, SERVICE("ExternalName", PORT("1", "70000")), ""},
                {NULL, SERVICE("ClusterIP", PORT("1", "70000")),
                 "spec.ports[0].nodePort: Forbidden: may not be used when `type` is 'ClusterIP'"},
                /* A stored number is kept, at whatever port, by an update of something else. */
                {SERVICE("NodePort", PORT("1", "70000")),
                 SERVICE("LoadBalancer", PORT("2", "30000") "," PORT("3", "70000")), ""},
                {SERVICE("NodePort", PORT("1", "70000")), SERVICE("NodePort", PORT("1", "70001")),
                 "spec.ports[0].nodePort: Invalid value: 70001: must be between 1 and 65535, "
                 "inclusive"},
        };

        try_writes(hfd_service_validate, writes, N(writes));
}

/* A Service that is no longer reached at ports of the nodes loses those that it had. */
static void test_ports_of_the_nodes_are_dropped_in_any_order(void **state) {
        static const struct {
                const char *ports;
                int n_left;
        } cases[] = {{PORT("2", "30002") "," PORT("1", "30001"), 0},
                     {PORT("1", "30002"), 0},
                     {PORT("3", "0") "," PORT("1", "30001") "," PORT("2", "30001"), 0},
                     {PORT("1", "30001") "," PORT("2", "30003"), 2}};

        for (size_t i = 0; i < N(cases); i++) {
                char text[600];
                (void)snprintf(text, sizeof text, "{'spec':{'type':'ClusterIP','ports':[%s]}}",
                               cases[i].ports);
                struct hf__json *object = json_of(text),
                                *old = json_of(SERVICE("NodePort",
                                                       PORT("1", "30001") "," PORT("2", "30002")));
                int n = 0;
                assert_int_equal(hfd_service_set_fields(hf__json_get(object, "spec"),
                                                        hf__json_get(old, "spec")),
                                 0);
                for (const struct hf__json *m = hf__json_first(hf__json_path(object, "spec.ports"));
                     m; m = hf__json_next(m))
                        n += hf__json_get(m, "nodePort") != NULL;
                assert_int_equal(n, cases[i].n_left);
                hf__json_free(object);
                hf__json_free(old);
        }
}

/* ---- volumes ---- */

#define PROJECTED(sources)                                                                         \
        "{'template':{'spec':{'containers':[{'name':'c','image':'i','imagePullPolicy':'Always',"   \
        "'terminationMessagePolicy':'File'}],'restartPolicy':'Always','dnsPolicy':'Default',"      \
        "'terminationGracePeriodSeconds':30,'volumes':[{'name':'v','projected':{'sources':"        \
        "[" sources "]}}]}}}"
#define FIELD  "template.spec.volumes[0].projected"
#define SOURCE FIELD ".sources[0]"
#define TOKEN(seconds, path)                                                                       \
        "{'serviceAccountToken':{'expirationSeconds':" seconds ",'path':'" path "'}}"
#define REPEATED(value) FIELD ": Invalid value: \"" value "\": conflicting duplicate paths"

static void test_the_sources_of_a_projected_volume_are_checked(void **state) {
        static const struct write writes[] = {
                {NULL,
                 PROJECTED(TOKEN("3607",
                                 "token") ",{'configMap':{'name':'c','items':[{'key':'k',"
                                          "'path':'a/"
                                          "b'}]}},{'downwardAPI':{'items':[{'path':'n','fieldRef':{"
                                          "'apiVersion':'v1','fieldPath':'metadata.namespace'}}]}},"
                                          "{'secret':{'name':'s'}},{'clusterTrustBundle':{'name':'"
                                          "b','path':'t'}},"
                                          "{'podCertificate':{'signerName':'a.b/c','keyType':"
                                          "'ED25519','keyPath':'k','certificateChainPath':"
                                          "'l'}},{}"),
                 ""},
                {NULL, PROJECTED("{'secret':{'items':[{'path':'../x','mode':512}]}}"),
                 SOURCE ".secret.name: Required value\n" SOURCE
                        ".secret.items[0].key: Required value\n" SOURCE
                        ".secret.items[0].path: Invalid value: \"../x\": must not contain "
                        "'..'\n" SOURCE
                        ".secret.items[0].mode: Invalid value: 512: must be a number between 0 and "
                        "0777 (octal), both inclusive"},
                {NULL,
                 PROJECTED("{'configMap':{'name':'c','items':[{'key':'k','path':'/x'},{'key':'l',"
                           "'path':''}]}}"),
                 SOURCE ".configMap.items[0].path: Invalid value: \"/x\": must be a relative "
                        "path\n" SOURCE ".configMap.items[1].path: Required value"},
                {NULL, PROJECTED("{'downwardAPI':{'items':[{'path':'..data'}]}}"),
                 SOURCE ".downwardAPI.path: Invalid value: \"..data\": must not start with "
                        "'..'\n" SOURCE
                        ".downwardAPI: Required value: one of fieldRef and resourceFieldRef is "
                        "required"},
                {NULL, PROJECTED(TOKEN("599", "a/../b")),
                 SOURCE ".serviceAccountToken.expirationSeconds: Invalid value: 599: may not "
                        "specify a duration less than 10 minutes\n" FIELD
                        ".path: Invalid value: \"a/../b\": must not contain '..'"},
                {NULL, PROJECTED(TOKEN("4294967297", "")),
                 SOURCE ".serviceAccountToken.expirationSeconds: Invalid value: 4294967297: may "
                        "not specify a duration larger than 2^32 seconds\n" FIELD
                        ".path: Required value"},
                {NULL, PROJECTED("{'clusterTrustBundle':{},'podCertificate':{}}"),
                 SOURCE ".clusterTrustBundle: Required value: either name or signerName must be "
                        "specified\n" SOURCE ".clusterTrustBundle.path: Required value\n" SOURCE
                        ".podCertificate.signerName: Required value\n" SOURCE
                        ".podCertificate.keyType: Unsupported value: \"\": supported values: "
                        "\"RSA3072\", \"RSA4096\", \"ECDSAP256\", \"ECDSAP384\", \"ECDSAP521\", "
                        "\"ED25519\"\n" SOURCE
                        ".podCertificate: Required value: specify at least one of "
                        "credentialBundlePath, keyPath, and certificateChainPath\n" SOURCE
                        ": Forbidden: may not specify more than 1 volume type per source"},
                {PROJECTED("{'secret':{}}"), PROJECTED("{'secret':{}}"), ""},
        };

        try_writes(hfd_pod_template_validate, writes, N(writes));
}

/* The cause shows the name of the Secret, or the path if the source has no name. A token is not
 * compared. */
static void test_two_projected_files_do_not_have_one_path(void **state) {
#define ITEM(path) "{'key':'k','path':'" path "'}"
        static const struct write writes[] = {
                {NULL,
                 PROJECTED("{'secret':{'name':'s','items':[" ITEM("a") "," ITEM("b") "," ITEM(
                         "a") "]}}"),
                 REPEATED("s")},
                {NULL,
                 PROJECTED("{'secret':{'name':'s','items':[" ITEM(
                         "a") "]}},{'podCertificate':{'signerName':'a.b/"
                              "c','keyType':'RSA3072','keyPath':'b','credentialBundlePath':'a'}}"),
                 REPEATED("a")},
                {NULL,
                 PROJECTED("{'configMap':{'name':'c','items':[" ITEM(
                         "a") "]}},{'clusterTrustBundle':{'name':'b','path':'a'}}"),
                 REPEATED("a")},
                {NULL,
                 PROJECTED("{'secret':{'name':'s','items':[" ITEM("a") "]}}," TOKEN("600", "a")),
                 ""},
                /* As in Kubernetes, only bundles share a path that is missing. */
                {NULL,
                 PROJECTED("{'secret':{'name':'s','items':[{'key':'k'},{'key':'l'}]}},"
                           "{'clusterTrustBundle':{'name':'b'}},{'clusterTrustBundle':{'name':'b'}"
                           "},{'secret':{'name':'s','items':[" ITEM("a") "," ITEM("a") "]}}"),
                 SOURCE ".secret.items[0].path: Required value\n" SOURCE
                        ".secret.items[1].path: Required value\n" FIELD
                        ".sources[1].clusterTrustBundle.path: Required value\n" FIELD
                        ".sources[2].clusterTrustBundle.path: Required value\n" REPEATED(
                                "") "\n" REPEATED("s")},
        };

        try_writes(hfd_pod_template_validate, writes, N(writes));
}

/* Kubernetes allows some mistakes if the old template has such ones, but no others. */
static void test_a_template_keeps_some_mistakes(void **state) {
#define WITH(image, more)                                                                          \
        "{'template':{'spec':{'containers':[{'name':'c','image':'" image                           \
        "','imagePullPolicy':'Always','terminationMessagePolicy':'File'" more                      \
        "}],'restartPolicy':'Always','dnsPolicy':'Default','terminationGracePeriodSeconds':30}}}"
#define PAGES(amount) ",'resources':{'limits':{'cpu':'1','hugepages-2Mi':'" amount "'}}"
        static const struct write writes[] = {
                {PROJECTED(TOKEN("600", "../a")), PROJECTED(TOKEN("600", "../b")), ""},
                {PROJECTED(TOKEN("600", "a")), PROJECTED(TOKEN("600", "../b")),
                 FIELD ".path: Invalid value: \"../b\": must not contain '..'"},
                {PROJECTED(TOKEN("599", "../a")), PROJECTED(TOKEN("599", "../b")),
                 SOURCE ".serviceAccountToken.expirationSeconds: Invalid value: 599: may not "
                        "specify a duration less than 10 minutes"},
                {PROJECTED(TOKEN("600", "../a")), PROJECTED(TOKEN("600", "")),
                 FIELD ".path: Required value"},
                {WITH("i", PAGES("3Mi")), WITH("j", PAGES("3Mi")), ""},
                {WITH("i", PAGES("2Mi")), WITH("j", PAGES("3Mi")),
                 "template.spec.containers[0].resources.limits[hugepages-2Mi]: Invalid value: "
                 "\"3Mi\": 3Mi is not positive integer multiple of hugepages-2Mi"},
                /* Another program may have stored any value. */
                {"{'template':[1]}", WITH("j", PAGES("3Mi")),
                 "template.spec.containers[0].resources.limits[hugepages-2Mi]: Invalid value: "
                 "\"3Mi\": 3Mi is not positive integer multiple of hugepages-2Mi"},
                {"{'template':{'spec':'a'}}", WITH("j", PAGES("3Mi")),
                 "template.spec.containers[0].resources.limits[hugepages-2Mi]: Invalid value: "
                 "\"3Mi\": 3Mi is not positive integer multiple of hugepages-2Mi"},
        };

        try_writes(hfd_pod_template_validate, writes, N(writes));
}

/* ---- NetworkPolicies ---- */

static void test_programs_agree_on_the_blocks_of_a_policy(void **state) {
#define POLICY(rules, block) "{'spec':{'" rules "':[{'" block "}]}]}}"
#define FROM(cidr)           POLICY("ingress", "from':[{'ipBlock':{'cidr':'" cidr "'}")
#define TO(cidr, except)                                                                           \
        POLICY("egress", "to':[{'ipBlock':{'cidr':'" cidr "','except':['" except "']}")
#define CIDR   "spec.ingress[0].from[0].ipBlock.cidr: Invalid value: "
#define EXCEPT "spec.egress[0].to[0].ipBlock.except[0]: Invalid value: "
        static const struct write writes[] = {
                {NULL, FROM("10.0.0.0/8"), ""},
                {NULL, FROM("0.0.0.0/0"), ""},
                {NULL, FROM("2001:0db8:0::/33"), ""},
                {NULL, FROM("::/0"), ""},
                {NULL, FROM("010.0.0.0/8"),
                 CIDR "\"010.0.0.0/8\": must not have leading 0s in IP or prefix length"},
                {NULL, FROM("10.00.0.0/8"),
                 CIDR "\"10.00.0.0/8\": must not have leading 0s in IP or prefix length"},
                {NULL, FROM("10.0.0.0/08"),
                 CIDR "\"10.0.0.0/08\": must not have leading 0s in IP or prefix length"},
                {NULL, FROM("2001:db8::/00"),
                 CIDR "\"2001:db8::/00\": must not have leading 0s in IP or prefix length"},
                {NULL, FROM("::ffff:10.0.0.0/104"),
                 CIDR "\"::ffff:10.0.0.0/104\": must not have an IPv4-mapped IPv6 address"},
                {NULL, FROM("10.3.0.0/15"),
                 CIDR "\"10.3.0.0/15\": must not have bits set beyond the prefix length"},
                {NULL, FROM("10.0.0.1/31"),
                 CIDR "\"10.0.0.1/31\": must not have bits set beyond the prefix length"},
                {NULL, FROM("2001:db8::1/127"),
                 CIDR "\"2001:db8::1/127\": must not have bits set beyond the prefix length"},
                {NULL, TO("10.0.0.0/8", "10.03.0.0/16"),
                 EXCEPT "\"10.03.0.0/16\": must not have leading 0s in IP or prefix length"},
                /* of an older server */
                {TO("10.0.0.0/8", "10.03.0.0/16"), FROM("10.03.0.0/16"), ""},
                {FROM("10.3.0.0/15"), TO("10.3.0.0/15", "10.3.0.1/16"),
                 EXCEPT "\"10.3.0.1/16\": must not have bits set beyond the prefix length"},
                {FROM("10.3.0.0/15"), TO("10.3.0.0/15", "10.4.0.0/16"),
                 EXCEPT "\"10.4.0.0/16\": must be a strict subset of `cidr`"},
                {FROM("x"), TO("x", "10.0.0.0/8"), ""},
        };

        try_writes(hfd_network_policy_validate, writes, N(writes));
}

/* ---- autoscalers ---- */

static void test_an_autoscaler_has_no_annotations_of_v1(void **state) {
        struct hf__json *object = json_of(
                                "{'metadata':{'annotations':{'a':'b',"
                                "'autoscaling.alpha.kubernetes.io/metrics':'[]',"
                                "'autoscaling.alpha.kubernetes.io/behavior':'x',"
                                "'autoscaling.alpha.kubernetes.io/current-metrics':'x',"
                                "'autoscaling.alpha.kubernetes.io/conditions':'x',"
                                "'autoscaling.alpha.kubernetes.io/scale-up-tolerance':'x'}}}"),
                        *alone = json_of("{'metadata':{'annotations':{"
                                         "'autoscaling.alpha.kubernetes.io/metrics':'[]'}}}");

        assert_int_equal(hfd_autoscaler_normalize(object), 0);
        expect_json(object, "{'metadata':{'annotations':{'a':'b'}}}");
        assert_int_equal(hfd_autoscaler_normalize(alone), 0);
        expect_json(alone, "{'metadata':{}}");
        hf__json_free(object);
        hf__json_free(alone);
}

/* ---- names ---- */

#define X50  "xxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxx"
#define X200 X50 X50 X50 X50
#define RULE_1035                                                                                  \
        "a DNS-1035 label must consist of lower case alphanumeric characters or '-', start with "  \
        "an alphabetic character, and end with an alphanumeric character (e.g. 'my-name',  or "    \
        "'abc-123', regex used for validation is '[a-z]([-a-z0-9]*[a-z0-9])?')"

static void test_a_wildcard_of_an_ingress_has_a_limit(void **state) {
#define HOST(text) "{'spec':{'rules':[{'host':'" text "'}]}}"
        static const struct write writes[] = {
                {NULL, HOST("*." X200 X50 "x"), ""},
                {NULL, HOST("*." X200 X50 "xx"),
                 "spec.rules[0].host: Invalid value: \"*." X200
                 "xxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxx\": must be no more than 253 "
                 "characters"},
        };

        try_writes(hfd_ingress_validate, writes, N(writes));
}

static void test_a_bound_account_has_a_name_of_one(void **state) {
#define BOUND(name)                                                                                \
        "{'roleRef':{'apiGroup':'rbac.authorization.k8s.io','kind':'Role','name':'r'},"            \
        "'subjects':[{'kind':'ServiceAccount','namespace':'n','name':'" name "'}]}"
        static const struct write writes[] = {
                {NULL, BOUND("a.b"), ""},
                {NULL, BOUND("A"),
                 "subjects[0].name: Invalid value: \"A\": a lowercase RFC 1123 subdomain must "
                 "consist of lower case alphanumeric characters, '-' or '.', and must start and "
                 "end with an alphanumeric character (e.g. 'example.com', regex used for "
                 "validation is '[a-z0-9]([-a-z0-9]*[a-z0-9])?(\\.[a-z0-9]([-a-z0-9]*[a-z0-9])?)*'"
                 ")"},
                {NULL, BOUND(X200 X50 "xxxx"),
                 "subjects[0].name: Invalid value: \"" X200 X50
                 "\": must be no more than 253 characters"},
        };

        try_writes(hfd_role_binding_validate, writes, N(writes));
}

static void test_a_label_that_is_too_long_may_be_wrong_too(void **state) {
        static const struct {
                const char *text, *faults[HFD_LABEL_FAULTS_MAX];
        } cases[] = {
                {"v1-a", {NULL}},
                {X50 "0123456789abc", {NULL}},
                {X50 "0123456789abcd", {"must be no more than 63 characters"}},
                {X50 "0123456789abc-", {"must be no more than 63 characters", RULE_1035}},
                {X50 "0123456789A0-a", {"must be no more than 63 characters", RULE_1035}},
                {"1a", {RULE_1035}},
                {"a.b", {RULE_1035}},
                {"a-", {RULE_1035}},
                {"", {RULE_1035}},
        };

        for (size_t i = 0; i < N(cases); i++) {
                const char *faults[HFD_LABEL_FAULTS_MAX];
                size_t n = hfd_dns1035_label_faults(cases[i].text, faults);
                assert_int_equal(n == 0, hfd_is_dns1035_label(cases[i].text));
                for (size_t k = 0; k < n; k++) {
                        assert_non_null(cases[i].faults[k]);
                        assert_string_equal(faults[k], cases[i].faults[k]);
                }
                assert_true(n == HFD_LABEL_FAULTS_MAX || !cases[i].faults[n]);
        }
}

static void test_details_are_one_cause_or_several(void **state) {
        static const char *const details[] = {"b", "c"};
        struct hfd_causes causes;

        hfd_causes_init(&causes);
        hfd_cause_invalid_each(&causes, "f", "x", details, 2);
        hfd_cause_invalid_each(&causes, "f", "x", details, 0);
        hfd_cause_invalid_joined(&causes, "f", "x", "a: ", details, 2);
        hfd_cause_invalid_joined(&causes, "f", "x", "a: ", details, 0);
        expect_causes(&causes, "f: Invalid value: \"x\": b\nf: Invalid value: \"x\": c\n"
                               "f: Invalid value: \"x\": a: b,c");
}

int main(void) {
        const struct CMUnitTest tests[] = {
                cmocka_unit_test(test_an_event_of_a_typed_client_is_the_same),
                cmocka_unit_test(test_the_selectors_of_cluster_roles_are_checked),
                cmocka_unit_test(test_the_name_of_a_bound_role_is_a_segment),
                cmocka_unit_test(test_the_overhead_of_a_class_is_that_of_a_container),
                cmocka_unit_test(test_a_changed_part_of_a_class_is_checked),
                cmocka_unit_test(test_the_bytes_of_an_immutable_secret_stay),
                cmocka_unit_test(test_a_port_of_the_nodes_is_a_port),
                cmocka_unit_test(test_ports_of_the_nodes_are_dropped_in_any_order),
                cmocka_unit_test(test_the_sources_of_a_projected_volume_are_checked),
                cmocka_unit_test(test_two_projected_files_do_not_have_one_path),
                cmocka_unit_test(test_a_template_keeps_some_mistakes),
                cmocka_unit_test(test_programs_agree_on_the_blocks_of_a_policy),
                cmocka_unit_test(test_an_autoscaler_has_no_annotations_of_v1),
                cmocka_unit_test(test_a_wildcard_of_an_ingress_has_a_limit),
                cmocka_unit_test(test_a_bound_account_has_a_name_of_one),
                cmocka_unit_test(test_a_label_that_is_too_long_may_be_wrong_too),
                cmocka_unit_test(test_details_are_one_cause_or_several),
        };
        return cmocka_run_group_tests(tests, NULL, NULL);
}

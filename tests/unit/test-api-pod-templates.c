/* SPDX-License-Identifier: Apache-2.0 */
/* Pod templates: their defaults, the messages of refusals, their table, their form in protobuf. */
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

#include "api_fixture.h"
#include "base/json.h"
#include "base/strbuf.h"
#include "server/handlers/protobuf_body.h"
#include "server/resources/rows/resource_table.h"
#include "server/schema/protobuf_encode.h"

static const struct hf_resource templates = {"", "v1", "podtemplates"};

/* A template with these members of its spec, in single quotes. */
static char *body_of(const char *name, const char *spec) {
        char *text = NULL;

        assert_true(asprintf(&text, "{'metadata':{'name':'%s'},'template':{'spec':{%s}}}", name,
                             spec) > 0);
        for (char *c = text; *c; c++)
                if (*c == '\'')
                        *c = '"';
        return text;
}

static int create(struct api_fixture *f, const char *name, const char *spec) {
        char *body = body_of(name, spec);
        int r = api_fixture_request(f, HF_VERB_CREATE, templates, "default", NULL, NULL, body);

        free(body);
        return r;
}

/* Asserts that the create is refused, and that its message is the usual beginning and `causes`. */
static void expect_refused(struct api_fixture *f, const char *spec, const char *causes) {
        char message[2000];

        (void)snprintf(message, sizeof message, "PodTemplate \"t\" is invalid: %s", causes);
        assert_int_equal(create(f, "t", spec), HF_E_INVALID);
        api_fixture_expect_failure(f, 422, "Invalid", message);
}

static void has(struct api_fixture *f, const char *text) {
        char *part = strdup(text);

        for (char *c = part; *c; c++)
                if (*c == '\'')
                        *c = '"';
        if (!strstr(f->last.body, part))
                fail_msg("%s is not in %s", part, f->last.body);
        free(part);
}

#define C "'containers':[{'name':'c','image':'i'}]"

static void test_defaults_are_those_of_kubernetes(void **state) {
        struct api_fixture *f = *state;

        assert_int_equal(create(f, "plain", C), 0);
        assert_string_equal(api_fixture_text_at(f, "template.spec.restartPolicy"), "Always");
        assert_string_equal(api_fixture_text_at(f, "template.spec.dnsPolicy"), "ClusterFirst");
        assert_string_equal(api_fixture_text_at(f, "template.spec.schedulerName"),
                            "default-scheduler");
        has(f, "'terminationGracePeriodSeconds':30");
        has(f, "'securityContext':{}");
        has(f, "'imagePullPolicy':'Always'");
        has(f, "'terminationMessagePath':'/dev/termination-log'");
        has(f, "'terminationMessagePolicy':'File'");
        has(f, "'resources':{}");
        has(f, "'generation':1");
        assert_int_equal(
                create(f, "more",
                       "'serviceAccount':'robot','terminationGracePeriodSeconds':0,'volumes':["
                       "{'name':'a'},{'name':'b','secret':{'secretName':'s'}},{'name':'c',"
                       "'hostPath':{'path':'/x'}},{'name':'d','projected':{'sources':["
                       "{'serviceAccountToken':{'path':'t'}}]}}],'containers':[{'name':'c',"
                       "'image':'h:5000/i:1','ports':[{'containerPort':80}],'livenessProbe':"
                       "{'httpGet':{'port':'web'}},'env':[{'name':'N','valueFrom':{'fieldRef':"
                       "{'fieldPath':'metadata.name'}}},{'name':'L','valueFrom':"
                       "{'resourceFieldRef':{'resource':'limits.cpu'}}}]}]"),
                0);
        has(f, "'serviceAccountName':'robot'");
        has(f, "'terminationGracePeriodSeconds':0");
        has(f, "{'name':'a','emptyDir':{}}");
        has(f, "{'secretName':'s','defaultMode':420}");
        has(f, "{'path':'/x','type':''}");
        has(f, "{'path':'t','expirationSeconds':3600}");
        has(f, "'imagePullPolicy':'IfNotPresent'");
        has(f, "{'containerPort':80,'protocol':'TCP'}");
        has(f, "{'port':'web','path':'/','scheme':'HTTP'}");
        has(f, "'timeoutSeconds':1,'periodSeconds':10,'successThreshold':1,'failureThreshold':3");
        has(f, "{'fieldPath':'metadata.name','apiVersion':'v1'}");
        has(f, "{'resource':'limits.cpu','divisor':'0'}");
}

/* If defaults changed with each write, every update by a controller would write a new version. */
static void test_defaults_are_stable(void **state) {
        struct api_fixture *f = *state;
        char version[40], *stored;

        assert_int_equal(create(f, "s", C ",'volumes':[{'name':'v','image':{'reference':'x'}}]"),
                         0);
        stored = strdup(f->last.body);
        (void)snprintf(version, sizeof version, "%s",
                       api_fixture_text_at(f, "metadata.resourceVersion"));
        assert_int_equal(api_fixture_request(f, HF_VERB_UPDATE, templates, "default", "s", NULL,
                                             stored),
                         0);
        assert_string_equal(api_fixture_text_at(f, "metadata.resourceVersion"), version);
        free(stored);
}

#define AT "template.spec."

static void test_containers_are_validated(void **state) {
        struct api_fixture *f = *state;

        expect_refused(f, "", AT "containers: Required value");
        expect_refused(
                f, "'containers':[{'name':'A'}]",
                "[" AT "containers[0].name: Invalid value: \"A\": a lowercase RFC 1123 label must "
                "consist of lower case alphanumeric characters or '-', and must start and end "
                "with an alphanumeric character (e.g. 'my-name',  or '123-abc', regex used for "
                "validation is '[a-z0-9]([-a-z0-9]*[a-z0-9])?'), " AT
                "containers[0].image: Required value]");
        expect_refused(f, "'containers':[{'name':'a','image':'i'},{'name':'a','image':'i'}]",
                       AT "containers[1].name: Duplicate value: \"a\"");
        expect_refused(
                f,
                "'initContainers':[{'name':'c','image':'i','livenessProbe':{'exec':{'command':"
                "['x']}}}]," C,
                "[" AT "initContainers[0].name: Duplicate value: \"c\", " AT
                "initContainers[0].livenessProbe: Forbidden: may not be set for init containers "
                "without restartPolicy=Always]");
        expect_refused(f,
                       "'containers':[{'name':'c','image':'i','imagePullPolicy':'Often',"
                       "'terminationMessagePolicy':'x'}]",
                       "[" AT "containers[0].terminationMessagePolicy: Unsupported value: \"x\": "
                       "supported values: \"File\", \"FallbackToLogsOnError\", " AT
                       "containers[0].imagePullPolicy: Unsupported value: \"Often\": supported "
                       "values: "
                       "\"Always\", \"IfNotPresent\", \"Never\"]");
        expect_refused(
                f,
                "'containers':[{'name':'c','image':'i','ports':[{'containerPort':70000,"
                "'name':'-'},{'name':'a','protocol':'X'}]}]",
                "[" AT "containers[0].ports[0].name: Invalid value: \"-\": must contain at least "
                "one letter (a-z), " AT "containers[0].ports[0].name: Invalid value: \"-\": must "
                "not begin or end with a hyphen, " AT "containers[0].ports[0].containerPort: "
                "Invalid value: 70000: must be between 1 and 65535, inclusive, " AT
                "containers[0].ports[1].containerPort: Required value, " AT
                "containers[0].ports[1].protocol: Unsupported value: \"X\": supported values: "
                "\"SCTP\", \"TCP\", \"UDP\"]");
        expect_refused(f,
                       "'containers':[{'name':'c','image':'i','ports':[{'containerPort':1,'name':"
                       "'abcdefghijklmnop'},{'containerPort':2,'name':'a'},{'containerPort':3,'"
                       "name':"
                       "'a'}]}]",
                       "[" AT
                       "containers[0].ports[0].name: Invalid value: \"abcdefghijklmnop\": must be "
                       "no more than 15 characters, " AT
                       "containers[0].ports[2].name: Duplicate value: "
                       "\"a\"]");
        expect_refused(f,
                       "'containers':[{'name':'c','image':'i','volumeMounts':[{'name':'none',"
                       "'mountPath':'/a'}]}]",
                       AT "containers[0].volumeMounts[0].name: Not found: \"none\"");
        expect_refused(f,
                       "'containers':[{'name':'c','image':'i','env':[{'name':'A=B'},{'name':'N',"
                       "'valueFrom':{}}]}]",
                       "[" AT
                       "containers[0].env[0].name: Invalid value: \"A=B\": a valid environment "
                       "variable name must consist only of printable ASCII characters other than "
                       "'=', " AT
                       "containers[0].env[1].valueFrom: Invalid value: \"\": must specify one of: "
                       "`fieldRef`, `resourceFieldRef`, `configMapKeyRef`, `secretKeyRef` or "
                       "`fileKeyRef`]");
        expect_refused(f,
                       "'containers':[{'name':'c','image':'i','resources':{'limits':{'cpu':'1'},"
                       "'requests':{'cpu':'2'}}}]",
                       AT "containers[0].resources.requests: Invalid value: \"2\": must be less "
                          "than or "
                          "equal to cpu limit of 1");
        expect_refused(
                f,
                "'containers':[{'name':'c','image':'i','livenessProbe':{},'readinessProbe':"
                "{'tcpSocket':{'port':0},'exec':{}}}]",
                "[" AT
                "containers[0].livenessProbe: Required value: must specify a handler type, " AT
                "containers[0].readinessProbe.exec.command: Required value, " AT
                "containers[0].readinessProbe.tcpSocket: Forbidden: may not specify more than 1 "
                "handler type]");
}

#define RULE "{'action':'Restart','exitCodes':{'operator':'In','values':[1]}}"
#define FIVE RULE "," RULE "," RULE "," RULE "," RULE

/* A container has a policy of its own, and rules that need it. */
static void test_restart_policies_are_validated(void **state) {
        struct api_fixture *f = *state;
        char codes[256 * 5] = "0", spec[2048];

        assert_int_equal(create(f, "restart",
                                "'initContainers':[{'name':'s','image':'i','restartPolicy':"
                                "'Always','restartPolicyRules':[{'action':'RestartAllContainers',"
                                "'exitCodes':{'operator':'NotIn'}}]}],'containers':[{'name':'c',"
                                "'image':'i','restartPolicy':'OnFailure','restartPolicyRules':"
                                "[" FIVE "," FIVE "," FIVE "," FIVE "]}]"),
                         0);
        expect_refused(f,
                       "'initContainers':[{'name':'n','image':'i','restartPolicy':''}],"
                       "'containers':[{'name':'c','image':'i','restartPolicy':'Sometimes'}]",
                       "[" AT "containers[0].restartPolicy: Unsupported value: \"Sometimes\": "
                       "supported values: \"Always\", \"Never\", \"OnFailure\", " AT
                       "initContainers[0].restartPolicy: Unsupported value: \"\": supported "
                       "values: \"Always\", \"Never\", \"OnFailure\"]");
        /* As in kube-apiserver, the rules of an init container without a policy are not read. */
        expect_refused(f,
                       "'initContainers':[{'name':'n','image':'i','restartPolicyRules':[{'action':"
                       "'x'}]}],'containers':[{'name':'c','image':'i','restartPolicyRules':["
                       "{'action':'Restart','exitCodes':{'operator':'x'}}]}]",
                       "[" AT "containers[0].restartPolicy: Required value: must specify "
                       "restartPolicy when restart rules are used, " AT
                       "containers[0].restartPolicyRules[0].exitCodes.operator: Unsupported value: "
                       "\"x\": supported values: \"In\", \"NotIn\", " AT
                       "initContainers[0].restartPolicy: Required value: must specify "
                       "restartPolicy when restart rules are used]");
        expect_refused(f,
                       "'containers':[{'name':'c','image':'i','restartPolicy':'Never',"
                       "'restartPolicyRules':[{'action':'x'}]}]",
                       "[" AT "containers[0].restartPolicyRules[0].action: Unsupported value: "
                       "\"x\": supported values: \"Restart\", \"RestartAllContainers\", " AT
                       "containers[0].restartPolicyRules[0].exitCodes: Required value: must be "
                       "specified]");
        expect_refused(f,
                       "'containers':[{'name':'c','image':'i','restartPolicy':'Never',"
                       "'restartPolicyRules':[" FIVE "," FIVE "," FIVE "," FIVE "," RULE "]}]",
                       AT "containers[0].restartPolicyRules: Too many: 21: must have at most 20 "
                          "items");
        for (size_t i = 1, n = 1; i < 256; i++)
                n += (size_t)snprintf(codes + n, sizeof codes - n, ",%zu", i);
        (void)snprintf(spec, sizeof spec,
                       "'containers':[{'name':'c','image':'i','restartPolicy':'Never',"
                       "'restartPolicyRules':[{'action':'Restart','exitCodes':{'operator':'In',"
                       "'values':[%s]}}]}]",
                       codes);
        expect_refused(f, spec,
                       AT "containers[0].restartPolicyRules[0].exitCodes.values: Too many: 256: "
                          "must have at most 255 items");
}

static void test_pods_are_validated(void **state) {
        struct api_fixture *f = *state;

        expect_refused(
                f, C ",'restartPolicy':'x','dnsPolicy':'y'",
                "[" AT "restartPolicy: Unsupported value: \"x\": supported values: \"Always\", "
                "\"OnFailure\", \"Never\", " AT "dnsPolicy: Unsupported value: \"y\": supported "
                "values: \"ClusterFirstWithHostNet\", \"ClusterFirst\", \"Default\", \"None\"]");
        expect_refused(f, C ",'activeDeadlineSeconds':0,'ephemeralContainers':[{'name':'e'}]",
                       "[" AT "ephemeralContainers[0].image: Required value, " AT
                       "activeDeadlineSeconds: Invalid value: 0: must be between 1 and "
                       "2147483647, inclusive, " AT "ephemeralContainers: Forbidden: ephemeral "
                       "containers not allowed in pod template]");
        expect_refused(f, C ",'tolerations':[{'operator':'Equal'}]",
                       AT
                       "tolerations[0].operator: Invalid value: \"Equal\": operator must be Exists "
                       "when `key` is empty, which means \"match all values and all keys\"");
        expect_refused(f,
                       C ",'volumes':[{'name':'v','emptyDir':{},'hostPath':{'path':'a'}},"
                         "{'name':'v','secret':{'items':[{'key':'k','path':'../x'}]}},{'name':'n',"
                         "'nfs':{'server':'s','path':'x'}}]",
                       "[" AT "volumes[0].hostPath: Forbidden: may not specify more than 1 volume "
                       "type, " AT "volumes[1].secret.secretName: Required value, " AT
                       "volumes[1].secret.items[0].path: Invalid value: \"../x\": must not contain "
                       "'..', " AT "volumes[2].nfs.path: Invalid value: \"x\": must be an absolute "
                       "path]");
}

/* The bytes are those of Go's generated code. Inner messages and ports are encoded in another way
 * than in JSON. */
static void test_protobuf_has_the_form_of_kubernetes(void **state) {
        static const char volume[] = "{\"name\":\"v\",\"emptyDir\":{\"medium\":\"M\"}}",
                          encoded_volume[] = "\x0a\x01v\x12\x05\x12\x03\x0a\x01M";
        static const char tcp[] = "{\"port\":80,\"host\":\"h\"}",
                          encoded_tcp[] = "\x0a\x06\x08\x00\x10\x50\x1a\x00\x12\x01h";
        static const struct {
                const char *list, *text, *encoded;
                size_t n;
        } cases[] = {{"volumes", volume, encoded_volume, sizeof encoded_volume - 1},
                     {NULL, tcp, encoded_tcp, sizeof encoded_tcp - 1}};
        const struct hfd_resource *row = hfd_resource_find("", "v1", "podtemplates");
        const struct hfd_schema *spec =
                hfd_schema_of_member(hfd_schema_of_member(row->schema, "template"), "spec");

        for (size_t i = 0; i < 2; i++) {
                const struct hfd_schema *schema = hfd_schema_of_member(spec, "volumes")->items;
                struct hf__strbuf out = {0};
                struct hf__json *json;
                if (!cases[i].list) {
                        schema = hfd_schema_of_member(spec, "containers")->items;
                        schema = hfd_schema_of_member(schema, "livenessProbe");
                        schema = hfd_schema_of_member(schema, "tcpSocket");
                }
                assert_int_equal(hf__json_parse(cases[i].text, strlen(cases[i].text), &json, NULL),
                                 0);
                hfd_protobuf_encode(&out, schema, json);
                assert_int_equal(out.error, 0);
                assert_int_equal(out.n, cases[i].n);
                assert_memory_equal(out.data, cases[i].encoded, cases[i].n);
                hf__strbuf_done(&out);
                hf__json_free(json);
        }
}

/* Encodes the stored object in protobuf and decodes it. Only an empty message may be lost. */
static void test_protobuf_keeps_a_template(void **state) {
        struct api_fixture *f = *state;
        const struct hfd_resource *row = hfd_resource_find("", "v1", "podtemplates");
        struct hf__strbuf raw = {0}, body = {0};
        struct hf__json *stored, *decoded;

        assert_int_equal(
                create(f, "p",
                       "'securityContext':{'supplementalGroups':[0,7],'runAsUser':0},'volumes':["
                       "{'name':'v','emptyDir':{'sizeLimit':'1Gi'}},{'name':'m','configMap':{"
                       "'name':'cm'}}],'containers':[{'name':'c','image':'i','resources':{'limits'"
                       ":{'cpu':'1500m'}},'readinessProbe':{'httpGet':{'port':'web','path':'/x'}},"
                       "'livenessProbe':{'tcpSocket':{'port':8080}},'env':[{'name':'E','valueFrom'"
                       ":{'secretKeyRef':{'name':'s','key':'k'}}}],'ports':[{'containerPort':80,"
                       "'name':'web'}],'volumeMounts':[{'name':'v','mountPath':'/v'}]}]"),
                0);
        assert_int_equal(hf__json_parse(f->last.body, strlen(f->last.body), &stored, NULL), 0);
        hf__json_drop(stored, "kind");
        hf__json_drop(stored, "apiVersion");
        hf__json_remove(stored, "metadata.managedFields");
        hfd_protobuf_encode(&raw, row->schema, stored);
        hfd_protobuf_wrap(&raw, 2, 0);
        hf__strbuf_add(&body, "k8s\0", 4);
        hf__strbuf_add(&body, raw.data, raw.n);
        assert_int_equal(body.error, 0);
        assert_int_equal(hfd_protobuf_to_json(row, false, body.data, body.n, &decoded), 0);
        /* The decoder leaves out an empty message if the field in Go is not a pointer. */
        hf__json_remove(stored, "template.metadata");
        assert_true(hf__json_equal(stored, decoded));
        /* A body that ends early is refused, or whole fields are missing. The decoder reads nothing
         * beyond its end. */
        for (size_t n = 4; n < body.n; n++) {
                char *cut = memcpy(malloc(n), body.data, n);
                struct hf__json *part;
                if (hfd_protobuf_to_json(row, false, cut, n, &part) == 0)
                        hf__json_free(part);
                free(cut);
        }
        hf__json_free(decoded);
        hf__json_free(stored);
        hf__strbuf_done(&raw);
        hf__strbuf_done(&body);
}

int main(void) {
        const struct CMUnitTest tests[] = {
                API_TEST(test_defaults_are_those_of_kubernetes),
                API_TEST(test_defaults_are_stable),
                API_TEST(test_containers_are_validated),
                API_TEST(test_restart_policies_are_validated),
                API_TEST(test_pods_are_validated),
                cmocka_unit_test(test_protobuf_has_the_form_of_kubernetes),
                API_TEST(test_protobuf_keeps_a_template),
        };

        return cmocka_run_group_tests(tests, NULL, NULL);
}

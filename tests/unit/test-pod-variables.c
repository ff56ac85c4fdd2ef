/* SPDX-License-Identifier: Apache-2.0 */
/* The rules of the variables of a pod's containers, and of what they refer to: fields of the pod,
 * resources of containers, keys of ConfigMaps and Secrets, and files of volumes. */
#undef NDEBUG
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <string.h>

#include <cmocka.h>

#include "base/json.h"
#include "pod_spec_fixture.h"
#include "server/resources/strategies/pod/rules/pod_validation.h"
#include "server/resources/workloads/workloads.h"

#define REST                                                                                       \
        "'restartPolicy':'Always','dnsPolicy':'Default',"                                          \
        "'terminationGracePeriodSeconds':30"

#define FIELD_REF           "spec.containers[0].env[0].valueFrom.fieldRef"
#define NOT_CONVERTED(path) FIELD_REF ".fieldPath: Invalid value: \"" path "\": error converting "
#define NOT_A_NAME                                                                                 \
        "name part must consist of alphanumeric characters, '-', '_' or '.', and must start and "  \
        "end with an alphanumeric character (e.g. 'MyName',  or 'my.name',  or '123-abc', regex "  \
        "used for validation is '([A-Za-z0-9][-A-Za-z0-9_.]*)?[A-Za-z0-9]')"

/* Old clients send spec.host for the name of the node. */
static void test_a_variable_has_a_field_of_the_pod(void **state) {
        static const struct {
                const char *version, *path, *cause; /* cause NULL = none */
        } cases[] = {
                {"v1", "spec.nodeName", NULL},
                {"v1", "spec.host", NULL},
                {"v1", "metadata.labels['a.b/c']", NULL},
                {"v1", "metadata.annotations['a.b/C-D']", NULL},
                {"", "spec.nodeName", FIELD_REF ".apiVersion: Required value"},
                {"v1", "", FIELD_REF ".fieldPath: Required value"},
                {"v2", "spec.nodeName",
                 NOT_CONVERTED("spec.nodeName") "fieldPath: unsupported pod version: v2"},
                {"v1", "spec.hostname",
                 NOT_CONVERTED("spec.hostname") "fieldPath: field label not supported: "
                                                "spec.hostname"},
                {"v1", "spec.nodeName['a']",
                 NOT_CONVERTED("spec.nodeName['a']") "fieldPath: field label does not support "
                                                     "subscript: spec.nodeName['a']"},
                {"v1", "['a']",
                 NOT_CONVERTED("['a']") "fieldPath: field label not supported: ['a']"},
                {"v1", "metadata.labels[']",
                 NOT_CONVERTED("metadata.labels[']") "fieldPath: field label not supported: "
                                                     "metadata.labels[']"},
                {"v1", "status.phase",
                 FIELD_REF ".fieldPath: Unsupported value: \"status.phase\": supported values: "
                           "\"metadata.name\", \"metadata.namespace\", \"metadata.uid\", "
                           "\"spec.nodeName\", \"spec.serviceAccountName\", \"status.hostIP\", "
                           "\"status.hostIPs\", \"status.podIP\", \"status.podIPs\""},
                {"v1", "metadata.labels['a b']", FIELD_REF ": Invalid value: \"a b\": " NOT_A_NAME},
                {"v1", "metadata.annotations['A b']",
                 FIELD_REF ": Invalid value: \"a b\": " NOT_A_NAME},
        };

        for (size_t i = 0; i < sizeof cases / sizeof cases[0]; i++) {
                struct hfd_causes causes;
                char found[1000] = "";
                struct hf__json *pod =
                        pod_spec_parse("{'spec':{'containers':[{'name':'c','image':'i','"
                                       "imagePullPolicy':'Always',"
                                       "'terminationMessagePolicy':'File','env':[{'name':'e'}]}],",
                                       REST, "}}");
                struct hf__json *variable = hf__json_first(
                        hf__json_get(hf__json_first(hf__json_path(pod, "spec.containers")), "env"));
                assert_int_equal(hf__json_set_string(variable, "valueFrom.fieldRef.apiVersion",
                                                     cases[i].version),
                                 0);
                assert_int_equal(hf__json_set_string(variable, "valueFrom.fieldRef.fieldPath",
                                                     cases[i].path),
                                 0);
                hfd_causes_init(&causes);
                hfd_pod_validate(pod, NULL, &causes);
                assert_int_equal(causes.n, cases[i].cause != NULL);
                if (causes.n > 0)
                        (void)snprintf(found, sizeof found, "%s: %s", causes.items[0].field,
                                       causes.items[0].text);
                assert_string_equal(found, cases[i].cause ? cases[i].cause : "");
                hf__json_free(pod);
        }
}

/* A key of any length is read within its bounds. */
static void test_the_key_of_a_field_may_have_any_length(void **state) {
        char path[1200];

        for (size_t n = 0; n < 1100; n++) {
                struct hfd_causes causes;
                struct hf__json *selector = hf__json_object();
                (void)snprintf(path, sizeof path, "metadata.labels['%0*d']", (int)n, 0);
                if (n == 0)
                        (void)snprintf(path, sizeof path, "metadata.labels['']");
                assert_int_equal(hf__json_put_string(selector, "apiVersion", "v1"), 0);
                assert_int_equal(hf__json_put_string(selector, "fieldPath", path), 0);
                hfd_causes_init(&causes);
                hfd_object_field_selector_validate(selector, "f", true, &causes);
                assert_int_equal(causes.n > 0, n == 0 || n > 63);
                hf__json_free(selector);
        }
}

#define RESOURCE_REF    "spec.containers[0].env[0].valueFrom.resourceFieldRef"
#define RESOURCE(text)  "'resource':'" text "'"
#define DIVISOR(number) ",'divisor':'" number "'"
#define OF_RESOURCE(members)                                                                       \
        "'containers':[" CONTAINER("c",                                                            \
                                   ",'env':[{'name':'e','valueFrom':{'resourceFieldRef':{" members \
                                   "}}}]") "]"
#define OF_BYTES(resource, name)                                                                   \
        RESOURCE_REF ".divisor: Invalid value: \"" resource                                        \
                     "\": only divisor's values 1, 1k, 1M, 1G, 1T, 1P, 1E, 1Ki, 1Mi, 1Gi, 1Ti, "   \
                     "1Pi, 1Ei are supported with the " name " resource\n"
#define OF_TIME(resource)                                                                          \
        RESOURCE_REF ".divisor: Invalid value: \"" resource                                        \
                     "\": only divisor's values 1m and 1 are supported with the cpu resource\n"
#define OTHER_RESOURCE(resource)                                                                   \
        RESOURCE_REF ".resource: Unsupported value: \"" resource                                   \
                     "\": supported values: \"limits.cpu\", \"limits.ephemeral-storage\", "        \
                     "\"limits.memory\", \"requests.cpu\", \"requests.ephemeral-storage\", "       \
                     "\"requests.memory\"\n"

static void test_a_variable_has_a_resource_of_a_container(void **state) {
        static const struct spec_case cases[] = {
                {OF_RESOURCE(RESOURCE("limits.cpu")), ""},
                {OF_RESOURCE(RESOURCE("limits.cpu") DIVISOR("0")), ""},
                {OF_RESOURCE(RESOURCE("limits.cpu") DIVISOR("1m")), ""},
                {OF_RESOURCE(RESOURCE("requests.cpu") DIVISOR("1000m")), ""},
                {OF_RESOURCE(RESOURCE("limits.memory") DIVISOR("1Ki")), ""},
                {OF_RESOURCE(RESOURCE("requests.memory") DIVISOR("1000")), ""},
                {OF_RESOURCE(RESOURCE("limits.ephemeral-storage") DIVISOR("1024Pi")), ""},
                {OF_RESOURCE(RESOURCE("requests.hugepages-2Mi") DIVISOR("1")), ""},
                {OF_RESOURCE(RESOURCE("limits.hugepages-") DIVISOR("1E")), ""},
                {OF_RESOURCE(RESOURCE("") DIVISOR("3")),
                 RESOURCE_REF ".resource: Required value\n"},
                {OF_RESOURCE(RESOURCE("limits.pods") DIVISOR("3")), OTHER_RESOURCE("limits.pods")},
                {OF_RESOURCE(RESOURCE("hugepages-2Mi")), OTHER_RESOURCE("hugepages-2Mi")},
                {OF_RESOURCE(RESOURCE("limits.cpu") DIVISOR("1k")), OF_TIME("limits.cpu")},
                {OF_RESOURCE(RESOURCE("requests.cpu") DIVISOR("-1")), OF_TIME("requests.cpu")},
                {OF_RESOURCE(RESOURCE("limits.memory") DIVISOR("1m")),
                 OF_BYTES("limits.memory", "memory")},
                {OF_RESOURCE(RESOURCE("requests.memory") DIVISOR("2Ki")),
                 OF_BYTES("requests.memory", "memory")},
                {OF_RESOURCE(RESOURCE("requests.memory") DIVISOR("1e3")),
                 OF_BYTES("requests.memory", "memory")},
                {OF_RESOURCE(RESOURCE("limits.ephemeral-storage") DIVISOR("10M")),
                 OF_BYTES("limits.ephemeral-storage", "local ephemeral storage")},
                {OF_RESOURCE(RESOURCE("limits.hugepages-1Gi") DIVISOR("1u")),
                 OF_BYTES("limits.hugepages-1Gi", "hugepages")},
        };

        EXPECT_ALL(cases);
}

#define KEY_OF(source, key)                                                                        \
        "'containers':[" CONTAINER("c", ",'env':[{'name':'e','valueFrom':{'" source                \
                                        "':{'name':'n','key':'" key "'}}}]") "]"
#define KEY_REF(source) "spec.containers[0].env[0].valueFrom." source ".key: Invalid value: "
#define X16             "xxxxxxxxxxxxxxxx"
#define X64             X16 X16 X16 X16
#define CONFIG_KEY                                                                                 \
        "a valid config key must consist of alphanumeric characters, '-', '_' or '.' (e.g. "       \
        "'key.name',  or 'KEY_NAME',  or 'key-name', regex used for validation is "                \
        "'[-._a-zA-Z0-9]+')\n"

static void test_the_key_of_a_variable_has_the_causes_of_kubernetes(void **state) {
        static const struct spec_case cases[] = {
                {KEY_OF("configMapKeyRef", ".a"), ""},
                {KEY_OF("configMapKeyRef", ""), "spec.containers[0].env[0].valueFrom."
                                                "configMapKeyRef.key: Required value\n"},
                {KEY_OF("configMapKeyRef", "a/b"),
                 KEY_REF("configMapKeyRef") "\"a/b\": " CONFIG_KEY},
                {KEY_OF("configMapKeyRef", "."),
                 KEY_REF("configMapKeyRef") "\".\": must not be '.'\n"},
                {KEY_OF("secretKeyRef", ".."),
                 KEY_REF("secretKeyRef") "\"..\": must not be '..'\n"},
                {KEY_OF("secretKeyRef", "..a/"),
                 KEY_REF("secretKeyRef") "\"..a/\": " CONFIG_KEY KEY_REF(
                         "secretKeyRef") "\"..a/\": must not start with '..'\n"},
                {KEY_OF("secretKeyRef", X64 X64 X64 X64),
                 KEY_REF("secretKeyRef") "\"" X64 X64 X64 X16 X16 X16
                                         "xxxxxxxxxx\": must be no more than 253 characters\n"},
        };

        EXPECT_ALL(cases);
}

#define SOURCES(list) "'containers':[" CONTAINER("c", ",'envFrom':[" list "]") "]"

static void test_the_source_of_variables_may_end_with_a_hyphen(void **state) {
        static const struct spec_case cases[] = {
                {SOURCES("{'configMapRef':{'name':'a-'}},{'secretRef':{'name':'b.-'}}"), ""},
                {SOURCES("{'configMapRef':{'name':'-'}},{'secretRef':{'name':'A.b-'}}"),
                 "spec.containers[0].envFrom[0].configMapRef.name: Invalid value: \"-\": " SUBDOMAIN
                 "spec.containers[0].envFrom[1].secretRef.name: Invalid value: "
                 "\"A.b-\": " SUBDOMAIN},
        };

        EXPECT_ALL(cases);
}

#define FILE_REF "spec.containers[0].env[0].valueFrom.fileKeyRef"
#define OF_FILE(members)                                                                           \
        "'containers':[" CONTAINER("c", ",'env':[{'name':'e','valueFrom':{'fileKeyRef':{" members  \
                                        "}}}]") "]"
#define VALID_FILE(volume) OF_FILE("'key':'k','volumeName':'" volume "','path':'a/b'")

static void test_a_variable_has_a_key_in_a_file_of_a_volume(void **state) {
        static const struct spec_case cases[] = {
                {"'volumes':[{'name':'v','emptyDir':{}}]," VALID_FILE("v"), ""},
                {VALID_FILE("v"), FILE_REF ".volumeName: Not found: \"v\"\n"},
                {"'volumes':[{'name':'v','emptyDir':{}},{'name':'w','image':{'pullPolicy':'Never'}"
                 "}]," VALID_FILE("w"),
                 FILE_REF ".volumeName: Invalid value: \"w\": referenced volume must be of type "
                          "emptyDir\n"},
                {"'volumes':[{'name':'v'},{'name':'v','emptyDir':{}}]," VALID_FILE("v"),
                 "spec.volumes[0]: Required value: must specify a volume type\n"},
                {"'volumes':[{'name':'v','emptyDir':{}},{'name':'v'}]," VALID_FILE("v"),
                 "spec.volumes[1]: Required value: must specify a volume type\n"
                 "spec.volumes[1].name: Duplicate value: \"v\"\n" FILE_REF
                 ".volumeName: Invalid value: \"v\": referenced volume must be of type emptyDir\n"},
                {OF_FILE(""),
                 FILE_REF ".key: Required value\n" FILE_REF ".volumeName: Required value\n" FILE_REF
                          ".path: Required value\n" FILE_REF ".volumeName: Not found: \"\"\n"},
                {OF_FILE("'key':'=','volumeName':'_','path':'a/../b'"), FILE_REF
                 ".key: Invalid value: \"=\": a valid environment variable name must consist only "
                 "of printable ASCII characters other than '='\n" FILE_REF
                 ".volumeName: Invalid value: \"_\": " LABEL FILE_REF
                 ".path: Invalid value: \"a/../b\": must not contain '..'\n" FILE_REF
                 ".volumeName: Not found: \"_\"\n"},
        };

        EXPECT_ALL(cases);
}

int main(void) {
        const struct CMUnitTest tests[] = {
                cmocka_unit_test(test_a_variable_has_a_field_of_the_pod),
                cmocka_unit_test(test_the_key_of_a_field_may_have_any_length),
                cmocka_unit_test(test_a_variable_has_a_resource_of_a_container),
                cmocka_unit_test(test_the_key_of_a_variable_has_the_causes_of_kubernetes),
                cmocka_unit_test(test_the_source_of_variables_may_end_with_a_hyphen),
                cmocka_unit_test(test_a_variable_has_a_key_in_a_file_of_a_volume),
        };

        return cmocka_run_group_tests(tests, NULL, NULL);
}

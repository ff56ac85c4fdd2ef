/* SPDX-License-Identifier: Apache-2.0 */
/* The rules of the volumes of a pod, and of their mounts and devices. test-pod-rules.c has the
 * other rules of a pod's spec. */
#undef NDEBUG
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#include "base/json.h"
#include "pod_spec_fixture.h"
#include "server/resources/strategies/pod/rules/pod_validation.h"

#define EPHEMERAL                                                                                  \
        "'ephemeral':{'volumeClaimTemplate':{'spec':{'accessModes':['ReadWriteOnce'],"             \
        "'resources':{'requests':{'storage':'1'}}}}}"
#define VOLUME(source) "'volumes':[{'name':'v'," source "}]"
#define OF_VOLUME      "spec.volumes[0]"
#define LONGEST_DRIVER "a01234567890123456789012345678901234567890123456789.ABCDEFGHIJK"

static void test_sources_of_volumes_are_validated(void **state) {
        static const struct spec_case cases[] = {
                {VOLUME("'emptyDir':{'sizeLimit':'0','medium':'Memory'}"), ""},
                {VOLUME("'emptyDir':{'sizeLimit':'-1'}"),
                 OF_VOLUME ".emptyDir.sizeLimit: Forbidden: SizeLimit field must be a valid "
                           "resource quantity\n"},
                {VOLUME(EPHEMERAL), ""},
                {VOLUME("'ephemeral':{}"),
                 OF_VOLUME ".ephemeral.volumeClaimTemplate: Required value\n"},
                {VOLUME("'image':{'pullPolicy':'Never'}"), ""},
                {VOLUME("'image':{'pullPolicy':'x'}"),
                 OF_VOLUME ".image.pullPolicy: Unsupported value: \"x\": supported values: "
                           "\"Always\", \"IfNotPresent\", \"Never\"\n"},
                {VOLUME("'csi':{'driver':'" LONGEST_DRIVER "','nodePublishSecretRef':{'name':"
                        "'s'}}"),
                 ""},
                {VOLUME("'csi':{'driver':'" LONGEST_DRIVER "a'}"),
                 OF_VOLUME ".csi.driver: Too long: may not be more than 63 bytes\n"},
                {VOLUME("'csi':{'driver':'A_b','nodePublishSecretRef':{'name':'B'}}"),
                 OF_VOLUME ".csi.driver: Invalid value: \"A_b\": " SUBDOMAIN OF_VOLUME
                           ".csi.name: Invalid value: \"B\": " SUBDOMAIN},
                {VOLUME("'csi':{'nodePublishSecretRef':{}}"),
                 OF_VOLUME ".csi.driver: Required value\n" OF_VOLUME
                           ".csi.nodePublishSecretRef.name: Required value\n"},
        };

        EXPECT_ALL(cases);
}

/* ---- mounts ---- */

#define MOUNTS(mounts, more)                                                                       \
        "'volumes':[{'name':'v','emptyDir':{}},{'name':'p','persistentVolumeClaim':{'claimName':"  \
        "'p'}},{'name':'e'," EPHEMERAL                                                             \
        "}],'containers':[" CONTAINER("c", ",'volumeMounts':[" mounts "]" more) "]"
#define MOUNT(members) MOUNTS("{'name':'v','mountPath':'/a'" members "}", "")
#define OF_MOUNTS      "spec.containers[0].volumeMounts"

static void test_mounts_are_validated(void **state) {
        static const struct spec_case cases[] = {
                {MOUNTS("{'name':'v','mountPath':'/a','subPath':'a/..b','mountPropagation':'None',"
                        "'readOnly':true,'recursiveReadOnly':'Enabled'},{'name':'v','mountPath':"
                        "'/b','subPathExpr':'$(A)/b'}",
                        ""),
                 ""},
                {MOUNT(",'subPath':'','subPathExpr':'','recursiveReadOnly':'Disabled'"), ""},
                {MOUNT(",'mountPropagation':'HostToContainer'"), ""},
                {MOUNTS("{},{'name':'v','mountPath':'/a'},{'name':'v','mountPath':'/a'}", ""),
                 OF_MOUNTS "[0].name: Required value\n" OF_MOUNTS
                           "[0].name: Not found: \"\"\n" OF_MOUNTS
                           "[0].mountPath: Required value\n" OF_MOUNTS
                           "[2].mountPath: Invalid value: \"/a\": must be unique\n"},
                {MOUNTS("{'name':'v'},{'name':'v','mountPath':'/b'},{'name':'v','mountPath':''}",
                        ""),
                 OF_MOUNTS "[0].mountPath: Required value\n" OF_MOUNTS
                           "[2].mountPath: Required value\n" OF_MOUNTS
                           "[2].mountPath: Invalid value: \"\": must be unique\n"},
                /* A volume with a mistake does not exist for containers. */
                {"'volumes':[{'name':'v'},{'name':'v','emptyDir':{}},{'name':'w'}],"
                 "'containers':[" CONTAINER("c", ",'volumeMounts':[{'name':'v','mountPath':'/a'},"
                                                 "{'name':'w','mountPath':'/b'}]") "]",
                 "spec.volumes[0]: Required value: must specify a volume type\n"
                 "spec.volumes[2]: Required value: must specify a volume type\n" OF_MOUNTS
                 "[1].name: Not found: \"w\"\n"},
                {MOUNT(",'readOnly':true,'recursiveReadOnly':'IfPossible'"), ""},
                {MOUNTS("{'name':'v','mountPath':'/a','mountPropagation':'Bidirectional'}",
                        ",'securityContext':{'privileged':true}"),
                 ""},
                {MOUNT(",'mountPropagation':'Bidirectional'"),
                 OF_MOUNTS ".mountPropagation: Forbidden: Bidirectional mount propagation is "
                           "available only to privileged containers\n"},
                {MOUNT(",'mountPropagation':''"),
                 OF_MOUNTS ".mountPropagation: Unsupported value: \"\": supported values: "
                           "\"Bidirectional\", \"HostToContainer\", \"None\"\n"},
                {MOUNT(",'subPath':'/a/../b','subPathExpr':'../c'"), OF_MOUNTS
                 ".subPath: Invalid value: \"/a/../b\": must be a relative path\n" OF_MOUNTS
                 ".subPath: Invalid value: \"/a/../b\": must not contain '..'\n" OF_MOUNTS
                 "[0].subPathExpr: Invalid value: \"../c\": subPathExpr and subPath are "
                 "mutually exclusive\n" OF_MOUNTS
                 ".subPathExpr: Invalid value: \"../c\": must not contain '..'\n"},
                {MOUNT(",'recursiveReadOnly':'x'"),
                 OF_MOUNTS ".recursiveReadOnly: Unsupported value: \"x\": supported values: "
                           "\"Disabled\", \"Enabled\", \"IfPossible\"\n"},
                {MOUNT(",'recursiveReadOnly':'Enabled','mountPropagation':'HostToContainer'"),
                 OF_MOUNTS ".recursiveReadOnly: Forbidden: may only be specified when readOnly is "
                           "true\n" OF_MOUNTS
                           ".recursiveReadOnly: Forbidden: may only be specified when "
                           "mountPropagation is None or not specified\n"},
        };

        EXPECT_ALL(cases);
}

static void test_a_volume_of_a_pod_without_its_image_is_not_found(void **state) {
        struct hf__json *spec =
                pod_spec_parse("{'volumes':[{'name':'v','image':{'pullPolicy':'Never'}}],"
                               "'containers':[",
                               CONTAINER("c", ",'volumeMounts':[{'name':'v','mountPath':'/a'}]"),
                               "]," VALID "}");
        struct hfd_causes causes;

        for (size_t i = 0; i < 2; i++) {
                bool of_pod = i == 1;
                hfd_causes_init(&causes);
                hfd_pod_spec_validate(spec, "spec", of_pod, &causes);
                assert_int_equal(causes.n, of_pod ? 2 : 0);
        }
        assert_string_equal(causes.items[0].field, "spec.volumes[0].image.reference");
        assert_string_equal(causes.items[1].field, OF_MOUNTS "[0].name");
        assert_string_equal(causes.items[1].text, "Not found: \"v\"");
        hf__json_free(spec);
}

#define DEVICES(devices) ",'volumeDevices':[" devices "]"
#define OF_DEVICES       "spec.containers[0].volumeDevices"

static void test_devices_are_validated(void **state) {
        static const struct spec_case cases[] = {
                {MOUNTS("{'name':'v','mountPath':'/a'}",
                        DEVICES("{'name':'p','devicePath':'/p'},{'name':'e','devicePath':'/e'}")),
                 ""},
                {MOUNTS("", DEVICES("{},{'name':'v','devicePath':'/a'},{'name':'x','devicePath':"
                                    "'/b'}")),
                 OF_DEVICES "[0].name: Required value\n" OF_DEVICES
                            "[0].name: Not found: \"\"\n" OF_DEVICES
                            "[0].devicePath: Required value\n" OF_DEVICES
                            "[1].name: Invalid value: \"v\": can only use volume source type of "
                            "PersistentVolumeClaim or Ephemeral for block mode\n" OF_DEVICES
                            "[2].name: Not found: \"x\"\n"},
                {"'volumes':[{'name':'v','persistentVolumeClaim':{}},{'name':'e','emptyDir':{}},"
                 "{'name':'e'," EPHEMERAL
                 "}],'containers':[" CONTAINER("c", DEVICES("{'name':'v','devicePath':'/v'},"
                                                            "{'name':'e','devicePath':'/e'}")) "]",
                 "spec.volumes[0].persistentVolumeClaim.claimName: Required value\n"
                 "spec.volumes[2].name: Duplicate value: \"e\"\n" OF_DEVICES
                 "[0].name: Not found: \"v\"\n" OF_DEVICES
                 "[1].name: Invalid value: \"e\": can only use volume source type of "
                 "PersistentVolumeClaim or Ephemeral for block mode\n"},
                {MOUNTS("", DEVICES("{'name':'p','devicePath':'/p'},{'name':'p','devicePath':'/p'},"
                                    "{'name':'e','devicePath':'/../p'}")),
                 OF_DEVICES "[1].name: Invalid value: \"p\": must be unique\n" OF_DEVICES
                            "[1].devicePath: Invalid value: \"/p\": must be unique\n" OF_DEVICES
                            "[2].devicePath: Invalid value: \"/../p\": can not contain backsteps "
                            "('..')\n"},
                {MOUNTS("{'name':'p','mountPath':'/p'}", DEVICES("{'name':'p','devicePath':'/p'}")),
                 OF_MOUNTS "[0].name: Invalid value: \"p\": must not already exist in "
                           "volumeDevices\n" OF_MOUNTS
                           "[0].mountPath: Invalid value: \"/p\": must not already exist as a path "
                           "in volumeDevices\n" OF_DEVICES
                           "[0].name: Invalid value: \"p\": must not already exist in "
                           "volumeMounts\n" OF_DEVICES
                           "[0].devicePath: Invalid value: \"/p\": must not already exist as a "
                           "path in volumeMounts\n"},
                {MOUNTS("", DEVICES("{'name':'p'},{'name':'e','devicePath':''}")),
                 OF_DEVICES "[0].devicePath: Required value\n" OF_DEVICES
                            "[1].devicePath: Required value\n" OF_DEVICES
                            "[1].devicePath: Invalid value: \"\": must be unique\n"},
                /* Without a name or a path, mounts and devices overlap, too. */
                {MOUNTS("{}", DEVICES("{}")), OF_MOUNTS
                 "[0].name: Required value\n" OF_MOUNTS "[0].name: Not found: \"\"\n" OF_MOUNTS
                 "[0].mountPath: Required value\n" OF_MOUNTS
                 "[0].name: Invalid value: \"\": must not already exist in "
                 "volumeDevices\n" OF_MOUNTS
                 "[0].mountPath: Invalid value: \"\": must not already exist as a path in "
                 "volumeDevices\n" OF_DEVICES "[0].name: Required value\n" OF_DEVICES
                 "[0].name: Not found: \"\"\n" OF_DEVICES
                 "[0].devicePath: Required value\n" OF_DEVICES
                 "[0].name: Invalid value: \"\": must not already exist in "
                 "volumeMounts\n" OF_DEVICES
                 "[0].devicePath: Invalid value: \"\": must not already exist as a path in "
                 "volumeMounts\n"},
        };

        EXPECT_ALL(cases);
}

#define DOWNWARD(ref) VOLUME("'downwardAPI':{'items':[{'path':'p','resourceFieldRef':{" ref "}}]}")
#define OF_REF        OF_VOLUME ".downwardAPI.resourceFieldRef"

static void test_a_file_has_a_resource_of_a_container(void **state) {
        static const struct spec_case cases[] = {
                {DOWNWARD("'containerName':'c','resource':'limits.memory','divisor':'1Mi'"), ""},
                {DOWNWARD("'containerName':'c'"), OF_REF ".resource: Required value\n"},
                {DOWNWARD("'resource':'x','divisor':'3'"),
                 OF_REF ".containerName: Required value\n"},
                /* Its divisor is checked all the same. */
                {DOWNWARD("'resource':'limits.cpu','divisor':'3'"), OF_REF
                 ".containerName: Required value\n" OF_REF
                 ".divisor: Invalid value: \"limits.cpu\": only divisor's values 1m and 1 are "
                 "supported with the cpu resource\n"},
                {"'volumes':[{'name':'v','projected':{'sources':[{'downwardAPI':{'items':[{'path':"
                 "'p','resourceFieldRef':{'containerName':'c','resource':'x'}}]}}]}}]",
                 "spec.volumes[0].projected.sources[0].downwardAPI.resourceFieldRef.resource: "
                 "Unsupported value: \"x\": supported values: \"limits.cpu\", "
                 "\"limits.ephemeral-storage\", \"limits.memory\", \"requests.cpu\", "
                 "\"requests.ephemeral-storage\", \"requests.memory\"\n"},
        };

        EXPECT_ALL(cases);
}

static void test_the_last_path_of_a_name_is_looked_for(void **state) {
        static const struct spec_case cases[] = {
                {MOUNTS("{'name':'v','mountPath':'/p'},{'name':'v','mountPath':'/b'}",
                        DEVICES("{'name':'p','devicePath':'/p'}")),
                 OF_MOUNTS "[0].mountPath: Invalid value: \"/p\": must not already exist as a path "
                           "in volumeDevices\n"},
                {MOUNTS("{'name':'v','mountPath':'/b'},{'name':'v','mountPath':'/p'}",
                        DEVICES("{'name':'p','devicePath':'/p'}")),
                 OF_MOUNTS "[1].mountPath: Invalid value: \"/p\": must not already exist as a path "
                           "in volumeDevices\n" OF_DEVICES
                           "[0].devicePath: Invalid value: \"/p\": must not already exist as a "
                           "path in volumeMounts\n"},
                /* The last path of another name is the same. */
                {"'volumes':[{'name':'v','emptyDir':{}},{'name':'w','emptyDir':{}},{'name':'p',"
                 "'persistentVolumeClaim':{'claimName':'p'}}],"
                 "'containers':[" CONTAINER("c", ",'volumeMounts':[{'name':'v','mountPath':'/p'},"
                                                 "{'name':'w','mountPath':'/p'},{'name':'v',"
                                                 "'mountPath':'/b'}]" DEVICES(
                                                         "{'name':'p','devicePath':'/p'}")) "]",
                 OF_MOUNTS "[0].mountPath: Invalid value: \"/p\": must not already exist as a path "
                           "in volumeDevices\n" OF_MOUNTS
                           "[1].mountPath: Invalid value: \"/p\": must be unique\n" OF_MOUNTS
                           "[1].mountPath: Invalid value: \"/p\": must not already exist as a path "
                           "in volumeDevices\n" OF_DEVICES
                           "[0].devicePath: Invalid value: \"/p\": must not already exist as a "
                           "path in volumeMounts\n"},
                {MOUNTS("{'name':'v','mountPath':'/p'}",
                        DEVICES("{'name':'p','devicePath':'/p'},{'name':'p','devicePath':'/e'}")),
                 OF_DEVICES "[0].devicePath: Invalid value: \"/p\": must not already exist as a "
                            "path in volumeMounts\n" OF_DEVICES
                            "[1].name: Invalid value: \"p\": must be unique\n"},
        };

        EXPECT_ALL(cases);
}

/* ---- projected volumes ---- */

#define SOURCE(source)       "'volumes':[{'name':'v','projected':{'sources':[{" source "}]}}]"
#define BUNDLE(members)      SOURCE("'clusterTrustBundle':{'path':'p'," members "}")
#define CERTIFICATE(members) SOURCE("'podCertificate':{'keyPath':'p'," members "}")
#define OF_BUNDLE            "spec.volumes[0].projected.sources[0].clusterTrustBundle"
#define OF_CERTIFICATE       "spec.volumes[0].projected.sources[0].podCertificate"
#define NO_NAME              "not a valid clustertrustbundlename: "
#define X16                  "xxxxxxxxxxxxxxxx"
#define X64                  X16 X16 X16 X16

static void test_trust_bundles_are_validated(void **state) {
        static const struct spec_case cases[] = {
                {BUNDLE("'name':'a.b'"), ""},
                {BUNDLE("'name':'example.com:signer:a.b'"), ""},
                {BUNDLE("'signerName':'example.com/a.b'"), ""},
                {BUNDLE("'signerName':'example.com/a.b','labelSelector':{'matchLabels':{'a':'b'}}"),
                 ""},
                {BUNDLE("'name':'a','signerName':'example.com/a','labelSelector':{}"),
                 OF_BUNDLE ": Invalid value: {\"Name\":\"a\",\"SignerName\":\"example.com/a\","
                           "\"LabelSelector\":{},\"Optional\":null,\"Path\":\"p\"}: only one of "
                           "name and signerName may be used\n"},
                {BUNDLE("'name':''"),
                 OF_BUNDLE ".name: Required value: must be a valid object name\n" OF_BUNDLE
                           ".name: Invalid value: \"\": " NO_NAME SUBDOMAIN},
                {BUNDLE("'name':'A','labelSelector':{'matchLabels':{'a':'b'}}"),
                 OF_BUNDLE ".name: Invalid value: \"A\": " NO_NAME SUBDOMAIN OF_BUNDLE
                           ".labelSelector: Invalid value: {\"matchLabels\":{\"a\":\"b\"}}: "
                           "labelSelector must be unset if name is specified\n"},
                {BUNDLE("'name':'a/b'"),
                 OF_BUNDLE ".name: Invalid value: \"a/b\": " NO_NAME SUBDOMAIN},
                {BUNDLE("'name':'a:b/c'"),
                 OF_BUNDLE ".name: Invalid value: \"a:b/c\": " NO_NAME SUBDOMAIN},
                {BUNDLE("'name':':a'"),
                 OF_BUNDLE ".name: Invalid value: \":a\": " NO_NAME "ClusterTrustBundle without "
                           "signer name must not have \":\" in its name\n"},
                {BUNDLE("'name':'a:b/c:d'"),
                 OF_BUNDLE ".name: Invalid value: \"a:b/c:d\": " NO_NAME "ClusterTrustBundle for "
                           "signerName a/b/c must be named with prefix a:b:c:\n"},
                {BUNDLE("'signerName':'','labelSelector':{'matchExpressions':[{'key':'a',"
                        "'operator':'x'}]}"),
                 OF_BUNDLE ".signerName: Required value: must be a valid signer name\n" OF_BUNDLE
                           ".signerName: Required value\n" OF_BUNDLE
                           ".labelSelector.matchExpressions[0].operator: Invalid value: \"x\": not "
                           "a valid selector operator\n"},
                {BUNDLE("'optional':true"),
                 OF_BUNDLE ": Required value: either name or signerName must be specified\n"},
                {BUNDLE("'signerName':'a'"), OF_BUNDLE
                 ".signerName: Invalid value: \"a\": must be a fully qualified domain and "
                 "path of the form 'example.com/signer-name'\n"},
        };

        EXPECT_ALL(cases);
}

#define VALID_CERTIFICATE "'signerName':'example.com/a','keyType':'RSA3072'"

static void test_certificates_of_pods_are_validated(void **state) {
        static const struct spec_case cases[] = {
                {CERTIFICATE(VALID_CERTIFICATE ",'maxExpirationSeconds':7862400,'userAnnotations':"
                                               "{'example.com/A':'b'}"),
                 ""},
                {CERTIFICATE(VALID_CERTIFICATE ",'maxExpirationSeconds':3600"), ""},
                {CERTIFICATE("'signerName':'kubernetes.io/a','keyType':'ED25519',"
                             "'maxExpirationSeconds':86400"),
                 ""},
                {CERTIFICATE("'signerName':'nkubernetes.io/a','keyType':'ECDSAP256',"
                             "'maxExpirationSeconds':86401"),
                 ""},
                {CERTIFICATE("'signerName':'x.kubernetes.io/a','keyType':'ECDSAP384',"
                             "'maxExpirationSeconds':86401"),
                 OF_CERTIFICATE ".maxExpirationSeconds: Invalid value: 86401: if provided, "
                                "maxExpirationSeconds must be <= 86400\n"},
                {CERTIFICATE(VALID_CERTIFICATE ",'maxExpirationSeconds':7862401"),
                 OF_CERTIFICATE ".maxExpirationSeconds: Invalid value: 7862401: if provided, "
                                "maxExpirationSeconds must be <= 7862400\n"},
                {CERTIFICATE(VALID_CERTIFICATE ",'maxExpirationSeconds':3599"),
                 OF_CERTIFICATE ".maxExpirationSeconds: Invalid value: 3599: if provided, "
                                "maxExpirationSeconds must be >= 3600\n"},
                {CERTIFICATE("'signerName':'b." X64 ".C/d','keyType':'RSA4096'"),
                 OF_CERTIFICATE ".signerName: Invalid value: \"b." X64 ".C\": validating label "
                                "\"" X64 "\": must be no more than 63 characters\n"},
                {CERTIFICATE("'signerName':'b." X64 "-/d','keyType':'RSA4096'"), OF_CERTIFICATE
                 ".signerName: Invalid value: \"b." X64 "-\": validating label \"" X64
                 "-\": must be no more than 63 characters\n" OF_CERTIFICATE
                 ".signerName: Invalid value: \"b." X64 "-\": validating label \"" X64
                 "-\": " LABEL},
                {CERTIFICATE("'signerName':'a/b','keyType':'rsa','userAnnotations':{'A':'b',"
                             "'':'c','a b/c':'d'}"),
                 OF_CERTIFICATE
                 ".signerName: Invalid value: \"a\": should be a domain with at "
                 "least two segments separated by dots\n" OF_CERTIFICATE
                 ".userAnnotations: Invalid value: \"a\": must be a domain-prefixed "
                 "key (such as \"acme.io/foo\")\n" OF_CERTIFICATE
                 ".userAnnotations: Required value\n" OF_CERTIFICATE
                 ".userAnnotations: Invalid value: \"a b/c\": prefix part " SUBDOMAIN OF_CERTIFICATE
                 ".keyType: Unsupported value: \"rsa\": "
                 "supported values: \"RSA3072\", "
                 "\"RSA4096\", \"ECDSAP256\", "
                 "\"ECDSAP384\", \"ECDSAP521\", "
                 "\"ED25519\"\n"},
        };

        EXPECT_ALL(cases);
}

static void test_names_of_trust_bundles_have_a_limit(void **state) {
        static const char end[] = NO_NAME "must be no more than 253 characters";
        char members[600];

        for (int n = 253; n <= 254; n++) {
                (void)snprintf(members, sizeof members, BUNDLE("'name':'a.b:c:%0*d'"), n, 0);
                const struct hfd_causes causes = pod_spec_causes(members);
                assert_int_equal(causes.n, n - 253);
                if (n > 253)
                        assert_non_null(strstr(causes.items[0].text, end));
        }
}

static void test_annotations_of_certificates_have_a_limit(void **state) {
        char *value = calloc(1, 256 * 1024 + 1), *members = NULL;

        for (size_t n = 256 * 1024 - 5; n < 256 * 1024 - 3; n++) {
                memset(value, 'a', n);
                assert_true(asprintf(&members,
                                     CERTIFICATE(VALID_CERTIFICATE ",'userAnnotations':{'a.b/c':"
                                                                   "'%s'}"),
                                     value) > 0);
                const struct hfd_causes causes = pod_spec_causes(members);
                bool fits = n + strlen("a.b/c") <= 256 * 1024;
                assert_int_equal(causes.n, fits ? 0 : 1);
                if (!fits)
                        assert_string_equal(causes.items[0].text,
                                            "Too long: may not be more than 262144 bytes");
                free(members);
        }
        free(value);
}

int main(void) {
        const struct CMUnitTest tests[] = {
                cmocka_unit_test(test_sources_of_volumes_are_validated),
                cmocka_unit_test(test_mounts_are_validated),
                cmocka_unit_test(test_a_volume_of_a_pod_without_its_image_is_not_found),
                cmocka_unit_test(test_devices_are_validated),
                cmocka_unit_test(test_a_file_has_a_resource_of_a_container),
                cmocka_unit_test(test_the_last_path_of_a_name_is_looked_for),
                cmocka_unit_test(test_trust_bundles_are_validated),
                cmocka_unit_test(test_certificates_of_pods_are_validated),
                cmocka_unit_test(test_names_of_trust_bundles_have_a_limit),
                cmocka_unit_test(test_annotations_of_certificates_have_a_limit),
        };
        return cmocka_run_group_tests(tests, NULL, NULL);
}

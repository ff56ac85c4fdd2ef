/* SPDX-License-Identifier: Apache-2.0 */
/* What Kubernetes refuses in StorageClasses, VolumeAttachments and the objects of CSI drivers is
 * refused, with its words. */
#undef NDEBUG
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include "base/strbuf.h"
#include "server/resources/workloads/workloads.h"

#include "rule_cases.h"

#define CHECK(cases) check_rule_cases(cases, sizeof cases / sizeof cases[0])
#define X16          "xxxxxxxxxxxxxxxx"
#define X64          X16 X16 X16 X16
#define X250         X64 X64 X64 X16 X16 X16 "xxxxxxxxxx" /* what a cause shows of a longer text */
#define SUBDOMAIN                                                                                  \
        "a lowercase RFC 1123 subdomain must consist of lower case alphanumeric characters, '-' "  \
        "or '.', and must start and end with an alphanumeric character (e.g. 'example.com', "      \
        "regex used for validation is '[a-z0-9]([-a-z0-9]*[a-z0-9])?(\\.[a-z0-9]([-a-z0-9]*"       \
        "[a-z0-9])?)*')\n"
#define NAME_PART                                                                                  \
        "name part must consist of alphanumeric characters, '-', '_' or '.', and must start and "  \
        "end with an alphanumeric character (e.g. 'MyName',  or 'my.name',  or '123-abc', regex "  \
        "used for validation is '([A-Za-z0-9][-A-Za-z0-9_.]*)?[A-Za-z0-9]')\n"

/* ---- StorageClasses ---- */

#define CLASS(members)                                                                             \
        "{'provisioner':'p','reclaimPolicy':'Delete','volumeBindingMode':'Immediate'" members "}"
#define TOPOLOGIES(terms) CLASS(",'allowedTopologies':[" terms "]")
#define TERM(expressions) "{'matchLabelExpressions':[" expressions "]}"
#define ZONE(key, values) "{'key':'" key "','values':[" values "]}"
#define OF_TERM(i)        "allowedTopologies[" i "].matchLabelExpressions"
#define REPEATED_TERM(i)  OF_TERM(i) ": Duplicate value: \"\"\n"
#define NO_KEY(i, k)                                                                               \
        OF_TERM(i)                                                                                 \
        "[" k "].key: Invalid value: \"\": name part must be non-empty\n" OF_TERM(                 \
                i) "[" k "].key: Invalid value: \"\": " NAME_PART

static void test_topologies_are_refused(void **state) {
        static const struct rule_case cases[] = {
                {hfd_storage_class_validate,
                 TOPOLOGIES(TERM(ZONE("a", "'1','2'") "," ZONE("b", "'1'")) "," TERM(
                         ZONE("a", "'1'"))),
                 NULL, NULL},
                {hfd_storage_class_validate, TOPOLOGIES(TERM(ZONE("-", "'1','2','1'"))), NULL,
                 OF_TERM("0") "[0].values[2]: Duplicate value: \"1\"\n" OF_TERM(
                         "0") "[0].key: Invalid value: \"-\": " NAME_PART},
                {hfd_storage_class_validate, TOPOLOGIES(TERM(ZONE("a", "") "," ZONE("a", "'1'"))),
                 NULL,
                 OF_TERM("0") "[0].values: Required value\n" OF_TERM(
                         "0") "[1].key: Duplicate value: \"a\"\n"},
                /* The order of values and of expressions does not matter. */
                {hfd_storage_class_validate,
                 TOPOLOGIES(TERM(ZONE("a", "'1','2'") "," ZONE("b", "'3'")) "," TERM(
                         ZONE("b", "'3'") "," ZONE("a", "'2','1'"))),
                 NULL, REPEATED_TERM("1")},
                {hfd_storage_class_validate,
                 TOPOLOGIES(TERM(ZONE("a", "'1','2'")) "," TERM(ZONE("a", "'12'")) "," TERM(
                         ZONE("a", "'1'") "," ZONE("b", "'2'")) "," TERM(ZONE("a", "'2'"))),
                 NULL, NULL},
                {hfd_storage_class_validate,
                 TOPOLOGIES(TERM(ZONE("a", "'1'")) "," TERM(ZONE("a", "'1'")) "," TERM(
                         ZONE("a", "'1'"))),
                 NULL, REPEATED_TERM("1") REPEATED_TERM("2") REPEATED_TERM("2")},
                /* Of two expressions with one key, the last one counts. */
                {hfd_storage_class_validate,
                 TOPOLOGIES(TERM(ZONE("a", "'1'") "," ZONE("a", "'2'")) "," TERM(
                         ZONE("a", "'1'")) "," TERM(ZONE("a", "'2'"))),
                 NULL, OF_TERM("0") "[1].key: Duplicate value: \"a\"\n" REPEATED_TERM("2")},
                /* An absent key is "". */
                {hfd_storage_class_validate,
                 TOPOLOGIES(TERM("{'values':['1']},{'values':['2']}") "," TERM(ZONE("", "'2'"))),
                 NULL,
                 NO_KEY("0", "0") NO_KEY("0", "1") OF_TERM("0") "[1].key: Duplicate value: "
                                                                "\"\"\n" NO_KEY("1", "0")
                                                                        REPEATED_TERM("1")},
                /* Kubernetes compares each term with as many empty ones. */
                {hfd_storage_class_validate, TOPOLOGIES("{}"), NULL, REPEATED_TERM("0")},
                {hfd_storage_class_validate, TOPOLOGIES("{},{}"), NULL,
                 REPEATED_TERM("0") REPEATED_TERM("0") REPEATED_TERM("1") REPEATED_TERM("1")
                         REPEATED_TERM("1")},
                /* An update checks topologies that it changes. */
                {hfd_storage_class_validate, TOPOLOGIES("{}"), TOPOLOGIES("{}"), NULL},
                {hfd_storage_class_validate, TOPOLOGIES("{}"), CLASS(""), REPEATED_TERM("0")},
        };

        CHECK(cases);
}

static void test_a_class_stays_as_it_is(void **state) {
        static const struct rule_case cases[] = {
                {hfd_storage_class_validate, CLASS(",'allowVolumeExpansion':true"), CLASS(""),
                 NULL},
                {hfd_storage_class_validate, CLASS(",'parameters':{'b':'1','a':'2'}"), CLASS(""),
                 "parameters: Invalid value: {\"a\":\"2\",\"b\":\"1\"}: field is immutable\n"},
                {hfd_storage_class_validate, CLASS(""), CLASS(",'parameters':{'b':'1'}"),
                 "parameters: Invalid value: null: field is immutable\n"},
                {hfd_storage_class_validate,
                 "{'provisioner':'q','reclaimPolicy':'Retain','volumeBindingMode':'X'}", CLASS(""),
                 "provisioner: Invalid value: \"q\": field is immutable\n"
                 "reclaimPolicy: Invalid value: \"Retain\": field is immutable\n"
                 "volumeBindingMode: Invalid value: \"X\": field is immutable\n"},
        };

        CHECK(cases);
}

static void test_the_driver_of_a_class_is_refused(void **state) {
        static const struct rule_case cases[] = {
                {hfd_storage_class_validate,
                 "{'provisioner':'A.example.com/B','volumeBindingMode':'Immediate'}", NULL, NULL},
                {hfd_storage_class_validate, "{'provisioner':'A_','volumeBindingMode':'Immediate'}",
                 NULL, "provisioner: Invalid value: \"a_\": " NAME_PART},
                {hfd_volume_attributes_class_validate,
                 "{'driverName':'/" X64 "','parameters':{'a':'b'}}", NULL,
                 "driverName: Invalid value: \"/" X64 "\": prefix part must be non-empty\n"
                 "driverName: Invalid value: \"/" X64 "\": name part must be no more than 63 "
                 "bytes\n"},
        };

        CHECK(cases);
}

static void test_too_many_parameters_have_one_cause(void **state) {
        struct hf__strbuf text = {0};

        hf__strbuf_puts(&text, "{'provisioner':'p','volumeBindingMode':'Immediate','parameters':{"
                               "'':'v'");
        for (int i = 1; i < 513; i++)
                hf__strbuf_printf(&text, ",'k%d':'v'", i);
        hf__strbuf_puts(&text, "}}");
        assert_int_equal(text.error, 0);
        const struct rule_case cases[] = {
                {hfd_storage_class_validate, text.data, NULL,
                 "parameters: Too long: may not be more than 512 bytes\n"},
                {hfd_storage_class_validate,
                 "{'provisioner':'p','volumeBindingMode':'Immediate','parameters':{'':'v'}}", NULL,
                 "parameters: Invalid value: \"\": field can not be empty.\n"},
        };
        CHECK(cases);
        hf__strbuf_done(&text);
}

/* ---- CSINodes ---- */

#define DRIVERS(list)    "{'spec':{'drivers':[" list "]}}"
#define DRIVER(name, id) "{'name':'" name "','nodeID':'" id "'}"

static void test_the_drivers_of_a_node_are_refused(void **state) {
        static const struct rule_case cases[] = {
                {hfd_csi_node_validate, DRIVERS(""), NULL, NULL},
                {hfd_csi_node_validate,
                 DRIVERS("{'name':'Disk.example.com','nodeID':'n','topologyKeys':['a',"
                         "'example.com/b'],'allocatable':{'count':0}}"),
                 NULL, NULL},
                {hfd_csi_node_validate, DRIVERS("{'allocatable':{'count':-1}}"), NULL,
                 "spec.drivers[0].name: Required value\nspec.drivers[0].nodeID: Required value\n"
                 "spec.drivers[0].allocatable.count: Invalid value: -1: must be greater than or "
                 "equal to 0\n"},
                {hfd_csi_node_validate, DRIVERS(DRIVER("-", "n")), NULL,
                 "spec.drivers[0].name: Invalid value: \"-\": " SUBDOMAIN},
                {hfd_csi_node_validate, DRIVERS(DRIVER(X64, "n")), NULL,
                 "spec.drivers[0].name: Too long: may not be more than 63 bytes\n"},
                {hfd_csi_node_validate, DRIVERS(DRIVER(X64 X64 X64 X64 "_", "n")), NULL,
                 "spec.drivers[0].name: Too long: may not be more than 63 bytes\n"
                 "spec.drivers[0].name: Invalid value: \"" X250
                 "\": must be no more than 253 characters\n"
                 "spec.drivers[0].name: Invalid value: \"" X250 "\": " SUBDOMAIN},
                {hfd_csi_node_validate, DRIVERS(DRIVER("d", X64 X64 X64 X64)), NULL, NULL},
                {hfd_csi_node_validate, DRIVERS(DRIVER("d", "y" X64 X64 X64 X64)), NULL,
                 "spec.drivers[0].nodeID: Invalid value: \"y" X64 X64 X64
                 "xxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxx\": must be 256 "
                 "characters or less\n"},
                {hfd_csi_node_validate, DRIVERS(DRIVER("d", "n") "," DRIVER("d", "n")), NULL,
                 "spec.drivers[1].name: Duplicate value: \"d\"\n"},
                {hfd_csi_node_validate, DRIVERS("{'nodeID':'n'}," DRIVER("", "n")), NULL,
                 "spec.drivers[0].name: Required value\n"
                 "spec.drivers[1].name: Required value\n"
                 "spec.drivers[1].name: Duplicate value: \"\"\n"},
                {hfd_csi_node_validate,
                 DRIVERS("{'name':'d','nodeID':'n','topologyKeys':['a','a','-']}"), NULL,
                 "spec.drivers[0]: Duplicate value: \"a\"\n"
                 "spec.drivers[0]: Invalid value: \"-\": " NAME_PART},
                {hfd_csi_node_validate, DRIVERS("{'name':'d','nodeID':'n','topologyKeys':['']}"),
                 NULL,
                 "spec.drivers[0]: Required value\n"
                 "spec.drivers[0]: Invalid value: \"\": name part must be non-empty\n"
                 "spec.drivers[0]: Invalid value: \"\": " NAME_PART},
        };

        CHECK(cases);
}

static void test_what_a_csi_node_may_change(void **state) {
        static const struct rule_case cases[] = {
                {hfd_csi_node_validate, DRIVERS(DRIVER("d", "n") "," DRIVER("e", "n")),
                 DRIVERS(DRIVER("e", "n") "," DRIVER("f", "n")), NULL},
                {hfd_csi_node_validate,
                 DRIVERS("{'name':'d','nodeID':'n','allocatable':{'count':2}}"),
                 DRIVERS(DRIVER("d", "n")), NULL},
                {hfd_csi_node_validate, DRIVERS(DRIVER("d", "m")), DRIVERS(DRIVER("d", "n")),
                 "spec.drivers: Invalid value: {\"Name\":\"d\",\"NodeID\":\"m\",\"TopologyKeys\":"
                 "null,\"Allocatable\":null}: field is immutable\n"},
                {hfd_csi_node_validate, DRIVERS("{'name':'d','nodeID':'n','topologyKeys':['a']}"),
                 DRIVERS(DRIVER("d", "n")),
                 "spec.drivers: Invalid value: {\"Name\":\"d\",\"NodeID\":\"n\",\"TopologyKeys\":["
                 "\"a\"],\"Allocatable\":null}: field is immutable\n"},
                {hfd_csi_node_validate, DRIVERS(DRIVER("-", "n")), DRIVERS(DRIVER("-", "n")), NULL},
                /* A driver that was stored before may stay beside others. */
                {hfd_csi_node_validate, DRIVERS(DRIVER("d", "n") "," DRIVER("-", "n")),
                 DRIVERS(DRIVER("-", "n")), NULL},
                {hfd_csi_node_validate, DRIVERS(DRIVER("-", "n") "," DRIVER("-", "n")),
                 DRIVERS(DRIVER("-", "n")),
                 "spec.drivers[1].name: Invalid value: \"-\": " SUBDOMAIN
                 "spec.drivers[1].name: Duplicate value: \"-\"\n"},
                {hfd_csi_node_validate,
                 DRIVERS("{'name':'-','nodeID':'n','allocatable':{'count':2}}"),
                 DRIVERS(DRIVER("-", "n")), NULL},
                {hfd_csi_node_validate,
                 DRIVERS("{'name':'-','nodeID':'n','allocatable':{'count':-2}}"),
                 DRIVERS(DRIVER("-", "n")),
                 "spec.drivers[0].allocatable.count: Invalid value: -2: must be greater than or "
                 "equal to 0\n"},
        };

        CHECK(cases);
}

/* ---- CSIStorageCapacities ---- */

#define CAPACITY(members) "{'storageClassName':'c'" members "}"

static void test_a_capacity_is_refused(void **state) {
        static const struct rule_case cases[] = {
                {hfd_csi_storage_capacity_validate,
                 CAPACITY(",'capacity':'0','nodeTopology':{'matchLabels':{'a':'b'}}"), NULL, NULL},
                {hfd_csi_storage_capacity_validate, "{'capacity':'-1'}", NULL,
                 "storageClassName: Invalid value: \"\": " SUBDOMAIN
                 "capacity: Invalid value: \"-1\": must be greater than or equal to 0\n"},
                {hfd_csi_storage_capacity_validate,
                 CAPACITY(",'nodeTopology':{'matchExpressions':[{'key':'a','operator':'X'}]}"),
                 NULL,
                 "nodeTopology.matchExpressions[0].operator: Invalid value: \"X\": not a valid "
                 "selector operator\n"},
                {hfd_csi_storage_capacity_validate, CAPACITY(",'capacity':'2'"),
                 CAPACITY(",'capacity':'1'"), NULL},
                {hfd_csi_storage_capacity_validate, CAPACITY(",'capacity':'-1'"),
                 CAPACITY(",'capacity':'1'"),
                 "capacity: Invalid value: \"-1\": must be greater than or equal to 0\n"},
                {hfd_csi_storage_capacity_validate,
                 "{'storageClassName':'d','nodeTopology':{'matchLabels':{'a':'b'}}}", CAPACITY(""),
                 "nodeTopology: Invalid value: {\"matchLabels\":{\"a\":\"b\"}}: field is "
                 "immutable\n"
                 "storageClassName: Invalid value: \"d\": field is immutable\n"},
                {hfd_csi_storage_capacity_validate, CAPACITY(""), CAPACITY(",'nodeTopology':{}"),
                 "nodeTopology: Invalid value: null: field is immutable\n"},
                /* A key and a value have the texts of the rules that they break. */
                {hfd_csi_storage_capacity_validate,
                 CAPACITY(",'nodeTopology':{'matchExpressions':[{'key':'" X64
                          "','operator':'In','values':['','" X64 "']}]}"),
                 NULL,
                 "nodeTopology.matchExpressions[0].key: Invalid value: \"" X64
                 "\": name part must be no more than 63 bytes\n"
                 "nodeTopology.matchExpressions[0].values[1]: Invalid value: \"" X64
                 "\": must be no more than 63 bytes\n"},
        };

        CHECK(cases);
}

/* ---- VolumeAttachments, CSIDrivers ---- */

#define ATTACHED(attacher, source)                                                                 \
        "{'spec':{'attacher':'" attacher "','nodeName':'n','source':{" source "}}}"
#define INLINE(members)                                                                            \
        ATTACHED("d", "'inlineVolumeSpec':{'accessModes':['ReadWriteOnce']," members "}")
#define OF_INLINE "spec.source.inlineVolumeSpec"
#define FOR_PODS  "may not be specified in the context of inline volumes\n"

static void test_an_attachment_is_refused(void **state) {
        static const struct rule_case cases[] = {
                {hfd_volume_attachment_validate,
                 ATTACHED("Disk.example.com", "'persistentVolumeName':'v'"), NULL, NULL},
                {hfd_volume_attachment_validate, ATTACHED("", "'persistentVolumeName':'-'"), NULL,
                 "spec.attacher: Required value\n"
                 "spec.source.persistentVolumeName: Invalid value: \"-\": " SUBDOMAIN},
                {hfd_volume_attachment_validate,
                 INLINE("'csi':{'driver':'d','volumeHandle':'h'},'volumeMode':'Filesystem',"
                        "'persistentVolumeReclaimPolicy':'Retain'"),
                 NULL, NULL},
                {hfd_volume_attachment_validate,
                 INLINE("'hostPath':{'path':'/a','type':''},'claimRef':{},'capacity':{'storage':"
                        "'1'},'nodeAffinity':{},'persistentVolumeReclaimPolicy':'Delete',"
                        "'storageClassName':'c','volumeMode':'Block'"),
                 NULL,
                 OF_INLINE ".claimRef: Forbidden: " FOR_PODS OF_INLINE
                           ".capacity: Forbidden: " FOR_PODS OF_INLINE
                           ".csi: Required value: has to be specified in the context of inline "
                           "volumes\n" OF_INLINE
                           ".persistentVolumeReclaimPolicy: Forbidden: may only be Retain in the "
                           "context of inline volumes\n" OF_INLINE
                           ".nodeAffinity: Forbidden: " FOR_PODS OF_INLINE
                           ".storageClassName: Forbidden: " FOR_PODS OF_INLINE
                           ".volumeMode: Forbidden: may not specify volumeMode other than "
                           "Filesystem in the context of inline volumes\n"},
                {hfd_volume_attachment_validate,
                 INLINE("'local':{'path':'/a'},'csi':{},'nodeAffinity':{}"), NULL,
                 OF_INLINE ".nodeAffinity: Forbidden: " FOR_PODS OF_INLINE
                           ".nodeAffinity: Required value: Local volume requires node "
                           "affinity\n" OF_INLINE
                           ".csi: Forbidden: may not specify more than 1 volume type\n"},
                {hfd_volume_attachment_validate,
                 ATTACHED("d", "'inlineVolumeSpec':{'csi':{'driver':'d'}}"), NULL,
                 OF_INLINE ".accessModes: Required value\n" OF_INLINE
                           ".csi.volumeHandle: Required value\n"},
                {hfd_volume_attachment_validate, ATTACHED("e", "'persistentVolumeName':'v'"),
                 ATTACHED("d", "'persistentVolumeName':'v'"),
                 "spec: Invalid value: {\"Attacher\":\"e\",\"Source\":{\"PersistentVolumeName\":"
                 "\"v\",\"InlineVolumeSpec\":null},\"NodeName\":\"n\"}: field is immutable\n"},
        };

        CHECK(cases);
}

static void test_a_driver_is_refused(void **state) {
        static const struct rule_case cases[] = {
                {hfd_csi_driver_validate, "{'spec':{'fsGroupPolicy':'None'}}", NULL, NULL},
                /* An empty policy is no absent one. */
                {hfd_csi_driver_validate, "{'spec':{'fsGroupPolicy':''}}", NULL,
                 "spec.fsGroupPolicy: Unsupported value: \"\": supported values: \"File\", "
                 "\"None\", \"ReadWriteOnceWithFSType\"\n"},
        };

        CHECK(cases);
}

static void test_an_audience_occurs_once(void **state) {
        static const struct rule_case cases[] = {
                {hfd_csi_driver_validate,
                 "{'spec':{'tokenRequests':[{},{'audience':'a','expirationSeconds':600}]}}", NULL,
                 NULL},
                {hfd_csi_driver_validate,
                 "{'spec':{'tokenRequests':[{},{},{'audience':'','expirationSeconds':1},"
                 "{'audience':'a','expirationSeconds':1}]}}",
                 NULL,
                 "spec.tokenRequests[1].audience: Duplicate value: \"\"\n"
                 "spec.tokenRequests[2].audience: Duplicate value: \"\"\n"
                 "spec.tokenRequests[3].expirationSeconds: Invalid value: 1: may not specify a "
                 "duration less than 10 minutes\n"},
        };

        CHECK(cases);
}

static void test_tokens_in_secrets_need_requests(void **state) {
        static const struct rule_case cases[] = {
                {hfd_csi_driver_validate,
                 "{'spec':{'serviceAccountTokenInSecrets':true,'tokenRequests':[{'audience':'a'}]}"
                 "}",
                 NULL, NULL},
                {hfd_csi_driver_validate, "{'spec':{'serviceAccountTokenInSecrets':false}}", NULL,
                 "spec.serviceAccountTokenInSecrets: Invalid value: false: "
                 "serviceAccountTokenInSecrets is set but no tokenRequests are specified\n"},
        };

        CHECK(cases);
}

int main(void) {
        const struct CMUnitTest tests[] = {
                cmocka_unit_test(test_topologies_are_refused),
                cmocka_unit_test(test_a_class_stays_as_it_is),
                cmocka_unit_test(test_the_driver_of_a_class_is_refused),
                cmocka_unit_test(test_too_many_parameters_have_one_cause),
                cmocka_unit_test(test_the_drivers_of_a_node_are_refused),
                cmocka_unit_test(test_what_a_csi_node_may_change),
                cmocka_unit_test(test_a_capacity_is_refused),
                cmocka_unit_test(test_an_attachment_is_refused),
                cmocka_unit_test(test_a_driver_is_refused),
                cmocka_unit_test(test_an_audience_occurs_once),
                cmocka_unit_test(test_tokens_in_secrets_need_requests),
        };

        return cmocka_run_group_tests(tests, NULL, NULL);
}

/* SPDX-License-Identifier: Apache-2.0 */
/* What Kubernetes refuses in volumes of pods, PersistentVolumes and claims is refused, with its
 * words. */
#undef NDEBUG
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <string.h>

#include <cmocka.h>

#include "base/json.h"
#include "base/json_index.h"
#include "server/resources/causes.h"
#include "server/resources/strategies/pod/rules/pod_validation.h"
#include "server/resources/workloads/workloads.h"

#include "rule_cases.h"

#define CHECK(cases) check_rule_cases(cases, sizeof cases / sizeof cases[0])
#define X16          "xxxxxxxxxxxxxxxx"
#define X64          X16 X16 X16 X16
#define SUBDOMAIN                                                                                  \
        "a lowercase RFC 1123 subdomain must consist of lower case alphanumeric characters, '-' "  \
        "or '.', and must start and end with an alphanumeric character (e.g. 'example.com', "      \
        "regex used for validation is '[a-z0-9]([-a-z0-9]*[a-z0-9])?(\\.[a-z0-9]([-a-z0-9]*"       \
        "[a-z0-9])?)*')\n"
#define LABEL                                                                                      \
        "a lowercase RFC 1123 label must consist of lower case alphanumeric characters or '-', "   \
        "and must start and end with an alphanumeric character (e.g. 'my-name',  or '123-abc', "   \
        "regex used for validation is '[a-z0-9]([-a-z0-9]*[a-z0-9])?')\n"

/* ---- sources ---- */

/* The rules of one volume of a pod, at the path "v". */
static void of_pod(const struct hf__json *object, const struct hf__json *old,
                   struct hfd_causes *causes) {
        hfd_volume_source_validate(object, hfd_text_of(object, "name"), "v", HFD_VOLUME_OF_POD,
                                   causes);
}

static void of_volume(const struct hf__json *object, const struct hf__json *old,
                      struct hfd_causes *causes) {
        hfd_volume_source_validate(object, "", "v", HFD_VOLUME_PERSISTENT, causes);
}

/* The same for both. */
#define BOTH(source, causes)                                                                       \
        {of_pod, "{" source "}", NULL, causes}, { of_volume, "{" source "}", NULL, causes }

static void test_a_source_needs_its_texts(void **state) {
        static const struct rule_case cases[] = {
                BOTH("", "v: Required value: must specify a volume type\n"),
                BOTH("'hostPath':{'path':'/a'},'nfs':{}",
                     "v.nfs: Forbidden: may not specify more than 1 volume type\n"),
                BOTH("'cephfs':{},'hostPath':{'path':'/a','type':'File'}",
                     "v.cephFS: Forbidden: may not specify more than 1 volume type\n"),
                BOTH("'hostPath':{}", "v.hostPath.path: Required value\n"),
                BOTH("'hostPath':{'path':'/a/../b','type':'X'}",
                     "v.hostPath.path: Invalid value: \"/a/../b\": must not contain '..'\n"
                     "v.hostPath.type: Unsupported value: \"X\": supported values: \"\", "
                     "\"BlockDevice\", \"CharDevice\", \"Directory\", \"DirectoryOrCreate\", "
                     "\"File\", \"FileOrCreate\", \"Socket\"\n"),
                BOTH("'gcePersistentDisk':{'pdName':'d'}", NULL),
                BOTH("'gcePersistentDisk':{'partition':256}",
                     "v.persistentDisk.pdName: Required value\n"
                     "v.persistentDisk.partition: Invalid value: 256: must be between 1 and 255, "
                     "inclusive\n"),
                BOTH("'awsElasticBlockStore':{'volumeID':'d','partition':255}", NULL),
                BOTH("'awsElasticBlockStore':{'partition':-1}",
                     "v.awsElasticBlockStore.volumeID: Required value\n"
                     "v.awsElasticBlockStore.partition: Invalid value: -1: must be between 1 and "
                     "255, inclusive\n"),
                BOTH("'nfs':{'server':'s','path':'/a'}", NULL),
                BOTH("'nfs':{'path':'a'}",
                     "v.nfs.server: Required value\n"
                     "v.nfs.path: Invalid value: \"a\": must be an absolute path\n"),
                BOTH("'glusterfs':{'endpoints':'e','path':'p'}", NULL),
                BOTH("'glusterfs':{}", "v.glusterfs.endpoints: Required value\n"
                                       "v.glusterfs.path: Required value\n"),
                BOTH("'flocker':{'datasetUUID':'u'}", NULL),
                BOTH("'flocker':{}",
                     "v.flocker: Required value: one of datasetName and datasetUUID is required\n"),
                BOTH("'flocker':{'datasetUUID':'u','datasetName':'a/b'}",
                     "v.flocker: Invalid value: \"resource\": datasetName and datasetUUID can not "
                     "be specified simultaneously\n"
                     "v.flocker.datasetName: Invalid value: \"a/b\": must not contain '/'\n"),
                BOTH("'rbd':{'monitors':['m'],'image':'i'}", NULL),
                BOTH("'rbd':{}", "v.rbd.monitors: Required value\nv.rbd.image: Required value\n"),
                BOTH("'cephfs':{'monitors':['m']}", NULL),
                BOTH("'cephfs':{}", "v.cephfs.monitors: Required value\n"),
                BOTH("'cinder':{}", "v.cinder.volumeID: Required value\n"),
                BOTH("'vsphereVolume':{'volumePath':'p'}", NULL),
                BOTH("'vsphereVolume':{}", "v.vsphereVolume.volumePath: Required value\n"),
                BOTH("'photonPersistentDisk':{'pdID':'p'}", NULL),
                BOTH("'photonPersistentDisk':{}", "v.photonPersistentDisk.pdID: Required value\n"),
                BOTH("'portworxVolume':{'volumeID':'p'}", NULL),
                BOTH("'portworxVolume':{}", "v.portworxVolume.volumeID: Required value\n"),
                BOTH("'scaleIO':{'gateway':'g','system':'s','volumeName':'v'}", NULL),
                BOTH("'scaleIO':{}",
                     "v.scaleIO.gateway: Required value\nv.scaleIO.system: Required value\n"
                     "v.scaleIO.volumeName: Required value\n"),
                BOTH("'azureFile':{'secretName':'s','shareName':'s'}", NULL),
                BOTH("'azureFile':{}", "v.azureFile.secretName: Required value\n"
                                       "v.azureFile.shareName: Required value\n"),
                BOTH("'flexVolume':{'driver':'d','options':{'a':'b','example.com/k8s.io':'c',"
                     "'ak8s.io':'d'}}",
                     NULL),
                BOTH("'flexVolume':{'options':{'K8S.io/a':'b','x.kubernetes.io':'c'}}",
                     "v.flexVolume.driver: Required value\n"
                     "v.flexVolume.options[K8S.io/a]: Invalid value: \"K8S.io/a\": kubernetes.io "
                     "and k8s.io namespaces are reserved\n"
                     "v.flexVolume.options[x.kubernetes.io]: Invalid value: \"x.kubernetes.io\": "
                     "kubernetes.io and k8s.io namespaces are reserved\n"),
                BOTH("'storageos':{'volumeName':'v','volumeNamespace':'n'}", NULL),
                BOTH("'storageos':{'volumeNamespace':'-','secretRef':{'namespace':'n'}}",
                     "v.storageos.volumeName: Required value\n"
                     "v.storageos.volumeNamespace: Invalid value: \"-\": " LABEL
                     "v.storageos.secretRef.name: Required value\n"),
        };

        CHECK(cases);
}

static void test_an_azure_disk_is_refused(void **state) {
        static const struct rule_case cases[] = {
                BOTH("'azureDisk':{'diskName':'d','diskURI':'https://a','kind':'Shared',"
                     "'cachingMode':'None'}",
                     NULL),
                BOTH("'azureDisk':{'diskName':'d','diskURI':'/subscriptions/a','kind':'Managed'}",
                     NULL),
                BOTH("'azureDisk':{'kind':'Dedicated'}",
                     "v.azureDisk.diskName: Required value\n"
                     "v.azureDisk.diskURI: Required value\n"
                     "v.azureDisk.diskURI: Unsupported value: \"\": supported values: "
                     "\"https://{account-name}.blob.core.windows.net/{container-name}/{disk-name}"
                     ".vhd\"\n"),
                BOTH("'azureDisk':{'diskName':'d','diskURI':'https://a','kind':'Managed'}",
                     "v.azureDisk.diskURI: Unsupported value: \"https://a\": supported values: "
                     "\"/subscriptions/{sub-id}/resourcegroups/{group-name}/providers/microsoft."
                     "compute/disks/{disk-id}\"\n"),
                BOTH("'azureDisk':{'diskName':'d','diskURI':'https://a','kind':'X','cachingMode':"
                     "''}",
                     "v.azureDisk.cachingMode: Unsupported value: \"\": supported values: "
                     "\"None\", \"ReadOnly\", \"ReadWrite\"\n"
                     "v.azureDisk.kind: Unsupported value: \"X\": supported values: "
                     "\"Dedicated\", \"Managed\", \"Shared\"\n"),
        };

        CHECK(cases);
}

#define PAIRS             "must be a host:port pair or multiple pairs separated by commas\n"
#define QUOBYTE(registry) "'quobyte':{'volume':'v','registry':'" registry "'}"

static void test_a_registry_of_quobyte_is_refused(void **state) {
        static const struct rule_case cases[] = {
                BOTH(QUOBYTE("a:1"), NULL),
                BOTH(QUOBYTE("a:1,[::1]:2"), NULL),
                BOTH(QUOBYTE(":"), NULL),
                BOTH(QUOBYTE(""), "v.quobyte.registry: Required value: " PAIRS),
                BOTH(QUOBYTE("a"), "v.quobyte.registry: Invalid value: \"a\": " PAIRS),
                BOTH(QUOBYTE("a:b:c"), "v.quobyte.registry: Invalid value: \"a:b:c\": " PAIRS),
                BOTH(QUOBYTE("[a"), "v.quobyte.registry: Invalid value: \"[a\": " PAIRS),
                BOTH(QUOBYTE("[a]"), "v.quobyte.registry: Invalid value: \"[a]\": " PAIRS),
                BOTH(QUOBYTE("[a]b:1"), "v.quobyte.registry: Invalid value: \"[a]b:1\": " PAIRS),
                BOTH(QUOBYTE("a]:1"), "v.quobyte.registry: Invalid value: \"a]:1\": " PAIRS),
                BOTH(QUOBYTE("a:[1"), "v.quobyte.registry: Invalid value: \"a:[1\": " PAIRS),
                BOTH(QUOBYTE("[a]:1]"), "v.quobyte.registry: Invalid value: \"[a]:1]\": " PAIRS),
                BOTH(QUOBYTE("a:1,,"), "v.quobyte.registry: Invalid value: \"a:1,,\": " PAIRS
                                       "v.quobyte.registry: Invalid value: \"a:1,,\": " PAIRS),
                BOTH("'quobyte':{'registry':'a','tenant':'" X64 "x'}",
                     "v.quobyte.tenant: Required value: must be a UUID and may not exceed a length "
                     "of 64 characters\n"
                     "v.quobyte.volume: Required value\n"),
        };

        CHECK(cases);
}

static void test_a_disk_of_fibre_channel_is_refused(void **state) {
        static const struct rule_case cases[] = {
                BOTH("'fc':{'targetWWNs':['a'],'lun':0}", NULL),
                BOTH("'fc':{'wwids':['a'],'lun':256}", NULL),
                BOTH("'fc':{}", "v.fc.targetWWNs: Required value: must specify either targetWWNs "
                                "or wwids, but not both\n"),
                BOTH("'fc':{'targetWWNs':['a','b'],'wwids':['c'],'lun':1}",
                     "v.fc.targetWWNs: Invalid value: [\"a\",\"b\"]: targetWWNs and wwids can not "
                     "be specified simultaneously\n"),
                BOTH("'fc':{'targetWWNs':['a']}",
                     "v.fc.lun: Required value: lun is required if targetWWNs is specified\n"),
                BOTH("'fc':{'targetWWNs':['a'],'lun':256}",
                     "v.fc.lun: Invalid value: 256: must be between 0 and 255, inclusive\n"),
        };

        CHECK(cases);
}

#define IQN "'iqn':'iqn.2001-04.com.example:a'"

static void test_a_disk_of_iscsi_is_refused(void **state) {
        static const struct rule_case cases[] = {
                BOTH("'iscsi':{'targetPortal':'p'," IQN ",'lun':255}", NULL),
                BOTH("'iscsi':{'lun':256,'chapAuthSession':true}",
                     "v.iscsi.targetPortal: Required value\nv.iscsi.iqn: Required value\n"
                     "v.iscsi.lun: Invalid value: 256: must be between 0 and 255, inclusive\n"
                     "v.iscsi.secretRef: Required value\n"),
                BOTH("'iscsi':{'targetPortal':'p'," IQN ",'chapAuthDiscovery':true}",
                     "v.iscsi.secretRef: Required value\n"),
                {of_pod, "{'iscsi':{'targetPortal':'p'," IQN ",'secretRef':{}}}", NULL, NULL},
                {of_volume, "{'iscsi':{'targetPortal':'p'," IQN ",'secretRef':{}}}", NULL,
                 "v.iscsi.secretRef.name: Required value\n"},
                {of_pod, "{'iscsi':{'targetPortal':'p','iqn':'x','initiatorName':'y'}}", NULL,
                 "v.iscsi.iqn: Invalid value: \"x\": must be valid format starting with iqn, eui, "
                 "or naa\n"
                 "v.iscsi.initiatorname: Invalid value: \"y\": must be valid format starting with "
                 "iqn, eui, or naa\n"},
                {of_volume,
                 "{'iscsi':{'targetPortal':'p','iqn':'x',"
                 "'initiatorName':''}}",
                 NULL,
                 "v.iscsi.iqn: Invalid value: \"x\": must be valid format\n"
                 "v.iscsi.initiatorname: Invalid value: \"\": must be valid format\n"},
        };

        CHECK(cases);
}

static void test_names_of_targets(void **state) {
        static const char *const good[] = {"iqn.2001-04.com.example:a.b",
                                           "iqn.2001-04.a:b:c",
                                           "iqn iqn.2001-04.a:b",
                                           "iqn.2001-04.iqn.2001-04.a:b",
                                           "iqn;iqn.2001-04.a:b",
                                           ("eui." X16),
                                           "euiX" X16,
                                           "eui\xc3\xa4" X16,
                                           "naa." X16 X16},
                                 *const bad[] = {"iqn",
                                                 "iqn.2001-04.a",
                                                 "iqn.2001-04.:a",
                                                 "iqn.2001-04.a:",
                                                 "iqn.201-04.a:b",
                                                 "iqn.2001-4.a:b",
                                                 "iqn.2001-04.a_b:c",
                                                 "iqn.2001-04.a:b c",
                                                 "iqn.2001-04.a:b;c",
                                                 "iqn.2001-04.a:b|iqn.2001-04.c",
                                                 "eui",
                                                 ("eui." X16 "x"),
                                                 "eui.xxxxxxxxxxxxxxx",
                                                 "eui.xxxxxxxxxxxxxxx-",
                                                 ("naa." X16),
                                                 "Iqn.2001-04.a:b"};
        struct hf__json *volume = parse_quoted_json("{'iscsi':{'targetPortal':'p'}}");
        size_t n_good = sizeof good / sizeof good[0], n_bad = sizeof bad / sizeof bad[0];
        struct hfd_causes causes;

        for (size_t i = 0; i < n_good + n_bad; i++) {
                const char *name = i < n_good ? good[i] : bad[i - n_good];
                assert_int_equal(hf__json_set_string(volume, "iscsi.iqn", name), 0);
                hfd_causes_init(&causes);
                hfd_volume_source_validate(volume, "", "v", HFD_VOLUME_OF_POD, &causes);
                if ((causes.n == 0) != (i < n_good))
                        fail_msg("%s", name);
        }
        hf__json_free(volume);
}

static void test_a_source_of_one_kind_of_volume_is_refused(void **state) {
        static const struct rule_case cases[] = {
                /* of pods */
                {of_pod, "{'emptyDir':{'sizeLimit':'1Gi'}}", NULL, NULL},
                {of_pod, "{'emptyDir':{'sizeLimit':'-1'}}", NULL,
                 "v.emptyDir.sizeLimit: Forbidden: SizeLimit field must be a valid resource "
                 "quantity\n"},
                {of_pod, "{'gitRepo':{'repository':'r','directory':'..data'}}", NULL, NULL},
                {of_pod, "{'gitRepo':{'directory':'/a/..'}}", NULL,
                 "v.gitRepo.repository: Required value\n"
                 "v.gitRepo.directory: Invalid value: \"/a/..\": must be a relative path\n"
                 "v.gitRepo.directory: Invalid value: \"/a/..\": must not contain '..'\n"},
                {of_pod, "{'secret':{},'downwardAPI':{}}", NULL,
                 "v.secret.secretName: Required value\n"
                 "v.downwarAPI: Forbidden: may not specify more than 1 volume type\n"},
                /* The causes do not say which of the files is meant. */
                {of_pod, "{'downwardAPI':{'defaultMode':-1,'items':[{'path':'/a','mode':512}]}}",
                 NULL,
                 "v.downwardAPI.defaultMode: Invalid value: -1: must be a number between 0 and "
                 "0777 (octal), both inclusive\n"
                 "v.downwardAPI.path: Invalid value: \"/a\": must be a relative path\n"
                 "v.downwardAPI: Required value: one of fieldRef and resourceFieldRef is "
                 "required\n"
                 "v.downwardAPI.mode: Invalid value: 512: must be a number between 0 and 0777 "
                 "(octal), both inclusive\n"},
                {of_pod, "{'persistentVolumeClaim':{}}", NULL,
                 "v.persistentVolumeClaim.claimName: Required value\n"},
                {of_pod, "{'image':{'reference':'r','pullPolicy':'Always'}}", NULL, NULL},
                {of_pod, "{'image':{'pullPolicy':'X'}}", NULL,
                 "v.image.reference: Required value\n"
                 "v.image.pullPolicy: Unsupported value: \"X\": supported values: \"Always\", "
                 "\"IfNotPresent\", \"Never\"\n"},
                {of_pod, "{'csi':{'driver':'Disk.example.com'}}", NULL, NULL},
                {of_pod, "{'csi':{'nodePublishSecretRef':{}}}", NULL,
                 "v.csi.driver: Required value\n"
                 "v.csi.nodePublishSecretRef.name: Required value\n"},
                {of_pod, "{'csi':{'driver':'-','nodePublishSecretRef':{'name':'-'}}}", NULL,
                 "v.csi.driver: Invalid value: \"-\": " SUBDOMAIN
                 "v.csi.name: Invalid value: \"-\": " SUBDOMAIN},
                {of_pod, "{'csi':{'driver':'" X64 "'}}", NULL,
                 "v.csi.driver: Too long: may not be more than 63 bytes\n"},
                {of_pod, "{'cinder':{'volumeID':'v','secretRef':{}}}", NULL,
                 "v.cinder.secretRef.name: Required value\n"},
                {of_pod, "{'storageos':{'volumeName':'v','secretRef':{'name':'s'}}}", NULL, NULL},
                /* of PersistentVolumes */
                {of_volume, "{'cinder':{'volumeID':'v','secretRef':{'name':'s'}}}", NULL,
                 "v.cinder.secretRef.namespace: Required value\n"},
                {of_volume, "{'storageos':{'volumeName':'v','secretRef':{'name':'s'}}}", NULL,
                 "v.storageos.secretRef.namespace: Required value\n"},
                {of_volume, "{'glusterfs':{'endpoints':'e','path':'p','endpointsNamespace':''}}",
                 NULL,
                 "v.glusterfs.endpointsNamespace: Invalid value: \"\": if the endpointnamespace is "
                 "set, it must be a valid namespace name\n"},
                {of_volume, "{'glusterfs':{'endpoints':'e','path':'p','endpointsNamespace':'-'}}",
                 NULL, "v.glusterfs.endpointsNamespace: Invalid value: \"-\": " LABEL},
                {of_volume, "{'azureFile':{'secretName':'s','shareName':'s','secretNamespace':''}}",
                 NULL, "v.azureFile.secretNamespace: Required value\n"},
                {of_volume, "{'csi':{'driver':'d','volumeHandle':'h','nodeStageSecretRef':{}}}",
                 NULL, NULL},
                {of_volume,
                 "{'csi':{'controllerPublishSecretRef':{},'controllerExpandSecretRef':{'name':'-',"
                 "'namespace':'-'},'nodePublishSecretRef':{'name':'s','namespace':'n'},"
                 "'nodeExpandSecretRef':{'name':'s'}}}",
                 NULL,
                 "v.csi.driver: Required value\nv.csi.volumeHandle: Required value\n"
                 "v.csi.controllerPublishSecretRef.name: Required value\n"
                 "v.csi.controllerPublishSecretRef.namespace: Required value\n"
                 "v.csi.controllerExpandSecretRef.name: Invalid value: \"-\": " SUBDOMAIN
                 "v.csi.controllerExpandSecretRef.namespace: Invalid value: \"-\": " LABEL
                 "v.csi.nodeExpandSecretRef.namespace: Required value\n"},
        };

        CHECK(cases);
}

static void test_a_local_volume_is_refused(void **state) {
        static const struct rule_case cases[] = {
                {of_volume, "{'local':{'path':'/a'},'nodeAffinity':{}}", NULL, NULL},
                {of_volume, "{'local':{},'storageos':{}}", NULL,
                 "v.local.path: Required value\n"
                 "v.nodeAffinity: Required value: Local volume requires node affinity\n"
                 "v.storageos: Forbidden: may not specify more than 1 volume type\n"},
                {of_volume, "{'hostPath':{'path':'/a'},'local':{'path':'/a'}}", NULL,
                 "v.local: Forbidden: may not specify more than 1 volume type\n"},
                {of_volume, "{'local':{'path':'/..'},'nodeAffinity':{}}", NULL,
                 "v.local.path: Invalid value: \"/..\": must not contain '..'\n"},
        };

        CHECK(cases);
}

#define EPHEMERAL(metadata)                                                                        \
        "{'ephemeral':{'volumeClaimTemplate':{'metadata':{" metadata                               \
        "},'spec':{'accessModes':['ReadWriteOnce'],'resources':{'requests':{'storage':'1'}}}}}}"

static void test_the_template_of_a_claim_is_refused(void **state) {
        static const struct rule_case cases[] = {
                {of_pod,
                 EPHEMERAL("'labels':{'a':'b'},'annotations':{'c':'d'},'name':'',"
                           "'generation':0,'finalizers':[]"),
                 NULL, NULL},
                {of_pod, "{'ephemeral':{}}", NULL,
                 "v.ephemeral.volumeClaimTemplate: Required value\n"},
                {of_pod, EPHEMERAL("'deletionGracePeriodSeconds':0"), NULL,
                 "v.ephemeral.volumeClaimTemplate.metadata.deletionGracePeriodSeconds: Forbidden: "
                 "cannot be set\n"},
                {of_pod, EPHEMERAL("'uid':'u','name':'n','finalizers':['f'],'generation':1"), NULL,
                 "v.ephemeral.volumeClaimTemplate.metadata.name: Forbidden: cannot be set\n"
                 "v.ephemeral.volumeClaimTemplate.metadata.uID: Forbidden: cannot be set\n"
                 "v.ephemeral.volumeClaimTemplate.metadata.generation: Forbidden: cannot be set\n"
                 "v.ephemeral.volumeClaimTemplate.metadata.finalizers: Forbidden: cannot be set\n"},
                /* The selector stands between a missing mode and a wrong one. */
                {of_pod,
                 "{'ephemeral':{'volumeClaimTemplate':{'spec':{'accessModes':['X'],'selector':{"
                 "'matchExpressions':[{'key':'a','operator':'X'}]},'resources':{'requests':{"
                 "'storage':'1'}}}}}}",
                 NULL,
                 "v.ephemeral.volumeClaimTemplate.spec.selector.matchExpressions[0].operator: "
                 "Invalid value: \"X\": not a valid selector operator\n"
                 "v.ephemeral.volumeClaimTemplate.spec.accessModes: Unsupported value: \"X\": "
                 "supported values: \"ReadOnlyMany\", \"ReadWriteMany\", \"ReadWriteOnce\", "
                 "\"ReadWriteOncePod\"\n"},
                /* An empty mode is no absent one. */
                {of_pod,
                 "{'ephemeral':{'volumeClaimTemplate':{'spec':{'accessModes':['ReadWriteOnce'],"
                 "'resources':{'requests':{'storage':'1'}},'volumeMode':''}}}}",
                 NULL,
                 "v.ephemeral.volumeClaimTemplate.spec.volumeMode: Unsupported value: \"\": "
                 "supported values: \"Block\", \"Filesystem\"\n"},
                {of_pod, "{'ephemeral':{'volumeClaimTemplate':{'spec':{}}}}", NULL,
                 "v.ephemeral.volumeClaimTemplate.spec.accessModes: Required value: at least 1 "
                 "access mode is required\n"
                 "v.ephemeral.volumeClaimTemplate.spec.resources[storage]: Required value\n"},
        };

        CHECK(cases);
}

/* ---- volumes of pods ---- */

static void of_spec(const struct hf__json *object, const struct hf__json *old,
                    struct hfd_causes *causes) {
        struct hf__json_index volumes;

        hfd_volumes_validate(object, "spec", true, &volumes, causes);
        hf__json_index_done(&volumes);
}

static void of_template(const struct hf__json *object, const struct hf__json *old,
                        struct hfd_causes *causes) {
        struct hf__json_index volumes;

        hfd_volumes_validate(object, "spec", false, &volumes, causes);
        hf__json_index_done(&volumes);
}

#define DISK(name, initiator)                                                                      \
        "{'volumes':[{'name':'" name "','iscsi':{'targetPortal':'" X16 X16 X16 "'," IQN initiator  \
        "}}]}"

static void test_volumes_of_a_pod_are_refused(void **state) {
        static const struct rule_case cases[] = {
                {of_spec, DISK(X16, ""), NULL, NULL},
                {of_spec, DISK("xxxxxxxxxxxxxxx", ",'initiatorName':'iqn.2001-04.a:b'"), NULL,
                 NULL},
                {of_spec, DISK(X16, ",'initiatorName':'iqn.2001-04.a:b'"), NULL,
                 "spec.volumes[0].name: Invalid value: \"" X16
                 "\": Total length of <volume name>:<iscsi.targetPortal> must be under 64 "
                 "characters if iscsi.initiatorName is specified.\n"},
                {of_spec, "{'volumes':[{'name':'a','emptyDir':{}},{'name':'a','emptyDir':{}}]}",
                 NULL, "spec.volumes[1].name: Duplicate value: \"a\"\n"},
                /* The name of a volume with a mistake is free. */
                {of_spec,
                 "{'volumes':[{'name':'a'},{'name':'a','emptyDir':{}},{'name':'a','emptyDir':{}},"
                 "{'name':'b','emptyDir':{}},{'name':'b'}]}",
                 NULL,
                 "spec.volumes[0]: Required value: must specify a volume type\n"
                 "spec.volumes[2].name: Duplicate value: \"a\"\n"
                 "spec.volumes[4]: Required value: must specify a volume type\n"
                 "spec.volumes[4].name: Duplicate value: \"b\"\n"},
                /* A long name of an iSCSI volume stands between the causes of the sources before
                 * and behind it. */
                {of_spec,
                 "{'volumes':[{'name':'" X16 "','nfs':{'server':'s','path':'/'},'iscsi':{"
                 "'targetPortal':'" X16 X16 X16 "'," IQN ",'initiatorName':''},'fc':{}}]}",
                 NULL,
                 "spec.volumes[0].iscsi: Forbidden: may not specify more than 1 volume type\n"
                 "spec.volumes[0].name: Invalid value: \"" X16
                 "\": Total length of <volume name>:<iscsi.targetPortal> must be under 64 "
                 "characters if iscsi.initiatorName is specified.\n"
                 "spec.volumes[0].fc: Forbidden: may not specify more than 1 volume type\n"},
                {of_spec,
                 "{'volumes':[{'name':'a','image':{'reference':'r','pullPolicy':'Never'}}]}", NULL,
                 NULL},
                /* Without its image the volume does not count, so its name is free. */
                {of_spec,
                 "{'volumes':[{'name':'a','image':{}},{'name':'a','emptyDir':{},'image':{}},"
                 "{'name':'a','emptyDir':{}}]}",
                 NULL,
                 "spec.volumes[0].image.reference: Required value\n"
                 "spec.volumes[0].image.pullPolicy: Required value\n"
                 "spec.volumes[1].image: Forbidden: may not specify more than 1 volume type\n"},
                {of_template, "{'volumes':[{'name':'a','image':{'pullPolicy':'Never'}}]}", NULL,
                 NULL},
        };

        CHECK(cases);
}

/* ---- PersistentVolumes ---- */

#define VOLUME_OF(policy, members)                                                                 \
        "{'metadata':{'name':'" X16 "'},'spec':{'accessModes':['ReadWriteOnce'],"                  \
        "'capacity':{'storage':'1'},'persistentVolumeReclaimPolicy':'" policy                      \
        "','volumeMode':'Filesystem'," members "}}"
#define VOLUME(members)       VOLUME_OF("Retain", members)
#define ON_NODES(expressions) "'nodeAffinity':{'required':{'nodeSelectorTerms':[" expressions "]}}"
#define IN_ZONE(key, value)                                                                        \
        ON_NODES("{'matchExpressions':[{'key':'" key "','operator':'In','values':['" value "']}]"  \
                 "}")
#define PATH    "'hostPath':{'path':'/a','type':''}"
#define DRIVEN  "'csi':{'driver':'d','volumeHandle':'h'}"
#define OF_PV   "spec.nodeAffinity.required.nodeSelectorTerms"
#define GA_ONLY "field is immutable, except for updating from beta label to GA\n"
#define EXPANDED(secret)                                                                           \
        "'csi':{'driver':'d','volumeHandle':'h','controllerExpandSecretRef':{" secret "}}"
#define NO_OTHER_SOURCE                                                                            \
        "spec.persistentvolumesource: Forbidden: spec.persistentvolumesource is immutable after "  \
        "creation\n"

#define ON_NODE(path) VOLUME_OF("Recycle", "'hostPath':{'path':'" path "','type':''}")
#define NO_RECYCLING                                                                               \
        "spec.persistentVolumeReclaimPolicy: Forbidden: may not be 'recycle' for a hostPath "      \
        "mount of '/'\n"

static void test_a_volume_is_refused(void **state) {
        static const struct rule_case cases[] = {
                {hfd_persistent_volume_validate, VOLUME(PATH), NULL, NULL},
                {hfd_persistent_volume_validate, VOLUME("'local':{'path':'/a'}"), NULL,
                 "spec.nodeAffinity: Required value: Local volume requires node affinity\n"},
                {hfd_persistent_volume_validate,
                 VOLUME("'local':{'path':'/a'}," IN_ZONE("example.com/zone", "z")), NULL, NULL},
                {hfd_persistent_volume_validate, ON_NODE("//./"), NULL, NO_RECYCLING},
                {hfd_persistent_volume_validate, ON_NODE("/."), NULL, NO_RECYCLING},
                {hfd_persistent_volume_validate, ON_NODE("/../a/./.."), NULL,
                 "spec.hostPath.path: Invalid value: \"/../a/./..\": must not contain "
                 "'..'\n" NO_RECYCLING},
                {hfd_persistent_volume_validate, ON_NODE("/.a"), NULL, NULL},
                {hfd_persistent_volume_validate, ON_NODE("/./..."), NULL, NULL},
                {hfd_persistent_volume_validate, VOLUME_OF("Recycle", PATH), NULL, NULL},
                {hfd_persistent_volume_validate,
                 VOLUME("'iscsi':{'targetPortal':'" X16 X16 X16 "'," IQN
                        ",'initiatorName':'iqn.2001-04.a:b'}"),
                 NULL,
                 "spec.iscsi.targetportal: Invalid value: \"" X16 X16 X16
                 "\": Total length of <volume name>:<iscsi.targetPortal> must be under 64 "
                 "characters if iscsi.initiatorName is specified.\n"},
                /* Another rule than in pods: it stands with those of the source, and does not hold
                 * for a source that is refused. */
                {hfd_persistent_volume_validate,
                 VOLUME("'iscsi':{'targetPortal':'" X16 X16 X16
                        "','initiatorName':'iqn.2001-04.a:b'},'fc':{}"),
                 NULL,
                 "spec.iscsi.targetportal: Invalid value: \"" X16 X16 X16
                 "\": Total length of <volume name>:<iscsi.targetPortal> must be under 64 "
                 "characters if iscsi.initiatorName is specified.\n"
                 "spec.iscsi.iqn: Required value\n"
                 "spec.fc: Forbidden: may not specify more than 1 volume type\n"},
                {hfd_persistent_volume_validate,
                 VOLUME(PATH ",'iscsi':{'targetPortal':'" X16 X16 X16
                             "','initiatorName':'iqn.2001-04.a:b'}"),
                 NULL, "spec.iscsi: Forbidden: may not specify more than 1 volume type\n"},
                {hfd_persistent_volume_validate,
                 "{'spec':{'accessModes':['ReadWriteOnce'],'capacity':{'storage':'1'},"
                 "'persistentVolumeReclaimPolicy':'Retain','volumeMode':''," PATH "}}",
                 NULL,
                 "spec.volumeMode: Unsupported value: \"\": supported values: \"Block\", "
                 "\"Filesystem\"\n"},
                {hfd_persistent_volume_validate, VOLUME(DRIVEN ",'volumeAttributesClassName':'c'"),
                 NULL, NULL},
                {hfd_persistent_volume_validate, VOLUME(PATH ",'volumeAttributesClassName':''"),
                 NULL,
                 "spec.volumeAttributesClassName: Required value: an empty string is disallowed\n"
                 "spec.csi: Required value: has to be specified when using "
                 "volumeAttributesClassName\n"},
                {hfd_persistent_volume_validate, VOLUME(DRIVEN ",'volumeAttributesClassName':'-'"),
                 NULL, "spec.volumeAttributesClassName: Invalid value: \"-\": " SUBDOMAIN},
        };

        CHECK(cases);
}

#define OF_CAPACITY(capacity)                                                                      \
        "{'spec':{'accessModes':['ReadWriteOnce']," capacity                                       \
        "'persistentVolumeReclaimPolicy':'Retain','volumeMode':'Filesystem'," PATH "}}"
#define ONLY_STORAGE   ": supported values: \"storage\"\n"
#define NOT_POSITIVE   ": must be greater than zero\n"
#define NO_QUANTITY(n) "]: Invalid value: " #n ": must be a valid resource quantity\n"

static void test_the_capacity_of_a_volume_is_refused(void **state) {
        static const struct rule_case cases[] = {
                {hfd_persistent_volume_validate, OF_CAPACITY("'capacity':{'storage':'1Ki'},"), NULL,
                 NULL},
                {hfd_persistent_volume_validate, OF_CAPACITY(""), NULL,
                 "spec.capacity: Required value\n"
                 "spec.capacity: Unsupported value: null" ONLY_STORAGE},
                {hfd_persistent_volume_validate, OF_CAPACITY("'capacity':{},"), NULL,
                 "spec.capacity: Required value\n"
                 "spec.capacity: Unsupported value: {}" ONLY_STORAGE},
                {hfd_persistent_volume_validate, OF_CAPACITY("'capacity':{'storage':'0'},"), NULL,
                 "spec.capacity[storage]: Invalid value: \"0\"" NOT_POSITIVE},
                {hfd_persistent_volume_validate, OF_CAPACITY("'capacity':{'storage':'-1500m'},"),
                 NULL,
                 "spec.capacity[storage" NO_QUANTITY(
                         -2) "spec.capacity[storage]: Invalid value: \"-1500m\"" NOT_POSITIVE},
                {hfd_persistent_volume_validate,
                 OF_CAPACITY("'capacity':{'storage':'1','cpu':'-1','a.b/c':'0'},"), NULL,
                 "spec.capacity: Unsupported value: {\"a.b/c\":\"0\",\"cpu\":\"-1\",\"storage\":"
                 "\"1\"}" ONLY_STORAGE "spec.capacity[cpu" NO_QUANTITY(
                         -1) "spec.capacity[cpu]: Invalid value: \"-1\"" NOT_POSITIVE
                             "spec.capacity[a.b/c]: Invalid value: \"0\"" NOT_POSITIVE},
        };

        CHECK(cases);
}

static void test_the_nodes_of_a_volume_are_refused(void **state) {
        static const struct rule_case cases[] = {
                {hfd_persistent_volume_validate, VOLUME(PATH ",'nodeAffinity':{}"), NULL,
                 "spec.nodeAffinity.required: Required value: must specify required node "
                 "constraints\n"},
                {hfd_persistent_volume_validate, VOLUME(PATH "," ON_NODES("")), NULL,
                 OF_PV ": Required value: must have at least one node selector term\n"},
                {hfd_persistent_volume_validate,
                 VOLUME(PATH "," ON_NODES(
                         "{'matchExpressions':[{'key':'a','operator':'Exists'},{'key':'a',"
                         "'operator':'NotIn','values':['','b']},{'key':'a','operator':'Gt',"
                         "'values':['1']}],'matchFields':[{'key':'metadata.name','operator':'In',"
                         "'values':['n']}]},{}")),
                 NULL, NULL},
                {hfd_persistent_volume_validate,
                 VOLUME(PATH "," ON_NODES("{'matchExpressions':[{'key':'a','operator':'In'},"
                                          "{'key':'a','operator':'DoesNotExist','values':['b']},"
                                          "{'key':'a','operator':'Lt'},{'key':'-',"
                                          "'operator':'X','values':['-']}]}")),
                 NULL,
                 OF_PV "[0].matchExpressions[0].values: Required value: must be specified when "
                       "`operator` is 'In' or 'NotIn'\n" OF_PV
                       "[0].matchExpressions[1].values: Forbidden: may not be specified when "
                       "`operator` is 'Exists' or 'DoesNotExist'\n" OF_PV
                       "[0].matchExpressions[2].values: Required value: must be specified single "
                       "value when `operator` is 'Lt' or 'Gt'\n" OF_PV
                       "[0].matchExpressions[3].operator: Invalid value: \"X\": not a valid "
                       "selector operator\n" OF_PV
                       "[0].matchExpressions[3].key: Invalid value: \"-\": name part must consist "
                       "of alphanumeric characters, '-', '_' or '.', and must start and end with "
                       "an alphanumeric character (e.g. 'MyName',  or 'my.name',  or '123-abc', "
                       "regex used for validation is '([A-Za-z0-9][-A-Za-z0-9_.]*)?[A-Za-z0-9]')"
                       "\n" OF_PV
                       "[0].matchExpressions[3].values[0]: Invalid value: \"-\": a valid label "
                       "must be an empty string or consist of alphanumeric characters, '-', '_' or "
                       "'.', and must start and end with an alphanumeric character (e.g. "
                       "'MyValue',  or 'my_value',  or '12345', regex used for validation is "
                       "'(([A-Za-z0-9][-A-Za-z0-9_.]*)?[A-Za-z0-9])?')\n"},
                {hfd_persistent_volume_validate,
                 VOLUME(PATH "," ON_NODES("{'matchFields':[{'key':'x','operator':'Exists'},"
                                          "{'key':'metadata.name','operator':'In','values':['-',"
                                          "'b']}]}")),
                 NULL,
                 OF_PV "[0].matchFields[0].operator: Invalid value: \"Exists\": not a valid "
                       "selector operator\n" OF_PV
                       "[0].matchFields[0].key: Invalid value: \"x\": not a valid field selector "
                       "key\n" OF_PV
                       "[0].matchFields[1].values: Required value: must be only one value when "
                       "`operator` is 'In' or 'NotIn' for node field selector\n" OF_PV
                       "[0].matchFields[1].values[0]: Invalid value: \"-\": " SUBDOMAIN},
        };

        CHECK(cases);
}

static void test_what_a_volume_may_change(void **state) {
        static const struct rule_case cases[] = {
                {hfd_persistent_volume_validate, VOLUME(PATH "," IN_ZONE("zone", "z")),
                 VOLUME(PATH), NULL},
                {hfd_persistent_volume_validate, VOLUME(PATH "," IN_ZONE("zone", "y")),
                 VOLUME(PATH "," IN_ZONE("zone", "z")),
                 "nodeAffinity: Invalid value: {\"Required\":{\"NodeSelectorTerms\":[{"
                 "\"MatchExpressions\":[{\"Key\":\"zone\",\"Operator\":\"In\",\"Values\":[\"y\"]}]"
                 ",\"MatchFields\":null}]}}: " GA_ONLY},
                {hfd_persistent_volume_validate, VOLUME(PATH),
                 VOLUME(PATH "," IN_ZONE("zone", "z")),
                 "nodeAffinity: Invalid value: null: " GA_ONLY},
                {hfd_persistent_volume_validate,
                 VOLUME(PATH "," IN_ZONE("topology.kubernetes.io/zone", "z")),
                 VOLUME(PATH "," IN_ZONE("failure-domain.beta.kubernetes.io/zone", "z")), NULL},
                {hfd_persistent_volume_validate,
                 VOLUME(PATH "," IN_ZONE("kubernetes.io/os", "z") ",'storageClassName':'c'"),
                 VOLUME(PATH "," IN_ZONE("beta.kubernetes.io/os", "z")), NULL},
                {hfd_persistent_volume_validate,
                 VOLUME(PATH "," IN_ZONE("topology.kubernetes.io/region", "z")),
                 VOLUME(PATH "," IN_ZONE("failure-domain.beta.kubernetes.io/zone", "z")),
                 "nodeAffinity: Invalid value: {\"Required\":{\"NodeSelectorTerms\":[{"
                 "\"MatchExpressions\":[{\"Key\":\"topology.kubernetes.io/region\",\"Operator\":"
                 "\"In\",\"Values\":[\"z\"]}],\"MatchFields\":null}]}}: " GA_ONLY},
                {hfd_persistent_volume_validate,
                 VOLUME(PATH "," IN_ZONE("beta.kubernetes.io/os", "z") ",'storageClassName':'c'"),
                 VOLUME(PATH "," IN_ZONE("beta.kubernetes.io/os", "z")), NULL},
                /* A source, and a value of a label, that were stored before may stay. */
                {hfd_persistent_volume_validate, VOLUME("'nfs':{},'claimRef':{'name':'c'}"),
                 VOLUME("'nfs':{}"), NULL},
                {hfd_persistent_volume_validate,
                 VOLUME(PATH "," IN_ZONE("zone", "-") ",'storageClassName':'c'"),
                 VOLUME(PATH "," IN_ZONE("zone", "-")), NULL},
                /* So may nodes, and a class, which can be neither mended nor taken away. */
                {hfd_persistent_volume_validate,
                 VOLUME(PATH ",'nodeAffinity':{},'claimRef':{'name':'c'}"),
                 VOLUME(PATH ",'nodeAffinity':{}"), NULL},
                {hfd_persistent_volume_validate,
                 VOLUME(PATH "," ON_NODES("") ",'claimRef':{'name':'c'}"),
                 VOLUME(PATH "," ON_NODES("")), NULL},
                {hfd_persistent_volume_validate,
                 VOLUME(PATH ",'volumeAttributesClassName':'c','claimRef':{'name':'c'}"),
                 VOLUME(PATH ",'volumeAttributesClassName':'c'"), NULL},
                {hfd_persistent_volume_validate, VOLUME(PATH ",'nodeAffinity':{}"), VOLUME(PATH),
                 "spec.nodeAffinity.required: Required value: must specify required node "
                 "constraints\n"},
                {hfd_persistent_volume_validate, VOLUME(PATH ",'volumeAttributesClassName':'c'"),
                 VOLUME(PATH),
                 "spec.csi: Required value: has to be specified when using "
                 "volumeAttributesClassName\n"},
                {hfd_persistent_volume_validate, VOLUME(DRIVEN),
                 VOLUME(DRIVEN ",'volumeAttributesClassName':'c'"),
                 "spec.volumeAttributesClassName: Forbidden: update from non-nil value to nil is "
                 "forbidden\n"},
                {hfd_persistent_volume_validate, VOLUME(DRIVEN ",'volumeAttributesClassName':'d'"),
                 VOLUME(DRIVEN ",'volumeAttributesClassName':'c'"), NULL},
        };

        CHECK(cases);
}

static void test_a_volume_gets_a_secret_for_its_expansion(void **state) {
        static const struct rule_case cases[] = {
                {hfd_persistent_volume_validate, VOLUME(EXPANDED("'name':'s','namespace':'n'")),
                 VOLUME(DRIVEN), NULL},
                {hfd_persistent_volume_validate, VOLUME(EXPANDED("'name':''")), VOLUME(DRIVEN),
                 "spec.csi.controllerExpandSecretRef.name: Required value\n"
                 "spec.csi.controllerExpandSecretRef.namespace: Required value\n"},
                {hfd_persistent_volume_validate, VOLUME(EXPANDED("'name':'s','namespace':'n'")),
                 VOLUME(EXPANDED("'name':'t','namespace':'n'")), NO_OTHER_SOURCE},
                {hfd_persistent_volume_validate, VOLUME(DRIVEN),
                 VOLUME(EXPANDED("'name':'t','namespace':'n'")), NO_OTHER_SOURCE},
                /* One that was stored before may stay. */
                {hfd_persistent_volume_validate,
                 VOLUME(EXPANDED("'name':''") ",'claimRef':{'name':'c'}"),
                 VOLUME(EXPANDED("'name':''")), NULL},
        };

        CHECK(cases);
}

/* Another program may have stored such a spec. */
static void test_an_old_spec_may_have_any_form(void **state) {
        static const struct rule_case cases[] = {
                {hfd_persistent_volume_validate, VOLUME(PATH), "{'spec':[1]}",
                 NO_OTHER_SOURCE "volumeMode: Invalid value: \"Filesystem\": field is "
                                 "immutable\n"},
                {hfd_persistent_volume_validate, VOLUME("'claimRef':{'name':'c'}"), "{'spec':[1]}",
                 "volumeMode: Invalid value: \"Filesystem\": field is immutable\n"},
                {hfd_persistent_volume_validate, VOLUME(PATH), "{'spec':'a'}",
                 NO_OTHER_SOURCE "volumeMode: Invalid value: \"Filesystem\": field is "
                                 "immutable\n"},
        };

        CHECK(cases);
}

/* ---- claims ---- */

#define CLAIM_IN(phase, members)                                                                   \
        "{'spec':{'accessModes':['ReadWriteOnce'],'resources':{'requests':{'storage':'1'}}"        \
        "" members "},'status':{" phase "}}"
#define CLAIM(members)          CLAIM_IN("", members)
#define FROM(group, kind, more) "{'apiGroup':'" group "','kind':'" kind "','name':'n'" more "}"
#define SNAPSHOT                FROM("snapshot.storage.k8s.io", "VolumeSnapshot", "")
#define OF_CLAIM                "{'kind':'PersistentVolumeClaim','name':'n'}"
#define WITH                    "'phase':'Bound','currentVolumeAttributesClassName':'c'"

static void test_where_a_claim_gets_its_data_from(void **state) {
        static const struct rule_case cases[] = {
                {hfd_claim_validate, CLAIM(",'dataSource':" SNAPSHOT ",'dataSourceRef':" SNAPSHOT),
                 NULL, NULL},
                {hfd_claim_validate, CLAIM(",'dataSource':" OF_CLAIM ",'dataSourceRef':" OF_CLAIM),
                 NULL, NULL},
                {hfd_claim_validate, CLAIM(",'dataSource':{}"), NULL,
                 "spec.dataSource.name: Required value\nspec.dataSource.kind: Required value\n"
                 "spec.dataSource: Invalid value: \"\": must be 'PersistentVolumeClaim' when "
                 "referencing the default apiGroup\n"},
                {hfd_claim_validate, CLAIM(",'dataSourceRef':" FROM("-", "K", "")), NULL,
                 "spec.dataSourceRef.apiGroup: Invalid value: \"-\": " SUBDOMAIN},
                {hfd_claim_validate, CLAIM(",'dataSourceRef':" FROM("a", "K", ",'namespace':'-'")),
                 NULL, "spec.dataSourceRef.namespace: Invalid value: \"-\": " LABEL},
                {hfd_claim_validate,
                 CLAIM(",'dataSource':" SNAPSHOT ",'dataSourceRef':" FROM("a", "K", "")), NULL,
                 "spec: Invalid value: {}: must match dataSourceRef\n"},
                {hfd_claim_validate,
                 CLAIM(",'dataSource':" OF_CLAIM
                       ",'dataSourceRef':" FROM("", "PersistentVolumeClaim", "")),
                 NULL, "spec: Invalid value: {}: must match dataSourceRef\n"},
                {hfd_claim_validate,
                 CLAIM(",'dataSource':" SNAPSHOT
                       ",'dataSourceRef':" FROM("a", "K", ",'namespace':'b'")),
                 NULL,
                 "spec: Invalid value: {}: may not be specified when dataSourceRef.namespace is "
                 "specified\n"},
                /* A group that was stored before may stay. */
                {hfd_claim_validate, CLAIM(",'volumeName':'v','dataSourceRef':" FROM("-", "K", "")),
                 CLAIM(",'dataSourceRef':" FROM("-", "K", "")), NULL},
        };

        CHECK(cases);
}

/* What was stored before it had rules may stay, so that the claim can be bound. */
static void test_a_claim_keeps_what_was_stored(void **state) {
        static const char *const members[] = {"'accessModes':['a']",
                                              "'selector':{'matchLabels':{'-':'a'}}",
                                              "'resources':{'requests':{'storage':'0'}}",
                                              "'storageClassName':'-'",
                                              "'volumeMode':'a'",
                                              "'dataSource':{'name':'n','kind':'a'}",
                                              "'volumeAttributesClassName':'-'"};
        char was[200], bound[240];

        for (size_t i = 0; i < sizeof members / sizeof members[0]; i++) {
                (void)snprintf(was, sizeof was, "{'spec':{%s}}", members[i]);
                (void)snprintf(bound, sizeof bound, "{'spec':{%s,'volumeName':'v'}}", members[i]);
                const struct rule_case of_update = {hfd_claim_validate, bound, was, NULL};
                check_rule_cases(&of_update, 1);
                struct hf__json *claim = parse_quoted_json(was);
                struct hfd_causes causes;
                hfd_causes_init(&causes);
                hfd_claim_validate(claim, NULL, &causes);
                assert_true(causes.n > 0);
                hf__json_free(claim);
        }
}

static void test_a_claim_keeps_a_class_of_attributes(void **state) {
        static const struct rule_case cases[] = {
                {hfd_claim_validate, CLAIM_IN(WITH, ",'volumeAttributesClassName':'d'"),
                 CLAIM_IN(WITH, ",'volumeAttributesClassName':'c'"), NULL},
                {hfd_claim_validate, CLAIM_IN("'phase':'Bound'", ""),
                 CLAIM_IN("'phase':'Bound'", ",'volumeAttributesClassName':'c'"), NULL},
                {hfd_claim_validate, CLAIM_IN(WITH, ""),
                 CLAIM_IN(WITH, ",'volumeAttributesClassName':'c'"),
                 "spec.volumeAttributesClassName: Forbidden: update to nil is forbidden when "
                 "status.currentVolumeAttributesClassName is not nil\n"},
                {hfd_claim_validate, CLAIM_IN(WITH, ",'volumeAttributesClassName':''"),
                 CLAIM_IN(WITH, ",'volumeAttributesClassName':'c'"),
                 "spec.volumeAttributesClassName: Forbidden: update to empty string is forbidden "
                 "when status.currentVolumeAttributesClassName is not nil\n"},
        };

        CHECK(cases);
}

int main(void) {
        const struct CMUnitTest tests[] = {
                cmocka_unit_test(test_a_source_needs_its_texts),
                cmocka_unit_test(test_an_azure_disk_is_refused),
                cmocka_unit_test(test_a_registry_of_quobyte_is_refused),
                cmocka_unit_test(test_a_disk_of_fibre_channel_is_refused),
                cmocka_unit_test(test_a_disk_of_iscsi_is_refused),
                cmocka_unit_test(test_names_of_targets),
                cmocka_unit_test(test_a_source_of_one_kind_of_volume_is_refused),
                cmocka_unit_test(test_a_local_volume_is_refused),
                cmocka_unit_test(test_the_template_of_a_claim_is_refused),
                cmocka_unit_test(test_volumes_of_a_pod_are_refused),
                cmocka_unit_test(test_a_volume_is_refused),
                cmocka_unit_test(test_the_capacity_of_a_volume_is_refused),
                cmocka_unit_test(test_the_nodes_of_a_volume_are_refused),
                cmocka_unit_test(test_what_a_volume_may_change),
                cmocka_unit_test(test_a_volume_gets_a_secret_for_its_expansion),
                cmocka_unit_test(test_an_old_spec_may_have_any_form),
                cmocka_unit_test(test_where_a_claim_gets_its_data_from),
                cmocka_unit_test(test_a_claim_keeps_what_was_stored),
                cmocka_unit_test(test_a_claim_keeps_a_class_of_attributes),
        };

        return cmocka_run_group_tests(tests, NULL, NULL);
}

/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The rules of built-in kinds when memory runs out: each allocation fails once. A value that a rule
 * then cannot check counts as a shortage, and the write ends with a 500. An object, or a change,
 * that is refused with memory is never accepted, and one that is accepted with memory is not
 * refused.
 */
#undef NDEBUG
#include <assert.h>
#include <errno.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <string.h>

#include <cmocka.h>

#include "base/json.h"
#include "base/json_blocks.h"
#include "base/strbuf.h"
#include "custom_schema_fixture.h"
#include "failing_memory.h"
#include "server/registry/list/continue_token.h"
#include "server/resources/causes.h"
#include "server/resources/rows/resource_table.h"
#include "server/resources/strategies/strategies.h"
#include "server/resources/validation/meta_validation.h"
#include "server/resources/workloads/workloads.h"

#define MANY 12 /* an index of so many children allocates */

typedef void (*rules_fn)(const struct hf__json *object, const struct hf__json *old,
                         struct hfd_causes *causes);

struct rule_case {
        rules_fn rules;
        /* ' stands for ". In item, # is a number; @ in the objects is the list of MANY items. */
        const char *item, *object, *old;
        const char *cause; /* the field and the beginning of the text; NULL = it is accepted */
};

static void resize(const struct hf__json *object, const struct hf__json *old,
                   struct hfd_causes *causes) {
        hfd_pod_part_rules.validate(HFD_SUB_RESIZE, object, old, causes);
}

static void ephemeral(const struct hf__json *object, const struct hf__json *old,
                      struct hfd_causes *causes) {
        hfd_pod_part_rules.validate(HFD_SUB_EPHEMERAL_CONTAINERS, object, old, causes);
}

static void metadata(const struct hf__json *object, const struct hf__json *old,
                     struct hfd_causes *causes) {
        hfd_meta_validate(hfd_resource_find("", "v1", "configmaps"), object, old, causes);
}

/* ---- texts ---- */

/* The members of a valid container, and the end of a valid spec of a pod. */
#define CONTAINER(name)                                                                            \
        "'name':'" name "','image':'i','imagePullPolicy':'Always','terminationMessagePolicy':"     \
        "'File'"
#define GRACE     "'terminationGracePeriodSeconds':30"
#define END       "'restartPolicy':'Always','dnsPolicy':'Default'," GRACE
#define POD(more) "{'spec':{'containers':[{" CONTAINER("a") "}]," more "," END "}}"
/* clang-format off */
#define POD_OF(container)                                                                          \
        "{'spec':{'containers':[{" CONTAINER("a") "," container "}]," END "}}"
#define ARMOR "container.apparmor.security.beta.kubernetes.io/"
#define ARMED(annotations, type)                                                                   \
        "{'metadata':{'annotations':{" annotations "}},'spec':{'containers':[{" CONTAINER("a")     \
        ",'securityContext':{'appArmorProfile':{'type':'" type "'}}}]," END "}}"
#define SERVICE(ports)                                                                             \
        "{'spec':{'type':'NodePort','sessionAffinity':'None','ports':[" ports "]}}"
#define BALANCED(more)                                                                             \
        "{'spec':{'type':'LoadBalancer','sessionAffinity':'None','ports':[{'port':1,'protocol':"   \
        "'TCP','targetPort':1}]," more "}}"
/* clang-format on */
#define JOB(suspend, selector)                                                                     \
        "{'spec':{'selector':{},'suspend':" suspend                                                \
        ",'template':{'spec':{'containers':[{" CONTAINER(                                          \
                "a") "}],'nodeSelector':" selector                                                 \
                     ",'restartPolicy':'Never','dnsPolicy':'Default'," GRACE "}}}}"
#define JOB_WITH(policy)                                                                           \
        "{'spec':{" policy                                                                         \
        ",'selector':{'matchLabels':{}},'template':{'spec':{'containers':[{" CONTAINER(            \
                "a") "}],'restartPolicy':'Never','dnsPolicy':'Default'," GRACE "}}}}"
#define CODES(values)                                                                              \
        "{'rules':[{'action':'Count','onExitCodes':{'operator':'NotIn','values':[" values "]}}]}"
#define CLAIM(modes, more)                                                                         \
        "{'spec':{'accessModes':['" modes "'],'resources':{'requests':{'storage':'1'}}" more "}}"
#define VOLUME(csi)                                                                                \
        "{'spec':{'accessModes':['ReadWriteOnce'],'capacity':{'storage':'1'},"                     \
        "'persistentVolumeReclaimPolicy':'Retain','volumeMode':'Block','csi':{" csi "}}}"
#define ON_NODES(key)                                                                              \
        "'nodeAffinity':{'required':{'nodeSelectorTerms':[{'matchExpressions':[{'key':'" key       \
        "','operator':'Exists'}]}]}"
#define VERSION                                                                                    \
        "'served':true,'schema':{'openAPIV3Schema':{'type':'object','properties':{'a':{'type':"    \
        "'array','items':{'type':'object','required':['k'],'properties':{'k':{'type':'string',"    \
        "'pattern':'a+'}}},'x-kubernetes-list-type':'map','x-kubernetes-list-map-keys':['k']}},"   \
        "'x-kubernetes-validations':[{'rule':'size(self.a) > 0','fieldPath':'.a'}]}}"
#define DEFINITION(versions)                                                                       \
        "{'metadata':{'name':'ws.example.com'},'spec':{'group':'example.com','scope':"             \
        "'Namespaced','names':{'plural':'ws','singular':'w','kind':'W','listKind':'WList'},"       \
        "'conversion':{'strategy':'None'},'versions':[" versions                                   \
        "]},'status':{'storedVersions':['v0']}}"
#define HOOK                                                                                       \
        "'clientConfig':{'url':'https://a.example.com'},'sideEffects':'None',"                     \
        "'admissionReviewVersions':['v1'],'failurePolicy':'Fail','matchPolicy':'Exact',"           \
        "'namespaceSelector':{},'objectSelector':{},'timeoutSeconds':1"
#define POLICY(more)                                                                               \
        "{'metadata':{'name':'p'},'spec':{'failurePolicy':'Fail','matchConstraints':{'"            \
        "matchPolicy':'Exact',"                                                                    \
        "'namespaceSelector':{},'objectSelector':{},'resourceRules':[{'apiGroups':['*'],"          \
        "'apiVersions':['*'],'resources':['*'],'operations':['CREATE'],'scope':'*'}]}," more "}}"

static const struct rule_case cases[] = {
        /* pods */
        {hfd_pod_validate, "{'name':'v#','emptyDir':{}}",
         POD("'volumes':[@,{'name':'v0','emptyDir':{}}]"), NULL,
         "spec.volumes[12].name: Duplicate value"},
        {hfd_pod_validate, "'" ARMOR "c#':'unconfined'", ARMED("@", "Unconfined"), NULL,
         "metadata.annotations[" ARMOR "c0]: Invalid value: \"c0\": container not found"},
        {hfd_pod_validate, "'k#':'v'", ARMED("@,'" ARMOR "a':'unconfined'", "RuntimeDefault"), NULL,
         "spec.containers[0].securityContext.appArmorProfile.type: Forbidden"},
        {hfd_pod_validate, "'k#':'v'", ARMED("@,'" ARMOR "a':'unconfined'", "Unconfined"), NULL,
         NULL},
        {hfd_pod_validate, "'k#':'v'", ARMED("@", "Unconfined"),
         ARMED("@,'" ARMOR "a':'unconfined'", "Unconfined"),
         "metadata.annotations[" ARMOR "a]: Forbidden: may not remove"},
        {hfd_pod_validate, "{'containerPort':1,'protocol':'TCP','name':'p#'}",
         POD_OF("'ports':[@,{'containerPort':1,'protocol':'TCP','name':'p0'}]"), NULL,
         "spec.containers[0].ports[12].name: Duplicate value"},
        {hfd_pod_validate, "{'name':'v','mountPath':'/#'}",
         "{'spec':{'containers':[{" CONTAINER(
                 "a") ",'volumeMounts':[@,{'name':'v','mountPath':"
                      "'/0'}]}],'volumes':[{'name':'v','emptyDir':{}}]," END "}}",
         NULL, "spec.containers[0].volumeMounts[12].mountPath: Invalid value"},
        {hfd_pod_validate, "'example.com/r#':'1'",
         POD_OF("'resources':{'limits':{@},'requests':{'example.com/r0':'2'}}"), NULL,
         "spec.containers[0].resources.requests: Invalid value"},
        {hfd_pod_validate, "{" CONTAINER("c#") "}",
         "{'spec':{'containers':[@,{" CONTAINER("c0") "}]," END "}}", NULL,
         "spec.containers[12].name: Duplicate value"},
        {hfd_pod_validate, "{'resourceName':'cpu','restartPolicy':'NotRequired'}",
         POD_OF("'resizePolicy':[@]"), NULL, "spec.containers[0].resizePolicy[1]: Duplicate value"},
        {hfd_pod_validate, "{'key':'k#','operator':'Exists'}",
         POD("'tolerations':[@,{'operator':'Exists','value':'v'}]"), NULL,
         "spec.tolerations[12].operator: Invalid value: \"v\""},
        {hfd_pod_validate, NULL, POD("'hostname':'a'"), POD("'hostname':'b'"),
         "spec: Forbidden: pod updates may not change"},
        /* The first mistake is that of the old spec, which excuses it. */
        {hfd_pod_validate, NULL, POD("'hostAliases':[{'ip':'a'}],'hostname':'a'"),
         POD("'hostAliases':[{'ip':'a'}],'hostname':'b'"),
         "spec: Forbidden: pod updates may not change"},
        {hfd_pod_validate, "{'key':'k#','operator':'Exists'}",
         POD("'tolerations':[{'key':'k1','operator':'Exists'}]"), POD("'tolerations':[@]"),
         "spec.tolerations: Forbidden"},
        {hfd_pod_validate, "{'name':'g#'}", POD("'schedulingGates':[{'name':'h'}]"),
         POD("'schedulingGates':[@]"), "spec.schedulingGates[0].name: Forbidden"},
        {hfd_pod_validate, "'k#':'v'",
         POD("'schedulingGates':[{'name':'g'}],'nodeSelector':{@,'more':'v'}"),
         POD("'schedulingGates':[{'name':'g'}],'nodeSelector':{'gone':'v'}"),
         "spec.nodeSelector: Invalid value: {\"k0\""},
        {hfd_pod_validate, "'k#':'v'", POD("'nodeSelector':{@,'a':'v'}"),
         POD("'nodeSelector':{'a':'v',@}"), NULL},
        {ephemeral, "{" CONTAINER("e#") "}", POD("'ephemeralContainers':[@]"),
         POD("'ephemeralContainers':[{" CONTAINER("gone") "}]"),
         "spec.ephemeralContainers: Forbidden: existing"},
        {hfd_pod_validate, "{'key':'k','path':'p#'}",
         POD("'volumes':[{'name':'v','projected':{'sources':[{'secret':{'name':'s','items':[@,"
             "{'key':'k','path':'p0'}]}}]}}]"),
         NULL, "spec.volumes[0].projected: Invalid value: \"s\": conflicting duplicate paths"},
        {hfd_pod_validate, "{'name':'g#'}", POD("'schedulingGates':[@,{'name':'g0'}]"), NULL,
         "spec.schedulingGates[12]: Duplicate value: \"g0\""},
        {hfd_pod_validate, "{'maxSkew':1,'topologyKey':'k#','whenUnsatisfiable':'DoNotSchedule'}",
         POD("'topologySpreadConstraints':[@,{'maxSkew':1,'topologyKey':'k0','whenUnsatisfiable':"
             "'DoNotSchedule'}]"),
         NULL, "spec.topologySpreadConstraints[0].{topologyKey, whenUnsatisfiable}: Duplicate"},
        {hfd_pod_validate, "{'key':'k#','operator':'Exists'}",
         POD("'topologySpreadConstraints':[{'maxSkew':1,'topologyKey':'k','whenUnsatisfiable':"
             "'DoNotSchedule','matchLabelKeys':['k3'],'labelSelector':{'matchExpressions':[@,"
             "{'key':'k3','operator':'Exists'}]}}]"),
         NULL, "spec.topologySpreadConstraints[0][0]: Invalid value: \"k3\": exists in both"},
        {hfd_pod_validate, "'k#'",
         POD("'affinity':{'podAffinity':{'requiredDuringSchedulingIgnoredDuringExecution':[{"
             "'topologyKey':'k','labelSelector':{},'matchLabelKeys':['k3'],'mismatchLabelKeys':[@]"
             "}]}}"),
         NULL,
         "spec.affinity.podAffinity.requiredDuringSchedulingIgnoredDuringExecution[0]."
         "matchLabelKeys[0]: Invalid value: \"k3\": exists in both"},
        {hfd_pod_validate, "{'name':'c#','resourceClaimName':'x'}",
         POD("'resourceClaims':[@,{'name':'c0','resourceClaimName':'x'}]"), NULL,
         "spec.resourceClaims[12].name: Duplicate value: \"c0\""},
        {hfd_pod_validate, NULL, POD("'resourceClaims':[{'name':'c'}]"), NULL,
         "spec.resourceClaims[0]: Invalid value: {\"Name\":\"c\""},
        {hfd_pod_validate, "{'name':'c','request':'r#'}",
         POD_OF("'resources':{'claims':[@,{'name':'c','request':'r3'}]}"), NULL,
         "spec.containers[0].resources.claims[12]: Duplicate value: \"c/r3\""},
        {hfd_pod_validate, NULL, POD("'dnsConfig':{'nameservers':['::1','::2','::3','::4']}"), NULL,
         "spec.dnsConfig.nameservers: Invalid value: [\"::1\""},
        {resize, "'example.com/r#':'1'", POD_OF("'resources':{'limits':{@}}"),
         POD_OF("'resources':{'limits':{'cpu':'1',@}}"), "spec.containers[0].resources.limits"},
        {resize, NULL, POD_OF("'resources':{'limits':{'cpu':'2'}},'tty':true"),
         POD_OF("'resources':{'limits':{'cpu':'1'}}"), "spec: Forbidden: only cpu and memory"},
        {resize, NULL, POD_OF("'resources':{'limits':{'cpu':'2'}}"),
         POD_OF("'resources':{'limits':{'cpu':'1'}}"), NULL},
        /* workloads */
        {hfd_claim_validate, NULL, CLAIM("ReadWriteOnce", ""), CLAIM("ReadOnlyMany", ""),
         "spec: Forbidden: spec is immutable"},
        {hfd_claim_validate, "'k#':'v'", CLAIM("x", ",'selector':{'matchLabels':{@,'a':'v'}}"),
         CLAIM("x", ",'selector':{'matchLabels':{'a':'v',@}}"), NULL},
        {hfd_persistent_volume_validate, NULL,
         VOLUME("'driver':'d','volumeHandle':'h',"
                "'controllerExpandSecretRef':{'name':'s','namespace':'n'}"),
         VOLUME("'driver':'d','volumeHandle':'h'"), NULL},
        {hfd_persistent_volume_validate, NULL,
         VOLUME("'driver':'d','volumeHandle':'h'}," ON_NODES("kubernetes.io/os")),
         VOLUME("'driver':'d','volumeHandle':'h'}," ON_NODES("beta.kubernetes.io/os")), NULL},
        {hfd_persistent_volume_validate, NULL, VOLUME("'driver':'d','volumeHandle':'h'"),
         VOLUME("'driver':'d','volumeHandle':'h'}," ON_NODES("kubernetes.io/os")),
         "nodeAffinity: Invalid value: null: field is immutable"},
        {hfd_node_validate, "{'key':'k#','effect':'NoExecute'}",
         "{'spec':{'taints':[@,{'key':'k0','effect':'NoExecute'}]}}", NULL,
         "metadata.taints[12]: Duplicate value: {\"Key\":\"k0\""},
        {hfd_node_validate_status, "{'type':'Hostname','address':'a#'}",
         "{'status':{'addresses':[@,{'type':'Hostname','address':'a0'}]}}", "{}",
         "status.addresses[12]: Duplicate value: {\"Type\":\"Hostname\""},
        {hfd_ip_address_validate, NULL, "{'spec':{'parentRef':{'resource':'r','name':'n'}}}",
         "{'spec':{'parentRef':{'resource':'r','name':'m'}}}",
         "spec.parentRef: Invalid value: {\"Group\":\"\""},
        {hfd_storage_class_validate, "{'matchLabelExpressions':[{'key':'k#','values':['v']}]}",
         "{'provisioner':'p','volumeBindingMode':'Immediate','allowedTopologies':[@,"
         "{'matchLabelExpressions':[{'key':'k0','values':['v']}]}]}",
         NULL, "allowedTopologies[12].matchLabelExpressions: Duplicate value"},
        {hfd_storage_class_validate, "'k#':'v'", "{'parameters':{@}}", "{}",
         "parameters: Invalid value: {\"k0\":\"v\""},
        {hfd_csi_node_validate, "{'name':'d#','nodeID':'n'}",
         "{'spec':{'drivers':[@,{'name':'d0','nodeID':'n'}]}}",
         "{'spec':{'drivers':[{'name':'d1','nodeID':'m'}]}}",
         "spec.drivers: Invalid value: {\"Name\":\"d1\""},
        {hfd_csi_storage_capacity_validate, "'k#':'v'", "{'nodeTopology':{'matchLabels':{@}}}",
         "{}", "nodeTopology: Invalid value: {\"matchLabels\""},
        {hfd_volume_attachment_validate, NULL, "{'spec':{'attacher':'a','nodeName':'n'}}",
         "{'spec':{'attacher':'a','nodeName':'m'}}", "spec: Invalid value: {\"Attacher\":\"a\""},
        {hfd_job_validate, "'k#':'v'", JOB("false", "{@,'a':'v'}"), JOB("false", "{'a':'v',@}"),
         NULL},
        {hfd_job_validate, NULL, JOB("false", "{'a':'v'}"), JOB("true", "{'a':'w'}"), NULL},
        {hfd_job_validate, NULL, JOB("false", "{'a':'v'}"), JOB("false", "{'a':'w'}"),
         "spec.template: Invalid value: {}: field is immutable"},
        {hfd_job_validate, "#", JOB_WITH("'podFailurePolicy':" CODES("@,12,7")), NULL,
         "spec.podFailurePolicy.rules[0].onExitCodes.values[13]: Duplicate value: 7"},
        {hfd_job_validate, "#", JOB_WITH("'podFailurePolicy':" CODES("11,@")), NULL,
         "spec.podFailurePolicy.rules[0].onExitCodes.values: Invalid value: [11,0,1,"},
        {hfd_job_validate, NULL,
         JOB_WITH("'successPolicy':{'rules':[{'succeededIndexes':'0'},{'succeededCount':1}]}"),
         NULL, "spec.successPolicy: Invalid value: {\"Rules\":[{\"SucceededIndexes\":\"0\""},
        {hfd_service_validate, "{'name':'p#','port':1#,'protocol':'TCP','targetPort':1}",
         SERVICE("@,{'name':'p0','port':9,'protocol':'TCP','targetPort':1}"), NULL,
         "spec.ports[12].name: Duplicate value"},
        {hfd_service_validate, NULL,
         SERVICE("{'name':'a','port':1,'protocol':'TCP','targetPort':1,'nodePort':30000},"
                 "{'name':'b','port':2,'protocol':'TCP','targetPort':1,'nodePort':30000}"),
         NULL, "spec.ports[1].nodePort: Duplicate value"},
        {hfd_service_validate, NULL,
         SERVICE("{'name':'a','port':1,'protocol':'TCP','targetPort':1},"
                 "{'name':'b','port':1,'protocol':'TCP','targetPort':1}"),
         NULL, "spec.ports[1]: Duplicate value"},
        {hfd_service_validate, "'10.#.0.1/16'",
         BALANCED("'loadBalancerSourceRanges':[@,'10.0.0.1/8']"),
         BALANCED("'loadBalancerSourceRanges':[@]"),
         "spec.LoadBalancerSourceRanges[12]: Invalid value: \"10.0.0.1/8\": must not have"},
        {hfd_service_validate, "'10.0.0.0#'",
         BALANCED("'externalIPs':['10.0.1.01',@],"
                  "'loadBalancerIP':'10.0.0.1'"),
         BALANCED("'externalIPs':[@]"), "spec.externalIPs[0]: Invalid value: \"10.0.1.01\""},
        {hfd_service_validate, "'10.0.0.0#'", BALANCED("'clusterIP':'10.0.0.0','clusterIPs':[@]"),
         BALANCED("'clusterIPs':[@,'10.0.0.1']"), "spec.clusterIPs: Invalid value: [\"10.0.0.00\""},
        {hfd_service_validate, "'X#'", BALANCED("'ipFamilies':[@,'X0']"), NULL,
         "spec.ipFamilies[12]: Duplicate value: \"X0\""},
        {hfd_network_policy_validate, "'10.#.0.1/16'",
         "{'spec':{'egress':[{'to':[{'ipBlock':{'cidr':'10.0.0.1/8','except':['10.1.0.1/16',"
         "'10.2.0.1/17']}}]}]}}",
         "{'spec':{'ingress':[{'from':[{'ipBlock':{'cidr':'10.0.0.1/8','except':[@]}}]}]}}",
         "spec.egress[0].to[0].ipBlock.except[1]: Invalid value: \"10.2.0.1/17\": must not have"},
        {hfd_budget_validate, NULL, "{'spec':{'minAvailable':1,'maxUnavailable':1}}", NULL,
         "spec: Invalid value: {\"MinAvailable\":1"},
        /* other kinds */
        {hfd_configmap_validate, "'k#':'YQ=='", "{'binaryData':{@},'data':{'k0':'a'}}", NULL,
         "data[k0]: Invalid value"},
        {hfd_configmap_validate, "'k#':'a'", "{'data':{@,'a':'a'},'immutable':true}",
         "{'data':{'a':'a',@},'immutable':true}", NULL},
        {hfd_secret_validate, "'k#':'QQ=='",
         "{'type':'Opaque','data':{@,'l':'QQ=='},'immutable':true}",
         "{'type':'Opaque','data':{'l':'QR==',@},'immutable':true}", NULL},
        {hfd_limit_range_validate, "{'type':'example.com/t#','max':{'cpu':'1'}}",
         "{'spec':{'limits':[@,{'type':'example.com/t0','max':{'cpu':'1'}}]}}", NULL,
         "spec.limits[12].type: Duplicate value"},
        {hfd_limit_range_validate, "'example.com/r#':'1'",
         "{'spec':{'limits':[{'type':'Container','max':{@},'min':{'example.com/r0':'2'}}]}}", NULL,
         "spec.limits[0].min[example.com/r0]: Invalid value"},
        {hfd_definition_validate, "{'name':'v#','storage':false," VERSION "}",
         DEFINITION("{'name':'v0','storage':true," VERSION "},@"), NULL,
         "spec.versions: Invalid value"},
        {hfd_webhooks_validate_object, "{'name':'a#.b.c'," HOOK "}",
         "{'webhooks':[@,{'name':'a0.b.c'," HOOK "}]}", NULL, "webhooks[12].name: Duplicate value"},
        {hfd_validating_policy_validate, "{'key':'k#','valueExpression':'\\'a\\''}",
         POLICY("'auditAnnotations':[@,{'key':'k0','valueExpression':'\\'a\\''}]"), NULL,
         "spec.auditAnnotations[12].key: Duplicate value"},
        {hfd_validating_policy_validate, "{'name':'c#','expression':'true'}",
         POLICY("'validations':[{'expression':'true'}],'matchConditions':[@,{'name':'c0',"
                "'expression':'true'}]"),
         NULL, "spec.matchConditions[12].name: Duplicate value"},
        {hfd_validating_policy_validate, NULL,
         POLICY("'variables':[{'name':'v','expression':'1 + 1'}],'validations':[{'expression':"
                "'variables.v == '}]"),
         NULL, "spec.validations[0].expression: Invalid value"},
        {hfd_flow_schema_validate, NULL,
         "{'metadata':{'name':'exempt'},'spec':{'priorityLevelConfiguration':{'name':'exempt'},"
         "'matchingPrecedence':1,'rules':[]}}",
         NULL, "spec: Invalid value: {\"priorityLevelConfiguration\""},
        {hfd_priority_level_validate, NULL,
         "{'metadata':{'name':'catch-all'},'spec':{'type':'Limited','limited':{'limitResponse':{"
         "'type':'Reject'},'nominalConcurrencyShares':99,'lendablePercent':0}}}",
         NULL, "spec: Invalid value: {\"type\""},
        {hfd_flow_schema_validate, "{'type':'t#'}",
         "{'metadata':{'name':'a'},'spec':{'priorityLevelConfiguration':{'name':'a'},"
         "'matchingPrecedence':9},'status':{'conditions':[@,{'type':'t0'}]}}",
         NULL, "status.conditions[12].type: Duplicate value"},
        /* metadata */
        {metadata, "'a/f#'", "{'metadata':{'deletionTimestamp':'t','finalizers':[@]}}",
         "{'metadata':{'deletionTimestamp':'t','finalizers':[@]}}", NULL},
        {metadata, "'a/f#'", "{'metadata':{'deletionTimestamp':'t','finalizers':['a/new',@]}}",
         "{'metadata':{'deletionTimestamp':'t','finalizers':[@]}}",
         "metadata.finalizers: Forbidden: no new finalizers"},
        {metadata, NULL, "{'metadata':{'deletionGracePeriodSeconds':5}}",
         "{'metadata':{'deletionGracePeriodSeconds':0}}",
         "metadata.deletionGracePeriodSeconds: Invalid value: 5: field is immutable"},
        {metadata, NULL,
         "{'metadata':{'name':'a','namespace':'b','ownerReferences':["
         "{'apiVersion':'v1','kind':'K','name':'a','uid':'u','controller':true},"
         "{'apiVersion':'v1','kind':'K','name':'b','uid':'w','controller':true}]}}",
         NULL, "metadata.ownerReferences: Invalid value: [{\"apiVersion\""},
};

/* The value of a text of a case. */
static struct hf__json *value_of(const char *text, const char *item) {
        struct hf__strbuf out = {0};

        for (const char *c = text; c && *c; c++) {
                if (*c != '@') {
                        hf__strbuf_putc(&out, *c);
                        continue;
                }
                for (int i = 0; i < MANY; i++) {
                        hf__strbuf_puts(&out, i > 0 ? "," : "");
                        for (const char *k = item; *k; k++)
                                if (*k == '#')
                                        hf__strbuf_printf(&out, "%d", i);
                                else
                                        hf__strbuf_putc(&out, *k);
                }
        }
        assert_int_equal(out.error, 0);
        struct hf__json *json = json_of(out.data);
        hf__strbuf_done(&out);
        return json;
}

/* ---- a conversion ---- */

#define ANNOTATED                                                                                  \
        "{'metadata':{'annotations':{'autoscaling.alpha.kubernetes.io/metrics':"                   \
        "'[{\\'type\\':\\'Pods\\',\\'pods\\':{\\'metricName\\':\\'m\\',"                           \
        "\\'targetAverageValue\\':\\'1\\'}}]',"                                                    \
        "'autoscaling.alpha.kubernetes.io/behavior':'{\\'ScaleUp\\':{\\'SelectPolicy\\':"          \
        "\\'Max\\'}}'}},'spec':{'maxReplicas':1,'targetCPUUtilizationPercentage':50}}"

static struct hf__json *converted;

static void convert(int n) {
        struct hf__json *autoscaler = value_of(ANNOTATED, NULL);

        failing_memory_arm(n);
        int r = hfd_autoscaler_v1_conversion.to_stored(autoscaler);
        failing_memory_disarm();
        if (r == 0 && converted) {
                assert_true(hf__json_equal(autoscaler, converted));
        } else if (r == 0) {
                converted = hf__json_dup(autoscaler);
        }
        assert_true(r == 0 || (is_shortage(r) && failing_memory_hit()));
        hf__json_free(autoscaler);
}

static void test_a_shortage_loses_no_metrics_of_an_autoscaler(void **state) {
        (void)state;
        convert(1000000);
        assert_non_null(hf__json_path(converted, "spec.behavior.scaleUp"));
        assert_int_equal(hf__json_count(hf__json_path(converted, "spec.metrics")), 2);
        /* With a sanitizer, the allocations of cJSON cannot be made to fail: then one run is all.
         */
        failing_memory_try_all(convert, 0);
        hf__json_free(converted);
}

/* ---- one case ---- */

static const struct rule_case *current;
static struct hf__json *object, *old;
static struct hfd_causes expected, found;
static int n_shortages; /* of all cases */

static bool has_cause(const struct hfd_causes *causes, const char *wanted) {
        char line[1000];

        for (size_t i = 0; i < causes->n; i++) {
                (void)snprintf(line, sizeof line, "%s: %s", causes->items[i].field,
                               causes->items[i].text);
                if (strncmp(line, wanted, strlen(wanted)) == 0)
                        return true;
        }
        return false;
}

static void print_causes(const struct hfd_causes *causes) {
        for (size_t i = 0; i < causes->n; i++)
                print_error("%s: %s\n", causes->items[i].field, causes->items[i].text);
}

static void life(int n) {
        hfd_causes_init(&found);
        failing_memory_arm(n);
        current->rules(object, old, &found);
        failing_memory_disarm();
        n_shortages += failing_memory_hit();
        if (found.error != 0) {
                assert_true(is_shortage(found.error));
                assert_true(failing_memory_hit());
                return;
        }
        bool same = found.n == expected.n;
        for (size_t i = 0; i < found.n && same; i++)
                same = strcmp(found.items[i].field, expected.items[i].field) == 0 &&
                       strcmp(found.items[i].text, expected.items[i].text) == 0;
        if (!same) {
                print_causes(&found);
                fail_msg("allocation %d, expected %s", n,
                         current->cause ? current->cause : "no cause");
        }
}

static void test_a_shortage_neither_accepts_nor_refuses(void **state) {
        (void)state;
        for (size_t i = 0; i < sizeof cases / sizeof cases[0]; i++) {
                current = &cases[i];
                object = value_of(current->object, current->item);
                old = value_of(current->old, current->item);
                hfd_causes_init(&expected);
                current->rules(object, old, &expected);
                assert_int_equal(expected.error, 0);
                if (current->cause ? !has_cause(&expected, current->cause) : expected.n > 0) {
                        print_causes(&expected);
                        fail_msg("case %zu has no cause %s", i,
                                 current->cause ? current->cause : "at all");
                }
                failing_memory_try_all(life, 0);
                hf__json_free(object);
                hf__json_free(old);
        }
        assert_true(n_shortages > 100);
}

/* ---- tokens of lists ---- */

/* A list with an empty token would look complete. */
static void append_token(int n) {
        struct hf__strbuf out = {0};

        failing_memory_arm(n);
        hfd_continue_token_append(&out, 1, "default/a");
        assert_int_equal(out.error, failing_memory_hit() ? -ENOMEM : 0);
        hf__strbuf_done(&out);
}

static void test_a_shortage_makes_no_empty_token(void **state) {
        failing_memory_try_all(append_token, 1);
}

int main(void) {
        const struct CMUnitTest tests[] = {
                cmocka_unit_test(test_a_shortage_neither_accepts_nor_refuses),
                cmocka_unit_test(test_a_shortage_makes_no_empty_token),
                cmocka_unit_test(test_a_shortage_loses_no_metrics_of_an_autoscaler),
        };

        hf__json_blocks_init(); /* allocations of cJSON fail, too */
        return cmocka_run_group_tests(tests, NULL, NULL);
}

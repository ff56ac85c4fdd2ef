/* SPDX-License-Identifier: Apache-2.0 */
/* The rules of the statuses of workload kinds: which writes of .../status are refused, and with
 * which causes. */
#undef NDEBUG
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <string.h>

#include <cmocka.h>

#include "base/json.h"
#include "base/strbuf.h"
#include "server/resources/causes.h"
#include "server/resources/workloads/workloads.h"

typedef void (*validate)(const struct hf__json *object, const struct hf__json *old,
                         struct hfd_causes *causes);

struct write {
        const char *old, *object; /* ' stands for " */
        const char *causes;       /* "FIELD: TEXT", each with a newline; NULL: none */
};

/* ' stands for ". */
static struct hf__json *parse(const char *text) {
        struct hf__json *json = NULL;
        char quoted[4096];
        size_t n = strlen(text);

        assert_true(n < sizeof quoted);
        for (size_t i = 0; i <= n; i++)
                quoted[i] = (char)(text[i] == '\'' ? '"' : text[i]);
        assert_int_equal(hf__json_parse(quoted, n, &json, NULL), 0);
        return json;
}

static void assert_writes(validate rules, const struct write *writes, size_t n) {
        for (size_t i = 0; i < n; i++) {
                struct hf__json *old = parse(writes[i].old), *object = parse(writes[i].object);
                struct hf__strbuf found = {0};
                struct hfd_causes causes;

                hfd_causes_init(&causes);
                rules(object, old, &causes);
                assert_int_equal(causes.error, 0);
                for (size_t k = 0; k < causes.n; k++)
                        hf__strbuf_printf(&found, "%s: %s\n", causes.items[k].field,
                                          causes.items[k].text);
                hf__strbuf_puts(&found, "");
                assert_string_equal(found.data ? found.data : "",
                                    writes[i].causes ? writes[i].causes : "");
                /* The same status may be kept, however wrong it is. */
                hfd_causes_init(&causes);
                rules(object, object, &causes);
                assert_int_equal(causes.n, 0);
                hf__strbuf_done(&found);
                hf__json_free(old);
                hf__json_free(object);
        }
}
#define ASSERT_WRITES(rules, writes)                                                               \
        assert_writes(rules, writes, sizeof(writes) / sizeof(writes)[0])

static void test_numbers_of_pods_agree(void **state) {
        static const struct write deployment[] = {
                {"{}",
                 "{'status':{'replicas':3,'updatedReplicas':3,'readyReplicas':2,"
                 "'availableReplicas':2,'collisionCount':1}}",
                 NULL},
                {"{}", "{'status':{'replicas':-1,'observedGeneration':-2}}",
                 "status.observedGeneration: Invalid value: -2: must be greater than or equal to "
                 "0\n"
                 "status.replicas: Invalid value: -1: must be greater than or equal to 0\n"
                 "status.updatedReplicas: Invalid value: 0: cannot be greater than "
                 "status.replicas\n"
                 "status.readyReplicas: Invalid value: 0: cannot be greater than status.replicas\n"
                 "status.availableReplicas: Invalid value: 0: cannot be greater than "
                 "status.replicas\n"},
                {"{}", "{'status':{'replicas':2,'readyReplicas':1,'availableReplicas':2}}",
                 "status.availableReplicas: Invalid value: 2: cannot be greater than "
                 "readyReplicas\n"},
                {"{'status':{'collisionCount':0}}", "{'status':{'replicas':0}}",
                 "status.collisionCount: Invalid value: 0: cannot be decremented\n"},
                {"{'status':{'collisionCount':2}}", "{'status':{'collisionCount':1}}",
                 "status.collisionCount: Invalid value: 1: cannot be decremented\n"},
        };
        static const struct write replica_set[] = {
                {"{}", "{'status':{'replicas':1,'fullyLabeledReplicas':2,'readyReplicas':1}}",
                 "status.fullyLabeledReplicas: Invalid value: 2: cannot be greater than "
                 "status.replicas\n"},
                {"{'status':{'collisionCount':2}}", "{'status':{'terminatingReplicas':-1}}",
                 "status.terminatingReplicas: Invalid value: -1: must be greater than or equal to "
                 "0\n"},
        };
        static const struct write stateful_set[] = {
                {"{}", "{'status':{'replicas':1,'currentReplicas':2,'availableReplicas':1}}",
                 "status.currentReplicas: Invalid value: 2: cannot be greater than "
                 "status.replicas\n"
                 "status.availableReplicas: Invalid value: 1: cannot be greater than "
                 "status.readyReplicas\n"},
        };
        static const struct write daemon_set[] = {
                {"{'status':{'collisionCount':1}}", "{'status':{'numberReady':-1}}",
                 "status.numberReady: Invalid value: -1: must be greater than or equal to 0\n"
                 "status.collisionCount: Invalid value: 0: cannot be decremented\n"},
                {"{}", "{'status':{'numberReady':5,'desiredNumberScheduled':2}}", NULL},
        };
        static const struct write autoscaler[] = {
                {"{}", "{'status':{'currentReplicas':-1,'desiredReplicas':-2}}",
                 "status.currentReplicas: Invalid value: -1: must be greater than or equal to 0\n"
                 "status.desiredReplicas: Invalid value: -2: must be greater than or equal to 0\n"},
        };

        ASSERT_WRITES(hfd_deployment_validate_status, deployment);
        ASSERT_WRITES(hfd_replica_set_validate_status, replica_set);
        ASSERT_WRITES(hfd_stateful_set_validate_status, stateful_set);
        ASSERT_WRITES(hfd_daemon_set_validate_status, daemon_set);
        ASSERT_WRITES(hfd_autoscaler_validate_status, autoscaler);
}

static void test_conditions_of_budgets(void **state) {
#define CONDITION(type, status, reason)                                                            \
        "{'type':'" type "','status':'" status "','reason':'" reason                               \
        "','lastTransitionTime':'2026-01-01T00:00:00Z'}"
        static const struct write writes[] = {
                {"{}",
                 "{'status':{'conditions':[" CONDITION("a", "True", "R,r_") "],'expectedPods':1}}",
                 NULL},
                {"{}",
                 "{'status':{'conditions':[" CONDITION("a", "True", "R") "," CONDITION(
                         "a", "Maybe", "") "],'expectedPods':-1}}",
                 "status.conditions[1].type: Duplicate value: \"a\"\n"
                 "status.conditions[1].status: Unsupported value: \"Maybe\": supported values: "
                 "\"False\", \"True\", \"Unknown\"\n"
                 "status.conditions[1].reason: Required value\n"
                 "status.expectedPods: Invalid value: -1: must be greater than or equal to 0\n"},
                {"{}", "{'status':{'conditions':[{'type':'a','status':'True','reason':'r'}]}}",
                 "status.conditions[0].lastTransitionTime: Required value\n"},
        };
        static const char *const reasons[] = {"1", "a:", "a,", "a b", "_a"};

        ASSERT_WRITES(hfd_budget_validate_status, writes);
        for (size_t i = 0; i < sizeof reasons / sizeof reasons[0]; i++) {
                struct hf__json *object =
                        parse("{'status':{'conditions':[" CONDITION("a", "True", "R") "]}}");
                struct hf__json *list = hf__json_path(object, "status.conditions");
                struct hfd_causes causes;

                assert_int_equal(hf__json_set_string(hf__json_first(list), "reason", reasons[i]),
                                 0);
                hfd_causes_init(&causes);
                hfd_budget_validate_status(object, NULL, &causes);
                assert_int_equal(causes.n, 1);
                assert_non_null(strstr(causes.items[0].text, "a condition reason must start with"));
                hf__json_free(object);
        }
}

#define START             "'startTime':'2026-01-01T00:00:00Z'"
#define END               "'completionTime':'2026-01-01T00:01:00Z'"
#define TRUE(t)           "{'type':'" t "','status':'True'}"
#define COMPLETE          TRUE("SuccessCriteriaMet") "," TRUE("Complete")
#define FAILED            TRUE("FailureTarget") "," TRUE("Failed")
#define JOB(spec, status) "{'spec':{" spec "},'status':{" status "}}"

static void test_the_end_of_a_job(void **state) {
        static const struct write writes[] = {
                {JOB("", START), JOB("", START "," END ",'conditions':[" COMPLETE "]"), NULL},
                {JOB("", START), JOB("", START ",'conditions':[" FAILED "]"), NULL},
                {JOB("", START), JOB("", START "," END ",'conditions':[" TRUE("Complete") "]"),
                 "status.conditions: Invalid value: cannot set Complete=True condition without the "
                 "SuccessCriteriaMet=true condition\n"},
                {JOB("", START), JOB("", START ",'conditions':[" TRUE("Failed") "]"),
                 "status.conditions: Invalid value: cannot set Failed=True condition without the "
                 "FailureTarget=true condition\n"},
                {JOB("", ""), JOB("", "'active':1,'conditions':[" COMPLETE "]"),
                 "status.completionTime: Required value: completionTime is required for Complete "
                 "jobs\n"
                 "status.active: Invalid value: 1: active>0 is invalid for finished job\n"
                 "status.startTime: Required value: startTime is required for finished job\n"},
                /* A suspended Job with nothing to do never starts. */
                {JOB("'suspend':true,'completions':0", ""),
                 JOB("'suspend':true,'completions':0", END ",'conditions':[" COMPLETE "]"), NULL},
                {JOB("", START), JOB("", START "," END),
                 "status.completionTime: Invalid value: \"2026-01-01T00:01:00Z\": cannot set "
                 "completionTime when there is no Complete=True condition\n"},
                {JOB("", START),
                 JOB("",
                     START ",'completionTime':'2025-12-31T23:59:59Z','conditions':[" COMPLETE "]"),
                 "status.completionTime: Invalid value: \"2025-12-31T23:59:59Z\": must be equal to "
                 "or after `startTime`\n"},
                {JOB("", START), JOB("", START "," END ",'conditions':[" COMPLETE "," FAILED "]"),
                 "status.conditions: Invalid value: cannot set Complete=True and Failed=true "
                 "conditions\n"
                 "status.conditions: Invalid value: cannot set Complete=True and "
                 "FailureTarget=true conditions\n"
                 "status.conditions: Invalid value: cannot set SuccessCriteriaMet=True and "
                 "Failed=true conditions\n"
                 "status.conditions: Invalid value: cannot set SuccessCriteriaMet=True and "
                 "FailureTarget=true conditions\n"},
                {JOB("", START),
                 JOB("", START ",'terminating':1,'uncountedTerminatedPods':{'failed':['u']},"
                               "'conditions':[" FAILED "]"),
                 "status.uncountedTerminatedPods: Invalid value: {\"Succeeded\":null,\"Failed\":["
                 "\"u\"]}: must be empty for finished job\n"
                 "status.terminating: Invalid value: 1: terminating>0 is invalid for finished "
                 "job\n"},
                /* What was wrong before does not prevent a change of something else. */
                {JOB("", "'conditions':[" TRUE("Complete") "]"),
                 JOB("", "'conditions':[" TRUE("Complete") "],'succeeded':1"), NULL},
        };

        ASSERT_WRITES(hfd_job_validate_status, writes);
}

static void test_a_job_does_not_go_back(void **state) {
        static const struct write writes[] = {
                {JOB("", START ",'conditions':[" FAILED "]"), JOB("", START),
                 "status.conditions: Invalid value: cannot disable the terminal Failed=True "
                 "condition\n"
                 "status.conditions: Invalid value: cannot disable the terminal FailureTarget=True "
                 "condition\n"},
                {JOB("", START "," END ",'conditions':[" COMPLETE "]"),
                 JOB("", START ",'conditions':[" TRUE("SuccessCriteriaMet") "]"),
                 "status.conditions: Invalid value: cannot disable the terminal Complete=True "
                 "condition\n"},
                {JOB("", START "," END ",'conditions':[" COMPLETE "]"),
                 JOB("",
                     START ",'completionTime':'2026-01-01T00:02:00Z','conditions':[" COMPLETE "]"),
                 "status.completionTime: Invalid value: \"2026-01-01T00:02:00Z\": field is "
                 "immutable\n"},
                {JOB("", START), JOB("", "'startTime':'2026-01-01T00:00:01Z'"),
                 "status.startTime: Invalid value: \"2026-01-01T00:00:01Z\": field is immutable "
                 "for "
                 "unsuspended job once set\n"},
                {JOB("", START), JOB("", "'ready':0"),
                 "status.startTime: Invalid value: null: field is immutable for unsuspended job "
                 "once set\n"},
                {JOB("'suspend':true", START), JOB("'suspend':true", ""), NULL},
                {JOB("", START ",'conditions':[" TRUE("Suspended") "]"),
                 JOB("", "'startTime':'2026-01-01T00:00:01Z','conditions':[{'type':'Suspended',"
                         "'status':'False'}]"),
                 NULL},
                {JOB("", "'failed':2,'succeeded':2"), JOB("", "'failed':1,'succeeded':1"),
                 "status.failed: Invalid value: 1: cannot decrease the failed counter\n"
                 "status.succeeded: Invalid value: 1: cannot decrease the succeeded counter\n"},
                {JOB("'completionMode':'Indexed','completions':1,'parallelism':1", "'succeeded':2"),
                 JOB("'completionMode':'Indexed','completions':1,'parallelism':1", "'succeeded':1"),
                 NULL},
                {JOB("", "'conditions':[" TRUE("SuccessCriteriaMet") "]"), JOB("", "'active':1"),
                 "status.conditions: Invalid value: cannot disable the SuccessCriteriaMet=True "
                 "condition\n"},
                {JOB("'successPolicy':{}", START "," END ",'conditions':[" TRUE("Complete") "]"),
                 JOB("'successPolicy':{}", START "," END ",'conditions':[" COMPLETE "]"),
                 "status.conditions: Invalid value: cannot set SuccessCriteriaMet=True for Job "
                 "already has Complete=true conditions\n"},
                {JOB("'successPolicy':{}", START "," END ",'conditions':[" TRUE("Complete") "]"),
                 JOB("'successPolicy':{}",
                     START "," END ",'failed':1,'conditions':[" TRUE("Complete") "]"),
                 "status.conditions: Invalid value: cannot set Complete=True for Job with "
                 "SuccessPolicy unless SuccessCriteriaMet=True\n"},
        };

        ASSERT_WRITES(hfd_job_validate_status, writes);
}

#define INDEXED "'completionMode':'Indexed','completions':10"
#define LIMITED INDEXED ",'backoffLimitPerIndex':1"

static void test_indexes_and_counters_of_a_job(void **state) {
        static const struct write writes[] = {
                {JOB(LIMITED, ""),
                 JOB(LIMITED, "'completedIndexes':'0-2,4,6','failedIndexes':'3,7-9'"), NULL},
                {JOB(LIMITED, ""), JOB(LIMITED, "'completedIndexes':'0-10','failedIndexes':'3,2'"),
                 "status.completedIndexes: Invalid value: \"0-10\": error parsing "
                 "completedIndexes: too large index: \"10\"\n"
                 "status.failedIndexes: Invalid value: \"3,2\": error parsing failedIndexes: "
                 "non-increasing order, previous: 3, current: 2\n"},
                {JOB(LIMITED, ""), JOB(LIMITED, "'completedIndexes':'0,2-6','failedIndexes':'1,5'"),
                 "status.failedIndexes: Invalid value: \"1,5\": failedIndexes and completedIndexes "
                 "overlap at index: 5\n"},
                /* The part that is not valid is skipped when the texts are compared. */
                {JOB(LIMITED, ""), JOB(LIMITED, "'completedIndexes':'x,5','failedIndexes':'5-6'"),
                 "status.completedIndexes: Invalid value: \"x,5\": error parsing completedIndexes: "
                 "cannot convert string to integer for index: \"x\"\n"
                 "status.failedIndexes: Invalid value: \"5-6\": failedIndexes and completedIndexes "
                 "overlap at index: 5\n"},
                {JOB("'completions':3", ""), JOB("'completions':3", "'completedIndexes':'1'"),
                 "status.completedIndexes: Invalid value: \"1\": cannot set non-empty "
                 "completedIndexes when non-indexed completion mode\n"},
                {JOB(INDEXED, ""), JOB(INDEXED, "'failedIndexes':''"),
                 "status.failedIndexes: Invalid value: \"\": cannot set non-null failedIndexes "
                 "when "
                 "backoffLimitPerIndex is null\n"},
                {JOB("", ""), JOB("", "'active':1,'ready':2"),
                 "status.ready: Invalid value: 2: cannot set more ready pods than active\n"},
                {JOB("", ""), JOB("", "'active':-1,'succeeded':-1,'failed':-1,'terminating':-1"),
                 "status.active: Invalid value: -1: must be greater than or equal to 0\n"
                 "status.succeeded: Invalid value: -1: must be greater than or equal to 0\n"
                 "status.failed: Invalid value: -1: must be greater than or equal to 0\n"
                 "status.terminating: Invalid value: -1: must be greater than or equal to 0\n"
                 "status.failed: Invalid value: -1: cannot decrease the failed counter\n"
                 "status.succeeded: Invalid value: -1: cannot decrease the succeeded counter\n"},
                {JOB("", ""),
                 JOB("", "'uncountedTerminatedPods':{'succeeded':['a','','a'],"
                         "'failed':['b','a']}"),
                 "status.uncountedTerminatedPods.succeeded[1]: Invalid value: \"\": must not be "
                 "empty\n"
                 "status.uncountedTerminatedPods.succeeded[2]: Duplicate value: \"a\"\n"
                 "status.uncountedTerminatedPods.failed[1]: Duplicate value: \"a\"\n"},
        };

        ASSERT_WRITES(hfd_job_validate_status, writes);
}

#define ENDED(name, code)       "{'name':'" name "','state':{'terminated':{'exitCode':" #code "}}}"
#define RUNS(name)              "{'name':'" name "','state':{'running':{}}}"
#define POD(spec, list, states) "{'spec':{" spec "},'status':{'" list "':[" states "]}}"
#define OF(spec, list, code, causes)                                                               \
        { POD(spec, list, RUNS("b") "," ENDED("c", code)), POD(spec, list, RUNS("c")), causes }
#define REFUSED(list)                                                                              \
        "status." list "[1].state: Forbidden: may not be transitioned to "                         \
        "non-terminated state\n"

static void test_an_ended_container_stays_ended(void **state) {
        static const struct write writes[] = {
                OF("'containers':[{'name':'c'}]", "containerStatuses", 0, NULL),
                OF("'restartPolicy':'Never','containers':[{'name':'c'}]", "containerStatuses", 1,
                   REFUSED("containerStatuses")),
                OF("'restartPolicy':'OnFailure','containers':[{'name':'c'}]", "containerStatuses",
                   1, NULL),
                OF("'restartPolicy':'OnFailure','containers':[{'name':'c'}]", "containerStatuses",
                   0, REFUSED("containerStatuses")),
                OF("'restartPolicy':'Always','containers':[{'name':'x'}]", "containerStatuses", 1,
                   REFUSED("containerStatuses")),
                OF("'restartPolicy':'Never','containers':[{'name':'c','restartPolicy':'OnFailure'}"
                   "]",
                   "containerStatuses", 1, NULL),
                OF("'restartPolicy':'Never','containers':[{'name':'c','restartPolicy':'Never',"
                   "'restartPolicyRules':[{'action':'Restart','exitCodes':{'operator':'In',"
                   "'values':[7,42]}}]}]",
                   "containerStatuses", 42, NULL),
                OF("'restartPolicy':'Never','containers':[{'name':'c','restartPolicy':'Never',"
                   "'restartPolicyRules':[{'action':'Restart','exitCodes':{'operator':'In',"
                   "'values':[7,42]}}]}]",
                   "containerStatuses", 41, REFUSED("containerStatuses")),
                OF("'restartPolicy':'Never','containers':[{'name':'c','restartPolicy':'Never',"
                   "'restartPolicyRules':[{'action':'Restart','exitCodes':{'operator':'NotIn',"
                   "'values':[0]}}]}]",
                   "containerStatuses", 41, NULL),
                OF("'restartPolicy':'Never','containers':[{'name':'c'},{'name':'d',"
                   "'restartPolicyRules':[{'action':'RestartAllContainers'}]}]",
                   "containerStatuses", 1, NULL),
                OF("'restartPolicy':'Never','initContainers':[{'name':'c','restartPolicy':"
                   "'Always'}]",
                   "initContainerStatuses", 0, NULL),
                OF("'restartPolicy':'Never','initContainers':[{'name':'c'}]",
                   "initContainerStatuses", 0, REFUSED("initContainerStatuses")),
                OF("'restartPolicy':'Always','ephemeralContainers':[{'name':'c'}]",
                   "ephemeralContainerStatuses", 1, REFUSED("ephemeralContainerStatuses")),
                /* One name may occur many times. */
                {POD("'restartPolicy':'Never','containers':[{'name':'c'}]", "containerStatuses",
                     ENDED("c", 1) "," ENDED("c", 0)),
                 POD("'restartPolicy':'Never','containers':[{'name':'c'}]", "containerStatuses",
                     ENDED("c", 1) "," ENDED("d", 1) "," RUNS("c")),
                 "status.containerStatuses[0].state: Forbidden: may not be transitioned to "
                 "non-terminated state\n" REFUSED("containerStatuses")},
                /* A status that goes is no state. */
                {POD("'restartPolicy':'Never','containers':[{'name':'c'}]", "containerStatuses",
                     ENDED("c", 1)),
                 POD("'restartPolicy':'Never','containers':[{'name':'c'}]", "containerStatuses",
                     RUNS("d")),
                 NULL},
        };

        ASSERT_WRITES(hfd_pod_validate_status, writes);
}

static void test_other_members_of_pods(void **state) {
        static const struct write writes[] = {
                {"{'status':{'qosClass':'Burstable'}}",
                 "{'status':{'qosClass':'Guaranteed','observedGeneration':-1,"
                 "'conditions':[{'type':'Ready','observedGeneration':-2},{'type':'a.b/C'}]}}",
                 "status.conditions[0].observedGeneration: Invalid value: -2: must be a "
                 "non-negative integer\n"
                 "status.observedGeneration: Invalid value: -1: must be a non-negative integer\n"
                 "status.qosClass: Invalid value: \"Guaranteed\": field is immutable\n"},
                {"{'spec':{'nodeName':'n'}}",
                 "{'spec':{'nodeName':'n'},'status':{'nominatedNodeName':'n2'}}",
                 "status.nominatedNodeName: Forbidden: may not be set on pods that are already "
                 "bound to a node\n"},
                {"{}", "{'status':{'nominatedNodeName':'n2'}}", NULL},
                {"{}",
                 "{'spec':{'resourceClaims':[{'name':'a'}]},'status':{'resourceClaimStatuses':["
                 "{'name':'a','resourceClaimName':'a-1'},{'name':'a'},{'name':'b'}]}}",
                 "status.resourceClaimStatuses[1].name: Duplicate value: \"a\"\n"
                 "status.resourceClaimStatuses[2].name: Invalid value: \"b\": must match the name "
                 "of an entry in `spec.resourceClaims`\n"},
                {"{}", "{'status':{'podIPs':[{'ip':'10.0.0.1'},{'ip':'::1'}]}}", NULL},
                {"{'status':{'podIPs':[{'ip':'010.0.0.1'}]}}",
                 "{'status':{'podIPs':[{'ip':'010.0.0.1'}],'hostIP':'1.1.1.1','hostIPs':["
                 "{'ip':'1.1.1.1'}]}}",
                 NULL},
                {"{}",
                 "{'status':{'podIPs':[{'ip':'010.0.0.1'},{'ip':'x'}],'hostIP':'1.1.1.1',"
                 "'hostIPs':[{'ip':'1.1.1.2'}]}}",
                 "status.podIPs[0]: Invalid value: \"010.0.0.1\": must not have leading 0s\n"
                 "status.podIPs[1]: Invalid value: \"x\": must be a valid IP address, (e.g. "
                 "10.9.8.7 or 2001:db8::ffff)\n"
                 "status.podIPs: Invalid value: [{\"IP\":\"010.0.0.1\"},{\"IP\":\"x\"}]: may "
                 "specify "
                 "no more than one IP for each IP family\n"
                 "status.hostIPs[0].ip: Invalid value: \"1.1.1.2\": must be equal to `hostIP`\n"},
        };

        ASSERT_WRITES(hfd_pod_validate_status, writes);
}

static void test_users_of_containers_are_those_of_the_system(void **state) {
#define USER(uid, gid, group)                                                                      \
        "'user':{'linux':{'uid':" uid ",'gid':" gid ",'supplementalGroups':[7," group "]}}"
        static const struct write writes[] = {
                {"{}",
                 "{'status':{'containerStatuses':[{" USER("0", "2147483647",
                                                          "0") "},{'user':{}}]}}",
                 NULL},
                {"{}", "{'status':{'containerStatuses':[{},{" USER("-1", "-2", "2147483648") "}]}}",
                 "status.containerStatuses[1].user.linux.uid: Invalid value: -1: must be between 0 "
                 "and 2147483647, inclusive\n"
                 "status.containerStatuses[1].user.linux.gid: Invalid value: -2: must be between 0 "
                 "and 2147483647, inclusive\n"
                 "status.containerStatuses[1].user.linux.supplementalGroups[1]: Invalid value: "
                 "2147483648: must be between 0 and 2147483647, inclusive\n"},
                {"{}",
                 "{'spec':{'os':{'name':'linux'}},'status':{'initContainerStatuses':[{" USER(
                         "-1", "0", "0") "}],'ephemeralContainerStatuses':[{" USER("0", "-1",
                                                                                   "0") "}]}}",
                 "status.initContainerStatuses[0].user.linux.uid: Invalid value: -1: must be "
                 "between 0 and 2147483647, inclusive\n"
                 "status.ephemeralContainerStatuses[0].user.linux.gid: Invalid value: -1: must be "
                 "between 0 and 2147483647, inclusive\n"},
                {"{}",
                 "{'spec':{'os':{'name':'windows'}},'status':{'containerStatuses':[{" USER(
                         "-1", "0", "0") "},{'user':{}}]}}",
                 "status.containerStatuses[0].user.linux: Forbidden: cannot be set for a windows "
                 "pod\n"},
        };

        ASSERT_WRITES(hfd_pod_validate_status, writes);
}

#define DEVICES(container, resources)                                                              \
        "{'name':'" container "','allocatedResourcesStatus':[" resources "]}"
#define WITH_DEVICES(statuses)                                                                     \
        "{'spec':{'containers':[{'name':'a','resources':{'requests':{'x.y/z':'1'},'claims':["      \
        "{'name':'c'},{'name':'d','request':'r'}]}}],'initContainers':[{'name':'i'}]},'status':"   \
        "{" statuses "}}"

static void test_containers_have_the_devices_that_they_use(void **state) {
        static const char field[] = "status.containerStatuses[0].allocatedResourcesStatus";
        static const struct write writes[] = {
                {"{}",
                 WITH_DEVICES("'containerStatuses':[" DEVICES(
                         "a", "{'name':'x.y/"
                              "z','resources':[{'resourceID':'1','health':'Healthy'},"
                              "{'resourceID':'2','health':'Unknown','message':'m'}]},{'name':"
                              "'claim:c'},{'name':'claim:d/r','resources':[{'resourceID':'1',"
                              "'health':'Unhealthy'}]}") "," DEVICES("gone", "{'name':'x'}") "]"),
                 NULL},
                {"{}",
                 WITH_DEVICES("'containerStatuses':[" DEVICES(
                         "a", "{'name':'x.y/"
                              "w'},{'name':'claim:d','resources':[{'resourceID':'1'"
                              ","
                              "'health':'Healthy'},{'resourceID':'1','message':''}]"
                              "}") "],"
                                   "'initContainerStatuses':[" DEVICES(
                                           "i", "{'name':'x.y/z'}") "],"
                                                                    "'ephemeralContainer"
                                                                    "Statuses':[{}"
                                                                    "," DEVICES("e", "{}") "]"),
                 "status.containerStatuses[0].allocatedResourcesStatus[0].name: Invalid "
                 "value: "
                 "\"x.y/w\": must match one of the container's resource requests\n"
                 "status.containerStatuses[0].allocatedResourcesStatus[1].name: Invalid "
                 "value: "
                 "\"claim:d\": must match one of the container's resource claims in a "
                 "format "
                 "'claim:<claimName>/<request>' or 'claim:<claimName>' if request is "
                 "empty\n"
                 "status.containerStatuses[0].allocatedResourcesStatus[1].resources[1]."
                 "health: "
                 "Unsupported value: \"\": supported values: \"Healthy\", \"Unhealthy\", "
                 "\"Unknown\"\n"
                 "status.containerStatuses[0].allocatedResourcesStatus[1].resources[1]."
                 "message: "
                 "Required value: must be non-empty if specified\n"
                 "status.containerStatuses[0].allocatedResourcesStatus[1].resources[1]."
                 "resourceID: "
                 "Duplicate value: \"1\"\n"
                 "status.initContainerStatuses[0].allocatedResourcesStatus[0].name: "
                 "Invalid value: "
                 "\"x.y/z\": must match one of the container's resource requests\n"
                 "status.ephemeralContainerStatuses[1].allocatedResourcesStatus: "
                 "Forbidden: must "
                 "not be specified in container status\n"},
        };
        char text[2000];

        ASSERT_WRITES(hfd_pod_validate_status, writes);
        for (int n = 1024; n <= 1025; n++) {
                struct hfd_causes causes;
                (void)snprintf(text, sizeof text,
                               "{\"status\":{\"containerStatuses\":[{\"allocatedResourcesStatus\":["
                               "{"
                               "\"resources\":[{\"resourceID\":\"1\",\"health\":\"Healthy\","
                               "\"message\":\"%0*d\"}]}]}]}}",
                               n, 0);
                struct hf__json *object = NULL, *old = NULL;
                assert_int_equal(hf__json_parse(text, strlen(text), &object, NULL), 0);
                assert_int_equal(hf__json_parse("{}", 2, &old, NULL), 0);
                hfd_causes_init(&causes);
                hfd_pod_validate_status(object, old, &causes);
                assert_int_equal(causes.n, n - 1024);
                if (n > 1024) {
                        assert_memory_equal(causes.items[0].field, field, strlen(field));
                        assert_string_equal(causes.items[0].text,
                                            "Too long: may not be more than 1024 bytes");
                }
                hf__json_free(object);
                hf__json_free(old);
        }
}

#define EXTENDED(members) WITH_DEVICES("'extendedResourceClaimStatus':{" members "}")
#define OF_EXTENDED       "status.extendedResourceClaimStatus."

static void test_a_claim_for_extended_resources_names_their_containers(void **state) {
        static const struct write writes[] = {
                {"{}",
                 EXTENDED("'resourceClaimName':'n','requestMappings':[{'containerName':'a',"
                          "'resourceName':'x.y/z','requestName':'r'},{'containerName':'a',"
                          "'resourceName':'x.y/z','requestName':'s'}]"),
                 NULL},
                {"{}", EXTENDED("'resourceClaimName':'N'"),
                 OF_EXTENDED "requestMappings: Required value: at least one request mapping is "
                             "required\n" OF_EXTENDED
                             "resourceClaimName: Invalid value: \"N\": a lowercase RFC 1123 "
                             "subdomain must consist of lower case alphanumeric characters, '-' or "
                             "'.', and must start and end with an alphanumeric character (e.g. "
                             "'example.com', regex used for validation is "
                             "'[a-z0-9]([-a-z0-9]*[a-z0-9])?(\\.[a-z0-9]([-a-z0-9]*[a-z0-9])?)*')"
                             "\n"},
                {"{}",
                 EXTENDED("'requestMappings':[{'containerName':'i','resourceName':'x.y/z',"
                          "'requestName':'r'},{'containerName':'b','resourceName':'x.y/z',"
                          "'requestName':'r'},{'containerName':'a','resourceName':'x.y/z',"
                          "'requestName':'r'},{'containerName':'a','resourceName':'x.y/z',"
                          "'requestName':'r'}]"),
                 OF_EXTENDED
                 "requestMappings[0].resourceName: Invalid value: \"x.y/z\": must match "
                 "the extended resource name of an entry in "
                 "spec.initContainers.resources.requests or "
                 "spec.containers.resources.requests\n" OF_EXTENDED
                 "requestMappings[1].containerName: Invalid value: \"b\": must match "
                 "the name of an entry in spec.initContainers.name or "
                 "spec.containers.name\n" OF_EXTENDED
                 "requestMappings[3].containerName: Duplicate value: \"a\"\n" OF_EXTENDED
                 "requestMappings[3].resourceName: Duplicate value: "
                 "\"x.y/z\"\n" OF_EXTENDED
                 "requestMappings[3].requestName: Duplicate value: \"r\"\n" OF_EXTENDED
                 "resourceClaimName: Required value\n"},
                {"{}",
                 EXTENDED("'resourceClaimName':'n','requestMappings':[{'containerName':'a',"
                          "'resourceName':'x.y/z','requestName':'R'}]"),
                 OF_EXTENDED "requestName: Invalid value: \"R\": a lowercase RFC 1123 label must "
                             "consist of lower case alphanumeric characters or '-', and must start "
                             "and end with an alphanumeric character (e.g. 'my-name',  or "
                             "'123-abc', regex used for validation is "
                             "'[a-z0-9]([-a-z0-9]*[a-z0-9])?')\n"},
                /* What was stored before may stay beside what a kubelet reports. */
                {EXTENDED("'resourceClaimName':'N'"),
                 WITH_DEVICES("'message':'m','extendedResourceClaimStatus':{'resourceClaimName':"
                              "'N'}"),
                 NULL},
                {WITH_DEVICES("'resourceClaimStatuses':[{'name':'gone'}]"),
                 WITH_DEVICES("'message':'m','resourceClaimStatuses':[{'name':'gone'}]"), NULL},
        };

        ASSERT_WRITES(hfd_pod_validate_status, writes);
}

static void test_the_two_members_for_addresses_agree(void **state) {
        static const char *const cases[][2] = {
                {"{'podIP':'1.1.1.1'}", "{'podIP':'1.1.1.1','podIPs':[{'ip':'1.1.1.1'}]}"},
                {"{'podIPs':[{'ip':'1.1.1.1'},{'ip':'::1'}]}",
                 "{'podIPs':[{'ip':'1.1.1.1'},{'ip':'::1'}],'podIP':'1.1.1.1'}"},
                {"{'podIP':'1.1.1.2','podIPs':[{'ip':'1.1.1.1'},{'ip':'::1'}]}",
                 "{'podIP':'1.1.1.2','podIPs':[{'ip':'1.1.1.2'}]}"},
                {"{'phase':'Running'}", "{'phase':'Running'}"},
        };

        for (size_t i = 0; i < sizeof cases / sizeof cases[0]; i++) {
                struct hf__json *object = parse("{}"), *wanted = parse(cases[i][1]);

                assert_int_equal(hf__json_set(object, "status", parse(cases[i][0])), 0);
                assert_int_equal(hfd_pod_set_addresses(object), 0);
                assert_true(hf__json_equal(hf__json_get(object, "status"), wanted));
                hf__json_free(object);
                hf__json_free(wanted);
        }
}

#define BALANCED(type, ingress)                                                                    \
        "{'spec':{'type':'" type "'},'status':{'loadBalancer':{'ingress':[" ingress "]}}}"

static void test_addresses_of_load_balancers(void **state) {
        static const struct write service[] = {
                {"{}",
                 BALANCED("LoadBalancer",
                          "{'ip':'10.0.0.1','ipMode':'VIP'},{'hostname':'a.example'}"),
                 NULL},
                {"{}", BALANCED("ClusterIP", "{'ip':'10.0.0.1'}"),
                 "status.loadBalancer.ingress: Forbidden: may only be used when `spec.type` is "
                 "'LoadBalancer'\n"},
                {"{}",
                 BALANCED("LoadBalancer",
                          "{'ip':'10.0.0.1'},{'hostname':'a','ipMode':'VIP'},"
                          "{'ip':'::ffff:1.2.3.4','ipMode':'X'},{'hostname':'10.0.0.1'}"),
                 "status.loadBalancer.ingress[0].ipMode: Required value: must be specified when "
                 "`ip` is set\n"
                 "status.loadBalancer.ingress[1].ipMode: Forbidden: may not be specified when `ip` "
                 "is not set\n"
                 "status.loadBalancer.ingress[2].ip: Invalid value: \"::ffff:1.2.3.4\": must not "
                 "be "
                 "an IPv4-mapped IPv6 address\n"
                 "status.loadBalancer.ingress[2].ipMode: Unsupported value: \"X\": supported "
                 "values: \"Proxy\", \"VIP\"\n"
                 "status.loadBalancer.ingress[3].hostname: Invalid value: \"10.0.0.1\": must be a "
                 "DNS name, not an IP address\n"},
                /* An older build has kept the addresses of a Service that is no LoadBalancer now.
                 */
                {BALANCED("ClusterIP", "{'ip':'1.2.3.4'}"),
                 "{'spec':{'type':'ClusterIP'},'status':{'conditions':[],'loadBalancer':{'ingress':"
                 "[{'ip':'1.2.3.4'}]}}}",
                 NULL},
                {BALANCED("LoadBalancer", "{'ip':'01.0.0.1','ipMode':'VIP'}"),
                 BALANCED("LoadBalancer",
                          "{'ip':'01.0.0.1','ipMode':'VIP'},{'ip':'1.0.0.1','ipMode':'Proxy'}"),
                 NULL},
        };
        static const struct write ingress[] = {
                {"{}", BALANCED("", "{'ip':'10.0.0.1'}"), NULL},
                {"{}", BALANCED("", "{'ip':'10.0.0'}"),
                 "status.loadBalancer.ingress[0].ip: Invalid value: \"10.0.0\": must be a valid IP "
                 "address, (e.g. 10.9.8.7 or 2001:db8::ffff)\n"},
        };

        ASSERT_WRITES(hfd_service_validate_status, service);
        ASSERT_WRITES(hfd_ingress_validate_status, ingress);
}

static void test_claims_and_attachments(void **state) {
        static const struct write claim[] = {
                {"{}",
                 "{'status':{'capacity':{'storage':'1Gi'},'allocatedResourceStatuses':{'storage':"
                 "'NodeResizePending'},'allocatedResources':{'storage':'2Gi','a.b/c':'1'}}}",
                 NULL},
                {"{}",
                 "{'status':{'capacity':{'storage':'-1'},'allocatedResourceStatuses':{'cpu':"
                 "'x'},'allocatedResources':{'a b':'1','a.b/c':'-500m'}}}",
                 "status.capacity[storage]: Invalid value: -1: must be a valid resource quantity\n"
                 "status.allocatedResourceStatuses: Unsupported value: \"cpu\": supported values: "
                 "\"storage\"\n"
                 "status.allocatedResourceStatuses: Unsupported value: \"cpu\": supported values: "
                 "\"ControllerResizeInProgress\", \"ControllerResizeInfeasible\", "
                 "\"NodeResizeInProgress\", \"NodeResizeInfeasible\", \"NodeResizePending\"\n"
                 "status.allocatedResources: Invalid value: \"a b\": name part must consist of "
                 "alphanumeric characters, '-', '_' or '.', and must start and end with an "
                 "alphanumeric character (e.g. 'MyName',  or 'my.name',  or '123-abc', regex used "
                 "for validation is '([A-Za-z0-9][-A-Za-z0-9_.]*)?[A-Za-z0-9]')\n"
                 "status.allocatedResources[a.b/c]: Invalid value: -1: must be a valid resource "
                 "quantity\n"},
        };
        static const struct write attachment[] = {
                {"{}",
                 "{'status':{'attached':true,'attachmentMetadata':{'a':'b'},'attachError':{"
                 "'errorCode':0}}}",
                 NULL},
                {"{}", "{'status':{'detachError':{'errorCode':-1}}}",
                 "status.detachError.errorCode: Invalid value: -1: must be between 0 and "
                 "2147483647, inclusive\n"},
        };

        ASSERT_WRITES(hfd_claim_validate_status, claim);
        ASSERT_WRITES(hfd_volume_attachment_validate_status, attachment);
}

#define ANNOTATED(annotations) "{'metadata':{'annotations':{" annotations "}}}"
#define MIRROR                 "'kubernetes.io/config.mirror':'m'"
#define COST(cost)             "'controller.kubernetes.io/pod-deletion-cost':'" cost "'"
#define ARMOR                  "'container.apparmor.security.beta.kubernetes.io/c':'unconfined'"

static void test_annotations_that_programs_read(void **state) {
        static const struct write writes[] = {
                {ANNOTATED(MIRROR "," ARMOR), ANNOTATED("'a':'b'," ARMOR "," MIRROR), NULL},
                {ANNOTATED(""), ANNOTATED(MIRROR),
                 "metadata.annotations[kubernetes.io/config.mirror]: Forbidden: may not add mirror "
                 "pod annotation\n"},
                {ANNOTATED(MIRROR), ANNOTATED("'kubernetes.io/config.mirror':'n'"),
                 "metadata.annotations[kubernetes.io/config.mirror]: Forbidden: may not remove or "
                 "update mirror pod annotation\n"},
                {ANNOTATED(MIRROR "," ARMOR), ANNOTATED("'a':'b'"),
                 "metadata.annotations[kubernetes.io/config.mirror]: Forbidden: may not remove or "
                 "update mirror pod annotation\n"
                 "metadata.annotations[container.apparmor.security.beta.kubernetes.io/c]: "
                 "Forbidden: may not remove or update AppArmor annotations\n"},
                {ANNOTATED(COST("x")), ANNOTATED(COST("y")), NULL},
                /* Another program has stored a number. */
                {ANNOTATED("'controller.kubernetes.io/pod-deletion-cost':5"), ANNOTATED(COST("y")),
                 NULL},
        };
        static const char
                *const good[] = {"0", "-0", "-05", "2147483647", "-2147483648"},
                       *const bad[] = {"",   "+1",         "01",          "-",
                                       "1x", "2147483648", "-2147483649", "99999999999999999999"};

        ASSERT_WRITES(hfd_pod_validate_annotations, writes);
        for (size_t i = 0; i < sizeof good / sizeof good[0] + sizeof bad / sizeof bad[0]; i++) {
                size_t n_good = sizeof good / sizeof good[0];
                struct hf__json *object = parse(ANNOTATED(COST("")));
                struct hfd_causes causes;

                assert_int_equal(hf__json_put_string(hf__json_path(object, "metadata.annotations"),
                                                     "controller.kubernetes.io/pod-deletion-cost",
                                                     i < n_good ? good[i] : bad[i - n_good]),
                                 0);
                hfd_causes_init(&causes);
                hfd_pod_validate_annotations(object, NULL, &causes);
                assert_int_equal(causes.n, i >= n_good);
                hf__json_free(object);
        }
}

static void test_a_mirror_pod_names_its_node(void **state) {
        struct hf__json *object = parse(ANNOTATED(MIRROR));
        struct hfd_causes causes;

        hfd_causes_init(&causes);
        hfd_pod_validate_annotations(object, NULL, &causes);
        assert_int_equal(causes.n, 1);
        assert_string_equal(causes.items[0].text, "Invalid value: \"m\": must set spec.nodeName if "
                                                  "mirror pod annotation is set");
        assert_int_equal(hf__json_set_string(object, "spec.nodeName", "n"), 0);
        hfd_causes_init(&causes);
        hfd_pod_validate_annotations(object, NULL, &causes);
        assert_int_equal(causes.n, 0);
        hf__json_free(object);
}

int main(void) {
        const struct CMUnitTest tests[] = {
                cmocka_unit_test(test_numbers_of_pods_agree),
                cmocka_unit_test(test_conditions_of_budgets),
                cmocka_unit_test(test_the_end_of_a_job),
                cmocka_unit_test(test_a_job_does_not_go_back),
                cmocka_unit_test(test_indexes_and_counters_of_a_job),
                cmocka_unit_test(test_an_ended_container_stays_ended),
                cmocka_unit_test(test_other_members_of_pods),
                cmocka_unit_test(test_users_of_containers_are_those_of_the_system),
                cmocka_unit_test(test_containers_have_the_devices_that_they_use),
                cmocka_unit_test(test_a_claim_for_extended_resources_names_their_containers),
                cmocka_unit_test(test_the_two_members_for_addresses_agree),
                cmocka_unit_test(test_addresses_of_load_balancers),
                cmocka_unit_test(test_claims_and_attachments),
                cmocka_unit_test(test_annotations_that_programs_read),
                cmocka_unit_test(test_a_mirror_pod_names_its_node),
        };

        return cmocka_run_group_tests(tests, NULL, NULL);
}

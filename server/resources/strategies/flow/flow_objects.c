/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The table of the FlowSchemas and PriorityLevelConfigurations that every server has. Its rows are
 * JSON, which macros put together; LEVEL and SCHEMA make one row each.
 *
 * Invariant: the specs are those of kube-apiserver with its defaults set, because the mandatory
 * ones are compared with the specs that clients write. The level and the schema HFD_FLOW_LEASES are
 * Holdfast's own; kube-apiserver does not have them.
 */
#include "server/resources/strategies/flow/flow_objects.h"

#include <assert.h>
#include <string.h>

#include "base/cleanup.h"
#include "base/json.h"

/* ---- levels ---- */

/* A level with queues. After the name, the arguments are texts with numbers: its share of the
 * server's requests, the percentage of the share that other levels may borrow, the number of
 * queues, and among how many of them each flow chooses. */
#define LEVEL(name_, shares, lendable, queues, hand)                                               \
        {                                                                                          \
                .kind = HFD_FLOW_LEVEL_KIND, .name = (name_),                                      \
                .spec = "{\"type\":\"Limited\",\"limited\":{\"nominalConcurrencyShares\":" shares  \
                        ",\"lendablePercent\":" lendable                                           \
                        ",\"limitResponse\":{\"type\":\"Queue\",\"queuing\":{\"queues\":" queues   \
                        ",\"handSize\":" hand ",\"queueLengthLimit\":50}}}}"                       \
        }

/* ---- schemas ---- */

/* How requests of a schema are divided into flows, which share a level fairly. */
#define BY_USER      ",\"distinguisherMethod\":{\"type\":\"ByUser\"}"
#define BY_NAMESPACE ",\"distinguisherMethod\":{\"type\":\"ByNamespace\"}"
#define BY_NOTHING   ""

/* Subjects: whose requests match. */
#define USER(name)  "{\"kind\":\"User\",\"user\":{\"name\":\"" name "\"}}"
#define GROUP(name) "{\"kind\":\"Group\",\"group\":{\"name\":\"" name "\"}}"
#define SYSTEM_ACCOUNTS                                                                            \
        "{\"kind\":\"ServiceAccount\",\"serviceAccount\":"                                         \
        "{\"name\":\"*\",\"namespace\":\"kube-system\"}}"
#define ALL_USERS GROUP("system:unauthenticated") "," GROUP("system:authenticated")

/* Rules: which requests match. EVERYTHING stands for all rules of a schema that matches every
 * request of its subjects. */
#define RULE(verbs, groups, resources, scope)                                                      \
        "{\"verbs\":[" verbs "],\"apiGroups\":[" groups "],\"resources\":[" resources "]" scope    \
        ",\"namespaces\":[\"*\"]}"
#define IN_CLUSTER    ",\"clusterScope\":true"
#define IN_NAMESPACES ""
#define ALL_LEASES    RULE("\"*\"", "\"coordination.k8s.io\"", "\"leases\"", IN_NAMESPACES)
#define EVERYTHING                                                                                 \
        "\"resourceRules\":[" RULE("\"*\"", "\"*\"", "\"*\"",                                      \
                                   IN_CLUSTER) "],"                                                \
                                               "\"nonResourceRules\":[{\"verbs\":[\"*\"],"         \
                                               "\"nonResourceURLs\":[\"*\"]}]"

/* A schema: of all that match a request, the one with the lowest precedence counts. */
#define SCHEMA(name_, mandatory_, level, precedence, distinguisher, subjects, rules)               \
        {                                                                                          \
                .kind = HFD_FLOW_SCHEMA_KIND, .name = (name_), .mandatory = (mandatory_),          \
                .spec = "{\"priorityLevelConfiguration\":{\"name\":\"" level                       \
                        "\"},\"matchingPrecedence\":" precedence distinguisher                     \
                        ",\"rules\":[{\"subjects\":[" subjects "]," rules "}]}"                    \
        }

static const struct hfd_flow_object table[] = {
        {.kind = HFD_FLOW_LEVEL_KIND,
         .name = HFD_FLOW_EXEMPT,
         .mandatory = true,
         .spec = "{\"type\":\"Exempt\",\"exempt\":{\"nominalConcurrencyShares\":0,"
                 "\"lendablePercent\":0}}"},
        {.kind = HFD_FLOW_LEVEL_KIND,
         .name = HFD_FLOW_CATCH_ALL,
         .mandatory = true,
         .spec = "{\"type\":\"Limited\",\"limited\":{\"nominalConcurrencyShares\":5,"
                 "\"lendablePercent\":0,\"limitResponse\":{\"type\":\"Reject\"}}}"},
        LEVEL("system", "30", "33", "64", "6"),
        LEVEL("node-high", "40", "25", "64", "6"),
        LEVEL("leader-election", "10", "0", "16", "4"),
        LEVEL(HFD_FLOW_LEASES, "10", "0", "128", "6"),
        LEVEL("workload-high", "40", "50", "128", "6"),
        LEVEL("workload-low", "100", "90", "128", "6"),
        LEVEL("global-default", "20", "50", "128", "6"),

        SCHEMA(HFD_FLOW_EXEMPT, true, "exempt", "1", BY_NOTHING, GROUP("system:masters"),
               EVERYTHING),
        SCHEMA("probes", false, "exempt", "2", BY_NOTHING, ALL_USERS,
               "\"nonResourceRules\":[{\"verbs\":[\"get\"],"
               "\"nonResourceURLs\":[\"/healthz\",\"/readyz\",\"/livez\"]}]"),
        SCHEMA("system-leader-election", false, "leader-election", "100", BY_USER,
               USER("system:kube-controller-manager") "," USER(
                       "system:kube-scheduler") "," SYSTEM_ACCOUNTS,
               "\"resourceRules\":[" RULE("\"get\",\"create\",\"update\"",
                                          "\"coordination.k8s.io\"", "\"leases\"",
                                          IN_NAMESPACES) "]"),
        SCHEMA("system-node-high", false, "node-high", "400", BY_USER, GROUP("system:nodes"),
               "\"resourceRules\":[" RULE("\"*\"", "\"\"", "\"nodes\",\"nodes/status\"",
                                          IN_CLUSTER) "," ALL_LEASES "]"),
        SCHEMA("system-nodes", false, "system", "500", BY_USER, GROUP("system:nodes"), EVERYTHING),
        SCHEMA("kube-controller-manager", false, "workload-high", "800", BY_NAMESPACE,
               USER("system:kube-controller-manager"), EVERYTHING),
        SCHEMA("kube-scheduler", false, "workload-high", "800", BY_NAMESPACE,
               USER("system:kube-scheduler"), EVERYTHING),
        SCHEMA("kube-system-service-accounts", false, "workload-high", "900", BY_NAMESPACE,
               SYSTEM_ACCOUNTS, EVERYTHING),
        /* In Kubernetes, the Leases of other users share a level with all their other requests. A
         * user who may create service accounts could fill that level with flows of their own, and
         * delay the renewal of Leases until they expire. So Leases have a level of their own. */
        SCHEMA(HFD_FLOW_LEASES, false, HFD_FLOW_LEASES, "8900", BY_USER,
               GROUP("system:authenticated"),
               "\"resourceRules\":[" RULE("\"get\",\"create\",\"update\",\"patch\"",
                                          "\"coordination.k8s.io\"", "\"leases\"",
                                          IN_NAMESPACES) "]"),
        SCHEMA("service-accounts", false, "workload-low", "9000", BY_USER,
               GROUP("system:serviceaccounts"), EVERYTHING),
        SCHEMA("global-default", false, "global-default", "9900", BY_USER, ALL_USERS, EVERYTHING),
        SCHEMA(HFD_FLOW_CATCH_ALL, true, "catch-all", "10000", BY_USER, ALL_USERS, EVERYTHING),
};

const struct hfd_flow_object *hfd_flow_objects(size_t *ret_n) {
        *ret_n = sizeof table / sizeof table[0];
        return table;
}

const struct hfd_flow_object *hfd_flow_object_find(const char *kind, const char *name) {
        for (size_t i = 0; i < sizeof table / sizeof table[0]; i++)
                if (strcmp(table[i].name, name) == 0 && strcmp(table[i].kind, kind) == 0)
                        return &table[i];
        return NULL;
}

struct hf__json *hfd_flow_object_spec(const struct hfd_flow_object *object) {
        struct hf__json *spec = NULL;
        int r = hf__json_parse(object->spec, strlen(object->spec), &spec, NULL);

        assert(r <= 0); /* a positive r would mean that the table is not JSON */
        return r == 0 ? spec : NULL;
}

struct hf__json *hfd_flow_object_make(const struct hfd_flow_object *object) {
        HF__CLEANUP(hf__json_cleanup)
        struct hf__json *json = hf__json_object(), *annotations = hf__json_object();
        int r = hf__json_add_string(annotations, HFD_FLOW_AUTO_UPDATE, "true");

        if (r == 0)
                r = hf__json_add_string(json, "apiVersion", HFD_FLOW_GROUP "/v1");
        if (r == 0)
                r = hf__json_add_string(json, "kind", object->kind);
        if (r == 0)
                r = hf__json_set_string(json, "metadata.name", object->name);
        if (r == 0)
                r = hf__json_set(json, "metadata.annotations", HF__TAKE(annotations));
        if (r == 0)
                r = hf__json_add(json, "spec", hfd_flow_object_spec(object));
        return r == 0 ? HF__TAKE(json) : NULL;
}

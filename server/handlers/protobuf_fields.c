/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The tables of fields. The decoder ignores fields that are in no table, so that newer clients can
 * send them. managedFields, selfLink and generation are left out, because the server does not use a
 * client's values of them.
 *
 * Invariants:
 *
 *  - A field in a table has the number and type from the .proto file. The decoder refuses a body in
 *    which it has another wire type.
 *  - No table contains itself, directly or through another one: the nesting of the tables is the
 *    depth to which protobuf_body.c recurses.
 */
#include "server/handlers/protobuf_fields.h"

#include <string.h>

#define FIELDS(name) static const struct hfd_protobuf_field name[]

/* ---- metav1 ---- */

FIELDS(owner) = {
        {1, HFD_PB_TEXT, "kind"},
        {3, HFD_PB_TEXT, "name"},
        {4, HFD_PB_TEXT, "uid"},
        {5, HFD_PB_TEXT, "apiVersion"},
        {6, HFD_PB_BOOL, "controller"},
        {7, HFD_PB_BOOL, "blockOwnerDeletion"},
        {0},
};

FIELDS(meta) = {
        {1, HFD_PB_TEXT, "name"},
        {2, HFD_PB_TEXT, "generateName"},
        {3, HFD_PB_TEXT, "namespace"},
        {5, HFD_PB_TEXT, "uid"},
        {6, HFD_PB_TEXT, "resourceVersion"},
        {8, HFD_PB_TIME, "creationTimestamp"},
        {9, HFD_PB_TIME, "deletionTimestamp"},
        {10, HFD_PB_INT, "deletionGracePeriodSeconds"},
        {11, HFD_PB_MAP, "labels"},
        {12, HFD_PB_MAP, "annotations"},
        {13, HFD_PB_MESSAGES, "ownerReferences", owner},
        {14, HFD_PB_TEXTS, "finalizers"},
        {0},
};

FIELDS(preconditions) = {
        {1, HFD_PB_TEXT, "uid"},
        {2, HFD_PB_TEXT, "resourceVersion"},
        {0},
};

FIELDS(type_meta) = {
        {1, HFD_PB_TEXT, "apiVersion"},
        {2, HFD_PB_TEXT, "kind"},
        {0},
};

FIELDS(delete_options) = {
        {1, HFD_PB_INT, "gracePeriodSeconds"}, {2, HFD_PB_MESSAGE, "preconditions", preconditions},
        {3, HFD_PB_BOOL, "orphanDependents"},  {4, HFD_PB_TEXT, "propagationPolicy"},
        {5, HFD_PB_TEXTS, "dryRun"},           {0},
};

/* ---- parts of kinds ---- */

FIELDS(namespace_spec) = {
        {1, HFD_PB_TEXTS, "finalizers"},
        {0},
};

FIELDS(condition) = {
        {1, HFD_PB_TEXT, "type"},
        {2, HFD_PB_TEXT, "status"},
        {4, HFD_PB_TIME, "lastTransitionTime"},
        {5, HFD_PB_TEXT, "reason"},
        {6, HFD_PB_TEXT, "message"},
        {0},
};

FIELDS(namespace_status) = {
        {1, HFD_PB_TEXT, "phase"},
        {2, HFD_PB_MESSAGES, "conditions", condition},
        {0},
};

/* An empty holderIdentity is a released Lease, and must be distinguishable from an absent one. */
FIELDS(lease_spec) = {
        {1, HFD_PB_TEXT_OR_EMPTY, "holderIdentity"}, {2, HFD_PB_INT, "leaseDurationSeconds"},
        {3, HFD_PB_MICROTIME, "acquireTime"},        {4, HFD_PB_MICROTIME, "renewTime"},
        {5, HFD_PB_INT, "leaseTransitions"},         {6, HFD_PB_TEXT, "strategy"},
        {7, HFD_PB_TEXT, "preferredHolder"},         {0},
};

FIELDS(candidate_spec) = {
        {1, HFD_PB_TEXT, "leaseName"},
        {2, HFD_PB_MICROTIME, "pingTime"},
        {3, HFD_PB_MICROTIME, "renewTime"},
        {4, HFD_PB_TEXT, "binaryVersion"},
        {5, HFD_PB_TEXT, "emulationVersion"},
        {6, HFD_PB_TEXT, "strategy"},
        {0},
};

FIELDS(reference) = {
        {1, HFD_PB_TEXT, "kind"},       {2, HFD_PB_TEXT, "namespace"},
        {3, HFD_PB_TEXT, "name"},       {4, HFD_PB_TEXT, "uid"},
        {5, HFD_PB_TEXT, "apiVersion"}, {6, HFD_PB_TEXT, "resourceVersion"},
        {7, HFD_PB_TEXT, "fieldPath"},  {0},
};

FIELDS(source) = {
        {1, HFD_PB_TEXT, "component"},
        {2, HFD_PB_TEXT, "host"},
        {0},
};

FIELDS(series) = {
        {1, HFD_PB_INT, "count"},
        {2, HFD_PB_MICROTIME, "lastObservedTime"},
        {0},
};

FIELDS(local_reference) = {
        {1, HFD_PB_TEXT, "name"},
        {0},
};

FIELDS(rule) = {
        {1, HFD_PB_TEXTS, "verbs"},           {2, HFD_PB_TEXTS, "apiGroups"},
        {3, HFD_PB_TEXTS, "resources"},       {4, HFD_PB_TEXTS, "resourceNames"},
        {5, HFD_PB_TEXTS, "nonResourceURLs"}, {0},
};

FIELDS(selector_term) = {
        {1, HFD_PB_TEXT, "key"},
        {2, HFD_PB_TEXT, "operator"},
        {3, HFD_PB_TEXTS, "values"},
        {0},
};

FIELDS(label_selector) = {
        {1, HFD_PB_MAP, "matchLabels"},
        {2, HFD_PB_MESSAGES, "matchExpressions", selector_term},
        {0},
};

FIELDS(aggregation) = {
        {1, HFD_PB_MESSAGES, "clusterRoleSelectors", label_selector},
        {0},
};

FIELDS(subject) = {
        {1, HFD_PB_TEXT, "kind"},
        {2, HFD_PB_TEXT, "apiGroup"},
        {3, HFD_PB_TEXT, "name"},
        {4, HFD_PB_TEXT, "namespace"},
        {0},
};

FIELDS(role_ref) = {
        {1, HFD_PB_TEXT, "apiGroup"},
        {2, HFD_PB_TEXT, "kind"},
        {3, HFD_PB_TEXT, "name"},
        {0},
};

/* ---- kinds ---- */

FIELDS(namespaces) = {
        {1, HFD_PB_MESSAGE, "metadata", meta},
        {2, HFD_PB_MESSAGE, "spec", namespace_spec},
        {3, HFD_PB_MESSAGE, "status", namespace_status},
        {0},
};

FIELDS(configmaps) = {
        {1, HFD_PB_MESSAGE, "metadata", meta},
        {2, HFD_PB_MAP, "data"},
        {3, HFD_PB_MAP_BYTES, "binaryData"},
        {4, HFD_PB_BOOL, "immutable"},
        {0},
};

FIELDS(leases) = {
        {1, HFD_PB_MESSAGE, "metadata", meta},
        {2, HFD_PB_MESSAGE, "spec", lease_spec},
        {0},
};

FIELDS(candidates) = {
        {1, HFD_PB_MESSAGE, "metadata", meta},
        {2, HFD_PB_MESSAGE, "spec", candidate_spec},
        {0},
};

FIELDS(events) = {
        {1, HFD_PB_MESSAGE, "metadata", meta},
        {2, HFD_PB_MESSAGE, "involvedObject", reference},
        {3, HFD_PB_TEXT, "reason"},
        {4, HFD_PB_TEXT, "message"},
        {5, HFD_PB_MESSAGE, "source", source},
        {6, HFD_PB_TIME, "firstTimestamp"},
        {7, HFD_PB_TIME, "lastTimestamp"},
        {8, HFD_PB_INT, "count"},
        {9, HFD_PB_TEXT, "type"},
        {10, HFD_PB_MICROTIME, "eventTime"},
        {11, HFD_PB_MESSAGE, "series", series},
        {12, HFD_PB_TEXT, "action"},
        {13, HFD_PB_MESSAGE, "related", reference},
        {14, HFD_PB_TEXT, "reportingComponent"},
        {15, HFD_PB_TEXT, "reportingInstance"},
        {0},
};

FIELDS(secrets) = {
        {1, HFD_PB_MESSAGE, "metadata", meta},
        {2, HFD_PB_MAP_BYTES, "data"},
        {3, HFD_PB_TEXT, "type"},
        {4, HFD_PB_MAP, "stringData"},
        {5, HFD_PB_BOOL, "immutable"},
        {0},
};

FIELDS(service_accounts) = {
        {1, HFD_PB_MESSAGE, "metadata", meta},
        {2, HFD_PB_MESSAGES, "secrets", reference},
        {3, HFD_PB_MESSAGES, "imagePullSecrets", local_reference},
        {4, HFD_PB_BOOL, "automountServiceAccountToken"},
        {0},
};

FIELDS(roles) = {
        {1, HFD_PB_MESSAGE, "metadata", meta},
        {2, HFD_PB_MESSAGES, "rules", rule},
        {0},
};

FIELDS(cluster_roles) = {
        {1, HFD_PB_MESSAGE, "metadata", meta},
        {2, HFD_PB_MESSAGES, "rules", rule},
        {3, HFD_PB_MESSAGE, "aggregationRule", aggregation},
        {0},
};

FIELDS(bindings) = {
        {1, HFD_PB_MESSAGE, "metadata", meta},
        {2, HFD_PB_MESSAGES, "subjects", subject},
        {3, HFD_PB_MESSAGE, "roleRef", role_ref},
        {0},
};

const struct hfd_protobuf_field *hfd_protobuf_fields(const struct hfd_resource *resource) {
        static const struct {
                const char *plural;
                const struct hfd_protobuf_field *fields;
        } tables[] = {{"namespaces", namespaces},
                      {"configmaps", configmaps},
                      {"leases", leases},
                      {"leasecandidates", candidates},
                      {"events", events},
                      {"secrets", secrets},
                      {"serviceaccounts", service_accounts},
                      {"roles", roles},
                      {"clusterroles", cluster_roles},
                      {"rolebindings", bindings},
                      {"clusterrolebindings", bindings}};

        for (size_t i = 0; i < sizeof tables / sizeof tables[0]; i++)
                if (strcmp(tables[i].plural, resource->plural) == 0)
                        return tables[i].fields;
        return NULL;
}

const struct hfd_protobuf_field *hfd_protobuf_fields_of_type_meta(void) { return type_meta; }

const struct hfd_protobuf_field *hfd_protobuf_fields_of_delete_options(void) {
        return delete_options;
}

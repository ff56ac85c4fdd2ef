/* SPDX-License-Identifier: Apache-2.0 */
#pragma once
/*
 * The FlowSchemas and PriorityLevelConfigurations that every server has: those of kube-apiserver,
 * with its names and numbers, and one of each for the Leases of all users (HFD_FLOW_LEASES). Users
 * cannot change the specs of the mandatory ones, except spec.exempt of the level `exempt`. The
 * others are suggestions, whose specs users may change. The controller flow-control creates deleted
 * objects of the table again. The table is static and immutable. Thread: any.
 */
#include <stdbool.h>
#include <stddef.h>

struct hf__json;

#define HFD_FLOW_GROUP           "flowcontrol.apiserver.k8s.io"
#define HFD_FLOW_AUTO_UPDATE     "apf.kubernetes.io/autoupdate-spec" /* an annotation */
#define HFD_FLOW_EXEMPT          "exempt"                            /* a schema and a level */
#define HFD_FLOW_CATCH_ALL       "catch-all"
#define HFD_FLOW_LEASES          "holdfast-leases" /* a schema and a level; not Kubernetes' */
#define HFD_FLOW_SCHEMA_KIND     "FlowSchema"
#define HFD_FLOW_LEVEL_KIND      "PriorityLevelConfiguration"
#define HFD_FLOW_SCHEMAS_PLURAL  "flowschemas"
#define HFD_FLOW_LEVELS_PLURAL   "prioritylevelconfigurations"
#define HFD_FLOW_EVERYBODY       "*" /* stands for all: a subject's name, or an element of a rule */
#define HFD_FLOW_PRECEDENCE_MAX  10000
#define HFD_FLOW_PRECEDENCE_NONE 1000 /* the precedence of a schema that gives none */

struct hfd_flow_object {
        const char *kind, *name;
        bool mandatory;   /* the spec must be this one (see above) */
        const char *spec; /* JSON, with all defaults */
};

/* The whole table. A level comes before the schemas that refer to it. */
const struct hfd_flow_object *hfd_flow_objects(size_t *ret_n);
/* NULL = there is none of this kind and name. */
const struct hfd_flow_object *hfd_flow_object_find(const char *kind, const char *name);
/* The spec; and the whole object, with the annotation HFD_FLOW_AUTO_UPDATE. Its value is "true":
 * the controller undoes changes of the spec. The caller frees the result. NULL = out of memory. */
struct hf__json *hfd_flow_object_spec(const struct hfd_flow_object *object);
struct hf__json *hfd_flow_object_make(const struct hfd_flow_object *object);

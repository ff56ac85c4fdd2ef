/* SPDX-License-Identifier: Apache-2.0 */
#pragma once
/*
 * The FlowSchemas and PriorityLevelConfigurations that every server has. They are Kubernetes' own,
 * with its names and numbers, and one of each for everybody's Leases (HFD_FLOW_LEASES). Mandatory
 * ones cannot be changed; the others are suggestions, which a user may change or delete. Static and
 * immutable. Thread: any.
 */
#include <stdbool.h>
#include <stddef.h>

struct hf__json;

#define HFD_FLOW_GROUP           "flowcontrol.apiserver.k8s.io"
#define HFD_FLOW_AUTO_UPDATE     "apf.kubernetes.io/autoupdate-spec"
#define HFD_FLOW_EXEMPT          "exempt" /* a schema and a level */
#define HFD_FLOW_CATCH_ALL       "catch-all"
#define HFD_FLOW_LEASES          "holdfast-leases" /* a schema and a level; not Kubernetes' */
#define HFD_FLOW_SCHEMA_KIND     "FlowSchema"
#define HFD_FLOW_LEVEL_KIND      "PriorityLevelConfiguration"
#define HFD_FLOW_SCHEMAS_PLURAL  "flowschemas"
#define HFD_FLOW_LEVELS_PLURAL   "prioritylevelconfigurations"
#define HFD_FLOW_EVERYBODY       "*" /* a subject's name that stands for all */
#define HFD_FLOW_PRECEDENCE_MAX  10000
#define HFD_FLOW_PRECEDENCE_NONE 1000 /* the precedence of a schema that gives none */

struct hfd_flow_object {
        const char *kind, *name;
        bool mandatory;
        const char *spec; /* JSON, with defaults */
};

/* All of them: a level comes before the schemas that refer to it. */
const struct hfd_flow_object *hfd_flow_objects(size_t *ret_n);
/* NULL = there is none of this kind and name. */
const struct hfd_flow_object *hfd_flow_object_find(const char *kind, const char *name);
/* Its spec, and the whole object with the annotation that says that the server keeps it up to date;
 * the caller frees it. NULL = out of memory. */
struct hf__json *hfd_flow_object_spec(const struct hfd_flow_object *object);
struct hf__json *hfd_flow_object_make(const struct hfd_flow_object *object);

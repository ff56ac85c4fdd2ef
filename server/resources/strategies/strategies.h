/* SPDX-License-Identifier: Apache-2.0 */
#pragma once
/*
 * The strategies: the rules of each kind. The table of resources refers to them, and the
 * registry calls them through its rows (struct hfd_resource), in this order:
 *
 *  - normalize changes what clients may send in more than one form. The object has the form of its
 *    schema already. 0 or -ENOMEM.
 *  - prepare sets defaults. old is NULL on create. An update first calls it with the stored object
 *    as both arguments, for defaults that are newer than the object. Values of a stored object may
 *    have wrong types. 0, or -ENOMEM; -EINVAL only for a value of a wrong type.
 *  - complete sets in a new object what is computed from the rest of it, such as its labels. It
 *    gets the object once, after all changes by admission. 0, -ENOMEM or HF_E_TOO_LARGE (413).
 *  - validate adds a cause for each mistake in the object (422). It gets the object after prepare,
 *    in the version of the row, not in the version that is stored (conversion.h). old: the stored
 *    object with its defaults; NULL on create. For a write of .../status a kind may have
 *    validate_status in its place.
 *  - mark_deleted marks an object at its first delete, in place of what all other kinds do
 *    (resource.h).
 *
 * An object that admission has changed goes through normalize and prepare again. So both must
 * accept their own result, and leave it as it is.
 *
 * meta.c and meta_validation.c handle ObjectMeta in the same way for all kinds. A strategy only
 * adds what its kind alone has: a finalizer, a label, a rule for the name.
 *
 * A new kind has a file of its own in this folder, named after the kind. It contains
 *
 *  - the kind's schema: its fields with their types, protobuf numbers and descriptions. Decoding,
 *    pruning, patches, protobuf and OpenAPI all read it (server/schema/schema.h);
 *  - those of the functions above that the kind needs.
 *
 * Both are declared below, and named by a row in rows/.
 *
 * All strategies are pure. Thread: any.
 */
#include <stdbool.h>
#include <stddef.h>

#include "server/schema/schema.h"

struct hf__json;
struct hfd_causes;
struct hfd_resource;

/* admission/: configurations of webhooks */
extern const struct hfd_schema hfd_validating_webhooks_schema, hfd_mutating_webhooks_schema;
int hfd_validating_webhooks_prepare(struct hf__json *object, const struct hf__json *old);
int hfd_mutating_webhooks_prepare(struct hf__json *object, const struct hf__json *old);
void hfd_webhooks_validate_object(const struct hf__json *object, const struct hf__json *old,
                                  struct hfd_causes *causes);

/* admission/: policies and their bindings */
extern const struct hfd_schema hfd_validating_policy_schema, hfd_mutating_policy_schema,
        hfd_validating_binding_schema, hfd_mutating_binding_schema;
int hfd_admission_policy_prepare(struct hf__json *object, const struct hf__json *old);
int hfd_admission_binding_prepare(struct hf__json *object, const struct hf__json *old);
void hfd_validating_policy_validate(const struct hf__json *object, const struct hf__json *old,
                                    struct hfd_causes *causes);
void hfd_validating_policy_validate_status(const struct hf__json *object,
                                           const struct hf__json *old, struct hfd_causes *causes);
void hfd_mutating_policy_validate(const struct hf__json *object, const struct hf__json *old,
                                  struct hfd_causes *causes);
void hfd_validating_binding_validate(const struct hf__json *object, const struct hf__json *old,
                                     struct hfd_causes *causes);
void hfd_mutating_binding_validate(const struct hf__json *object, const struct hf__json *old,
                                   struct hfd_causes *causes);

/* api_service.c */
extern const struct hfd_schema hfd_api_service_schema;
int hfd_api_service_prepare(struct hf__json *object, const struct hf__json *old);
void hfd_api_service_validate(const struct hf__json *object, const struct hf__json *old,
                              struct hfd_causes *causes);

/* certificate_request.c */
extern const struct hfd_schema hfd_certificate_request_schema;
void hfd_certificate_request_validate(const struct hf__json *object, const struct hf__json *old,
                                      struct hfd_causes *causes);

/* component_status.c */
extern const struct hfd_schema hfd_component_status_schema;

/* data/configmap.c */
extern const struct hfd_schema hfd_configmap_schema;
void hfd_configmap_validate(const struct hf__json *object, const struct hf__json *old,
                            struct hfd_causes *causes);

/* definition/: CustomResourceDefinitions */
extern const struct hfd_schema hfd_definition_schema;
int hfd_definition_prepare(struct hf__json *object, const struct hf__json *old);
int hfd_definition_mark_deleted(struct hf__json *object, const char *now);
void hfd_definition_validate(const struct hf__json *object, const struct hf__json *old,
                             struct hfd_causes *causes);
void hfd_definition_validate_status(const struct hf__json *object, const struct hf__json *old,
                                    struct hfd_causes *causes);

/* event_schema.c, event.c: v1 and, with "new", events.k8s.io/v1 */
extern const struct hfd_schema hfd_event_schema, hfd_new_event_schema;
extern const struct hfd_conversion hfd_new_event_conversion;
void hfd_event_validate(const struct hf__json *object, const struct hf__json *old,
                        struct hfd_causes *causes);
void hfd_new_event_validate(const struct hf__json *object, const struct hf__json *old,
                            struct hfd_causes *causes);

/* flow/: FlowSchemas and PriorityLevelConfigurations, which share the rules of their status */
extern const struct hfd_schema hfd_flow_schema_schema, hfd_priority_level_schema;
int hfd_flow_schema_prepare(struct hf__json *object, const struct hf__json *old);
void hfd_flow_schema_validate(const struct hf__json *object, const struct hf__json *old,
                              struct hfd_causes *causes);
int hfd_priority_level_prepare(struct hf__json *object, const struct hf__json *old);
void hfd_priority_level_validate(const struct hf__json *object, const struct hf__json *old,
                                 struct hfd_causes *causes);
void hfd_flow_validate_status(const struct hf__json *object, const struct hf__json *old,
                              struct hfd_causes *causes);

/* lease.c */
extern const struct hfd_schema hfd_lease_schema;
void hfd_lease_validate(const struct hf__json *object, const struct hf__json *old,
                        struct hfd_causes *causes);

/* lease_candidate.c */
extern const struct hfd_schema hfd_lease_candidate_schema;
void hfd_lease_candidate_validate(const struct hf__json *object, const struct hf__json *old,
                                  struct hfd_causes *causes);

/* quota/limit_range.c */
extern const struct hfd_schema hfd_limit_range_schema;
/* In an element for containers, an absent default limit becomes the maximum, and an absent default
 * request becomes the default limit, or else the minimum. */
int hfd_limit_range_prepare(struct hf__json *object, const struct hf__json *old);
void hfd_limit_range_validate(const struct hf__json *object, const struct hf__json *old,
                              struct hfd_causes *causes);

/* namespace.c */
extern const struct hfd_schema hfd_namespace_schema;
int hfd_namespace_prepare(struct hf__json *object, const struct hf__json *old);
void hfd_namespace_validate(const struct hf__json *object, const struct hf__json *old,
                            struct hfd_causes *causes);

/* pod_template.c */
extern const struct hfd_schema hfd_pod_template_schema;
int hfd_pod_template_prepare(struct hf__json *object, const struct hf__json *old);
void hfd_pod_template_validate(const struct hf__json *object, const struct hf__json *old,
                               struct hfd_causes *causes);

/* priority_class.c */
extern const struct hfd_schema hfd_priority_class_schema;
int hfd_priority_class_prepare(struct hf__json *object, const struct hf__json *old);
void hfd_priority_class_validate(const struct hf__json *object, const struct hf__json *old,
                                 struct hfd_causes *causes);
/* Whether name is that of one of the two classes that the server creates at its start. */
bool hfd_is_system_priority_class(const char *name);

/* quota/resource_quota.c */
extern const struct hfd_schema hfd_resource_quota_schema;
void hfd_resource_quota_validate(const struct hf__json *object, const struct hf__json *old,
                                 struct hfd_causes *causes);

/* review.c: reviews have no strategy */
extern const struct hfd_schema hfd_self_review_schema, hfd_token_review_schema,
        hfd_access_review_schema, hfd_local_access_review_schema, hfd_self_access_review_schema,
        hfd_rules_review_schema;

/* roles/role.c: for Roles and ClusterRoles */
extern const struct hfd_schema hfd_role_schema;
void hfd_role_validate(const struct hf__json *object, const struct hf__json *old,
                       struct hfd_causes *causes);
extern const struct hfd_schema hfd_cluster_role_schema;
void hfd_cluster_role_validate(const struct hf__json *object, const struct hf__json *old,
                               struct hfd_causes *causes);

/* roles/role_binding.c: for RoleBindings and ClusterRoleBindings, which share prepare */
extern const struct hfd_schema hfd_role_binding_schema, hfd_cluster_role_binding_schema;
int hfd_role_binding_prepare(struct hf__json *object, const struct hf__json *old);
void hfd_role_binding_validate(const struct hf__json *object, const struct hf__json *old,
                               struct hfd_causes *causes);
void hfd_cluster_role_binding_validate(const struct hf__json *object, const struct hf__json *old,
                                       struct hfd_causes *causes);

/* runtime_class.c */
extern const struct hfd_schema hfd_runtime_class_schema;
void hfd_runtime_class_validate(const struct hf__json *object, const struct hf__json *old,
                                struct hfd_causes *causes);

/* data/secret.c */
extern const struct hfd_schema hfd_secret_schema;
int hfd_secret_normalize(struct hf__json *object);
int hfd_secret_prepare(struct hf__json *object, const struct hf__json *old);
void hfd_secret_validate(const struct hf__json *object, const struct hf__json *old,
                         struct hfd_causes *causes);

/* service_account.c */
extern const struct hfd_schema hfd_service_account_schema;
int hfd_service_account_prepare(struct hf__json *object, const struct hf__json *old);

/* workspace.c */
extern const struct hfd_schema hfd_workspace_schema;
int hfd_workspace_prepare(struct hf__json *object, const struct hf__json *old);

/* token_request.c: the row of the kind of the body of .../token. It is not in the table of
 * resources. */
const struct hfd_resource *hfd_resource_token_request(void);

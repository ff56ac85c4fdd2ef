/* SPDX-License-Identifier: Apache-2.0 */
#pragma once
/*
 * The strategies: the rules of each kind. The table in resource.c refers to them, and the registry
 * calls them through its rows (struct hfd_resource), in this order:
 *
 *  - decode checks the types of the fields that a client sent, and normalizes their values. False:
 *    the response is a 400 with the message in reason.
 *  - prepare sets defaults. old is NULL on create. 0 or -ENOMEM.
 *  - validate adds a cause for each mistake in the object (422). It gets the object in the form in
 *    which it would be stored.
 *
 * Strategies do not handle ObjectMeta: meta.c and meta_validation.c do, in the same way for all
 * kinds. schema/field_types.c checks the types of the fields that decode does not check.
 *
 * A new kind gets its strategy in four steps:
 *  1. a file of its own in this folder, named after the kind, with the functions that it needs, in
 *     strategies/meson.build;
 *  2. their declarations below;
 *  3. a row in resource.c that names them; a row may leave out prepare and validate;
 *  4. its fields in schema/field_types.c (types) and schema/unknown_fields.c (names), and in
 *     handlers/protobuf_fields.c when kubectl sends the kind as protobuf.
 *
 * All strategies are pure. Thread: any.
 */
#include <stdbool.h>
#include <stddef.h>

struct hf__json;
struct hfd_causes;

/* configmap.c */
bool hfd_configmap_decode(struct hf__json *object, char *reason, size_t max_reason);
void hfd_configmap_validate(const struct hf__json *object, const struct hf__json *old,
                            struct hfd_causes *causes);

/* event.c */
bool hfd_event_decode(struct hf__json *object, char *reason, size_t max_reason);

/* lease.c */
bool hfd_lease_decode(struct hf__json *object, char *reason, size_t max_reason);
void hfd_lease_validate(const struct hf__json *object, const struct hf__json *old,
                        struct hfd_causes *causes);

/* lease_candidate.c */
bool hfd_lease_candidate_decode(struct hf__json *object, char *reason, size_t max_reason);
void hfd_lease_candidate_validate(const struct hf__json *object, const struct hf__json *old,
                                  struct hfd_causes *causes);

/* namespace.c */
bool hfd_namespace_decode(struct hf__json *object, char *reason, size_t max_reason);
int hfd_namespace_prepare(struct hf__json *object, const struct hf__json *old);
void hfd_namespace_validate(const struct hf__json *object, const struct hf__json *old,
                            struct hfd_causes *causes);

/* role.c: for Roles and ClusterRoles */
bool hfd_role_decode(struct hf__json *object, char *reason, size_t max_reason);
void hfd_role_validate(const struct hf__json *object, const struct hf__json *old,
                       struct hfd_causes *causes);
bool hfd_cluster_role_decode(struct hf__json *object, char *reason, size_t max_reason);
void hfd_cluster_role_validate(const struct hf__json *object, const struct hf__json *old,
                               struct hfd_causes *causes);

/* role_binding.c: for RoleBindings and ClusterRoleBindings, which differ only in validation */
bool hfd_role_binding_decode(struct hf__json *object, char *reason, size_t max_reason);
int hfd_role_binding_prepare(struct hf__json *object, const struct hf__json *old);
void hfd_role_binding_validate(const struct hf__json *object, const struct hf__json *old,
                               struct hfd_causes *causes);
void hfd_cluster_role_binding_validate(const struct hf__json *object, const struct hf__json *old,
                                       struct hfd_causes *causes);

/* secret.c */
bool hfd_secret_decode(struct hf__json *object, char *reason, size_t max_reason);
int hfd_secret_prepare(struct hf__json *object, const struct hf__json *old);
void hfd_secret_validate(const struct hf__json *object, const struct hf__json *old,
                         struct hfd_causes *causes);

/* service_account.c */
bool hfd_service_account_decode(struct hf__json *object, char *reason, size_t max_reason);

/* workspace.c */
bool hfd_workspace_decode(struct hf__json *object, char *reason, size_t max_reason);
int hfd_workspace_prepare(struct hf__json *object, const struct hf__json *old);

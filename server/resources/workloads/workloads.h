/* SPDX-License-Identifier: Apache-2.0 */
#pragma once
/*
 * The kinds that describe programs which run on nodes: pods, services, volumes, Deployments and so
 * on. Holdfast has no nodes, so it serves them as data: with their fields, defaults, rules and
 * columns, but without the controllers and the scheduler that would act on them. They are served
 * with --runtime-config=api/workloads=true. Under the name kube-apiserver, the program serves them
 * unless --runtime-config contains api/workloads=false.
 *
 * A kind is a schema in schemas/, a row in core_rows.c or group_rows.c and, if it has defaults, a
 * function in presets/. Rules are in rules/, and what is special about pods in pods/. Pure. Thread:
 * any.
 */
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "server/schema/schema.h"

/* Elements of a pod's and a RuntimeClass's tolerations together: each is compared with all others,
 * which takes quadratic time. */
#define HFD_TOLERATIONS_MERGED_MAX 1000

struct hf__json;
struct hf__strbuf;
struct hfd_resource;
struct hfd_causes;
struct hfd_conversion;
struct hfd_part_rules;

/* The rows of the core group, and those of the other groups; both are sorted by group and plural.
 * Static. */
const struct hfd_resource *hfd_core_workload_rows(size_t *ret_n);
const struct hfd_resource *hfd_group_workload_rows(size_t *ret_n);
/* The kinds of the bodies of .../scale, .../binding and .../eviction, which are in no table. */
const struct hfd_resource *hfd_resource_scale(void);
const struct hfd_resource *hfd_resource_binding(void);
const struct hfd_resource *hfd_resource_eviction(void);

/* ---- schemas ---- */

/* pod.c */
extern const struct hfd_schema hfd_pod_schema;
/* node.c */
extern const struct hfd_schema hfd_node_schema;
/* service.c */
extern const struct hfd_schema hfd_service_schema, hfd_endpoints_schema;
/* persistent_volume.c */
extern const struct hfd_schema hfd_persistent_volume_schema, hfd_persistent_volume_spec_schema;
/* persistent_volume_claim.c */
extern const struct hfd_schema hfd_persistent_volume_claim_schema;
/* replication_controller.c */
extern const struct hfd_schema hfd_replication_controller_schema;
/* apps.c */
extern const struct hfd_schema hfd_controller_revision_schema, hfd_daemon_set_schema,
        hfd_deployment_schema, hfd_replica_set_schema, hfd_stateful_set_schema;
/* batch.c */
extern const struct hfd_schema hfd_job_schema, hfd_cron_job_schema;
/* policy.c */
extern const struct hfd_schema hfd_pod_disruption_budget_schema;
/* autoscaling.c */
extern const struct hfd_schema hfd_horizontal_pod_autoscaler_schema;
/* autoscaling_v1.c */
extern const struct hfd_schema hfd_autoscaler_v1_schema;
/* scale.c */
extern const struct hfd_schema hfd_scale_schema;
/* network_policy.c */
extern const struct hfd_schema hfd_network_policy_schema;
/* ingress.c */
extern const struct hfd_schema hfd_ingress_schema, hfd_ingress_class_schema;
/* service_cidr.c */
extern const struct hfd_schema hfd_ip_address_schema, hfd_service_cidr_schema;
/* endpoint_slice.c */
extern const struct hfd_schema hfd_endpoint_slice_schema;
/* storage_class.c */
extern const struct hfd_schema hfd_storage_class_schema, hfd_volume_attributes_class_schema,
        hfd_csi_storage_capacity_schema;
/* csi.c */
extern const struct hfd_schema hfd_csi_driver_schema, hfd_csi_node_schema,
        hfd_volume_attachment_schema;

/* ---- autoscaler_conversion.c ---- */

extern const struct hfd_conversion hfd_autoscaler_v1_conversion;
/* Drops the annotations of v1 from an autoscaler of v2, as kube-apiserver does: they could say
 * something else than its fields, and a read through v1 makes them from the fields. The contract is
 * that of hfd_resource.normalize. */
int hfd_autoscaler_normalize(struct hf__json *object);

/* ---- presets.c, group_presets.c: defaults; the contract is that of hfd_resource.prepare ---- */

int hfd_pod_prepare(struct hf__json *object, const struct hf__json *old);
int hfd_node_prepare(struct hf__json *object, const struct hf__json *old);
/* For kinds that have a status but no defaults. */
int hfd_workload_prepare(struct hf__json *object, const struct hf__json *old);
int hfd_service_prepare(struct hf__json *object, const struct hf__json *old);
int hfd_endpoints_prepare(struct hf__json *object, const struct hf__json *old);
int hfd_persistent_volume_prepare(struct hf__json *object, const struct hf__json *old);
int hfd_persistent_volume_claim_prepare(struct hf__json *object, const struct hf__json *old);
/* The defaults of a claim that a StatefulSet makes for each of its pods. 0 or -ENOMEM. */
int hfd_claim_template_prepare(struct hf__json *claim);
int hfd_replication_controller_prepare(struct hf__json *object, const struct hf__json *old);
int hfd_daemon_set_prepare(struct hf__json *object, const struct hf__json *old);
int hfd_deployment_prepare(struct hf__json *object, const struct hf__json *old);
int hfd_replica_set_prepare(struct hf__json *object, const struct hf__json *old);
int hfd_stateful_set_prepare(struct hf__json *object, const struct hf__json *old);
int hfd_job_prepare(struct hf__json *object, const struct hf__json *old);
int hfd_cron_job_prepare(struct hf__json *object, const struct hf__json *old);
int hfd_horizontal_pod_autoscaler_prepare(struct hf__json *object, const struct hf__json *old);
int hfd_autoscaler_v1_prepare(struct hf__json *object, const struct hf__json *old);
int hfd_network_policy_prepare(struct hf__json *object, const struct hf__json *old);
int hfd_endpoint_slice_prepare(struct hf__json *object, const struct hf__json *old);
int hfd_ingress_prepare(struct hf__json *object, const struct hf__json *old);
int hfd_ingress_class_prepare(struct hf__json *object, const struct hf__json *old);
int hfd_pod_disruption_budget_prepare(struct hf__json *object, const struct hf__json *old);
int hfd_storage_class_prepare(struct hf__json *object, const struct hf__json *old);
int hfd_csi_driver_prepare(struct hf__json *object, const struct hf__json *old);
int hfd_volume_attachment_prepare(struct hf__json *object, const struct hf__json *old);

/* ---- pods ---- */

/* pods/pod_qos.c: from a spec with its defaults. Static storage. */
const char *hfd_pod_qos_class(const struct hf__json *spec);
/* pods/pod_placement.c. 0 or -ENOMEM. Adds the tolerations that all pods have. *ret_changed:
 * whether one of them was missing. */
int hfd_pod_default_tolerations(struct hf__json *spec, bool *ret_changed);
/* Adds the taint of a node that is not ready. 0 or -ENOMEM. */
int hfd_node_taint_new(struct hf__json *node);
/*
 * Two merges of what a RuntimeClass adds to a pod:
 *
 *  - The first one merges tolerations, and drops those that others cover. 0, -ENOMEM, or
 *    HF_E_TOO_LARGE: both lists together have more than HFD_TOLERATIONS_MERGED_MAX elements.
 *  - The second one adds labels to the node selector. 0 or -ENOMEM. If both have the same label
 *    with different values, the result is 0 too, but `why` gets the message, and spec is changed in
 *    part.
 */
int hfd_pod_merge_tolerations(struct hf__json *spec, const struct hf__json *more);
int hfd_pod_merge_node_selector(struct hf__json *spec, const struct hf__json *more,
                                struct hf__strbuf *why);
/* pods/pod_app_armor.c: sets the profiles of containers that only annotations name. 0 or -ENOMEM.
 */
int hfd_pod_copy_app_armor(struct hf__json *object);
/* pods/pod_label_keys.c: hfd_resource.complete. Puts the values of the pod's labels into the
 * selectors beside matchLabelKeys and mismatchLabelKeys. */
int hfd_pod_complete(struct hf__json *object);
/* pods/pod_annotations.c: annotations that kubelets and controllers read. old NULL: a create. */
void hfd_pod_validate_annotations(const struct hf__json *object, const struct hf__json *old,
                                  struct hfd_causes *causes);
/* pods/pod_part_rules.c: the subresources that change a part of the spec */
extern const struct hfd_part_rules hfd_pod_part_rules;
/* pods/pod_update.c: the contract is that of hfd_resource.validate */
void hfd_pod_validate(const struct hf__json *object, const struct hf__json *old,
                      struct hfd_causes *causes);
/* The rules of a pod's spec for each write that changes it, also by a subresource, except
 * .../binding. was: the old spec. It may be older than a rule, so a cause that it has, too, does
 * not count, unless there are more causes than are kept: then all count. */
void hfd_pod_validate_changed_spec(const struct hf__json *spec, const struct hf__json *was,
                                   struct hfd_causes *causes);
/* Makes a copy of the spec in the form of its schema, on which the rules rely. The spec of a
 * subresource's write comes from the store, where another program may have put anything. The caller
 * frees the copy. NULL: causes has the reason, or -ENOMEM. */
struct hf__json *hfd_pod_formed_spec(const struct hf__json *spec, struct hfd_causes *causes);
/* pods/pod_affinity_update.c: how an update may change the node affinity of a pod that
 * scheduling gates hold back. spec, old: the new and the old spec. */
void hfd_pod_validate_affinity_update(const struct hf__json *spec, const struct hf__json *old,
                                      struct hfd_causes *causes);
/* pods/pod_status.c: the contract is that of hfd_resource.validate_status */
void hfd_pod_validate_status(const struct hf__json *object, const struct hf__json *old,
                             struct hfd_causes *causes);
/* Makes status.podIP and status.podIPs agree. 0 or -ENOMEM. */
int hfd_pod_set_addresses(struct hf__json *object);
/* pods/device_status.c: the devices of containers in the status of a pod, and its claim for
 * extended resources */
void hfd_device_health_validate(const struct hf__json *pod, struct hfd_causes *causes);
void hfd_extended_claim_validate(const struct hf__json *pod, struct hfd_causes *causes);
/* pods/container_users.c: the users of containers that the status names */
void hfd_container_users_validate(const struct hf__json *pod, struct hfd_causes *causes);
/* pods/pod_resize.c: adds a cause for each change that .../resize must not make. object differs
 * from old in resources and resizePolicy only, unless it has other containers. */
void hfd_pod_validate_resize(const struct hf__json *object, const struct hf__json *old,
                             struct hfd_causes *causes);

/* ---- services ---- */

/* presets/service_fields.c: sets the fields that depend on others, and drops the fields that only
 * the old type needed. old: the old spec; NULL = a create. 0 or -ENOMEM. */
int hfd_service_set_fields(struct hf__json *spec, const struct hf__json *old);
/* The nodePorts of a Service, whatever ports they belong to. */
struct hfd_node_ports {
        int64_t *sorted; /* owned; 0 for a port without one */
        size_t n;
};
/* spec: NULL has none. 0 or -ENOMEM; after success the caller calls hfd_node_ports_done. */
int hfd_node_ports_init(struct hfd_node_ports *numbers, const struct hf__json *spec);
void hfd_node_ports_done(struct hfd_node_ports *numbers);
/* Takes logarithmic time. */
bool hfd_node_ports_have(const struct hfd_node_ports *numbers, int64_t number);
/* rules/workload_validation.c: whether an update leaves the spec as it is. Then the rules below are
 * not checked: the object may have been stored before these rules existed, and its status and
 * finalizers must still be changeable. schema: that of the kind, by which the specs are compared: a
 * member that a typed client leaves out because it is zero has not changed. old NULL: a create, so
 * false. If memory runs out, the causes say so, and the result is false. */
bool hfd_spec_is_kept(const struct hfd_schema *schema, const struct hf__json *object,
                      const struct hf__json *old, struct hfd_causes *causes);
/* The same for spec.template alone: a workload whose template was stored before there was one of
 * its rules can still be scaled. */
bool hfd_template_is_kept(const struct hfd_schema *schema, const struct hf__json *object,
                          const struct hf__json *old, struct hfd_causes *causes);
/* rules/addresses/cluster_addresses.c: clusterIP, clusterIPs, ipFamilies and ipFamilyPolicy. spec,
 * old: the new and the old spec of the Service; old NULL = a create.
 * hfd_service_is_headless: whether the Service has one clusterIP, "None". */
bool hfd_service_is_headless(const struct hf__json *spec);
/* Kubernetes checks these four fields before it allocates addresses. If that adds a cause, it
 * reports nothing else. hfd_cluster_addresses_validate_first does this check, and returns whether
 * there was no cause. For a spec that it skips, the second function checks the fields later, among
 * the other rules. The third one checks what an update may change. */
bool hfd_cluster_addresses_validate_first(const struct hf__json *spec, const struct hf__json *old,
                                          struct hfd_causes *causes);
void hfd_cluster_addresses_validate(const struct hf__json *spec, const struct hf__json *old,
                                    struct hfd_causes *causes);
void hfd_cluster_addresses_validate_update(const struct hf__json *spec, const struct hf__json *old,
                                           struct hfd_causes *causes);
/* rules/addresses/balancer_validation.c: the ranges from which a load balancer lets clients in. The
 * older annotation counts only if the field has no ranges. object, old: whole Services. */
#define HFD_RANGES_ANNOTATION "service.beta.kubernetes.io/load-balancer-source-ranges"
void hfd_balancer_ranges_validate(const struct hf__json *object, const struct hf__json *old,
                                  struct hfd_causes *causes);
/* An annotation of a Service; NULL: it is absent. */
const struct hf__json *hfd_service_annotation(const struct hf__json *service, const char *key);
/* The class of the load balancer. spec, old: those of the Service; old NULL = a create. */
void hfd_balancer_class_validate(const struct hf__json *spec, const struct hf__json *old,
                                 struct hfd_causes *causes);
/* healthCheckNodePort, and whether an update may change it. spec, old: as above. */
void hfd_balancer_health_port_validate(const struct hf__json *spec, const struct hf__json *old,
                                       struct hfd_causes *causes);
void hfd_balancer_health_port_validate_update(const struct hf__json *spec,
                                              const struct hf__json *old,
                                              struct hfd_causes *causes);
/* rules/service_validation.c: the contract is that of hfd_resource.validate. */
void hfd_service_validate(const struct hf__json *object, const struct hf__json *old,
                          struct hfd_causes *causes);

/* ---- claim_validation.c, ingress_validation.c, budget_validation.c, autoscaler_validation.c in
 * rules/ and its folders; the contract of each is that of hfd_resource.validate ---- */

void hfd_claim_validate(const struct hf__json *object, const struct hf__json *old,
                        struct hfd_causes *causes);
void hfd_ingress_validate(const struct hf__json *object, const struct hf__json *old,
                          struct hfd_causes *causes);
void hfd_budget_validate(const struct hf__json *object, const struct hf__json *old,
                         struct hfd_causes *causes);
void hfd_autoscaler_validate(const struct hf__json *object, const struct hf__json *old,
                             struct hfd_causes *causes);
void hfd_autoscaler_v1_validate(const struct hf__json *object, const struct hf__json *old,
                                struct hfd_causes *causes);

/* ---- apps_validation.c, workload_validation.c, job_validation.c, network_policy_validation.c,
 * storage_validation.c, csi_node_validation.c, persistent_volume_validation.c,
 * endpoint_validation.c, and for IngressClasses ingress_validation.c, in rules/ and its folders;
 * the contract of each is that of hfd_resource.validate ---- */

void hfd_deployment_validate(const struct hf__json *object, const struct hf__json *old,
                             struct hfd_causes *causes);
void hfd_replica_set_validate(const struct hf__json *object, const struct hf__json *old,
                              struct hfd_causes *causes);
void hfd_daemon_set_validate(const struct hf__json *object, const struct hf__json *old,
                             struct hfd_causes *causes);
void hfd_stateful_set_validate(const struct hf__json *object, const struct hf__json *old,
                               struct hfd_causes *causes);
void hfd_controller_revision_validate(const struct hf__json *object, const struct hf__json *old,
                                      struct hfd_causes *causes);
/* A ReplicationController, whose selector is a map of labels. */
void hfd_replication_controller_validate(const struct hf__json *object, const struct hf__json *old,
                                         struct hfd_causes *causes);
void hfd_job_validate(const struct hf__json *object, const struct hf__json *old,
                      struct hfd_causes *causes);
void hfd_cron_job_validate(const struct hf__json *object, const struct hf__json *old,
                           struct hfd_causes *causes);
void hfd_network_policy_validate(const struct hf__json *object, const struct hf__json *old,
                                 struct hfd_causes *causes);
void hfd_storage_class_validate(const struct hf__json *object, const struct hf__json *old,
                                struct hfd_causes *causes);
void hfd_volume_attributes_class_validate(const struct hf__json *object, const struct hf__json *old,
                                          struct hfd_causes *causes);
void hfd_csi_node_validate(const struct hf__json *object, const struct hf__json *old,
                           struct hfd_causes *causes);
void hfd_csi_storage_capacity_validate(const struct hf__json *object, const struct hf__json *old,
                                       struct hfd_causes *causes);
void hfd_csi_driver_validate(const struct hf__json *object, const struct hf__json *old,
                             struct hfd_causes *causes);
void hfd_volume_attachment_validate(const struct hf__json *object, const struct hf__json *old,
                                    struct hfd_causes *causes);
void hfd_ingress_class_validate(const struct hf__json *object, const struct hf__json *old,
                                struct hfd_causes *causes);
void hfd_persistent_volume_validate(const struct hf__json *object, const struct hf__json *old,
                                    struct hfd_causes *causes);
void hfd_endpoints_validate(const struct hf__json *object, const struct hf__json *old,
                            struct hfd_causes *causes);
void hfd_endpoint_slice_validate(const struct hf__json *object, const struct hf__json *old,
                                 struct hfd_causes *causes);

/* ---- nodes/ and addresses/ in rules/ ---- */

/* nodes/node_validation.c: the contract is that of hfd_resource.validate */
void hfd_node_validate(const struct hf__json *object, const struct hf__json *old,
                       struct hfd_causes *causes);
/* Makes spec.podCIDR and spec.podCIDRs agree. 0 or -ENOMEM. */
int hfd_node_set_cidrs(struct hf__json *node);
/* nodes/node_status.c: the status that a new node has; and hfd_resource.validate_status */
void hfd_node_first_status_validate(const struct hf__json *node, struct hfd_causes *causes);
void hfd_node_validate_status(const struct hf__json *object, const struct hf__json *old,
                              struct hfd_causes *causes);
/* addresses/ip_address_validation.c: the contract is that of hfd_resource.validate */
void hfd_ip_address_validate(const struct hf__json *object, const struct hf__json *old,
                             struct hfd_causes *causes);
void hfd_service_cidr_validate(const struct hf__json *object, const struct hf__json *old,
                               struct hfd_causes *causes);

/* ---- statuses/ in rules/; the contract of each hfd_..._validate_status is that of
 * hfd_resource.validate_status. No controller of this server writes these statuses. ---- */

/* replica_status.c. Whether a write leaves the status as it is, in the same sense as
 * hfd_spec_is_kept. Then the rules below are not checked. */
bool hfd_status_is_kept(const struct hfd_schema *schema, const struct hf__json *object,
                        const struct hf__json *old, struct hfd_causes *causes);
/* A number of a status; 0 = it is absent. */
int64_t hfd_status_number(const struct hf__json *status, const char *name);
/* Adds the cause "Invalid value: NUMBER: DETAIL". */
void hfd_status_refuse_number(const struct hf__json *status, const char *name, const char *detail,
                              struct hfd_causes *causes);
void hfd_deployment_validate_status(const struct hf__json *object, const struct hf__json *old,
                                    struct hfd_causes *causes);
/* Of a ReplicaSet or a ReplicationController. */
void hfd_replica_set_validate_status(const struct hf__json *object, const struct hf__json *old,
                                     struct hfd_causes *causes);
void hfd_stateful_set_validate_status(const struct hf__json *object, const struct hf__json *old,
                                      struct hfd_causes *causes);
void hfd_daemon_set_validate_status(const struct hf__json *object, const struct hf__json *old,
                                    struct hfd_causes *causes);
void hfd_budget_validate_status(const struct hf__json *object, const struct hf__json *old,
                                struct hfd_causes *causes);
/* Of both versions of autoscalers. */
void hfd_autoscaler_validate_status(const struct hf__json *object, const struct hf__json *old,
                                    struct hfd_causes *causes);
/* job_status.c */
void hfd_job_validate_status(const struct hf__json *object, const struct hf__json *old,
                             struct hfd_causes *causes);
/* storage_status.c */
void hfd_claim_validate_status(const struct hf__json *object, const struct hf__json *old,
                               struct hfd_causes *causes);
void hfd_volume_attachment_validate_status(const struct hf__json *object,
                                           const struct hf__json *old, struct hfd_causes *causes);
/* address_status.c */
void hfd_service_validate_status(const struct hf__json *object, const struct hf__json *old,
                                 struct hfd_causes *causes);
void hfd_ingress_validate_status(const struct hf__json *object, const struct hf__json *old,
                                 struct hfd_causes *causes);
/* The elements {"ip": ADDRESS} at the path `field`: at most one of each family. old: the list of
 * the old status, whose addresses are accepted. */
void hfd_pod_addresses_validate(const struct hf__json *list, const struct hf__json *old,
                                const char *field, struct hfd_causes *causes);

/* ---- helpers that the files in rules/ share; except hfd_labels_show, each adds a cause for each
 * mistake ---- */

/* workload_validation.c: prints a map of labels for a cause as Go does: in the order of the keys,
 * and null if there is none. A long one is cut. 0 or -ENOMEM. The caller frees ret_shown in any
 * case. */
int hfd_labels_show(const struct hf__json *labels, struct hf__strbuf *ret_shown);
/* Adds the cause for a selector that does not select the labels of the template beside it. */
void hfd_template_labels_refuse(const struct hf__json *labels, struct hfd_causes *causes);
/* Adds a cause if spec.template has a restartPolicy other than Always. For the kinds that keep
 * their pods running. */
void hfd_always_restarted_validate(const struct hf__json *template, struct hfd_causes *causes);
/* job_failure_policy.c: spec.podFailurePolicy, and spec.podReplacementPolicy. spec: that of the
 * Job, at the path `field`. A policy that is absent is valid. */
void hfd_job_failure_policy_validate(const struct hf__json *spec, const char *field,
                                     struct hfd_causes *causes);
void hfd_job_replacement_policy_validate(const struct hf__json *spec, const char *field,
                                         struct hfd_causes *causes);
/* job_success_policy.c: spec.successPolicy, which is there. */
void hfd_job_success_policy_validate(const struct hf__json *spec, const char *field,
                                     struct hfd_causes *causes);
/* job_update.c: what an update may change. old: the old Job, not only its spec, because its status
 * says whether it is idle. */
void hfd_job_update_validate(const struct hf__json *spec, const struct hf__json *old,
                             struct hfd_causes *causes);
/* topology_validation.c: allowedTopologies of a StorageClass. */
void hfd_topologies_validate(const struct hf__json *terms, struct hfd_causes *causes);
/* persistent_volume_validation.c: the spec of a volume in a VolumeAttachment, at the path `field`.
 */
void hfd_inline_volume_validate(const struct hf__json *spec, const char *field,
                                struct hfd_causes *causes);
/* strategy_validation.c: a number of pods, or a percentage of them, at the path `field`. share
 * NULL: it is absent, which is valid. The second function checks only that a percentage is not more
 * than 100. */
void hfd_share_validate(const struct hf__json *share, const char *field, struct hfd_causes *causes);
void hfd_share_validate_most(const struct hf__json *share, const char *field,
                             struct hfd_causes *causes);
/* The update strategies of the three kinds. They have their defaults. */
void hfd_deployment_strategy_validate(const struct hf__json *strategy, struct hfd_causes *causes);
void hfd_daemon_set_strategy_validate(const struct hf__json *strategy, struct hfd_causes *causes);
void hfd_stateful_set_strategy_validate(const struct hf__json *strategy, struct hfd_causes *causes);
/* cron_schedule.c: spec.schedule of a CronJob, which is not empty. was: the old spec; NULL: a
 * create. */
void hfd_cron_schedule_validate(const struct hf__json *spec, const struct hf__json *was,
                                struct hfd_causes *causes);
/* spec.timeZone of a CronJob; NULL: it is absent, which is valid. */
void hfd_cron_zone_validate(const struct hf__json *zone, struct hfd_causes *causes);

/* SPDX-License-Identifier: Apache-2.0 */
#pragma once
/*
 * The rules of a pod template and of its parts, for all kinds that have one. Each function adds a
 * cause for each mistake that it finds, and returns nothing unless it says so.
 *
 * Values have the form of their schemas, and their defaults. An argument that is NULL stands for an
 * absent member. field: the path of the value in the object, "spec.template.spec"; the causes show
 * it. Pure. Thread: any.
 */
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "server/resources/causes.h"

struct hf__json;
struct hf__json_index;
struct hfd_schema;

#define HFD_FIELD_PATH_MAX 160 /* bytes, with the NUL; a cause has room for as many */

/* pod_validation.c */
void hfd_pod_template_spec_validate(const struct hf__json *template, const char *field,
                                    struct hfd_causes *causes);
/* of_pod: the spec is that of a pod, not of a template, so that a volume with the source `image`
 * must name its image. */
void hfd_pod_spec_validate(const struct hf__json *spec, const char *field, bool of_pod,
                           struct hfd_causes *causes);
/* toleration.c */
void hfd_toleration_validate(const struct hf__json *toleration, const char *field,
                             struct hfd_causes *causes);
/* The value of a taint or of a toleration, which has the syntax of the value of a label. */
void hfd_taint_value_validate(const char *value, const char *field, struct hfd_causes *causes);
/* volumes/volume_validation.c: spec.volumes. of_pod: see hfd_pod_spec_validate. Also builds an
 * index of them, in which only hfd_volume_find finds volumes; it is empty if memory runs out, which
 * the causes say. The caller calls hf__json_index_done. */
void hfd_volumes_validate(const struct hf__json *spec, const char *field, bool of_pod,
                          struct hf__json_index *ret_volumes, struct hfd_causes *causes);
/* The volume of this name. NULL: there is none without mistakes, so as in kube-apiserver the name
 * is unknown to containers, and another volume may have it. */
const struct hf__json *hfd_volume_find(const struct hf__json_index *volumes, const char *name);
/* What has a source: a volume of a template, or of a pod; or the spec of a PersistentVolume, or one
 * within a VolumeAttachment. */
enum hfd_volume_kind {
        HFD_VOLUME_OF_TEMPLATE,
        HFD_VOLUME_OF_POD,
        HFD_VOLUME_PERSISTENT,
        HFD_VOLUME_INLINE
};
/* The source of a volume or a spec: exactly one member; and what the source demands of the rest of
 * the spec. name: that of the volume. field: the path of the volume or the spec */
void hfd_volume_source_validate(const struct hf__json *volume, const char *name, const char *field,
                                enum hfd_volume_kind kind, struct hfd_causes *causes);
/* Whether a member of the spec of a PersistentVolume is its source. */
bool hfd_is_persistent_source(const char *name);
/* volumes/pod_sources.c: whether a segment of the path is "..", with which it could lead out of the
 * volume. */
bool hfd_has_backsteps(const char *path);
/* A path in a volume, which is a member of the object. An absent one, or "", is valid. */
void hfd_local_path_validate(const struct hf__json *object, const char *field, const char *member,
                             struct hfd_causes *causes);
/* The same for a path that may also begin with a name that kubelets use themselves ("..data"). */
void hfd_descending_path_validate(const struct hf__json *object, const char *field,
                                  const char *member, struct hfd_causes *causes);
/* A key of a ConfigMap or Secret that becomes a file. */
void hfd_key_file_validate(const struct hf__json *item, const char *field,
                           struct hfd_causes *causes);
/* A file that shows a field of the pod, or a resource of a container. */
void hfd_downward_file_validate(const struct hf__json *file, const char *field,
                                struct hfd_causes *causes);
/* A reference to a field of the pod, whose value a variable gets, or a file of a volume. of_volume:
 * the second case, which allows other fields. */
void hfd_object_field_selector_validate(const struct hf__json *selector, const char *field,
                                        bool of_volume, struct hfd_causes *causes);
/* The same for a resource of a container. */
void hfd_resource_field_selector_validate(const struct hf__json *selector, const char *field,
                                          bool of_volume, struct hfd_causes *causes);
/* volumes/certificate_sources.c: the members of the sources clusterTrustBundle and podCertificate
 * that are no paths */
void hfd_trust_bundle_validate(const struct hf__json *source, const char *field,
                               struct hfd_causes *causes);
void hfd_pod_certificate_validate(const struct hf__json *source, const char *field,
                                  struct hfd_causes *causes);
/* volumes/mount_validation.c: volumeMounts and volumeDevices of a container. volumes: of
 * hfd_volumes_validate. field: the path of the container */
void hfd_mounts_validate(const struct hf__json *container, const struct hf__json_index *volumes,
                         const char *field, struct hfd_causes *causes);
/* volumes/vendor_sources.c: the name of a driver of CSI */
void hfd_csi_driver_name_validate(const char *name, const char *field, struct hfd_causes *causes);
/* volumes/claim_spec.c: the spec of a claim, at the path `field`. old: the one that it replaces;
 * NULL = none */
void hfd_claim_spec_validate(const struct hf__json *spec, const struct hf__json *old,
                             const char *field, struct hfd_causes *causes);
/* The size that the spec of a claim asks for; NULL = none. */
const struct hf__json *hfd_claim_size(const struct hf__json *spec);
/* accessModes of the spec of a volume. field: their path. */
void hfd_access_modes_validate(const struct hf__json *spec, const char *field,
                               struct hfd_causes *causes);
/* container_validation.c: spec.containers, spec.initContainers and spec.ephemeralContainers.
 * volumes: of hfd_volumes_validate */
void hfd_containers_validate(const struct hf__json *spec, const char *field,
                             const struct hf__json_index *volumes, struct hfd_causes *causes);
/* container_resources.c: the resources of a container. claims: an index of the names in
 * spec.resourceClaims */
void hfd_container_resources_validate(const struct hf__json *resources,
                                      const struct hf__json_index *claims, const char *field,
                                      struct hfd_causes *causes);
/* The resizePolicy of a container, whose path is the field. never_restarts: the restartPolicy of
 * the pod is Never. */
void hfd_resize_policy_validate(const struct hf__json *list, const char *field, bool never_restarts,
                                struct hfd_causes *causes);
/* The overhead of a pod, or of a RuntimeClass for its pods. */
void hfd_overhead_validate(const struct hf__json *overhead, const char *field,
                           struct hfd_causes *causes);
/* device_claims.c: spec.resourceClaims, whose path is the field */
void hfd_device_claims_validate(const struct hf__json *list, const char *field,
                                struct hfd_causes *causes);
/* host_port_validation.c: the ports of the node that a list of containers uses, from `first` on; or
 * those of `first` alone. field: the path of the list */
void hfd_host_ports_validate(const struct hf__json *first, bool only_first, const char *field,
                             struct hfd_causes *causes);
/* With spec.hostNetwork, a port of a container is that of the node. field: the path of the spec */
void hfd_host_network_validate(const struct hf__json *spec, const char *field,
                               struct hfd_causes *causes);
/* container_validation.c: the name of a container's image has no white space around it. As in
 * kube-apiserver, templates need not follow this rule. So hfd_pod_spec_validate checks it for
 * ephemeral containers only, and the rules of pods call it for the others. */
void hfd_image_validate(const struct hf__json *container, const char *field,
                        struct hfd_causes *causes);
/* restart_validation.c: restartPolicy and restartPolicyRules of a container, or of an init
 * container. field: the path of the container */
void hfd_container_restart_validate(const struct hf__json *container, const char *field, bool init,
                                    struct hfd_causes *causes);
/* security/pod_security.c: spec.securityContext. field: the path of the spec. */
void hfd_pod_security_validate(const struct hf__json *spec, const char *field,
                               struct hfd_causes *causes);
/* A list of the numbers of groups. field: its path. */
void hfd_groups_validate(const struct hf__json *list, const char *field, struct hfd_causes *causes);
/* runAsUser and runAsGroup of a security context. */
void hfd_security_ids_validate(const struct hf__json *context, const char *field,
                               struct hfd_causes *causes);
/* security/container_security.c: the security context of a container. host_users: the pod uses the
 * user namespace of the host. */
void hfd_container_security_validate(const struct hf__json *context, const char *field,
                                     bool host_users, struct hfd_causes *causes);
/* The seccompProfile of a security context. */
void hfd_seccomp_validate(const struct hf__json *context, const char *field,
                          struct hfd_causes *causes);
/* security/windows_options.c: the windowsOptions of a security context */
void hfd_windows_options_validate(const struct hf__json *context, const char *field,
                                  struct hfd_causes *causes);
/* All containers of a pod run in the host itself, or none does (hostProcess). */
void hfd_host_processes_validate(const struct hf__json *spec, const char *field,
                                 struct hfd_causes *causes);
/* security/os_validation.c: what spec.os and spec.hostUsers forbid */
void hfd_os_validate(const struct hf__json *spec, const char *field, struct hfd_causes *causes);
void hfd_host_users_validate(const struct hf__json *spec, const char *field,
                             struct hfd_causes *causes);
/* dns_validation.c: spec.dnsConfig, which the spec.dnsPolicy None needs */
void hfd_dns_validate(const struct hf__json *spec, const char *field, struct hfd_causes *causes);
/* spec.hostnameOverride */
void hfd_hostname_override_validate(const struct hf__json *spec, const char *field,
                                    struct hfd_causes *causes);
/* spec.hostAliases, whose path is the field */
void hfd_host_aliases_validate(const struct hf__json *list, const char *field,
                               struct hfd_causes *causes);
/* gate_validation.c: spec.readinessGates and spec.schedulingGates */
void hfd_gates_validate(const struct hf__json *spec, const char *field, struct hfd_causes *causes);
/* scheduling/node_selector.c: a selector of nodes by labels and names, and one of its terms.
 * any_value: the values of labels may have any form, as in preferred terms, and in an update of an
 * object whose old selector has values that no label can have. */
void hfd_node_selector_validate(const struct hf__json *selector, const char *field, bool any_value,
                                struct hfd_causes *causes);
void hfd_node_selector_term_validate(const struct hf__json *term, const char *field, bool any_value,
                                     struct hfd_causes *causes);
/* Whether the selector has a value that no label can have. */
bool hfd_node_selector_has_bad_values(const struct hf__json *selector);
/* scheduling/affinity_validation.c: spec.affinity */
void hfd_affinity_validate(const struct hf__json *affinity, const char *field,
                           struct hfd_causes *causes);
/* scheduling/spread_validation.c: spec.topologySpreadConstraints, whose path is the field */
void hfd_spread_validate(const struct hf__json *list, const char *field, struct hfd_causes *causes);
/* scheduling/label_keys.c: matchLabelKeys and mismatchLabelKeys of a spread constraint or of a term
 * of an affinity to pods, which has a labelSelector beside them */
void hfd_label_keys_validate(const struct hf__json *term, const char *field,
                             struct hfd_causes *causes);
/* variable_validation.c: env and envFrom of a container */
void hfd_variables_validate(const struct hf__json *container, const char *field,
                            struct hfd_causes *causes);
/* The volumes whose files set variables of containers (fileKeyRef). field: the path of the spec */
void hfd_file_volumes_validate(const struct hf__json *spec, const char *field,
                               struct hfd_causes *causes);
/* handler_validation.c: the probes of a container, and its lifecycle hooks. grace: the seconds that
 * the pod has to stop (terminationGracePeriodSeconds) */
void hfd_handlers_validate(const struct hf__json *container, const char *field, int64_t grace,
                           struct hfd_causes *causes);

/* ---- what was stored before a rule: stored_mistakes.c ---- */

#define HFD_FORM_REASON_MAX 400 /* bytes, with the NUL */

/* Makes a copy of a stored object in the form of its schema. The caller frees it. 0; -ENOMEM; or
 * HF_E_INVALID, and the reason: another program has stored it, and it has no such form. */
int hfd_formed_copy(const struct hfd_schema *schema, const struct hf__json *value,
                    struct hf__json **ret_copy, char reason[HFD_FORM_REASON_MAX]);

struct hfd_change_rules {
        const struct hfd_schema *schema; /* of the value */
        void (*validate)(const struct hf__json *value, const char *field,
                         struct hfd_causes *causes);
};
/* Runs the rules of a value that an update changes in part. was: the old value; NULL = none. The
 * old value may be older than a rule, so a cause that it has too does not count. All causes count
 * if there are HFD_CAUSES_MAX of them, or if the old value does not have the form of its schema.
 * field: the path of the value. */
void hfd_change_validate(const struct hfd_change_rules *rules, const struct hf__json *value,
                         const struct hf__json *was, const char *field, struct hfd_causes *causes);
/* hfd_pod_template_spec_validate for a template that an update may change as a whole: a mistake
 * does not count if the old template has one of the same kind, and Kubernetes lets updates keep
 * this kind. was: the old template; NULL = none. */
void hfd_template_change_validate(const struct hf__json *template, const struct hf__json *was,
                                  const char *field, struct hfd_causes *causes);

/* ---- profiles of AppArmor: security/app_armor.c ---- */

/* The key of an annotation with a profile is this and the name of the container. Such annotations
 * are older than the field appArmorProfile of security contexts. */
#define HFD_APP_ARMOR_PREFIX "container.apparmor.security.beta.kubernetes.io/"

struct hfd_app_armor {
        const char *type; /* as in the field; NULL: the annotation names no profile */
        /* Borrowed from the annotation; may be "". NULL unless the type is Localhost. */
        const char *profile;
};

/* value: that of an annotation. */
struct hfd_app_armor hfd_app_armor_of_annotation(const char *value);
/* Whether one of the annotations is for AppArmor. Few pods have one. */
bool hfd_app_armor_is_annotated(const struct hf__json *annotations);
/* The same, but false for pods of Windows, which has no AppArmor. spec: that of the pod. */
bool hfd_app_armor_is_in_use(const struct hf__json *annotations, const struct hf__json *spec);
bool hfd_app_armor_is_key(const char *key);
/* The annotation for a container; NULL: there is none. by_key: an index of all annotations, which
 * the result is borrowed from. */
const char *hfd_app_armor_find(const struct hf__json_index *by_key,
                               const struct hf__json *container);
/* Whether the name of a profile on the node is valid: it is not empty, has no spaces around it, and
 * is not too long. */
bool hfd_app_armor_is_profile(const char *profile);
/* context: a security context of a pod or a container. */
void hfd_app_armor_validate(const struct hf__json *context, const char *field,
                            struct hfd_causes *causes);
/* The annotations of a pod or a template. spec: that of the pod. */
void hfd_app_armor_annotations_validate(const struct hf__json *annotations,
                                        const struct hf__json *spec, const char *field,
                                        struct hfd_causes *causes);
/* The annotations of a new pod, or of a template, and the profiles of its containers agree. field:
 * the path of the spec. */
void hfd_app_armor_match_validate(const struct hf__json *annotations, const struct hf__json *spec,
                                  const char *field, struct hfd_causes *causes);

/* ---- helpers of these files: field_path.c ---- */

/* The text of a member; "" if it is absent or no text. key: a key, not a path. Borrowed from the
 * object. */
const char *hfd_text_of(const struct hf__json *object, const char *key);
/* Whether an element before `position` has the same text. */
bool hfd_is_repeated(const struct hf__json_index *index, const char *text, size_t position);
/* Gives the first entry of each text the last item with it, as if a map of Go had been filled. */
void hfd_keep_last_items(struct hf__json_index *index);
/* Whether the text begins or ends with white space. */
bool hfd_is_padded(const char *text);
/* The path of a member: "a" and "b" become "a.b". A path that does not fit is cut. Returns out,
 * which must not be one of the texts. */
const char *hfd_field_path(char out[HFD_FIELD_PATH_MAX], const char *field, const char *member);
/* The path of an element: "a" and 1 become "a[1]". The same holds for out. */
const char *hfd_field_index(char out[HFD_FIELD_PATH_MAX], const char *field, size_t i);
/* "Required value" if the member is absent or "". Returns whether it has a text. */
bool hfd_require_text(const struct hf__json *object, const char *field, const char *member,
                      struct hfd_causes *causes);
/* "Unsupported value" unless the member is one of the values, which end with NULL. An absent member
 * counts as "": "Required value", unless "" is one of the values. */
void hfd_require_one_of(const struct hf__json *object, const char *field, const char *member,
                        const char *const *values, struct hfd_causes *causes);
/* "Unsupported value" unless the text is one of the values, which end with NULL. */
void hfd_refuse_others(const char *text, const char *field, const char *const *values,
                       struct hfd_causes *causes);
/* "Invalid value" unless the number is absent, or min <= number <= max. detail names the range. */
void hfd_require_range(const struct hf__json *object, const char *field, const char *member,
                       int64_t min, int64_t max, const char *detail, struct hfd_causes *causes);
/* The number of a port, or its name if it is a text. NULL counts as 0, which is invalid. */
void hfd_port_validate(const struct hf__json *port, const char *field, struct hfd_causes *causes);
void hfd_port_name_validate(const char *name, const char *field, struct hfd_causes *causes);
/* A DNS label. An absent member or "": "Required value". */
void hfd_label_name_validate(const struct hf__json *object, const char *field, const char *member,
                             struct hfd_causes *causes);
/* A DNS label. "" is an "Invalid value" too. */
void hfd_dns_label_validate(const char *name, const char *field, struct hfd_causes *causes);
/* A DNS subdomain. "" is an "Invalid value" too. */
void hfd_subdomain_validate(const char *name, const char *field, struct hfd_causes *causes);
/* A DNS subdomain, "/" and a path: "acme.io/foo". "": "Required value". */
void hfd_domain_path_validate(const char *name, const char *field, struct hfd_causes *causes);
/* An IPv4 or IPv6 address, in a form that all programs read in the same way. */
void hfd_address_validate(const char *text, const char *field, struct hfd_causes *causes);
/* Calls the function for each container, in Kubernetes' order: init containers, containers,
 * ephemeral containers. field: the path of the spec; the function gets that of the container. */
void hfd_containers_visit(const struct hf__json *spec, const char *field,
                          void (*visit)(const struct hf__json *container, const char *field,
                                        void *userdata),
                          void *userdata);

/* ---- values in causes: internal_form.c ---- */

/* A member of a Go type inside kube-apiserver, whose names differ from those of the API. A table of
 * them ends with {0}. */
struct hfd_internal_member {
        const char *go_name, *name;
        const struct hfd_internal_member
                *members; /* of a struct, or a list of structs; NULL: it is neither */
        bool is_text;     /* no pointer: an absent member is "" */
};

/* "Invalid value", with the object, or the list of objects, as kube-apiserver shows it. NULL is
 * shown as null. */
void hfd_internal_refuse(const struct hf__json *value, const struct hfd_internal_member *members,
                         const char *field, const char *detail, struct hfd_causes *causes);

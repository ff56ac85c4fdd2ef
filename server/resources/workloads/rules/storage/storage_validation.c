/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The rules of StorageClasses, VolumeAttributesClasses, CSIDrivers and VolumeAttachments. Many of
 * their fields cannot be changed by an update.
 *
 * Invariants: the texts of the causes and their order are those of kube-apiserver, because clients
 * show them and tests compare them. An update that does not change the spec of a CSIDriver or a
 * VolumeAttachment is not checked (hfd_spec_is_kept).
 *
 * The rules of allowedTopologies are in topology_validation.c.
 */
#include <stdint.h>
#include <stdio.h>
#include <string.h>

#include "base/json.h"
#include "base/json_index.h"
#include "base/strbuf.h"
#include "server/resources/go_value.h"
#include "server/resources/strategies/pod/rules/pod_validation.h"
#include "server/resources/validation/meta_validation.h"
#include "server/resources/workloads/workloads.h"
#include "server/schema/schema.h"

#define PARAMETERS_MAX       512
#define PARAMETERS_BYTES_MAX ((size_t)256 << 10)

/* ---- classes ---- */

/* The member is the name of a driver: a qualified name, in lower or upper case. As in
 * kube-apiserver, the causes show it in lower case. */
static void validate_driver(const struct hf__json *object, const char *member,
                            struct hfd_causes *causes) {
        const char *name = hfd_text_of(object, member);
        struct hf__strbuf lower = {0};

        if (!*name) {
                hfd_cause_required(causes, member, "");
                return;
        }
        for (const char *c = name; *c; c++)
                hf__strbuf_putc(&lower, *c >= 'A' && *c <= 'Z' ? (char)(*c + ('a' - 'A')) : *c);
        if (hfd_causes_check(causes, lower.error))
                hfd_qualified_name_validate(lower.data, member, causes);
        hf__strbuf_done(&lower);
}

/* As in Kubernetes, the number of the parameters and the sum of their bytes are limited. If there
 * are too many, that is the only cause, and its text says "bytes", too. */
static void validate_parameters(const struct hf__json *parameters, bool may_be_empty,
                                struct hfd_causes *causes) {
        size_t n = hf__json_count(parameters), bytes = 0;

        if (n > PARAMETERS_MAX) {
                hfd_cause_too_long(causes, "parameters", "may not be more than 512 bytes");
                return;
        }
        for (const struct hf__json *m = hf__json_first(parameters); m; m = hf__json_next(m)) {
                bytes += strlen(hf__json_key(m)) +
                         (hf__json_is_string(m) ? strlen(hf__json_text(m)) : 0);
                if (hf__json_key(m)[0] == '\0')
                        hfd_cause_invalid_text(causes, "parameters", "", "field can not be empty.");
        }
        if (bytes > PARAMETERS_BYTES_MAX)
                hfd_cause_too_long(causes, "parameters", "may not be more than 262144 bytes");
        if (n == 0 && !may_be_empty)
                hfd_cause_required(causes, "parameters",
                                   "must contain at least one key/value pair");
}

/* "Forbidden: updates to MEMBER are forbidden." if the member has changed. */
static void forbid_change(const struct hf__json *object, const struct hf__json *old,
                          const char *member, struct hfd_causes *causes) {
        char why[80];

        if (hfd_causes_equal(causes, hf__json_get(object, member), hf__json_get(old, member)))
                return;
        (void)snprintf(why, sizeof why, "updates to %s are forbidden.", member);
        hfd_cause_forbidden(causes, member, why);
}

/* "Invalid value: VALUE: field is immutable", with the value as JSON; NULL is shown as null. */
static void add_immutable(const struct hf__json *value, const char *shown_path,
                          struct hfd_causes *causes) {
        struct hf__strbuf shown = {0};

        hf__json_print(value, &shown);
        bool is_shown = hfd_causes_check(causes, shown.error) && shown.data;
        hfd_cause_invalid(causes, shown_path, is_shown ? shown.data : "null", "field is immutable");
        hf__strbuf_done(&shown);
}

/* The same if the member at `path` has changed. shown_path: the path in the cause. */
static void refuse_change(const struct hf__json *object, const struct hf__json *old,
                          const char *path, const char *shown_path, struct hfd_causes *causes) {
        const struct hf__json *value = hf__json_path(object, path);

        if (!hfd_causes_equal(causes, value, hf__json_path(old, path)))
                add_immutable(value, shown_path, causes);
}

/* The parameters are shown as Go does: in the order of their keys. */
static void refuse_parameters(const struct hf__json *object, const struct hf__json *old,
                              struct hfd_causes *causes) {
        const struct hf__json *parameters = hf__json_get(object, "parameters");
        struct hf__strbuf shown = {0};

        if (hfd_causes_equal(causes, parameters, hf__json_get(old, "parameters")))
                return;
        bool is_shown = hfd_causes_check(causes, hfd_labels_show(parameters, &shown));
        hfd_cause_invalid(causes, "parameters", is_shown ? shown.data : "{}", "field is immutable");
        hf__strbuf_done(&shown);
}

void hfd_storage_class_validate(const struct hf__json *object, const struct hf__json *old,
                                struct hfd_causes *causes) {
        const struct hf__json *topologies = hf__json_get(object, "allowedTopologies");
        const char *policy = hfd_text_of(object, "reclaimPolicy"),
                   *mode = hfd_text_of(object, "volumeBindingMode");

        if (old) {
                if (!hfd_causes_equal_member(causes, &hfd_storage_class_schema, object, old,
                                             "allowedTopologies"))
                        hfd_topologies_validate(topologies, causes);
                refuse_parameters(object, old, causes);
                refuse_change(object, old, "provisioner", "provisioner", causes);
                refuse_change(object, old, "reclaimPolicy", "reclaimPolicy", causes);
                refuse_change(object, old, "volumeBindingMode", "volumeBindingMode", causes);
                return;
        }
        validate_driver(object, "provisioner", causes);
        validate_parameters(hf__json_get(object, "parameters"), true, causes);
        if (*policy && strcmp(policy, "Delete") != 0 && strcmp(policy, "Retain") != 0)
                hfd_cause_unsupported_text(causes, "reclaimPolicy", policy,
                                           "\"Delete\", \"Retain\"");
        if (strcmp(mode, "Immediate") != 0 && strcmp(mode, "WaitForFirstConsumer") != 0)
                hfd_cause_unsupported_text(causes, "volumeBindingMode", mode,
                                           "\"Immediate\", \"WaitForFirstConsumer\"");
        hfd_topologies_validate(topologies, causes);
}

void hfd_volume_attributes_class_validate(const struct hf__json *object, const struct hf__json *old,
                                          struct hfd_causes *causes) {
        if (old) {
                forbid_change(object, old, "driverName", causes);
                forbid_change(object, old, "parameters", causes);
                return;
        }
        validate_driver(object, "driverName", causes);
        validate_parameters(hf__json_get(object, "parameters"), false, causes);
}

/* ---- CSIDrivers ---- */

/* No audience may occur twice; an absent one counts as "". expirationSeconds is checked in two
 * calls, because each bound has a text of its own. */
static void validate_token_requests(const struct hf__json *requests, struct hfd_causes *causes) {
        static const char list[] = "spec.tokenRequests";
        char path[HFD_FIELD_PATH_MAX], member[HFD_FIELD_PATH_MAX];
        struct hf__json_index audiences;
        size_t i = 0;

        if (hfd_causes_check(causes, hf__json_index_init_texts(&audiences, requests, "audience")))
                for (const struct hf__json *m = hf__json_first(requests); m;
                     m = hf__json_next(m), i++) {
                        const char *audience = hfd_text_of(m, "audience");
                        const struct hf__json_index_entry *first =
                                hf__json_index_find(&audiences, audience);
                        hfd_field_index(path, list, i);
                        if (first && first->position < i) {
                                hfd_cause_duplicate_text(causes,
                                                         hfd_field_path(member, path, "audience"),
                                                         audience);
                                continue;
                        }
                        hfd_require_range(m, path, "expirationSeconds", 600, INT64_MAX,
                                          "may not specify a duration less than 10 minutes",
                                          causes);
                        hfd_require_range(m, path, "expirationSeconds", INT64_MIN, INT64_C(1) << 32,
                                          "may not specify a duration larger than 2^32 seconds",
                                          causes);
                }
        hf__json_index_done(&audiences);
}

void hfd_csi_driver_validate(const struct hf__json *object, const struct hf__json *old,
                             struct hfd_causes *causes) {
        static const char *const policies[] = {"File", "None", "ReadWriteOnceWithFSType", NULL};
        const struct hf__json *spec = hf__json_get(object, "spec");

        if (hfd_spec_is_kept(&hfd_csi_driver_schema, object, old, causes))
                return;
        if (hf__json_get(spec, "fsGroupPolicy"))
                hfd_refuse_others(hfd_text_of(spec, "fsGroupPolicy"), "spec.fsGroupPolicy",
                                  policies, causes);
        validate_token_requests(hf__json_get(spec, "tokenRequests"), causes);
        for (const struct hf__json *m = hf__json_first(hf__json_get(spec, "volumeLifecycleModes"));
             m; m = hf__json_next(m)) {
                const char *mode = hf__json_is_string(m) ? hf__json_text(m) : "";
                if (strcmp(mode, "Persistent") != 0 && strcmp(mode, "Ephemeral") != 0)
                        hfd_cause_unsupported_text(causes, "spec.volumeLifecycleModes", mode,
                                                   "\"Persistent\", \"Ephemeral\"");
        }
        hfd_require_range(spec, "spec", "nodeAllocatableUpdatePeriodSeconds", 10, INT64_MAX,
                          "must be greater than or equal to 10 seconds", causes);
        const struct hf__json *in_secrets = hf__json_get(spec, "serviceAccountTokenInSecrets");
        if (in_secrets && !hf__json_first(hf__json_get(spec, "tokenRequests")))
                hfd_cause_invalid(causes, "spec.serviceAccountTokenInSecrets",
                                  hf__json_is_true(in_secrets) ? "true" : "false",
                                  "serviceAccountTokenInSecrets is set but no tokenRequests are "
                                  "specified");
        if (!old)
                return;
        /* kube-apiserver misspells the first path, and clients see this path. */
        refuse_change(object, old, "spec.attachRequired", "spec.attachedRequired", causes);
        refuse_change(object, old, "spec.volumeLifecycleModes", "spec.volumeLifecycleModes",
                      causes);
}

/* ---- VolumeAttachments ---- */

/* The whole spec is immutable. It is compared by the schema, as Kubernetes compares Go values. */
static void refuse_attachment_change(const struct hf__json *object, const struct hf__json *old,
                                     struct hfd_causes *causes) {
        struct hf__strbuf shown = {0};

        if (hfd_causes_equal_member(causes, &hfd_volume_attachment_schema, object, old, "spec"))
                return;
        hfd_go_fields_print(&shown, hfd_schema_of_member(&hfd_volume_attachment_schema, "spec"),
                            hf__json_get(object, "spec"));
        hfd_cause_invalid(causes, "spec",
                          hfd_causes_check(causes, shown.error) ? shown.data : "null",
                          "field is immutable");
        hf__strbuf_done(&shown);
}

void hfd_volume_attachment_validate(const struct hf__json *object, const struct hf__json *old,
                                    struct hfd_causes *causes) {
        static const char one[] =
                "must specify exactly one of inlineVolumeSpec and persistentVolumeName";
        const struct hf__json *spec = hf__json_get(object, "spec"),
                              *source = hf__json_get(spec, "source"),
                              *inline_spec = hf__json_get(source, "inlineVolumeSpec"),
                              *name = hf__json_get(source, "persistentVolumeName");

        if (hfd_spec_is_kept(&hfd_volume_attachment_schema, object, old, causes))
                return;
        /* The rule for the attacher's name is newer than the kind, so only a create checks it. */
        if (old)
                (void)hfd_require_text(spec, "spec", "attacher", causes);
        else
                hfd_csi_driver_name_validate(hfd_text_of(spec, "attacher"), "spec.attacher",
                                             causes);
        if (!inline_spec && !name)
                hfd_cause_required(causes, "spec.source", one);
        else if (inline_spec && name)
                hfd_cause_forbidden(causes, "spec.source", one);
        else if (name && !*hfd_text_of(source, "persistentVolumeName"))
                hfd_cause_required(causes, "spec.source.persistentVolumeName",
                                   "must specify non empty persistentVolumeName");
        else if (inline_spec)
                hfd_inline_volume_validate(inline_spec, "spec.source.inlineVolumeSpec", causes);
        hfd_subdomain_validate(hfd_text_of(spec, "nodeName"), "spec.nodeName", causes);
        if (name)
                hfd_subdomain_validate(hfd_text_of(source, "persistentVolumeName"),
                                       "spec.source.persistentVolumeName", causes);
        if (old)
                refuse_attachment_change(object, old, causes);
}

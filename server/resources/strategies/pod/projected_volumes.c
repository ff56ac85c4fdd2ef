/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The structural schemas of the volumes whose files are made from other objects: ConfigMaps,
 * Secrets, fields of the pod, tokens and certificates.
 *
 * A table has a row for each field of a Go struct of k8s.io/api/core/v1: the name in JSON, the
 * schema of the value, a description for `kubectl explain`, the number of the field in protobuf
 * (protobuf_tag), and flags. HFD_FIELD_POINTER stands for a Go pointer, embedded_tag for the number
 * of an embedded struct, which is an inner message in protobuf, and HFD_FIELD_KEEPS_EMPTY for a tag
 * without omitempty.
 *
 * Invariants: the rows of a table are sorted by name (strcmp), because look-ups bisect it. The
 * number and the type of a field never change: clients that use protobuf find a field by its number
 * alone.
 */
#include "server/resources/strategies/pod/pod_schema.h"

#include "server/schema/common.h"

static const struct hfd_schema_field key_to_path_fields[] = {
        {"key", &hfd_schema_text, "The key that becomes a file.", .protobuf_tag = 1,
         .flags = HFD_FIELD_REQUIRED},
        {"mode", &hfd_schema_int32, "The permissions of the file: 0 to 0777.", .protobuf_tag = 3,
         .flags = HFD_FIELD_POINTER},
        {"path", &hfd_schema_text, "The path of the file in the volume, without \"..\".",
         .protobuf_tag = 2, .flags = HFD_FIELD_REQUIRED},
};
const struct hfd_schema hfd_key_to_path_schema = {
        HFD_STRUCT(HFD_CORE "KeyToPath", key_to_path_fields)};

/* The selectors are atomic, so they have one owner: one manager's apiVersion and another one's
 * fieldPath would together name a field that neither of them means. */
static const struct hfd_schema_field object_field_selector_fields[] = {
        {"apiVersion", &hfd_schema_text,
         "The version of the schema of the field; v1 if it is empty.", .protobuf_tag = 1},
        {"fieldPath", &hfd_schema_text, "The path of the field in the pod.", .protobuf_tag = 2,
         .flags = HFD_FIELD_REQUIRED},
};
const struct hfd_schema hfd_object_field_selector_schema =
        {HFD_STRUCT(HFD_CORE "ObjectFieldSelector", object_field_selector_fields), .atomic = true};

static const struct hfd_schema_field resource_field_selector_fields[] = {
        {"containerName", &hfd_schema_text,
         "The container whose resource is meant. It can be left out in a variable.",
         .protobuf_tag = 1},
        {"divisor", &hfd_schema_quantity, "The unit of the value; 1 if it is absent.",
         .protobuf_tag = 3},
        {"resource", &hfd_schema_text, "The name of the resource: \"limits.cpu\".",
         .protobuf_tag = 2, .flags = HFD_FIELD_REQUIRED},
};
const struct hfd_schema hfd_resource_field_selector_schema =
        {HFD_STRUCT(HFD_CORE "ResourceFieldSelector", resource_field_selector_fields),
         .atomic = true};

static const struct hfd_schema_field downward_api_volume_file_fields[] = {
        {"fieldRef", &hfd_object_field_selector_schema, "A field of the pod.", .protobuf_tag = 2,
         .flags = HFD_FIELD_POINTER},
        {"mode", &hfd_schema_int32, "The permissions of the file: 0 to 0777.", .protobuf_tag = 4,
         .flags = HFD_FIELD_POINTER},
        {"path", &hfd_schema_text, "The path of the file in the volume, without \"..\".",
         .protobuf_tag = 1, .flags = HFD_FIELD_REQUIRED},
        {"resourceFieldRef", &hfd_resource_field_selector_schema, "A resource of a container.",
         .protobuf_tag = 3, .flags = HFD_FIELD_POINTER},
};
static const struct hfd_schema downward_api_volume_file = {
        HFD_STRUCT(HFD_CORE "DownwardAPIVolumeFile", downward_api_volume_file_fields)};

/* The other three structs of this file that refer to a Secret or a ConfigMap have a member `name`,
 * of an embedded LocalObjectReference. This struct is older, so its member is called secretName and
 * is not embedded. */
static const struct hfd_schema_field secret_volume_source_fields[] = {
        {"defaultMode", &hfd_schema_int32,
         "The permissions of files that have none of their own: 0 to 0777.", .protobuf_tag = 3,
         .flags = HFD_FIELD_POINTER},
        {"items", HFD_LIST_OF(&hfd_key_to_path_schema), "Keys that become files. Absent: all.",
         .protobuf_tag = 2},
        {"optional", &hfd_schema_boolean, "Whether the Secret or a key of items may be missing.",
         .protobuf_tag = 4, .flags = HFD_FIELD_POINTER},
        {"secretName", &hfd_schema_text, "The name of the Secret.", .protobuf_tag = 1},
};
const struct hfd_schema hfd_secret_volume_schema = {
        HFD_STRUCT(HFD_CORE "SecretVolumeSource", secret_volume_source_fields)};

static const struct hfd_schema_field config_map_volume_source_fields[] = {
        {"defaultMode", &hfd_schema_int32,
         "The permissions of files that have none of their own: 0 to 0777.", .protobuf_tag = 3,
         .flags = HFD_FIELD_POINTER},
        {"items", HFD_LIST_OF(&hfd_key_to_path_schema), "Keys that become files. Absent: all.",
         .protobuf_tag = 2},
        {"name", &hfd_schema_text, "The name of the ConfigMap.", .protobuf_tag = 1,
         .embedded_tag = 1},
        {"optional", &hfd_schema_boolean, "Whether the ConfigMap or a key of items may be missing.",
         .protobuf_tag = 4, .flags = HFD_FIELD_POINTER},
};
const struct hfd_schema hfd_configmap_volume_schema = {HFD_STRUCT(HFD_CORE "ConfigMapVolumeSource",
                                                                  config_map_volume_source_fields),
                                                       .embedded = "LocalObjectReference"};

static const struct hfd_schema_field downward_api_volume_source_fields[] = {
        {"defaultMode", &hfd_schema_int32,
         "The permissions of files that have none of their own: 0 to 0777.", .protobuf_tag = 2,
         .flags = HFD_FIELD_POINTER},
        {"items", HFD_LIST_OF(&downward_api_volume_file),
         "The files: each has a field of the pod, or a resource of a container.",
         .protobuf_tag = 1},
};
const struct hfd_schema hfd_downward_volume_schema = {
        HFD_STRUCT(HFD_CORE "DownwardAPIVolumeSource", downward_api_volume_source_fields)};

static const struct hfd_schema_field secret_projection_fields[] = {
        {"items", HFD_LIST_OF(&hfd_key_to_path_schema), "Keys that become files. Absent: all.",
         .protobuf_tag = 2},
        {"name", &hfd_schema_text, "The name of the Secret.", .protobuf_tag = 1, .embedded_tag = 1},
        {"optional", &hfd_schema_boolean, "Whether the Secret or a key of items may be missing.",
         .protobuf_tag = 4, .flags = HFD_FIELD_POINTER},
};
static const struct hfd_schema secret_projection = {HFD_STRUCT(HFD_CORE "SecretProjection",
                                                               secret_projection_fields),
                                                    .embedded = "LocalObjectReference"};

static const struct hfd_schema_field config_map_projection_fields[] = {
        {"items", HFD_LIST_OF(&hfd_key_to_path_schema), "Keys that become files. Absent: all.",
         .protobuf_tag = 2},
        {"name", &hfd_schema_text, "The name of the ConfigMap.", .protobuf_tag = 1,
         .embedded_tag = 1},
        {"optional", &hfd_schema_boolean, "Whether the ConfigMap or a key of items may be missing.",
         .protobuf_tag = 4, .flags = HFD_FIELD_POINTER},
};
static const struct hfd_schema config_map_projection = {HFD_STRUCT(HFD_CORE "ConfigMapProjection",
                                                                   config_map_projection_fields),
                                                        .embedded = "LocalObjectReference"};

static const struct hfd_schema_field downward_api_projection_fields[] = {
        {"items", HFD_LIST_OF(&downward_api_volume_file),
         "The files: each has a field of the pod, or a resource of a container.",
         .protobuf_tag = 1},
};
static const struct hfd_schema downward_api_projection = {
        HFD_STRUCT(HFD_CORE "DownwardAPIProjection", downward_api_projection_fields)};

/* expirationSeconds is a pointer, because an absent one means an hour (pod_defaults.c). */
static const struct hfd_schema_field service_account_token_projection_fields[] = {
        {"audience", &hfd_schema_text, "For whom the token is. Empty: for the API server.",
         .protobuf_tag = 1},
        {"expirationSeconds", &hfd_schema_int64, "How long the token is valid.", .protobuf_tag = 2,
         .flags = HFD_FIELD_POINTER},
        {"path", &hfd_schema_text, "The path of the file in the volume.", .protobuf_tag = 3,
         .flags = HFD_FIELD_REQUIRED},
};
static const struct hfd_schema service_account_token_projection = {
        HFD_STRUCT(HFD_CORE "ServiceAccountTokenProjection",
                   service_account_token_projection_fields)};

static const struct hfd_schema_field cluster_trust_bundle_projection_fields[] = {
        {"labelSelector", &hfd_schema_label_selector, "Selects the bundles of the signer.",
         .protobuf_tag = 3, .flags = HFD_FIELD_POINTER},
        {"name", &hfd_schema_text, "The name of one bundle.", .protobuf_tag = 1,
         .flags = HFD_FIELD_POINTER},
        {"optional", &hfd_schema_boolean, "Whether the bundles may be missing.", .protobuf_tag = 5,
         .flags = HFD_FIELD_POINTER},
        {"path", &hfd_schema_text, "The path of the file in the volume.", .protobuf_tag = 4,
         .flags = HFD_FIELD_REQUIRED},
        {"signerName", &hfd_schema_text, "The name of the signer.", .protobuf_tag = 2,
         .flags = HFD_FIELD_POINTER},
};
static const struct hfd_schema cluster_trust_bundle_projection = {
        HFD_STRUCT(HFD_CORE "ClusterTrustBundleProjection",
                   cluster_trust_bundle_projection_fields)};

static const struct hfd_schema_field pod_certificate_projection_fields[] = {
        {"certificateChainPath", &hfd_schema_text, "The file for the certificate chain.",
         .protobuf_tag = 6},
        {"credentialBundlePath", &hfd_schema_text,
         "The file for the key together with the certificates.", .protobuf_tag = 4},
        {"keyPath", &hfd_schema_text, "The file for the key.", .protobuf_tag = 5},
        {"keyType", &hfd_schema_text, "The type of the key.", .protobuf_tag = 2,
         .flags = HFD_FIELD_REQUIRED},
        {"maxExpirationSeconds", &hfd_schema_int32, "How long the certificate is valid at most.",
         .protobuf_tag = 3, .flags = HFD_FIELD_POINTER},
        {"signerName", &hfd_schema_text, "The name of the signer.", .protobuf_tag = 1,
         .flags = HFD_FIELD_REQUIRED},
        {"userAnnotations", &hfd_schema_map_of_texts, "Texts for the signer.", .protobuf_tag = 7},
};
static const struct hfd_schema pod_certificate_projection = {
        HFD_STRUCT(HFD_CORE "PodCertificateProjection", pod_certificate_projection_fields)};

static const struct hfd_schema_field volume_projection_fields[] = {
        {"clusterTrustBundle", &cluster_trust_bundle_projection, "Trust anchors of the cluster.",
         .protobuf_tag = 5, .flags = HFD_FIELD_POINTER},
        {"configMap", &config_map_projection, "Data of a ConfigMap.", .protobuf_tag = 3,
         .flags = HFD_FIELD_POINTER},
        {"downwardAPI", &downward_api_projection, "Files with fields of the pod itself.",
         .protobuf_tag = 2, .flags = HFD_FIELD_POINTER},
        {"podCertificate", &pod_certificate_projection, "A key and a certificate for the pod.",
         .protobuf_tag = 6, .flags = HFD_FIELD_POINTER},
        {"secret", &secret_projection, "Data of a Secret.", .protobuf_tag = 1,
         .flags = HFD_FIELD_POINTER},
        {"serviceAccountToken", &service_account_token_projection,
         "A token of the service account.", .protobuf_tag = 4, .flags = HFD_FIELD_POINTER},
};
static const struct hfd_schema volume_projection = {
        HFD_STRUCT(HFD_CORE "VolumeProjection", volume_projection_fields)};

static const struct hfd_schema_field projected_volume_source_fields[] = {
        {"defaultMode", &hfd_schema_int32,
         "The permissions of files that have none of their own: 0 to 0777.", .protobuf_tag = 2,
         .flags = HFD_FIELD_POINTER},
        {"sources", HFD_LIST_OF(&volume_projection), "What the files are made from.",
         .protobuf_tag = 1, .flags = HFD_FIELD_KEEPS_EMPTY},
};
const struct hfd_schema hfd_projected_volume_schema = {
        HFD_STRUCT(HFD_CORE "ProjectedVolumeSource", projected_volume_source_fields)};

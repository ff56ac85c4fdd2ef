/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The structural schemas of a pod's volumes and of the spec of a PersistentVolumeClaim.
 *
 * A table has a row for each field of a Go struct of k8s.io/api/core/v1: the name in JSON, the
 * schema of the value, a description for `kubectl explain`, the number of the field in protobuf
 * (protobuf_tag), and flags. HFD_FIELD_POINTER stands for a Go pointer and embedded_tag for the
 * number of an embedded struct, which is an inner message in protobuf. A schema *_text of this
 * file is a Go string type with a name of its own; error messages show this name.
 *
 * Invariants: the rows of a table are sorted by name (strcmp), because look-ups bisect it. The
 * number and the type of a field never change: clients that use protobuf find a field by its number
 * alone.
 */
#include "server/resources/strategies/pod/pod_schema.h"

#include "server/schema/common.h"

static const struct hfd_schema storage_medium_text = {.type = HFD_SCHEMA_TEXT,
                                                      .definition = HFD_CORE "StorageMedium"};
static const struct hfd_schema persistent_volume_access_mode_text = {.type = HFD_SCHEMA_TEXT,
                                                                     .definition = HFD_CORE
                                                                     "PersistentVolumeAccessMode"};
static const struct hfd_schema persistent_volume_mode_text = {.type = HFD_SCHEMA_TEXT,
                                                              .definition = HFD_CORE
                                                              "PersistentVolumeMode"};
static const struct hfd_schema host_path_type_text = {.type = HFD_SCHEMA_TEXT,
                                                      .definition = HFD_CORE "HostPathType"};
static const struct hfd_schema pull_policy_text = {.type = HFD_SCHEMA_TEXT,
                                                   .definition = HFD_CORE "PullPolicy"};

/* Only for volumes that a driver makes for one pod. Other CSI volumes come by a claim, and have
 * more fields (workloads/schemas/persistent_volume.c). */
static const struct hfd_schema_field csi_volume_source_fields[] = {
        {"driver", &hfd_schema_text, "The name of the driver.", .protobuf_tag = 1,
         .flags = HFD_FIELD_REQUIRED},
        {"fsType", &hfd_schema_text, "The file system of the volume.", .protobuf_tag = 3,
         .flags = HFD_FIELD_POINTER},
        {"nodePublishSecretRef", &hfd_schema_local_object_reference,
         "The Secret that the driver gets.", .protobuf_tag = 5, .flags = HFD_FIELD_POINTER},
        {"readOnly", &hfd_schema_boolean, "Whether it can only be read.", .protobuf_tag = 2,
         .flags = HFD_FIELD_POINTER},
        {"volumeAttributes", &hfd_schema_map_of_texts, "Attributes for the driver.",
         .protobuf_tag = 4},
};
static const struct hfd_schema csi_volume_source = {
        HFD_STRUCT(HFD_CORE "CSIVolumeSource", csi_volume_source_fields)};

static const struct hfd_schema_field empty_dir_volume_source_fields[] = {
        {"medium", &storage_medium_text,
         "Where the directory is: empty for the node's disk, or Memory.", .protobuf_tag = 1},
        {"sizeLimit", &hfd_schema_quantity, "The most that the directory may hold.",
         .protobuf_tag = 2, .flags = HFD_FIELD_POINTER},
};
static const struct hfd_schema empty_dir_volume_source = {
        HFD_STRUCT(HFD_CORE "EmptyDirVolumeSource", empty_dir_volume_source_fields)};

/* Atomic: apiGroup, kind and name together name one object, so one manager owns all of them. */
static const struct hfd_schema_field typed_local_object_reference_fields[] = {
        {"apiGroup", &hfd_schema_text, "The API group of the object. Absent: the core group.",
         .protobuf_tag = 1, .flags = HFD_FIELD_POINTER},
        {"kind", &hfd_schema_text, "The kind of the object.", .protobuf_tag = 2,
         .flags = HFD_FIELD_REQUIRED},
        {"name", &hfd_schema_text, "The name.", .protobuf_tag = 3, .flags = HFD_FIELD_REQUIRED},
};
const struct hfd_schema hfd_typed_local_object_reference_schema =
        {HFD_STRUCT(HFD_CORE "TypedLocalObjectReference", typed_local_object_reference_fields),
         .atomic = true};

/* Not atomic, unlike the reference without a namespace: Kubernetes' Go type has no marker. */
static const struct hfd_schema_field typed_object_reference_fields[] = {
        {"apiGroup", &hfd_schema_text, "The API group of the object. Absent: the core group.",
         .protobuf_tag = 1, .flags = HFD_FIELD_POINTER},
        {"kind", &hfd_schema_text, "The kind of the object.", .protobuf_tag = 2,
         .flags = HFD_FIELD_REQUIRED},
        {"name", &hfd_schema_text, "The name.", .protobuf_tag = 3, .flags = HFD_FIELD_REQUIRED},
        {"namespace", &hfd_schema_text, "The namespace of the object.", .protobuf_tag = 4,
         .flags = HFD_FIELD_POINTER},
};
static const struct hfd_schema typed_object_reference = {
        HFD_STRUCT(HFD_CORE "TypedObjectReference", typed_object_reference_fields)};

/* The requirements of containers without `claims`, which volumes do not have. */
static const struct hfd_schema_field volume_resource_requirements_fields[] = {
        {"limits", &hfd_schema_resource_list, "The most of each resource that may be used.",
         .protobuf_tag = 1},
        {"requests", &hfd_schema_resource_list, "The least of each resource that is needed.",
         .protobuf_tag = 2},
};
static const struct hfd_schema volume_resource_requirements = {
        HFD_STRUCT(HFD_CORE "VolumeResourceRequirements", volume_resource_requirements_fields)};

/* An absent storageClassName stands for the default class, "" for no class at all. So the field is
 * a pointer. */
static const struct hfd_schema_field persistent_volume_claim_spec_fields[] = {
        {"accessModes", HFD_LIST_OF(&persistent_volume_access_mode_text),
         "How the volume may be mounted.", .protobuf_tag = 1},
        {"dataSource", &hfd_typed_local_object_reference_schema,
         "What the volume is filled from: a snapshot or another claim.", .protobuf_tag = 7,
         .flags = HFD_FIELD_POINTER},
        {"dataSourceRef", &typed_object_reference, "What the volume is filled from: any object.",
         .protobuf_tag = 8, .flags = HFD_FIELD_POINTER},
        {"resources", &volume_resource_requirements,
         "The resources that are needed, and how much may be used.", .protobuf_tag = 2},
        {"selector", &hfd_schema_label_selector, "Selects volumes by their labels.",
         .protobuf_tag = 4, .flags = HFD_FIELD_POINTER},
        {"storageClassName", &hfd_schema_text, "The storage class of the volume.",
         .protobuf_tag = 5, .flags = HFD_FIELD_POINTER},
        {"volumeAttributesClassName", &hfd_schema_text, "The class of the volume's attributes.",
         .protobuf_tag = 9, .flags = HFD_FIELD_POINTER},
        {"volumeMode", &persistent_volume_mode_text, "Filesystem or Block.", .protobuf_tag = 6,
         .flags = HFD_FIELD_POINTER},
        {"volumeName", &hfd_schema_text, "The name of the volume.", .protobuf_tag = 3},
};
const struct hfd_schema hfd_persistent_volume_claim_spec_schema = {
        HFD_STRUCT(HFD_CORE "PersistentVolumeClaimSpec", persistent_volume_claim_spec_fields)};

static const struct hfd_schema_field persistent_volume_claim_template_fields[] = {
        {"metadata", &hfd_schema_object_meta,
         "The metadata of the objects that are made from the template.", .protobuf_tag = 1},
        {"spec", &hfd_persistent_volume_claim_spec_schema, "What the claim asks for.",
         .protobuf_tag = 2, .flags = HFD_FIELD_REQUIRED},
};
static const struct hfd_schema persistent_volume_claim_template = {
        HFD_STRUCT(HFD_CORE "PersistentVolumeClaimTemplate",
                   persistent_volume_claim_template_fields)};

/* This source has a template, and not the name of a claim: a controller makes the claim and names
 * the pod as its owner, so the claim goes when the pod goes. */
static const struct hfd_schema_field ephemeral_volume_source_fields[] = {
        {"volumeClaimTemplate", &persistent_volume_claim_template,
         "The claim that is made for the pod.", .protobuf_tag = 1, .flags = HFD_FIELD_POINTER},
};
static const struct hfd_schema ephemeral_volume_source = {
        HFD_STRUCT(HFD_CORE "EphemeralVolumeSource", ephemeral_volume_source_fields)};

static const struct hfd_schema_field host_path_volume_source_fields[] = {
        {"path", &hfd_schema_text, "The path on the node.", .protobuf_tag = 1,
         .flags = HFD_FIELD_REQUIRED},
        {"type", &host_path_type_text, "What the path must be: Directory, FileOrCreate and so on.",
         .protobuf_tag = 2, .flags = HFD_FIELD_POINTER},
};
const struct hfd_schema hfd_host_path_volume_source_schema = {
        HFD_STRUCT(HFD_CORE "HostPathVolumeSource", host_path_volume_source_fields)};

static const struct hfd_schema_field image_volume_source_fields[] = {
        {"pullPolicy", &pull_policy_text, "Always, Never or IfNotPresent.", .protobuf_tag = 2},
        {"reference", &hfd_schema_text, "The name of the image.", .protobuf_tag = 1},
};
static const struct hfd_schema image_volume_source = {
        HFD_STRUCT(HFD_CORE "ImageVolumeSource", image_volume_source_fields)};

static const struct hfd_schema_field nfs_volume_source_fields[] = {
        {"path", &hfd_schema_text, "The path.", .protobuf_tag = 2, .flags = HFD_FIELD_REQUIRED},
        {"readOnly", &hfd_schema_boolean, "Whether it can only be read.", .protobuf_tag = 3},
        {"server", &hfd_schema_text, "The address of the server.", .protobuf_tag = 1,
         .flags = HFD_FIELD_REQUIRED},
};
const struct hfd_schema hfd_nfs_volume_source_schema = {
        HFD_STRUCT(HFD_CORE "NFSVolumeSource", nfs_volume_source_fields)};

static const struct hfd_schema_field persistent_volume_claim_volume_source_fields[] = {
        {"claimName", &hfd_schema_text, "The name of the claim, in the namespace of the pod.",
         .protobuf_tag = 1, .flags = HFD_FIELD_REQUIRED},
        {"readOnly", &hfd_schema_boolean, "Whether it can only be read.", .protobuf_tag = 2},
};
static const struct hfd_schema persistent_volume_claim_volume_source = {
        HFD_STRUCT(HFD_CORE "PersistentVolumeClaimVolumeSource",
                   persistent_volume_claim_volume_source_fields)};

/* Go embeds a VolumeSource in a Volume, so in protobuf all fields but the name are in the inner
 * message 2, where the numbers begin at 1 again. Exactly one source is set; the rules see to that
 * (rules/volumes/volume_validation.c), as the schema cannot say it. */
static const struct hfd_schema_field volume_fields[] = {
        {"awsElasticBlockStore", &hfd_aws_elastic_block_store_volume_schema,
         "A disk of AWS. Deprecated.", .protobuf_tag = 4, .embedded_tag = 2,
         .flags = HFD_FIELD_POINTER},
        {"azureDisk", &hfd_azure_disk_volume_schema, "A disk of Azure. Deprecated.",
         .protobuf_tag = 22, .embedded_tag = 2, .flags = HFD_FIELD_POINTER},
        {"azureFile", &hfd_azure_file_volume_schema, "A file share of Azure. Deprecated.",
         .protobuf_tag = 18, .embedded_tag = 2, .flags = HFD_FIELD_POINTER},
        {"cephfs", &hfd_ceph_fs_volume_schema, "A CephFS file system. Deprecated.",
         .protobuf_tag = 14, .embedded_tag = 2, .flags = HFD_FIELD_POINTER},
        {"cinder", &hfd_cinder_volume_schema, "A disk of OpenStack. Deprecated.",
         .protobuf_tag = 13, .embedded_tag = 2, .flags = HFD_FIELD_POINTER},
        {"configMap", &hfd_configmap_volume_schema, "Files with the data of a ConfigMap.",
         .protobuf_tag = 19, .embedded_tag = 2, .flags = HFD_FIELD_POINTER},
        {"csi", &csi_volume_source, "A volume of a CSI driver that lives as long as the pod.",
         .protobuf_tag = 28, .embedded_tag = 2, .flags = HFD_FIELD_POINTER},
        {"downwardAPI", &hfd_downward_volume_schema, "Files with fields of the pod itself.",
         .protobuf_tag = 16, .embedded_tag = 2, .flags = HFD_FIELD_POINTER},
        {"emptyDir", &empty_dir_volume_source,
         "A directory that is empty at first and lives as long as the pod.", .protobuf_tag = 2,
         .embedded_tag = 2, .flags = HFD_FIELD_POINTER},
        {"ephemeral", &ephemeral_volume_source, "A volume whose claim lives as long as the pod.",
         .protobuf_tag = 29, .embedded_tag = 2, .flags = HFD_FIELD_POINTER},
        {"fc", &hfd_fc_volume_schema, "A Fibre Channel disk.", .protobuf_tag = 17,
         .embedded_tag = 2, .flags = HFD_FIELD_POINTER},
        {"flexVolume", &hfd_flex_volume_schema,
         "A volume of a driver that is a program. Deprecated.", .protobuf_tag = 12,
         .embedded_tag = 2, .flags = HFD_FIELD_POINTER},
        {"flocker", &hfd_flocker_volume_schema, "A volume of Flocker. Deprecated.",
         .protobuf_tag = 15, .embedded_tag = 2, .flags = HFD_FIELD_POINTER},
        {"gcePersistentDisk", &hfd_gce_persistent_disk_volume_schema, "A disk of GCE. Deprecated.",
         .protobuf_tag = 3, .embedded_tag = 2, .flags = HFD_FIELD_POINTER},
        {"gitRepo", &hfd_git_repo_volume_schema, "The contents of a git repository. Deprecated.",
         .protobuf_tag = 5, .embedded_tag = 2, .flags = HFD_FIELD_POINTER},
        {"glusterfs", &hfd_glusterfs_volume_schema, "A Gluster volume. Deprecated.",
         .protobuf_tag = 9, .embedded_tag = 2, .flags = HFD_FIELD_POINTER},
        {"hostPath", &hfd_host_path_volume_source_schema, "A file or a directory of the node.",
         .protobuf_tag = 1, .embedded_tag = 2, .flags = HFD_FIELD_POINTER},
        {"image", &image_volume_source, "The contents of an image.", .protobuf_tag = 30,
         .embedded_tag = 2, .flags = HFD_FIELD_POINTER},
        {"iscsi", &hfd_iscsi_volume_schema, "An iSCSI disk.", .protobuf_tag = 8, .embedded_tag = 2,
         .flags = HFD_FIELD_POINTER},
        {"name", &hfd_schema_text, "The name.", .protobuf_tag = 1, .flags = HFD_FIELD_REQUIRED},
        {"nfs", &hfd_nfs_volume_source_schema, "A directory of an NFS server.", .protobuf_tag = 7,
         .embedded_tag = 2, .flags = HFD_FIELD_POINTER},
        {"persistentVolumeClaim", &persistent_volume_claim_volume_source,
         "A volume that a claim has.", .protobuf_tag = 10, .embedded_tag = 2,
         .flags = HFD_FIELD_POINTER},
        {"photonPersistentDisk", &hfd_photon_persistent_disk_volume_schema,
         "A disk of Photon. Deprecated.", .protobuf_tag = 23, .embedded_tag = 2,
         .flags = HFD_FIELD_POINTER},
        {"portworxVolume", &hfd_portworx_volume_schema, "A Portworx volume. Deprecated.",
         .protobuf_tag = 24, .embedded_tag = 2, .flags = HFD_FIELD_POINTER},
        {"projected", &hfd_projected_volume_schema, "One directory from several sources.",
         .protobuf_tag = 26, .embedded_tag = 2, .flags = HFD_FIELD_POINTER},
        {"quobyte", &hfd_quobyte_volume_schema, "A Quobyte volume. Deprecated.", .protobuf_tag = 21,
         .embedded_tag = 2, .flags = HFD_FIELD_POINTER},
        {"rbd", &hfd_rbd_volume_schema, "A disk of Ceph. Deprecated.", .protobuf_tag = 11,
         .embedded_tag = 2, .flags = HFD_FIELD_POINTER},
        {"scaleIO", &hfd_scale_io_volume_schema, "A ScaleIO volume. Deprecated.",
         .protobuf_tag = 25, .embedded_tag = 2, .flags = HFD_FIELD_POINTER},
        {"secret", &hfd_secret_volume_schema, "Files with the data of a Secret.", .protobuf_tag = 6,
         .embedded_tag = 2, .flags = HFD_FIELD_POINTER},
        {"storageos", &hfd_storage_os_volume_schema, "A StorageOS volume. Deprecated.",
         .protobuf_tag = 27, .embedded_tag = 2, .flags = HFD_FIELD_POINTER},
        {"vsphereVolume", &hfd_vsphere_virtual_disk_volume_schema, "A disk of vSphere. Deprecated.",
         .protobuf_tag = 20, .embedded_tag = 2, .flags = HFD_FIELD_POINTER},
};
const struct hfd_schema hfd_volume_schema =
        {HFD_STRUCT(HFD_CORE "Volume", volume_fields), .embedded = "VolumeSource",
         .description = "Files that the containers of a pod can mount."};

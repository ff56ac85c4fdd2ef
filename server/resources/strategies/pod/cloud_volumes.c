/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The structural schemas of the volume sources that belong to one vendor or one protocol. Most are
 * deprecated. They stay because Kubernetes still accepts them in pod templates. The secretRef of a
 * source is a name in the namespace of the pod. In a PersistentVolume it also has the namespace, so
 * these sources have other schemas there (workloads/schemas/persistent_volume.c).
 *
 * A table has a row for each field of a Go struct of k8s.io/api/core/v1: the name in JSON, the
 * schema of the value, a description for `kubectl explain`, the number of the field in protobuf
 * (protobuf_tag), and flags. HFD_FIELD_POINTER stands for a Go pointer. A schema named *_text (not
 * hfd_schema_text) is a Go string type with a name of its own; error messages show this name.
 *
 * Invariants: the rows of a table are sorted by name (strcmp), because look-ups bisect it. The
 * number and the type of a field never change: clients that use protobuf find a field by its number
 * alone.
 */
#include "server/resources/strategies/pod/pod_schema.h"

#include "server/schema/common.h"

static const struct hfd_schema azure_data_disk_caching_mode_text = {.type = HFD_SCHEMA_TEXT,
                                                                    .definition = HFD_CORE
                                                                    "AzureDataDiskCachingMode"};
static const struct hfd_schema azure_data_disk_kind_text = {.type = HFD_SCHEMA_TEXT,
                                                            .definition =
                                                                    HFD_CORE "AzureDataDiskKind"};

static const struct hfd_schema_field aws_elastic_block_store_volume_source_fields[] = {
        {"fsType", &hfd_schema_text, "The file system of the volume.", .protobuf_tag = 2},
        {"partition", &hfd_schema_int32, "The number of the partition.", .protobuf_tag = 3},
        {"readOnly", &hfd_schema_boolean, "Whether it can only be read.", .protobuf_tag = 4},
        {"volumeID", &hfd_schema_text, "The id of the volume.", .protobuf_tag = 1,
         .flags = HFD_FIELD_REQUIRED},
};
const struct hfd_schema hfd_aws_elastic_block_store_volume_schema = {
        HFD_STRUCT(HFD_CORE "AWSElasticBlockStoreVolumeSource",
                   aws_elastic_block_store_volume_source_fields)};

/* All optional fields are pointers here, even readOnly: each has a default (pod_defaults.c), and a
 * value that a client has set must differ from an absent one. */
static const struct hfd_schema_field azure_disk_volume_source_fields[] = {
        {"cachingMode", &azure_data_disk_caching_mode_text,
         "How the host caches the disk: None, ReadOnly or ReadWrite.", .protobuf_tag = 3,
         .flags = HFD_FIELD_POINTER},
        {"diskName", &hfd_schema_text, "The name of the disk.", .protobuf_tag = 1,
         .flags = HFD_FIELD_REQUIRED},
        {"diskURI", &hfd_schema_text, "The URI of the disk.", .protobuf_tag = 2,
         .flags = HFD_FIELD_REQUIRED},
        {"fsType", &hfd_schema_text, "The file system of the volume.", .protobuf_tag = 4,
         .flags = HFD_FIELD_POINTER},
        {"kind", &azure_data_disk_kind_text, "Shared, Dedicated or Managed.", .protobuf_tag = 6,
         .flags = HFD_FIELD_POINTER},
        {"readOnly", &hfd_schema_boolean, "Whether it can only be read.", .protobuf_tag = 5,
         .flags = HFD_FIELD_POINTER},
};
const struct hfd_schema hfd_azure_disk_volume_schema = {
        HFD_STRUCT(HFD_CORE "AzureDiskVolumeSource", azure_disk_volume_source_fields)};

static const struct hfd_schema_field azure_file_volume_source_fields[] = {
        {"readOnly", &hfd_schema_boolean, "Whether it can only be read.", .protobuf_tag = 3},
        {"secretName", &hfd_schema_text, "The name of the Secret.", .protobuf_tag = 1,
         .flags = HFD_FIELD_REQUIRED},
        {"shareName", &hfd_schema_text, "The name of the share.", .protobuf_tag = 2,
         .flags = HFD_FIELD_REQUIRED},
};
const struct hfd_schema hfd_azure_file_volume_schema = {
        HFD_STRUCT(HFD_CORE "AzureFileVolumeSource", azure_file_volume_source_fields)};

static const struct hfd_schema_field ceph_fs_volume_source_fields[] = {
        {"monitors", &hfd_schema_list_of_texts, "The addresses of the monitors.", .protobuf_tag = 1,
         .flags = HFD_FIELD_REQUIRED},
        {"path", &hfd_schema_text, "The path.", .protobuf_tag = 2},
        {"readOnly", &hfd_schema_boolean, "Whether it can only be read.", .protobuf_tag = 6},
        {"secretFile", &hfd_schema_text, "The path of the key.", .protobuf_tag = 4},
        {"secretRef", &hfd_schema_local_object_reference, "The Secret with the credentials.",
         .protobuf_tag = 5, .flags = HFD_FIELD_POINTER},
        {"user", &hfd_schema_text, "The user.", .protobuf_tag = 3},
};
const struct hfd_schema hfd_ceph_fs_volume_schema = {
        HFD_STRUCT(HFD_CORE "CephFSVolumeSource", ceph_fs_volume_source_fields)};

static const struct hfd_schema_field cinder_volume_source_fields[] = {
        {"fsType", &hfd_schema_text, "The file system of the volume.", .protobuf_tag = 2},
        {"readOnly", &hfd_schema_boolean, "Whether it can only be read.", .protobuf_tag = 3},
        {"secretRef", &hfd_schema_local_object_reference, "The Secret with the credentials.",
         .protobuf_tag = 4, .flags = HFD_FIELD_POINTER},
        {"volumeID", &hfd_schema_text, "The id of the volume.", .protobuf_tag = 1,
         .flags = HFD_FIELD_REQUIRED},
};
const struct hfd_schema hfd_cinder_volume_schema = {
        HFD_STRUCT(HFD_CORE "CinderVolumeSource", cinder_volume_source_fields)};

/* Either targetWWNs and lun name the disk, or wwids do. lun is a pointer, because 0 is the number
 * of a unit, and differs from none. */
static const struct hfd_schema_field fc_volume_source_fields[] = {
        {"fsType", &hfd_schema_text, "The file system of the volume.", .protobuf_tag = 3},
        {"lun", &hfd_schema_int32, "The number of the unit.", .protobuf_tag = 2,
         .flags = HFD_FIELD_POINTER},
        {"readOnly", &hfd_schema_boolean, "Whether it can only be read.", .protobuf_tag = 4},
        {"targetWWNs", &hfd_schema_list_of_texts, "The names of the targets.", .protobuf_tag = 1},
        {"wwids", &hfd_schema_list_of_texts, "The world wide ids of the disk.", .protobuf_tag = 5},
};
const struct hfd_schema hfd_fc_volume_schema = {
        HFD_STRUCT(HFD_CORE "FCVolumeSource", fc_volume_source_fields)};

static const struct hfd_schema_field flex_volume_source_fields[] = {
        {"driver", &hfd_schema_text, "The name of the driver.", .protobuf_tag = 1,
         .flags = HFD_FIELD_REQUIRED},
        {"fsType", &hfd_schema_text, "The file system of the volume.", .protobuf_tag = 2},
        {"options", &hfd_schema_map_of_texts, "Options for the driver.", .protobuf_tag = 5},
        {"readOnly", &hfd_schema_boolean, "Whether it can only be read.", .protobuf_tag = 4},
        {"secretRef", &hfd_schema_local_object_reference, "The Secret with the credentials.",
         .protobuf_tag = 3, .flags = HFD_FIELD_POINTER},
};
const struct hfd_schema hfd_flex_volume_schema = {
        HFD_STRUCT(HFD_CORE "FlexVolumeSource", flex_volume_source_fields)};

static const struct hfd_schema_field flocker_volume_source_fields[] = {
        {"datasetName", &hfd_schema_text, "The name of the data set.", .protobuf_tag = 1},
        {"datasetUUID", &hfd_schema_text, "The UUID of the data set.", .protobuf_tag = 2},
};
const struct hfd_schema hfd_flocker_volume_schema = {
        HFD_STRUCT(HFD_CORE "FlockerVolumeSource", flocker_volume_source_fields)};

static const struct hfd_schema_field gce_persistent_disk_volume_source_fields[] = {
        {"fsType", &hfd_schema_text, "The file system of the volume.", .protobuf_tag = 2},
        {"partition", &hfd_schema_int32, "The number of the partition.", .protobuf_tag = 3},
        {"pdName", &hfd_schema_text, "The name of the disk.", .protobuf_tag = 1,
         .flags = HFD_FIELD_REQUIRED},
        {"readOnly", &hfd_schema_boolean, "Whether it can only be read.", .protobuf_tag = 4},
};
const struct hfd_schema hfd_gce_persistent_disk_volume_schema = {
        HFD_STRUCT(HFD_CORE "GCEPersistentDiskVolumeSource",
                   gce_persistent_disk_volume_source_fields)};

/* Kubelets refuse a gitRepo by default since Kubernetes 1.33: git would run as root on the node, on
 * files that a user has chosen. */
static const struct hfd_schema_field git_repo_volume_source_fields[] = {
        {"directory", &hfd_schema_text, "The directory for the files.", .protobuf_tag = 3},
        {"repository", &hfd_schema_text, "The URL of the repository.", .protobuf_tag = 1,
         .flags = HFD_FIELD_REQUIRED},
        {"revision", &hfd_schema_text, "The commit.", .protobuf_tag = 2},
};
const struct hfd_schema hfd_git_repo_volume_schema = {
        HFD_STRUCT(HFD_CORE "GitRepoVolumeSource", git_repo_volume_source_fields)};

static const struct hfd_schema_field glusterfs_volume_source_fields[] = {
        {"endpoints", &hfd_schema_text, "The name of the endpoints.", .protobuf_tag = 1,
         .flags = HFD_FIELD_REQUIRED},
        {"path", &hfd_schema_text, "The path.", .protobuf_tag = 2, .flags = HFD_FIELD_REQUIRED},
        {"readOnly", &hfd_schema_boolean, "Whether it can only be read.", .protobuf_tag = 3},
};
const struct hfd_schema hfd_glusterfs_volume_schema = {
        HFD_STRUCT(HFD_CORE "GlusterfsVolumeSource", glusterfs_volume_source_fields)};

/* lun is required here, unlike that of fc, and no pointer: an absent one counts as 0. */
static const struct hfd_schema_field iscsi_volume_source_fields[] = {
        {"chapAuthDiscovery", &hfd_schema_boolean, "Whether CHAP protects the discovery.",
         .protobuf_tag = 8},
        {"chapAuthSession", &hfd_schema_boolean, "Whether CHAP protects the session.",
         .protobuf_tag = 11},
        {"fsType", &hfd_schema_text, "The file system of the volume.", .protobuf_tag = 5},
        {"initiatorName", &hfd_schema_text, "The name of the initiator.", .protobuf_tag = 12,
         .flags = HFD_FIELD_POINTER},
        {"iqn", &hfd_schema_text, "The name of the target.", .protobuf_tag = 2,
         .flags = HFD_FIELD_REQUIRED},
        {"iscsiInterface", &hfd_schema_text, "The interface of the initiator.", .protobuf_tag = 4},
        {"lun", &hfd_schema_int32, "The number of the unit.", .protobuf_tag = 3,
         .flags = HFD_FIELD_REQUIRED},
        {"portals", &hfd_schema_list_of_texts, "Further portals of the target.", .protobuf_tag = 7},
        {"readOnly", &hfd_schema_boolean, "Whether it can only be read.", .protobuf_tag = 6},
        {"secretRef", &hfd_schema_local_object_reference, "The Secret with the credentials.",
         .protobuf_tag = 10, .flags = HFD_FIELD_POINTER},
        {"targetPortal", &hfd_schema_text, "The address of the target.", .protobuf_tag = 1,
         .flags = HFD_FIELD_REQUIRED},
};
const struct hfd_schema hfd_iscsi_volume_schema = {
        HFD_STRUCT(HFD_CORE "ISCSIVolumeSource", iscsi_volume_source_fields)};

static const struct hfd_schema_field photon_persistent_disk_volume_source_fields[] = {
        {"fsType", &hfd_schema_text, "The file system of the volume.", .protobuf_tag = 2},
        {"pdID", &hfd_schema_text, "The id of the disk.", .protobuf_tag = 1,
         .flags = HFD_FIELD_REQUIRED},
};
const struct hfd_schema hfd_photon_persistent_disk_volume_schema = {
        HFD_STRUCT(HFD_CORE "PhotonPersistentDiskVolumeSource",
                   photon_persistent_disk_volume_source_fields)};

static const struct hfd_schema_field portworx_volume_source_fields[] = {
        {"fsType", &hfd_schema_text, "The file system of the volume.", .protobuf_tag = 2},
        {"readOnly", &hfd_schema_boolean, "Whether it can only be read.", .protobuf_tag = 3},
        {"volumeID", &hfd_schema_text, "The id of the volume.", .protobuf_tag = 1,
         .flags = HFD_FIELD_REQUIRED},
};
const struct hfd_schema hfd_portworx_volume_schema = {
        HFD_STRUCT(HFD_CORE "PortworxVolumeSource", portworx_volume_source_fields)};

static const struct hfd_schema_field quobyte_volume_source_fields[] = {
        {"group", &hfd_schema_text, "The group that owns the files.", .protobuf_tag = 5},
        {"readOnly", &hfd_schema_boolean, "Whether it can only be read.", .protobuf_tag = 3},
        {"registry", &hfd_schema_text, "The addresses of the registries.", .protobuf_tag = 1,
         .flags = HFD_FIELD_REQUIRED},
        {"tenant", &hfd_schema_text, "The tenant.", .protobuf_tag = 6},
        {"user", &hfd_schema_text, "The user.", .protobuf_tag = 4},
        {"volume", &hfd_schema_text, "The name of the volume.", .protobuf_tag = 2,
         .flags = HFD_FIELD_REQUIRED},
};
const struct hfd_schema hfd_quobyte_volume_schema = {
        HFD_STRUCT(HFD_CORE "QuobyteVolumeSource", quobyte_volume_source_fields)};

/* pool, user and keyring are no pointers, so "" gets the default like an absent text
 * (pod_defaults.c). */
static const struct hfd_schema_field rbd_volume_source_fields[] = {
        {"fsType", &hfd_schema_text, "The file system of the volume.", .protobuf_tag = 3},
        {"image", &hfd_schema_text, "The name of the image in the pool.", .protobuf_tag = 2,
         .flags = HFD_FIELD_REQUIRED},
        {"keyring", &hfd_schema_text, "The path of the key ring.", .protobuf_tag = 6},
        {"monitors", &hfd_schema_list_of_texts, "The addresses of the monitors.", .protobuf_tag = 1,
         .flags = HFD_FIELD_REQUIRED},
        {"pool", &hfd_schema_text, "The name of the pool.", .protobuf_tag = 4},
        {"readOnly", &hfd_schema_boolean, "Whether it can only be read.", .protobuf_tag = 8},
        {"secretRef", &hfd_schema_local_object_reference, "The Secret with the credentials.",
         .protobuf_tag = 7, .flags = HFD_FIELD_POINTER},
        {"user", &hfd_schema_text, "The user.", .protobuf_tag = 5},
};
const struct hfd_schema hfd_rbd_volume_schema = {
        HFD_STRUCT(HFD_CORE "RBDVolumeSource", rbd_volume_source_fields)};

/* The secretRef is a pointer and required: the gateway accepts nobody without credentials. */
static const struct hfd_schema_field scale_io_volume_source_fields[] = {
        {"fsType", &hfd_schema_text, "The file system of the volume.", .protobuf_tag = 9},
        {"gateway", &hfd_schema_text, "The address of the gateway.", .protobuf_tag = 1,
         .flags = HFD_FIELD_REQUIRED},
        {"protectionDomain", &hfd_schema_text, "The protection domain.", .protobuf_tag = 5},
        {"readOnly", &hfd_schema_boolean, "Whether it can only be read.", .protobuf_tag = 10},
        {"secretRef", &hfd_schema_local_object_reference, "The Secret with the credentials.",
         .protobuf_tag = 3, .flags = HFD_FIELD_REQUIRED | HFD_FIELD_POINTER},
        {"sslEnabled", &hfd_schema_boolean, "Whether the gateway is asked over TLS.",
         .protobuf_tag = 4},
        {"storageMode", &hfd_schema_text, "Thick or thin provisioning.", .protobuf_tag = 7},
        {"storagePool", &hfd_schema_text, "The storage pool.", .protobuf_tag = 6},
        {"system", &hfd_schema_text, "The name of the storage system.", .protobuf_tag = 2,
         .flags = HFD_FIELD_REQUIRED},
        {"volumeName", &hfd_schema_text, "The name of the volume.", .protobuf_tag = 8},
};
const struct hfd_schema hfd_scale_io_volume_schema = {
        HFD_STRUCT(HFD_CORE "ScaleIOVolumeSource", scale_io_volume_source_fields)};

static const struct hfd_schema_field storage_os_volume_source_fields[] = {
        {"fsType", &hfd_schema_text, "The file system of the volume.", .protobuf_tag = 3},
        {"readOnly", &hfd_schema_boolean, "Whether it can only be read.", .protobuf_tag = 4},
        {"secretRef", &hfd_schema_local_object_reference, "The Secret with the credentials.",
         .protobuf_tag = 5, .flags = HFD_FIELD_POINTER},
        {"volumeName", &hfd_schema_text, "The name of the volume.", .protobuf_tag = 1},
        {"volumeNamespace", &hfd_schema_text, "The namespace of the volume.", .protobuf_tag = 2},
};
const struct hfd_schema hfd_storage_os_volume_schema = {
        HFD_STRUCT(HFD_CORE "StorageOSVolumeSource", storage_os_volume_source_fields)};

static const struct hfd_schema_field vsphere_virtual_disk_volume_source_fields[] = {
        {"fsType", &hfd_schema_text, "The file system of the volume.", .protobuf_tag = 2},
        {"storagePolicyID", &hfd_schema_text, "The id of the storage policy.", .protobuf_tag = 4},
        {"storagePolicyName", &hfd_schema_text, "The name of the storage policy.",
         .protobuf_tag = 3},
        {"volumePath", &hfd_schema_text, "The path of the volume.", .protobuf_tag = 1,
         .flags = HFD_FIELD_REQUIRED},
};
const struct hfd_schema hfd_vsphere_virtual_disk_volume_schema = {
        HFD_STRUCT(HFD_CORE "VsphereVirtualDiskVolumeSource",
                   vsphere_virtual_disk_volume_source_fields)};

/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The structural schema of PersistentVolume, with the volume sources that pods do not have in the
 * same form. Most of them differ in a reference to a Secret: a pod names one of its own namespace,
 * a PersistentVolume also names the namespace.
 *
 * A table has a row for each field of a Go struct of k8s.io/api/core/v1: the name in JSON, the
 * schema of the value, the number of the field in protobuf (protobuf_tag), and flags.
 * HFD_FIELD_POINTER stands for a Go pointer and embedded_tag for the number of an embedded struct,
 * which is an inner message in protobuf. A schema named *_text (not hfd_schema_text) is a Go string
 * type with a name of its own; error messages show this name.
 *
 * Invariants: the rows of a table are sorted by name (strcmp), because look-ups bisect it. The
 * number and the type of a field never change: clients that use protobuf find a field by its number
 * alone.
 */
#include "server/resources/workloads/workloads.h"

#include "server/resources/strategies/pod/pod_schema.h"
#include "server/schema/common.h"

static const struct hfd_schema persistent_volume_access_mode_text = {.type = HFD_SCHEMA_TEXT,
                                                                     .definition = HFD_CORE
                                                                     "PersistentVolumeAccessMode"};
static const struct hfd_schema persistent_volume_reclaim_policy_text =
        {.type = HFD_SCHEMA_TEXT, .definition = HFD_CORE "PersistentVolumeReclaimPolicy"};
static const struct hfd_schema persistent_volume_mode_text = {.type = HFD_SCHEMA_TEXT,
                                                              .definition = HFD_CORE
                                                              "PersistentVolumeMode"};
static const struct hfd_schema persistent_volume_phase_text = {.type = HFD_SCHEMA_TEXT,
                                                               .definition = HFD_CORE
                                                               "PersistentVolumePhase"};

/* An absent endpointsNamespace stands for the namespace of the claim, so it is a pointer. */
static const struct hfd_schema_field glusterfs_persistent_volume_source_fields[] = {
        {"endpoints", &hfd_schema_text, .protobuf_tag = 1, .flags = HFD_FIELD_REQUIRED},
        {"endpointsNamespace", &hfd_schema_text, .protobuf_tag = 4, .flags = HFD_FIELD_POINTER},
        {"path", &hfd_schema_text, .protobuf_tag = 2, .flags = HFD_FIELD_REQUIRED},
        {"readOnly", &hfd_schema_boolean, .protobuf_tag = 3},
};
static const struct hfd_schema glusterfs_persistent_volume_source = {
        HFD_STRUCT(HFD_CORE "GlusterfsPersistentVolumeSource",
                   glusterfs_persistent_volume_source_fields)};

/* Atomic: the name without its namespace would be another Secret. */
static const struct hfd_schema_field secret_reference_fields[] = {
        {"name", &hfd_schema_text, .protobuf_tag = 1},
        {"namespace", &hfd_schema_text, .protobuf_tag = 2},
};
static const struct hfd_schema secret_reference = {HFD_STRUCT(HFD_CORE "SecretReference",
                                                              secret_reference_fields),
                                                   .atomic = true};

static const struct hfd_schema_field rbd_persistent_volume_source_fields[] = {
        {"fsType", &hfd_schema_text, .protobuf_tag = 3},
        {"image", &hfd_schema_text, .protobuf_tag = 2, .flags = HFD_FIELD_REQUIRED},
        {"keyring", &hfd_schema_text, .protobuf_tag = 6},
        {"monitors", &hfd_schema_list_of_texts, .protobuf_tag = 1, .flags = HFD_FIELD_REQUIRED},
        {"pool", &hfd_schema_text, .protobuf_tag = 4},
        {"readOnly", &hfd_schema_boolean, .protobuf_tag = 8},
        {"secretRef", &secret_reference, .protobuf_tag = 7, .flags = HFD_FIELD_POINTER},
        {"user", &hfd_schema_text, .protobuf_tag = 5},
};
static const struct hfd_schema rbd_persistent_volume_source = {
        HFD_STRUCT(HFD_CORE "RBDPersistentVolumeSource", rbd_persistent_volume_source_fields)};

static const struct hfd_schema_field iscsi_persistent_volume_source_fields[] = {
        {"chapAuthDiscovery", &hfd_schema_boolean, .protobuf_tag = 8},
        {"chapAuthSession", &hfd_schema_boolean, .protobuf_tag = 11},
        {"fsType", &hfd_schema_text, .protobuf_tag = 5},
        {"initiatorName", &hfd_schema_text, .protobuf_tag = 12, .flags = HFD_FIELD_POINTER},
        {"iqn", &hfd_schema_text, .protobuf_tag = 2, .flags = HFD_FIELD_REQUIRED},
        {"iscsiInterface", &hfd_schema_text, .protobuf_tag = 4},
        {"lun", &hfd_schema_int32, .protobuf_tag = 3, .flags = HFD_FIELD_REQUIRED},
        {"portals", &hfd_schema_list_of_texts, .protobuf_tag = 7},
        {"readOnly", &hfd_schema_boolean, .protobuf_tag = 6},
        {"secretRef", &secret_reference, .protobuf_tag = 10, .flags = HFD_FIELD_POINTER},
        {"targetPortal", &hfd_schema_text, .protobuf_tag = 1, .flags = HFD_FIELD_REQUIRED},
};
static const struct hfd_schema iscsi_persistent_volume_source = {
        HFD_STRUCT(HFD_CORE "ISCSIPersistentVolumeSource", iscsi_persistent_volume_source_fields)};

static const struct hfd_schema_field cinder_persistent_volume_source_fields[] = {
        {"fsType", &hfd_schema_text, .protobuf_tag = 2},
        {"readOnly", &hfd_schema_boolean, .protobuf_tag = 3},
        {"secretRef", &secret_reference, .protobuf_tag = 4, .flags = HFD_FIELD_POINTER},
        {"volumeID", &hfd_schema_text, .protobuf_tag = 1, .flags = HFD_FIELD_REQUIRED},
};
static const struct hfd_schema cinder_persistent_volume_source = {
        HFD_STRUCT(HFD_CORE "CinderPersistentVolumeSource",
                   cinder_persistent_volume_source_fields)};

static const struct hfd_schema_field ceph_fs_persistent_volume_source_fields[] = {
        {"monitors", &hfd_schema_list_of_texts, .protobuf_tag = 1, .flags = HFD_FIELD_REQUIRED},
        {"path", &hfd_schema_text, .protobuf_tag = 2},
        {"readOnly", &hfd_schema_boolean, .protobuf_tag = 6},
        {"secretFile", &hfd_schema_text, .protobuf_tag = 4},
        {"secretRef", &secret_reference, .protobuf_tag = 5, .flags = HFD_FIELD_POINTER},
        {"user", &hfd_schema_text, .protobuf_tag = 3},
};
static const struct hfd_schema ceph_fs_persistent_volume_source = {
        HFD_STRUCT(HFD_CORE "CephFSPersistentVolumeSource",
                   ceph_fs_persistent_volume_source_fields)};

static const struct hfd_schema_field flex_persistent_volume_source_fields[] = {
        {"driver", &hfd_schema_text, .protobuf_tag = 1, .flags = HFD_FIELD_REQUIRED},
        {"fsType", &hfd_schema_text, .protobuf_tag = 2},
        {"options", &hfd_schema_map_of_texts, .protobuf_tag = 5},
        {"readOnly", &hfd_schema_boolean, .protobuf_tag = 4},
        {"secretRef", &secret_reference, .protobuf_tag = 3, .flags = HFD_FIELD_POINTER},
};
static const struct hfd_schema flex_persistent_volume_source = {
        HFD_STRUCT(HFD_CORE "FlexPersistentVolumeSource", flex_persistent_volume_source_fields)};

static const struct hfd_schema_field azure_file_persistent_volume_source_fields[] = {
        {"readOnly", &hfd_schema_boolean, .protobuf_tag = 3},
        {"secretName", &hfd_schema_text, .protobuf_tag = 1, .flags = HFD_FIELD_REQUIRED},
        {"secretNamespace", &hfd_schema_text, .protobuf_tag = 4, .flags = HFD_FIELD_POINTER},
        {"shareName", &hfd_schema_text, .protobuf_tag = 2, .flags = HFD_FIELD_REQUIRED},
};
static const struct hfd_schema azure_file_persistent_volume_source = {
        HFD_STRUCT(HFD_CORE "AzureFilePersistentVolumeSource",
                   azure_file_persistent_volume_source_fields)};

static const struct hfd_schema_field scale_io_persistent_volume_source_fields[] = {
        {"fsType", &hfd_schema_text, .protobuf_tag = 9},
        {"gateway", &hfd_schema_text, .protobuf_tag = 1, .flags = HFD_FIELD_REQUIRED},
        {"protectionDomain", &hfd_schema_text, .protobuf_tag = 5},
        {"readOnly", &hfd_schema_boolean, .protobuf_tag = 10},
        {"secretRef", &secret_reference, .protobuf_tag = 3,
         .flags = HFD_FIELD_REQUIRED | HFD_FIELD_POINTER},
        {"sslEnabled", &hfd_schema_boolean, .protobuf_tag = 4},
        {"storageMode", &hfd_schema_text, .protobuf_tag = 7},
        {"storagePool", &hfd_schema_text, .protobuf_tag = 6},
        {"system", &hfd_schema_text, .protobuf_tag = 2, .flags = HFD_FIELD_REQUIRED},
        {"volumeName", &hfd_schema_text, .protobuf_tag = 8},
};
static const struct hfd_schema scale_io_persistent_volume_source = {
        HFD_STRUCT(HFD_CORE "ScaleIOPersistentVolumeSource",
                   scale_io_persistent_volume_source_fields)};

static const struct hfd_schema_field local_volume_source_fields[] = {
        {"fsType", &hfd_schema_text, .protobuf_tag = 2, .flags = HFD_FIELD_POINTER},
        {"path", &hfd_schema_text, .protobuf_tag = 1, .flags = HFD_FIELD_REQUIRED},
};
static const struct hfd_schema local_volume_source = {
        HFD_STRUCT(HFD_CORE "LocalVolumeSource", local_volume_source_fields)};

/* Here the Secret is an ObjectReference, as it was before there were SecretReferences. */
static const struct hfd_schema_field storage_os_persistent_volume_source_fields[] = {
        {"fsType", &hfd_schema_text, .protobuf_tag = 3},
        {"readOnly", &hfd_schema_boolean, .protobuf_tag = 4},
        {"secretRef", &hfd_schema_object_reference, .protobuf_tag = 5, .flags = HFD_FIELD_POINTER},
        {"volumeName", &hfd_schema_text, .protobuf_tag = 1},
        {"volumeNamespace", &hfd_schema_text, .protobuf_tag = 2},
};
static const struct hfd_schema storage_os_persistent_volume_source = {
        HFD_STRUCT(HFD_CORE "StorageOSPersistentVolumeSource",
                   storage_os_persistent_volume_source_fields)};

/* Up to five Secrets, each for certain calls of the driver that need credentials: a node gets only
 * those of its own calls. */
static const struct hfd_schema_field csi_persistent_volume_source_fields[] = {
        {"controllerExpandSecretRef", &secret_reference, .protobuf_tag = 9,
         .flags = HFD_FIELD_POINTER},
        {"controllerPublishSecretRef", &secret_reference, .protobuf_tag = 6,
         .flags = HFD_FIELD_POINTER},
        {"driver", &hfd_schema_text, .protobuf_tag = 1, .flags = HFD_FIELD_REQUIRED},
        {"fsType", &hfd_schema_text, .protobuf_tag = 4},
        {"nodeExpandSecretRef", &secret_reference, .protobuf_tag = 10, .flags = HFD_FIELD_POINTER},
        {"nodePublishSecretRef", &secret_reference, .protobuf_tag = 8, .flags = HFD_FIELD_POINTER},
        {"nodeStageSecretRef", &secret_reference, .protobuf_tag = 7, .flags = HFD_FIELD_POINTER},
        {"readOnly", &hfd_schema_boolean, .protobuf_tag = 3},
        {"volumeAttributes", &hfd_schema_map_of_texts, .protobuf_tag = 5},
        {"volumeHandle", &hfd_schema_text, .protobuf_tag = 2, .flags = HFD_FIELD_REQUIRED},
};
static const struct hfd_schema csi_persistent_volume_source = {
        HFD_STRUCT(HFD_CORE "CSIPersistentVolumeSource", csi_persistent_volume_source_fields)};

/* A local volume exists on one node. Preferred nodes make no sense, so there is only `required`. */
static const struct hfd_schema_field volume_node_affinity_fields[] = {
        {"required", &hfd_node_selector_schema, .protobuf_tag = 1, .flags = HFD_FIELD_POINTER},
};
static const struct hfd_schema volume_node_affinity = {
        HFD_STRUCT(HFD_CORE "VolumeNodeAffinity", volume_node_affinity_fields)};

/* Go embeds a PersistentVolumeSource, so in protobuf the sources are in the inner message 2, where
 * the numbers begin at 1 again: "capacity" and "gcePersistentDisk" both have the number 1. claimRef
 * has the uid of the claim, so a new claim of the same name does not get the data of the old
 * one. */
static const struct hfd_schema_field persistent_volume_spec_fields[] = {
        {"accessModes", HFD_LIST_OF(&persistent_volume_access_mode_text), .protobuf_tag = 3},
        {"awsElasticBlockStore", &hfd_aws_elastic_block_store_volume_schema, .protobuf_tag = 2,
         .embedded_tag = 2, .flags = HFD_FIELD_POINTER},
        {"azureDisk", &hfd_azure_disk_volume_schema, .protobuf_tag = 16, .embedded_tag = 2,
         .flags = HFD_FIELD_POINTER},
        {"azureFile", &azure_file_persistent_volume_source, .protobuf_tag = 13, .embedded_tag = 2,
         .flags = HFD_FIELD_POINTER},
        {"capacity", &hfd_schema_resource_list, .protobuf_tag = 1},
        {"cephfs", &ceph_fs_persistent_volume_source, .protobuf_tag = 9, .embedded_tag = 2,
         .flags = HFD_FIELD_POINTER},
        {"cinder", &cinder_persistent_volume_source, .protobuf_tag = 8, .embedded_tag = 2,
         .flags = HFD_FIELD_POINTER},
        {"claimRef", &hfd_schema_object_reference, .protobuf_tag = 4, .flags = HFD_FIELD_POINTER},
        {"csi", &csi_persistent_volume_source, .protobuf_tag = 22, .embedded_tag = 2,
         .flags = HFD_FIELD_POINTER},
        {"fc", &hfd_fc_volume_schema, .protobuf_tag = 10, .embedded_tag = 2,
         .flags = HFD_FIELD_POINTER},
        {"flexVolume", &flex_persistent_volume_source, .protobuf_tag = 12, .embedded_tag = 2,
         .flags = HFD_FIELD_POINTER},
        {"flocker", &hfd_flocker_volume_schema, .protobuf_tag = 11, .embedded_tag = 2,
         .flags = HFD_FIELD_POINTER},
        {"gcePersistentDisk", &hfd_gce_persistent_disk_volume_schema, .protobuf_tag = 1,
         .embedded_tag = 2, .flags = HFD_FIELD_POINTER},
        {"glusterfs", &glusterfs_persistent_volume_source, .protobuf_tag = 4, .embedded_tag = 2,
         .flags = HFD_FIELD_POINTER},
        {"hostPath", &hfd_host_path_volume_source_schema, .protobuf_tag = 3, .embedded_tag = 2,
         .flags = HFD_FIELD_POINTER},
        {"iscsi", &iscsi_persistent_volume_source, .protobuf_tag = 7, .embedded_tag = 2,
         .flags = HFD_FIELD_POINTER},
        {"local", &local_volume_source, .protobuf_tag = 20, .embedded_tag = 2,
         .flags = HFD_FIELD_POINTER},
        {"mountOptions", &hfd_schema_list_of_texts, .protobuf_tag = 7},
        {"nfs", &hfd_nfs_volume_source_schema, .protobuf_tag = 5, .embedded_tag = 2,
         .flags = HFD_FIELD_POINTER},
        {"nodeAffinity", &volume_node_affinity, .protobuf_tag = 9, .flags = HFD_FIELD_POINTER},
        {"persistentVolumeReclaimPolicy", &persistent_volume_reclaim_policy_text,
         .protobuf_tag = 5},
        {"photonPersistentDisk", &hfd_photon_persistent_disk_volume_schema, .protobuf_tag = 17,
         .embedded_tag = 2, .flags = HFD_FIELD_POINTER},
        {"portworxVolume", &hfd_portworx_volume_schema, .protobuf_tag = 18, .embedded_tag = 2,
         .flags = HFD_FIELD_POINTER},
        {"quobyte", &hfd_quobyte_volume_schema, .protobuf_tag = 15, .embedded_tag = 2,
         .flags = HFD_FIELD_POINTER},
        {"rbd", &rbd_persistent_volume_source, .protobuf_tag = 6, .embedded_tag = 2,
         .flags = HFD_FIELD_POINTER},
        {"scaleIO", &scale_io_persistent_volume_source, .protobuf_tag = 19, .embedded_tag = 2,
         .flags = HFD_FIELD_POINTER},
        {"storageClassName", &hfd_schema_text, .protobuf_tag = 6},
        {"storageos", &storage_os_persistent_volume_source, .protobuf_tag = 21, .embedded_tag = 2,
         .flags = HFD_FIELD_POINTER},
        {"volumeAttributesClassName", &hfd_schema_text, .protobuf_tag = 10,
         .flags = HFD_FIELD_POINTER},
        {"volumeMode", &persistent_volume_mode_text, .protobuf_tag = 8, .flags = HFD_FIELD_POINTER},
        {"vsphereVolume", &hfd_vsphere_virtual_disk_volume_schema, .protobuf_tag = 14,
         .embedded_tag = 2, .flags = HFD_FIELD_POINTER},
};
const struct hfd_schema hfd_persistent_volume_spec_schema =
        {HFD_STRUCT(HFD_CORE "PersistentVolumeSpec", persistent_volume_spec_fields),
         .embedded = "PersistentVolumeSource"};

/* kube-apiserver sets lastPhaseTransitionTime when the phase changes. Here the program that writes
 * the phase has to set it. */
static const struct hfd_schema_field persistent_volume_status_fields[] = {
        {"lastPhaseTransitionTime", &hfd_schema_time, .protobuf_tag = 4,
         .flags = HFD_FIELD_POINTER},
        {"message", &hfd_schema_text, .protobuf_tag = 2},
        {"phase", &persistent_volume_phase_text, .protobuf_tag = 1},
        {"reason", &hfd_schema_text, .protobuf_tag = 3},
};
static const struct hfd_schema persistent_volume_status = {
        HFD_STRUCT(HFD_CORE "PersistentVolumeStatus", persistent_volume_status_fields)};

static const struct hfd_schema_field persistent_volume_fields[] = {
        HFD_FIELD_API_VERSION,
        HFD_FIELD_KIND,
        HFD_FIELD_METADATA,
        {"spec", &hfd_persistent_volume_spec_schema, .protobuf_tag = 2},
        {"status", &persistent_volume_status, .protobuf_tag = 3},
};
const struct hfd_schema hfd_persistent_volume_schema = {
        HFD_STRUCT(HFD_CORE "PersistentVolume", persistent_volume_fields)};

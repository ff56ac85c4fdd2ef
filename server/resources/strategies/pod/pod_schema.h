/* SPDX-License-Identifier: Apache-2.0 */
#pragma once
/*
 * The schema of a pod template, and of its parts. All kinds that have a template share it. Names,
 * numbers in protobuf and types are those of k8s.io/api/core/v1; they never change. The schemas are
 * static and immutable. Thread: any.
 */
#include "server/schema/schema.h"

/* pod_schema.c */
extern const struct hfd_schema hfd_pod_template_spec_schema, hfd_pod_spec_schema;

/* containers.c */
extern const struct hfd_schema hfd_container_schema, hfd_ephemeral_container_schema,
        hfd_resource_requirements_schema;
/* probes.c */
extern const struct hfd_schema hfd_probe_schema, hfd_lifecycle_schema;
/* security.c */
extern const struct hfd_schema hfd_security_context_schema, hfd_pod_security_context_schema;
/* affinity.c */
extern const struct hfd_schema hfd_affinity_schema, hfd_node_selector_schema, hfd_toleration_schema;

/* volumes.c */
extern const struct hfd_schema hfd_volume_schema, hfd_host_path_volume_source_schema,
        hfd_nfs_volume_source_schema, hfd_persistent_volume_claim_spec_schema,
        hfd_typed_local_object_reference_schema;
/* projected_volumes.c */
extern const struct hfd_schema hfd_key_to_path_schema, hfd_object_field_selector_schema,
        hfd_resource_field_selector_schema, hfd_secret_volume_schema, hfd_configmap_volume_schema,
        hfd_downward_volume_schema, hfd_projected_volume_schema;
/* cloud_volumes.c */
extern const struct hfd_schema hfd_aws_elastic_block_store_volume_schema,
        hfd_azure_disk_volume_schema, hfd_azure_file_volume_schema, hfd_ceph_fs_volume_schema,
        hfd_cinder_volume_schema, hfd_fc_volume_schema, hfd_flex_volume_schema,
        hfd_flocker_volume_schema, hfd_gce_persistent_disk_volume_schema,
        hfd_git_repo_volume_schema, hfd_glusterfs_volume_schema, hfd_iscsi_volume_schema,
        hfd_photon_persistent_disk_volume_schema, hfd_portworx_volume_schema,
        hfd_quobyte_volume_schema, hfd_rbd_volume_schema, hfd_scale_io_volume_schema,
        hfd_storage_os_volume_schema, hfd_vsphere_virtual_disk_volume_schema;

/* SPDX-License-Identifier: Apache-2.0 */
#pragma once
/*
 * What the files of this folder share: the rules of single sources of volumes. A source is a member
 * of a volume of a pod, or of the spec of a PersistentVolume: nfs, csi and so on. Each function
 * adds a cause for each mistake. field: the path of the source. Pure. Thread: any.
 */
#include <stdbool.h>
#include <stddef.h>

#include "server/resources/strategies/pod/rules/pod_validation.h"

/* persistent: true for the source of a PersistentVolume, false for that of a pod. References to
 * Secrets name a namespace only in a PersistentVolume. */
typedef void hfd_volume_source_rule(const struct hf__json *source, const char *field,
                                    bool persistent, struct hfd_causes *causes);

/* pod_sources.c: sources with data of the API, ephemeral claims, images, directories of nodes */
hfd_volume_source_rule hfd_empty_dir_validate, hfd_host_path_validate, hfd_secret_source_validate,
        hfd_config_map_source_validate, hfd_downward_source_validate, hfd_ephemeral_source_validate,
        hfd_image_source_validate, hfd_local_source_validate;
/* projected_validation.c */
hfd_volume_source_rule hfd_projected_source_validate;
/* network_sources.c: file systems, repositories and disks in a network */
hfd_volume_source_rule hfd_nfs_validate, hfd_iscsi_validate, hfd_fc_validate,
        hfd_glusterfs_validate, hfd_rbd_validate, hfd_cephfs_validate, hfd_quobyte_validate,
        hfd_git_repo_validate;
/* vendor_sources.c: the volumes of one vendor, and those of drivers */
hfd_volume_source_rule hfd_disk_partition_validate, hfd_flocker_validate, hfd_cinder_validate,
        hfd_flex_volume_validate, hfd_azure_file_validate, hfd_azure_disk_validate,
        hfd_storage_os_validate, hfd_csi_source_validate;

/* The member is a path without "..". */
void hfd_no_backsteps_validate(const struct hf__json *source, const char *field, const char *member,
                               struct hfd_causes *causes);
/* secretRef of a source has a name and, if with_namespace, a namespace. It may be absent. */
void hfd_secret_reference_validate(const struct hf__json *source, const char *field,
                                   bool with_namespace, struct hfd_causes *causes);

/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The rules of a pod's volumes, and which sources pods and PersistentVolumes may have.
 *
 * Invariants: the texts of the causes, their fields and their order are those of kube-apiserver,
 * because clients show them and tests compare them. Of several sources the first one in
 * Kubernetes' order is checked, and each further one is refused.
 */
#include <stdio.h>
#include <string.h>

#include "base/json.h"
#include "base/json_index.h"
#include "server/resources/strategies/pod/rules/volumes/volume_sources.h"

#define N_REQUIRED    3
#define INITIATOR_MAX 64 /* bytes of "VOLUME:PORTAL"; Kubernetes derives a name from it */
#define N_SOURCES     (sizeof sources / sizeof sources[0])
#define N_PERSISTENT  (sizeof persistent_order / sizeof persistent_order[0])

/* The sources in the order in which Kubernetes looks for them in a pod, and last the one that only
 * PersistentVolumes have. */
static const struct source {
        const char *name;
        const char *checked_as, *refused_as; /* in paths; NULL = the name */
        const char *required[N_REQUIRED];    /* texts; NULL = no more */
        hfd_volume_source_rule *validate;    /* after the required texts; NULL = nothing more */
} sources[] = {
        {"emptyDir", .validate = hfd_empty_dir_validate},
        {"hostPath", .validate = hfd_host_path_validate},
        {"gitRepo", .required = {"repository"}, .validate = hfd_git_repo_validate},
        {"gcePersistentDisk", .checked_as = "persistentDisk", .required = {"pdName"},
         .validate = hfd_disk_partition_validate},
        {"awsElasticBlockStore", .required = {"volumeID"}, .validate = hfd_disk_partition_validate},
        {"secret", .validate = hfd_secret_source_validate},
        {"nfs", .required = {"server", "path"}, .validate = hfd_nfs_validate},
        {"iscsi", .required = {"targetPortal"}, .validate = hfd_iscsi_validate},
        {"glusterfs", .required = {"endpoints", "path"}, .validate = hfd_glusterfs_validate},
        {"flocker", .validate = hfd_flocker_validate},
        {"persistentVolumeClaim", .required = {"claimName"}},
        {"rbd", .validate = hfd_rbd_validate},
        {"cinder", .validate = hfd_cinder_validate},
        {"cephfs", .refused_as = "cephFS", .validate = hfd_cephfs_validate},
        {"quobyte", .validate = hfd_quobyte_validate},
        {"downwardAPI", .refused_as = "downwarAPI", .validate = hfd_downward_source_validate},
        {"fc", .validate = hfd_fc_validate},
        {"flexVolume", .validate = hfd_flex_volume_validate},
        {"configMap", .validate = hfd_config_map_source_validate},
        {"azureFile", .required = {"secretName", "shareName"}, .validate = hfd_azure_file_validate},
        {"vsphereVolume", .required = {"volumePath"}},
        {"photonPersistentDisk", .required = {"pdID"}},
        {"portworxVolume", .required = {"volumeID"}},
        {"azureDisk", .required = {"diskName", "diskURI"}, .validate = hfd_azure_disk_validate},
        {"storageos", .validate = hfd_storage_os_validate},
        {"projected", .validate = hfd_projected_source_validate},
        {"scaleIO", .required = {"gateway", "system", "volumeName"}},
        {"csi", .validate = hfd_csi_source_validate},
        {"ephemeral", .validate = hfd_ephemeral_source_validate},
        {"image", .validate = hfd_image_source_validate},
        {"local", .validate = hfd_local_source_validate},
};

/* The sources of PersistentVolumes, in the order in which Kubernetes looks for them there. */
static const char *const persistent_order[] = {"hostPath",
                                               "gcePersistentDisk",
                                               "awsElasticBlockStore",
                                               "glusterfs",
                                               "flocker",
                                               "nfs",
                                               "rbd",
                                               "quobyte",
                                               "cephfs",
                                               "iscsi",
                                               "cinder",
                                               "fc",
                                               "flexVolume",
                                               "azureFile",
                                               "vsphereVolume",
                                               "photonPersistentDisk",
                                               "portworxVolume",
                                               "azureDisk",
                                               "scaleIO",
                                               "local",
                                               "storageos",
                                               "csi"};

static const struct source *find_source(const char *name) {
        for (size_t i = 0; i < N_SOURCES; i++)
                if (strcmp(sources[i].name, name) == 0)
                        return &sources[i];
        return NULL;
}

bool hfd_is_persistent_source(const char *name) {
        for (size_t i = 0; i < N_PERSISTENT; i++)
                if (strcmp(persistent_order[i], name) == 0)
                        return true;
        return false;
}

/* ---- one volume ---- */

/* Kubernetes derives a name from the name and the portal of an iSCSI volume, if the initiator has a
 * name. kube-apiserver misspells the path in a PersistentVolume. */
static void validate_initiator(const struct hf__json *iscsi, const char *name, const char *field,
                               bool persistent, struct hfd_causes *causes) {
        const char *portal = hfd_text_of(iscsi, "targetPortal");
        char path[HFD_FIELD_PATH_MAX];

        if (!hf__json_get(iscsi, "initiatorName") ||
            strlen(name) + 1 + strlen(portal) <= INITIATOR_MAX)
                return;
        hfd_field_path(path, field, persistent ? "iscsi.targetportal" : "name");
        hfd_cause_invalid_text(causes, path, persistent ? portal : name,
                               "Total length of <volume name>:<iscsi.targetPortal> must be under "
                               "64 characters if iscsi.initiatorName is specified.");
}

static bool is_persistent(enum hfd_volume_kind kind) {
        return kind == HFD_VOLUME_PERSISTENT || kind == HFD_VOLUME_INLINE;
}

/* The source s of a volume. An inline volume must not have a nodeAffinity, so as in kube-apiserver
 * one that it has does not count for `local`. */
static void validate_source(const struct source *s, const struct hf__json *volume, const char *name,
                            const char *field, enum hfd_volume_kind kind,
                            struct hfd_causes *causes) {
        const struct hf__json *source = hf__json_get(volume, s->name);
        bool persistent = is_persistent(kind);
        char path[HFD_FIELD_PATH_MAX];

        hfd_field_path(path, field, s->checked_as ? s->checked_as : s->name);
        for (size_t i = 0; i < N_REQUIRED && s->required[i]; i++)
                (void)hfd_require_text(source, path, s->required[i], causes);
        if (persistent && strcmp(s->name, "iscsi") == 0)
                validate_initiator(source, name, field, true, causes);
        if (kind == HFD_VOLUME_OF_POD && strcmp(s->name, "image") == 0)
                (void)hfd_require_text(source, path, "reference", causes);
        if (s->validate)
                s->validate(source, path, persistent, causes);
        if (persistent && strcmp(s->name, "local") == 0 &&
            (kind == HFD_VOLUME_INLINE || !hf__json_get(volume, "nodeAffinity")))
                hfd_cause_required(causes, hfd_field_path(path, field, "nodeAffinity"),
                                   "Local volume requires node affinity");
}

void hfd_volume_source_validate(const struct hf__json *volume, const char *name, const char *field,
                                enum hfd_volume_kind kind, struct hfd_causes *causes) {
        char path[HFD_FIELD_PATH_MAX];
        bool persistent = is_persistent(kind), found = false;

        for (size_t i = 0; i < (persistent ? N_PERSISTENT : N_SOURCES); i++) {
                const struct source *s =
                        persistent ? find_source(persistent_order[i]) : &sources[i];
                const struct hf__json *source = hf__json_get(volume, s->name);
                if (!source)
                        continue;
                if (found)
                        hfd_cause_forbidden(causes,
                                            hfd_field_path(path, field,
                                                           s->refused_as ? s->refused_as : s->name),
                                            "may not specify more than 1 volume type");
                else
                        validate_source(s, volume, name, field, kind, causes);
                /* In a pod this rule also holds for a source that is refused. */
                if (!persistent && strcmp(s->name, "iscsi") == 0)
                        validate_initiator(source, name, field, false, causes);
                found = true;
        }
        if (!found)
                hfd_cause_required(causes, field, "must specify a volume type");
}

/* ---- volumes of pods ---- */

void hfd_volumes_validate(const struct hf__json *spec, const char *field, bool of_pod,
                          struct hf__json_index *ret_volumes, struct hfd_causes *causes) {
        const struct hf__json *volumes = hf__json_get(spec, "volumes");
        char list[HFD_FIELD_PATH_MAX], path[HFD_FIELD_PATH_MAX], name_path[HFD_FIELD_PATH_MAX];
        size_t i = 0;

        hfd_field_path(list, field, "volumes");
        if (!hfd_causes_check(causes, hf__json_index_init(ret_volumes, volumes, "name")))
                return;
        for (size_t k = 0; k < ret_volumes->n; k++)
                ret_volumes->entries[k].item = NULL;
        for (struct hf__json *m = hf__json_first(volumes); m; m = hf__json_next(m)) {
                const char *name = hfd_text_of(m, "name");
                struct hf__json_index_entry *first = hf__json_index_find(ret_volumes, name);
                size_t n = causes->n;
                hfd_field_index(path, list, i++);
                hfd_volume_source_validate(m, name, path,
                                           of_pod ? HFD_VOLUME_OF_POD : HFD_VOLUME_OF_TEMPLATE,
                                           causes);
                hfd_label_name_validate(m, path, "name", causes);
                if (first && first->item)
                        hfd_cause_duplicate_text(causes, hfd_field_path(name_path, path, "name"),
                                                 name);
                /* If no more causes fit, a volume with mistakes does not raise their number and is
                 * found, too. But then no cause that depends on this fits either. */
                if (first && causes->n == n)
                        first->item = m;
        }
}

const struct hf__json *hfd_volume_find(const struct hf__json_index *volumes, const char *name) {
        const struct hf__json_index_entry *first = hf__json_index_find(volumes, name);

        return first ? first->item : NULL;
}

/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The rules of what a container sees of the pod's volumes: mounts of their files (volumeMounts),
 * and block devices (volumeDevices).
 *
 * Invariants: the texts of the causes, their paths and their order are those of kube-apiserver,
 * because clients show them and tests compare them. Names and paths are looked up in indexes, so
 * that the time does not grow with the product of the numbers of mounts, devices and volumes, all
 * of which a client chooses.
 */
#include <string.h>

#include "base/json.h"
#include "base/json_index.h"
#include "server/resources/strategies/pod/rules/pod_validation.h"

/* What one container mounts. The indexes borrow from the container and the pod. keep_last_paths
 * changes the items in `paths` and `device_paths`: the first entry of a path has an item only if
 * this path is the last one of some name. */
struct mounts {
        const struct hf__json_index *volumes;             /* of the pod; for hfd_volume_find */
        struct hf__json_index names, paths;               /* of volumeMounts */
        struct hf__json_index device_names, device_paths; /* of volumeDevices */
        bool is_privileged;
        struct hfd_causes *causes; /* borrowed */
};

/* ---- overlaps ---- */

/* Kubernetes looks for overlaps of mounts and devices in a map by their names, which keeps only the
 * last path of each name. names, paths: of one list. */
static void keep_last_paths(struct hf__json_index *names, struct hf__json_index *paths) {
        hfd_keep_last_items(names);
        for (size_t k = paths->n; k-- > 0;) {
                struct hf__json_index_entry *entry = &paths->entries[k];
                bool is_followed = k + 1 < paths->n && strcmp(entry->text, entry[1].text) == 0;
                if (hf__json_index_find(names, hfd_text_of(entry->item, "name"))->item !=
                    entry->item)
                        entry->item = is_followed ? entry[1].item : NULL;
        }
}

static bool is_last_path(const struct hf__json_index *paths, const char *path) {
        const struct hf__json_index_entry *entry = hf__json_index_find(paths, path);

        return entry && entry->item;
}

/* ---- mounts ---- */

static void validate_propagation(const struct mounts *mounts, const struct hf__json *mount,
                                 const char *field) {
        static const char *const modes[] = {"Bidirectional", "HostToContainer", "None", NULL};
        const char *mode = hfd_text_of(mount, "mountPropagation");

        if (!hf__json_get(mount, "mountPropagation"))
                return;
        hfd_refuse_others(mode, field, modes, mounts->causes);
        if (strcmp(mode, "Bidirectional") == 0 && !mounts->is_privileged)
                hfd_cause_forbidden(mounts->causes, field,
                                    "Bidirectional mount propagation is available only to "
                                    "privileged containers");
}

static void validate_read_only(const struct hf__json *mount, const char *field,
                               struct hfd_causes *causes) {
        static const char *const modes[] = {"Disabled", "Enabled", "IfPossible", NULL};
        const char *mode = hfd_text_of(mount, "recursiveReadOnly");

        if (!hf__json_get(mount, "recursiveReadOnly") || strcmp(mode, "Disabled") == 0)
                return;
        if (strcmp(mode, "Enabled") != 0 && strcmp(mode, "IfPossible") != 0) {
                hfd_refuse_others(mode, field, modes, causes);
                return;
        }
        if (!hf__json_bool(mount, "readOnly", false))
                hfd_cause_forbidden(causes, field, "may only be specified when readOnly is true");
        if (hf__json_get(mount, "mountPropagation") &&
            !hf__json_has_text(mount, "mountPropagation", "None"))
                hfd_cause_forbidden(causes, field,
                                    "may only be specified when mountPropagation is None or not "
                                    "specified");
}

/* field: the field path of the mount. list: that of volumeMounts, which some causes name instead,
 * as in kube-apiserver. */
static void validate_details(const struct mounts *mounts, const struct hf__json *mount,
                             const char *field, const char *list) {
        const char *expression = hfd_text_of(mount, "subPathExpr");
        char path[HFD_FIELD_PATH_MAX];

        hfd_descending_path_validate(mount, list, "subPath", mounts->causes);
        if (*expression && *hfd_text_of(mount, "subPath"))
                hfd_cause_invalid_text(mounts->causes, hfd_field_path(path, field, "subPathExpr"),
                                       expression,
                                       "subPathExpr and subPath are mutually exclusive");
        hfd_descending_path_validate(mount, list, "subPathExpr", mounts->causes);
        validate_propagation(mounts, mount, hfd_field_path(path, list, "mountPropagation"));
        validate_read_only(mount, hfd_field_path(path, list, "recursiveReadOnly"), mounts->causes);
}

/* Each mount is of a volume of the pod, and has a path of its own in the container. */
static void validate_mount(const struct mounts *mounts, const struct hf__json *mount,
                           const char *field, size_t position) {
        const char *name = hfd_text_of(mount, "name"), *at = hfd_text_of(mount, "mountPath");
        char of_name[HFD_FIELD_PATH_MAX], of_path[HFD_FIELD_PATH_MAX];

        hfd_field_path(of_name, field, "name");
        hfd_field_path(of_path, field, "mountPath");
        (void)hfd_require_text(mount, field, "name", mounts->causes);
        if (!hfd_volume_find(mounts->volumes, name))
                hfd_cause_not_found_text(mounts->causes, of_name, name);
        (void)hfd_require_text(mount, field, "mountPath", mounts->causes);
        if (hfd_is_repeated(&mounts->paths, at, position))
                hfd_cause_invalid_text(mounts->causes, of_path, at, "must be unique");
        if (hf__json_index_find(&mounts->device_names, name))
                hfd_cause_invalid_text(mounts->causes, of_name, name,
                                       "must not already exist in volumeDevices");
        if (is_last_path(&mounts->device_paths, at))
                hfd_cause_invalid_text(mounts->causes, of_path, at,
                                       "must not already exist as a path in volumeDevices");
}

/* ---- devices ---- */

static void validate_device_name(const struct mounts *mounts, const struct hf__json *device,
                                 const char *field, size_t position) {
        const char *name = hfd_text_of(device, "name");
        const struct hf__json *volume = hfd_volume_find(mounts->volumes, name);
        char path[HFD_FIELD_PATH_MAX];

        (void)hfd_require_text(device, field, "name", mounts->causes);
        hfd_field_path(path, field, "name");
        if (*name && hfd_is_repeated(&mounts->device_names, name, position))
                hfd_cause_invalid_text(mounts->causes, path, name, "must be unique");
        if (!volume)
                hfd_cause_not_found_text(mounts->causes, path, name);
        else if (!hf__json_get(volume, "persistentVolumeClaim") &&
                 !hf__json_get(volume, "ephemeral"))
                hfd_cause_invalid_text(mounts->causes, path, name,
                                       "can only use volume source type of PersistentVolumeClaim "
                                       "or Ephemeral for block mode");
}

static void validate_device(const struct mounts *mounts, const struct hf__json *device,
                            const char *field, size_t position) {
        const char *name = hfd_text_of(device, "name"), *at = hfd_text_of(device, "devicePath");
        bool leads_out = hfd_has_backsteps(at);
        char path[HFD_FIELD_PATH_MAX];

        validate_device_name(mounts, device, field, position);
        (void)hfd_require_text(device, field, "devicePath", mounts->causes);
        hfd_field_path(path, field, "devicePath");
        if (!leads_out && hfd_is_repeated(&mounts->device_paths, at, position))
                hfd_cause_invalid_text(mounts->causes, path, at, "must be unique");
        if (leads_out)
                hfd_cause_invalid_text(mounts->causes, path, at,
                                       "can not contain backsteps ('..')");
        if (hf__json_index_find(&mounts->names, name))
                hfd_cause_invalid_text(mounts->causes, hfd_field_path(path, field, "name"), name,
                                       "must not already exist in volumeMounts");
        if (is_last_path(&mounts->paths, at))
                hfd_cause_invalid_text(mounts->causes, hfd_field_path(path, field, "devicePath"),
                                       at, "must not already exist as a path in volumeMounts");
}

/* ---- a container ---- */

static void validate_lists(const struct mounts *mounts, const struct hf__json *container,
                           const char *field) {
        char list[HFD_FIELD_PATH_MAX], path[HFD_FIELD_PATH_MAX];
        size_t i = 0;

        hfd_field_path(list, field, "volumeMounts");
        for (const struct hf__json *m = hf__json_first(hf__json_get(container, "volumeMounts")); m;
             m = hf__json_next(m), i++) {
                validate_mount(mounts, m, hfd_field_index(path, list, i), i);
                validate_details(mounts, m, path, list);
        }
        i = 0;
        hfd_field_path(list, field, "volumeDevices");
        for (const struct hf__json *m = hf__json_first(hf__json_get(container, "volumeDevices")); m;
             m = hf__json_next(m), i++)
                validate_device(mounts, m, hfd_field_index(path, list, i), i);
}

void hfd_mounts_validate(const struct hf__json *container, const struct hf__json_index *volumes,
                         const char *field, struct hfd_causes *causes) {
        struct mounts mounts = {.volumes = volumes, .causes = causes};
        const struct hf__json *of_files = hf__json_get(container, "volumeMounts"),
                              *of_blocks = hf__json_get(container, "volumeDevices");
        int r = hf__json_index_init_texts(&mounts.names, of_files, "name");

        mounts.is_privileged = hf__json_bool(container, "securityContext.privileged", false);
        if (r == 0)
                r = hf__json_index_init_texts(&mounts.paths, of_files, "mountPath");
        if (r == 0)
                r = hf__json_index_init_texts(&mounts.device_names, of_blocks, "name");
        if (r == 0)
                r = hf__json_index_init_texts(&mounts.device_paths, of_blocks, "devicePath");
        if (hfd_causes_check(causes, r)) {
                keep_last_paths(&mounts.names, &mounts.paths);
                keep_last_paths(&mounts.device_names, &mounts.device_paths);
                validate_lists(&mounts, container, field);
        }
        hf__json_index_done(&mounts.names);
        hf__json_index_done(&mounts.paths);
        hf__json_index_done(&mounts.device_names);
        hf__json_index_done(&mounts.device_paths);
}

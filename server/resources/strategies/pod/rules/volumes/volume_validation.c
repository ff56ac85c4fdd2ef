/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The rules of a pod's volumes. A volume has one source. Sources of single vendors have no rules of
 * their own: only programs that mount volumes read them.
 *
 * Invariants: the texts of the causes and their order are those of kube-apiserver, because clients
 * show them and tests compare them. A path in a volume never leads out of it ("..").
 * projected_validation.c has the rules of projected volumes.
 */
#include <stdio.h>
#include <string.h>

#include "base/json.h"
#include "base/json_index.h"
#include "server/resources/strategies/pod/rules/pod_validation.h"
#include "server/resources/validation/names.h"
#include "server/resources/validation/resource_names.h"

#define DRIVER_MAX 63 /* bytes of the name of a driver of CSI */
#define MODE_RULE  "must be a number between 0 and 0777 (octal), both inclusive"

/* ---- paths ---- */

bool hfd_has_backsteps(const char *path) {
        for (const char *at = path; (at = strstr(at, "..")) != NULL; at += 2)
                if ((at == path || at[-1] == '/') && (at[2] == '\0' || at[2] == '/'))
                        return true;
        return false;
}

void hfd_descending_path_validate(const struct hf__json *object, const char *field,
                                  const char *member, struct hfd_causes *causes) {
        const char *text = hfd_text_of(object, member);
        char path[HFD_FIELD_PATH_MAX];

        hfd_field_path(path, field, member);
        if (*text == '/')
                hfd_cause_invalid_text(causes, path, text, "must be a relative path");
        if (hfd_has_backsteps(text))
                hfd_cause_invalid_text(causes, path, text, "must not contain '..'");
}

/* The last rule keeps names free that the kubelet uses itself, such as "..data". */
void hfd_local_path_validate(const struct hf__json *object, const char *field, const char *member,
                             struct hfd_causes *causes) {
        const char *text = hfd_text_of(object, member);
        char path[HFD_FIELD_PATH_MAX];

        hfd_descending_path_validate(object, field, member, causes);
        hfd_field_path(path, field, member);
        if (strncmp(text, "..", 2) == 0 && strncmp(text, "../", 3) != 0)
                hfd_cause_invalid_text(causes, path, text, "must not start with '..'");
}

/* The path and the permissions of a file in a volume. */
static void validate_file_path(const struct hf__json *file, const char *field,
                               struct hfd_causes *causes) {
        if (hfd_require_text(file, field, "path", causes))
                hfd_local_path_validate(file, field, "path", causes);
        hfd_require_range(file, field, "mode", 0, 0777, MODE_RULE, causes);
}

void hfd_key_file_validate(const struct hf__json *item, const char *field,
                           struct hfd_causes *causes) {
        (void)hfd_require_text(item, field, "key", causes);
        validate_file_path(item, field, causes);
}

/* The keys of a ConfigMap or Secret that become files. */
static void validate_keys(const struct hf__json *source, const char *field,
                          struct hfd_causes *causes) {
        char items[HFD_FIELD_PATH_MAX], path[HFD_FIELD_PATH_MAX];
        size_t i = 0;

        hfd_require_range(source, field, "defaultMode", 0, 0777, MODE_RULE, causes);
        hfd_field_path(items, field, "items");
        for (const struct hf__json *m = hf__json_first(hf__json_get(source, "items")); m;
             m = hf__json_next(m))
                hfd_key_file_validate(m, hfd_field_index(path, items, i++), causes);
}

/* ---- fields of the pod ---- */

/* Whether the path selects a single label or annotation: metadata.labels['KEY']. The numbers are
 * the lengths of the prefixes. */
static bool has_subscript(const char *path) {
        return (strncmp(path, "metadata.labels['", 17) == 0 ||
                strncmp(path, "metadata.annotations['", 22) == 0) &&
               strlen(path) > 2 && strcmp(path + strlen(path) - 2, "']") == 0;
}

void hfd_object_field_selector_validate(const struct hf__json *selector, const char *field,
                                        bool of_volume, struct hfd_causes *causes) {
        static const char *const of_variables[] = {"metadata.name",
                                                   "metadata.namespace",
                                                   "metadata.uid",
                                                   "spec.nodeName",
                                                   "spec.serviceAccountName",
                                                   "status.hostIP",
                                                   "status.hostIPs",
                                                   "status.podIP",
                                                   "status.podIPs",
                                                   NULL};
        static const char *const of_volumes[] = {"metadata.annotations", "metadata.labels",
                                                 "metadata.name",        "metadata.namespace",
                                                 "metadata.uid",         NULL};

        if (!hfd_require_text(selector, field, "fieldPath", causes) ||
            has_subscript(hfd_text_of(selector, "fieldPath")))
                return;
        hfd_require_one_of(selector, field, "fieldPath", of_volume ? of_volumes : of_variables,
                           causes);
}

void hfd_downward_file_validate(const struct hf__json *file, const char *field,
                                struct hfd_causes *causes) {
        const struct hf__json *of_field = hf__json_get(file, "fieldRef"),
                              *of_resource = hf__json_get(file, "resourceFieldRef");
        char member[HFD_FIELD_PATH_MAX];

        validate_file_path(file, field, causes);
        if (of_field)
                hfd_object_field_selector_validate(of_field,
                                                   hfd_field_path(member, field, "fieldRef"), true,
                                                   causes);
        else if (of_resource)
                (void)hfd_require_text(of_resource,
                                       hfd_field_path(member, field, "resourceFieldRef"),
                                       "containerName", causes);
        else
                hfd_cause_required(causes, field,
                                   "one of fieldRef and resourceFieldRef is required");
        if (of_field && of_resource)
                hfd_cause_invalid_text(causes, field, "resource",
                                       "fieldRef and resourceFieldRef can not be specified "
                                       "simultaneously");
}

/* The files of a downwardAPI volume. */
static void validate_downward_files(const struct hf__json *source, const char *field,
                                    struct hfd_causes *causes) {
        char items[HFD_FIELD_PATH_MAX], path[HFD_FIELD_PATH_MAX];
        size_t i = 0;

        hfd_require_range(source, field, "defaultMode", 0, 0777, MODE_RULE, causes);
        hfd_field_path(items, field, "items");
        for (const struct hf__json *m = hf__json_first(hf__json_get(source, "items")); m;
             m = hf__json_next(m))
                hfd_downward_file_validate(m, hfd_field_index(path, items, i++), causes);
}

/* ---- sources ---- */

static void validate_host_path(const struct hf__json *source, const char *field,
                               struct hfd_causes *causes) {
        static const char *const types[] =
                {"",     "BlockDevice",  "CharDevice", "Directory", "DirectoryOrCreate",
                 "File", "FileOrCreate", "Socket",     NULL};
        char path[HFD_FIELD_PATH_MAX];

        if (!hfd_require_text(source, field, "path", causes))
                return;
        if (hfd_has_backsteps(hfd_text_of(source, "path")))
                hfd_cause_invalid_text(causes, hfd_field_path(path, field, "path"),
                                       hfd_text_of(source, "path"), "must not contain '..'");
        hfd_require_one_of(source, field, "type", types, causes);
}

static void validate_nfs(const struct hf__json *source, const char *field,
                         struct hfd_causes *causes) {
        char path[HFD_FIELD_PATH_MAX];

        (void)hfd_require_text(source, field, "server", causes);
        (void)hfd_require_text(source, field, "path", causes);
        if (*hfd_text_of(source, "path") != '/')
                hfd_cause_invalid_text(causes, hfd_field_path(path, field, "path"),
                                       hfd_text_of(source, "path"), "must be an absolute path");
}

static void validate_empty_dir(const struct hf__json *source, const char *field,
                               struct hfd_causes *causes) {
        const struct hf__json *limit = hf__json_get(source, "sizeLimit");
        const struct hfd_quantity amount = hfd_quantity_of_json(limit), zero = {0};
        char path[HFD_FIELD_PATH_MAX];

        if (limit && hfd_quantity_compare(&amount, &zero) < 0)
                hfd_cause_forbidden(causes, hfd_field_path(path, field, "sizeLimit"),
                                    "SizeLimit field must be a valid resource quantity");
}

/* As in kube-apiserver, capitals in the name of a driver count as lower case, and a name of a
 * Secret that is wrong has the path of a member that does not exist. */
static void validate_csi(const struct hf__json *source, const char *field,
                         struct hfd_causes *causes) {
        const struct hf__json *secret = hf__json_get(source, "nodePublishSecretRef");
        const char *driver = hfd_text_of(source, "driver");
        char lower[DRIVER_MAX + 1], path[HFD_FIELD_PATH_MAX];
        size_t n = strlen(driver);

        hfd_field_path(path, field, "driver");
        if (n > DRIVER_MAX)
                hfd_cause_too_long(causes, path, "may not be more than 63 bytes");
        for (size_t i = 0; i <= n && n <= DRIVER_MAX; i++)
                lower[i] = driver[i] >= 'A' && driver[i] <= 'Z' ? (char)(driver[i] + ('a' - 'A'))
                                                                : driver[i];
        if (hfd_require_text(source, field, "driver", causes) && n <= DRIVER_MAX &&
            !hfd_is_dns_subdomain(lower))
                hfd_cause_invalid_text(causes, path, driver, hfd_dns_subdomain_rule);
        if (!secret)
                return;
        hfd_field_path(path, field, "nodePublishSecretRef");
        if (hfd_require_text(secret, path, "name", causes))
                hfd_subdomain_validate(hfd_text_of(secret, "name"),
                                       hfd_field_path(path, field, "name"), causes);
}

/* name: the member of the volume that has the source. */
static void validate_source(const char *name, const struct hf__json *source, const char *field,
                            struct hfd_causes *causes) {
        static const char *const pulls[] = {"Always", "IfNotPresent", "Never", NULL};
        char path[HFD_FIELD_PATH_MAX];

        if (strcmp(name, "emptyDir") == 0) {
                validate_empty_dir(source, field, causes);
        } else if (strcmp(name, "hostPath") == 0) {
                validate_host_path(source, field, causes);
        } else if (strcmp(name, "secret") == 0) {
                (void)hfd_require_text(source, field, "secretName", causes);
                validate_keys(source, field, causes);
        } else if (strcmp(name, "configMap") == 0) {
                (void)hfd_require_text(source, field, "name", causes);
                validate_keys(source, field, causes);
        } else if (strcmp(name, "persistentVolumeClaim") == 0) {
                (void)hfd_require_text(source, field, "claimName", causes);
        } else if (strcmp(name, "nfs") == 0) {
                validate_nfs(source, field, causes);
        } else if (strcmp(name, "downwardAPI") == 0) {
                validate_downward_files(source, field, causes);
        } else if (strcmp(name, "projected") == 0) {
                hfd_require_range(source, field, "defaultMode", 0, 0777, MODE_RULE, causes);
                hfd_projected_sources_validate(source, field, causes);
        } else if (strcmp(name, "csi") == 0) {
                validate_csi(source, field, causes);
        } else if (strcmp(name, "image") == 0) {
                hfd_require_one_of(source, field, "pullPolicy", pulls, causes);
        } else if (strcmp(name, "ephemeral") == 0 && !hf__json_get(source, "volumeClaimTemplate")) {
                hfd_cause_required(causes, hfd_field_path(path, field, "volumeClaimTemplate"), "");
        }
}

/* A volume must have exactly one source. That is the first member other than its name; each further
 * one is refused. There is at least one, because the defaults add an emptyDir if there is none. */
static void validate_volume(const struct hf__json *volume, const char *field,
                            struct hfd_causes *causes) {
        char path[HFD_FIELD_PATH_MAX];
        bool found = false;

        for (const struct hf__json *m = hf__json_first(volume); m; m = hf__json_next(m)) {
                const char *name = hf__json_key(m);
                if (strcmp(name, "name") == 0)
                        continue;
                hfd_field_path(path, field, name);
                if (found)
                        hfd_cause_forbidden(causes, path,
                                            "may not specify more than 1 volume type");
                else
                        validate_source(name, m, path, causes);
                found = true;
        }
        hfd_label_name_validate(volume, field, "name", causes);
}

void hfd_volumes_validate(const struct hf__json *spec, const char *field,
                          struct hfd_causes *causes) {
        const struct hf__json *volumes = hf__json_get(spec, "volumes");
        char list[HFD_FIELD_PATH_MAX], path[HFD_FIELD_PATH_MAX], name_path[HFD_FIELD_PATH_MAX];
        struct hf__json_index names;
        size_t i = 0;

        hfd_field_path(list, field, "volumes");
        if (hfd_causes_check(causes, hf__json_index_init(&names, volumes, "name")))
                for (const struct hf__json *m = hf__json_first(volumes); m; m = hf__json_next(m)) {
                        const char *name = hfd_text_of(m, "name");
                        const struct hf__json_index_entry *first =
                                hf__json_index_find(&names, name);
                        validate_volume(m, hfd_field_index(path, list, i), causes);
                        if (*name && first && first->position < i)
                                hfd_cause_duplicate_text(causes,
                                                         hfd_field_path(name_path, path, "name"),
                                                         name);
                        i++;
                }
        hf__json_index_done(&names);
}

/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The rules of volumes that belong to one vendor, and of those that a driver mounts. Sources that
 * only need some texts are not here: a table has them (volume_validation.c).
 *
 * Invariants: the texts of the causes, their fields and their order are those of kube-apiserver,
 * because clients show them and tests compare them. Each check takes time in proportion to the
 * source.
 */
#include <ctype.h>
#include <stdio.h>
#include <string.h>
#include <strings.h>

#include "base/json.h"
#include "base/strbuf.h"
#include "server/resources/strategies/pod/rules/volumes/volume_sources.h"
#include "server/resources/validation/meta_validation.h"

#define DRIVER_NAME_MAX 63 /* bytes; Kubernetes' limit for drivers of CSI */

/* ---- what several have ---- */

void hfd_secret_reference_validate(const struct hf__json *source, const char *field,
                                   bool with_namespace, struct hfd_causes *causes) {
        const struct hf__json *reference = hf__json_get(source, "secretRef");
        char path[HFD_FIELD_PATH_MAX];

        if (!reference)
                return;
        hfd_field_path(path, field, "secretRef");
        (void)hfd_require_text(reference, path, "name", causes);
        if (with_namespace)
                (void)hfd_require_text(reference, path, "namespace", causes);
}

/* The text says 1, and 0 is accepted: it stands for the whole disk. */
void hfd_disk_partition_validate(const struct hf__json *source, const char *field, bool persistent,
                                 struct hfd_causes *causes) {
        hfd_require_range(source, field, "partition", 0, 255,
                          "must be between 1 and 255, inclusive", causes);
}

/* ---- vendors ---- */

void hfd_flocker_validate(const struct hf__json *source, const char *field, bool persistent,
                          struct hfd_causes *causes) {
        const char *name = hfd_text_of(source, "datasetName"),
                   *uuid = hfd_text_of(source, "datasetUUID");
        char path[HFD_FIELD_PATH_MAX];

        if (!*name && !*uuid)
                hfd_cause_required(causes, field, "one of datasetName and datasetUUID is required");
        if (*name && *uuid)
                hfd_cause_invalid_text(causes, field, "resource",
                                       "datasetName and datasetUUID can not be specified "
                                       "simultaneously");
        if (strchr(name, '/'))
                hfd_cause_invalid_text(causes, hfd_field_path(path, field, "datasetName"), name,
                                       "must not contain '/'");
}

void hfd_cinder_validate(const struct hf__json *source, const char *field, bool persistent,
                         struct hfd_causes *causes) {
        (void)hfd_require_text(source, field, "volumeID", causes);
        hfd_secret_reference_validate(source, field, persistent, causes);
}

/* Whether the part of a key before the slash is a domain of Kubernetes, or below one. */
static bool is_reserved(const char *key) {
        static const char *const domains[] = {"kubernetes.io", "k8s.io"};
        size_t n = strcspn(key, "/");

        for (size_t i = 0; i < 2; i++) {
                size_t m = strlen(domains[i]);
                if (n >= m && strncasecmp(key + n - m, domains[i], m) == 0 &&
                    (n == m || key[n - m - 1] == '.'))
                        return true;
        }
        return false;
}

void hfd_flex_volume_validate(const struct hf__json *source, const char *field, bool persistent,
                              struct hfd_causes *causes) {
        char path[HFD_FIELD_PATH_MAX];

        (void)hfd_require_text(source, field, "driver", causes);
        for (const struct hf__json *m = hf__json_first(hf__json_get(source, "options")); m;
             m = hf__json_next(m)) {
                if (!is_reserved(hf__json_key(m)))
                        continue;
                (void)snprintf(path, sizeof path, "%s.options[%s]", field, hf__json_key(m));
                hfd_cause_invalid_text(causes, path, hf__json_key(m),
                                       "kubernetes.io and k8s.io namespaces are reserved");
        }
}

void hfd_azure_file_validate(const struct hf__json *source, const char *field, bool persistent,
                             struct hfd_causes *causes) {
        if (persistent && hf__json_get(source, "secretNamespace"))
                (void)hfd_require_text(source, field, "secretNamespace", causes);
}

/* The default of the kind is Shared. So the URI needs the form of a blob, unless the client has set
 * the kind Managed. */
void hfd_azure_disk_validate(const struct hf__json *source, const char *field, bool persistent,
                             struct hfd_causes *causes) {
        static const char *const modes[] = {"None", "ReadOnly", "ReadWrite", NULL},
                                 *const kinds[] = {"Dedicated", "Managed", "Shared", NULL};
        const char *kind = hfd_text_of(source, "kind"), *uri = hfd_text_of(source, "diskURI");
        bool is_managed = strcmp(kind, "Managed") == 0;
        char path[HFD_FIELD_PATH_MAX];

        if (hf__json_get(source, "cachingMode"))
                hfd_refuse_others(hfd_text_of(source, "cachingMode"),
                                  hfd_field_path(path, field, "cachingMode"), modes, causes);
        if (!hf__json_get(source, "kind"))
                return;
        hfd_refuse_others(kind, hfd_field_path(path, field, "kind"), kinds, causes);
        hfd_field_path(path, field, "diskURI");
        if (is_managed && strncmp(uri, "/subscriptions/", 15) != 0)
                hfd_cause_unsupported_text(causes, path, uri,
                                           "\"/subscriptions/{sub-id}/resourcegroups/{group-name}/"
                                           "providers/microsoft.compute/disks/{disk-id}\"");
        else if (!is_managed && strncmp(uri, "https://", 8) != 0)
                hfd_cause_unsupported_text(causes, path, uri,
                                           "\"https://{account-name}.blob.core.windows.net/"
                                           "{container-name}/{disk-name}.vhd\"");
}

void hfd_storage_os_validate(const struct hf__json *source, const char *field, bool persistent,
                             struct hfd_causes *causes) {
        hfd_label_name_validate(source, field, "volumeName", causes);
        if (*hfd_text_of(source, "volumeNamespace"))
                hfd_label_name_validate(source, field, "volumeNamespace", causes);
        hfd_secret_reference_validate(source, field, persistent, causes);
}

/* ---- drivers of CSI ---- */

/* Capitals count as lower case. */
void hfd_csi_driver_name_validate(const char *name, const char *field, struct hfd_causes *causes) {
        struct hf__strbuf lower = {0};

        if (!*name) {
                hfd_cause_required(causes, field, "");
                return;
        }
        for (const char *c = name; *c; c++)
                hf__strbuf_putc(&lower, (char)tolower((unsigned char)*c));
        if (lower.n > DRIVER_NAME_MAX)
                hfd_cause_too_long(causes, field, "may not be more than 63 bytes");
        if (hfd_causes_check(causes, lower.error))
                hfd_subdomain_text_validate(lower.data, lower.n, field, name, causes);
        hf__strbuf_done(&lower);
}

/* A Secret of a PersistentVolume, for one of the calls of the driver. Absent, it is valid. */
static void validate_call_secret(const struct hf__json *source, const char *member,
                                 const char *field, struct hfd_causes *causes) {
        const struct hf__json *reference = hf__json_get(source, member);
        char path[HFD_FIELD_PATH_MAX], name[HFD_FIELD_PATH_MAX];

        if (!reference)
                return;
        hfd_field_path(path, field, member);
        if (hfd_require_text(reference, path, "name", causes))
                hfd_subdomain_validate(hfd_text_of(reference, "name"),
                                       hfd_field_path(name, path, "name"), causes);
        hfd_label_name_validate(reference, path, "namespace", causes);
}

/* Kubernetes does not look at nodeStageSecretRef. In a pod, a cause about the syntax of the
 * Secret's name has the path "...csi.name", as in Kubernetes, although there is no such member. */
void hfd_csi_source_validate(const struct hf__json *source, const char *field, bool persistent,
                             struct hfd_causes *causes) {
        static const char *const secrets[] = {"controllerPublishSecretRef",
                                              "controllerExpandSecretRef", "nodePublishSecretRef",
                                              "nodeExpandSecretRef"};
        const struct hf__json *reference = hf__json_get(source, "nodePublishSecretRef");
        char path[HFD_FIELD_PATH_MAX];

        hfd_csi_driver_name_validate(hfd_text_of(source, "driver"),
                                     hfd_field_path(path, field, "driver"), causes);
        if (persistent) {
                (void)hfd_require_text(source, field, "volumeHandle", causes);
                for (size_t i = 0; i < sizeof secrets / sizeof secrets[0]; i++)
                        validate_call_secret(source, secrets[i], field, causes);
        } else if (reference &&
                   hfd_require_text(reference, hfd_field_path(path, field, "nodePublishSecretRef"),
                                    "name", causes)) {
                hfd_subdomain_validate(hfd_text_of(reference, "name"),
                                       hfd_field_path(path, field, "name"), causes);
        }
}

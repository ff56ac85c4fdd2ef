/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The rules of volumes that show a pod what the API has (Secrets, ConfigMaps, fields of the pod,
 * claims), of images, and of directories of the node.
 *
 * Invariants: the texts of the causes and their order are those of kube-apiserver, because clients
 * show them and tests compare them. A path in a volume never leads out of it ("..").
 * projected_validation.c has the rules of projected volumes.
 */
#include <stdio.h>
#include <string.h>

#include "base/json.h"
#include "server/resources/strategies/pod/rules/volumes/volume_sources.h"
#include "server/resources/validation/meta_validation.h"
#include "server/resources/validation/names.h"
#include "server/resources/validation/resource_names.h"
#include "server/schema/values/quantity.h"

#define MODE_RULE "must be a number between 0 and 0777 (octal), both inclusive"
#define OF_BYTES                                                                                   \
        "only divisor's values 1, 1k, 1M, 1G, 1T, 1P, 1E, 1Ki, 1Mi, 1Gi, 1Ti, 1Pi, 1Ei are "       \
        "supported with the "

/* ---- paths ---- */

bool hfd_has_backsteps(const char *path) {
        for (const char *at = path; (at = strstr(at, "..")) != NULL; at += 2)
                if ((at == path || at[-1] == '/') && (at[2] == '\0' || at[2] == '/'))
                        return true;
        return false;
}

void hfd_no_backsteps_validate(const struct hf__json *source, const char *field, const char *member,
                               struct hfd_causes *causes) {
        char path[HFD_FIELD_PATH_MAX];

        if (hfd_has_backsteps(hfd_text_of(source, member)))
                hfd_cause_invalid_text(causes, hfd_field_path(path, field, member),
                                       hfd_text_of(source, member), "must not contain '..'");
}

void hfd_descending_path_validate(const struct hf__json *object, const char *field,
                                  const char *member, struct hfd_causes *causes) {
        const char *text = hfd_text_of(object, member);
        char path[HFD_FIELD_PATH_MAX];

        if (*text == '/')
                hfd_cause_invalid_text(causes, hfd_field_path(path, field, member), text,
                                       "must be a relative path");
        hfd_no_backsteps_validate(object, field, member, causes);
}

/* The last rule keeps names free that the kubelet uses itself, such as "..data". */
void hfd_local_path_validate(const struct hf__json *object, const char *field, const char *member,
                             struct hfd_causes *causes) {
        const char *text = hfd_text_of(object, member);
        char path[HFD_FIELD_PATH_MAX];

        hfd_descending_path_validate(object, field, member, causes);
        if (strncmp(text, "..", 2) == 0 && strncmp(text, "../", 3) != 0)
                hfd_cause_invalid_text(causes, hfd_field_path(path, field, member), text,
                                       "must not start with '..'");
}

/* The path of a file in a volume. */
static void validate_file_path(const struct hf__json *file, const char *field,
                               struct hfd_causes *causes) {
        if (hfd_require_text(file, field, "path", causes))
                hfd_local_path_validate(file, field, "path", causes);
}

/* The permissions of a file, or those of a volume's files that have none of their own. */
static void validate_mode(const struct hf__json *object, const char *field, const char *member,
                          struct hfd_causes *causes) {
        hfd_require_range(object, field, member, 0, 0777, MODE_RULE, causes);
}

void hfd_key_file_validate(const struct hf__json *item, const char *field,
                           struct hfd_causes *causes) {
        (void)hfd_require_text(item, field, "key", causes);
        validate_file_path(item, field, causes);
        validate_mode(item, field, "mode", causes);
}

/* The keys of a ConfigMap or Secret that become files. */
static void validate_keys(const struct hf__json *source, const char *field,
                          struct hfd_causes *causes) {
        char items[HFD_FIELD_PATH_MAX], path[HFD_FIELD_PATH_MAX];
        size_t i = 0;

        validate_mode(source, field, "defaultMode", causes);
        hfd_field_path(items, field, "items");
        for (const struct hf__json *m = hf__json_first(hf__json_get(source, "items")); m;
             m = hf__json_next(m))
                hfd_key_file_validate(m, hfd_field_index(path, items, i++), causes);
}

/* ---- fields of the pod ---- */

/* The bytes of the path before a subscript, `metadata.labels['KEY']`; 0 = it has none. */
static size_t length_before_subscript(const char *path) {
        size_t n = strlen(path);
        const char *bracket = strstr(path, "['");

        if (!bracket || n < 2 || strcmp(path + n - 2, "']") != 0 || bracket + 2 > path + n - 2)
                return 0;
        return (size_t)(bracket - path);
}

static bool is_map(const char *path, size_t n) {
        return (n == strlen("metadata.labels") && memcmp(path, "metadata.labels", n) == 0) ||
               (n == strlen("metadata.annotations") &&
                memcmp(path, "metadata.annotations", n) == 0);
}

/* The key of a single label or annotation, which is between the "['" after the n bytes of the path
 * and the "']" at its end. As in Kubernetes, capitals count as lower case in that of an annotation.
 * A key that is cut here is too long all the same. */
static void validate_subscript(const char *path, size_t n, const char *field,
                               struct hfd_causes *causes) {
        char key[2 * HFD_DNS_SUBDOMAIN_MAX];
        const char *from = path + n + 2;
        size_t n_key = strlen(from) - 2;
        bool of_labels = n == strlen("metadata.labels");

        (void)snprintf(key, sizeof key, "%.*s", (int)(n_key < sizeof key ? n_key : sizeof key - 1),
                       from);
        for (char *c = key; *c && !of_labels; c++)
                *c = *c >= 'A' && *c <= 'Z' ? (char)(*c + ('a' - 'A')) : *c;
        hfd_qualified_name_validate(key, field, causes);
}

/* Why Kubernetes' API has no such field of a pod; NULL = it has one. *ret_n: the length of the path
 * before its subscript; 0 = the path has no subscript. */
static const char *broken_path_rule(const char *version, const char *path, size_t *ret_n) {
        static const char *const known[] = {"metadata.annotations", "metadata.labels",
                                            "metadata.name",        "metadata.namespace",
                                            "metadata.uid",         "spec.host",
                                            "spec.nodeName",        "spec.restartPolicy",
                                            "spec.schedulerName",   "spec.serviceAccountName",
                                            "status.hostIP",        "status.hostIPs",
                                            "status.phase",         "status.podIP",
                                            "status.podIPs"};
        size_t i = 0;

        *ret_n = length_before_subscript(path);
        if (strcmp(version, "v1") != 0)
                return "unsupported pod version: ";
        if (*ret_n > 0)
                return is_map(path, *ret_n) ? NULL : "field label does not support subscript: ";
        while (i < sizeof known / sizeof known[0] && strcmp(path, known[i]) != 0)
                i++;
        return i < sizeof known / sizeof known[0] ? NULL : "field label not supported: ";
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
        const char *path = hfd_text_of(selector, "fieldPath"),
                   *version = hfd_text_of(selector, "apiVersion"), *rule;
        char member[HFD_FIELD_PATH_MAX], why[400];
        size_t n;

        if (!hfd_require_text(selector, field, "apiVersion", causes) ||
            !hfd_require_text(selector, field, "fieldPath", causes))
                return;
        hfd_field_path(member, field, "fieldPath");
        rule = broken_path_rule(version, path, &n);
        if (rule) {
                (void)snprintf(why, sizeof why, "error converting fieldPath: %s%.300s", rule,
                               strcmp(version, "v1") == 0 ? path : version);
                hfd_cause_invalid_text(causes, member, path, why);
        } else if (n > 0) {
                validate_subscript(path, n, field, causes);
        } else {
                /* As in Kubernetes, "spec.host" is the oldest name of spec.nodeName. */
                hfd_refuse_others(strcmp(path, "spec.host") == 0 ? "spec.nodeName" : path, member,
                                  of_volume ? of_volumes : of_variables, causes);
        }
}

/* ---- resources of containers ---- */

static bool begins_with(const char *text, const char *prefix) {
        return strncmp(text, prefix, strlen(prefix)) == 0;
}

static bool is_of_huge_pages(const char *resource) {
        return begins_with(resource, "limits.hugepages-") ||
               begins_with(resource, "requests.hugepages-");
}

/* Whether the text is "1", or "1" and a suffix: "1k", "1Mi". */
static bool is_unit_of_bytes(const char *text) {
        return *text == '1' && (!text[1] || (strchr("kMGTPE", text[1]) && !text[2]) ||
                                (strchr("KMGTPE", text[1]) && strcmp(text + 2, "i") == 0));
}

/* A resource that is not supported may have any divisor. As in Kubernetes, the cause shows the
 * resource, not its divisor. */
static void validate_divisor(const char *resource, const struct hf__json *divisor,
                             const char *field, struct hfd_causes *causes) {
        static const struct {
                const char *limit, *request, *rule;
                bool is_time; /* cpu: 1 or 1m */
        } units[] = {{"limits.cpu", "requests.cpu",
                      "only divisor's values 1m and 1 are supported with the cpu resource", true},
                     {"limits.memory", "requests.memory", OF_BYTES "memory resource"},
                     {"limits.ephemeral-storage", "requests.ephemeral-storage",
                      OF_BYTES "local ephemeral storage resource"}};
        const struct hfd_quantity amount = hfd_quantity_of_json(divisor);
        const char *rule = is_of_huge_pages(resource) ? OF_BYTES "hugepages resource" : NULL;
        char path[HFD_FIELD_PATH_MAX], text[HFD_QUANTITY_TEXT_MAX];
        bool is_time = false;

        if (hfd_quantity_is_zero(&amount))
                return;
        for (size_t i = 0; i < sizeof units / sizeof units[0]; i++)
                if (strcmp(resource, units[i].limit) == 0 ||
                    strcmp(resource, units[i].request) == 0) {
                        rule = units[i].rule;
                        is_time = units[i].is_time;
                }
        hfd_quantity_format(&amount, text);
        if (rule &&
            !(is_time ? strcmp(text, "1") == 0 || strcmp(text, "1m") == 0 : is_unit_of_bytes(text)))
                hfd_cause_invalid_text(causes, hfd_field_path(path, field, "divisor"), resource,
                                       rule);
}

void hfd_resource_field_selector_validate(const struct hf__json *selector, const char *field,
                                          bool of_volume, struct hfd_causes *causes) {
        static const char *const resources[] = {"limits.cpu",
                                                "limits.ephemeral-storage",
                                                "limits.memory",
                                                "requests.cpu",
                                                "requests.ephemeral-storage",
                                                "requests.memory",
                                                NULL};
        const char *resource = hfd_text_of(selector, "resource");
        char path[HFD_FIELD_PATH_MAX];

        if ((!of_volume || hfd_require_text(selector, field, "containerName", causes)) &&
            hfd_require_text(selector, field, "resource", causes) && !is_of_huge_pages(resource))
                hfd_refuse_others(resource, hfd_field_path(path, field, "resource"), resources,
                                  causes);
        validate_divisor(resource, hf__json_get(selector, "divisor"), field, causes);
}

/* ---- files of the downward API ---- */

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
                hfd_resource_field_selector_validate(of_resource,
                                                     hfd_field_path(member, field,
                                                                    "resourceFieldRef"),
                                                     true, causes);
        else
                hfd_cause_required(causes, field,
                                   "one of fieldRef and resourceFieldRef is required");
        if (of_field && of_resource)
                hfd_cause_invalid_text(causes, field, "resource",
                                       "fieldRef and resourceFieldRef can not be specified "
                                       "simultaneously");
        validate_mode(file, field, "mode", causes);
}

/* As in Kubernetes, the causes do not say which of the files is meant. */
void hfd_downward_source_validate(const struct hf__json *source, const char *field, bool persistent,
                                  struct hfd_causes *causes) {
        validate_mode(source, field, "defaultMode", causes);
        for (const struct hf__json *m = hf__json_first(hf__json_get(source, "items")); m;
             m = hf__json_next(m))
                hfd_downward_file_validate(m, field, causes);
}

/* ---- sources of the API ---- */

void hfd_secret_source_validate(const struct hf__json *source, const char *field, bool persistent,
                                struct hfd_causes *causes) {
        (void)hfd_require_text(source, field, "secretName", causes);
        validate_keys(source, field, causes);
}

void hfd_config_map_source_validate(const struct hf__json *source, const char *field,
                                    bool persistent, struct hfd_causes *causes) {
        (void)hfd_require_text(source, field, "name", causes);
        validate_keys(source, field, causes);
}

/* Whether a member of metadata is set, and not only there with the zero of its type. */
static bool is_set(const struct hf__json *value) {
        int64_t number;

        if (hf__json_is_string(value))
                return *hf__json_text(value);
        if (hf__json_integer(value, &number))
                return number != 0;
        return hf__json_first(value);
}

/* The claim gets its name from the pod and the volume, so that only labels and annotations make
 * sense here. The members have Kubernetes' order. */
static void validate_claim_meta(const struct hf__json *meta, const char *field,
                                struct hfd_causes *causes) {
        static const struct {
                const char *name, *shown;
                bool is_pointer; /* in Go, so that 0 is no absent value */
        } others[] = {{"name", "name"},
                      {"generateName", "generateName"},
                      {"namespace", "namespace"},
                      {"selfLink", "selfLink"},
                      {"uid", "uID"},
                      {"resourceVersion", "resourceVersion"},
                      {"generation", "generation"},
                      {"creationTimestamp", "creationTimestamp"},
                      {"deletionTimestamp", "deletionTimestamp"},
                      {"deletionGracePeriodSeconds", "deletionGracePeriodSeconds", true},
                      {"ownerReferences", "ownerReferences"},
                      {"finalizers", "finalizers"},
                      {"managedFields", "managedFields"}};
        char path[HFD_FIELD_PATH_MAX];

        hfd_annotations_validate(hf__json_get(meta, "annotations"),
                                 hfd_field_path(path, field, "annotations"), causes);
        hfd_labels_validate(hf__json_get(meta, "labels"), hfd_field_path(path, field, "labels"),
                            causes);
        for (size_t i = 0; i < sizeof others / sizeof others[0]; i++) {
                const struct hf__json *value = hf__json_get(meta, others[i].name);
                if (is_set(value) || (value && others[i].is_pointer))
                        hfd_cause_forbidden(causes, hfd_field_path(path, field, others[i].shown),
                                            "cannot be set");
        }
}

void hfd_ephemeral_source_validate(const struct hf__json *source, const char *field,
                                   bool persistent, struct hfd_causes *causes) {
        const struct hf__json *claim = hf__json_get(source, "volumeClaimTemplate");
        char path[HFD_FIELD_PATH_MAX], member[HFD_FIELD_PATH_MAX];

        hfd_field_path(path, field, "volumeClaimTemplate");
        if (!claim) {
                hfd_cause_required(causes, path, "");
                return;
        }
        validate_claim_meta(hf__json_get(claim, "metadata"),
                            hfd_field_path(member, path, "metadata"), causes);
        hfd_claim_spec_validate(hf__json_get(claim, "spec"), NULL,
                                hfd_field_path(member, path, "spec"), causes);
}

/* Templates may leave out the name of the image: hfd_pod_spec_validate. */
void hfd_image_source_validate(const struct hf__json *source, const char *field, bool persistent,
                               struct hfd_causes *causes) {
        static const char *const policies[] = {"Always", "IfNotPresent", "Never", NULL};

        hfd_require_one_of(source, field, "pullPolicy", policies, causes);
}

/* ---- directories of the node ---- */

void hfd_empty_dir_validate(const struct hf__json *source, const char *field, bool persistent,
                            struct hfd_causes *causes) {
        const struct hfd_quantity size = hfd_quantity_of_json(hf__json_get(source, "sizeLimit"));
        char path[HFD_FIELD_PATH_MAX];

        if (size.negative && !hfd_quantity_is_zero(&size))
                hfd_cause_forbidden(causes, hfd_field_path(path, field, "sizeLimit"),
                                    "SizeLimit field must be a valid resource quantity");
}

void hfd_host_path_validate(const struct hf__json *source, const char *field, bool persistent,
                            struct hfd_causes *causes) {
        static const char *const types[] =
                {"",     "BlockDevice",  "CharDevice", "Directory", "DirectoryOrCreate",
                 "File", "FileOrCreate", "Socket",     NULL};

        if (!hfd_require_text(source, field, "path", causes))
                return;
        hfd_no_backsteps_validate(source, field, "path", causes);
        hfd_require_one_of(source, field, "type", types, causes);
}

void hfd_local_source_validate(const struct hf__json *source, const char *field, bool persistent,
                               struct hfd_causes *causes) {
        if (hfd_require_text(source, field, "path", causes))
                hfd_no_backsteps_validate(source, field, "path", causes);
}

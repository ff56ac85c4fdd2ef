/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The rules of profiles of AppArmor, for pods and templates.
 *
 * Invariants: the texts of the causes and their order are those of kube-apiserver, because clients
 * show them and tests compare them. Containers and annotations are found by indexes: a client
 * chooses how many of them there are.
 */
#include <stdio.h>
#include <string.h>

#include "base/json.h"
#include "base/json_index.h"
#include "server/resources/strategies/pod/rules/pod_validation.h"
#include "server/resources/validation/names.h"

#define PROFILE_MAX 4095 /* bytes: those of a path on Linux */
#define LISTS       3    /* of containers */

static const char local_prefix[] = "localhost/";
static const char *const lists[LISTS] = {"initContainers", "containers", "ephemeralContainers"};

/* ---- what an annotation says ---- */

struct hfd_app_armor hfd_app_armor_of_annotation(const char *value) {
        struct hfd_app_armor none = {NULL, NULL};

        if (strcmp(value, "unconfined") == 0)
                return (struct hfd_app_armor){"Unconfined", NULL};
        if (strcmp(value, "runtime/default") == 0)
                return (struct hfd_app_armor){"RuntimeDefault", NULL};
        if (strncmp(value, local_prefix, sizeof local_prefix - 1) == 0)
                return (struct hfd_app_armor){"Localhost", value + sizeof local_prefix - 1};
        return none;
}

bool hfd_app_armor_is_key(const char *key) {
        static const char prefix[] = HFD_APP_ARMOR_PREFIX;

        return strncmp(key, prefix, sizeof prefix - 1) == 0;
}

bool hfd_app_armor_is_annotated(const struct hf__json *annotations) {
        for (const struct hf__json *m = hf__json_first(annotations); m; m = hf__json_next(m))
                if (hfd_app_armor_is_key(hf__json_key(m)))
                        return true;
        return false;
}

bool hfd_app_armor_is_in_use(const struct hf__json *annotations, const struct hf__json *spec) {
        return hfd_app_armor_is_annotated(annotations) &&
               !hf__json_has_text(spec, "os.name", "windows");
}

const char *hfd_app_armor_find(const struct hf__json_index *by_key,
                               const struct hf__json *container) {
        const char *name = hfd_text_of(container, "name");
        char key[sizeof HFD_APP_ARMOR_PREFIX + HFD_DNS_LABEL_MAX];

        if (strlen(name) > HFD_DNS_LABEL_MAX)
                return NULL; /* the pod will be refused */
        (void)snprintf(key, sizeof key, HFD_APP_ARMOR_PREFIX "%s", name);
        const struct hf__json_index_entry *entry = hf__json_index_find(by_key, key);
        return entry ? hf__json_text(entry->item) : NULL;
}

bool hfd_app_armor_is_profile(const char *profile) {
        return *profile && !hfd_is_padded(profile) && strlen(profile) <= PROFILE_MAX;
}

/* ---- fields ---- */

/* profile NULL: there is none. */
static void validate_profile(const char *profile, const char *field, struct hfd_causes *causes) {
        if (!profile || !*profile)
                hfd_cause_required(causes, field, "must be set when AppArmor type is Localhost");
        else if (hfd_is_padded(profile))
                hfd_cause_invalid_text(causes, field, profile,
                                       "must not be padded with whitespace");
        if (profile && strlen(profile) > PROFILE_MAX)
                hfd_cause_too_long(causes, field, "may not be more than 4095 bytes");
}

void hfd_app_armor_validate(const struct hf__json *context, const char *field,
                            struct hfd_causes *causes) {
        const struct hf__json *value = hf__json_get(context, "appArmorProfile");
        const char *type = hfd_text_of(value, "type"),
                   *profile = hf__json_string(value, "localhostProfile");
        char path[HFD_FIELD_PATH_MAX], of_type[HFD_FIELD_PATH_MAX], of_profile[HFD_FIELD_PATH_MAX];

        if (!value)
                return;
        hfd_field_path(path, field, "appArmorProfile");
        hfd_field_path(of_type, path, "type");
        hfd_field_path(of_profile, path, "localhostProfile");
        if (!*type)
                hfd_cause_required(causes, of_type, "type is required when appArmorProfile is set");
        else if (strcmp(type, "Localhost") == 0)
                validate_profile(profile, of_profile, causes);
        else if (strcmp(type, "RuntimeDefault") != 0 && strcmp(type, "Unconfined") != 0)
                hfd_cause_unsupported_text(causes, of_type, type,
                                           "\"Localhost\", \"RuntimeDefault\", \"Unconfined\"");
        else if (profile)
                hfd_cause_invalid_text(causes, of_profile, profile,
                                       "can only be set when AppArmor type is Localhost");
}

/* ---- annotations ---- */

static bool has_container(const struct hf__json_index names[LISTS], const char *name) {
        for (size_t i = 0; i < LISTS; i++)
                if (hf__json_index_find(&names[i], name))
                        return true;
        return false;
}

static void validate_annotation(const struct hf__json *annotation,
                                const struct hf__json_index names[LISTS], const char *field,
                                struct hfd_causes *causes) {
        const char *key = hf__json_key(annotation), *value = hf__json_text(annotation),
                   *name = key + sizeof HFD_APP_ARMOR_PREFIX - 1;
        char path[HFD_FIELD_PATH_MAX], quoted[300], why[340];

        (void)snprintf(path, sizeof path, "%s[%s]", field, key);
        if (!has_container(names, name))
                hfd_cause_invalid_text(causes, path, name, "container not found");
        if (!*value || hfd_app_armor_of_annotation(value).type)
                return;
        hfd_quote(value, quoted, sizeof quoted);
        (void)snprintf(why, sizeof why, "invalid AppArmor profile name: %s", quoted);
        hfd_cause_invalid_text(causes, path, value, why);
}

void hfd_app_armor_annotations_validate(const struct hf__json *annotations,
                                        const struct hf__json *spec, const char *field,
                                        struct hfd_causes *causes) {
        struct hf__json_index names[LISTS] = {0};
        bool is_indexed = true;

        if (!hfd_app_armor_is_annotated(annotations))
                return;
        for (size_t i = 0; i < LISTS && is_indexed; i++)
                is_indexed =
                        hfd_causes_check(causes,
                                         hf__json_index_init(&names[i],
                                                             hf__json_get(spec, lists[i]), "name"));
        for (const struct hf__json *m = hf__json_first(annotations); m && is_indexed;
             m = hf__json_next(m))
                if (hfd_app_armor_is_key(hf__json_key(m)))
                        validate_annotation(m, names, field, causes);
        for (size_t i = 0; i < LISTS; i++)
                hf__json_index_done(&names[i]);
}

/* ---- whether annotations and fields agree ---- */

/* field: the path of the container. of_pod: the profile of the pod; NULL: there is none. A profile
 * that is absent, or of an unknown type (which has got its own cause), is not compared. */
static void compare_profile(const struct hf__json *container, const char *annotation,
                            const struct hf__json *of_pod, const char *field,
                            struct hfd_causes *causes) {
        static const char *const types[] = {"Localhost", "RuntimeDefault", "Unconfined"};
        const struct hf__json *own = hf__json_path(container, "securityContext.appArmorProfile"),
                              *value = own ? own : of_pod;
        struct hfd_app_armor profile = hfd_app_armor_of_annotation(annotation);
        const char *type = hfd_text_of(value, "type"),
                   *name = hf__json_string(value, "localhostProfile");
        char path[HFD_FIELD_PATH_MAX];
        bool is_type = false;

        for (size_t i = 0; i < sizeof types / sizeof types[0]; i++)
                is_type = is_type || strcmp(type, types[i]) == 0;
        if (!is_type)
                return;
        if (!profile.type || strcmp(type, profile.type) != 0)
                hfd_cause_forbidden(causes,
                                    hfd_field_path(path, field,
                                                   "securityContext.appArmorProfile.type"),
                                    "apparmor type in annotation and field must match");
        else if (profile.profile && (!name || strcmp(profile.profile, name) != 0))
                hfd_cause_forbidden(causes,
                                    hfd_field_path(path, field,
                                                   "securityContext.appArmorProfile."
                                                   "localhostProfile"),
                                    "apparmor profile in annotation and field must match");
}

void hfd_app_armor_match_validate(const struct hf__json *annotations, const struct hf__json *spec,
                                  const char *field, struct hfd_causes *causes) {
        const struct hf__json *of_pod = hf__json_path(spec, "securityContext.appArmorProfile");
        char list[HFD_FIELD_PATH_MAX], path[HFD_FIELD_PATH_MAX];
        struct hf__json_index by_key;

        if (!hfd_app_armor_is_in_use(annotations, spec) ||
            !hfd_causes_check(causes, hf__json_index_init(&by_key, annotations, NULL)))
                return;
        for (size_t i = 0; i < LISTS; i++) {
                size_t at = 0;
                hfd_field_path(list, field, lists[i]);
                for (const struct hf__json *m = hf__json_first(hf__json_get(spec, lists[i])); m;
                     m = hf__json_next(m)) {
                        const char *annotation = hfd_app_armor_find(&by_key, m);
                        hfd_field_index(path, list, at++);
                        if (annotation)
                                compare_profile(m, annotation, of_pod, path, causes);
                }
        }
        hf__json_index_done(&by_key);
}

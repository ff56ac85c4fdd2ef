/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The rules of profiles of AppArmor, for pods and templates.
 *
 * Invariants: the texts of the causes and their order are those of kube-apiserver, because clients
 * show them and tests compare them. Containers are found by indexes: a client chooses how many
 * annotations and containers there are.
 */
#include <stdio.h>
#include <string.h>

#include "base/json.h"
#include "base/json_index.h"
#include "server/resources/strategies/pod/rules/pod_validation.h"

#define PROFILE_MAX 4095 /* bytes: those of a path on Linux */

static const char local_prefix[] = "localhost/";

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

#define LISTS 3 /* of containers */

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
        static const char *const lists[LISTS] = {"containers", "initContainers",
                                                 "ephemeralContainers"};
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

/* SPDX-License-Identifier: Apache-2.0 */
/* Namespaces, configmaps, service accounts, events and workspaces: little more than the types of
 * their parts. */
#include <ctype.h>
#include <errno.h>
#include <stdio.h>
#include <string.h>

#include "base/base64.h"
#include "base/json.h"
#include "server/resources/meta.h"
#include "server/resources/resource.h"
#include "server/resources/response.h"

#define CONFIGMAP_MAX (1u << 20)

static bool other_type(const char *kind, const char *key, const char *type, char *reason,
                       size_t max_reason) {
        (void)snprintf(reason, max_reason,
                       "json: cannot unmarshal into Go struct field %s.%s of type %s", kind, key,
                       type);
        return false;
}

/* Removes a part that is null. Whether there is one. */
static struct hf__json *part_of(struct hf__json *object, const char *key) {
        struct hf__json *value = hf__json_get(object, key);

        if (!value || !hf__json_is_null(value))
                return value;
        hf__json_drop(object, key);
        return NULL;
}

bool hfd_part_is_object(struct hf__json *object, const char *key, const char *kind, char *reason,
                        size_t max_reason) {
        const struct hf__json *value = part_of(object, key);

        return !value || hf__json_is_object(value) ||
               other_type(kind, key, "object", reason, max_reason);
}

bool hfd_part_is_array(struct hf__json *object, const char *key, bool of_objects, const char *kind,
                       char *reason, size_t max_reason) {
        const struct hf__json *value = part_of(object, key);

        if (!value)
                return true;
        if (!hf__json_is_array(value))
                return other_type(kind, key, "array", reason, max_reason);
        for (const struct hf__json *m = hf__json_first(value); m; m = hf__json_next(m))
                if (of_objects ? !hf__json_is_object(m) : !hf__json_is_string(m))
                        return other_type(kind, key, of_objects ? "array of objects" : "[]string",
                                          reason, max_reason);
        return true;
}

bool hfd_part_is_map(struct hf__json *object, const char *key, const char *kind, char *reason,
                     size_t max_reason) {
        if (!hfd_part_is_object(object, key, kind, reason, max_reason))
                return false;
        for (struct hf__json *m = hf__json_first(hf__json_get(object, key)); m;
             m = hf__json_next(m))
                if (!hf__json_is_string(m))
                        return other_type(kind, key, "string", reason, max_reason);
        return true;
}

bool hfd_namespace_decode(struct hf__json *object, char *reason, size_t max_reason) {
        return hfd_part_is_object(object, "spec", "Namespace", reason, max_reason) &&
               hfd_part_is_object(object, "status", "Namespace", reason, max_reason) &&
               hfd_part_is_array(hf__json_get(object, "spec"), "finalizers", false, "NamespaceSpec",
                                 reason, max_reason);
}

static bool has_text(const struct hf__json *list, const char *text) {
        for (const struct hf__json *m = hf__json_first(list); m; m = hf__json_next(m))
                if (hf__json_is_string(m) && strcmp(hf__json_text(m), text) == 0)
                        return true;
        return false;
}

/* The finalizer by which whoever empties a namespace holds it. */
static int add_kubernetes(struct hf__json *object) {
        struct hf__json *list = hf__json_path(object, "spec.finalizers");
        int r = 0;

        if (!hf__json_is_array(list)) {
                if (!hf__json_is_object(hf__json_get(object, "spec")))
                        r = hf__json_set(object, "spec", hf__json_object());
                if (r == 0)
                        r = hf__json_set(object, "spec.finalizers", hf__json_array());
                list = hf__json_path(object, "spec.finalizers");
        }
        return r != 0 || has_text(list, "kubernetes") ? r
                                                      : hf__json_append_string(list, "kubernetes");
}

/* A namespace carries its name as a label. A new one is Active, and held until somebody has emptied
 * it. */
int hfd_namespace_prepare(struct hf__json *object, const struct hf__json *old) {
        const char *name = hf__json_string(object, "metadata.name");
        struct hf__json *labels = hf__json_path(object, "metadata.labels");
        int r = 0;

        if (!hf__json_is_object(labels)) {
                r = hf__json_set(object, "metadata.labels", hf__json_object());
                labels = hf__json_path(object, "metadata.labels");
        }
        if (r == 0 && name)
                r = hf__json_put_string(labels, "kubernetes.io/metadata.name", name);
        if (r == 0 && !old)
                r = add_kubernetes(object);
        if (r == 0 && !old)
                r = hf__json_set(object, "status", hf__json_object());
        if (r == 0 && !hf__json_string(object, "status.phase"))
                r = hf__json_set_string(object, "status.phase", "Active");
        return r;
}

void hfd_namespace_validate(const struct hf__json *object, const struct hf__json *old,
                            struct hfd_causes *causes) {
        size_t i = 0;

        for (const struct hf__json *m = hf__json_first(hf__json_path(object, "spec.finalizers")); m;
             m = hf__json_next(m), i++) {
                const char *text = hf__json_is_string(m) ? hf__json_text(m) : "";
                bool standard = strcmp(text, "kubernetes") == 0 || strcmp(text, "orphan") == 0 ||
                                strcmp(text, "foregroundDeletion") == 0;
                if (standard || (strchr(text, '/') && hfd_is_qualified_name(text)))
                        continue;
                char field[64], quoted[300];
                (void)snprintf(field, sizeof field, "spec.finalizers[%zu]", i);
                hfd_quote(text, quoted, sizeof quoted);
                hfd_cause_invalid(causes, field, quoted,
                                  "name is neither a standard finalizer name nor is it fully "
                                  "qualified");
        }
}

bool hfd_configmap_decode(struct hf__json *object, char *reason, size_t max_reason) {
        return hfd_part_is_map(object, "data", "ConfigMap", reason, max_reason) &&
               hfd_part_is_map(object, "binaryData", "ConfigMap", reason, max_reason);
}

bool hfd_is_config_key(const char *key) {
        size_t n = strlen(key);

        for (const char *c = key; *c; c++)
                if (!isalnum((unsigned char)*c) && !strchr("-_.", *c))
                        return false;
        return n && n <= 253 && strcmp(key, ".") != 0 && strncmp(key, "..", 2) != 0;
}

void hfd_validate_data_keys(const struct hf__json *object, const char *key,
                            struct hfd_causes *causes) {
        for (struct hf__json *m = hf__json_first(hf__json_get(object, key)); m;
             m = hf__json_next(m)) {
                char field[128], quoted[300];
                if (hfd_is_config_key(hf__json_key(m)))
                        continue;
                (void)snprintf(field, sizeof field, "%s[%.100s]", key, hf__json_key(m));
                hfd_quote(hf__json_key(m), quoted, sizeof quoted);
                hfd_cause_invalid(causes, field, quoted,
                                  "a valid config key must consist of alphanumeric characters, "
                                  "'-', '_' or '.' (e.g. 'key.name',  or "
                                  "'KEY_NAME',  or 'key-name', regex used for validation is "
                                  "'[-._a-zA-Z0-9]+')");
        }
}

void hfd_validate_immutable(const struct hf__json *object, const struct hf__json *old,
                            const char *const *parts, size_t n_parts, struct hfd_causes *causes) {
        if (!old || !hf__json_bool(old, "immutable", false))
                return;
        if (!hf__json_bool(object, "immutable", false))
                hfd_cause_forbidden(causes, "immutable",
                                    "field is immutable when `immutable` is set");
        for (size_t i = 0; i < n_parts; i++) {
                const struct hf__json *a = hf__json_get(object, parts[i]),
                                      *b = hf__json_get(old, parts[i]);
                if ((a || b) && !(a && b && hf__json_equal(a, b)))
                        hfd_cause_forbidden(causes, parts[i],
                                            "field is immutable when `immutable` is set");
        }
}

void hfd_configmap_validate(const struct hf__json *object, const struct hf__json *old,
                            struct hfd_causes *causes) {
        static const char *const parts[] = {"data", "binaryData"};
        size_t total = 0;

        for (size_t i = 0; i < 2; i++) {
                hfd_validate_data_keys(object, parts[i], causes);
                for (struct hf__json *m = hf__json_first(hf__json_get(object, parts[i])); m;
                     m = hf__json_next(m)) {
                        size_t n = strlen(hf__json_text(m));
                        if (i == 1)
                                (void)hf__base64_check(hf__json_text(m),
                                                       &n); /* bytes count as they are, not as they
                                                               are written */
                        total += n;
                }
        }
        if (total > CONFIGMAP_MAX)
                hfd_cause_too_long(causes, "data", "must have at most 1048576 bytes");
        hfd_validate_immutable(object, old, parts, 2, causes);
}

bool hfd_event_decode(struct hf__json *object, char *reason, size_t max_reason) {
        return hfd_part_is_object(object, "involvedObject", "Event", reason, max_reason) &&
               hfd_part_is_object(object, "source", "Event", reason, max_reason);
}

bool hfd_workspace_decode(struct hf__json *object, char *reason, size_t max_reason) {
        return hfd_part_is_object(object, "spec", "Workspace", reason, max_reason) &&
               hfd_part_is_object(object, "status", "Workspace", reason, max_reason);
}

bool hfd_service_account_decode(struct hf__json *object, char *reason, size_t max_reason) {
        const struct hf__json *automount = part_of(object, "automountServiceAccountToken");

        if (automount && !hf__json_is_bool(automount))
                return other_type("ServiceAccount", "automountServiceAccountToken", "bool", reason,
                                  max_reason);
        return hfd_part_is_array(object, "secrets", true, "ServiceAccount", reason, max_reason) &&
               hfd_part_is_array(object, "imagePullSecrets", true, "ServiceAccount", reason,
                                 max_reason);
}

/* A new workspace is held from the beginning, so that none is gone before what was made for it. */
int hfd_workspace_prepare(struct hf__json *object, const struct hf__json *old) {
        static const char held[] = "tenancy.holdfast.dev/workspace";
        struct hf__json *list = hf__json_path(object, "metadata.finalizers");

        if (old)
                return 0;
        for (const struct hf__json *m = hf__json_first(list); m; m = hf__json_next(m))
                if (hf__json_is_string(m) && strcmp(hf__json_text(m), held) == 0)
                        return 0;
        if (!hf__json_is_array(list)) {
                int r = hf__json_set(object, "metadata.finalizers", hf__json_array());
                if (r != 0)
                        return r;
                list = hf__json_path(object, "metadata.finalizers");
        }
        return hf__json_append_string(list, held);
}

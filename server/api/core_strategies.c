/* SPDX-License-Identifier: Apache-2.0 */
/* Namespaces, configmaps, events and workspaces: little more than the types of their parts. */
#include <ctype.h>
#include <errno.h>
#include <stdio.h>
#include <string.h>

#include "base/json.h"
#include "server/api/answer.h"
#include "server/api/meta.h"
#include "server/api/resource.h"

#define CONFIGMAP_MAX (1u << 20)

static bool object_or_null(struct hf__json *object, const char *key, const char *kind, char *reason, size_t max_reason) {
        const struct hf__json *value = hf__json_get(object, key);

        if (value && hf__json_is_null(value)) {
                hf__json_remove(object, key);
                return true;
        }
        if (!value || hf__json_is_object(value))
                return true;
        (void)snprintf(reason, max_reason, "json: cannot unmarshal into Go struct field %s.%s of type object", kind, key);
        return false;
}

bool hfd_namespace_decode(struct hf__json *object, char *reason, size_t max_reason) {
        const struct hf__json *finalizers = hf__json_path(object, "spec.finalizers");

        if (!object_or_null(object, "spec", "Namespace", reason, max_reason) ||
            !object_or_null(object, "status", "Namespace", reason, max_reason))
                return false;
        if (finalizers && !hf__json_is_null(finalizers) && !hf__json_is_array(finalizers)) {
                (void)snprintf(reason, max_reason,
                               "json: cannot unmarshal into Go struct field NamespaceSpec.spec.finalizers of type []string");
                return false;
        }
        return true;
}

static bool has_text(const struct hf__json *list, const char *text) {
        for (const struct hf__json *m = hf__json_first(list); m; m = hf__json_next(m))
                if (hf__json_is_string(m) && !strcmp(hf__json_text(m), text))
                        return true;
        return false;
}

/* The finalizer by which whoever empties a namespace holds it. */
static int add_kubernetes(struct hf__json *object) {
        struct hf__json *list = hf__json_path(object, "spec.finalizers");
        int e = 0;

        if (!hf__json_is_array(list)) {
                if (!hf__json_is_object(hf__json_get(object, "spec")))
                        e = hf__json_set(object, "spec", hf__json_object());
                if (!e)
                        e = hf__json_set(object, "spec.finalizers", hf__json_array());
                list = hf__json_path(object, "spec.finalizers");
        }
        return e || has_text(list, "kubernetes") ? e : hf__json_append_string(list, "kubernetes");
}

/* A namespace carries its name as a label. A new one is Active, and held until somebody has emptied it. */
int hfd_namespace_prepare(struct hf__json *object, const struct hf__json *old) {
        const char *name = hf__json_string(object, "metadata.name");
        struct hf__json *labels = hf__json_path(object, "metadata.labels");
        int e = 0;

        if (!hf__json_is_object(labels)) {
                e = hf__json_set(object, "metadata.labels", hf__json_object());
                labels = hf__json_path(object, "metadata.labels");
        }
        if (!e && name)
                e = hf__json_set_key(labels, "kubernetes.io/metadata.name", name);
        if (!e && !old)
                e = add_kubernetes(object);
        if (!e && !old)
                e = hf__json_set(object, "status", hf__json_object());
        if (!e && !hf__json_string(object, "status.phase"))
                e = hf__json_set_string(object, "status.phase", "Active");
        return e;
}

void hfd_namespace_validate(const struct hf__json *object, const struct hf__json *old, struct hfd_causes *causes) {
        size_t i = 0;

        for (const struct hf__json *m = hf__json_first(hf__json_path(object, "spec.finalizers")); m; m = hf__json_next(m), i++) {
                const char *text = hf__json_is_string(m) ? hf__json_text(m) : "";
                bool standard = !strcmp(text, "kubernetes") || !strcmp(text, "orphan") || !strcmp(text, "foregroundDeletion");
                if (standard || (strchr(text, '/') && hfd_is_qualified_name(text)))
                        continue;
                char field[64], quoted[300];
                (void)snprintf(field, sizeof field, "spec.finalizers[%zu]", i);
                hfd_quote(text, quoted, sizeof quoted);
                hfd_cause_invalid(causes, field, quoted, "name is neither a standard finalizer name nor is it fully qualified");
        }
}

bool hfd_configmap_decode(struct hf__json *object, char *reason, size_t max_reason) {
        static const char *const parts[] = {"data", "binaryData"};

        for (size_t i = 0; i < 2; i++) {
                if (!object_or_null(object, parts[i], "ConfigMap", reason, max_reason))
                        return false;
                for (struct hf__json *m = hf__json_first(hf__json_get(object, parts[i])); m; m = hf__json_next(m))
                        if (!hf__json_is_string(m)) {
                                (void)snprintf(reason, max_reason,
                                               "json: cannot unmarshal into Go struct field ConfigMap.%s of type string", parts[i]);
                                return false;
                        }
        }
        return true;
}

static bool is_config_key(const char *key) {
        size_t n = strlen(key);

        for (const char *c = key; *c; c++)
                if (!isalnum((unsigned char)*c) && !strchr("-_.", *c))
                        return false;
        return n && n <= 253 && strcmp(key, ".") && strncmp(key, "..", 2);
}

void hfd_configmap_validate(const struct hf__json *object, const struct hf__json *old, struct hfd_causes *causes) {
        static const char *const parts[] = {"data", "binaryData"};
        size_t total = 0;

        for (size_t i = 0; i < 2; i++)
                for (struct hf__json *m = hf__json_first(hf__json_get(object, parts[i])); m; m = hf__json_next(m)) {
                        char field[128], quoted[300];
                        total += strlen(hf__json_text(m));
                        if (is_config_key(hf__json_key(m)))
                                continue;
                        (void)snprintf(field, sizeof field, "%s[%.100s]", parts[i], hf__json_key(m));
                        hfd_quote(hf__json_key(m), quoted, sizeof quoted);
                        hfd_cause_invalid(causes, field, quoted,
                                          "a valid config key must consist of alphanumeric characters, '-', '_' or '.' (e.g. 'key.name',  "
                                          "or "
                                          "'KEY_NAME',  or 'key-name', regex used for validation is '[-._a-zA-Z0-9]+')");
                }
        if (total > CONFIGMAP_MAX)
                hfd_cause_invalid(causes, "data", "\"\"", "Too long: must have at most 1048576 bytes");
        if (!old || !hf__json_bool(old, "immutable", false))
                return;
        if (!hf__json_bool(object, "immutable", false))
                hfd_cause_forbidden(causes, "immutable", "field is immutable when `immutable` is set");
        for (size_t i = 0; i < 2; i++) {
                const struct hf__json *a = hf__json_get(object, parts[i]), *b = hf__json_get(old, parts[i]);
                if ((a || b) && !(a && b && hf__json_equal(a, b)))
                        hfd_cause_forbidden(causes, parts[i], "field is immutable when `immutable` is set");
        }
}

bool hfd_event_decode(struct hf__json *object, char *reason, size_t max_reason) {
        return object_or_null(object, "involvedObject", "Event", reason, max_reason) &&
               object_or_null(object, "source", "Event", reason, max_reason);
}

bool hfd_workspace_decode(struct hf__json *object, char *reason, size_t max_reason) {
        return object_or_null(object, "spec", "Workspace", reason, max_reason) &&
               object_or_null(object, "status", "Workspace", reason, max_reason);
}

/* A new workspace is held from the beginning, so that none is gone before what was made for it. */
int hfd_workspace_prepare(struct hf__json *object, const struct hf__json *old) {
        static const char held[] = "tenancy.holdfast.dev/workspace";
        struct hf__json *list = hf__json_path(object, "metadata.finalizers");

        if (old)
                return 0;
        for (const struct hf__json *m = hf__json_first(list); m; m = hf__json_next(m))
                if (hf__json_is_string(m) && !strcmp(hf__json_text(m), held))
                        return 0;
        if (!hf__json_is_array(list)) {
                int e = hf__json_set(object, "metadata.finalizers", hf__json_array());
                if (e)
                        return e;
                list = hf__json_path(object, "metadata.finalizers");
        }
        return hf__json_append_string(list, held);
}

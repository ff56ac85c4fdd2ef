/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Namespaces. Every new Namespace gets the finalizer "kubernetes" in spec.finalizers, so that a
 * deleted one remains until the namespace controller has removed its contents. The value of the
 * label kubernetes.io/metadata.name is always the Namespace's name, because selectors of clients
 * rely on it.
 */
#include <stdio.h>
#include <string.h>

#include "base/json.h"
#include "server/resources/causes.h"
#include "server/resources/names.h"
#include "server/resources/parts.h"
#include "server/resources/strategies/strategies.h"

bool hfd_namespace_decode(struct hf__json *object, char *reason, size_t max_reason) {
        return hfd_part_is_object(object, "spec", "Namespace", reason, max_reason) &&
               hfd_part_is_object(object, "status", "Namespace", reason, max_reason) &&
               hfd_part_is_array(hf__json_get(object, "spec"), "finalizers", false, "NamespaceSpec",
                                 reason, max_reason);
}

/* Adds the finalizer unless the object has it already. */
static int add_finalizer(struct hf__json *object) {
        struct hf__json *list = hf__json_path(object, "spec.finalizers");
        int r = 0;

        if (!hf__json_is_array(list)) {
                if (!hf__json_is_object(hf__json_get(object, "spec")))
                        r = hf__json_set(object, "spec", hf__json_object());
                if (r == 0)
                        r = hf__json_set(object, "spec.finalizers", hf__json_array());
                list = hf__json_path(object, "spec.finalizers");
        }
        if (r != 0 || hfd_part_list_has(list, "kubernetes"))
                return r;
        return hf__json_append_string(list, "kubernetes");
}

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
                r = add_finalizer(object);
        /* A client must not create a Namespace that is already Terminating. */
        if (r == 0 && !old)
                r = hf__json_set(object, "status", hf__json_object());
        if (r == 0 && !hf__json_string(object, "status.phase"))
                r = hf__json_set_string(object, "status.phase", "Active");
        return r;
}

static bool is_standard_finalizer(const char *name) {
        return strcmp(name, "kubernetes") == 0 || strcmp(name, "orphan") == 0 ||
               strcmp(name, "foregroundDeletion") == 0;
}

void hfd_namespace_validate(const struct hf__json *object, const struct hf__json *old,
                            struct hfd_causes *causes) {
        size_t i = 0;

        for (const struct hf__json *m = hf__json_first(hf__json_path(object, "spec.finalizers")); m;
             m = hf__json_next(m), i++) {
                const char *name = hf__json_is_string(m) ? hf__json_text(m) : "";
                char field[64];
                if (is_standard_finalizer(name) ||
                    (strchr(name, '/') && hfd_is_qualified_name(name)))
                        continue;
                (void)snprintf(field, sizeof field, "spec.finalizers[%zu]", i);
                hfd_cause_invalid_text(causes, field, name,
                                       "name is neither a standard finalizer name nor is it fully "
                                       "qualified");
        }
}

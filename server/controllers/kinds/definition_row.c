/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The part of a CustomResourceDefinition that the controllers use.
 *
 * Invariant: a definition that has been reduced gives the same row as before.
 */
#include "server/controllers/kinds/definition_row.h"

#include <errno.h>
#include <string.h>

#include "base/buf.h"
#include "base/json.h"
#include "base/strbuf.h"
#include "server/controllers/kinds/definition_core.h"

/* ---- the row ---- */

static const char *find_version(const struct hf__json *definition) {
        const struct hf__json *m = hf__json_first(hf__json_path(definition, "spec.versions"));

        while (m && !hf__json_bool(m, "storage", false))
                m = hf__json_next(m);
        return hf__json_string(m, "name");
}

bool hfd_definition_row(const struct hf__json *definition, struct hfd_kind_row *ret_row) {
        const struct hf__json *names = hf__json_path(definition, "status.acceptedNames");
        const char *group = hf__json_string(definition, "spec.group"),
                   *version = find_version(definition), *plural = hf__json_string(names, "plural"),
                   *kind = hf__json_string(names, "kind");

        if (!hfd_definition_is(definition, "Established") || !group || !*group || !version ||
            !*version || !plural || !*plural || !kind || !*kind)
                return false;
        *ret_row = (struct hfd_kind_row){.resource = {.group = group,
                                                      .version = version,
                                                      .plural = plural},
                                         .kind = kind,
                                         .namespaced = hf__json_has_text(definition, "spec.scope",
                                                                         "Namespaced")};
        return true;
}

/* ---- the reduced definition ---- */

/* Removes all members of the object except those of the NULL-terminated list. */
static void keep_members(struct hf__json *object, const char *const *keys) {
        struct hf__json *next = hf__json_first(object);

        while (next) {
                struct hf__json *m = next;
                const char *const *key = keys;
                next = hf__json_next(m);
                while (*key && strcmp(*key, hf__json_key(m)) != 0)
                        key++;
                if (!*key)
                        hf__json_free(hf__json_detach(object, m));
        }
}

static void reduce_definition(struct hf__json *definition) {
        static const char *const of_spec[] = {"group",    "names", "scope", "preserveUnknownFields",
                                              "versions", NULL},
                                 *const of_version[] = {"name", "served", "storage", NULL};
        struct hf__json *spec = hf__json_get(definition, "spec"),
                        *annotations = hf__json_path(definition, "metadata.annotations");

        hf__json_remove(definition, "metadata.managedFields");
        if (hf__json_is_object(annotations))
                hf__json_drop(annotations, "kubectl.kubernetes.io/last-applied-configuration");
        if (!hf__json_is_object(spec))
                return;
        keep_members(spec, of_spec);
        for (struct hf__json *m = hf__json_first(hf__json_get(spec, "versions")); m;
             m = hf__json_next(m))
                if (hf__json_is_object(m))
                        keep_members(m, of_version);
}

int hfd_definition_reduce(const char *object, size_t n, struct hf__buf **ret_object) {
        struct hf__strbuf out = {0};
        struct hf__json *definition;
        int r = hf__json_parse(object, n, &definition, NULL);

        if (r != 0)
                return r == -ENOMEM ? r : -EPROTO;
        if (hf__json_is_object(definition))
                reduce_definition(definition);
        hf__json_print(definition, &out);
        hf__json_free(definition);
        *ret_object = hf__strbuf_to_buf(&out);
        hf__strbuf_done(&out);
        return *ret_object ? 0 : -ENOMEM;
}

/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Writes of custom resources. Invariants:
 *
 *  - The rules of the schema (x-kubernetes-validations) are checked last, and get the causes so
 *    far: they may rely on the types and the members that the schema requires, and so are not
 *    evaluated if one of these is wrong.
 *  - After a definition is marked as deleted, none of its objects is created any more, not even by
 *    an instance that does not know of the mark yet. The transaction that creates an object
 *    compares the revision of the definition, which had no mark at that revision. So the
 *    controller that deletes the objects of a definition misses none, as namespace.c describes it
 *    for namespaces.
 */
#include "server/registry/write/checks/custom.h"

#include <errno.h>
#include <inttypes.h>
#include <stdio.h>
#include <string.h>

#include "base/json.h"
#include "server/registry/write/reply.h"
#include "server/registry/write/write.h"
#include "server/resources/custom/custom_kind.h"
#include "server/resources/custom/rules/custom_rules.h"
#include "server/resources/custom/schema/custom_schema.h"
#include "server/resources/objects/object_key.h"
#include "server/resources/rows/resource_table.h"
#include "server/storage/store.h"

/* ---- the definition of a new object ---- */

bool hfd_write_custom_refuse_create(struct hfd_write *w) {
        const struct hfd_custom_version *version = w->request->resource->custom;
        struct hfd_response response = {0};

        if (!version)
                return false;
        /* Read the revision before the mark, so that the mark is not older than the revision. */
        if (w->definition_revision == 0)
                w->definition_revision = atomic_load(&version->kind->revision);
        if (w->definition_gone)
                hfd_response_no_such_resource(&response);
        else if (w->definition_terminating || atomic_load(&version->kind->terminating))
                hfd_response_status(&response, HF_E_INVALID, 405, "MethodNotAllowed",
                                    "create not allowed while custom resource definition is "
                                    "terminating",
                                    NULL);
        else
                return false;
        hfd_write_reply(w, &response);
        return true;
}

bool hfd_write_custom_compare(struct hfd_write *w, char key[HFD_KEY_MAX],
                              struct hfd_compare *ret_compare) {
        const struct hfd_resource *resource = w->request->resource, *definitions;
        char name[HFD_QUALIFIED_MAX];

        if (!w->created || !resource->custom)
                return false;
        definitions = hfd_resource_find("apiextensions.k8s.io", "v1", "customresourcedefinitions");
        hfd_resource_qualified(resource, name);
        if (!definitions || hfd_object_key(w->registry->prefix, definitions, name, key) != 0)
                return false;
        *ret_compare = (struct hfd_compare){.kind = HFD_MOD_EQUALS,
                                            .key = key,
                                            .revision = w->definition_revision};
        return true;
}

static bool read_definition(struct hfd_write *w, const struct hfd_kv *kv) {
        struct hf__json *definition = NULL;

        if (!kv->value || hf__json_parse(kv->value->data, kv->value->n, &definition, NULL) != 0)
                return false;
        w->definition_revision = kv->mod_revision;
        w->definition_terminating = hf__json_string(definition, "metadata.deletionTimestamp");
        hf__json_free(definition);
        return true;
}

const struct hfd_kv *hfd_write_custom_update(struct hfd_write *w, const struct hfd_kv *kvs,
                                             size_t n) {
        struct hfd_compare compare;
        char key[HFD_KEY_MAX];

        if (!hfd_write_custom_compare(w, key, &compare))
                return NULL;
        for (size_t i = 0; i < n; i++)
                if (strcmp(kvs[i].key, key) == 0)
                        return read_definition(w, &kvs[i]) ? NULL : &kvs[i];
        w->definition_gone = true;
        return NULL;
}

/* ---- the object ---- */

bool hfd_write_custom_prepare(struct hfd_write *w) {
        const struct hfd_custom_version *version = w->request->resource->custom;
        struct hfd_response response = {0};

        if (!version)
                return true;
        int r = hfd_custom_schema_default(version->schema, w->object);
        if (r == 0)
                return true;
        if (r == HF_E_TOO_LARGE)
                hfd_response_status(&response, r, 413, "RequestEntityTooLarge",
                                    "Request entity too large: the defaults add too much", NULL);
        else
                hfd_response_no_memory(&response);
        hfd_write_reply(w, &response);
        return false;
}

/* Adds a cause if the number at the path is negative, or too large for a number of replicas. */
static void validate_replicas(const struct hf__json *object, const char *path,
                              struct hfd_causes *causes) {
        int64_t replicas = 0;
        char field[160], text[24];

        (void)hf__json_i64(object, path, &replicas);
        (void)snprintf(field, sizeof field, ".%s", path);
        (void)snprintf(text, sizeof text, "%" PRId64, replicas);
        if (replicas < 0)
                hfd_cause_invalid(causes, field, text, "should be a non-negative integer");
        else if (replicas > INT32_MAX)
                hfd_cause_invalid(causes, field, text,
                                  "should be less than or equal to 2147483647");
}

static void validate_scale(const struct hfd_scale_paths *paths, const struct hf__json *object,
                           struct hfd_causes *causes) {
        if (!paths)
                return;
        validate_replicas(object, paths->replicas, causes);
        validate_replicas(object, paths->current_replicas, causes);
}

int hfd_write_custom_validate(struct hfd_write *w, const struct hf__json *old,
                              struct hfd_causes *causes) {
        const struct hfd_custom_version *version = w->request->resource->custom;

        if (!version)
                return 0;
        hfd_custom_schema_validate(version->schema, w->object, old, causes);
        validate_scale(version->row.scale, w->object, causes);
        return version->rules ? hfd_custom_rules_check(version->rules, w->object, old, causes) : 0;
}

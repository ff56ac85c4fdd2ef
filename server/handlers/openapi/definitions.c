/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Collects the definitions of the schemas that a document refers to.
 *
 * Invariant: a schema that has been added is not walked again. So the recursion ends, because a
 * schema contains itself only below a STRUCT with a definition (schema/schema.h).
 */
#include "server/handlers/openapi/definitions.h"

#include <assert.h>
#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "base/strbuf.h"
#include "server/handlers/documents/discovery.h"
#include "server/schema/bodies.h"
#include "server/schema/common.h"

/* Kubernetes also has definitions for other scalars than Quantity and IntOrString, such as Time.
 * Here a schema with such a scalar describes it in full, which tells a client the same. TEXTs,
 * LISTs and MAPs have definitions for messages alone. */
bool hfd_openapi_has_reference(const struct hfd_schema *schema) {
        return schema->definition && schema->type != HFD_SCHEMA_TEXT &&
               schema->type != HFD_SCHEMA_LIST && schema->type != HFD_SCHEMA_MAP;
}

/* A linear search: the kinds of the table have a few hundred definitions. With custom resources a
 * document may have thousands, but those of custom resources are not searched for, and what they
 * refer to is near the front. */
static bool contains_definition(const struct hfd_definitions *definitions,
                                const struct hfd_schema *schema) {
        for (size_t i = 0; i < definitions->n; i++)
                if (definitions->list[i].schema == schema && !definitions->list[i].is_list)
                        return true;
        return false;
}

/* Grows the list if it is full. False: out of memory. */
static bool has_room(struct hfd_definitions *definitions) {
        size_t space = definitions->space ? 2 * definitions->space : 64;

        if (definitions->n < definitions->space)
                return true;
        struct hfd_definition *list = realloc(definitions->list, space * sizeof *list);
        if (!list) {
                definitions->error = -ENOMEM;
                return false;
        }
        definitions->list = list;
        definitions->space = space;
        return true;
}

void hfd_definitions_done(struct hfd_definitions *definitions) {
        free(definitions->list);
        *definitions = (struct hfd_definitions){0};
}

/* Adds a schema, and all that it contains. Only the outermost schema belongs to a resource. What it
 * contains has no kind, or its kind is added elsewhere (a StatefulSet contains
 * PersistentVolumeClaims), so clients must not find it here by a kind. */
static void add_definition(struct hfd_definitions *definitions, const struct hfd_schema *schema,
                           struct hfd_definition definition) {
        if (hfd_openapi_has_reference(schema)) {
                /* No other schema refers to the one of a custom resource, so the list cannot have
                 * it yet. */
                bool own = definition.resource && definition.resource->custom;
                if ((!own && contains_definition(definitions, schema)) || !has_room(definitions))
                        return;
                definition.schema = schema;
                definitions->list[definitions->n++] = definition;
        }
        if (schema->items)
                add_definition(definitions, schema->items, (struct hfd_definition){0});
        if (schema->other)
                add_definition(definitions, schema->other, (struct hfd_definition){0});
        for (size_t i = 0; i < schema->n_fields; i++)
                add_definition(definitions, schema->fields[i].schema, (struct hfd_definition){0});
}

/* The bodies that do not depend on the kind, and the metadata of lists. Kubernetes registers
 * DeleteOptions and WatchEvent in every group; here they belong to the core group alone. */
static void add_bodies(struct hfd_definitions *definitions) {
        static const struct {
                const struct hfd_schema *schema;
                bool is_kind;
        } all[] = {{&hfd_schema_delete_options, true},
                   {&hfd_schema_list_meta, false},
                   {&hfd_schema_patch, false},
                   {&hfd_schema_status, true},
                   {&hfd_schema_watch_event, true}};

        for (size_t i = 0; i < sizeof all / sizeof all[0]; i++)
                add_definition(definitions, all[i].schema,
                               (struct hfd_definition){.is_in_core = all[i].is_kind});
}

void hfd_definitions_add(struct hfd_definitions *definitions, const struct hfd_resource *resource) {
        struct hfd_discovery_subresource part;

        assert(hfd_openapi_has_reference(resource->schema));
        add_definition(definitions, resource->schema,
                       (struct hfd_definition){.resource = resource});
        for (size_t i = 0; hfd_discovery_subresource(resource, i, &part); i++)
                if (part.other)
                        add_definition(definitions, part.other->schema,
                                       (struct hfd_definition){.resource = part.other});
        /* A review that is no report can only be created: it needs no list and no other bodies. */
        if (resource->is_review && !resource->is_report)
                return;
        if (has_room(definitions))
                definitions->list[definitions->n++] =
                        (struct hfd_definition){.schema = resource->schema,
                                                .resource = resource,
                                                .is_list = true};
        add_bodies(definitions);
}

/* A list has the name of Go's type, in the package of the objects: io.k8s.api.core.v1.PodList. A
 * CustomResourceDefinition may choose another kind for its list. */
void hfd_openapi_put_definition_name(struct hf__strbuf *s, const struct hfd_resource *resource,
                                     bool is_list) {
        const char *name = resource->schema->definition, *kind = strrchr(name, '.') + 1;

        if (!is_list)
                hf__strbuf_puts(s, name);
        else if (resource->list_kind)
                hf__strbuf_printf(s, "%.*s%s", (int)(kind - name), name, resource->list_kind);
        else
                hf__strbuf_printf(s, "%sList", name);
}

/* Quantities and int-or-strings may also be numbers, but OpenAPI v2 has no type for that: as in
 * Kubernetes they are strings there. Clients know a quantity by its definition's name, and an
 * int-or-string by its format. */
const char *hfd_openapi_type(const struct hfd_schema *schema) {
        switch (schema->type) {
        case HFD_SCHEMA_STRUCT:
        case HFD_SCHEMA_MAP: return "object";
        case HFD_SCHEMA_LIST: return "array";
        case HFD_SCHEMA_TEXT:
        case HFD_SCHEMA_BYTES:
        case HFD_SCHEMA_TIME:
        case HFD_SCHEMA_MICRO_TIME:
        case HFD_SCHEMA_INT_OR_STRING:
        case HFD_SCHEMA_QUANTITY: return "string";
        case HFD_SCHEMA_BOOLEAN: return "boolean";
        case HFD_SCHEMA_INT32:
        case HFD_SCHEMA_INT64: return "integer";
        case HFD_SCHEMA_NUMBER: return "number";
        case HFD_SCHEMA_ANY:
        case HFD_SCHEMA_EITHER: break;
        }
        return schema->only_objects ? "object" : NULL;
}

const char *hfd_openapi_format(const struct hfd_schema *schema) {
        switch (schema->type) {
        case HFD_SCHEMA_BYTES: return "byte";
        case HFD_SCHEMA_TIME:
        case HFD_SCHEMA_MICRO_TIME: return "date-time";
        case HFD_SCHEMA_INT_OR_STRING: return "int-or-string";
        case HFD_SCHEMA_INT32: return "int32";
        case HFD_SCHEMA_INT64: return "int64";
        case HFD_SCHEMA_NUMBER: return "double";
        case HFD_SCHEMA_ANY:
        case HFD_SCHEMA_STRUCT:
        case HFD_SCHEMA_MAP:
        case HFD_SCHEMA_LIST:
        case HFD_SCHEMA_TEXT:
        case HFD_SCHEMA_BOOLEAN:
        case HFD_SCHEMA_QUANTITY:
        case HFD_SCHEMA_EITHER: break;
        }
        return NULL;
}

const char *hfd_openapi_list_type(const struct hfd_schema *list) {
        static const char *const names[] =
                {[HFD_LIST_ATOMIC] = "atomic", [HFD_LIST_SET] = "set", [HFD_LIST_MAP] = "map"};

        assert(list->type == HFD_SCHEMA_LIST);
        return names[list->list_type];
}

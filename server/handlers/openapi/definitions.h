/* SPDX-License-Identifier: Apache-2.0 */
#pragma once
/*
 * The definitions of an OpenAPI document: the schemas of kinds, and of the parts that they refer to
 * by name. Pure. Thread: owner only.
 */
#include "server/resources/resource.h"
#include "server/schema/schema.h"

struct hf__strbuf;

struct hfd_definition {
        const struct hfd_schema *schema;     /* has a definition name; is_list: of the items */
        const struct hfd_resource *resource; /* the resource of this kind; NULL = not a resource */
        bool is_list;    /* the list of the resource's objects, which has no schema of its own */
        bool is_in_core; /* without a resource: a kind of the group "", such as Status */
};

/* Begins as {0}. */
struct hfd_definitions {
        struct hfd_definition *list; /* owned */
        size_t n, space;
        int error; /* 0, or -ENOMEM: definitions are missing */
};

/* Frees what it owns. */
void hfd_definitions_done(struct hfd_definitions *definitions);
/* Adds the kind of a resource, its list if it can be listed, and all that its paths and these
 * definitions refer to. Call it once for each resource: the list, and the schema of a custom
 * resource, are added without a search for them. Other schemas are added once. */
void hfd_definitions_add(struct hfd_definitions *definitions, const struct hfd_resource *resource);

/* Appends the name of the definition of a resource's kind, or of its list. */
void hfd_openapi_put_definition_name(struct hf__strbuf *s, const struct hfd_resource *resource,
                                     bool is_list);
/* The type and format of a schema in OpenAPI v2; NULL = it has none. */
const char *hfd_openapi_type(const struct hfd_schema *schema);
const char *hfd_openapi_format(const struct hfd_schema *schema);
/* Whether other schemas refer to this one by name: it has a definition and is no TEXT. */
bool hfd_openapi_has_reference(const struct hfd_schema *schema);
/* "atomic", "set" or "map". */
const char *hfd_openapi_list_type(const struct hfd_schema *list);

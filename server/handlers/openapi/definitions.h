/* SPDX-License-Identifier: Apache-2.0 */
#pragma once
/*
 * The definitions of an OpenAPI document: the schemas of kinds, and of the parts that they refer to
 * by name. Pure. Thread: owner only.
 */
#include "server/resources/resource.h"
#include "server/schema/schema.h"

struct hfd_definition {
        const struct hfd_schema *schema;     /* has a definition name */
        const struct hfd_resource *resource; /* the resource of this kind; NULL = not a kind */
};

/* Begins as {0}. */
struct hfd_definitions {
        struct hfd_definition *list; /* owned */
        size_t n, space;
        int error; /* 0, or -ENOMEM: definitions are missing */
};

/* Frees what it owns. */
void hfd_definitions_done(struct hfd_definitions *definitions);
/* Adds the kind of a resource and the parts that it refers to, unless they are there already. */
void hfd_definitions_add(struct hfd_definitions *definitions, const struct hfd_resource *resource);

/* The type and format of a schema in OpenAPI; NULL = it has none. */
const char *hfd_openapi_type(const struct hfd_schema *schema);
const char *hfd_openapi_format(const struct hfd_schema *schema);
/* Whether other schemas refer to this one by name: a STRUCT, ANY or EITHER with a
 * definition. */
bool hfd_openapi_has_reference(const struct hfd_schema *schema);
/* "atomic", "set" or "map". */
const char *hfd_openapi_list_type(const struct hfd_schema *list);

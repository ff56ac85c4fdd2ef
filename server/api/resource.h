/* SPDX-License-Identifier: Apache-2.0 */
#pragma once
/*
 * The registry of resources: what is served is a table row. Everything generic (verbs, cache, watches, discovery, Table)
 * reads the row; what is particular to one kind is in its strategy functions. The table is immutable. Pure.
 */
#include <stdbool.h>
#include <stddef.h>

struct hf__json;
struct hfd_causes;

#define HFD_COLUMNS_MAX   6
#define HFD_RESOURCES_MAX 16

/* A column of the Table that kubectl shows. path is a JSON path of the object, or "@age", "@count:<path>", "@object". */
struct hfd_column {
        const char *name, *type, *format, *path;
};

struct hfd_resource {
        const char *group, *version;
        const char *plural, *singular, *kind;
        const char *short_name; /* NULL = none */
        const char *storage;    /* the key segment below the prefix */
        bool namespaced;
        bool name_is_label;        /* DNS label instead of DNS subdomain */
        bool create_on_update;     /* PUT to a missing object creates it */
        bool unconditional_update; /* PUT without a resourceVersion is let through */
        bool term_record;          /* a term record is kept beside each object (Leases) */
        struct hfd_column columns[HFD_COLUMNS_MAX];

        /*
         * decode brings what was sent into its normal form; false with words in reason: it is not such an object (400).
         * prepare fills in defaults; old is NULL on create. validate adds what is wrong to causes (422).
         */
        bool (*decode)(struct hf__json *object, char *reason, size_t max_reason);
        int (*prepare)(struct hf__json *object, const struct hf__json *old);
        void (*validate)(const struct hf__json *object, const struct hf__json *old, struct hfd_causes *causes);
};

const struct hfd_resource *hfd_resources(size_t *ret_n);
size_t hfd_resource_index(const struct hfd_resource *resource);                                           /* its place in the table */
const struct hfd_resource *hfd_resource_find(const char *group, const char *version, const char *plural); /* NULL = not served */
const struct hfd_resource *hfd_resource_namespaces(void);
/* "v1" or "group/version", in static memory of the row's. */
void hfd_resource_api_version(const struct hfd_resource *resource, char text[128]);
/* "leases.coordination.k8s.io" or "configmaps", as messages name it. */
void hfd_resource_qualified(const struct hfd_resource *resource, char text[128]);

/* The strategies; each in its own file. */
bool hfd_lease_decode(struct hf__json *object, char *reason, size_t max_reason);
void hfd_lease_validate(const struct hf__json *object, const struct hf__json *old, struct hfd_causes *causes);
bool hfd_namespace_decode(struct hf__json *object, char *reason, size_t max_reason);
int hfd_namespace_prepare(struct hf__json *object, const struct hf__json *old);
bool hfd_configmap_decode(struct hf__json *object, char *reason, size_t max_reason);
void hfd_configmap_validate(const struct hf__json *object, const struct hf__json *old, struct hfd_causes *causes);
bool hfd_event_decode(struct hf__json *object, char *reason, size_t max_reason);
bool hfd_workspace_decode(struct hf__json *object, char *reason, size_t max_reason);
int hfd_workspace_prepare(struct hf__json *object, const struct hf__json *old);

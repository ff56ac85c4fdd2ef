/* SPDX-License-Identifier: Apache-2.0 */
#pragma once
/*
 * The registry of resources: what is served is a table row. Everything generic (verbs, cache,
 * watches, discovery, Table) reads the row; what is particular to one kind is in its strategy
 * functions. The table is immutable. Pure.
 */
#include <stdbool.h>
#include <stddef.h>

struct hf__json;
struct hfd_causes;

#define HFD_COLUMNS_MAX   6
#define HFD_RESOURCES_MAX 32

/* Parts of an object that are read and written under a path of their own; those that a row has are
 * or'ed together. */
enum hfd_subresource { HFD_SUB_NONE = 0, HFD_SUB_STATUS = 1, HFD_SUB_FINALIZE = 2 };

/*
 * A column of the Table that kubectl shows. path is a JSON path of the object, or one of the forms
 * of table.c ("@age",
 * "@count:<path>"). wide: only with -o wide.
 */
struct hfd_column {
        const char *name, *type, *format, *path;
        bool wide;
};

struct hfd_resource {
        const char *group, *version;
        const char *plural, *singular, *kind;
        const char *short_name; /* NULL = none */
        const char *storage;    /* the key segment below the prefix */
        bool namespaced;
        bool name_is_label;        /* DNS label instead of DNS subdomain */
        unsigned char n_name_room; /* what a label has to leave of its 63 bytes for what is made of
                                      it (workspaces: "ws-") */
        bool name_is_segment;      /* whatever can stand in a path: `system:node` */
        bool create_on_update;     /* PUT to a missing object creates it */
        bool unconditional_update; /* PUT without a resourceVersion is let through */
        bool term_record;          /* a term record is kept beside each object (Leases) */
        bool has_generation; /* metadata.generation counts the changes of what is neither metadata
                                nor status */
        bool owns_nothing; /* never anybody's owner: a delete takes no propagationPolicy (Events) */
        bool no_strategic_patch;   /* clients have no type of their own for it, which would say how
                                      lists are merged */
        bool no_delete_collection; /* only one by one (namespaces) */
        /*
         * HFD_SUB_STATUS: status is written by .../status alone. HFD_SUB_FINALIZE: spec.finalizers,
         * written by .../finalize alone, hold a deleted object as metadata.finalizers do, and
         * status.phase says Terminating meanwhile (namespaces).
         */
        unsigned subresources;
        struct hfd_column columns[HFD_COLUMNS_MAX];

        /*
         * decode brings what was sent into its normal form; false with words in reason: it is not
         * such an object (400). prepare fills in defaults; old is NULL on create. validate adds
         * what is wrong to causes (422).
         */
        bool (*decode)(struct hf__json *object, char *reason, size_t max_reason);
        int (*prepare)(struct hf__json *object, const struct hf__json *old);
        void (*validate)(const struct hf__json *object, const struct hf__json *old,
                         struct hfd_causes *causes);
};

const struct hfd_resource *hfd_resources(size_t *ret_n);
size_t hfd_resource_index(const struct hfd_resource *resource); /* its place in the table */
const struct hfd_resource *hfd_resource_find(const char *group, const char *version,
                                             const char *plural); /* NULL = not served */
const struct hfd_resource *hfd_resource_namespaces(void);
/* "" is HFD_SUB_NONE. False: the resource has none of that name. */
bool hfd_resource_subresource(const struct hfd_resource *resource, const char *name,
                              enum hfd_subresource *ret_subresource);
/* The four that the host itself makes at its start and that cannot be deleted. */
bool hfd_is_system_namespace(const char *name);
/* "v1" or "group/version", in static memory of the row's. */
void hfd_resource_api_version(const struct hfd_resource *resource, char text[128]);
/* "leases.coordination.k8s.io" or "configmaps", as messages name it. */
void hfd_resource_qualified(const struct hfd_resource *resource, char text[128]);

/* The strategies; each in its own file. */
bool hfd_lease_decode(struct hf__json *object, char *reason, size_t max_reason);
void hfd_lease_validate(const struct hf__json *object, const struct hf__json *old,
                        struct hfd_causes *causes);
bool hfd_lease_candidate_decode(struct hf__json *object, char *reason, size_t max_reason);
void hfd_lease_candidate_validate(const struct hf__json *object, const struct hf__json *old,
                                  struct hfd_causes *causes);
bool hfd_namespace_decode(struct hf__json *object, char *reason, size_t max_reason);
int hfd_namespace_prepare(struct hf__json *object, const struct hf__json *old);
void hfd_namespace_validate(const struct hf__json *object, const struct hf__json *old,
                            struct hfd_causes *causes);
bool hfd_configmap_decode(struct hf__json *object, char *reason, size_t max_reason);
void hfd_configmap_validate(const struct hf__json *object, const struct hf__json *old,
                            struct hfd_causes *causes);
bool hfd_secret_decode(struct hf__json *object, char *reason, size_t max_reason);
int hfd_secret_prepare(struct hf__json *object, const struct hf__json *old);
void hfd_secret_validate(const struct hf__json *object, const struct hf__json *old,
                         struct hfd_causes *causes);
bool hfd_service_account_decode(struct hf__json *object, char *reason, size_t max_reason);
bool hfd_role_decode(struct hf__json *object, char *reason, size_t max_reason);
void hfd_role_validate(const struct hf__json *object, const struct hf__json *old,
                       struct hfd_causes *causes);
bool hfd_cluster_role_decode(struct hf__json *object, char *reason, size_t max_reason);
void hfd_cluster_role_validate(const struct hf__json *object, const struct hf__json *old,
                               struct hfd_causes *causes);
bool hfd_binding_decode(struct hf__json *object, char *reason, size_t max_reason);
int hfd_binding_prepare(struct hf__json *object, const struct hf__json *old);
void hfd_role_binding_validate(const struct hf__json *object, const struct hf__json *old,
                               struct hfd_causes *causes);
void hfd_cluster_role_binding_validate(const struct hf__json *object, const struct hf__json *old,
                                       struct hfd_causes *causes);
bool hfd_event_decode(struct hf__json *object, char *reason, size_t max_reason);
bool hfd_workspace_decode(struct hf__json *object, char *reason, size_t max_reason);
int hfd_workspace_prepare(struct hf__json *object, const struct hf__json *old);

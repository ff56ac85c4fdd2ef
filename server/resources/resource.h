/* SPDX-License-Identifier: Apache-2.0 */
#pragma once
/*
 * The row of a resource. There is one for each group, version and plural, so a resource with two
 * versions has two rows (forms/conversion.h). All generic code (verbs, cache, watches, discovery,
 * Table) reads the row. The rules of a single kind are in its strategy functions
 * (strategies/strategies.h, which also describes how to add a kind).
 *
 * The rows of the built-in kinds are in a table (rows/resource_table.h). Outside of it are those of
 * custom resources (custom/custom_kind.h) and of the bodies of subresources
 * (hfd_resource_of_part in resource_table.h). This folder has what all its subfolders use, and uses
 * none of them. Pure. Thread: any.
 */
#include <stdbool.h>
#include <stddef.h>

struct hf__json;
struct hfd_causes;
struct hfd_custom_version;
struct hfd_schema;

#define HFD_RESOURCES_MAX    80   /* rows of the table */
#define HFD_CUSTOM_SLOTS_MAX 1024 /* pairs of group and plural of custom resources */
#define HFD_SLOTS_MAX        (HFD_RESOURCES_MAX + HFD_CUSTOM_SLOTS_MAX)
#define HFD_API_VERSION_MAX  320 /* bytes of "group/version", with the NUL */
#define HFD_QUALIFIED_MAX    320 /* bytes of "plural.group", with the NUL */

/*
 * Parts of an object that have a path of their own. A write to that path changes only the part, and
 * the metadata too if the row has subresources_write_meta and no rules for the part. A row has a
 * set of these flags, a request has one of them.
 *
 * Four have bodies of another kind (hfd_resource_of_part). TOKEN is not a part of an object: a
 * create at .../token issues a token for the object (handlers/reviews/token_request.h). SCALE shows
 * how many replicas an object has and should have. A create at .../binding assigns a pod to a node,
 * and one at .../eviction deletes a pod (registry/parts).
 *
 * EPHEMERAL_CONTAINERS and RESIZE are subresources of Pods. The fields that they and BINDING may
 * change are not one member of the object, so the kind has rules for them (struct hfd_part_rules).
 */
enum hfd_subresource {
        HFD_SUB_NONE = 0,
        HFD_SUB_STATUS = 1,
        HFD_SUB_FINALIZE = 2,
        HFD_SUB_APPROVAL = 8,
        HFD_SUB_TOKEN = 4,
        HFD_SUB_SCALE = 16,
        HFD_SUB_BINDING = 32,
        HFD_SUB_EVICTION = 64,
        HFD_SUB_EPHEMERAL_CONTAINERS = 128,
        HFD_SUB_RESIZE = 256
};

/* How a kind handles subresources whose part is not one member of the object. */
struct hfd_part_rules {
        unsigned of; /* the subresources that have these rules */
        /* Copies the part from `from` to `to`, which is a copy of the stored object. 0 or -ENOMEM.
         */
        int (*merge)(enum hfd_subresource part, struct hf__json *to, const struct hf__json *from);
        /* Removes everything outside the part from the configuration of an apply. 0 or -ENOMEM. */
        int (*restrict_config)(enum hfd_subresource part, struct hf__json *config);
        /* In place of hfd_resource.validate. */
        void (*validate)(enum hfd_subresource part, const struct hf__json *object,
                         const struct hf__json *old, struct hfd_causes *causes);
};

/* The paths of the members of an object that its Scale shows. */
struct hfd_scale_paths {
        const char *replicas, *current_replicas;
        const char *selector;    /* a text, a LabelSelector or a map of labels; NULL = none */
        bool selector_is_labels; /* selector is the path of a map of labels */
};

/*
 * A column of the Table that kubectl shows. path: a JSON path into the object, or a form such as
 * "@age" or "@count:<path>" (registry/list/table.c and its cells/). wide: only with -o wide.
 */
struct hfd_column {
        const char *name, *type, *format, *path;
        bool wide;
        int priority;            /* of custom resources; above 0: wide */
        const char *description; /* NULL = the name; of custom resources: derived from the path */
};
/* The columns of a row. The row only points to them, because most rows have few columns, and the
 * table should be small: the loader relocates the pointers in the table at the start, so its pages
 * are private memory of each process. */
#define HFD_COLUMNS(...) ((const struct hfd_column[]){__VA_ARGS__, {.name = NULL}})

/* A member of the object that has another name in the stored form. */
struct hfd_renamed {
        const char *name, *stored;
};
/* How a row serves the objects that another row of the same plural stores (forms/conversion.h). */
struct hfd_conversion {
        const char *group, *version; /* of the row that stores the objects */
        const struct hfd_renamed *renamed;
        size_t n_renamed;
        /* For other differences between the forms: functions that bring an object from one form
         * into the other. 0 or -ENOMEM. NULL = nothing. */
        int (*from_stored)(struct hf__json *object), (*to_stored)(struct hf__json *object);
        /* For from_stored and to_stored: the corresponding members of spec and status, to translate
         * managedFields. */
        const struct hfd_renamed *spec_fields, *status_fields;
        size_t n_spec_fields, n_status_fields;
};

struct hfd_resource {
        const char *group, *version; /* group "" = the core group */
        const char *plural, *singular, *kind;
        const char *short_name;       /* NULL = none */
        const char *other_short_name; /* a second one; NULL = none */
        const char *list_kind;        /* of a custom resource; NULL = kind and "List" */
        const char *category;         /* `kubectl get` lists several kinds by it; NULL = none */
        const char *deprecation;      /* the warning with each response; NULL = none; of a custom
                                       * resource: custom->warning */
        const char *storage; /* the part after the prefix in the store's keys; NULL = not stored */
        /* NULL = no other row of the table stores the objects of this one. */
        const struct hfd_conversion *conversion;
        bool namespaced;

        /* Syntax of names: a DNS subdomain unless one of these two is set. */
        bool name_is_label;   /* a DNS label */
        bool name_is_segment; /* any path segment, such as `system:node` */
        /* With name_is_label: the name must be this many bytes shorter than a DNS label may be,
         * because another name is derived from it ("ws-" and the name of a Workspace). */
        unsigned char n_name_reserved;

        bool create_on_update;     /* a PUT to a missing object creates it */
        bool unconditional_update; /* a PUT without a resourceVersion is accepted */
        bool term_record;          /* the store also has a term record for each object (Leases) */
        bool has_generation; /* metadata.generation counts changes outside metadata and status */
        /* With has_generation: a map in metadata whose changes count, too, unless a write of status
         * makes them; NULL = none. */
        const char *counted_metadata;
        bool owns_nothing;  /* never an owner, so a delete ignores propagationPolicy (Events) */
        bool is_packed;     /* large objects are compressed in memory (packed.h) */
        bool keeps_extract; /* each object has a place for an extract (objects/object.h) */
        bool no_strategic_patch; /* refuses strategic merge patches, as for custom resources */
        /* A write to a subresource without rules (parts) also writes metadata, as for most built-in
         * kinds. False: it writes only its own part, as for custom resources. */
        bool subresources_write_meta;
        /* Clients create objects of this kind to ask a question, and nothing is stored
         * (handlers/reviews/review.h). The row has no storage, no columns and no strategy. */
        bool is_review;
        /* With is_review: clients get and list objects in place of creating them, and each read
         * computes them (ComponentStatuses, handlers/reviews/component_status.h). The row has
         * columns. */
        bool is_report;
        bool no_delete_collection; /* objects can only be deleted one by one (Namespaces) */
        /*
         * A set of enum hfd_subresource. STATUS: clients write status by .../status only. FINALIZE:
         * after the create, clients write spec.finalizers by .../finalize only. Like
         * metadata.finalizers, spec.finalizers delay the removal of a deleted object, whose
         * status.phase is Terminating meanwhile (Namespaces). APPROVAL: clients write
         * status.conditions by .../approval too (CertificateSigningRequests).
         */
        unsigned subresources;
        bool created_with_status; /* a create keeps the client's status, despite STATUS (Nodes) */
        const struct hfd_scale_paths *scale; /* with SCALE */
        const struct hfd_part_rules *parts;  /* with EPHEMERAL_CONTAINERS, RESIZE or BINDING */
        const struct hfd_column *columns;    /* HFD_COLUMNS: ends at a NULL name; NULL = none */

        const struct hfd_schema *schema; /* of the kind: a STRUCT */
        /* Of a custom resource: its version, which contains the row; NULL = any other row, such as
         * one of the table or the permanent row of a slot (custom/custom_table.h). */
        struct hfd_custom_version *custom;
        unsigned short slot; /* of a custom resource: its index; 0 = any other row */
        /* The strategy; see strategies/strategies.h. Each of these may be NULL. */
        int (*normalize)(struct hf__json *object);
        int (*prepare)(struct hf__json *object, const struct hf__json *old);
        int (*complete)(struct hf__json *object);
        void (*validate)(const struct hf__json *object, const struct hf__json *old,
                         struct hfd_causes *causes);
        void (*validate_status)(const struct hf__json *object, const struct hf__json *old,
                                struct hfd_causes *causes);
        /* NULL, or marks an object at its first delete, in place of registry/write/steps/delete.c,
         * which then ignores the propagationPolicy. now: the deletionTimestamp. 0 or -ENOMEM. */
        int (*mark_deleted)(struct hf__json *object, const char *now);
};

/* name "" is HFD_SUB_NONE. False: the resource has no subresource of that name. */
bool hfd_resource_subresource(const struct hfd_resource *resource, const char *name,
                              enum hfd_subresource *ret_subresource);
/* The name of a subresource in paths; "" for HFD_SUB_NONE. */
const char *hfd_subresource_name(enum hfd_subresource subresource);
/* The rules of a subresource; NULL = it has none. */
const struct hfd_part_rules *hfd_resource_part_rules(const struct hfd_resource *resource,
                                                     enum hfd_subresource subresource);
/* Whether name is that of one of the four Namespaces that the server creates at its start. */
bool hfd_is_system_namespace(const char *name);
/* "v1" or "group/version". */
void hfd_resource_api_version(const struct hfd_resource *resource, char text[HFD_API_VERSION_MAX]);
/* "configmaps" or "leases.coordination.k8s.io", as messages name a resource. */
void hfd_resource_qualified(const struct hfd_resource *resource, char text[HFD_QUALIFIED_MAX]);

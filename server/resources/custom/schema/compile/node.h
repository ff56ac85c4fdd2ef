/* SPDX-License-Identifier: Apache-2.0 */
#pragma once
/*
 * A compiled schema as a tree of nodes. A node stands for one JSONSchemaProps: either a part of the
 * structure, or a value validation below allOf, anyOf, oneOf or not. Equal nodes are one node.
 *
 * Invariants: a node never changes once the schema is made; the properties are sorted by strcmp,
 * each name once; the limits are in the order in which Kubernetes checks them.
 *
 * Ownership: everything belongs to the schema, except that the `fields` of simple types are static.
 * Thread: any.
 */
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "server/schema/schema.h"

struct hf__cel_regex;
struct hf__json;
struct hfd_custom_node;
struct hfd_kept_block;

enum hfd_custom_type {
        HFD_CUSTOM_NONE, /* no type is given */
        HFD_CUSTOM_OBJECT,
        HFD_CUSTOM_ARRAY,
        HFD_CUSTOM_STRING,
        HFD_CUSTOM_INTEGER,
        HFD_CUSTOM_NUMBER,
        HFD_CUSTOM_BOOLEAN
};

/* additionalProperties. With ANY and SCHEMA the object may have other members than its properties.
 */
enum hfd_custom_additional {
        HFD_CUSTOM_ADDITIONAL_NONE,      /* not given */
        HFD_CUSTOM_ADDITIONAL_FORBIDDEN, /* false */
        HFD_CUSTOM_ADDITIONAL_ANY,       /* true */
        HFD_CUSTOM_ADDITIONAL_SCHEMA     /* the member `values` */
};

struct hfd_custom_property {
        const char *name;
        const struct hfd_custom_node *node;
};

enum hfd_custom_limit_kind {
        HFD_LIMIT_ANY_OF,
        HFD_LIMIT_ONE_OF,
        HFD_LIMIT_ALL_OF,
        HFD_LIMIT_NOT,
        HFD_LIMIT_MAX_LENGTH,
        HFD_LIMIT_MIN_LENGTH,
        HFD_LIMIT_PATTERN,
        HFD_LIMIT_FORMAT,
        HFD_LIMIT_MULTIPLE_OF,
        HFD_LIMIT_MINIMUM,
        HFD_LIMIT_MAXIMUM,
        HFD_LIMIT_MIN_ITEMS,
        HFD_LIMIT_MAX_ITEMS,
        HFD_LIMIT_ENUM,
        /* An enum of many values has an ENUM and, for quick searches, these two: SORTED has its
         * texts and numbers, OTHERS its other values except null. There is no OTHERS without such
         * values. */
        HFD_LIMIT_ENUM_SORTED,
        HFD_LIMIT_ENUM_OTHERS,
        HFD_LIMIT_MIN_PROPERTIES,
        HFD_LIMIT_MAX_PROPERTIES,
        HFD_LIMIT_REQUIRED
};

struct hfd_custom_pattern {
        const char *text;
        const struct hf__cel_regex *regex; /* NULL: it cannot be compiled, and nothing matches it */
        const char *error;                 /* why; NULL = no error */
};

/* The canonical text of a value (canonical_text.h). */
struct hfd_custom_text {
        size_t n;
        const char *text;
};

struct hfd_custom_limit {
        unsigned char kind; /* enum hfd_custom_limit_kind */
        bool exclusive;     /* of MINIMUM and MAXIMUM */
        uint32_t n;         /* of nodes, names, sorted values or texts */
        union {
                int64_t count; /* of lengths, items and properties */
                double number;
                const struct hfd_custom_pattern *pattern;
                const char *format;                   /* as it was written: "date-time" */
                const struct hf__json *values;        /* of ENUM: an array */
                const struct hf__json *const *sorted; /* of ENUM_SORTED: n in order, or NULL */
                const struct hfd_custom_text *texts;  /* of ENUM_OTHERS: n in order */
                const struct hfd_custom_node *const *nodes; /* of ANY_OF ... NOT: n */
                const char *const *names;                   /* of REQUIRED: n */
        } as;
};

struct hfd_custom_node {
        const struct hfd_schema *fields; /* NULL in a value validation */
        const struct hfd_custom_property *properties;
        const struct hfd_custom_node *items;  /* of an array; NULL = none */
        const struct hfd_custom_node *values; /* of additionalProperties; NULL = none */
        const struct hfd_custom_limit *limits;
        const struct hf__json *default_value; /* NULL = none */
        const uint32_t *defaults;             /* the indices of the properties with a default */
        uint32_t n_properties;
        uint32_t n_defaults;
        uint32_t n_limits;
        unsigned char type;       /* enum hfd_custom_type */
        unsigned char additional; /* enum hfd_custom_additional */
        unsigned char list_type;  /* enum hfd_schema_list_type */
        bool nullable : 1, int_or_string : 1, preserve : 1, embedded : 1;
};

struct hfd_custom_schema {
        struct hfd_kept_block *blocks;      /* owned; everything but the values (compile/keep.h) */
        struct hf__json *values;            /* an array: owns the defaults and enums */
        const struct hfd_custom_node *root; /* NULL = no schema: everything is kept */
        const struct hfd_schema *fields;
        bool has_embedded, has_list_types; /* a node is embedded; a list is a set or a map */
        size_t memory;
};

/* The property of that name; NULL = none. node may be NULL. */
const struct hfd_custom_property *hfd_custom_property(const struct hfd_custom_node *node,
                                                      const char *name);
/* The order of ENUM_SORTED: texts, then numbers. 0: the values are equal (hf__json_equal). */
int hfd_custom_scalar_compare(const struct hf__json *a, const struct hf__json *b);
/* The order of ENUM_OTHERS, in which the last text is the longest. For qsort and bsearch. */
int hfd_custom_text_compare(const void *a, const void *b);
/* Prunes a default by the schema of its field. 0 or -ENOMEM. */
int hfd_custom_prune_default(const struct hfd_custom_node *node, struct hf__json *value);

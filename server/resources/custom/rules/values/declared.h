/* SPDX-License-Identifier: Apache-2.0 */
#pragma once
/*
 * Declares what the expressions (CEL) of a custom resource see of its schema: the type of each
 * part, and how a value of that type is made of JSON (rule_value.h). The checker uses the types;
 * the estimates of costs use the sizes.
 *
 * Ownership: declarations and everything in them belong to the arena that they are made in.
 * Immutable once made. Thread: any.
 */
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

struct hf__arena;
struct hf__cel_type;
struct hf__json;

enum hfd_declared_kind {
        HFD_DECLARED_INT_OR_STRING,
        HFD_DECLARED_LIST,
        HFD_DECLARED_MAP,    /* additionalProperties */
        HFD_DECLARED_OBJECT, /* properties */
        HFD_DECLARED_STRING,
        HFD_DECLARED_BYTES,
        HFD_DECLARED_DURATION,
        HFD_DECLARED_DATE,
        HFD_DECLARED_DATE_TIME,
        HFD_DECLARED_BOOL,
        HFD_DECLARED_DOUBLE,
        HFD_DECLARED_INT,
};

struct hfd_declared_field {
        const char *name;    /* in JSON */
        const char *escaped; /* as expressions write it (rule_name.h); NULL: they cannot name it */
        bool reserved;       /* (rule_name.h); the CEL type then has `name` as a field, too */
        bool required;       /* the schema requires it, and has no default for it */
        /* NULL: the type is unknown. Expressions cannot name the field, but comparisons of whole
         * objects see it. */
        const struct hfd_declared *declared;
};

struct hfd_declared {
        uint8_t kind;  /* an enum hfd_declared_kind */
        bool nullable; /* null is a valid value */
        bool closed;   /* values leave out the fields that are not declared */
        const struct hf__cel_type *type;
        int64_t min_size; /* Kubernetes' estimate: bytes of the shortest JSON of such a value */
        struct hfd_declared_field *fields; /* of an OBJECT, sorted by name */
        size_t n_fields;
        const struct hfd_declared *element; /* of a LIST or MAP */
        bool set;                           /* a LIST whose elements are all different */
        const char **keys; /* of a LIST that is a map: escaped, or as they are if they cannot be */
        size_t n_keys;
};

/* What the declarations that are made in one arena share. The caller sets the arena and n_types 0.
 */
struct hfd_declaring {
        struct hf__arena *arena; /* borrowed */
        unsigned n_types;        /* object types so far; gives each one a name of its own */
};

enum hfd_declare_as {
        HFD_DECLARE_PART,
        HFD_DECLARE_EMBEDDED, /* a resource within another resource */
        HFD_DECLARE_RESOURCE, /* a whole resource. Of its metadata, only name and generateName are
                               * declared: the rest changes with each write, and may be large. */
};

/* The declaration of a schema. NULL: out of memory (the arena has failed), or expressions do not
 * see such a part. */
const struct hfd_declared *hfd_declare(struct hfd_declaring *declaring,
                                       const struct hf__json *props, enum hfd_declare_as as);
/* The field of an OBJECT by its name in JSON. NULL: there is none. Takes logarithmic time. */
const struct hfd_declared_field *hfd_declared_field(const struct hfd_declared *declared,
                                                    const char *name);

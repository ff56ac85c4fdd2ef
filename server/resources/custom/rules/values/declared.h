/* SPDX-License-Identifier: Apache-2.0 */
#pragma once
/*
 * Declares what expressions see of a schema: the type of each part, and how its values are made of
 * JSON.
 *
 * Ownership: all of it belongs to an arena. Immutable once made. Thread: any.
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
        const char *escaped; /* as expressions write it. NULL: they cannot */
        bool reserved;       /* the name itself may be written after a dot, too */
        bool required;       /* and there is no default */
        /* NULL: its type is unknown, so that it takes part in comparisons only */
        const struct hfd_declared *declared;
};

struct hfd_declared {
        uint8_t kind; /* an enum hfd_declared_kind */
        bool nullable;
        bool closed; /* values leave out the fields that are not declared */
        const struct hf__cel_type *type;
        int64_t min_size;                  /* bytes of the shortest JSON */
        struct hfd_declared_field *fields; /* of an OBJECT, sorted by name */
        size_t n_fields;
        const struct hfd_declared *element; /* of a LIST or MAP */
        bool set;                           /* a LIST whose elements are all different */
        const char **keys;                  /* of a LIST that is a map: the escaped names */
        size_t n_keys;
};

/* The state in which declarations are made. n_types numbers the object types, so that each has a
 * name of its own. */
struct hfd_declaring {
        struct hf__arena *arena;
        unsigned n_types;
};

enum hfd_declare_as {
        HFD_DECLARE_PART,
        HFD_DECLARE_EMBEDDED, /* a resource within another */
        HFD_DECLARE_RESOURCE, /* a whole resource. Of its metadata, only name and generateName are
                               * declared: the rest changes with each write, and may be large. */
};

/* The declaration of a schema. NULL: out of memory (the arena has failed), or expressions do not
 * see such a part. */
const struct hfd_declared *hfd_declare(struct hfd_declaring *declaring,
                                       const struct hf__json *props, enum hfd_declare_as as);
/* NULL: there is none of this name. */
const struct hfd_declared_field *hfd_declared_field(const struct hfd_declared *declared,
                                                    const char *name);

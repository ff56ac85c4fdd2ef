/* SPDX-License-Identifier: Apache-2.0 */
#pragma once
/*
 * The types of the Common Expression Language, as the checker uses them, and the kinds of values,
 * as the evaluator uses them: a value has the kind of its type. Immutable once made.
 *
 * Ownership: a type belongs to the arena in which it was made, or is static; whoever declares a
 * variable of a type keeps the type alive. Thread: any, since types do not change.
 */
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

struct hf__arena;
struct hf__strbuf;

enum hf__cel_kind {
        HF__CEL_ERROR, /* of a type: the checker has reported an error already */
        HF__CEL_DYN,   /* of a type only: known when the expression is evaluated */
        HF__CEL_NULL,
        HF__CEL_BOOL,
        HF__CEL_INT,
        HF__CEL_UINT,
        HF__CEL_DOUBLE,
        HF__CEL_STRING,
        HF__CEL_BYTES,
        HF__CEL_TIMESTAMP,
        HF__CEL_DURATION,
        HF__CEL_LIST,     /* params[0]: the elements */
        HF__CEL_MAP,      /* params[0]: the keys, params[1]: the values */
        HF__CEL_OPTIONAL, /* params[0]: the value */
        HF__CEL_TYPE,     /* params[0]: the type that is the value; or no params, for any type */
        HF__CEL_OBJECT,   /* name and fields; its values are maps */
        HF__CEL_OPAQUE,   /* name */
        HF__CEL_VAR,      /* of a type only: a type parameter */
};

struct hf__cel_field {
        const char *name;
        const struct hf__cel_type *type;
};

/* Members that the kind does not need are zero. */
struct hf__cel_type {
        enum hf__cel_kind kind;
        uint32_t var;    /* of a VAR */
        uint32_t weight; /* parts of the type, without its fields; 0 in a constant counts as 1 */
        unsigned n_params;
        const struct hf__cel_type *params[2];
        const char *name;                   /* of an OBJECT or OPAQUE */
        const struct hf__cel_field *fields; /* of an OBJECT */
        size_t n_fields;
        bool open;   /* an OBJECT with any fields, which are dyn */
        bool sorted; /* the fields are in the order of strcmp; otherwise a look-up visits all */
        /* The largest size of a declared variable, or of a part of it: bytes, elements or entries.
         * Only the estimate of the cost uses it, so a caller that does not need that may leave it
         * 0. Types are the same whatever it is. */
        uint64_t max_size;
};

/* A type with more parts than this is not made, because the time of a check grows with the parts,
 * and an expression can double them with a few characters. */
#define HF__CEL_TYPE_WEIGHT_MAX 2000

/* The types without parameters: those up to DURATION, and TYPE without a parameter. For LIST, MAP
 * and OPTIONAL the type whose parameters are dyn. */
const struct hf__cel_type *hf__cel_type_of(enum hf__cel_kind kind);
/* A LIST, MAP, OPTIONAL or TYPE; b is the second parameter of a MAP, and NULL for the others. NULL:
 * out of memory, or the type has too many parts. */
const struct hf__cel_type *hf__cel_type_new(struct hf__arena *arena, enum hf__cel_kind kind,
                                            const struct hf__cel_type *a,
                                            const struct hf__cel_type *b);
/* Reads a type as signatures have it: "map(string, list(A))". A single capital letter is a type
 * parameter: A has the number 0. Signatures use only A, B and C, which is not checked here. Any
 * other unknown name, like "net.IP", is an opaque type. *text is moved past the type. NULL: out
 * of memory, or not a type. Only for texts of the program itself. */
const struct hf__cel_type *hf__cel_type_parse(struct hf__arena *arena, const char **text);

/* Whether both are the same type: the same structure. Objects are the same if their names are. */
bool hf__cel_type_same(const struct hf__cel_type *a, const struct hf__cel_type *b);
/* Appends the type as messages of Kubernetes show it. */
void hf__cel_type_print(struct hf__strbuf *out, const struct hf__cel_type *type);
/* The name of the type without its parameters, as type(x) has it: "int",
 * "google.protobuf.Timestamp". */
const char *hf__cel_type_name(const struct hf__cel_type *type);
/* NULL: an OBJECT has no such field. */
const struct hf__cel_type *hf__cel_type_field(const struct hf__cel_type *object, const char *name,
                                              size_t n_name);

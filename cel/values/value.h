/* SPDX-License-Identifier: Apache-2.0 */
#pragma once
/*
 * Values of expressions: 16 bytes, passed by value. What a value points to belongs to the caller
 * of an evaluation (for a variable), to the program (for a literal) or to the arena of the
 * evaluation (for a result), and does not change. Thread: any, as long as its owner keeps it.
 */
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "cel/values/type.h"

struct hf__cel_value {
        uint8_t kind; /* an enum hf__cel_kind; never DYN or VAR */
        /* Of a TIMESTAMP: how many minutes its zone is ahead of UTC, at most 1500 either way. It is
         * printed in this zone. Two timestamps of one time are equal whatever their zones. */
        int16_t zone;
        uint32_t n; /* bytes of a STRING or BYTES; nanoseconds of a TIMESTAMP, below 10^9 */
        union {
                bool boolean;
                int64_t i;        /* of a DURATION nanoseconds; of a TIMESTAMP seconds since 1970 */
                uint64_t u;       /* of a UINT */
                double d;         /* of a DOUBLE */
                const char *text; /* UTF-8, or bytes; of an ERROR the message, with a NUL */
                const struct hf__cel_list *list;
                const struct hf__cel_map *map;        /* of a MAP or an OBJECT */
                const struct hf__cel_value *optional; /* NULL: none */
                const struct hf__cel_type *type;
                const struct hf__cel_opaque *opaque;
        } as;
};

struct hf__cel_run;

/* A list or map of the caller may contain errors. An expression that takes one out gets that error,
 * as if a function had returned it. hf__cel_equal takes it for unequal to everything. */
struct hf__cel_list {
        size_t n;
        /* NULL: `at` makes each element. It must be pure if several evaluations use the list,
         * because they may call it at once. */
        const struct hf__cel_value *items;
        struct hf__cel_value (*at)(const struct hf__cel_list *list, size_t i);
        /* Not NULL: a set, or a map that is written as a list. If this list is the left operand, ==
         * ignores the order, and + joins by the keys (hf__cel_union). `key` returns an element's
         * key: a BOOL, a number, a STRING or BYTES, or an error. It may allocate from the run. */
        struct hf__cel_value (*key)(struct hf__cel_run *run, const struct hf__cel_list *list,
                                    struct hf__cel_value element);
        bool replaces;    /* with key: + puts an element into the place of the one with its key */
        const void *data; /* for the functions above */
};

struct hf__cel_entry {
        /* BOOL, INT, UINT or STRING; in a map of the keys of list elements (run.c) also DOUBLE or
         * BYTES */
        struct hf__cel_value key;
        struct hf__cel_value value;
};

struct hf__cel_map {
        size_t n;
        /* NULL: the functions below make and find entries. They must be pure if several
         * evaluations use the map. */
        const struct hf__cel_entry *entries;
        /* The indexes of the entries in the order of their keys (hf__cel_map_index). May be NULL:
         * then a look-up goes through all entries, and nothing charges that. */
        const uint32_t *order;
        struct hf__cel_entry (*at)(const struct hf__cel_map *map, size_t i);
        bool (*find)(const struct hf__cel_map *map, struct hf__cel_value key,
                     struct hf__cel_value *ret_value);
        const void *data;                /* for the functions above */
        const struct hf__cel_type *type; /* of an OBJECT */
};

/* A value of a type of a library, for example an address. The struct of the library begins with
 * this one. */
struct hf__cel_opaque {
        const struct hf__cel_type *type;
        /* Compares two values of this type. */
        bool (*equal)(const struct hf__cel_opaque *a, const struct hf__cel_opaque *b);
        size_t n_text; /* bytes of text that equal may read: == is charged for those of both */
};

struct hf__cel_value hf__cel_null(void);
struct hf__cel_value hf__cel_bool(bool value);
struct hf__cel_value hf__cel_int(int64_t value);
struct hf__cel_value hf__cel_uint(uint64_t value);
struct hf__cel_value hf__cel_double(double value);
struct hf__cel_value hf__cel_string(const char *text, size_t n); /* n < 2^32 */
struct hf__cel_value hf__cel_bytes(const void *data, size_t n);  /* n < 2^32 */
struct hf__cel_value hf__cel_type_value(const struct hf__cel_type *type);
struct hf__cel_value hf__cel_list_value(const struct hf__cel_list *list);
struct hf__cel_value hf__cel_map_value(const struct hf__cel_map *map);
struct hf__cel_value hf__cel_opaque_value(const struct hf__cel_opaque *opaque);
/* An error. The message is borrowed: static, or in the arena of the evaluation. */
struct hf__cel_value hf__cel_error_text(const char *message);

static inline bool hf__cel_is_error(struct hf__cel_value value) {
        return value.kind == HF__CEL_ERROR;
}

/* The element or entry number i, which must exist. */
struct hf__cel_value hf__cel_list_at(const struct hf__cel_list *list, size_t i);
struct hf__cel_entry hf__cel_map_at(const struct hf__cel_map *map, size_t i);
/* Whether the map has the key; if so, *ret_value is its value. Numbers of different types are the
 * same key if they are exactly equal, without rounding. The key must be a BOOL, a number, a STRING
 * or BYTES: the caller refuses keys of other kinds. */
bool hf__cel_map_find(const struct hf__cel_map *map, struct hf__cel_value key,
                      struct hf__cel_value *ret_value);
/* Compares keys, none of them a NaN, in a total order: booleans, numbers, texts. Of two texts a
 * shorter one is first. A key must be a BOOL, a number, a STRING or BYTES. */
int hf__cel_key_compare(struct hf__cel_value a, struct hf__cel_value b);
/* Sorts the indexes of n entries by their keys. Returns whether two keys are equal. */
bool hf__cel_map_index(const struct hf__cel_entry *entries, size_t n, uint32_t *order);
/* Compares numbers of any kinds, none of them a NaN. As in cel-go, a whole number is rounded to the
 * nearest double before it is compared with a double. */
int hf__cel_number_compare(struct hf__cel_value a, struct hf__cel_value b);
bool hf__cel_is_number(struct hf__cel_value value);
/* The type of a value, for `type(x)`, messages and the checker. */
const struct hf__cel_type *hf__cel_value_type(struct hf__cel_value value);

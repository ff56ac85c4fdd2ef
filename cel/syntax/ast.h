/* SPDX-License-Identifier: Apache-2.0 */
#pragma once
/*
 * The tree of an expression. The parser makes the tree, the checker writes types and resolves
 * names in it, and hf__cel_prepare turns its constant parts into values and compiles its literal
 * patterns. Then the tree does not change: evaluations of several threads may share it. All of it
 * belongs to the arena of the program.
 */
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "cel/values/value.h"

struct hf__cel_overload;

enum hf__cel_node_kind {
        HF__CEL_NODE_CONST,
        HF__CEL_NODE_NAME,
        HF__CEL_NODE_SELECT,
        HF__CEL_NODE_HAS, /* has(operand.field) */
        HF__CEL_NODE_CALL,
        HF__CEL_NODE_LIST,
        HF__CEL_NODE_MAP,
        HF__CEL_NODE_OBJECT, /* Name{field: value} */
        HF__CEL_NODE_FOLD,   /* a macro that evaluates an expression for each element */
};

/* Operators that the evaluator carries out itself, because they do not evaluate all their operands
 * or because that is quicker than a call. */
enum hf__cel_operator {
        HF__CEL_OP_NONE, /* a call of a function */
        HF__CEL_OP_AND,
        HF__CEL_OP_OR,
        HF__CEL_OP_CONDITION,
        HF__CEL_OP_EQUAL,
        HF__CEL_OP_NOT_EQUAL,
        HF__CEL_OP_OR_VALUE, /* optional.orValue(x) */
        HF__CEL_OP_OR_OTHER, /* optional.or(optional) */
};

/* The macros whose result has the size 1 come first: estimate.c relies on the order. */
enum hf__cel_fold {
        HF__CEL_FOLD_ALL,
        HF__CEL_FOLD_EXISTS,
        HF__CEL_FOLD_EXISTS_ONE,
        HF__CEL_FOLD_LIST,         /* map, transformList: a list of `result` where `test` is true */
        HF__CEL_FOLD_FILTER,       /* a list of the elements where `test` is true */
        HF__CEL_FOLD_MAP,          /* transformMap: the keys stay */
        HF__CEL_FOLD_MAP_ENTRY,    /* transformMapEntry: `result` is a map of new entries */
        HF__CEL_FOLD_OPT_MAP,      /* optMap: `result` of what an optional holds, as an optional */
        HF__CEL_FOLD_OPT_FLAT_MAP, /* optFlatMap: the same, but `result` is an optional itself */
        HF__CEL_FOLD_SORT,         /* sortBy: the elements in the order of `result` */
};

enum hf__cel_scope {
        HF__CEL_SCOPE_NONE,  /* not resolved yet, or never */
        HF__CEL_SCOPE_INPUT, /* slot: the number of a declared variable */
        HF__CEL_SCOPE_LOCAL, /* slot: the variable of a macro */
};

struct hf__cel_name {
        const char *text; /* with a NUL; of a NAME or an OBJECT it may begin with a dot */
        uint32_t n;
        uint32_t at; /* byte of the expression */
};

struct hf__cel_pair {
        struct hf__cel_node *key; /* of a map */
        struct hf__cel_name name; /* of an object's field */
        struct hf__cel_node *value;
        bool optional;
        uint32_t at; /* of the colon */
};

struct hf__cel_node {
        uint8_t kind;
        uint8_t op; /* an operator of a CALL, an enum hf__cel_fold of a FOLD */
        bool in_parentheses;
        bool optional;                   /* SELECT: a.?b */
        bool quoted;                     /* SELECT: a.`b` */
        uint16_t depth;                  /* levels, this one included */
        uint32_t at;                     /* byte of the expression that messages point at */
        const struct hf__cel_type *type; /* set by the checker */
        union {
                struct hf__cel_value constant;
                struct {
                        struct hf__cel_name name;
                        enum hf__cel_scope scope;
                        uint32_t slot;
                } name;
                struct {
                        struct hf__cel_node *operand;
                        struct hf__cel_name field;
                } select; /* of SELECT and HAS */
                struct {
                        const char *function;
                        const struct hf__cel_overload *const *overloads; /* those that may match */
                        struct hf__cel_node **args; /* the target is the first */
                        uint32_t n_args;
                        uint16_t n_overloads;
                        bool member;
                        const void *prepared; /* a compiled pattern, or NULL */
                } call;
                struct {
                        struct hf__cel_node **items;
                        bool *optional; /* NULL: none is */
                        uint32_t n;
                } list;
                struct {
                        struct hf__cel_name name; /* of an OBJECT */
                        struct hf__cel_pair *pairs;
                        uint32_t n;
                } map;
                struct {
                        struct hf__cel_node *range;
                        struct hf__cel_name variables[2]; /* without a second, its text is NULL */
                        uint32_t slot;                    /* of the first variable */
                        struct hf__cel_node *test;        /* may be NULL */
                        struct hf__cel_node *result;      /* may be NULL */
                } fold;
        } as;
};

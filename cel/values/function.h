/* SPDX-License-Identifier: Apache-2.0 */
#pragma once
/*
 * The functions that an expression can call. Each is a row of a table, with its signature as text;
 * library.c makes an overload of each row, with its types. Neither changes afterwards. Thread: any.
 */
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "cel/values/run.h"

/* The cost of a call, as Kubernetes charges it; sizes are characters, bytes or elements. */
enum hf__cel_cost {
        HF__CEL_COST_ONE,
        HF__CEL_COST_FIRST,      /* a tenth of the first argument */
        HF__CEL_COST_TWICE,      /* a fifth of the first argument */
        HF__CEL_COST_JOIN,       /* a fifth of the text that the call makes */
        HF__CEL_COST_SHORTER,    /* a tenth of the shorter argument */
        HF__CEL_COST_BOTH,       /* a tenth of both */
        HF__CEL_COST_CONTAINS,   /* a tenth of the first times a tenth of the second */
        HF__CEL_COST_MATCHES,    /* a tenth of (the first + 1) times a quarter of the second */
        HF__CEL_COST_WALK,       /* the first argument with all its parts */
        HF__CEL_COST_IN,         /* the elements of the second argument */
        HF__CEL_COST_SETS,       /* 1, and the product of both sizes */
        HF__CEL_COST_SETS_TWICE, /* 1, and twice that product */
        /* 1 for the call, 10 for a new list, and its elements: */
        HF__CEL_COST_COPY,   /* as many as the first argument has */
        HF__CEL_COST_SLICE,  /* from the second argument to the third */
        HF__CEL_COST_RANGE,  /* as many as the first argument says */
        HF__CEL_COST_LEVELS, /* as many as the first has, times the second, if any */
        HF__CEL_COST_PAIRS,  /* pairs of the last argument's elements (hf__cel_charge_pairs) */
        HF__CEL_COST_AUTHORIZATION,
        HF__CEL_COST_SELECTOR, /* 10, and the worst case of parsing the second argument */
};

#define HF__CEL_AUTHORIZATION_COST 350000 /* of one check of a right */

/* Each argument has the kind that the signature names, with these exceptions: a dyn or a type
 * parameter may be of any kind, and so may an element of a list or a map; an object may stand for a
 * map; an index (any_number) may be any number. A function never sees an error among its arguments.
 * It may allocate from the run. */
typedef struct hf__cel_value hf__cel_function(struct hf__cel_run *run,
                                              const struct hf__cel_value *args, unsigned n_args);

struct hf__cel_row {
        const char *name;
        /* ".string(int) -> string" is a member of strings: s.f(1). "(A) -> int" is no member, and
         * takes any type: f(x). "?(int) -> int" takes a dyn that turns out to be an int, and
         * nothing that is declared as one. */
        const char *signature;
        hf__cel_function *call;
        enum hf__cel_cost cost;
};

#define HF__CEL_ARGS_MAX 4

struct hf__cel_overload {
        const char *name;
        hf__cel_function *call;
        enum hf__cel_cost cost;
        bool member;
        bool any_number; /* for an int it also takes a uint or a double */
        bool only_dyn;   /* its first argument must be declared as a dyn */
        unsigned n_args; /* the target included */
        const struct hf__cel_type *args[HF__CEL_ARGS_MAX];
        const struct hf__cel_type *result;
};

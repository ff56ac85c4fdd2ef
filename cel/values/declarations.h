/* SPDX-License-Identifier: Apache-2.0 */
#pragma once
/* The names that an expression may use. The caller owns all of it, and keeps the declarations, with
 * all that they point to, as long as a program that was compiled with them. Thread: any, since
 * nothing of it changes. */
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "cel/values/type.h"

struct hf__cel_library;

struct hf__cel_variable {
        const char *name; /* "object"; may be qualified: "a.b" */
        const struct hf__cel_type *type;
};

/* The caller's named time zones. The caller provides them, because this module reads no files. */
struct hf__cel_zones {
        /* Sets *ret_offset to the zone's offset from UTC at `seconds` since 1970, in seconds; it
         * must be less than 100 hours. The name has no "..", no colon, and does not begin with a
         * slash. false: there is no such zone. Evaluations call it on their threads. */
        bool (*offset)(void *ctx, const char *name, size_t n, int64_t seconds, int64_t *ret_offset);
        void *ctx;
};

struct hf__cel_declarations {
        const struct hf__cel_library *functions;
        /* An evaluation gets the values of the variables in this order. */
        const struct hf__cel_variable *variables;
        size_t n_variables;
        /* Types that an expression may construct: Name{field: value}. */
        const struct hf__cel_type *const *objects;
        size_t n_objects;
        /* "Object": objects of this type, and of types whose names begin with it and a dot, may be
         * constructed with any fields, which are dyn. NULL: there is no such type. */
        const char *open_object;
        /* Lists and maps in an expression may mix types, as the specification allows. Kubernetes
         * refuses that. */
        bool mixed_literals;
        const struct hf__cel_zones *zones; /* NULL: only UTC and fixed offsets are known */
        /* The most levels of an expression; 0, or more than 250, means 250. They bound the stack of
         * a compilation and of an evaluation. */
        unsigned max_depth;
};

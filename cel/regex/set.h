/* SPDX-License-Identifier: Apache-2.0 */
#pragma once
/*
 * Sets of characters. A set begins as {0}, gets ranges, and is finished; only then can it be
 * searched. Its memory belongs to the arena of its maker. Thread: one while the set is made, any
 * after it is finished.
 */
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

struct hf__arena;

struct hf__cel_range {
        uint32_t first;
        uint32_t last;
};

struct hf__cel_set {
        struct hf__cel_range *ranges; /* once finished: sorted, without overlaps */
        size_t n;
        size_t space;                   /* ranges for which there is memory */
        uint64_t ascii[2];              /* once finished: a bit for each character below 128 */
        const struct hf__cel_set *kept; /* regex_program.c: the copy in a program; NULL = none */
};

/* What the making of sets takes. A few bytes of a pattern can name thousands of ranges, so the work
 * is counted; syntax.c and regex_program.c add that of the rest of the pattern. */
struct hf__cel_set_maker {
        struct hf__arena *arena; /* borrowed */
        uint64_t work;           /* so far, in steps as those of hf__cel_work */
};

/* Adds the range from `first` to `last`. `fold`: also adds the characters that differ only in case
 * from those of the range. False: out of memory. */
bool hf__cel_set_add(struct hf__cel_set_maker *maker, struct hf__cel_set *set, uint32_t first,
                     uint32_t last, bool fold);
/* Adds a finished set. false: out of memory. */
bool hf__cel_set_add_set(struct hf__cel_set_maker *maker, struct hf__cel_set *set,
                         const struct hf__cel_set *other);
/* Adds the class \d, \s, \w, \D, \S or \W; `name` is its letter. false: out of memory. */
bool hf__cel_set_add_perl(struct hf__cel_set_maker *maker, struct hf__cel_set *set, char name,
                          bool fold);
/* Adds a class like "alpha". negated: adds the characters that the class, with `fold` if set, does
 * not have. false: out of memory or, if *ret_known is false, there is no such class. */
bool hf__cel_set_add_posix(struct hf__cel_set_maker *maker, struct hf__cel_set *set,
                           const char *name, size_t n, bool negated, bool fold, bool *ret_known);
/* Sorts the set, and turns it into its complement if `negated`. false: out of memory. */
bool hf__cel_set_finish(struct hf__cel_set_maker *maker, struct hf__cel_set *set, bool negated);
bool hf__cel_set_has(const struct hf__cel_set *set, uint32_t c); /* of a finished set */

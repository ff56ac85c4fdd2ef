/* SPDX-License-Identifier: Apache-2.0 */
#pragma once
/* The program of a regular expression, which a search follows (search.c). Owner: an arena.
 * Immutable once made. Thread: any. */
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "cel/regex/syntax.h"

enum hf__cel_instruction_kind {
        HF__CEL_DO_SET,    /* reads a character of the set, then goes to the next instruction */
        HF__CEL_DO_ASSERT, /* goes to the next instruction if the assertion holds here */
        HF__CEL_DO_SPLIT,  /* goes to x and to y; a match through x is preferred */
        HF__CEL_DO_JUMP,   /* goes to x */
        HF__CEL_DO_MATCH,  /* the pattern has matched */
};

struct hf__cel_instruction {
        enum hf__cel_instruction_kind kind;
        enum hf__cel_assertion assertion; /* of an ASSERT */
        const struct hf__cel_set *set;    /* of a SET */
        uint32_t x; /* of a SPLIT or JUMP: the index of an instruction; of others: the next one */
        uint32_t y; /* of a SPLIT: the index of the other instruction */
};

struct hf__cel_regex {
        struct hf__cel_instruction *instructions; /* the last one is a MATCH */
        uint32_t n;
        size_t n_bytes; /* of memory that the regex takes in the arena */
        bool anchored;  /* a match can begin only at the beginning of the text */
};

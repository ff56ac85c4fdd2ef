/* SPDX-License-Identifier: Apache-2.0 */
#pragma once
/* The program of a regular expression: what the search follows. Immutable once made. */
#include <stdint.h>

#include "cel/regex/syntax.h"

enum hf__cel_instruction_kind {
        HF__CEL_DO_SET,    /* a character of the set, then the next instruction */
        HF__CEL_DO_ASSERT, /* a condition on the place, then the next instruction */
        HF__CEL_DO_SPLIT,  /* x is preferred to y */
        HF__CEL_DO_JUMP,   /* to x */
        HF__CEL_DO_MATCH,
};

struct hf__cel_instruction {
        enum hf__cel_instruction_kind kind;
        enum hf__cel_assertion assertion; /* of an ASSERT */
        const struct hf__cel_set *set;    /* of a SET */
        uint32_t x;                       /* of a SPLIT or JUMP: the index of an instruction */
        uint32_t y;                       /* of a SPLIT: the same */
};

struct hf__cel_regex {
        struct hf__cel_instruction *instructions;
        uint32_t n;
        bool anchored; /* a match can begin only at the beginning of the text */
};

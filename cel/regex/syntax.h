/* SPDX-License-Identifier: Apache-2.0 */
#pragma once
/*
 * Reads a regular expression in the syntax of RE2 into a tree. Pure. Thread: any, with an arena of
 * its own.
 */
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "cel/regex/set.h"

enum hf__cel_regex_kind {
        HF__CEL_REGEX_EMPTY,
        HF__CEL_REGEX_SET,
        HF__CEL_REGEX_SEQUENCE, /* the children, one after the other */
        HF__CEL_REGEX_CHOICE,   /* one of the children; earlier ones are preferred */
        HF__CEL_REGEX_REPEAT,   /* the child, `min` to `max` times */
        HF__CEL_REGEX_ASSERTION,
};

enum hf__cel_assertion {
        HF__CEL_BEGIN_TEXT,
        HF__CEL_END_TEXT,
        HF__CEL_BEGIN_LINE,
        HF__CEL_END_LINE,
        HF__CEL_WORD_EDGE,
        HF__CEL_NO_WORD_EDGE,
};

/* The largest number in {n,m}, and the largest product of those of nested repetitions, as in RE2.
 */
#define HF__CEL_REPEAT_MAX 1000
#define HF__CEL_NO_MAX     UINT32_MAX

struct hf__cel_regex_node {
        enum hf__cel_regex_kind kind;
        struct hf__cel_regex_node *next;  /* the next child of the same parent */
        struct hf__cel_regex_node *child; /* the first child */
        struct hf__cel_set set;           /* of a SET; finished */
        enum hf__cel_assertion assertion; /* of an ASSERTION */
        uint32_t min;                     /* of a REPEAT */
        uint32_t max;                     /* of a REPEAT; HF__CEL_NO_MAX: no limit */
        bool lazy;                        /* of a REPEAT: fewer rounds are preferred */
        bool nullable;                    /* it can match without reading a character */
        /* The most copies of one part of the node that its repetitions need: the largest product of
         * the counts of nested ones. At most HF__CEL_REPEAT_MAX. */
        uint16_t copies;
};

/* Parses n bytes. The nodes and their sets belong to maker->arena, and the work that was done is
 * added to maker->work. Returns 0, -ENOMEM, HF_E_INVALID (Go refuses the pattern, too) or
 * HF_E_TOO_LARGE (the pattern exceeds a limit that Go does not have, or has higher). The last two
 * come with a message in reterr_message, which is cut to max_message bytes and ends with a NUL. */
int hf__cel_regex_parse(struct hf__cel_set_maker *maker, const char *text, size_t n,
                        struct hf__cel_regex_node **ret_root, char *reterr_message,
                        size_t max_message);

/* SPDX-License-Identifier: Apache-2.0 */
#pragma once
/* Reads a regular expression into a tree. Pure. */
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "cel/regex/set.h"

enum hf__cel_regex_kind {
        HF__CEL_REGEX_EMPTY,
        HF__CEL_REGEX_SET,
        HF__CEL_REGEX_SEQUENCE, /* of children */
        HF__CEL_REGEX_CHOICE,   /* of children */
        HF__CEL_REGEX_REPEAT,   /* of its child */
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

#define HF__CEL_REPEAT_MAX 1000
#define HF__CEL_NO_MAX     UINT32_MAX

struct hf__cel_regex_node {
        enum hf__cel_regex_kind kind;
        struct hf__cel_regex_node *next;  /* the next child of the same parent */
        struct hf__cel_regex_node *child; /* the first one */
        struct hf__cel_set set;
        enum hf__cel_assertion assertion;
        uint32_t min;
        uint32_t max; /* HF__CEL_NO_MAX: no limit */
        bool lazy;
};

/* 0, -ENOMEM, or HF_E_INVALID with a message. */
int hf__cel_regex_parse(struct hf__arena *arena, const char *text, size_t n,
                        struct hf__cel_regex_node **ret_root, char *reterr_message,
                        size_t max_message);

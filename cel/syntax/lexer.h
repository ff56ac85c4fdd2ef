/* SPDX-License-Identifier: Apache-2.0 */
#pragma once
/* Tokens of an expression. Pure; the tokens are offsets into the text. */
#include <stddef.h>
#include <stdint.h>

struct hf__arena;
struct hf__cel_issues;

enum hf__cel_token_kind {
        HF__CEL_TOKEN_END,
        HF__CEL_TOKEN_NAME,
        HF__CEL_TOKEN_QUOTED_NAME, /* `a-b` */
        HF__CEL_TOKEN_INT,
        HF__CEL_TOKEN_UINT,
        HF__CEL_TOKEN_FLOAT,
        HF__CEL_TOKEN_STRING,
        HF__CEL_TOKEN_BYTES,
        HF__CEL_TOKEN_WORD, /* in, true, false, null */
        HF__CEL_TOKEN_SIGN, /* one or two characters */
};

struct hf__cel_token {
        uint8_t kind;
        uint32_t at; /* byte of the text */
        uint32_t n;  /* bytes; 0 at the end */
};

/* Returns all tokens of issues->text; the last one is an END. A text that is not a token becomes an
 * issue. NULL: out of memory. */
const struct hf__cel_token *hf__cel_lex(struct hf__arena *arena, struct hf__cel_issues *issues);

/* SPDX-License-Identifier: Apache-2.0 */
#pragma once
/*
 * The mistakes in an expression, as Kubernetes shows them: each issue with its line and column,
 * the line, and a mark below the place. Owner: the compilation. Thread: the owner's.
 */
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

struct hf__arena;
struct hf__strbuf;

#define HF__CEL_NO_PLACE UINT32_MAX

struct hf__cel_issue;

struct hf__cel_issues {
        struct hf__arena *arena; /* of the issues */
        const char *text;        /* the expression; the caller's */
        size_t n_text;
        struct hf__cel_issue *first; /* in the order of their places */
        unsigned n;
};

/* Adds an issue at a byte of the text, or at HF__CEL_NO_PLACE. The message is cut to 1023 bytes.
 * After 100 issues it only counts. */
void hf__cel_issues_add(struct hf__cel_issues *issues, uint32_t at, const char *format, ...)
        __attribute__((format(printf, 3, 4)));
void hf__cel_issues_print(const struct hf__cel_issues *issues, struct hf__strbuf *out);

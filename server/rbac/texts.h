/* SPDX-License-Identifier: Apache-2.0 */
#pragma once
/*
 * A table of texts. Each text has a number, so that rules compare numbers. One thread adds texts
 * while it builds an index. From then on the table is immutable, and any thread may search it.
 */
#include <stddef.h>
#include <stdint.h>

/* No text has this number. */
#define HFD_TEXT_NONE 0u
/* The numbers that every table has. */
#define HFD_TEXT_STAR  1u /* "*" */
#define HFD_TEXT_EMPTY 2u /* "" */

struct hfd_texts {
        char *bytes; /* owned; all texts, each with its NUL */
        size_t n_bytes, space;
        uint32_t *offsets; /* owned; by number, in bytes */
        uint32_t n, n_space;
        uint32_t *slots; /* owned; the hash table of numbers; n_slots is a power of two, or 0 */
        uint32_t n_slots;
};

/* 0 or -ENOMEM. Adds "*" and "". */
int hfd_texts_init(struct hfd_texts *texts);
void hfd_texts_done(struct hfd_texts *texts); /* accepts {0} */
/* Adds a text of n bytes, without a NUL among them, unless it is there. HFD_TEXT_NONE: out of
 * memory, or too many bytes. */
uint32_t hfd_texts_add(struct hfd_texts *texts, const char *text, size_t n);
/* Returns the number of a text of n bytes, without a NUL among them. HFD_TEXT_NONE: the table does
 * not contain the text. */
uint32_t hfd_texts_find(const struct hfd_texts *texts, const char *text, size_t n);
/* Returns the text with this number, borrowed from the table until the next hfd_texts_add or
 * hfd_texts_shrink. */
const char *hfd_texts_at(const struct hfd_texts *texts, uint32_t number);
/* Frees the memory that was allocated for further texts, apart from the slots. */
void hfd_texts_shrink(struct hfd_texts *texts);

/* SPDX-License-Identifier: Apache-2.0 */
#pragma once
/* Small questions about characters and strings, and copies of strings. The answers do not depend on
 * the locale, because protocols and file formats define their syntax in ASCII. Pure. Thread: any.
 */
#include <stdbool.h>
#include <string.h>

static inline bool hf__is_digit(char c) { return c >= '0' && c <= '9'; }

/* The value of a hexadecimal digit; -1: the character is no such digit. */
static inline int hf__hex_digit(char c) {
        if (hf__is_digit(c))
                return c - '0';
        if (c >= 'a' && c <= 'f')
                return c - 'a' + 10;
        return c >= 'A' && c <= 'F' ? c - 'A' + 10 : -1;
}

static inline bool hf__text_begins_with(const char *text, const char *prefix) {
        return strncmp(text, prefix, strlen(prefix)) == 0;
}

/* Whether the list, which ends with NULL, contains the text. */
static inline bool hf__text_is_one_of(const char *text, const char *const *list) {
        while (*list && strcmp(*list, text) != 0)
                list++;
        return *list != NULL;
}

/* For qsort and bsearch: compares two elements of an array of strings. */
static inline int hf__text_compare(const void *a, const void *b) {
        return strcmp(*(const char *const *)a, *(const char *const *)b);
}

/* For a block of memory with several texts. Copies text with its NUL to *at, moves *at behind the
 * copy, and returns the copy. The caller has made the block large enough. text NULL: copies nothing
 * and returns NULL. */
static inline char *hf__text_copy(char **at, const char *text) {
        char *copy = *at;

        if (!text)
                return NULL;
        *at = stpcpy(copy, text) + 1;
        return copy;
}

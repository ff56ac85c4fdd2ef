/* SPDX-License-Identifier: Apache-2.0 */
#pragma once
/* Classes of Unicode (L, Lu, Letter, Greek), and which characters Go prints as they are or trims.
 * Pure. Thread: any. */
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "cel/regex/set.h"

/* Adds the class with a name of n bytes. In the name the case of letters, spaces, hyphens and
 * underscores do not count. fold: the class also has the characters that differ from its own only
 * in case (Lc does not, as in Go). negated: adds the characters that the class does not have. A '^'
 * before the name swaps the meaning of negated. False: out of memory; or, if *ret_known is false,
 * there is no such class. */
bool hf__cel_set_add_unicode(struct hf__cel_set_maker *maker, struct hf__cel_set *set,
                             const char *name, size_t n, bool negated, bool fold, bool *ret_known);
/* Whether Go's strconv.IsPrint is true: a letter, mark, number, punctuation or symbol, or the ASCII
 * space. character: at most 0x10ffff. */
bool hf__cel_unicode_is_printed(uint32_t character);
/* Whether Go's unicode.IsSpace is true: white space as Unicode defines it. */
bool hf__cel_unicode_is_space(uint32_t character);

/* SPDX-License-Identifier: Apache-2.0 */
#pragma once
/* Finds the known name that a misspelt one may have meant. Pure. Thread: any. */
#include <stdbool.h>
#include <stddef.h>

/*
 * Offers one known name to a search. Call this for each name, in any order, with *best NULL at
 * first. *best becomes `known` (borrowed) if that is near to the n bytes of given, and nearer than
 * *best was. A name is near if at most two of its letters, and at most half of them, are wrong,
 * missing, too many or swapped with their neighbour. '_' counts as '-'. A name of more than 64
 * bytes is near to none.
 */
void hfd_hint_offer(const char *given, size_t n, const char *known, const char **best);

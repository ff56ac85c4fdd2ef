/* SPDX-License-Identifier: Apache-2.0 */
#pragma once
/* Which known name a misspelt one may have meant. Pure. Thread: any. */
#include <stdbool.h>
#include <stddef.h>

/*
 * Offers one known name to a search; call it for each, in any order. *best is NULL at first. It
 * becomes `known` (borrowed) if that is nearer to the n bytes of given than *best is. Near means
 * at most two letters that are wrong, missing, too many or swapped with their neighbour, and that
 * at least half of the letters are right. '_' counts as '-'.
 */
void hfd_hint_offer(const char *given, size_t n, const char *known, const char **best);

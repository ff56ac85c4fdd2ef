/* SPDX-License-Identifier: Apache-2.0 */
/* See counted_key_index.h. The linker takes this copy of client/key_index.c in place of the
 * product's. */
#include "counted_key_index.h"

#include <string.h>

static _Thread_local uint64_t n_comparisons;

uint64_t counted_key_index_comparisons(void) { return n_comparisons; }

static int count_strcmp(const char *a, const char *b) {
        n_comparisons++;
        return strcmp(a, b);
}

#undef strcmp
#define strcmp count_strcmp
#include "client/key_index.c"

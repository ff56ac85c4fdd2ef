/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Remembers which parts of an object equal those that they replace (compared.h).
 *
 * Invariant: a pair of parts is found by its addresses, so no part may be freed or changed while
 * the results are kept. Only objects and lists are remembered: a scalar is compared as fast as its
 * result is found.
 */
#include "server/resources/custom/schema/check/compared.h"

#include <search.h>
#include <stdint.h>
#include <stdlib.h>

#include "base/arena.h"
#include "base/json.h"
#include "server/resources/causes.h"

struct pair {
        const struct hf__json *value, *old;
        bool equal;
};

static int compare_addresses(const void *a, const void *b) {
        const uintptr_t x = (uintptr_t)a, y = (uintptr_t)b;

        return (x > y) - (x < y);
}

/* For tsearch. */
static int compare_pairs(const void *a, const void *b) {
        const struct pair *x = a, *y = b;
        const int r = compare_addresses(x->value, y->value);

        return r != 0 ? r : compare_addresses(x->old, y->old);
}

/* For hf__json_are_equal_knowing. */
static bool find_result(const void *ctx, const struct hf__json *value, const struct hf__json *old,
                        bool *ret_equal) {
        const struct hfd_compared *compared = ctx;
        const struct pair wanted = {.value = value, .old = old};
        void *found = tfind(&wanted, &compared->tree, compare_pairs);

        if (found)
                *ret_equal = (*(struct pair *const *)found)->equal;
        return found != NULL;
}

void hfd_compared_init(struct hfd_compared *compared, struct hf__arena *arena) {
        *compared = (struct hfd_compared){.arena = arena};
}

/* A node of <search.h> begins with the pointer that was added. The pairs are in the arena. */
void hfd_compared_done(struct hfd_compared *compared) {
        while (compared->tree)
                (void)tdelete(*(struct pair **)compared->tree, &compared->tree, compare_pairs);
}

bool hfd_compared_equal(struct hfd_compared *compared, struct hfd_causes *causes,
                        const struct hf__json *value, const struct hf__json *old) {
        struct pair *pair;
        bool equal;
        int r = hf__json_are_equal_knowing(value, old, find_result, compared, &equal);

        if (!hfd_causes_check(causes, r))
                return false;
        if ((!hf__json_is_object(value) && !hf__json_is_array(value)) ||
            find_result(compared, value, old, &equal))
                return equal;
        pair = hf__arena_alloc(compared->arena, sizeof *pair);
        if (pair) {
                *pair = (struct pair){.value = value, .old = old, .equal = equal};
                if (tsearch(pair, &compared->tree, compare_pairs))
                        return equal;
        }
        hfd_causes_no_memory(causes);
        return false;
}

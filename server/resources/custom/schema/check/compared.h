/* SPDX-License-Identifier: Apache-2.0 */
#pragma once
/*
 * Compares parts of an object with the parts of the old object that they replace, and remembers the
 * results, so that a part within another one is not compared again. Thread: owner only.
 */
#include <stdbool.h>

struct hf__arena;
struct hf__json;
struct hfd_causes;

struct hfd_compared {
        void *tree; /* of <search.h>: the pairs that were compared, by their addresses */
        struct hf__arena *arena; /* borrowed; has the pairs */
};

/* The arena, and all values that are compared, must stay until hfd_compared_done. The values must
 * not change until then. */
void hfd_compared_init(struct hfd_compared *compared, struct hf__arena *arena);
/* Frees the tree. Its pairs stay in the arena, which frees them. */
void hfd_compared_done(struct hfd_compared *compared);
/* Whether value and old are equal. If memory runs out, the causes note that, and the result is
 * false. */
bool hfd_compared_equal(struct hfd_compared *compared, struct hfd_causes *causes,
                        const struct hf__json *value, const struct hf__json *old);

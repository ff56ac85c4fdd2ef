/* SPDX-License-Identifier: Apache-2.0 */
/* Shuffle sharding: chooses for each flow its hand, the few queues that it may use. Invariant: the
 * queues of a hand differ, and ascend. */
#include "server/flow/core/dealer.h"

#include <assert.h>

/*
 * Draws without replacement: the i-th draw chooses among the queues that are left, so its number is
 * moved past each of the smaller ones that the hand has already.
 */
void hfd_dealer_deal(uint64_t hash, unsigned n_queues, unsigned n_hand,
                     unsigned ret_hand[HFD_HAND_MAX]) {
        assert(n_hand >= 1 && n_hand <= n_queues && n_hand <= HFD_HAND_MAX);
        for (unsigned i = 0; i < n_hand; i++) {
                unsigned left = n_queues - i, at = 0, queue = (unsigned)(hash % left);

                hash /= left;
                while (at < i && ret_hand[at] <= queue) {
                        at++;
                        queue++;
                }
                for (unsigned j = i; j > at; j--)
                        ret_hand[j] = ret_hand[j - 1];
                ret_hand[at] = queue;
        }
}

/* FNV-1a, whose bits are mixed at the end because the deal uses all of them. */
uint64_t hfd_dealer_hash(uint64_t seed, const char *text) {
        uint64_t hash = seed ^ UINT64_C(14695981039346656037);

        for (const char *c = text; *c; c++)
                hash = (hash ^ (unsigned char)*c) * UINT64_C(1099511628211);
        hash ^= hash >> 33;
        hash *= UINT64_C(0xff51afd7ed558ccd);
        hash ^= hash >> 33;
        hash *= UINT64_C(0xc4ceb9fe1a85ec53);
        return hash ^ (hash >> 33);
}

/* SPDX-License-Identifier: Apache-2.0 */
#pragma once
/*
 * Shuffle sharding, for the queues of a priority level: each flow has a hand of queues, which
 * depends on its hash only. Two flows seldom have the same hand, so a greedy flow fills its own
 * queues, and another flow still finds an empty queue in its hand. Pure. Thread: any.
 */
#include <stdint.h>

/* The largest hand. As in Kubernetes, a deal may use 60 bits of a hash: for each queue of the hand
 * log2(n_queues). A hand of 16 is dealt from at least 16 queues, so it would need 64 bits. */
#define HFD_HAND_MAX 15

/*
 * Deals a hand of different queues, numbers below n_queues, in ascending order. Every hand is about
 * equally likely, if the deal uses 60 bits at most. n_hand is at least 1, and at most n_queues and
 * HFD_HAND_MAX.
 */
void hfd_dealer_deal(uint64_t hash, unsigned n_queues, unsigned n_hand,
                     unsigned ret_hand[HFD_HAND_MAX]);

/* The hash of a flow. seed: stands for the FlowSchema. text: the flow distinguisher. */
uint64_t hfd_dealer_hash(uint64_t seed, const char *text);

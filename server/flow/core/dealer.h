/* SPDX-License-Identifier: Apache-2.0 */
#pragma once
/*
 * Shuffle sharding: each flow has a hand of queues, which depends on its hash only. Two flows
 * seldom have the same hand, so a greedy flow fills its own queues, and another one still finds an
 * empty queue in its hand. Pure. Thread: any.
 */
#include <stdint.h>

/* The largest hand: dealing one must need no more than 60 bits of a hash, as in Kubernetes. */
#define HFD_HAND_MAX 15

/*
 * Deals a hand of different queues, numbers below n_queues, in ascending order. Every hand is about
 * equally likely. n_hand is at least 1, and at most n_queues and HFD_HAND_MAX.
 */
void hfd_dealer_deal(uint64_t hash, unsigned n_queues, unsigned n_hand,
                     unsigned ret_hand[HFD_HAND_MAX]);

/* The hash of a flow: of a seed (the FlowSchema) and what distinguishes the flows of that schema.
 */
uint64_t hfd_dealer_hash(uint64_t seed, const char *text);

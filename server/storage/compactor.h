/* SPDX-License-Identifier: Apache-2.0 */
#pragma once
/*
 * The compactor removes old history from the store, once in each interval. An interval has
 * HFD_COMPACT_N_STEPS steps of equal length, which are counted in the store. Every instance runs a
 * compactor, but at most one of them adds each step. While the store is available, the history of
 * about the last one to two intervals stays, or of somewhat more after the instance that added the
 * steps has ended.
 *
 * The value of the compact key (keys.h) has two numbers: the target, which is the revision of the
 * next compaction, and how many steps it has waited. Once per step each instance reads the key. If
 * no instance has written it since this one read it a step ago, this one tries to add a step.
 * The instance that adds the last step compacts at the target, and makes the store's current
 * revision the next target.
 *
 * The steps are in the store, so an instance that starts goes on where others, or itself before a
 * restart, have stopped. Instances that run for little more than one step at a time compact too. No
 * clocks of different machines, or of one machine before and after a restart, are compared.
 *
 * Thread: the owner's only, for all functions. There is no thread and no timer, because the owner
 * calls hfd_compactor_tick regularly. Replies arrive on the store's thread; compactor.c says how
 * the two threads share the members.
 */
#include "server/storage/store.h"

#define HFD_COMPACT_N_STEPS 10 /* from the choice of a target to its compaction */

struct hfd_compactor;

/* host and store are borrowed until the store is freed, because a running attempt may outlive the
 * compactor. prefix is copied. interval 0 = it never compacts. 0, -errno or HF_E_TOO_LARGE. */
int hfd_compactor_new(const struct hf_host *host, struct hfd_store *store, const char *prefix,
                      hf_nsec interval, struct hfd_compactor **ret_compactor);
/* Starts an attempt if one is due; never blocks. now is boot time. The first call starts the first
 * attempt, which only reads the key, or writes it if it does not exist. */
void hfd_compactor_tick(struct hfd_compactor *compactor, hf_nsec now);
/* Boot time of the next attempt; the greatest time if there is none. */
hf_nsec hfd_compactor_next(const struct hfd_compactor *compactor);
/* Never blocks. Call before the store is freed. Accepts NULL, returns NULL. */
struct hfd_compactor *hfd_compactor_free(struct hfd_compactor *compactor);

/* SPDX-License-Identifier: Apache-2.0 */
#pragma once
/*
 * The compactor: makes the store forget history that is older than five to ten minutes, once per
 * cluster, however many instances run one.
 *
 * Once per interval each instance tries to write the agreement key, on condition that nobody has
 * written it since the instance saw it last. One of them succeeds, and compacts at the revision
 * that it saw one interval earlier. An instance never compacts in its first round, because it has
 * not seen a revision before.
 *
 * Threads: the owner's, for all functions. The owner calls hfd_compactor_tick regularly, so there
 * is no thread and no timer. The store's replies arrive on the store's thread; an internal lock
 * guards what both threads use.
 */
#include "server/storage/store.h"

#define HFD_COMPACT_INTERVAL (5 * 60 * HF_NSEC_PER_SEC)

struct hfd_compactor;

/* host and store are borrowed until the store is freed, because a round under way may outlive the
 * compactor. prefix is copied. 0, -errno or HF_E_TOO_LARGE. */
int hfd_compactor_new(const struct hf_host *host, struct hfd_store *store, const char *prefix,
                      struct hfd_compactor **ret_compactor);
/* Starts a round if one is due; never blocks. now is boot time. The first round is due one interval
 * after the first tick. */
void hfd_compactor_tick(struct hfd_compactor *compactor, hf_nsec now);
/* Never blocks. Call before the store is freed. Accepts NULL, returns NULL. */
struct hfd_compactor *hfd_compactor_free(struct hfd_compactor *compactor);

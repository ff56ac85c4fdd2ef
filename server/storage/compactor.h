/* SPDX-License-Identifier: Apache-2.0 */
#pragma once
/*
 * The compactor: forgets history older than five to ten minutes, once per cluster however many
 * instances run one.
 *
 * Every interval each instance tries to put the agreement key, comparing the revision at which it
 * last saw it written; the one that succeeds compacts at the revision it saw one interval earlier.
 * The first round of an instance only looks.
 *
 * Thread: the owner's, for all functions; it is driven by ticks, so it has no thread and no timer
 * of its own.
 */
#include "server/storage/store.h"

#define HFD_COMPACT_INTERVAL (5 * 60 * HF_NSEC_PER_SEC)

struct hfd_compactor;

/* store and host are borrowed until the store is freed (a round under way may outlive the
 * compactor). prefix is copied. 0, -errno, HF_E_TOO_LARGE. */
int hfd_compactor_new(const struct hf_host *host, struct hfd_store *store, const char *prefix,
                      struct hfd_compactor **ret_compactor);
/* Never blocks; starts a round if one is due. now is boot time. The first round is due one interval
 * after the first tick. */
void hfd_compactor_tick(struct hfd_compactor *compactor, hf_nsec now);
struct hfd_compactor *
hfd_compactor_free(struct hfd_compactor
                           *compactor); /* accepts NULL. Before the store is freed. Never blocks */

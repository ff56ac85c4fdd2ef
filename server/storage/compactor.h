/* SPDX-License-Identifier: Apache-2.0 */
#pragma once
/*
 * The compactor removes old history from the store. While the store is available, the history of
 * the last five to ten minutes stays, or of somewhat more after the instance that compacted has
 * ended. Every instance runs a compactor, but in each interval at most one of them compacts.
 *
 * The value of the compact key (keys.h) is the revision of the next compaction. Once per interval
 * each instance reads the key. If no instance has written it since this one read it an interval
 * ago, this one tries to replace the value by the store's current revision, and compacts at the old
 * value if it succeeds. The target is in the store, so an instance that starts goes on from what
 * others, or itself before a restart, have noted: it can compact one interval after its start.
 *
 * Thread: the owner's only, for all functions. There is no thread and no timer, because the owner
 * calls hfd_compactor_tick regularly. Replies arrive on the store's thread; compactor.c says how
 * the two threads share the members.
 */
#include "server/storage/store.h"

#define HFD_COMPACT_INTERVAL (5 * 60 * HF_NSEC_PER_SEC)

struct hfd_compactor;

/* host and store are borrowed until the store is freed, because a running attempt may outlive the
 * compactor. prefix is copied. 0, -errno or HF_E_TOO_LARGE. */
int hfd_compactor_new(const struct hf_host *host, struct hfd_store *store, const char *prefix,
                      struct hfd_compactor **ret_compactor);
/* Starts an attempt if one is due; never blocks. now is boot time. The first call starts the first
 * attempt, which only reads the key, or writes it if it does not exist. */
void hfd_compactor_tick(struct hfd_compactor *compactor, hf_nsec now);
/* Never blocks. Call before the store is freed. Accepts NULL, returns NULL. */
struct hfd_compactor *hfd_compactor_free(struct hfd_compactor *compactor);

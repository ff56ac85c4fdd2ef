/* SPDX-License-Identifier: Apache-2.0 */
#pragma once
/*
 * The compactor removes history that is older than five to ten minutes from the store. Every
 * instance runs one, but each interval only one of them compacts.
 *
 * Once per interval each instance tries to write the compact key (keys.h), on condition that no
 * other instance has written it since the last attempt of this one. One of them succeeds, and
 * compacts at the revision that the store had one interval earlier. An instance never compacts in
 * its first attempt, because it does not know an earlier revision.
 *
 * Thread: the owner's only, for all functions. There is no thread and no timer, because the owner
 * calls hfd_compactor_tick regularly. Replies arrive on the store's thread; a lock inside the
 * compactor guards the members that both threads use.
 */
#include "server/storage/store.h"

#define HFD_COMPACT_INTERVAL (5 * 60 * HF_NSEC_PER_SEC)

struct hfd_compactor;

/* host and store are borrowed until the store is freed, because a running attempt may outlive the
 * compactor. prefix is copied. 0, -errno or HF_E_TOO_LARGE. */
int hfd_compactor_new(const struct hf_host *host, struct hfd_store *store, const char *prefix,
                      struct hfd_compactor **ret_compactor);
/* Starts an attempt if one is due; never blocks. now is boot time. The first attempt is due one
 * interval after the first call. */
void hfd_compactor_tick(struct hfd_compactor *compactor, hf_nsec now);
/* Never blocks. Call before the store is freed. Accepts NULL, returns NULL. */
struct hfd_compactor *hfd_compactor_free(struct hfd_compactor *compactor);

/* SPDX-License-Identifier: Apache-2.0 */
#pragma once
/*
 * A store in memory, for tests. It has the same contract as the etcd store, and forgets everything
 * when it is freed.
 *
 * Threads: as store.h describes. All callbacks run on the store's own thread.
 */
#include "server/storage/store.h"

/* host is borrowed. 0 or -errno. Free the store by ops->free. */
int hfd_memory_store_new(const struct hf_host *host, struct hfd_store **ret_store);

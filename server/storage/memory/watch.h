/* SPDX-License-Identifier: Apache-2.0 */
#pragma once
/*
 * The watches of the memory store. The contract is that of struct hfd_store_ops (store.h). Private
 * to server/storage/memory.
 *
 * Threads: any may start and cancel. Lock: the functions take mu; only the _locked functions expect
 * the caller to hold it.
 */
#include <stdbool.h>
#include <stdint.h>

#include "server/storage/memory/memory.h"

int hfd_memory_watch(struct hfd_store *store, const char *begin, const char *end, uint64_t revision,
                     const struct hfd_watch_handler *handler, void *ctx, uint64_t *ret_id);
void hfd_memory_watch_cancel(struct hfd_store *store, uint64_t id);

/* The lowest position of all watches (watch.c); UINT64_MAX = there is no watch. */
uint64_t hfd_memory_oldest_position_locked(const struct hfd_memory *memory);
/* Delivers events to one watch, or ends one; mu is released during the callback. Returns false,
 * without releasing mu, if no watch has anything to deliver. While the store is closing, each call
 * ends one watch, if there is one left. Thread: the store's own. */
bool hfd_memory_deliver_watch_locked(struct hfd_memory *memory);

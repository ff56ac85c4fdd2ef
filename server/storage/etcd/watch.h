/* SPDX-License-Identifier: Apache-2.0 */
#pragma once
/*
 * Watches on etcd. The contract is that of struct hfd_store_ops (store.h). Private to
 * server/storage/etcd.
 *
 * Threads: any may start and cancel; the handler is called on the channel's thread.
 */
#include "server/storage/store.h"

int hfd_etcd_watch(struct hfd_store *store, const char *begin, const char *end, uint64_t revision,
                   const struct hfd_watch_handler *handler, void *ctx, uint64_t *ret_id);
void hfd_etcd_watch_cancel(struct hfd_store *store, uint64_t id);
/* As store.h describes; the next watch uses another endpoint, if there is one. */
void hfd_etcd_watch_suspect(struct hfd_store *store, uint64_t id);

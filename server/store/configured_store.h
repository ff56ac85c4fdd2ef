/* SPDX-License-Identifier: Apache-2.0 */
#pragma once
/*
 * The store that the command line names: the file of --store, memory with --storage=memory, or etcd
 * at --etcd-servers, with the files of --etcd-cafile, --etcd-certfile and --etcd-keyfile. Only the
 * server makes the file of --store if there is none. Thread: any.
 */
#include "server/config/config.h"
#include "server/storage/store.h"

/*
 * Reads the files and creates the store, but does not connect to etcd yet. host is borrowed until
 * the store is freed; config is used during this call only. Blocks on the files. 0, -errno,
 * HF_E_UNAVAILABLE (another process holds the file of --store locked for too long), or
 * HF_E_NOT_FOUND, HF_E_TOO_LARGE or HF_E_INVALID, whose message names the flag and says what is
 * wrong. The caller frees the store with store->ops->free.
 */
int hfd_configured_store_new(const struct hf_host *host, const struct hfd_config *config,
                             struct hfd_store **ret_store, struct hf_status *reterr_status);

/* The same for etcd at these endpoints, NULL-terminated, with the files of config. A message about
 * a URL names no flag. */
int hfd_configured_etcd_new(const struct hf_host *host, const struct hfd_config *config,
                            const char *const *endpoints, struct hfd_store **ret_store,
                            struct hf_status *reterr_status);

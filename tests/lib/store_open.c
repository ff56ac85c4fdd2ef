/* SPDX-License-Identifier: Apache-2.0 */
/* See store_open.h. */
#include "store_open.h"

#include <string.h>

#include "server/storage/etcd/store.h"
#include "server/storage/sqlite/store.h"

int store_open(const struct hf_host *host, const char *place, struct hfd_store **ret_store,
               struct hf_status *reterr_status) {
        const char *const endpoints[] = {place, NULL};
        const struct hfd_etcd_config config = {.endpoints = endpoints};

        if (strncmp(place, "sqlite:", 7) == 0)
                return hfd_sqlite_store_new(host, place + 7, true, ret_store, reterr_status);
        return hfd_etcd_store_new(host, &config, ret_store, reterr_status);
}

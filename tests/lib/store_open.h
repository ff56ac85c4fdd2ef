/* SPDX-License-Identifier: Apache-2.0 */
#pragma once
/* Opens a store for a test program: the etcd at a URL, or sqlite:FILE, which is made if it does not
 * exist. The errors are those of the two stores. */
#include "server/storage/store.h"

int store_open(const struct hf_host *host, const char *place, struct hfd_store **ret_store,
               struct hf_status *reterr_status);

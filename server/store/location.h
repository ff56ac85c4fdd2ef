/* SPDX-License-Identifier: Apache-2.0 */
#pragma once
/* The location of a store, in the form that `holdfastd store copy` and `holdfastd store compact`
 * accept: sqlite:FILE or etcd:URL[,URL]. Thread: main. */
#include <stdbool.h>

#include "server/config/config.h"
#include "server/storage/store.h"

struct hfd_location {
        const char *text;                          /* as on the command line; borrowed */
        const char *file;                          /* borrowed; NULL = etcd */
        char *endpoints[HFD_MAX_ETCD_SERVERS + 1]; /* owned; NULL-terminated */
};

/* name: the flag or argument, for the message about a text that has neither form. 0, HF_E_INVALID
 * or -ENOMEM. */
int hfd_location_parse(const char *name, const char *text, struct hfd_location *ret_location,
                       struct hf_status *reterr_status);
/* Accepts a zeroed location and leaves a zeroed one. */
void hfd_location_deinit(struct hfd_location *location);
/* Opens the store. With `create`, makes the file if there is none. Returns as
 * hfd_configured_store_new, but a message about the store's file or a URL names no flag. */
int hfd_location_open(const struct hfd_location *location, const struct hf_host *host,
                      const struct hfd_config *config, bool create, struct hfd_store **ret_store,
                      struct hf_status *reterr_status);

/* SPDX-License-Identifier: Apache-2.0 */
#pragma once
/*
 * Collects a page of a list from a large reply of the store, on the pool of threads: the store's
 * thread, which delivers the reply, also serves the elector and every write.
 */
#include "server/registry/list/list_page.h"

/*
 * Copies what it needs from reply, and calls finish later, on a thread of the pool. finish owns
 * read and the page's contents; its page is NULL if the client has left or the server stops. 0,
 * -ENOMEM, or HF_E_CANCELED (the pool is stopping). After an error finish is not called. Thread:
 * any; does not block.
 */
int hfd_stored_page_start(struct hfd_read *read, const struct hfd_store_reply *reply,
                          void (*finish)(struct hfd_read *read, struct hfd_list_page *page));

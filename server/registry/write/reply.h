/* SPDX-License-Identifier: Apache-2.0 */
#pragma once
/* The end of a write: each function answers the request once and frees w. */
#include "server/registry/write/write.h"

/* Empties response, which the caller has filled. */
void hfd_write_reply(struct hfd_write *w, struct hfd_response *response);
void hfd_write_reply_no_memory(struct hfd_write *w);
/* status: the store's message; NULL = none. */
void hfd_write_reply_store_error(struct hfd_write *w, int error, const struct hf_status *status);
/* 409: the term that the write's fence names is over. */
void hfd_write_reply_stale_term(struct hfd_write *w);
/* Replies success. The write was committed at revision; for a dry run, it is the object's own. */
void hfd_write_reply_committed(struct hfd_write *w, uint64_t revision);

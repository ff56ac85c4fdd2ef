/* SPDX-License-Identifier: Apache-2.0 */
#pragma once
/* The end of a write: each function sends the response and frees w. hfd_write_reply_committed does
 * so later, on another thread, if a webhook must convert the object for the response. Thread: that
 * of the write (write.h). Nothing blocks. */
#include "server/registry/write/write.h"

/* Sends response, and frees what it owns. */
void hfd_write_reply(struct hfd_write *w, struct hfd_response *response);
/* The same with a response that is borrowed; it may belong to w. */
void hfd_write_reply_copy(struct hfd_write *w, const struct hfd_response *response);
void hfd_write_reply_no_memory(struct hfd_write *w);
/* 500: no object can be made from the value of a kv of the store, because it is not a valid object,
 * or cannot be decrypted, or because memory ran out. */
void hfd_write_reply_unreadable_kv(struct hfd_write *w, const struct hfd_kv *kv);
/* The same for w->current, which could not be parsed. */
void hfd_write_reply_unreadable_current(struct hfd_write *w);
/* status: the store's message; NULL = none. */
void hfd_write_reply_store_error(struct hfd_write *w, int error, const struct hf_status *status);
/* 403: `<resource> "<name>" is forbidden: <why>`. */
void hfd_write_reply_forbidden(struct hfd_write *w, const char *why);
/* 409: the term that the write's fence names is over, or the store was replaced. */
void hfd_write_reply_stale_term(struct hfd_write *w);
/*
 * Responds with success. revision is the revision of the commit; for a dry run, that of the current
 * object, or 0 if there is none.
 */
void hfd_write_reply_committed(struct hfd_write *w, uint64_t revision);

/* SPDX-License-Identifier: Apache-2.0 */
#pragma once
/*
 * Objects are created only in a namespace that exists and is not being deleted. The system's
 * namespaces always count as existing. The transaction of a create compares the namespace too
 * (unless it is one of the system), so that the namespace cannot be deleted between the check and
 * the commit. Thread: that of the write (write.h).
 * Nothing blocks.
 */
#include "server/registry/write/write.h"
#include "server/storage/store.h"

/*
 * True: the namespace accepts new objects. False: the response was sent, or the namespace is being
 * read from the store and another attempt follows; the caller must not touch w.
 */
bool hfd_write_namespace_accepts_create(struct hfd_write *w);
/*
 * Fills in how the transaction compares the namespace. key is a buffer that must live until the
 * transaction was started. False: the namespace is not compared.
 */
bool hfd_write_namespace_compare(struct hfd_write *w, char key[HFD_KEY_MAX],
                                 struct hfd_compare *ret_compare);
/*
 * Updates w's state of the namespace from the keys that a failed transaction has read. NULL:
 * success. Otherwise returns the key-value from which no object can be made, because memory ran
 * out, or the value is invalid or cannot be decrypted.
 */
const struct hfd_kv *hfd_write_namespace_update(struct hfd_write *w, const struct hfd_kv *kvs,
                                                size_t n);

/* SPDX-License-Identifier: Apache-2.0 */
#pragma once
/*
 * Objects of custom resources: the checks and defaults that their definition adds to a write. For
 * other kinds these functions do nothing. Thread: that of the write (write.h). Nothing blocks.
 */
#include <stdbool.h>

#include "server/resources/causes.h"
#include "server/storage/keys.h"

struct hf__json;
struct hfd_compare;
struct hfd_kv;
struct hfd_write;

/* Refuses a create while the definition is being deleted, or after that. True: the response was
 * sent. */
bool hfd_write_custom_refuse_create(struct hfd_write *w);
/*
 * Fills in how the transaction of a create compares the definition. key is a buffer that must live
 * until the transaction was started. False: nothing is compared.
 */
bool hfd_write_custom_compare(struct hfd_write *w, char key[HFD_KEY_MAX],
                              struct hfd_compare *ret_compare);
/*
 * Updates w's state of the definition from the keys that a failed transaction has read. NULL:
 * success. Otherwise returns the key-value from which no definition can be read, because memory ran
 * out, or the value is invalid or cannot be decrypted.
 */
const struct hfd_kv *hfd_write_custom_update(struct hfd_write *w, const struct hfd_kv *kvs,
                                             size_t n);
/* Fills in the defaults of w->object. False: the response was sent. */
bool hfd_write_custom_prepare(struct hfd_write *w);
/* Adds causes for violations of the schema, of the range of replicas, and of the rules, which other
 * mistakes may keep from being evaluated (custom.c). old NULL = a create. 0 or -ENOMEM. */
int hfd_write_custom_validate(struct hfd_write *w, const struct hf__json *old,
                              struct hfd_causes *causes);

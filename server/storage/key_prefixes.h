/* SPDX-License-Identifier: Apache-2.0 */
#pragma once
/*
 * Finds out which prefixes (--etcd-prefix, keys.h) the keys of a backup have. If a server used the
 * restored store with a prefix that none of the keys has, the store would look empty to it.
 *
 * Pure. Thread: one.
 */
#include <stdbool.h>
#include <stddef.h>

#include <holdfast/error.h>

#define HFD_KEY_PREFIXES_MAX 4 /* prefixes that are remembered for the message */

/* Begins with `wanted` set and all other members zero. */
struct hfd_key_prefixes {
        const char *wanted; /* borrowed */
        bool has_wanted;    /* a key has the prefix `wanted` */
        bool has_more;      /* there are more prefixes than `found` has room for */
        size_t n;
        char found[HFD_KEY_PREFIXES_MAX][64];
        char first[128]; /* the beginning of the first key; "" = there was no key */
};

/* Call it for each key, in any order, until has_wanted is set. */
void hfd_key_prefixes_add(struct hfd_key_prefixes *prefixes, const char *key);
/* 0: there was a key of the wanted prefix, or no key at all. HF_E_NOT_FOUND: the message names the
 * backup, the prefix and those that were found or, if none was, the first key. Or -ENOMEM. */
int hfd_key_prefixes_check(const struct hfd_key_prefixes *prefixes, const char *backup,
                           struct hf_status *reterr_status);

/* SPDX-License-Identifier: Apache-2.0 */
#pragma once
/*
 * The newest rows of the keys that a connection wrote last, so that the next write of such a key
 * need not look its row up. Used by server/storage/sqlite only.
 *
 * Thread: that of the connection. Nothing blocks or fails: a key that is not remembered is read
 * from the file.
 */
#include <stdbool.h>
#include <stdint.h>

struct hfd_head {
        int64_t id;       /* of the row */
        uint64_t created; /* the key's create revision */
};

struct hfd_heads {
        struct hfd_head_slot *slots; /* owned; NULL = nothing is remembered */
        uint64_t history, revision;  /* of the file after the last hfd_heads_commit */
};

/* In a transaction, before any other function: forgets all rows unless the file still has the
 * history and the revision of the last hfd_heads_commit. wanted: this transaction writes so much
 * that memory for rows is worth while. Once there is memory, all transactions use it. */
void hfd_heads_begin(struct hfd_heads *heads, uint64_t history, uint64_t revision, bool wanted);
/* The transaction was committed, and this is the newest revision. */
void hfd_heads_commit(struct hfd_heads *heads, uint64_t history, uint64_t revision);
/* Forgets all rows, and frees the memory. Call it at the end, and when a transaction for which
 * hfd_heads_begin was called has failed, because the file may not have the transaction's rows. */
void hfd_heads_clear(struct hfd_heads *heads);

/* False: the head of this key is not remembered. */
bool hfd_heads_find(const struct hfd_heads *heads, const char *key, struct hfd_head *ret_head);
/* The key's newest row is now this one; NULL: a deletion, which is not remembered. */
void hfd_heads_set(struct hfd_heads *heads, const char *key, const struct hfd_head *head);

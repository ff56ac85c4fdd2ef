/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Remembers the heads of some keys, so that a write need not look them up. The head of a key is its
 * newest row in the file.
 *
 * Invariants:
 *  - a remembered head is the row that a look-up would find. Every write gives the file a new
 *    revision, also a write of another process. So the heads are right as long as the file has the
 *    revision of the last hfd_heads_commit, and the same history number (database.h), which
 *    differs in a restored file;
 *  - the row of a deletion is not remembered, because the sweep after a compaction (versions.c) may
 *    remove it without a new revision, in any process. The sweep keeps all other heads.
 */
#include "server/storage/heads.h"

#include <assert.h>
#include <stdlib.h>
#include <string.h>

#define N_SLOTS 256 /* a power of two, so that the remainder is cheap */
/* Longer keys are looked up each time. With this limit a slot has 128 bytes. */
#define KEY_MAX 112

struct hfd_head_slot {
        struct hfd_head head; /* id 0 = free */
        char key[KEY_MAX];
};

/* The only slot that the key can be in, by its hash (FNV-1a). Keys with the same slot replace each
 * other. NULL: no slots, or the key is too long. */
static struct hfd_head_slot *slot_of(const struct hfd_heads *heads, const char *key) {
        uint32_t hash = 2166136261U;
        size_t n = 0;

        if (!heads || !heads->slots)
                return NULL;
        for (; key[n] != '\0'; n++)
                hash = (hash ^ (unsigned char)key[n]) * 16777619U;
        return n < KEY_MAX ? &heads->slots[(hash ^ hash >> 16) % N_SLOTS] : NULL;
}

void hfd_heads_begin(struct hfd_heads *heads, uint64_t history, uint64_t revision, bool wanted) {
        if (heads->slots && (heads->history != history || heads->revision != revision))
                hfd_heads_clear(heads);
        if (!heads->slots && wanted)
                heads->slots = calloc(N_SLOTS, sizeof *heads->slots); /* NULL: none are kept */
}

void hfd_heads_commit(struct hfd_heads *heads, uint64_t history, uint64_t revision) {
        heads->history = history;
        heads->revision = revision;
}

void hfd_heads_clear(struct hfd_heads *heads) {
        free(heads->slots);
        *heads = (struct hfd_heads){0};
}

bool hfd_heads_find(const struct hfd_heads *heads, const char *key, struct hfd_head *ret_head) {
        assert(key && key[0]);
        const struct hfd_head_slot *slot = slot_of(heads, key);

        if (!slot || slot->head.id == 0 || strcmp(slot->key, key) != 0)
                return false;
        *ret_head = slot->head;
        return true;
}

void hfd_heads_set(struct hfd_heads *heads, const char *key, const struct hfd_head *head) {
        struct hfd_head_slot *slot = slot_of(heads, key);

        if (!slot)
                return;
        if (head) {
                assert(head->id != 0);
                slot->head = *head;
                memcpy(slot->key, key, strlen(key) + 1);
        } else if (strcmp(slot->key, key) == 0) {
                slot->head.id = 0;
        }
}

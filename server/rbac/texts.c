/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The table of texts: the bytes one after the other, and a hash table with open addressing.
 *
 * Invariants: number 0 is no text, and marks an empty slot. At most half of the slots are in use,
 * so that a search ends soon. A role may contain any text, so the seed of the hash is an address of
 * this process, which differs from start to start: a client cannot choose texts that all have the
 * same slot.
 */
#include "server/rbac/texts.h"

#include <assert.h>
#include <errno.h>
#include <stdlib.h>
#include <string.h>

#define FIRST_SLOTS 256u /* a power of two, and so are its doubles */

/* FNV-1a with a seed, and with a shift after each byte. Without the shift a client could compute
 * texts that collide whatever the seed is, because the low bits of an address are the same at each
 * start: programs are loaded at whole pages. */
static uint64_t hash_text(const char *text, size_t n) {
        uint64_t hash = 0xcbf29ce484222325u ^ (uint64_t)(uintptr_t)&hash_text;

        for (size_t i = 0; i < n; i++) {
                hash ^= (unsigned char)text[i];
                hash *= 0x100000001b3u;
                hash ^= hash >> 29;
        }
        return hash ^ hash >> 32;
}

/* The slot of the text, or the empty slot where it belongs. */
static uint32_t find_slot(const struct hfd_texts *texts, const char *text, size_t n) {
        uint32_t mask = texts->n_slots - 1;
        uint32_t slot = (uint32_t)hash_text(text, n) & mask;

        while (texts->slots[slot] != HFD_TEXT_NONE) {
                const char *known = hfd_texts_at(texts, texts->slots[slot]);
                if (strncmp(known, text, n) == 0 && known[n] == '\0')
                        break;
                slot = (slot + 1) & mask;
        }
        return slot;
}

static int grow_slots(struct hfd_texts *texts) {
        uint32_t n_slots = texts->n_slots ? texts->n_slots * 2 : FIRST_SLOTS;
        uint32_t *slots = calloc(n_slots, sizeof *slots);

        if (!slots)
                return -ENOMEM;
        free(texts->slots);
        texts->slots = slots;
        texts->n_slots = n_slots;
        for (uint32_t number = 1; number < texts->n; number++) {
                const char *text = hfd_texts_at(texts, number);
                slots[find_slot(texts, text, strlen(text))] = number;
        }
        return 0;
}

int hfd_texts_init(struct hfd_texts *texts) {
        *texts = (struct hfd_texts){.n = 1};
        if (grow_slots(texts) != 0 || hfd_texts_add(texts, "*", 1) != HFD_TEXT_STAR ||
            hfd_texts_add(texts, "", 0) != HFD_TEXT_EMPTY) {
                hfd_texts_done(texts);
                return -ENOMEM;
        }
        return 0;
}

void hfd_texts_done(struct hfd_texts *texts) {
        free(texts->bytes);
        free(texts->offsets);
        free(texts->slots);
        *texts = (struct hfd_texts){0};
}

/* Makes room for n more bytes and one more number. */
static int reserve_texts(struct hfd_texts *texts, size_t n) {
        if (n + 1 > UINT32_MAX - texts->n_bytes) /* an offset has 32 bits */
                return -ENOMEM;
        if (texts->n_bytes + n + 1 > texts->space) {
                size_t space = (texts->n_bytes + n + 1) * 2;
                char *bytes = realloc(texts->bytes, space);
                if (!bytes)
                        return -ENOMEM;
                texts->bytes = bytes;
                texts->space = space;
        }
        /* Before the first text n is 1, because the number 0 is no text. */
        if (texts->n == texts->n_space || !texts->offsets) {
                uint32_t n_space = texts->n_space ? texts->n_space * 2 : FIRST_SLOTS / 2;
                uint32_t *offsets = realloc(texts->offsets, n_space * sizeof *offsets);
                if (!offsets)
                        return -ENOMEM;
                texts->offsets = offsets;
                texts->n_space = n_space;
        }
        return 2 * texts->n < texts->n_slots ? 0 : grow_slots(texts);
}

uint32_t hfd_texts_add(struct hfd_texts *texts, const char *text, size_t n) {
        uint32_t found = hfd_texts_find(texts, text, n);

        if (found != HFD_TEXT_NONE)
                return found;
        assert(texts->slots); /* init was called */
        if (reserve_texts(texts, n) != 0)
                return HFD_TEXT_NONE;
        uint32_t slot = find_slot(texts, text, n); /* after the slots may have grown */
        texts->offsets[texts->n] = (uint32_t)texts->n_bytes;
        memcpy(texts->bytes + texts->n_bytes, text, n);
        texts->bytes[texts->n_bytes + n] = '\0';
        texts->n_bytes += n + 1;
        texts->slots[slot] = texts->n;
        return texts->n++;
}

uint32_t hfd_texts_find(const struct hfd_texts *texts, const char *text, size_t n) {
        assert(texts->n_slots > 0 && (texts->n_slots & (texts->n_slots - 1)) == 0);
        return texts->slots[find_slot(texts, text, n)];
}

const char *hfd_texts_at(const struct hfd_texts *texts, uint32_t number) {
        assert(number != HFD_TEXT_NONE && number < texts->n);
        return texts->bytes + texts->offsets[number];
}

void hfd_texts_shrink(struct hfd_texts *texts) {
        char *bytes = realloc(texts->bytes, texts->n_bytes);
        uint32_t *offsets = realloc(texts->offsets, texts->n * sizeof *offsets);

        assert(texts->n > HFD_TEXT_EMPTY); /* "*" and "" are always there */
        if (bytes)
                texts->bytes = bytes;
        if (offsets)
                texts->offsets = offsets;
        texts->space = texts->n_bytes;
        texts->n_space = texts->n;
}

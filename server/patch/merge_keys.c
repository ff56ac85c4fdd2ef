/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Sorts the identities of the elements of a list, and finds them.
 *
 * Invariant: nothing of an element is copied but its identity, and while the entries are made,
 * `steps` grows with the members that are read and the bytes that are copied. A patch can have a
 * list merged many thousand times, and the elements of that list may be large.
 */
#include "server/patch/merge_keys.h"

#include <assert.h>
#include <errno.h>
#include <inttypes.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/json.h"
#include "server/patch/patch.h"

/* The value under the key, or without a key the element itself; it need not be a scalar. NULL =
 * none. Adds the members that were read to *steps. */
static const struct hf__json *find_scalar(const struct hf__json *element, const char *key,
                                          size_t *steps) {
        ++*steps;
        if (!key)
                return element;
        if (!hf__json_is_object(element))
                return NULL;
        for (const struct hf__json *m = hf__json_first(element); m; m = hf__json_next(m), ++*steps)
                if (strcmp(hf__json_key(m), key) == 0)
                        return m;
        return NULL;
}

/* Numbers that are equal have the same text. The result borrows from the element or the buffer. */
static struct hfd_merge_key read_identity(const struct hf__json *element, const char *key,
                                          char buffer[HFD_MERGE_KEY_TEXT], size_t *steps) {
        const struct hf__json *scalar = find_scalar(element, key, steps);
        int64_t integer;

        if (hf__json_is_string(scalar))
                return (struct hfd_merge_key){.type = 's', .text = hf__json_text(scalar)};
        if (hf__json_is_bool(scalar))
                return (struct hfd_merge_key){.type = 'b',
                                              .text = hf__json_is_true(scalar) ? "true" : "false"};
        if (!hf__json_is_number(scalar))
                return (struct hfd_merge_key){0};
        if (hf__json_integer(scalar, &integer))
                (void)snprintf(buffer, HFD_MERGE_KEY_TEXT, "%" PRId64, integer);
        else
                (void)snprintf(buffer, HFD_MERGE_KEY_TEXT, "%.17g", hf__json_number(scalar));
        return (struct hfd_merge_key){.type = 'n', .text = buffer};
}

static int compare(const struct hfd_merge_key *x, const struct hfd_merge_key *y) {
        return x->type != y->type ? x->type - y->type : strcmp(x->text, y->text);
}

static int compare_entries(const void *a, const void *b) {
        const struct hfd_merge_key *x = a, *y = b;
        int order = compare(x, y);

        if (order != 0)
                return order;
        return x->position < y->position ? -1 : x->position > y->position;
}

/* Adds the entry of an element, and its text to `texts`. The caller sets the pointers to the texts
 * when all are added, because `texts` moves while it grows. */
static void add_entry(struct hfd_merge_keys *keys, const struct hf__json *element,
                      size_t position) {
        char buffer[HFD_MERGE_KEY_TEXT];
        struct hfd_merge_key entry = read_identity(element, keys->key, buffer, &keys->steps);

        if (entry.type == 0)
                return;
        size_t n = strlen(entry.text);
        hf__strbuf_add(&keys->texts, entry.text, n + 1);
        keys->steps += n / HFD_PATCH_STEP_BYTES;
        entry.position = position;
        keys->entries[keys->n++] = entry;
}

int hfd_merge_keys_init(struct hfd_merge_keys *keys, const struct hf__json *list, const char *key) {
        size_t position = 0;

        *keys = (struct hfd_merge_keys){.key = key, .n_elements = hf__json_count(list)};
        /* + 1: calloc(0) may return NULL. */
        keys->entries = calloc(keys->n_elements + 1, sizeof *keys->entries);
        if (!keys->entries)
                return -ENOMEM;
        for (const struct hf__json *e = hf__json_first(list); e; e = hf__json_next(e))
                add_entry(keys, e, position++);
        if (keys->texts.error != 0)
                return -ENOMEM;
        const char *text = keys->texts.data;
        for (size_t i = 0; i < keys->n; i++, text += strlen(text) + 1)
                keys->entries[i].text = text;
        qsort(keys->entries, keys->n, sizeof *keys->entries, compare_entries);
        return 0;
}

void hfd_merge_keys_done(struct hfd_merge_keys *keys) {
        free(keys->entries);
        keys->entries = NULL;
        hf__strbuf_done(&keys->texts);
}

const struct hfd_merge_key *hfd_merge_keys_find(const struct hfd_merge_keys *keys,
                                                const struct hf__json *element) {
        char buffer[HFD_MERGE_KEY_TEXT];
        const struct hfd_merge_key like = read_identity(element, keys->key, buffer, &(size_t){0});
        size_t low = 0, high = keys->n;

        if (like.type == 0)
                return NULL;
        while (low < high) {
                size_t middle = low + (high - low) / 2;
                if (compare(&keys->entries[middle], &like) < 0)
                        low = middle + 1;
                else
                        high = middle;
        }
        if (low == keys->n || compare(&keys->entries[low], &like) != 0)
                return NULL;
        return &keys->entries[low];
}

bool hfd_merge_keys_repeats(const struct hfd_merge_keys *keys, const struct hfd_merge_key *entry) {
        assert(entry > keys->entries);
        return entry < keys->entries + keys->n && compare(entry - 1, entry) == 0;
}

struct hfd_merge_key hfd_merge_key_of(const struct hf__json *element, const char *key,
                                      char buffer[HFD_MERGE_KEY_TEXT]) {
        return read_identity(element, key, buffer, &(size_t){0});
}

bool hfd_merge_key_is_same(const struct hfd_merge_key *a, const struct hfd_merge_key *b) {
        return a->type != 0 && b->type != 0 && compare(a, b) == 0;
}

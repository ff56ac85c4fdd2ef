/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Counted texts in an index.
 *
 * Invariant: between two steps, an entry's count is the number of pointers to it in the cores of
 * the set, and no entry has a count of 0. A core's pointers to "" and to its own identity
 * (config.identity) point to no entry. The same text may be an entry for other cores.
 */
#include "leader/kept_texts.h"

#include <assert.h>
#include <errno.h>
#include <stddef.h>
#include <stdlib.h>
#include <string.h>

struct kept_text {
        struct hf__keyed keyed; /* first; its key is `text` */
        size_t n_refs;
        char text[];
};

static const char *copy_of(struct hf__core_texts_port *port, const char *text) {
        struct hf__kept_texts *texts = (struct hf__kept_texts *)port;
        const struct hf__keyed *kept = hf__key_index_find(&texts->index, text);

        assert(kept); /* hf__kept_texts_begin has taken it, or the core has a pointer to it */
        return kept->key;
}

void hf__kept_texts_init(struct hf__kept_texts *texts) {
        *texts = (struct hf__kept_texts){.port = {copy_of}};
}

void hf__kept_texts_done(struct hf__kept_texts *texts) { hf__key_index_free_items(&texts->index); }

static struct kept_text *entry_of(const char *text) {
        return (struct kept_text *)(void *)((char *)text - offsetof(struct kept_text, text));
}

/* Whether the pointer, which the core has or had before this step, is to an entry. */
static bool is_entry(const struct hf__core *core, const char *text) {
        return text[0] != '\0' && text != core->config.identity;
}

static void drop(struct hf__kept_texts *texts, const char *text) {
        struct kept_text *entry = entry_of(text);

        assert(entry->n_refs > 0);
        if (--entry->n_refs > 0)
                return;
        hf__key_index_remove(&texts->index, text);
        free(entry);
}

/* Returns the copy of the text, with one reference more, or NULL. */
static const char *take(struct hf__kept_texts *texts, const char *text) {
        struct kept_text *entry = (struct kept_text *)hf__key_index_find(&texts->index, text);
        size_t size = strlen(text) + 1;

        if (entry) {
                entry->n_refs++;
                return entry->text;
        }
        entry = malloc(sizeof *entry + size);
        if (!entry)
                return NULL;
        memcpy(entry->text, text, size);
        entry->keyed.key = entry->text;
        entry->n_refs = 1;
        if (hf__key_index_insert(&texts->index, &entry->keyed) != 0) {
                free(entry);
                return NULL;
        }
        return entry->text;
}

static void drop_taken(struct hf__kept_texts *texts, struct hf__kept_texts_step *step) {
        while (step->n_taken > 0)
                drop(texts, step->taken[--step->n_taken]);
}

int hf__kept_texts_begin(struct hf__kept_texts *texts, const struct hf__core *core,
                         const struct hf__core_event *event, struct hf__kept_texts_step *ret_step) {
        const char *list[] = {event->record.holder, event->record.successor,
                              event->record.hand_over_to, event->successor};
        struct hf__kept_texts_step *step = ret_step;

        step->n_taken = 0;
        for (size_t i = 0; i < sizeof list / sizeof *list; i++) {
                if (list[i][0] == '\0' || strcmp(list[i], core->config.identity) == 0)
                        continue;
                const char *kept = take(texts, list[i]);
                if (!kept) {
                        drop_taken(texts, step);
                        return -ENOMEM;
                }
                step->taken[step->n_taken++] = kept;
        }
        hf__core_texts(core, step->before);
        return 0;
}

void hf__kept_texts_end(struct hf__kept_texts *texts, const struct hf__core *core,
                        struct hf__kept_texts_step *step) {
        const char *now[HF__CORE_N_TEXTS];

        hf__core_texts(core, now);
        /* Each pointer is counted before another one is dropped that may be to the same text. */
        for (size_t i = 0; i < HF__CORE_N_TEXTS; i++)
                if (now[i] != step->before[i] && is_entry(core, now[i]))
                        entry_of(now[i])->n_refs++;
        for (size_t i = 0; i < HF__CORE_N_TEXTS; i++)
                if (now[i] != step->before[i] && is_entry(core, step->before[i]))
                        drop(texts, step->before[i]);
        drop_taken(texts, step);
}

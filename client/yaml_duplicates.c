/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Collects the keys of all mappings, and sorts them to find those that repeat an earlier one.
 *
 * Invariants: the time is n log n in the size of the text, apart from the time of libyaml (see the
 * header). An entry is added when its value is complete, because go-yaml reports repeated keys
 * within a value before the repeated key of that value.
 */
#include "client/yaml_duplicates.h"

#include <errno.h>
#include <stdbool.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#include <holdfast/error.h>

#include "base/json.h"
#include "base/strbuf.h"
#include "client/yaml_library.h"
#include "client/yaml_scalar.h"

#define MAX_EVENTS 500000 /* as in yaml_body.c */

struct entry {
        size_t mapping; /* number of the mapping */
        size_t key;     /* offset in finder.keys */
        size_t line;    /* of the value, from 1 */
        size_t order;
        const char *text; /* the key; set when all are known, because finder.keys moves */
};

struct container {
        bool is_mapping, has_key; /* has_key: the next node is the value of `key` */
        size_t mapping, key, line;
};

struct finder {
        struct hf__strbuf keys;
        struct entry *entries; /* owned */
        size_t n, n_allocated, n_mappings, depth;
        struct container open[HF__JSON_DEPTH_MAX];
};

/* ---- collecting ---- */

static int add_entry(struct finder *f, const struct container *in, size_t line) {
        if (f->n == f->n_allocated) {
                size_t n = f->n_allocated > 0 ? 2 * f->n_allocated : 64;
                struct entry *entries = realloc(f->entries, n * sizeof *entries);
                if (!entries)
                        return -ENOMEM;
                f->entries = entries;
                f->n_allocated = n;
        }
        f->entries[f->n] =
                (struct entry){.mapping = in->mapping, .key = in->key, .line = line, .order = f->n};
        f->n++;
        return 0;
}

/* Writes the key as Go prints it, apart from some large and small numbers: a string in quotes,
 * another scalar as its value (`yes` as true). An alias is compared by its name. Tags are ignored.
 * A container gets a text that is unique in its mapping, because yaml_body.c accepts no container
 * as a key. */
static void put_key(struct finder *f, const yaml_event_t *event) {
        char json[HF__YAML_SCALAR_MAX];

        if (event->type == YAML_ALIAS_EVENT)
                hf__strbuf_printf(&f->keys, "*%s", (const char *)event->data.alias.anchor);
        else if (event->type != YAML_SCALAR_EVENT)
                hf__strbuf_printf(&f->keys, "?%zu", f->n);
        else if (event->data.scalar.style == YAML_PLAIN_SCALAR_STYLE &&
                 hf__yaml_scalar_resolve((const char *)event->data.scalar.value,
                                         event->data.scalar.length, json) == HF__YAML_VALUE)
                hf__strbuf_puts(&f->keys, json);
        else
                hf__strbuf_json(&f->keys, (const char *)event->data.scalar.value,
                                event->data.scalar.length);
        hf__strbuf_putc(&f->keys, '\0');
}

/* Called when a node that began on this line is complete. */
static int end_node(struct finder *f, const yaml_event_t *event, size_t line) {
        struct container *in = f->depth > 0 ? &f->open[f->depth - 1] : NULL;

        if (!in || !in->is_mapping)
                return 0;
        in->has_key = !in->has_key;
        if (!in->has_key)
                return add_entry(f, in, line);
        in->key = f->keys.n;
        put_key(f, event);
        return f->keys.error;
}

/* Returns 0, a negative error, or 1: do not search the text any further. */
static int take_event(struct finder *f, const yaml_event_t *event) {
        size_t line = event->start_mark.line + 1;

        switch (event->type) {
        case YAML_ALIAS_EVENT:
        case YAML_SCALAR_EVENT: return end_node(f, event, line);
        case YAML_SEQUENCE_START_EVENT:
        case YAML_MAPPING_START_EVENT:
                if (f->depth == HF__JSON_DEPTH_MAX)
                        return 1;
                f->open[f->depth++] =
                        (struct container){.is_mapping = event->type == YAML_MAPPING_START_EVENT,
                                           .mapping = f->n_mappings++,
                                           .line = line};
                return 0;
        case YAML_SEQUENCE_END_EVENT:
        case YAML_MAPPING_END_EVENT: f->depth--; return end_node(f, event, f->open[f->depth].line);
        case YAML_NO_EVENT:
        case YAML_STREAM_START_EVENT:
        case YAML_DOCUMENT_START_EVENT: return 0;
        case YAML_DOCUMENT_END_EVENT:
        case YAML_STREAM_END_EVENT: break;
        }
        return 1;
}

static int collect_duplicates(struct finder *f, const struct hf__yaml_library *lib,
                              yaml_parser_t *parser) {
        int r = 0;

        for (size_t n = 0; r == 0 && n < MAX_EVENTS; n++) {
                yaml_event_t event;

                if (!lib->parse(parser, &event))
                        return parser->error == YAML_MEMORY_ERROR ? -ENOMEM : 0;
                r = take_event(f, &event);
                lib->event_delete(&event);
        }
        return r < 0 ? r : 0;
}

/* ---- comparing ---- */

static int compare_numbers(size_t a, size_t b) { return (a > b) - (a < b); }

static int by_key(const void *a, const void *b) {
        const struct entry *x = a, *y = b;
        int c = compare_numbers(x->mapping, y->mapping);

        if (c == 0)
                c = strcmp(x->text, y->text);
        return c != 0 ? c : compare_numbers(x->order, y->order);
}

static int by_order(const void *a, const void *b) {
        return compare_numbers(((const struct entry *)a)->order, ((const struct entry *)b)->order);
}

/* Keeps only the entries that repeat an earlier key of their mapping. */
static void keep_repeated(struct finder *f) {
        size_t n = 0;

        for (size_t i = 0; i < f->n; i++)
                f->entries[i].text = f->keys.data + f->entries[i].key;
        qsort(f->entries, f->n, sizeof *f->entries, by_key);
        for (size_t i = 1; i < f->n; i++)
                if (f->entries[i].mapping == f->entries[i - 1].mapping &&
                    strcmp(f->entries[i].text, f->entries[i - 1].text) == 0)
                        f->entries[n++] = f->entries[i]; /* n < i: nothing unread is lost */
        f->n = n;
        qsort(f->entries, f->n, sizeof *f->entries, by_order);
}

int hf__yaml_duplicates(const char *text, size_t n, size_t n_max, struct hf__strbuf *out) {
        struct finder *f = calloc(1, sizeof *f);
        struct hf__yaml_library lib = {0};
        struct hf_status status = {0};
        yaml_parser_t parser;

        if (!f)
                return -ENOMEM;
        int r = hf__yaml_library_open(&lib, &status);
        if (r == 0 && lib.initialize(&parser)) {
                lib.set_input(&parser, (const unsigned char *)text, n);
                r = collect_duplicates(f, &lib, &parser);
                lib.parser_delete(&parser);
        } else if (r == 0) {
                r = -ENOMEM;
        }
        hf__yaml_library_close(&lib);
        if (r == 0 && f->n > 1) {
                keep_repeated(f);
                hf__strbuf_puts(out, f->n > 0 ? "yaml: unmarshal errors:" : "");
                for (size_t i = 0; i < f->n && i < n_max; i++)
                        hf__strbuf_printf(out, "\n  line %zu: key %s already set in map",
                                          f->entries[i].line, f->entries[i].text);
        }
        hf__strbuf_done(&f->keys);
        free(f->entries);
        free(f);
        return r;
}

/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Finds elements of lists by their identity (canonical.h).
 *
 * Invariants: identities are sorted, not hashed, so that no choice of elements makes the search for
 * equal ones quadratic.
 */
#include "server/resources/custom/schema/check/canonical.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "base/json.h"
#include "base/json_index.h"
#include "server/resources/custom/schema/compile/canonical_text.h"

#define FEW_KEYS 32 /* keys of a list that are looked up one by one */

/* The member of an element. index NULL: the element is searched. */
static const struct hf__json *find_member(const struct hf__json *element,
                                          const struct hf__json_index *index, const char *key) {
        const struct hf__json_index_entry *entry = index ? hf__json_index_find(index, key) : NULL;

        if (!index)
                return hf__json_get(element, key);
        return entry ? entry->item : NULL;
}

/* index: of element; NULL = none. */
static int print_keys(const struct hf__json *element, const struct hf__json_index *index,
                      const char *const *keys, struct hf__strbuf *out) {
        bool is_first = true;
        int r = 0;

        hf__strbuf_putc(out, '{');
        for (; *keys && r == 0; keys++) {
                const struct hf__json *value = find_member(element, index, *keys);
                if (!value)
                        continue;
                if (!is_first)
                        hf__strbuf_putc(out, ',');
                is_first = false;
                hf__strbuf_json(out, *keys, strlen(*keys));
                hf__strbuf_putc(out, ':');
                r = hfd_canonical_text(value, out);
        }
        hf__strbuf_putc(out, '}');
        return r != 0 ? r : out->error;
}

/* Keys are sorted in the schema already (list_keys), so the text does not depend on their order in
 * the element. The defaults of absent keys are not filled in here: the object has its defaults
 * before it is checked. Many keys are found through an index, so that the time is not in proportion
 * to the product of keys and members. */
int hfd_identity_print(const struct hf__json *element, const char *const *keys,
                       struct hf__strbuf *out) {
        struct hf__json_index index;
        size_t n = 0;

        if (!keys)
                return hfd_canonical_text(element, out);
        while (n <= FEW_KEYS && keys[n])
                n++;
        if (n <= FEW_KEYS)
                return print_keys(element, NULL, keys, out);
        int r = hf__json_index_init(&index, element, NULL);
        if (r == 0)
                r = print_keys(element, &index, keys, out);
        hf__json_index_done(&index);
        return r;
}

/* For qsort: by text, then by index, because qsort may change the order of equal elements. */
static int compare_identities(const void *a, const void *b) {
        const struct hfd_identity *x = a, *y = b;
        int order = strcmp(x->text, y->text);

        if (order != 0)
                return order;
        return x->index < y->index ? -1 : 1;
}

int hfd_identities_init(struct hfd_identities *identities, const struct hf__json *array,
                        const char *const *keys) {
        struct hf__strbuf *texts = &identities->texts;
        int r = 0;

        memset(identities, 0, sizeof *identities);
        /* + 1: an empty list must not look like a lack of memory. */
        identities->list = calloc(hf__json_count(array) + 1, sizeof identities->list[0]);
        if (!identities->list)
                return -ENOMEM;
        for (const struct hf__json *m = hf__json_first(array); m && r == 0; m = hf__json_next(m)) {
                struct hfd_identity *identity = &identities->list[identities->n];
                identity->index = identities->n++;
                identity->element = m;
                r = hfd_identity_print(m, keys, texts);
                hf__strbuf_putc(texts, '\0');
        }
        if (r == 0)
                r = texts->error;
        if (r != 0)
                return r;
        /* Only now are the pointers set, because the buffer of the texts moves while it grows. */
        const char *text = texts->data;
        for (size_t i = 0; i < identities->n; i++, text += strlen(text) + 1)
                identities->list[i].text = text;
        if (identities->n > 1)
                qsort(identities->list, identities->n, sizeof identities->list[0],
                      compare_identities);
        return 0;
}

void hfd_identities_done(struct hfd_identities *identities) {
        free(identities->list);
        hf__strbuf_done(&identities->texts);
        memset(identities, 0, sizeof *identities);
}

const struct hf__json *hfd_identities_find(const struct hfd_identities *identities,
                                           const char *text) {
        size_t low = 0, high = identities->n;

        while (low < high) {
                size_t middle = low + (high - low) / 2;
                if (strcmp(identities->list[middle].text, text) < 0)
                        low = middle + 1;
                else
                        high = middle;
        }
        if (low < identities->n && strcmp(identities->list[low].text, text) == 0)
                return identities->list[low].element;
        return NULL;
}

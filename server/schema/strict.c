/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Reports unknown and duplicate fields, and removes the duplicate ones.
 *
 * Invariant: of several members with the same key the last one stays, as in Go's decoder.
 *
 * There are two passes for duplicate fields. Nearly no body has any, so the first pass only finds
 * out whether there are some. The second pass reports and removes them.
 */
#include "server/schema/strict.h"

#include <assert.h>
#include <errno.h>
#include <string.h>

#include "base/json.h"
#include "base/json_index.h"
#include "server/schema/place.h"

struct hfd_strict_mark hfd_strict_mark(const struct hfd_strict *strict) {
        return (struct hfd_strict_mark){strict->n, strict->lines.n};
}

void hfd_strict_rewind(struct hfd_strict *strict, struct hfd_strict_mark mark) {
        assert(mark.n <= strict->n && mark.n_bytes <= strict->lines.n);
        strict->n = mark.n;
        strict->lines.n = mark.n_bytes;
        if (strict->lines.data)
                strict->lines.data[mark.n_bytes] = '\0';
}

void hfd_strict_add(struct hfd_strict *strict, const char *problem, const struct hfd_place *place) {
        if (strict->n == HFD_STRICT_MAX)
                return;
        hf__strbuf_printf(&strict->lines, "%s%s field \"", strict->n > 0 ? "\n" : "", problem);
        hfd_place_put_path(place, &strict->lines);
        hf__strbuf_putc(&strict->lines, '"');
        strict->n++;
}

/* Removes all members of one object that have the key of a later one. 0 or -ENOMEM. */
static int drop_in_object(struct hf__json *object, const struct hfd_place *place,
                          struct hfd_strict *strict) {
        struct hf__json_index index;
        int r = hf__json_index_init(&index, object, NULL);

        /* Entries with the same text are adjacent, in the order of the members. */
        for (size_t i = 0; r == 0 && i + 1 < index.n; i++) {
                const char *key = index.entries[i].text;
                if (strcmp(key, index.entries[i + 1].text) != 0)
                        continue;
                bool is_first = i == 0 || strcmp(index.entries[i - 1].text, key) != 0;
                const struct hfd_place member = {.up = place, .key = key};
                if (strict && is_first)
                        hfd_strict_add(strict, "duplicate", &member);
                /* The item's own text is freed now; the next round still compares this entry. */
                index.entries[i].text = index.entries[i + 1].text;
                hf__json_free(hf__json_detach(object, index.entries[i].item));
        }
        hf__json_index_done(&index);
        return r;
}

/* The recursion is as deep as the value is nested, which the parser limits. */
static int drop_below(struct hf__json *json, const struct hfd_place *place,
                      struct hfd_strict *strict) {
        bool in_object = hf__json_is_object(json);
        int r = in_object ? drop_in_object(json, place, strict) : 0;
        size_t i = 0;

        if (!in_object && !hf__json_is_array(json))
                return 0;
        for (struct hf__json *m = hf__json_first(json); m && r == 0; m = hf__json_next(m)) {
                const struct hfd_place member = {.up = place,
                                                 .key = in_object ? hf__json_key(m) : NULL,
                                                 .index = i++};
                r = drop_below(m, &member, strict);
        }
        return r;
}

int hfd_strict_drop_duplicates(struct hf__json *json, struct hfd_strict *strict) {
        const struct hfd_place root = {0};
        int r = hf__json_check_unique(json, NULL);

        if (r == 0 || r == -ENOMEM)
                return r;
        return drop_below(json, &root, strict);
}

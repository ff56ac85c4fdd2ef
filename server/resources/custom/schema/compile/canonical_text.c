/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Prints values as JSON with sorted keys (canonical_text.h).
 *
 * Invariants: equal values have equal texts, and different ones different texts. JSON that a client
 * may nest is printed by functions that call themselves; the parser limits the depth (base/json.h).
 */
#include "server/resources/custom/schema/compile/canonical_text.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "base/json.h"
#include "base/strbuf.h"

/* For qsort: members of an object by their keys. */
static int compare_members(const void *a, const void *b) {
        const struct hf__json *const *x = a, *const *y = b;

        return strcmp(hf__json_key(*x), hf__json_key(*y));
}

/* The order of the members of an object means nothing, so equal objects must not differ by it. The
 * array has one more place, so that an empty object does not look like a lack of memory. */
static int print_object(const struct hf__json *object, struct hf__strbuf *out) {
        size_t n = 0;
        const struct hf__json **members = calloc(hf__json_count(object) + 1, sizeof(void *));
        int r = 0;

        if (!members)
                return -ENOMEM;
        for (const struct hf__json *m = hf__json_first(object); m; m = hf__json_next(m))
                members[n++] = m;
        qsort(members, n, sizeof(void *), compare_members);
        hf__strbuf_putc(out, '{');
        for (size_t i = 0; i < n && r == 0; i++) {
                const char *key = hf__json_key(members[i]);
                if (i > 0)
                        hf__strbuf_putc(out, ',');
                hf__strbuf_json(out, key, strlen(key));
                hf__strbuf_putc(out, ':');
                r = hfd_canonical_text(members[i], out);
        }
        hf__strbuf_putc(out, '}');
        free(members);
        return r;
}

int hfd_canonical_text(const struct hf__json *value, struct hf__strbuf *out) {
        int r = 0;

        if (hf__json_is_object(value)) {
                r = print_object(value, out);
        } else if (hf__json_is_array(value)) {
                hf__strbuf_putc(out, '[');
                for (const struct hf__json *m = hf__json_first(value); m && r == 0;
                     m = hf__json_next(m)) {
                        if (m != hf__json_first(value))
                                hf__strbuf_putc(out, ',');
                        r = hfd_canonical_text(m, out);
                }
                hf__strbuf_putc(out, ']');
        } else {
                hf__json_print(value, out);
        }
        return r != 0 ? r : out->error;
}

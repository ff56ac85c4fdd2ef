/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Prints values as JSON with sorted keys (canonical_text.h).
 *
 * Invariants: equal values have equal texts, and different ones different texts. JSON that a client
 * may nest is printed by functions that call themselves; the parser limits the depth (base/json.h).
 */
#include "server/resources/custom/schema/compile/canonical_text.h"

#include <errno.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#include <holdfast/error.h>

#include "base/json.h"
#include "base/strbuf.h"

/* For qsort: members of an object by their keys. */
static int compare_members(const void *a, const void *b) {
        const struct hf__json *const *x = a, *const *y = b;

        return strcmp(hf__json_key(*x), hf__json_key(*y));
}

/* How many more bytes may be printed. out->max 0 = no limit. */
static size_t room_in(const struct hf__strbuf *out) {
        return out->max > 0 ? out->max - out->n : SIZE_MAX;
}

/* Counts the members. False: out has no room for their keys. Each key takes at least four more
 * bytes: two quotes, a colon and the value. So the members of an object that is much too large for
 * out are not sorted. */
static bool count_members(const struct hf__json *object, const struct hf__strbuf *out,
                          size_t *ret_n) {
        size_t room = room_in(out);

        *ret_n = 0;
        for (const struct hf__json *m = hf__json_first(object); m; m = hf__json_next(m)) {
                const size_t n = strnlen(hf__json_key(m), room) + 4;
                if (n > room)
                        return false;
                room -= n;
                ++*ret_n;
        }
        return true;
}

/* The order of the members of an object means nothing, so equal objects must not differ by it. The
 * array has one more place, so that an empty object does not look like a lack of memory. */
static int print_object(const struct hf__json *object, struct hf__strbuf *out) {
        size_t n = 0, i = 0;
        int r = 0;

        if (!count_members(object, out, &n))
                return HF_E_TOO_LARGE;
        const struct hf__json **members = calloc(n + 1, sizeof(void *));
        if (!members)
                return -ENOMEM;
        for (const struct hf__json *m = hf__json_first(object); m; m = hf__json_next(m))
                members[i++] = m;
        qsort(members, n, sizeof(void *), compare_members);
        hf__strbuf_putc(out, '{');
        for (i = 0; i < n && r == 0; i++) {
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
        } else if (hf__json_is_string(value) &&
                   strnlen(hf__json_text(value), room_in(out)) == room_in(out)) {
                r = HF_E_TOO_LARGE; /* it is not read to its end */
        } else {
                hf__json_print(value, out);
        }
        return r != 0 ? r : out->error;
}

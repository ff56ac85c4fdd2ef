/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Reports unknown and duplicate fields, and removes the duplicate ones.
 *
 * Invariants: of several members with the same key the last one stays, as in Go's decoder. What a
 * report costs has a limit (REPORT_MAX), because a small body can name many long paths.
 *
 * Nearly no body has duplicate fields, so the first pass only finds out whether there are some. The
 * second pass reports them in the order of the body, and the third one removes them.
 */
#include "server/schema/strict.h"

#include <assert.h>
#include <errno.h>
#include <string.h>

#include "base/json.h"
#include "base/json_index.h"
#include "server/schema/place.h"
#include "server/schema/schema.h"

/* A report adds no line once its lines have more bytes than this. Lines that it takes back because
 * they repeat others count, too. */
#define REPORT_MAX ((size_t)4 << 20)

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

/* ---- reporting ---- */

/* The place of a line in the text. */
struct line {
        size_t start, n;
};

struct report {
        struct hfd_strict *strict;
        size_t n_bytes;
        struct line lines[HFD_STRICT_MAX]; /* without repeated ones */
        size_t n_lines;
};

static int report_value(struct report *report, const struct hfd_schema *schema,
                        const struct hf__json *json, const struct hfd_place *place);

/* Finds the lines that the caller has added before the report begins. */
static void find_lines(struct report *report) {
        const struct hf__strbuf *lines = &report->strict->lines;

        for (size_t at = 0; at < lines->n && report->n_lines < HFD_STRICT_MAX;) {
                size_t n = strcspn(lines->data + at, "\n");
                report->lines[report->n_lines++] = (struct line){.start = at, .n = n};
                at += n + 1;
        }
}

/* Whether the last line repeats an earlier one, of which there are at most HFD_STRICT_MAX. Only
 * lines of the same length are compared. So a comparison costs at most the bytes of the last line,
 * and REPORT_MAX limits these. */
static bool repeats_line(const struct report *report, struct line last) {
        const char *data = report->strict->lines.data;

        for (size_t i = 0; i < report->n_lines; i++)
                if (report->lines[i].n == last.n &&
                    memcmp(data + report->lines[i].start, data + last.start, last.n) == 0)
                        return true;
        return false;
}

/* Adds a mistake, unless it was added before: if a key occurs twice, both of its values may have a
 * mistake at the same path. */
static void add_once(struct report *report, const char *problem, const struct hfd_place *place) {
        struct hfd_strict *strict = report->strict;
        const struct hfd_strict_mark before = hfd_strict_mark(strict);

        if (report->n_bytes > REPORT_MAX)
                return;
        hfd_strict_add(strict, problem, place);
        report->n_bytes += strict->lines.n - before.n_bytes;
        if (strict->n == before.n || strict->lines.error != 0)
                return;
        size_t start = before.n_bytes + (before.n > 0 ? 1 : 0); /* after the line break */
        const struct line last = {.start = start, .n = strict->lines.n - start};
        if (repeats_line(report, last)) {
                hfd_strict_rewind(strict, before);
                return;
        }
        if (report->n_lines < HFD_STRICT_MAX)
                report->lines[report->n_lines++] = last;
}

/* The schema of a member; NULL = any value. *ret_known: whether Go's decoder knows the member. */
static const struct hfd_schema *member_schema(const struct hfd_schema *schema, const char *key,
                                              bool *ret_known) {
        *ret_known = true;
        if (!schema || schema->type != HFD_SCHEMA_STRUCT)
                return schema ? schema->items : NULL;
        const struct hfd_schema_field *field = hfd_schema_field(schema, key);
        *ret_known = field != NULL;
        return field ? field->schema : NULL;
}

/* Go's decoder reports a duplicate field where its key occurs again. It reports an unknown
 * field, too, but does not look into its value. */
static int report_members(struct report *report, const struct hfd_schema *schema,
                          const struct hf__json *object, const struct hfd_place *place) {
        struct hf__json_index index;
        int r = hf__json_index_init(&index, object, NULL);

        for (struct hf__json *m = hf__json_first(object); m && r == 0; m = hf__json_next(m)) {
                const struct hfd_place member = {.up = place, .key = hf__json_key(m)};
                bool known;
                const struct hfd_schema *below = member_schema(schema, member.key, &known);
                if (!known && schema->preserve_unknown)
                        continue;
                if (!known)
                        add_once(report, "unknown", &member);
                else if (hf__json_index_find(&index, member.key)->item != m)
                        add_once(report, "duplicate", &member);
                if (known)
                        r = report_value(report, below, m, &member);
        }
        hf__json_index_done(&index);
        return r;
}

/* schema NULL = the value has none, so every field is known. For values of types other than STRUCT,
 * MAP and LIST Go has decoders that report nothing. The recursion is as deep as the value is
 * nested. */
static int report_value(struct report *report, const struct hfd_schema *schema,
                        const struct hf__json *json, const struct hfd_place *place) {
        bool in_object =
                     !schema || schema->type == HFD_SCHEMA_STRUCT || schema->type == HFD_SCHEMA_MAP,
             in_array = !schema || schema->type == HFD_SCHEMA_LIST;
        size_t i = 0;
        int r = 0;

        if (report->strict->n == HFD_STRICT_MAX)
                return 0;
        if (in_object && hf__json_is_object(json))
                return report_members(report, schema, json, place);
        if (!in_array || !hf__json_is_array(json))
                return 0;
        for (struct hf__json *m = hf__json_first(json); m && r == 0; m = hf__json_next(m)) {
                const struct hfd_place element = {.up = place, .index = i++};
                r = report_value(report, schema ? schema->items : NULL, m, &element);
        }
        return r;
}

/* ---- removing ---- */

/* Removes all members of one object that have the key of a later one. 0 or -ENOMEM. */
static int drop_in_object(struct hf__json *object) {
        struct hf__json_index index;
        int r = hf__json_index_init(&index, object, NULL);

        /* Entries with the same text are adjacent, in the order of the members. */
        for (size_t i = 0; r == 0 && i + 1 < index.n; i++) {
                if (strcmp(index.entries[i].text, index.entries[i + 1].text) != 0)
                        continue;
                /* The item's text is freed too; the next round compares the next entry. */
                hf__json_free(hf__json_detach(object, index.entries[i].item));
        }
        hf__json_index_done(&index);
        return r;
}

/* The recursion is as deep as the value is nested, which the parser limits. */
static int drop_below(struct hf__json *json) {
        int r = hf__json_is_object(json) ? drop_in_object(json) : 0;

        if (!hf__json_is_object(json) && !hf__json_is_array(json))
                return 0;
        for (struct hf__json *m = hf__json_first(json); m && r == 0; m = hf__json_next(m))
                r = drop_below(m);
        return r;
}

int hfd_strict_drop_duplicates(struct hf__json *json, const struct hfd_schema *schema,
                               struct hfd_strict *strict) {
        const struct hfd_place root = {0};
        struct report report = {.strict = strict};
        int r = hf__json_check_unique(json, NULL);

        if (r == 0 || r == -ENOMEM)
                return r;
        if (strict) {
                find_lines(&report);
                r = report_value(&report, schema, json, &root);
        } else {
                r = 0;
        }
        if (r == 0)
                r = drop_below(json);
        return r == 0 && schema ? 1 : r;
}

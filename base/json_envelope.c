/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Parses JSON values in an envelope, see json_envelope.h. cJSON's limit of the depth cannot be
 * raised. So each container just inside of the envelope, a part, is parsed alone, and so is the
 * outline: the text with "[]" in the place of each part.
 *
 * Invariant: the containers of the outline below its outer levels stand for the parts, in the order
 * of the text.
 */
#include "base/json_envelope.h"

#include <assert.h>

#include <holdfast/error.h>

#include "base/cleanup.h"
#include "base/strbuf.h"

struct part {
        size_t begin, end; /* in the text */
        size_t after;      /* in the outline: the offset after its "[]" */
};

struct split {
        const char *data;          /* borrowed: the text */
        struct hf__strbuf outline; /* owned */
        struct hf__strbuf parts;   /* owned: structs part */
        size_t copied;             /* how much of the text the outline stands for */
        size_t placed;             /* how many parts are in the tree */
};

static const struct part *parts_of(const struct split *split, size_t *ret_n) {
        *ret_n = split->parts.n / sizeof(struct part);
        return (const struct part *)(const void *)split->parts.data;
}

static void split_done(struct split *split) {
        hf__strbuf_done(&split->outline);
        hf__strbuf_done(&split->parts);
}

static void add_part(struct split *split, size_t begin, size_t end) {
        hf__strbuf_add(&split->outline, split->data + split->copied, begin - split->copied);
        hf__strbuf_puts(&split->outline, "[]");
        struct part part = {begin, end, split->outline.n};
        hf__strbuf_add(&split->parts, &part, sizeof part);
        split->copied = end;
}

/* Finds the parts of the text, which need not be JSON: the parser finds that out later. */
static void find_parts(struct split *split, size_t n, size_t levels) {
        const char *data = split->data;
        size_t depth = 0, begin = 0;

        for (size_t i = 0; i < n; i++) {
                if (data[i] == '"') {
                        for (i++; i < n && data[i] != '"'; i++)
                                i += data[i] == '\\';
                } else if (data[i] == '[' || data[i] == '{') {
                        if (depth == levels)
                                begin = i;
                        depth++;
                } else if ((data[i] == ']' || data[i] == '}') && depth > 0) {
                        depth--;
                        if (depth == levels)
                                add_part(split, begin, i + 1);
                }
        }
        if (depth > levels)
                add_part(split, begin, n); /* it has no end, so it cannot be parsed */
        hf__strbuf_add(&split->outline, data + split->copied, n - split->copied);
}

/* Translates an offset in the outline, outside of the parts, to the offset in the text. */
static size_t offset_in_text(const struct split *split, size_t offset) {
        size_t n, end = 0, after = 0;
        const struct part *parts = parts_of(split, &n);

        for (size_t i = 0; i < n && parts[i].after <= offset; i++) {
                end = parts[i].end;
                after = parts[i].after;
        }
        return end + (offset - after);
}

/* Parses the next part, and puts it in the place of its "[]". */
static int place_part(struct split *split, struct hf__json *container, struct hf__json *m,
                      size_t *ret_offset) {
        struct hf__json *value = NULL;
        size_t n, offset = 0;
        const struct part *parts = parts_of(split, &n), *part;

        if (split->placed == n)
                return HF_E_INVALID;
        part = &parts[split->placed++];
        int r = hf__json_parse(split->data + part->begin, part->end - part->begin, &value, &offset);
        if (r == 0)
                return hf__json_replace(container, m, value);
        *ret_offset = part->begin + offset;
        return r;
}

/* Puts the parts into the tree of the outline. The recursion is `levels` deep. */
static int place_parts(struct split *split, struct hf__json *container, size_t levels,
                       size_t *ret_offset) {
        struct hf__json *m = hf__json_first(container);
        int r = 0;

        while (m && r == 0) {
                struct hf__json *next = hf__json_next(m);
                bool is_container = hf__json_is_object(m) || hf__json_is_array(m);
                if (is_container && levels > 1)
                        r = place_parts(split, m, levels - 1, ret_offset);
                else if (is_container)
                        r = place_part(split, container, m, ret_offset);
                m = next;
        }
        return r;
}

int hf__json_parse_envelope(const char *data, size_t n, size_t levels, struct hf__json **ret_json,
                            size_t *reterr_offset) {
        assert(levels > 0 && levels <= HF__JSON_ENVELOPE_MAX);
        HF__CLEANUP(split_done) struct split split = {.data = data};
        HF__CLEANUP(hf__json_cleanup) struct hf__json *root = NULL;
        size_t offset = 0;

        find_parts(&split, n, levels);
        int r = split.outline.error != 0 ? split.outline.error : split.parts.error;
        if (r == 0) {
                r = hf__json_parse(split.outline.data ? split.outline.data : "", split.outline.n,
                                   &root, &offset);
                offset = offset_in_text(&split, offset);
        }
        if (r == 0)
                r = place_parts(&split, root, levels, &offset);
        if (r == 0)
                *ret_json = HF__TAKE(root);
        else if (reterr_offset)
                *reterr_offset = offset;
        return r;
}

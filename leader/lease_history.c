/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Parses and prints the history annotation: a JSON array of entries, oldest first.
 *
 * Invariants: any program may have written the text, so every limit is checked. The printed history
 * is within both limits, entries and bytes, whatever was read: with too many bytes the next reader
 * would drop all of it.
 */
#include "leader/lease_history.h"

#include <assert.h>
#include <inttypes.h>
#include <stdio.h>
#include <string.h>

#include "base/json.h"
#include "base/strbuf.h"
#include "base/time_format.h"

const char *hf__cause_text(enum hf__cause cause) {
        switch (cause) {
        case HF__CAUSE_NONE: break;
        case HF__CAUSE_CREATED: return "created";
        case HF__CAUSE_DELETED: return "deleted";
        case HF__CAUSE_RELEASED: return "released";
        case HF__CAUSE_HANDED_OVER: return "handed-over";
        case HF__CAUSE_EXPIRED: return "expired";
        case HF__CAUSE_DIED: return "died";
        case HF__CAUSE_CHOSEN: return "chosen";
        case HF__CAUSE_REGAINED: return "regained";
        }
        return "";
}

/* False: entry has no string member `key`, or the string does not fit. */
static bool read_text(const struct hf__json *entry, const char *key, char *to, size_t size) {
        const char *text = hf__json_string(entry, key);

        if (!text || strlen(text) >= size)
                return false;
        strcpy(to, text);
        return true;
}

static bool read_entry(const struct hf__json *entry, struct hf__lease_history_entry *ret_entry) {
        struct hf__lease_history_entry *to = ret_entry;
        const char *at = hf__json_string(entry, "at");

        return at && hf__microtime_parse(at, &to->at_us) == 0 &&
               read_text(entry, "holder", to->holder, sizeof to->holder) &&
               read_text(entry, "previous", to->previous, sizeof to->previous) &&
               read_text(entry, "cause", to->cause, sizeof to->cause) &&
               hf__json_i64(entry, "gapMs", &to->gap_ms) && to->gap_ms >= 0;
}

unsigned hf__lease_history_read(const char *text, struct hf__lease_history_entry *ret_list) {
        size_t n = text ? strnlen(text, HF__LEASE_HISTORY_MAX_BYTES + 1) : 0;
        struct hf__json *json = NULL;
        unsigned n_list = 0;

        if (n == 0 || n > HF__LEASE_HISTORY_MAX_BYTES || hf__json_parse(text, n, &json, NULL) != 0)
                return 0;
        const struct hf__json *entry = hf__json_is_array(json) ? hf__json_first(json) : NULL;
        for (size_t skip = hf__json_count(json); entry && skip > HF__LEASE_HISTORY_MAX; skip--)
                entry = hf__json_next(entry);
        while (entry) {
                assert(n_list < HF__LEASE_HISTORY_MAX);
                if (!read_entry(entry, &ret_list[n_list])) {
                        n_list = 0; /* one bad entry: start a new history */
                        break;
                }
                n_list++;
                entry = hf__json_next(entry);
        }
        hf__json_free(json);
        return n_list;
}

static void print_text(struct hf__strbuf *out, const char *key, const char *text) {
        hf__strbuf_printf(out, ",\"%s\":", key);
        hf__strbuf_json(out, text, strlen(text));
}

static void print_entry(struct hf__strbuf *out, const struct hf__lease_history_entry *entry) {
        char at[HF__MICROTIME_MAX];

        hf__microtime_format(entry->at_us, at);
        hf__strbuf_printf(out, "{\"at\":\"%s\"", at);
        print_text(out, "holder", entry->holder);
        print_text(out, "previous", entry->previous);
        print_text(out, "cause", entry->cause);
        hf__strbuf_printf(out, ",\"gapMs\":%" PRId64 "}", entry->gap_ms);
}

static void print_list(struct hf__strbuf *out, const struct hf__lease_history_entry *list,
                       unsigned n) {
        hf__strbuf_putc(out, '[');
        for (unsigned i = 0; i < n; i++) {
                if (i > 0)
                        hf__strbuf_putc(out, ',');
                print_entry(out, &list[i]);
        }
        hf__strbuf_putc(out, ']');
}

void hf__lease_history_append(const char *text, const struct hf__record *record,
                              struct hf__strbuf *out) {
        struct hf__lease_history_entry list[HF__LEASE_HISTORY_MAX + 1];
        unsigned n = hf__lease_history_read(text, list);
        unsigned first = n == HF__LEASE_HISTORY_MAX ? 1 : 0; /* drop the oldest entry if full */
        struct hf__strbuf printed = {0};
        struct hf__lease_history_entry *entry = &list[n];
        const char *previous = record->previous;

        assert(record->cause != HF__CAUSE_NONE);
        /* A released Lease does not name its previous holder. If this process never saw that
         * holder, the name comes from the history. */
        if (!previous[0] && n &&
            (record->cause == HF__CAUSE_RELEASED || record->cause == HF__CAUSE_HANDED_OVER))
                previous = list[n - 1].holder;
        *entry = (struct hf__lease_history_entry){.at_us = record->acquire_us,
                                                  .gap_ms = record->gap_us / 1000};
        (void)snprintf(entry->holder, sizeof entry->holder, "%s", record->holder);
        (void)snprintf(entry->previous, sizeof entry->previous, "%s", previous);
        (void)snprintf(entry->cause, sizeof entry->cause, "%s", hf__cause_text(record->cause));
        /* JSON may need six bytes for a character of an identity, so a full history may exceed the
         * limit. One entry always fits. */
        print_list(&printed, &list[first], n + 1 - first);
        while (printed.n > HF__LEASE_HISTORY_MAX_BYTES && first < n) {
                hf__strbuf_reset(&printed);
                first++;
                print_list(&printed, &list[first], n + 1 - first);
        }
        if (printed.error == 0)
                hf__strbuf_add(out, printed.data, printed.n);
        else if (out->error == 0)
                out->error = printed.error;
        hf__strbuf_done(&printed);
}

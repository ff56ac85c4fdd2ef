/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The functions that search a string for a regular expression: matches, find and findAll.
 *
 * Invariant: a search charges its work to the run, in proportion to the text and the pattern.
 */
#include "base/utf8.h"
#include "cel/functions/computed_pattern.h"
#include "cel/functions/tables.h"
#include "cel/regex/regex.h"

/* The compiled pattern. NULL: *ret_error is why. */
static const struct hf__cel_regex *pattern_of(struct hf__cel_run *run, struct hf__cel_value pattern,
                                              struct hf__cel_value *ret_error) {
        /* A literal pattern was compiled with the expression. */
        return run->prepared ? run->prepared : hf__cel_computed_pattern(run, pattern, ret_error);
}

static struct hf__cel_value call_matches(struct hf__cel_run *run, const struct hf__cel_value *args,
                                         unsigned n) {
        struct hf__cel_value error;
        const struct hf__cel_regex *regex = pattern_of(run, args[1], &error);

        if (!regex)
                return error;
        return hf__cel_bool(
                hf__cel_regex_find(regex, run, args[0].as.text, args[0].n, 0, NULL, NULL));
}

static struct hf__cel_value call_find(struct hf__cel_run *run, const struct hf__cel_value *args,
                                      unsigned n) {
        struct hf__cel_value error;
        const struct hf__cel_regex *regex = pattern_of(run, args[1], &error);
        size_t start = 0;
        size_t end = 0;

        if (!regex)
                return error;
        if (!hf__cel_regex_find(regex, run, args[0].as.text, args[0].n, 0, &start, &end))
                /* Kubernetes' find has no way to say that nothing was found. */
                return hf__cel_string("", 0);
        return hf__cel_string(args[0].as.text + start, end - start);
}

/* Finds all matches, but at most `limit` unless that is negative, and stores them in items unless
 * that is NULL. Returns their number. An empty match directly after another match does not count,
 * as in Go. */
static size_t collect_matches(struct hf__cel_run *run, const struct hf__cel_regex *regex,
                              struct hf__cel_value text, int64_t limit,
                              struct hf__cel_value *items) {
        size_t count = 0;
        size_t from = 0;
        size_t last_end = SIZE_MAX;

        while (from <= text.n && (limit < 0 || (uint64_t)limit > count)) {
                size_t start;
                size_t end;

                if (!hf__cel_regex_find(regex, run, text.as.text, text.n, from, &start, &end))
                        break;
                if (end > start || start != last_end) {
                        if (items)
                                items[count] = hf__cel_string(text.as.text + start, end - start);
                        count++;
                }
                last_end = end;
                from = end;
                if (end == start)
                        from = end < text.n ? hf__utf8_next(text.as.text, text.n, end) : end + 1;
        }
        return count;
}

static struct hf__cel_value find_all(struct hf__cel_run *run, const struct hf__cel_value *args,
                                     unsigned n) {
        struct hf__cel_value error;
        const struct hf__cel_regex *regex = pattern_of(run, args[1], &error);
        int64_t limit = n > 2 ? args[2].as.i : -1;
        struct hf__cel_value *items;
        struct hf__cel_value list;

        if (!regex)
                return error;
        /* Two searches, so that the list has the right size. The work of both counts. */
        list = hf__cel_new_list(run, collect_matches(run, regex, args[0], limit, NULL), &items);
        if (run->failed != 0)
                return hf__cel_failure(run);
        collect_matches(run, regex, args[0], limit, items);
        return list;
}

const struct hf__cel_row hf__cel_regexes[] = {
        {"matches", "(string, string) -> bool", call_matches, HF__CEL_COST_MATCHES},
        {"matches", ".string(string) -> bool", call_matches, HF__CEL_COST_MATCHES},
        {"find", ".string(string) -> string", call_find, HF__CEL_COST_MATCHES},
        {"findAll", ".string(string) -> list(string)", find_all, HF__CEL_COST_MATCHES},
        {"findAll", ".string(string, int) -> list(string)", find_all, HF__CEL_COST_MATCHES},
        {NULL, NULL, NULL, HF__CEL_COST_ONE},
};

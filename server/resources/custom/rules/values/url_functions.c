/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The functions of CEL expressions that take or return a URL: url('https://a/b').getHost().
 *
 * Invariants: a text is a URL if Go's url.ParseRequestURI accepts it. Its parts are those of Go's
 * url.Parse (url_text.c), so url() fails where url.Parse does, too. Parts of a URL are not ended by
 * a NUL. Work that grows faster than the text is charged (call_query).
 */
#include "server/resources/custom/rules/values/url_functions.h"

#include <stdint.h>
#include <stdio.h>
#include <string.h>

#include "base/quote.h"
#include "cel/values/run.h"
#include "server/resources/custom/rules/values/url_text.h"

#define PAIRS_MAX   10000 /* of a query; of a query with more pairs, Go reads none */
#define HEAP_LEVELS 14    /* of a heap of PAIRS_MAX pairs */
#define QUOTED_MAX  200   /* bytes of a text in a message, in quotes and with the NUL */

static const struct hf__cel_type url_type = {.kind = HF__CEL_OPAQUE,
                                             .weight = 1,
                                             .name = "kubernetes.URL"};

/* A value of the CEL type kubernetes.URL. Its parts live as long as the evaluation. */
struct url {
        struct hf__cel_opaque opaque; /* first, so that a pointer to it also points to the struct */
        struct hfd_url_form form;
        struct hfd_url_part host;  /* with the port, without escapes */
        struct hfd_url_part query; /* with escapes */
};

/* URLs are equal if Go writes the same text for both. */
static bool are_equal(const struct hf__cel_opaque *a, const struct hf__cel_opaque *b) {
        const struct hfd_url_part *x = &((const struct url *)(const void *)a)->form.whole;
        const struct hfd_url_part *y = &((const struct url *)(const void *)b)->form.whole;

        return x->n == y->n && memcmp(x->at, y->at, x->n) == 0;
}

static const struct url *url_of(struct hf__cel_value value) {
        return (const struct url *)(const void *)value.as.opaque;
}

/* Go's words for why n bytes are no URL. */
static void write_message(const char *text, size_t n, const char *reason,
                          char message[static HFD_URL_MESSAGE_MAX]) {
        char quoted[QUOTED_MAX];

        hf__quote_bytes(text, n, quoted, sizeof quoted);
        (void)snprintf(message, HFD_URL_MESSAGE_MAX, "parse %s: %s", quoted, reason);
}

bool hfd_url_check(const char *text, size_t n, char message[static HFD_URL_MESSAGE_MAX]) {
        char reason[HFD_URL_REASON_MAX];
        struct hfd_url_text parsed;

        if (hfd_url_text_parse_request(text, n, &parsed, reason))
                return true;
        write_message(text, n, reason, message);
        return false;
}

/* An empty part may have no address. */
static struct hf__cel_value string_of(struct hfd_url_part part) {
        return hf__cel_string(part.n > 0 ? part.at : "", part.n);
}

static struct hf__cel_value is_url(struct hf__cel_run *run, const struct hf__cel_value *args,
                                   unsigned n) {
        char reason[HFD_URL_REASON_MAX];
        struct hfd_url_text parsed;

        return hf__cel_bool(
                hfd_url_text_parse_request(args[0].as.text, args[0].n, &parsed, reason));
}

/* Makes the value. An error value: the run has failed. */
static struct hf__cel_value new_url(struct hf__cel_run *run, const struct hfd_url_text *parsed,
                                    size_t n_text) {
        struct url *url = hf__cel_alloc(run, sizeof *url);
        char *whole = hf__cel_alloc(run, 3 * n_text);
        char *host = hf__cel_alloc(run, parsed->host.n + 1);

        if (!url || !whole || !host)
                return hf__cel_failure(run);
        hfd_url_text_write(parsed, whole, &url->form);
        url->host.at = host;
        url->host.n = hfd_url_part_unescape(parsed->host, false, host);
        url->query = parsed->query;
        url->opaque = (struct hf__cel_opaque){.type = &url_type,
                                              .equal = are_equal,
                                              .n_text = url->form.whole.n};
        return hf__cel_opaque_value(&url->opaque);
}

static struct hf__cel_value call_url(struct hf__cel_run *run, const struct hf__cel_value *args,
                                     unsigned n) {
        const char *text = args[0].as.text;
        char message[HFD_URL_MESSAGE_MAX];
        char reason[HFD_URL_REASON_MAX];
        struct hfd_url_text parsed;
        size_t n_text = args[0].n;

        if (!hf__cel_work(run, n_text / 4))
                return hf__cel_failure(run);
        if (hfd_url_text_parse_request(text, n_text, &parsed, reason) &&
            hfd_url_text_parse(text, n_text, &parsed, &n_text, reason))
                return new_url(run, &parsed, n_text);
        write_message(text, n_text, reason, message);
        return hf__cel_errorf(run, "URL parse error during conversion from string: %s", message);
}

static struct hf__cel_value call_scheme(struct hf__cel_run *run, const struct hf__cel_value *args,
                                        unsigned n) {
        return string_of(url_of(args[0])->form.scheme);
}

static struct hf__cel_value call_host(struct hf__cel_run *run, const struct hf__cel_value *args,
                                      unsigned n) {
        return string_of(url_of(args[0])->host);
}

static struct hf__cel_value call_hostname(struct hf__cel_run *run, const struct hf__cel_value *args,
                                          unsigned n) {
        struct hfd_url_part name, port;

        hfd_url_host_split(url_of(args[0])->host, &name, &port);
        return string_of(name);
}

static struct hf__cel_value call_port(struct hf__cel_run *run, const struct hf__cel_value *args,
                                      unsigned n) {
        struct hfd_url_part name, port;

        hfd_url_host_split(url_of(args[0])->host, &name, &port);
        return string_of(port);
}

static struct hf__cel_value call_path(struct hf__cel_run *run, const struct hf__cel_value *args,
                                      unsigned n) {
        return string_of(url_of(args[0])->form.path);
}

/* A part of a query without its escapes; a plus stands for a space. An error value if an escape is
 * malformed, or if the run has failed. */
static struct hf__cel_value unescape_text(struct hf__cel_run *run, struct hfd_url_part part) {
        char *out = hf__cel_alloc(run, part.n + 1);
        size_t n;

        if (!out)
                return hf__cel_failure(run);
        n = hfd_url_part_unescape(part, true, out);
        return n == SIZE_MAX ? hf__cel_error_text("invalid URL escape") : hf__cel_string(out, n);
}

/* The part without its first n bytes. */
static struct hfd_url_part text_after(struct hfd_url_part part, size_t n) {
        return n > 0 ? (struct hfd_url_part){part.at + n, part.n - n} : part;
}

/* Moves the next pair from *query to *ret. False: the pair does not count, because it is empty,
 * contains a semicolon or has a malformed escape (Go leaves out such pairs as well), or the run has
 * failed. */
static bool take_pair(struct hf__cel_run *run, struct hfd_url_part *query,
                      struct hf__cel_entry *ret) {
        struct hfd_url_part pair = {query->at, hfd_url_part_find(*query, '&')};
        size_t equals;

        *query = text_after(*query, pair.n < query->n ? pair.n + 1 : pair.n);
        if (pair.n == 0 || hfd_url_part_find(pair, ';') < pair.n)
                return false;
        equals = hfd_url_part_find(pair, '=');
        ret->key = unescape_text(run, (struct hfd_url_part){pair.at, equals});
        ret->value = unescape_text(run, text_after(pair, equals < pair.n ? equals + 1 : pair.n));
        return !hf__cel_is_error(ret->key) && !hf__cel_is_error(ret->value);
}

static bool same_key(struct hf__cel_value a, struct hf__cel_value b) {
        return a.n == b.n && memcmp(a.as.text, b.as.text, a.n) == 0;
}

/* Numbers the keys of pairs by their order: pairs with the same key get the same number. Returns
 * how many keys there are. */
static size_t number_keys(const struct hf__cel_entry *pairs, size_t n, const uint32_t *order,
                          uint32_t *numbers) {
        uint32_t n_keys = 0;

        for (size_t i = 0; i < n; i++) {
                if (i == 0 || !same_key(pairs[order[i - 1]].key, pairs[order[i]].key))
                        n_keys++;
                numbers[order[i]] = n_keys - 1;
        }
        return n_keys;
}

/* The map from each key to the list of its values, in the order of the pairs. Each array has room
 * for one more, so that none of them has the size 0 if there are no pairs. */
static struct hf__cel_value group_pairs(struct hf__cel_run *run, const struct hf__cel_entry *pairs,
                                        size_t n) {
        uint32_t *order = hf__cel_alloc(run, (n + 1) * sizeof *order);
        uint32_t *numbers = hf__cel_alloc(run, (n + 1) * sizeof *numbers);
        uint32_t *starts = hf__cel_alloc(run, (n + 1) * sizeof *starts);
        struct hf__cel_value *items = hf__cel_alloc(run, (n + 1) * sizeof *items);
        struct hf__cel_list *lists = hf__cel_alloc(run, (n + 1) * sizeof *lists);
        struct hf__cel_entry *entries = hf__cel_alloc(run, (n + 1) * sizeof *entries);
        uint32_t start = 0;
        size_t n_keys;

        if (!order || !numbers || !starts || !items || !lists || !entries)
                return hf__cel_failure(run);
        hf__cel_map_index(pairs, n, order);
        n_keys = number_keys(pairs, n, order, numbers);
        memset(lists, 0, n_keys * sizeof *lists);
        for (size_t i = 0; i < n; i++)
                lists[numbers[i]].n++;
        for (size_t k = 0; k < n_keys; k++) {
                starts[k] = start;
                lists[k].items = items + start;
                start += (uint32_t)lists[k].n;
        }
        for (size_t i = 0; i < n; i++) {
                uint32_t k = numbers[i];

                items[starts[k]++] = pairs[i].value;
                entries[k] = (struct hf__cel_entry){pairs[i].key, hf__cel_list_value(&lists[k])};
        }
        return hf__cel_new_map(run, entries, n_keys);
}

static struct hf__cel_value call_query(struct hf__cel_run *run, const struct hf__cel_value *args,
                                       unsigned n) {
        struct hfd_url_part rest = url_of(args[0])->query;
        struct hf__cel_entry *pairs;
        size_t n_max = 1;
        size_t n_pairs = 0;

        /* group_pairs sorts the keys: heap sort compares a key at each level of the heap. */
        if (!hf__cel_work(run, rest.n / 32 * HEAP_LEVELS))
                return hf__cel_failure(run);
        for (size_t i = 0; i < rest.n; i++)
                n_max += rest.at[i] == '&' ? 1 : 0;
        if (n_max > PAIRS_MAX)
                rest.n = n_max = 0;
        pairs = hf__cel_alloc(run, (n_max + 1) * sizeof *pairs);
        if (!pairs || !hf__cel_work(run, n_max))
                return hf__cel_failure(run);
        while (rest.n > 0 && run->failed == 0)
                n_pairs += take_pair(run, &rest, &pairs[n_pairs]) ? 1 : 0;
        return run->failed != 0 ? hf__cel_failure(run) : group_pairs(run, pairs, n_pairs);
}

#define U   "kubernetes.URL"
#define ONE HF__CEL_COST_ONE

/* A row: the name, the types of arguments and result (with a dot first: a method), the function,
 * and what a call is charged (function.h). */
const struct hf__cel_row hfd_url_functions[] = {
        {"url", "(string) -> " U, call_url, HF__CEL_COST_FIRST},
        {"isURL", "(string) -> bool", is_url, ONE},
        {"getScheme", "." U "() -> string", call_scheme, ONE},
        {"getHost", "." U "() -> string", call_host, ONE},
        {"getHostname", "." U "() -> string", call_hostname, ONE},
        {"getPort", "." U "() -> string", call_port, ONE},
        {"getEscapedPath", "." U "() -> string", call_path, ONE},
        {"getQuery", "." U "() -> map(string, list(string))", call_query, ONE},
        {NULL, NULL, NULL, ONE},
};

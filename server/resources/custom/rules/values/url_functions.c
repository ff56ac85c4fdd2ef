/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The functions of CEL expressions that take or return a URL: url('https://a/b').getHost().
 *
 * Invariants: a text is a URL if Go's url.ParseRequestURI accepts it: an absolute URL, an absolute
 * path or "*"; # has no meaning in it. Parts of a URL are not ended by a NUL. Work that grows
 * faster than the text is charged (call_query).
 */
#include "server/resources/custom/rules/values/url_functions.h"

#include <string.h>

#include "base/text.h"
#include "cel/values/run.h"

#define PAIRS_MAX 1000 /* of a query; further ones are left out */

static const struct hf__cel_type url_type = {.kind = HF__CEL_OPAQUE,
                                             .weight = 1,
                                             .name = "kubernetes.URL"};

/* A part of a text; borrowed. */
struct text {
        const char *at;
        size_t n;
};

/* A value of the CEL type kubernetes.URL. Its parts point into the text that was parsed, which
 * lives at least as long as the evaluation. */
struct url {
        struct hf__cel_opaque opaque; /* first, so that a pointer to it is one to the value */
        struct text whole;
        struct text scheme;
        struct text host; /* with the port */
        struct text path;
        struct text query;
};

/* URLs are equal if their texts are. */
static bool are_equal(const struct hf__cel_opaque *a, const struct hf__cel_opaque *b) {
        const struct text *x = &((const struct url *)(const void *)a)->whole;
        const struct text *y = &((const struct url *)(const void *)b)->whole;

        return x->n == y->n && (x->n == 0 || memcmp(x->at, y->at, x->n) == 0);
}

/* The text without its first n bytes. */
static struct text text_after(struct text t, size_t n) { return (struct text){t.at + n, t.n - n}; }

static bool begins_with(struct text t, const char *start) {
        size_t n = strlen(start);

        return t.n >= n && memcmp(t.at, start, n) == 0;
}

/* The index of the last c in the text; t.n = it contains none. first_index has the same result for
 * the first c. */
static size_t last_index(struct text t, char c) {
        const char *found = t.at && t.n > 0 ? memrchr(t.at, c, t.n) : NULL;

        return found ? (size_t)(found - t.at) : t.n;
}

static size_t first_index(struct text t, char c) {
        const char *found = t.n > 0 ? memchr(t.at, c, t.n) : NULL;

        return found ? (size_t)(found - t.at) : t.n;
}

static bool is_letter(char c) { return (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z'); }

/* Whether each % begins an escape. host: as in Go, an escape in a host must stand for a byte that
 * is not ASCII, or for the % itself. */
static bool has_escapes(struct text t, bool host) {
        for (size_t i = 0; i < t.n; i++) {
                if (t.at[i] != '%')
                        continue;
                if (t.n - i < 3 || hf__hex_digit(t.at[i + 1]) < 0 ||
                    hf__hex_digit(t.at[i + 2]) < 0 ||
                    (host && hf__hex_digit(t.at[i + 1]) < 8 && memcmp(t.at + i, "%25", 3) != 0))
                        return false;
                i += 2;
        }
        return true;
}

static bool are_host_characters(struct text t) {
        for (size_t i = 0; i < t.n; i++) {
                char c = t.at[i];

                if (!((unsigned char)c >= 0x80 || is_letter(c) || hf__is_digit(c) ||
                      strchr("-_.~!$&'()*+,;=:[]<>\"%", c)))
                        return false;
        }
        return true;
}

/* "" or a colon and digits. */
static bool is_port(struct text t) {
        if (t.n > 0 && t.at[0] != ':')
                return false;
        for (size_t i = 1; i < t.n; i++)
                if (!hf__is_digit(t.at[i]))
                        return false;
        return true;
}

/* Returns NULL, or Go's words for what is wrong with a host and its port. */
static const char *check_host(struct text host) {
        size_t end = last_index(host, ']');

        if (begins_with(host, "[")) {
                if (end == host.n)
                        return "missing ']' in host";
                if (!is_port(text_after(host, end + 1)))
                        return "invalid port after host";
                return are_host_characters(host) ? NULL : "invalid character in host name";
        }
        if (last_index(host, ':') < host.n && !is_port(text_after(host, last_index(host, ':'))))
                return "invalid port after host";
        if (!has_escapes(host, true))
                return "invalid URL escape";
        return are_host_characters(host) ? NULL : "invalid character in host name";
}

static bool is_user(struct text t) {
        for (size_t i = 0; i < t.n; i++)
                if (!is_letter(t.at[i]) && !hf__is_digit(t.at[i]) &&
                    !strchr("-._:~!$&'()*+,;=%@", t.at[i]))
                        return false;
        return has_escapes(t, false);
}

/* Moves the scheme from the beginning of *rest to *ret_scheme, and drops the colon. Without a
 * scheme *ret_scheme is empty. False: the text begins with a colon. */
static bool take_scheme(struct text *rest, struct text *ret_scheme) {
        size_t n = 0;

        *ret_scheme = (struct text){rest->at, 0};
        while (n < rest->n && (is_letter(rest->at[n]) || (n > 0 && (hf__is_digit(rest->at[n]) ||
                                                                    strchr("+-.", rest->at[n])))))
                n++;
        if (n == rest->n || rest->at[n] != ':')
                return true;
        if (n == 0)
                return false;
        ret_scheme->n = n;
        *rest = text_after(*rest, n + 1);
        return true;
}

/* Moves the authority after "//" from *rest to out->host, without the user. Returns NULL, or Go's
 * words for what is wrong with it. */
static const char *take_authority(struct text *rest, struct url *out) {
        struct text authority = text_after(*rest, 2);
        size_t n = first_index(authority, '/');
        size_t at;

        *rest = text_after(authority, n);
        authority.n = n;
        at = last_index(authority, '@');
        if (at < n && !is_user((struct text){authority.at, at}))
                return "net/url: invalid userinfo";
        out->host = at < n ? text_after(authority, at + 1) : authority;
        return check_host(out->host);
}

/* Returns NULL, or Go's words for why the text is no URL. */
static const char *parse_url(struct hf__cel_value value, struct url *out) {
        struct text rest = {value.as.text, value.n};
        size_t question;
        const char *wrong;

        *out = (struct url){.opaque = {.type = &url_type, .equal = are_equal, .n_text = rest.n},
                            .whole = rest};
        /* This refuses NULs too, which strchr would find in the lists of characters above. */
        for (size_t i = 0; i < rest.n; i++)
                if ((unsigned char)rest.at[i] < ' ' || rest.at[i] == 0x7f)
                        return "net/url: invalid control character in URL";
        if (rest.n == 0)
                return "empty url";
        if (!take_scheme(&rest, &out->scheme))
                return "missing protocol scheme";
        question = first_index(rest, '?');
        if (question < rest.n)
                out->query = text_after(rest, question + 1);
        rest.n = question;
        if (!begins_with(rest, "/"))
                return out->scheme.n > 0 || (rest.n == 1 && *rest.at == '*')
                               ? NULL
                               : "invalid URI for request";
        if (out->scheme.n > 0 && begins_with(rest, "//")) {
                wrong = take_authority(&rest, out);
                if (wrong)
                        return wrong;
        }
        out->path = rest;
        return has_escapes(rest, false) ? NULL : "invalid URL escape";
}

static const struct url *url_of(struct hf__cel_value value) {
        return (const struct url *)(const void *)value.as.opaque;
}

const char *hfd_url_check(const char *text, size_t n) {
        struct url parsed;

        return parse_url(hf__cel_string(text, n), &parsed);
}

/* An empty part may have no address. */
static struct hf__cel_value string_of(struct text t) {
        return hf__cel_string(t.n > 0 ? t.at : "", t.n);
}

static struct hf__cel_value is_url(struct hf__cel_run *run, const struct hf__cel_value *args,
                                   unsigned n) {
        struct url parsed;

        return hf__cel_bool(parse_url(args[0], &parsed) == NULL);
}

static struct hf__cel_value call_url(struct hf__cel_run *run, const struct hf__cel_value *args,
                                     unsigned n) {
        struct url parsed;
        const char *wrong = parse_url(args[0], &parsed);
        struct url *kept;

        if (wrong)
                return hf__cel_errorf(run,
                                      "URL parse error during conversion from string: parse "
                                      "\"%.*s\": %s",
                                      (int)(args[0].n > 200 ? 200 : args[0].n), args[0].as.text,
                                      wrong);
        kept = hf__cel_alloc(run, sizeof *kept);
        if (!kept)
                return hf__cel_failure(run);
        *kept = parsed;
        return hf__cel_opaque_value(&kept->opaque);
}

static struct hf__cel_value call_scheme(struct hf__cel_run *run, const struct hf__cel_value *args,
                                        unsigned n) {
        struct text t = url_of(args[0])->scheme;
        char *lower = hf__cel_alloc(run, t.n + 1);

        if (!lower)
                return hf__cel_failure(run);
        for (size_t i = 0; i < t.n; i++)
                lower[i] = (char)(t.at[i] >= 'A' && t.at[i] <= 'Z' ? t.at[i] + 32 : t.at[i]);
        return hf__cel_string(lower, t.n);
}

static struct hf__cel_value call_host(struct hf__cel_run *run, const struct hf__cel_value *args,
                                      unsigned n) {
        return string_of(url_of(args[0])->host);
}

/* The index of the colon before the port; without a port, the end of the host. */
static size_t port_start(struct text h) {
        size_t colon = last_index(h, ':');
        size_t bracket = last_index(h, ']');

        return colon < h.n && (bracket == h.n || colon > bracket) ? colon : h.n;
}

static struct hf__cel_value call_hostname(struct hf__cel_run *run, const struct hf__cel_value *args,
                                          unsigned n) {
        struct text h = url_of(args[0])->host;

        h.n = port_start(h);
        if (h.n > 1 && h.at[0] == '[' && h.at[h.n - 1] == ']')
                h = (struct text){h.at + 1, h.n - 2};
        return string_of(h);
}

static struct hf__cel_value call_port(struct hf__cel_run *run, const struct hf__cel_value *args,
                                      unsigned n) {
        struct text h = url_of(args[0])->host;
        size_t start = port_start(h);

        return string_of(text_after(h, start < h.n ? start + 1 : h.n));
}

static struct hf__cel_value call_path(struct hf__cel_run *run, const struct hf__cel_value *args,
                                      unsigned n) {
        return string_of(url_of(args[0])->path);
}

/* A part of a query without its escapes; a plus stands for a space. An error value if an escape is
 * malformed, or if the run has failed. */
static struct hf__cel_value unescape_text(struct hf__cel_run *run, struct text t) {
        char *out = hf__cel_alloc(run, t.n + 1);
        size_t n = 0;

        if (!out)
                return hf__cel_failure(run);
        if (!has_escapes(t, false))
                return hf__cel_error_text("invalid URL escape");
        for (size_t i = 0; i < t.n; i++) {
                out[n] = t.at[i] == '+' ? ' ' : t.at[i];
                if (t.at[i] == '%') {
                        out[n] = (char)(hf__hex_digit(t.at[i + 1]) * 16 +
                                        hf__hex_digit(t.at[i + 2]));
                        i += 2;
                }
                n++;
        }
        return hf__cel_string(out, n);
}

/* Moves the next pair from *query to *ret. False: the pair does not count, because it is empty,
 * contains a semicolon or has a malformed escape (Go leaves out such pairs as well), or the run has
 * failed. */
static bool take_pair(struct hf__cel_run *run, struct text *query, struct hf__cel_entry *ret) {
        struct text pair = {query->at, first_index(*query, '&')};
        size_t equals;

        *query = text_after(*query, pair.n < query->n ? pair.n + 1 : pair.n);
        if (pair.n == 0 || first_index(pair, ';') < pair.n)
                return false;
        equals = first_index(pair, '=');
        ret->key = unescape_text(run, (struct text){pair.at, equals});
        ret->value = unescape_text(run, text_after(pair, equals < pair.n ? equals + 1 : pair.n));
        return !hf__cel_is_error(ret->key) && !hf__cel_is_error(ret->value);
}

static bool same_key(struct hf__cel_value a, struct hf__cel_value b) {
        return a.n == b.n && memcmp(a.as.text, b.as.text, a.n) == 0;
}

/* A map of each key to the list of its values, in their order. */
static struct hf__cel_value call_query(struct hf__cel_run *run, const struct hf__cel_value *args,
                                       unsigned n) {
        struct text rest = url_of(args[0])->query;
        struct hf__cel_entry *pairs = hf__cel_alloc(run, PAIRS_MAX * sizeof *pairs);
        struct hf__cel_entry *entries = hf__cel_alloc(run, PAIRS_MAX * sizeof *entries);
        size_t n_pairs = 0;
        size_t n_entries = 0;

        while (rest.n > 0 && n_pairs < PAIRS_MAX && run->failed == 0)
                n_pairs += take_pair(run, &rest, &pairs[n_pairs]) ? 1 : 0;
        for (size_t i = 0; i < n_pairs && run->failed == 0; i++) {
                struct hf__cel_value *items;
                struct hf__cel_list *list;
                size_t count = 0;
                bool seen = false;

                for (size_t k = 0; k < n_entries && !seen; k++)
                        seen = same_key(entries[k].key, pairs[i].key);
                /* A new key is now compared with all pairs, which is charged first. The search
                 * above costs no more for each pair, because it only sees keys that were charged.
                 */
                if (seen || !hf__cel_work(run, n_pairs * (1 + pairs[i].key.n / 16)))
                        continue;
                list = hf__cel_alloc(run, sizeof *list);
                items = hf__cel_alloc(run, (n_pairs - i) * sizeof *items);
                for (size_t k = i; items && k < n_pairs; k++)
                        if (same_key(pairs[k].key, pairs[i].key))
                                items[count++] = pairs[k].value;
                if (!list || !items)
                        break;
                *list = (struct hf__cel_list){.n = count, .items = items};
                entries[n_entries++] =
                        (struct hf__cel_entry){pairs[i].key, hf__cel_list_value(list)};
        }
        return run->failed != 0 ? hf__cel_failure(run) : hf__cel_new_map(run, entries, n_entries);
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

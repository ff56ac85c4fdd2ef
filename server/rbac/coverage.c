/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Whether a user holds all rights that given rules grant. Each rule is taken apart into rights: one
 * verb for one resource, of one group, with one name or any; or one verb for one URL. Some rule of
 * the user must give each right as a whole.
 *
 * Invariant: the work and the message are bounded, because any client that may write roles chooses
 * the rules. A rule with more than RIGHTS_MAX rights is not taken apart. Nor is a rule with
 * which more than TAKEN_MAX rights would be taken apart, or any later rule. The rights to resources
 * of such a rule are covered only if one rule of the user grants everything for resources; its
 * rights to URLs, only if one rule grants everything for URLs. A user may hold very many rules,
 * too: after COMPARED_MAX comparisons, the rights that are left count as missing.
 */
#include "server/rbac/coverage.h"

#include <assert.h>
#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "base/json.h"
#include "base/strbuf.h"
#include "server/rbac/decision.h"
#include "server/rbac/index_private.h"

#define RIGHTS_MAX 5000  /* of one rule that is taken apart */
#define TAKEN_MAX  50000 /* of all rules that are taken apart */
/* Texts of the user's rules that are compared with rights; some 50 ms. */
#define COMPARED_MAX  20000000
#define URL_COST      8    /* a URL of a rule of the user counts as so many comparisons */
#define LOOKED_UP_MAX 1024 /* bytes of a text; names of the API are shorter */
#define URL_UNIT      64   /* bytes of a URL that count as one text */
#define MISSING_MAX   200  /* lines */
#define TEXT_MAX      256  /* bytes of a text that are shown: no name is longer */
#define VERBS_MAX     2048 /* bytes of a line's verbs; beyond that, no verb is added */

/* One right. verb is never NULL; group and resource are NULL in a right for a URL. */
struct right {
        const char *verb, *group, *resource;
        const char *name; /* NULL = any name */
        const char *url;  /* NULL = a right for resources */
};

/* A right as numbers of the index. HFD_TEXT_NONE = no rule of the index names this text, or the
 * right has no such text. */
struct numbers {
        uint32_t verb, group, resource;
        uint32_t any_with_subresource; /* "*" and the part of the resource from its slash on */
        uint32_t name;
        uint64_t bits; /* of the resources that match */
};

/* Missing rights that differ only in their verb. */
struct line {
        struct right right;
        struct hf__strbuf verbs; /* `"get" "list"` */
};

struct check {
        const struct hfd_rbac_index *index;
        const struct hfd_rbac_rule **held; /* owned; the rules of the user */
        size_t n_held;
        size_t next_held; /* where the search for the next right begins */
        size_t n_compared;
        bool all_resources, all_urls; /* one rule of the user grants everything */
        struct line *lines;           /* owned; room for MISSING_MAX, of which n_lines are used */
        size_t n_lines;
        size_t last_line; /* the index of the line that got the last missing right */
        size_t n_taken;   /* rights of the rules that have at most RIGHTS_MAX; see TAKEN_MAX */
        bool covered;
};

/* ---- the user's rights ---- */

static int collect_held(struct check *check, const struct hfd_subject *subject, const char *ns) {
        const struct hfd_rbac_index *index = check->index;
        struct hfd_rbac_grants grants;
        const struct hfd_rbac_grant *grant;
        size_t n = 0;

        hfd_rbac_grants_init(&grants, index, subject, ns);
        while ((grant = hfd_rbac_grants_next(&grants))) {
                uint32_t role = grant->role;
                n += role == HFD_RBAC_NO_ROLE ? 0 : index->roles[role].n_rules;
        }
        check->held = malloc((n + 1) * sizeof(struct hfd_rbac_rule *)); /* + 1: never 0 bytes */
        if (!check->held)
                return -ENOMEM;
        hfd_rbac_grants_init(&grants, index, subject, ns);
        while ((grant = hfd_rbac_grants_next(&grants))) {
                uint32_t number = grant->role;
                if (number == HFD_RBAC_NO_ROLE)
                        continue;
                const struct hfd_rbac_role *role = &index->roles[number];
                for (uint32_t i = 0; i < role->n_rules; i++)
                        check->held[check->n_held++] = &index->rules[role->first_rule + i];
        }
        return 0;
}

static const char *text_at(const struct check *check, const struct hfd_rbac_list *list,
                           uint32_t i) {
        return hfd_texts_at(&check->index->texts, check->index->numbers[list->at + i]);
}

/* A text of more than LOOKED_UP_MAX bytes counts as unknown: a rule can have thousands of rights
 * with the same text, and each look-up hashes it. */
static uint32_t find_text(const struct check *check, const char *text) {
        size_t n = text ? strnlen(text, LOOKED_UP_MAX + 1) : 0;

        if (!text || n > LOOKED_UP_MAX)
                return HFD_TEXT_NONE;
        return hfd_texts_find(&check->index->texts, text, n);
}

/* For "pods/log" the number of the text "*" + "/log": a rule with this text covers "pods/log", too.
 * HFD_TEXT_NONE: the right is not for a subresource, or no rule has the text. */
static uint32_t find_any_with(const struct check *check, const char *resource) {
        char text[LOOKED_UP_MAX + 2]; /* + 2: the star and the NUL */
        const char *slash = strnlen(resource, LOOKED_UP_MAX + 1) <= LOOKED_UP_MAX
                                    ? strchr(resource, '/')
                                    : NULL;
        size_t n = slash ? hf__join(text, sizeof text, "*", slash, NULL) : 0;

        return n ? hfd_texts_find(&check->index->texts, text, n) : HFD_TEXT_NONE;
}

/* The numbers of a right's group and resource. They are the same for many rights in a row, and the
 * texts may be long, so they are not looked up for each right. */
static struct numbers find_resource(const struct check *check, const struct right *right) {
        struct numbers numbers = {.group = find_text(check, right->group),
                                  .resource = find_text(check, right->resource)};

        if (right->resource)
                numbers.any_with_subresource = find_any_with(check, right->resource);
        numbers.bits = hfd_rbac_bit(numbers.resource) | hfd_rbac_bit(numbers.any_with_subresource);
        return numbers;
}

/* HFD_TEXT_NONE is in no list. */
static bool list_has(const struct check *check, const struct hfd_rbac_list *list, uint32_t number) {
        const uint32_t *numbers = check->index->numbers + list->at;

        for (uint32_t i = 0; i < list->n && number != HFD_TEXT_NONE; i++)
                if (numbers[i] == number)
                        return true;
        return false;
}

static bool has_or_star(const struct check *check, const struct hfd_rbac_list *list,
                        uint32_t number) {
        return list_has(check, list, HFD_TEXT_STAR) || list_has(check, list, number);
}

static bool covers_url(struct check *check, const struct hfd_rbac_list *list, const char *url) {
        for (uint32_t i = 0; i < list->n; i++) {
                const char *held = text_at(check, list, i);
                check->n_compared += strlen(held) / URL_UNIT;
                if (hfd_rbac_url_covers(held, url))
                        return true;
        }
        return false;
}

static bool is_held_by(struct check *check, const struct hfd_rbac_rule *held,
                       const struct right *right, const struct numbers *numbers) {
        if (!has_or_star(check, &held->verbs, numbers->verb))
                return false;
        if (right->url)
                return covers_url(check, &held->urls, right->url);
        return has_or_star(check, &held->groups, numbers->group) &&
               (has_or_star(check, &held->resources, numbers->resource) ||
                list_has(check, &held->resources, numbers->any_with_subresource)) &&
               (held->names.n == 0 ||
                (right->name && list_has(check, &held->names, numbers->name)));
}

/* Begins with the rule that gave the last right, because the rules are often in the same order as
 * those of the user. */
static bool is_held(struct check *check, const struct right *right, struct numbers numbers) {
        numbers.verb = find_text(check, right->verb);
        numbers.name = find_text(check, right->name);
        for (size_t i = 0; i < check->n_held && check->n_compared <= COMPARED_MAX; i++) {
                size_t at = (check->next_held + i) % check->n_held;
                const struct hfd_rbac_rule *held = check->held[at];
                check->n_compared++;
                if (!right->url && (held->resource_bits & numbers.bits) == 0)
                        continue;
                check->n_compared += (size_t)held->verbs.n + held->groups.n + held->resources.n +
                                     held->names.n + (size_t)URL_COST * held->urls.n;
                if (is_held_by(check, held, right, &numbers)) {
                        check->next_held = at;
                        return true;
                }
        }
        return false;
}

/* ---- missing rights ---- */

/* Whether the texts are equal, as far as a line shows them. + 1: a text that ends there differs
 * from one that goes on. */
static bool texts_equal(const char *a, const char *b) {
        return a && b ? a == b || strncmp(a, b, TEXT_MAX + 1) == 0 : a == b;
}

/* The line for a right that differs only in its verb; NULL = there is none. The rights to one
 * resource come verb by verb, and for each verb with the names in the same order. So the line is
 * mostly the one that was used last, or the one after that. */
static struct line *find_line(struct check *check, const struct right *right) {
        for (size_t i = 0; i < check->n_lines && !right->url; i++) {
                size_t at = (check->last_line + i) % check->n_lines;
                const struct right *known = &check->lines[at].right;
                if (!known->url && texts_equal(known->name, right->name) &&
                    texts_equal(known->resource, right->resource) &&
                    texts_equal(known->group, right->group)) {
                        check->last_line = at;
                        return &check->lines[at];
                }
        }
        return NULL;
}

/* Appends the beginning of text in quotes, as Go's %q quotes it in the usual cases. */
static void put_quoted(struct hf__strbuf *out, const char *text) {
        size_t n = strnlen(text, TEXT_MAX + 1);

        if (n > TEXT_MAX)
                for (n = TEXT_MAX; n > 0 && ((unsigned char)text[n] & 0xc0) == 0x80;)
                        n--; /* not within a character of UTF-8 */
        hf__strbuf_json(out, text, n);
}

/* As in Kubernetes, rights for one resource that differ in their verb share a line, and each right
 * for a URL has its own. */
static void note_missing(struct check *check, const struct right *right) {
        check->covered = false;
        if (check->n_lines == MISSING_MAX)
                return;
        struct line *line = find_line(check, right);
        if (!line) {
                assert(check->n_lines < MISSING_MAX);
                check->last_line = check->n_lines++;
                line = &check->lines[check->last_line];
                *line = (struct line){.right = *right};
        }
        if (line->verbs.n > VERBS_MAX)
                return;
        if (line->verbs.n > 0)
                hf__strbuf_putc(&line->verbs, ' ');
        put_quoted(&line->verbs, right->verb);
}

static void put_member(struct hf__strbuf *out, const char *key, const char *value) {
        if (!value)
                return;
        hf__strbuf_printf(out, "%s%s:[", out->n > 1 ? ", " : "", key);
        put_quoted(out, value);
        hf__strbuf_putc(out, ']');
}

static void put_line(struct hf__strbuf *out, const struct line *line) {
        hf__strbuf_putc(out, '{');
        put_member(out, "APIGroups", line->right.group);
        put_member(out, "Resources", line->right.resource);
        put_member(out, "NonResourceURLs", line->right.url);
        put_member(out, "ResourceNames", line->right.name);
        hf__strbuf_printf(out, ", Verbs:[%s]}", line->verbs.data ? line->verbs.data : "");
        if (line->verbs.error != 0)
                out->error = line->verbs.error;
}

static int compare_texts(const void *a, const void *b) {
        const struct hf__strbuf *left = a, *right = b;

        return strcmp(left->data ? left->data : "", right->data ? right->data : "");
}

static int put_missing(struct check *check, struct hf__strbuf *out) {
        struct hf__strbuf *texts = calloc(check->n_lines, sizeof *texts);

        assert(check->n_lines > 0); /* there is one for the right that is not covered */
        if (!texts)
                return -ENOMEM;
        for (size_t i = 0; i < check->n_lines; i++) {
                put_line(&texts[i], &check->lines[i]);
                if (texts[i].error != 0)
                        out->error = texts[i].error;
        }
        qsort(texts, check->n_lines, sizeof *texts, compare_texts);
        for (size_t i = 0; i < check->n_lines && out->error == 0; i++)
                if (i == 0 || compare_texts(&texts[i - 1], &texts[i]) != 0)
                        hf__strbuf_printf(out, "%s%s", i ? "\n" : "", texts[i].data);
        for (size_t i = 0; i < check->n_lines; i++)
                hf__strbuf_done(&texts[i]);
        free(texts);
        return out->error;
}

/* ---- taking rules apart ---- */

#define EACH(m, list)                                                                              \
        const struct hf__json *m = hf__json_first(list);                                           \
        m;                                                                                         \
        m = hf__json_next(m)

static const char *text_of(const struct hf__json *json) {
        const char *text = hf__json_text(json);

        return text ? text : "";
}

static void check_right(struct check *check, const struct right *right,
                        const struct numbers *numbers) {
        if (!is_held(check, right, *numbers))
                note_missing(check, right);
}

/* Checks all rights of a rule for one group and one resource. */
static void check_resource(struct check *check, const struct hf__json *rule, struct right right) {
        const struct hf__json *names = hf__json_get(rule, "resourceNames");
        const struct numbers numbers = find_resource(check, &right);

        for (EACH(verb, hf__json_get(rule, "verbs"))) {
                right.verb = text_of(verb);
                right.name = NULL;
                if (hf__json_count(names) == 0)
                        check_right(check, &right, &numbers);
                for (EACH(name, names)) {
                        right.name = text_of(name);
                        check_right(check, &right, &numbers);
                }
        }
}

static void check_parts(struct check *check, const struct hf__json *rule) {
        for (EACH(group, hf__json_get(rule, "apiGroups")))
                for (EACH(resource, hf__json_get(rule, "resources")))
                        check_resource(check, rule,
                                       (struct right){.group = text_of(group),
                                                      .resource = text_of(resource)});
        for (EACH(url, hf__json_get(rule, "nonResourceURLs")))
                for (EACH(verb, hf__json_get(rule, "verbs")))
                        check_right(check,
                                    &(struct right){.verb = text_of(verb), .url = text_of(url)},
                                    &(struct numbers){0});
}

/* Whether one rule of the user grants every verb for all URLs or, if not `urls`, all resources. */
static bool holds_all(const struct check *check, bool urls) {
        for (size_t i = 0; i < check->n_held; i++) {
                const struct hfd_rbac_rule *held = check->held[i];
                if (list_has(check, &held->verbs, HFD_TEXT_STAR) &&
                    (urls ? list_has(check, &held->urls, HFD_TEXT_STAR)
                          : held->names.n == 0 && list_has(check, &held->groups, HFD_TEXT_STAR) &&
                                     list_has(check, &held->resources, HFD_TEXT_STAR)))
                        return true;
        }
        return false;
}

static size_t count_members(const struct hf__json *rule, const char *key) {
        return hf__json_count(hf__json_get(rule, key));
}

/* The product, or RIGHTS_MAX + 1 if it is larger than RIGHTS_MAX. */
static size_t bounded_product(size_t a, size_t b) {
        return b > 0 && a > RIGHTS_MAX / b ? RIGHTS_MAX + 1 : a * b;
}

static void check_rule(struct check *check, const struct hf__json *rule) {
        size_t n_names = count_members(rule, "resourceNames"),
               n_urls = count_members(rule, "nonResourceURLs");
        size_t n =
                bounded_product(bounded_product(bounded_product(count_members(rule, "verbs"),
                                                                count_members(rule, "apiGroups")),
                                                count_members(rule, "resources")),
                                n_names ? n_names : 1);

        bool of_resources = n > 0 && !check->all_resources,
             of_urls = n_urls > 0 && !check->all_urls;

        if (!of_resources && !of_urls)
                return;
        n += bounded_product(n_urls, count_members(rule, "verbs"));
        if (n <= RIGHTS_MAX)
                check->n_taken += n;
        if (n <= RIGHTS_MAX && check->n_taken <= TAKEN_MAX) {
                check_parts(check, rule);
                return;
        }
        if (of_resources)
                note_missing(check, &(struct right){.verb = "*", .group = "*", .resource = "*"});
        if (of_urls)
                note_missing(check, &(struct right){.verb = "*", .url = "*"});
}

int hfd_rbac_covers(const struct hfd_rbac_index *index, const struct hfd_subject *subject,
                    const char *ns, const struct hf__json *rules, bool *ret_covered,
                    struct hf__strbuf *missing) {
        struct check check = {.index = index, .covered = true};
        int r = collect_held(&check, subject, ns);

        if (r != 0)
                return r;
        check.all_resources = holds_all(&check, false);
        check.all_urls = holds_all(&check, true);
        check.lines = calloc(MISSING_MAX, sizeof *check.lines);
        if (!check.lines)
                r = -ENOMEM;
        for (const struct hf__json *m = hf__json_first(rules); m && r == 0; m = hf__json_next(m))
                check_rule(&check, m);
        *ret_covered = check.covered;
        if (r == 0 && !check.covered)
                r = put_missing(&check, missing);
        for (size_t i = 0; i < check.n_lines; i++)
                hf__strbuf_done(&check.lines[i].verbs);
        free(check.lines);
        free(check.held);
        return r;
}

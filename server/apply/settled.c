/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Reads metadata.managedFields in one pass over a copy of its text. Strings in the copy get a NUL
 * in place of their closing quote, so they need no further memory.
 *
 * Invariant: if this file accepts a list, managers.c decodes the list to the same managers and
 * sets. In doubt a list is not settled, which costs only time. So the reader knows no white space,
 * no escapes and no other steps than names: many lists that the server writes, as those of the
 * Leases of leaders, have none of them.
 */
#include "server/apply/settled.h"

#include <assert.h>
#include <string.h>

#include "base/arena.h"
#include "base/json_plain.h"
#include "server/apply/reconcile.h"
#include "server/schema/schema.h"

#define NAME_BYTES 6 /* of the shortest entry of a set: `".":{}` */

struct reader {
        char *at, *end;                 /* *end is a NUL, at which no function reads on */
        struct hfd_settled_name *names; /* room for all that the text may have */
        size_t n_names;
};

/* Needs no check of the end: the NUL there equals no character that a caller asks for. */
static bool take_char(struct reader *r, char c) {
        if (*r->at != c)
                return false;
        r->at++;
        return true;
}

/* NULL: there is no string, or it has an escape. */
static char *read_string(struct reader *r) {
        char *begin = r->at + 1, *quote;

        if (*r->at != '"')
                return NULL;
        quote = begin + (hf__json_skip_plain(begin, r->end) - begin);
        if (*quote != '"')
                return NULL;
        *quote = '\0';
        r->at = quote + 1;
        return begin;
}

/* The room suffices: each name has taken at least NAME_BYTES of the text, except that the closing
 * brace of the last one is not read yet (hfd_settled_read). */
static struct hfd_settled_name *add_name(struct reader *r, const char *key) {
        assert(r->at <= r->end);
        r->names[r->n_names].key = key;
        return &r->names[r->n_names++];
}

/* The entries of a set, after its opening brace; there is at least one. False also if a value with
 * fields below it is atomic in the schema: hfd_reconcile would change the set. The server writes
 * the entries in the order of their texts. So a text that occurs twice, which managers.c would
 * join and hfd_settled_find would not, is not settled. */
static bool read_names(struct reader *r, const struct hfd_schema *schema, unsigned depth) {
        const char *before = NULL;

        if (depth >= HFD_SETTLED_DEPTH)
                return false;
        do {
                const char *key = read_string(r);
                bool is_self = key && strcmp(key, ".") == 0;
                if (!key || (!is_self && (key[0] != 'f' || key[1] != ':')) || !take_char(r, ':') ||
                    !take_char(r, '{') || (before && strcmp(before, key) >= 0))
                        return false;
                before = key;
                struct hfd_settled_name *name = add_name(r, key);
                if (!take_char(r, '}')) {
                        const struct hfd_schema *below =
                                is_self ? NULL : hfd_schema_of_member(schema, key + 2);
                        if (is_self || hfd_reconcile_is_whole(below) ||
                            !read_names(r, below, depth + 1))
                                return false;
                }
                name->n_below = (size_t)(&r->names[r->n_names] - name) - 1;
        } while (take_char(r, ','));
        return take_char(r, '}');
}

/* The members of an entry. Each is NULL before it is read. */
struct entry {
        const char *manager, *operation, *api_version, *time, *type, *subresource;
        struct hfd_settled_name *set;
};

/* The place for the value of a member. NULL: an entry has no member `key`, or it was read already.
 * Of a key that occurs twice, managers.c uses the first value, and this reader would keep the last.
 */
static const char **member_of(struct entry *entry, const char *key) {
        const struct {
                const char *key, **value;
        } members[] = {
                {"manager", &entry->manager},        {"operation", &entry->operation},
                {"apiVersion", &entry->api_version}, {"time", &entry->time},
                {"fieldsType", &entry->type},        {"subresource", &entry->subresource},
        };

        for (size_t i = 0; i < sizeof members / sizeof members[0]; i++)
                if (key[0] == members[i].key[0] && strcmp(key, members[i].key) == 0)
                        return *members[i].value ? NULL : members[i].value;
        return NULL;
}

static bool read_members(struct reader *r, const struct hfd_schema *schema, struct entry *entry) {
        const char *key, **value;

        if (!take_char(r, '{'))
                return false;
        do {
                key = read_string(r);
                if (!key || !take_char(r, ':'))
                        return false;
                if (strcmp(key, "fieldsV1") == 0) {
                        if (entry->set || !take_char(r, '{'))
                                return false;
                        entry->set = add_name(r, "");
                        if (!read_names(r, schema, 0))
                                return false;
                        entry->set->n_below = (size_t)(&r->names[r->n_names] - entry->set) - 1;
                        continue;
                }
                value = member_of(entry, key);
                if (!value || !(*value = read_string(r)))
                        return false;
        } while (take_char(r, ','));
        return take_char(r, '}');
}

static bool read_entry(struct reader *r, const struct hfd_schema *schema, const char *text,
                       struct hfd_settled *settled) {
        struct entry e = {0};

        /* A manager without a time is not settled: a renewal writes the time over the old one. */
        if (settled->n == HFD_SETTLED_MAX || !read_members(r, schema, &e) || !e.set || !e.time ||
            !*e.time || !e.api_version || !*e.api_version || !e.type ||
            strcmp(e.type, "FieldsV1") != 0 || !e.operation)
                return false;
        bool applies = strcmp(e.operation, "Apply") == 0;
        if (!applies && strcmp(e.operation, "Update") != 0)
                return false;
        assert(settled->n < HFD_SETTLED_MAX && e.time >= text);
        settled->managers[settled->n] =
                (struct hfd_manager){.name = e.manager ? e.manager : "",
                                     .subresource = e.subresource ? e.subresource : "",
                                     .api_version = e.api_version,
                                     .time = e.time,
                                     .applies = applies};
        settled->times[settled->n] = (size_t)(e.time - text);
        settled->sets[settled->n] = e.set;
        return hfd_settled_follows(settled, settled->n++);
}

bool hfd_settled_read(struct hf__arena *scratch, const struct hfd_schema *schema, const char *text,
                      size_t n, struct hfd_settled *ret_settled) {
        char *copy = hf__arena_text(scratch, text, n);
        struct reader r = {.at = copy,
                           /* + 1: a name is added before its closing brace is read. */
                           .names = hf__arena_alloc(scratch,
                                                    (n / NAME_BYTES + 1) * sizeof *r.names)};

        ret_settled->n = 0;
        if (!copy || !r.names)
                return false;
        r.end = copy + n;
        if (!take_char(&r, '['))
                return false;
        do {
                if (!read_entry(&r, schema, copy, ret_settled))
                        return false;
        } while (take_char(&r, ','));
        return take_char(&r, ']') && r.at == r.end;
}

bool hfd_settled_follows(const struct hfd_settled *settled, size_t i) {
        const struct hfd_manager *managers = settled->managers;

        assert(i < HFD_SETTLED_MAX);
        for (size_t k = 0; k < i; k++)
                if (hfd_manager_is_same(&managers[k], &managers[i]))
                        return false;
        return i == 0 || hfd_managers_order_in_list(&managers[i - 1], &managers[i]) < 0;
}

const struct hfd_settled_name *hfd_settled_find(const struct hfd_settled *settled, size_t i,
                                                const char *const *path, size_t n_path) {
        assert(i < settled->n);
        const struct hfd_settled_name *at = settled->sets[i];

        for (size_t k = 0; k < n_path && at; k++) {
                const struct hfd_settled_name *name = at + 1, *end = name + at->n_below;
                while (name < end && (name->key[0] != 'f' || strcmp(name->key + 2, path[k]) != 0))
                        name += 1 + name->n_below;
                at = name < end ? name : NULL;
        }
        return at;
}

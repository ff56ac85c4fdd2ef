/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Decodes and encodes metadata.managedFields, and looks managers up in it.
 *
 * Invariant: a client can send thousands of entries. So nothing here compares every entry with
 * every other one: duplicates are found by sorting, and hfd_managers_union halves the list.
 */
#include "server/apply/managers.h"

#include <assert.h>
#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include <holdfast/error.h>

#include "base/arena.h"
#include "base/json.h"
#include "server/apply/sets/fields_json.h"

/* ---- one manager ---- */

/* The version is a part of an updating manager's identity, because its set names fields of that
 * version. A manager that applies has one set only; it moves to the version of the next apply. */
static int order_of_identity(const struct hfd_manager *a, const struct hfd_manager *b) {
        int order = b->applies - a->applies;

        if (order == 0)
                order = strcmp(a->name, b->name);
        if (order == 0 && !a->applies)
                order = strcmp(a->api_version, b->api_version);
        return order == 0 ? strcmp(a->subresource, b->subresource) : order;
}

bool hfd_manager_is_same(const struct hfd_manager *a, const struct hfd_manager *b) {
        return order_of_identity(a, b) == 0;
}

/* Unions and differences of sets return an argument if nothing changes (fields.h), so most
 * comparisons are of two pointers. */
void hfd_manager_set_fields(struct hfd_manager *manager, const struct hfd_fields *fields) {
        if (manager->fields != fields && !hfd_fields_equal(manager->fields, fields))
                manager->entry = NULL;
        manager->fields = fields;
}

/* ---- the list ---- */

struct hfd_manager *hfd_managers_find(const struct hfd_managers *managers,
                                      const struct hfd_manager *like) {
        for (size_t i = 0; i < managers->n; i++)
                if (hfd_manager_is_same(&managers->at[i], like))
                        return &managers->at[i];
        return NULL;
}

struct hfd_manager *hfd_managers_add(struct hf__arena *scratch, struct hfd_managers *managers,
                                     const struct hfd_manager *manager) {
        assert(managers->n <= managers->space);
        if (managers->n == managers->space) {
                size_t space = managers->space ? 2 * managers->space : 4;
                struct hfd_manager *at = hf__arena_alloc(scratch, space * sizeof *at);
                if (!at)
                        return NULL;
                if (managers->n > 0)
                        memcpy(at, managers->at, managers->n * sizeof *at);
                managers->at = at;
                managers->space = space;
        }
        managers->at[managers->n] = *manager;
        return &managers->at[managers->n++];
}

/* Unites halves: uniting one set after the other would copy the growing set each time. */
const struct hfd_fields *hfd_managers_union(struct hf__arena *scratch,
                                            const struct hfd_manager *managers, size_t n) {
        if (n < 2)
                return n == 1 ? managers->fields : NULL;
        return hfd_fields_union(scratch, hfd_managers_union(scratch, managers, n / 2),
                                hfd_managers_union(scratch, managers + n / 2, n - n / 2));
}

/* Keeps the order. Kubernetes drops these managers too: an entry without fields says nothing. */
void hfd_managers_drop_empty(struct hfd_managers *managers) {
        size_t n = 0;

        for (size_t i = 0; i < managers->n; i++)
                if (managers->at[i].fields)
                        managers->at[n++] = managers->at[i];
        managers->n = n;
}

/* ---- decoding ---- */

/* A string member, "" if it is missing or null. NULL: it is no string. */
static const char *text_of(const struct hf__json *entry, const char *key) {
        const struct hf__json *value = hf__json_get(entry, key);

        return !value || hf__json_is_null(value) ? "" : hf__json_text(value);
}

int hfd_manager_decode(struct hf__json *entry, struct hfd_manager *ret_manager) {
        const char *operation = text_of(entry, "operation");
        struct hfd_manager m = {.name = text_of(entry, "manager"),
                                .subresource = text_of(entry, "subresource"),
                                .api_version = text_of(entry, "apiVersion"),
                                .time = text_of(entry, "time"),
                                .entry = entry};

        if (!hf__json_is_object(entry) || !hf__json_has_text(entry, "fieldsType", "FieldsV1") ||
            !operation || !m.name || !m.subresource || !m.api_version || !*m.api_version || !m.time)
                return HF_E_INVALID;
        m.applies = strcmp(operation, "Apply") == 0;
        if (!m.applies && strcmp(operation, "Update") != 0)
                return HF_E_INVALID;
        m.time = *m.time ? m.time : NULL;
        *ret_manager = m;
        return 0;
}

/* Decodes an entry with its set of fields. */
static int decode_entry(struct hf__arena *scratch, struct hf__json *entry,
                        struct hfd_manager *ret_manager) {
        const struct hf__json *fields = hf__json_get(entry, "fieldsV1");
        int r = hfd_manager_decode(entry, ret_manager);

        if (r == 0 && fields && !hf__json_is_null(fields))
                r = hfd_fields_parse(scratch, fields, &ret_manager->fields);
        return r;
}

/* Orders by identity. Of the entries of one manager, the last one in the list comes first. */
static int order_for_decode(const void *a, const void *b) {
        const struct hfd_manager *const *x = a, *const *y = b;
        int order = order_of_identity(*x, *y);

        return order != 0 ? order : (*x < *y) - (*x > *y);
}

/* Drops all but the last of the entries of one manager. */
static int drop_repeated(struct hf__arena *scratch, struct hfd_managers *managers) {
        const struct hfd_manager **sorted = hf__arena_alloc(scratch, managers->n * sizeof *sorted);
        bool *drop = hf__arena_alloc(scratch, managers->n * sizeof *drop);
        size_t n = 0;

        if (!sorted || !drop)
                return -ENOMEM;
        for (size_t i = 0; i < managers->n; i++) {
                sorted[i] = &managers->at[i];
                drop[i] = false;
        }
        qsort(sorted, managers->n, sizeof *sorted, order_for_decode);
        for (size_t i = 1; i < managers->n; i++)
                if (hfd_manager_is_same(sorted[i - 1], sorted[i]))
                        drop[sorted[i] - managers->at] = true;
        for (size_t i = 0; i < managers->n; i++)
                if (!drop[i])
                        managers->at[n++] = managers->at[i];
        managers->n = n;
        return 0;
}

int hfd_managers_decode(struct hf__arena *scratch, struct hf__json *list,
                        struct hfd_managers *ret_managers) {
        struct hfd_managers managers = {0};
        struct hfd_manager manager;

        if (list && !hf__json_is_null(list) && !hf__json_is_array(list))
                return HF_E_INVALID;
        for (struct hf__json *m = hf__json_first(list); m; m = hf__json_next(m)) {
                int r = decode_entry(scratch, m, &manager);
                if (r != 0)
                        return r;
                if (!hfd_managers_add(scratch, &managers, &manager))
                        return -ENOMEM;
        }
        if (managers.n > 1 && drop_repeated(scratch, &managers) != 0)
                return -ENOMEM;
        *ret_managers = managers;
        return 0;
}

/* ---- encoding ---- */

int hfd_managers_order_of_times(const struct hfd_manager *a, const struct hfd_manager *b) {
        /* All times are stored in one format, so the order of the texts is that of the times. */
        return strcmp(a->time ? a->time : "", b->time ? b->time : "");
}

/* Kubernetes' order of the entries: appliers first, then by time. The order is total, so the list
 * does not depend on the order in which managers were found. */
int hfd_managers_order_in_list(const struct hfd_manager *x, const struct hfd_manager *y) {
        int order = y->applies - x->applies;

        if (order == 0)
                order = hfd_managers_order_of_times(x, y);
        if (order == 0)
                order = strcmp(x->name, y->name);
        if (order == 0)
                order = strcmp(x->api_version, y->api_version);
        return order == 0 ? strcmp(x->subresource, y->subresource) : order;
}

static int order_in_list(const void *a, const void *b) { return hfd_managers_order_in_list(a, b); }

/* A new entry. Its members have the order in which Kubernetes writes them; no reader depends on it.
 * NULL: out of memory. */
static struct hf__json *encode_entry(const struct hfd_manager *m) {
        struct hf__json *entry = hf__json_object();
        int r = hf__json_add_string(entry, "manager", m->name);

        if (r == 0)
                r = hf__json_add_string(entry, "operation", m->applies ? "Apply" : "Update");
        if (r == 0)
                r = hf__json_add_string(entry, "apiVersion", m->api_version);
        if (r == 0 && m->time)
                r = hf__json_add_string(entry, "time", m->time);
        if (r == 0)
                r = hf__json_add_string(entry, "fieldsType", "FieldsV1");
        if (r == 0)
                r = hf__json_add(entry, "fieldsV1", hfd_fields_to_json(m->fields));
        if (r == 0 && *m->subresource)
                r = hf__json_add_string(entry, "subresource", m->subresource);
        return r == 0 ? entry : hf__json_free(entry);
}

/* Moves the entry of a manager whose fields have not changed, and updates its time and version. */
static int move_entry(const struct hfd_manager *m, struct hf__json *from, struct hf__json *to) {
        struct hf__json *entry = hf__json_detach(from, m->entry);
        int r = hf__json_append(to, entry);

        if (r == 0 && m->time && !hf__json_has_text(entry, "time", m->time))
                r = hf__json_put_string(entry, "time", m->time);
        if (r == 0 && !hf__json_has_text(entry, "apiVersion", m->api_version))
                r = hf__json_put_string(entry, "apiVersion", m->api_version);
        return r;
}

int hfd_managers_encode(struct hfd_managers *managers, struct hf__json *list,
                        struct hf__json **ret_list) {
        struct hf__json *result;
        int r = 0;

        *ret_list = NULL;
        assert(managers->n == 0 || managers->at);
        if (managers->n == 0)
                return 0;
        result = hf__json_array();
        if (!result)
                return -ENOMEM;
        if (managers->n > 1)
                qsort(managers->at, managers->n, sizeof managers->at[0], order_in_list);
        for (size_t i = 0; i < managers->n && r == 0; i++) {
                struct hfd_manager *m = &managers->at[i];
                if (m->entry)
                        r = move_entry(m, list, result);
                else
                        r = hf__json_append(result, encode_entry(m));
        }
        if (r == 0)
                *ret_list = result;
        else
                hf__json_free(result);
        return r;
}

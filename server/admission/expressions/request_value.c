/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Makes the values of the variables request and namespaceObject, whose types are in
 * resources/expressions/request_types.c. Texts are borrowed from the attributes and the JSON.
 *
 * When the arena is exhausted, a function returns null. The arena remembers its failure, so the
 * evaluation fails.
 *
 * Invariant: fields that are empty are left out where Kubernetes' JSON leaves them out, so that
 * has() says the same.
 */
#include "server/admission/expressions/request_value.h"

#include <assert.h>
#include <stdlib.h>
#include <string.h>

#include "base/arena.h"
#include "base/json.h"
#include "server/admission/admission.h"
#include "server/admission/expressions/expression_input.h"
#include "server/auth/user.h"
#include "server/resources/custom/rules/values/rule_value.h"
#include "server/resources/resource.h"

#define FIELDS_MAX 16 /* more than any of the objects here has */

/* A map that is being filled with at most FIELDS_MAX entries. */
struct fields {
        struct hf__arena *arena;
        struct hf__cel_entry *entries;
        size_t n;
};

static bool fields_init(struct fields *fields, struct hf__arena *arena) {
        *fields = (struct fields){.arena = arena};
        fields->entries = hf__arena_alloc(arena, FIELDS_MAX * sizeof *fields->entries);
        return fields->entries != NULL;
}

static void put_field(struct fields *fields, const char *name, struct hf__cel_value value) {
        if (fields->n < FIELDS_MAX)
                fields->entries[fields->n++] =
                        (struct hf__cel_entry){hf__cel_string(name, strlen(name)), value};
}

static struct hf__cel_value text_value(const char *value) {
        return hf__cel_string(value, strlen(value));
}

/* Puts a text, unless it is empty. */
static void put_text(struct fields *fields, const char *name, const char *value) {
        if (value[0])
                put_field(fields, name, text_value(value));
}

static struct hf__cel_value map_value(struct hf__arena *arena, const struct hf__cel_entry *entries,
                                      size_t n) {
        struct hf__cel_map *map = hf__arena_alloc(arena, sizeof *map);

        if (!map)
                return hf__cel_null();
        *map = (struct hf__cel_map){.n = n, .entries = entries};
        return hf__cel_map_value(map);
}

static struct hf__cel_value list_value(struct hf__arena *arena, const struct hf__cel_value *items,
                                       size_t n) {
        struct hf__cel_list *list = hf__arena_alloc(arena, sizeof *list);

        if (!list)
                return hf__cel_null();
        *list = (struct hf__cel_list){.n = n, .items = items};
        return hf__cel_list_value(list);
}

/* A group, a version, and a kind or a resource: `name` is the name of that member. */
static struct hf__cel_value group_version_value(struct hf__arena *arena,
                                                const struct hfd_resource *resource,
                                                const char *name, const char *value) {
        struct fields fields;

        if (!fields_init(&fields, arena))
                return hf__cel_null();
        put_field(&fields, "group", text_value(resource->group));
        put_field(&fields, "version", text_value(resource->version));
        put_field(&fields, name, text_value(value));
        return map_value(arena, fields.entries, fields.n);
}

static struct hf__cel_value groups_value(struct hf__arena *arena,
                                         const struct hfd_subject *subject) {
        struct hf__cel_value *items = hf__arena_alloc(arena, subject->n_groups * sizeof *items);

        if (!items)
                return hf__cel_null();
        for (size_t i = 0; i < subject->n_groups; i++)
                items[i] = text_value(subject->groups[i]);
        return list_value(arena, items, subject->n_groups);
}

/* One key of extra with one of its values. */
struct pair {
        const char *key, *value;
};

/* By key. The values of one key keep their order in extra, in which the keys lie one after the
 * other: so their addresses decide. */
static int compare_pairs(const void *a, const void *b) {
        const struct pair *x = a, *y = b;
        int r = strcmp(x->key, y->key);

        return r != 0 ? r : (x->key > y->key) - (x->key < y->key);
}

/* Fills pairs, unless it is NULL. Returns how many pairs extra has. */
static size_t read_extra(const struct hfd_requester *user, struct pair *pairs) {
        size_t n = 0;

        for (const char *key = user->extra; key < user->extra + user->n_extra; n++) {
                const char *value = key + strlen(key) + 1;

                if (pairs)
                        pairs[n] = (struct pair){key, value};
                key = value + strlen(value) + 1;
        }
        return n;
}

/* user->extra has pairs of texts, each with its NUL: key, value, key, value. A key may occur more
 * than once, so each becomes a key with a list of values. All lists share one array, so memory and
 * time stay in proportion to the pairs. */
static struct hf__cel_value extra_value(struct hf__arena *arena, const struct hfd_requester *user) {
        size_t n = read_extra(user, NULL), n_keys = 0, end;
        struct pair *pairs = hf__arena_alloc(arena, n * sizeof *pairs);
        struct hf__cel_value *items = hf__arena_alloc(arena, n * sizeof *items);
        struct hf__cel_entry *entries = hf__arena_alloc(arena, n * sizeof *entries);

        if (!pairs || !items || !entries)
                return hf__cel_null();
        (void)read_extra(user, pairs);
        qsort(pairs, n, sizeof *pairs, compare_pairs);
        for (size_t i = 0; i < n; i = end) {
                for (end = i; end < n && strcmp(pairs[end].key, pairs[i].key) == 0; end++)
                        items[end] = text_value(pairs[end].value);
                entries[n_keys].key = text_value(pairs[i].key);
                entries[n_keys++].value = list_value(arena, items + i, end - i);
        }
        return map_value(arena, entries, n_keys);
}

/* user NULL: the request is one of the server's own. */
static struct hf__cel_value user_value(struct hf__arena *arena, const struct hfd_requester *user) {
        static const char *const groups[] = {HFD_GROUP_MASTERS, "system:authenticated"};
        static const struct hfd_subject server = {"system:apiserver", groups, 2};
        const struct hfd_subject *subject = user ? &user->subject : &server;
        struct fields fields;

        if (!fields_init(&fields, arena))
                return hf__cel_null();
        put_text(&fields, "username", subject->name);
        if (user)
                put_text(&fields, "uid", user->uid ? user->uid : "");
        if (subject->n_groups > 0)
                put_field(&fields, "groups", groups_value(arena, subject));
        if (user && user->n_extra > 0)
                put_field(&fields, "extra", extra_value(arena, user));
        return map_value(arena, fields.entries, fields.n);
}

struct hf__cel_value hfd_request_value(struct hf__arena *arena,
                                       const struct hfd_expression_input *input) {
        const struct hfd_admission_attributes *of = input->of;
        struct fields fields;

        assert(of->resource && input->resource && input->kind);
        if (!fields_init(&fields, arena))
                return hf__cel_null();
        /* As in Kubernetes, only a review that is sent to a webhook has a uid. */
        put_field(&fields, "uid", text_value(""));
        put_field(&fields, "kind",
                  group_version_value(arena, input->kind, "kind", input->kind->kind));
        put_field(&fields, "resource",
                  group_version_value(arena, input->resource, "resource", input->resource->plural));
        put_text(&fields, "subResource", of->subresource);
        put_field(&fields, "requestKind",
                  group_version_value(arena, of->kind, "kind", of->kind->kind));
        put_field(&fields, "requestResource",
                  group_version_value(arena, of->resource, "resource", of->resource->plural));
        put_text(&fields, "requestSubResource", of->subresource);
        put_text(&fields, "name", of->name);
        put_text(&fields, "namespace", of->ns);
        put_field(&fields, "operation", text_value(hfd_admission_operation_name(of->operation)));
        put_field(&fields, "userInfo", user_value(arena, of->user));
        put_field(&fields, "dryRun", hf__cel_bool(of->dry_run));
        put_field(&fields, "options",
                  input->options ? hfd_rule_value(arena, NULL, input->options) : hf__cel_null());
        return map_value(arena, fields.entries, fields.n);
}

/* The parts of metadata that Kubernetes shows; managedFields and ownerReferences are left out. */
static struct hf__cel_value metadata_value(struct hf__arena *arena, const struct hf__json *json) {
        static const char *const shown[] = {"name",       "generateName",
                                            "labels",     "annotations",
                                            "uid",        "creationTimestamp",
                                            "generation", "deletionGracePeriodSeconds",
                                            "finalizers", "deletionTimestamp",
                                            "namespace",  "resourceVersion"};
        struct fields fields;

        if (!fields_init(&fields, arena))
                return hf__cel_null();
        for (size_t i = 0; i < sizeof shown / sizeof shown[0]; i++) {
                const struct hf__json *member = hf__json_get(json, shown[i]);

                if (member)
                        put_field(&fields, shown[i], hfd_rule_value(arena, NULL, member));
        }
        return map_value(arena, fields.entries, fields.n);
}

struct hf__cel_value hfd_namespace_value(struct hf__arena *arena, const struct hf__json *json) {
        static const char *const shown[] = {"spec", "status"};
        struct fields fields;

        if (!json)
                return hf__cel_null();
        if (!fields_init(&fields, arena))
                return hf__cel_null();
        put_field(&fields, "metadata", metadata_value(arena, hf__json_get(json, "metadata")));
        for (size_t i = 0; i < 2; i++) {
                const struct hf__json *member = hf__json_get(json, shown[i]);

                put_field(&fields, shown[i],
                          member ? hfd_rule_value(arena, NULL, member) : map_value(arena, NULL, 0));
        }
        return map_value(arena, fields.entries, fields.n);
}

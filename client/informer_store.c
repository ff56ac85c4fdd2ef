/* SPDX-License-Identifier: Apache-2.0 */
/*
 * What the cache holds: one entry per object, in key order. Whether an object is new, changed or
 * gone is decided here, by what the store knows, not by what the event says: a list met between two
 * watches makes the words of either relative.
 */
#include "client/informer_private.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "base/buf.h"
#include "base/json.h"
#include "client/json_span.h"

struct metadata {
        struct hf__json *json; /* owned; the rest is borrowed from it */
        const char *ns, *name, *resource_version;
};

static int metadata_of(struct hf__span object, struct metadata *ret_metadata) {
        struct hf__span text;

        *ret_metadata = (struct metadata){0};
        if (!hf__span_member(object, "metadata", &text))
                return -EPROTO;
        int r = hf__json_parse(text.data, text.n, &ret_metadata->json, NULL);
        if (r != 0)
                return r < 0 ? r : -EPROTO;
        const char *ns = hf__json_string(ret_metadata->json, "namespace");
        ret_metadata->ns = ns ? ns : "";
        ret_metadata->name = hf__json_string(ret_metadata->json, "name");
        ret_metadata->resource_version = hf__json_string(ret_metadata->json, "resourceVersion");
        if (ret_metadata->name && ret_metadata->name[0] && ret_metadata->resource_version &&
            strlen(ret_metadata->resource_version) < HF__INFORMER_RV_MAX)
                return 0;
        ret_metadata->json = hf__json_free(ret_metadata->json);
        return -EPROTO;
}

static struct hf__informer_entry *entry_new(const struct metadata *metadata) {
        size_t n_ns = strlen(metadata->ns), n_name = strlen(metadata->name);
        struct hf__informer_entry *entry = calloc(1, sizeof *entry + 2 * (n_ns + n_name) + 4);

        if (!entry)
                return NULL;
        char *at = entry->text; /* the key, then namespace and name by themselves */
        entry->keyed.key = at;
        if (n_ns > 0) {
                at = mempcpy(at, metadata->ns, n_ns);
                *at++ = '/';
        }
        at = (char *)mempcpy(at, metadata->name, n_name) + 1;
        entry->ns = at;
        at = (char *)mempcpy(at, metadata->ns, n_ns) + 1;
        entry->name = at;
        memcpy(at, metadata->name, n_name);
        return entry;
}

static void entry_free(struct hf__informer_entry *entry) {
        (void)hf__buf_unref(entry->object);
        free(entry->nodes);
        free(entry);
}

/* ---- changes ---- */

static void set_object(struct hf__informer_entry *entry, const char *resource_version,
                       struct hf__buf *object) {
        struct hf__buf *old = entry->object;

        entry->object = hf__buf_ref(object);
        memset(entry->resource_version, 0, sizeof entry->resource_version);
        memcpy(entry->resource_version, resource_version, strlen(resource_version));
        (void)hf__buf_unref(old);
}

/* Makes the object the entry's, or fresh's when there is none yet, in the store and its indexes at
 * once. 0 or -ENOMEM. */
static int store(struct hf_informer *informer, struct hf__informer_entry *entry,
                 struct hf__informer_entry *fresh, const char *resource_version,
                 struct hf__buf *object) {
        struct hf__informer_entry *target = entry ? entry : fresh;
        struct hf_informer_values values;

        int r = hf__indexer_values_of(informer, target, object->data, object->n, &values);
        if (r == 0) {
                (void)pthread_mutex_lock(&informer->mu);
                if (!entry)
                        r = hf__key_index_insert(&informer->store, &fresh->keyed);
                if (r == 0 && (r = hf__indexer_swap_locked(informer, target, &values)) < 0 &&
                    !entry)
                        hf__key_index_remove(&informer->store, fresh->keyed.key);
                if (r == 0) {
                        set_object(target, resource_version, object);
                        target->generation = informer->generation;
                }
                (void)pthread_mutex_unlock(&informer->mu);
        }
        hf__indexer_values_done(&values);
        return r;
}

static void drop(struct hf_informer *informer, struct hf__informer_entry *entry,
                 const struct hf__buf *last) {
        (void)pthread_mutex_lock(&informer->mu);
        hf__indexer_leave_locked(entry);
        hf__key_index_remove(&informer->store, entry->keyed.key);
        (void)pthread_mutex_unlock(&informer->mu);
        hf__informer_tell(informer, HF_EVENT_DELETED, entry, last ? last : entry->object);
        entry_free(entry);
}

/* Another object than the one known by that name, which went while nobody watched; a list shows the
 * one that came after it only. */
static bool is_another(const struct hf__informer_entry *entry, const struct metadata *metadata) {
        const char *uid = hf__json_string(metadata->json, "uid");
        struct hf__span known = {entry->object->data, entry->object->n};

        if (!uid || !hf__span_member(known, "metadata", &known) ||
            !hf__span_member(known, "uid", &known))
                return false;
        return known.n != strlen(uid) + 2 || memcmp(known.data + 1, uid, known.n - 2) != 0;
}

/* object may be NULL: then what is kept of data becomes one when it is needed. */
static int put(struct hf_informer *informer, const struct metadata *metadata,
               struct hf__buf *object, struct hf__span data) {
        struct hf__informer_entry *fresh = entry_new(metadata);
        struct hf__buf *mine = NULL;
        int r = 0;

        if (!fresh)
                return -ENOMEM;
        struct hf__informer_entry *entry =
                (struct hf__informer_entry *)hf__key_index_find(&informer->store, fresh->keyed.key);
        bool same = entry && strcmp(entry->resource_version, metadata->resource_version) == 0;
        if (!object && !(same && !informer->set_back)) {
                r = hf__informer_keep(informer, data.data, data.n, &mine);
                object = mine;
        }
        if (r == 0 && same &&
            (!informer->set_back || (object->n == entry->object->n &&
                                     memcmp(object->data, entry->object->data, object->n) == 0))) {
                entry->generation = informer->generation;
                entry_free(fresh);
                (void)hf__buf_unref(mine);
                return 0;
        }
        if (r == 0 && entry && is_another(entry, metadata)) {
                drop(informer, entry, NULL);
                entry = NULL;
        }
        if (r == 0)
                r = store(informer, entry, fresh, metadata->resource_version, object);
        if (r == 0)
                hf__informer_tell(informer, entry ? HF_EVENT_MODIFIED : HF_EVENT_ADDED,
                                  entry ? entry : fresh, object);
        if (entry || r < 0)
                entry_free(fresh);
        (void)hf__buf_unref(mine);
        return r;
}

int hf__informer_take_object(struct hf_informer *informer, enum hf_event_type type,
                             struct hf__buf *object) {
        struct hf__span text = {object->data, object->n};
        struct metadata metadata;

        int r = metadata_of(text, &metadata);
        if (r != 0)
                return r;
        if (type == HF_EVENT_DELETED) {
                struct hf__informer_entry *key = entry_new(&metadata), *entry = NULL;
                if (key)
                        entry = (struct hf__informer_entry *)hf__key_index_find(&informer->store,
                                                                                key->keyed.key);
                else
                        r = -ENOMEM;
                if (entry)
                        drop(informer, entry, object);
                if (key)
                        entry_free(key);
        } else {
                r = put(informer, &metadata, object, text);
        }
        (void)hf__json_free(metadata.json);
        return r;
}

/* ---- lists ---- */

uint64_t hf__informer_revision(const char *resource_version) {
        uint64_t revision = 0;

        if (!resource_version)
                return 0;
        for (const char *c = resource_version; *c; c++)
                if (*c < '0' || *c > '9' || __builtin_mul_overflow(revision, 10, &revision) ||
                    __builtin_add_overflow(revision, (uint64_t)(*c - '0'), &revision))
                        return 0;
        return revision;
}

int hf__informer_list_head(const char *body, size_t n_body, char *ret_version, char **ret_more) {
        struct hf__span text;
        struct hf__json *json = NULL;
        char *more = NULL;

        if (!hf__span_member((struct hf__span){body, n_body}, "metadata", &text))
                return -EPROTO;
        int r = hf__json_parse(text.data, text.n, &json, NULL);
        if (r != 0)
                return r < 0 ? r : -EPROTO;
        const char *version = hf__json_string(json, "resourceVersion"),
                   *token = hf__json_string(json, "continue");
        if (!version || !version[0] || strlen(version) >= HF__INFORMER_RV_MAX)
                r = -EPROTO;
        else if (token && token[0] && !(more = strdup(token)))
                r = -ENOMEM;
        if (r == 0) {
                strcpy(ret_version, version);
                *ret_more = more;
        }
        (void)hf__json_free(json);
        return r;
}

void hf__informer_list_begin(struct hf_informer *informer) { informer->generation++; }

int hf__informer_list_page(struct hf_informer *informer, const char *body, size_t n_body) {
        struct hf__span items, item;
        size_t at = 0;
        int r;

        if (!hf__span_member((struct hf__span){body, n_body}, "items", &items))
                return -EPROTO;
        if (items.n == 4 && memcmp(items.data, "null", 4) == 0) /* what Go makes of an empty list */
                return 0;
        while ((r = hf__span_next(items, &at, &item)) > 0) {
                struct metadata metadata;
                r = metadata_of(item, &metadata);
                if (r == 0)
                        r = put(informer, &metadata, NULL, item);
                (void)hf__json_free(metadata.json);
                if (r != 0)
                        return r;
        }
        return r;
}

/* What the list did not have is gone. Its last state is what the store had. */
void hf__informer_list_end(struct hf_informer *informer) {
        for (size_t i = 0; i < informer->store.n;) {
                struct hf__informer_entry *entry =
                        (struct hf__informer_entry *)informer->store.items[i];
                if (entry->generation == informer->generation)
                        i++;
                else
                        drop(informer, entry, NULL);
        }
}

void hf__informer_store_done(struct hf_informer *informer) {
        for (size_t i = 0; i < informer->store.n; i++) {
                struct hf__informer_entry *entry =
                        (struct hf__informer_entry *)informer->store.items[i];
                hf__indexer_leave_locked(entry); /* nobody is left to lock out */
                entry_free(entry);
        }
        hf__key_index_done(&informer->store);
}

/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The contents of an informer. Only this file decides whether an object was added, modified or
 * deleted. It compares the object with the stored one and ignores whether a watch event is an ADDED
 * or a MODIFIED: a list in parallel to the watch may already have stored the object, or the object
 * may have changed between two watches.
 *
 * Invariants: an entry and its place in the indexes change together, under the lock, or not at all.
 * Handlers are called after the change, without the lock.
 */
#include "client/informer_store.h"

#include <assert.h>
#include <errno.h>
#include <stddef.h>
#include <stdlib.h>
#include <string.h>

#include "base/buf.h"
#include "base/json.h"
#include "base/strbuf.h"
#include "base/thread.h"
#include "client/informer_handlers.h"
#include "client/informer_private.h"
#include "client/json_span.h"

/* Enough for two names of 253 bytes, a uid and a resourceVersion. */
#define METADATA_ROOM 640

/* The part of an object's metadata that the store uses. */
struct metadata {
        const char *ns, *name, *resource_version, *uid; /* uid: NULL = it has none */
        struct hf__json *parsed[4]; /* owned: texts with escapes, or that do not fit into `room` */
        char room[METADATA_ROOM];   /* the other texts */
};

static void metadata_done(struct metadata *metadata) {
        for (size_t i = 0; i < 4; i++)
                metadata->parsed[i] = hf__json_free(metadata->parsed[i]);
}

/* Reads the JSON string in `value`. Kubernetes' names need no escapes, so most texts are copied
 * into the room, which costs no allocation; others are parsed. 0, -ENOMEM or -EPROTO. */
static int read_text(struct metadata *metadata, size_t index, struct hf__span value, size_t *used,
                     const char **ret_text) {
        if (hf__span_is_plain(value) && value.n <= METADATA_ROOM - *used) {
                char *at = metadata->room + *used;
                size_t n = value.n - 2; /* without the quotes */
                *(char *)mempcpy(at, value.data + 1, n) = '\0';
                *used += n + 1;
                *ret_text = at;
                return 0;
        }
        int r = hf__json_parse(value.data, value.n, &metadata->parsed[index], NULL);
        *ret_text = r == 0 ? hf__json_text(metadata->parsed[index]) : NULL;
        return r > 0 ? -EPROTO : r;
}

/* Reads the texts that the store needs, and nothing else, because parsing all of the metadata would
 * be slow for large lists. If a key occurs twice, its first value counts. 0: the caller calls
 * metadata_done. -ENOMEM or -EPROTO: there is nothing to free. */
static int parse_metadata(struct hf__span object, struct metadata *ret_metadata) {
        static const char *const names[] = {"namespace", "name", "resourceVersion", "uid"};
        const char **texts[] = {&ret_metadata->ns, &ret_metadata->name,
                                &ret_metadata->resource_version, &ret_metadata->uid};
        struct hf__span all, key, value;
        size_t used = 0, at = 0;
        int more = 0, r = 0;

        memset(ret_metadata, 0, offsetof(struct metadata, room));
        if (!hf__span_member(object, "metadata", &all))
                return -EPROTO;
        while (r == 0 && (more = hf__span_next_member(all, &at, &key, &value)) > 0)
                for (size_t i = 0; i < 4 && r == 0; i++)
                        if (!*texts[i] && !ret_metadata->parsed[i] && key.n == strlen(names[i]) &&
                            memcmp(key.data, names[i], key.n) == 0)
                                r = read_text(ret_metadata, i, value, &used, texts[i]);
        if (r == 0 && more == 0 && ret_metadata->name && ret_metadata->name[0] &&
            ret_metadata->resource_version &&
            strlen(ret_metadata->resource_version) < HF__RESOURCE_VERSION_MAX) {
                if (!ret_metadata->ns)
                        ret_metadata->ns = "";
                return 0;
        }
        metadata_done(ret_metadata);
        return r != 0 ? r : -EPROTO;
}

/* Creates an entry that is in no store yet and has no object. NULL: out of memory. */
static struct hf__informer_entry *entry_new(const struct metadata *metadata) {
        size_t n_ns = strlen(metadata->ns), n_name = strlen(metadata->name);
        /* Both texts twice, the slash of the key, and three NULs. */
        struct hf__informer_entry *entry = calloc(1, sizeof *entry + 2 * (n_ns + n_name) + 4);

        if (!entry)
                return NULL;
        char *at = entry->text; /* holds the key, then the namespace and the name separately */
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
        assert(!entry->nodes); /* it was removed from the indexes */
        (void)hf__buf_unref(entry->object);
        free(entry);
}

static void entry_set_object(struct hf__informer_entry *entry, const char *resource_version,
                             struct hf__buf *object) {
        struct hf__buf *previous = entry->object;

        entry->object = hf__buf_ref(object);
        (void)strcpy(entry->resource_version, resource_version); /* it fits: parse_metadata */
        (void)hf__buf_unref(previous);
}

static struct hf__informer_entry *find_entry(const struct hf_informer *informer, const char *key) {
        return (struct hf__informer_entry *)hf__key_index_find(&informer->store.entries, key);
}

int hf__informer_store_transform(const struct hf_informer *informer, const char *object, size_t n,
                                 struct hf__buf **ret_object) {
        if (informer->transform)
                return informer->transform(object, n, ret_object);
        struct hf__buf *copy = hf__buf_copy(object, n);
        if (!copy)
                return -ENOMEM;
        *ret_object = copy;
        return 0;
}

/* ---- changes ---- */

/* Adds the entry to the store if it is new, and updates its place in the indexes. 0, or -ENOMEM:
 * nothing has changed. */
static int set_entry_locked(struct hf_informer *informer, struct hf__informer_entry *entry,
                            bool is_new, const struct hf_informer_values *values) {
        hf__mutex_assert_held(&informer->mu);
        if (is_new) {
                int r = hf__key_index_insert(&informer->store.entries, &entry->keyed);
                if (r != 0)
                        return r;
        }
        int r = hf__indexer_update_locked(&informer->indexer, entry, values);
        if (r != 0 && is_new)
                hf__key_index_remove(&informer->store.entries, entry->keyed.key);
        return r;
}

/* Stores a new state of an entry. Computes the index values before it takes the lock, because index
 * functions belong to the user. */
static int set_entry(struct hf_informer *informer, struct hf__informer_entry *entry, bool is_new,
                     const char *resource_version, struct hf__buf *object) {
        struct hf_informer_values values;

        int r = hf__indexer_values_of(&informer->indexer, entry, object->data, object->n, &values);
        if (r == 0) {
                (void)pthread_mutex_lock(&informer->mu);
                r = set_entry_locked(informer, entry, is_new, &values);
                if (r == 0) {
                        entry_set_object(entry, resource_version, object);
                        entry->generation = informer->store.generation;
                }
                (void)pthread_mutex_unlock(&informer->mu);
        }
        hf__indexer_values_done(&values);
        return r;
}

/* Removes an entry, notifies the handlers and frees it. last: the state that the handlers get; NULL
 * = the stored state. */
static void remove_entry(struct hf_informer *informer, struct hf__informer_entry *entry,
                         const struct hf__buf *last) {
        (void)pthread_mutex_lock(&informer->mu);
        hf__indexer_remove_locked(entry);
        hf__key_index_remove(&informer->store.entries, entry->keyed.key);
        (void)pthread_mutex_unlock(&informer->mu);
        hf__informer_handlers_notify(informer, HF_EVENT_DELETED, entry,
                                     last ? last : entry->object);
        entry_free(entry);
}

/* Whether the object has another uid than the stored one: it was deleted and created again, and a
 * list shows only the new one. */
static bool has_other_uid(const struct hf__informer_entry *entry, const struct metadata *metadata) {
        const char *uid = metadata->uid;
        struct hf__span known = {entry->object->data, entry->object->n};

        if (!uid || !hf__span_member(known, "metadata", &known) ||
            !hf__span_member(known, "uid", &known))
                return false;
        /* The span includes the quotes of the JSON string. */
        return known.n != strlen(uid) + 2 || memcmp(known.data + 1, uid, known.n - 2) != 0;
}

static bool has_equal_content(const struct hf__informer_entry *entry,
                              const struct hf__buf *object) {
        return object->n == entry->object->n &&
               memcmp(object->data, entry->object->data, object->n) == 0;
}

/* Stores a state of an object that may differ from the stored one. Takes ownership of `fresh`. */
static int store_changed_object(struct hf_informer *informer, struct hf__informer_entry *fresh,
                                const struct metadata *metadata, struct hf__buf *object) {
        struct hf__informer_entry *entry = find_entry(informer, fresh->keyed.key);

        if (entry && has_other_uid(entry, metadata)) {
                remove_entry(informer, entry, NULL);
                entry = NULL;
        }
        bool is_new = !entry;
        struct hf__informer_entry *target = is_new ? fresh : entry;
        int r = set_entry(informer, target, is_new, metadata->resource_version, object);
        if (!is_new || r != 0)
                entry_free(fresh);
        if (r == 0)
                hf__informer_handlers_notify(informer, is_new ? HF_EVENT_ADDED : HF_EVENT_MODIFIED,
                                             target, object);
        return r;
}

/* Creates the object to store from an item of a list. type: from read_item_type; replaces the
 * opening brace of an item without a kind. */
static int transform_item(struct hf_informer *informer, struct hf__span item,
                          const struct hf__strbuf *type, struct hf__buf **ret_object) {
        struct hf__strbuf typed = {0};
        struct hf__span kind;

        if (type->n == 0 || hf__span_member(item, "kind", &kind))
                return hf__informer_store_transform(informer, item.data, item.n, ret_object);
        const char *brace = memchr(item.data, '{', item.n);
        assert(brace); /* its metadata was found */
        hf__strbuf_add(&typed, type->data, type->n);
        hf__strbuf_add(&typed, brace + 1, item.n - (size_t)(brace + 1 - item.data));
        int r = typed.error != 0
                        ? typed.error
                        : hf__informer_store_transform(informer, typed.data, typed.n, ret_object);
        hf__strbuf_done(&typed);
        return r;
}

/* Stores a state of an object. If object is NULL it is created from the item of a list, but only
 * when it is needed, because most items of a later list are already stored. */
static int store_object(struct hf_informer *informer, const struct metadata *metadata,
                        struct hf__buf *object, struct hf__span item,
                        const struct hf__strbuf *type) {
        struct hf__informer_entry *fresh = entry_new(metadata);
        struct hf__buf *created = NULL;
        bool trusts_versions = !informer->store.versions_reused;
        int r = 0;

        if (!fresh)
                return -ENOMEM;
        struct hf__informer_entry *entry = find_entry(informer, fresh->keyed.key);
        bool same_version =
                entry && strcmp(entry->resource_version, metadata->resource_version) == 0;
        if (!object && !(same_version && trusts_versions)) {
                r = transform_item(informer, item, type, &created);
                object = created;
        }
        if (r == 0 && same_version && (trusts_versions || has_equal_content(entry, object))) {
                entry->generation = informer->store.generation;
                entry_free(fresh);
        } else if (r == 0) {
                r = store_changed_object(informer, fresh, metadata, object);
        } else {
                entry_free(fresh);
        }
        (void)hf__buf_unref(created);
        return r;
}

/* Ignores an object that is not stored. Creates an entry only to build the key. */
static int apply_deleted(struct hf_informer *informer, const struct metadata *metadata,
                         const struct hf__buf *object) {
        struct hf__informer_entry *key = entry_new(metadata);

        if (!key)
                return -ENOMEM;
        struct hf__informer_entry *entry = find_entry(informer, key->keyed.key);
        if (entry)
                remove_entry(informer, entry, object);
        entry_free(key);
        return 0;
}

int hf__informer_store_apply(struct hf_informer *informer, enum hf_event_type type,
                             struct hf__buf *object) {
        struct hf__span text = {object->data, object->n};
        struct metadata metadata;

        assert(hf__reflector_on_thread(&informer->reflector));
        assert(type != HF_EVENT_BOOKMARK);
        int r = parse_metadata(text, &metadata);
        if (r != 0)
                return r;
        r = type == HF_EVENT_DELETED ? apply_deleted(informer, &metadata, object)
                                     : store_object(informer, &metadata, object, text, NULL);
        metadata_done(&metadata);
        return r;
}

/* ---- lists ---- */

void hf__informer_store_replace_begin(struct hf_informer *informer) {
        assert(hf__reflector_on_thread(&informer->reflector));
        informer->store.generation++;
}

/*
 * Kubernetes leaves kind and apiVersion out of the items of a list of a built-in kind, because the
 * list names them: a ConfigMapList has ConfigMaps. Handlers, however, get both in every object.
 * Appends to `type` the text that replaces the opening brace of such an item, or nothing if the
 * list does not name both.
 */
static int read_item_type(struct hf__span list, struct hf__strbuf *type) {
        static const char suffix[] = "List\"";
        const size_t n_suffix = sizeof suffix - 1;
        struct hf__span kind, version;

        if (!hf__span_member(list, "kind", &kind) ||
            !hf__span_member(list, "apiVersion", &version) || !hf__span_is_plain(kind) ||
            !hf__span_is_plain(version) || kind.n <= n_suffix + 1 ||
            memcmp(kind.data + kind.n - n_suffix, suffix, n_suffix) != 0)
                return 0;
        hf__strbuf_puts(type, "{\"kind\":");
        hf__strbuf_add(type, kind.data, kind.n - n_suffix);
        hf__strbuf_puts(type, "\",\"apiVersion\":");
        hf__strbuf_add(type, version.data, version.n);
        hf__strbuf_putc(type, ',');
        return type->error;
}

static int replace_items(struct hf_informer *informer, struct hf__span items,
                         const struct hf__strbuf *type) {
        struct hf__span item;
        size_t at = 0;
        int r;

        while ((r = hf__span_next(items, &at, &item)) > 0) {
                struct metadata metadata;
                r = parse_metadata(item, &metadata);
                if (r != 0)
                        return r;
                r = store_object(informer, &metadata, NULL, item, type);
                metadata_done(&metadata);
                if (r != 0)
                        return r;
        }
        return r;
}

int hf__informer_store_replace_page(struct hf_informer *informer, const char *body, size_t n_body) {
        struct hf__span list = {body, n_body}, items;
        struct hf__strbuf type = {0};

        assert(hf__reflector_on_thread(&informer->reflector));
        if (!hf__span_member(list, "items", &items))
                return -EPROTO;
        if (items.n == 4 && memcmp(items.data, "null", 4) == 0)
                return 0; /* Go's encoder writes an empty list this way */
        int r = read_item_type(list, &type);
        if (r == 0)
                r = replace_items(informer, items, &type);
        hf__strbuf_done(&type);
        return r;
}

void hf__informer_store_replace_end(struct hf_informer *informer) {
        const struct hf__key_index *entries = &informer->store.entries;

        assert(hf__reflector_on_thread(&informer->reflector));
        struct hf__keyed *next = hf__key_index_lower_bound(entries, "");
        while (next) {
                struct hf__informer_entry *entry = (struct hf__informer_entry *)next;
                next = hf__key_index_after(entries, entry->keyed.key);
                if (entry->generation != informer->store.generation)
                        remove_entry(informer, entry, NULL);
        }
}

void hf__informer_store_done(struct hf_informer *informer) {
        struct hf__key_index *entries = &informer->store.entries;

        struct hf__informer_entry *entry;
        struct hf__key_iter iter;
        hf__key_iter_init(&iter, entries);
        while ((entry = (struct hf__informer_entry *)hf__key_iter_next(&iter))) {
                hf__indexer_remove_locked(entry); /* without the lock: nobody else uses it */
                entry_free(entry);
        }
        hf__key_index_done(entries);
}

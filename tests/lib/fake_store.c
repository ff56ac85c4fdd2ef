/* SPDX-License-Identifier: Apache-2.0 */
/*
 * See fake_store.h for the model. Two invariants: a revision is used for one change only, except
 * after a roll-back, and the commits from first_event on have ascending revisions. Objects, history
 * and snapshot share their texts by reference, so a text is never changed in place.
 */
#include "fake_store.h"

#include <assert.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/json.h"

void fake_store_init(struct fake_store *store, uint64_t revision) {
        *store = (struct fake_store){.revision = revision};
}

/* ---- memory ---- */

static void free_snapshot(struct fake_store *store) {
        for (size_t i = 0; i < store->n_snapshot; i++)
                hf__buf_unref(store->snapshot[i]);
        free(store->snapshot);
        free(store->snapshot_prefix);
        store->snapshot = NULL;
        store->snapshot_prefix = NULL;
        store->n_snapshot = 0;
}

static void free_object(struct fake_object *object) {
        free(object->key);
        free(object->holder);
        free(object->acquired);
        hf__buf_unref(object->text);
        free(object);
}

void fake_store_deinit(struct fake_store *store) {
        for (size_t i = 0; i < store->n_objects; i++)
                free_object(store->objects[i]);
        for (size_t i = 0; i < store->n_commits; i++) {
                free(store->commits[i].key);
                free(store->commits[i].holder);
                free(store->commits[i].fence_identity);
                hf__buf_unref(store->commits[i].text);
        }
        free(store->objects);
        free(store->commits);
        free_snapshot(store);
}

static char *copy(const char *text) {
        char *copied = strdup(text ? text : "");
        assert(copied);
        return copied;
}

char *fake_store_key(const char *plural, const char *ns, const char *name) {
        char key[3 * (HF_NAME_MAX + 1)];
        int n = snprintf(key, sizeof key, "%s/%s/%s", plural, ns ? ns : "", name ? name : "");

        assert(n > 0 && (size_t)n < sizeof key);
        return copy(key);
}

static size_t place_of(const struct fake_store *store, const char *key) {
        size_t i = 0;

        while (i < store->n_objects && strcmp(store->objects[i]->key, key) != 0)
                i++;
        return i;
}

struct fake_object *fake_store_find(const struct fake_store *store, const char *key) {
        size_t i = place_of(store, key);
        return i < store->n_objects ? store->objects[i] : NULL;
}

/* ---- changes ---- */

static struct hf__json *parse(const char *text) {
        struct hf__json *json = NULL;
        int r = hf__json_parse(text, strlen(text), &json, NULL);

        assert(r == 0);
        return json;
}

/* Prints json with this revision. */
static struct hf__buf *print_at(struct hf__json *json, uint64_t revision) {
        struct hf__strbuf out = {0};
        char text[HF__U64_TEXT_MAX];

        (void)hf__u64_text(revision, text);
        int r = hf__json_set_string(json, "metadata.resourceVersion", text);
        assert(r == 0);
        hf__json_print(json, &out);
        struct hf__buf *buf = hf__strbuf_to_buf(&out);
        assert(buf);
        hf__strbuf_done(&out);
        return buf;
}

static void add_commit(struct fake_store *store, const struct fake_object *object,
                       enum hf_event_type type, const struct hf_fence *fence) {
        store->commits = reallocarray(store->commits, store->n_commits + 1, sizeof *store->commits);
        assert(store->commits);
        store->commits[store->n_commits++] = (struct fake_commit){
                .revision = object->revision,
                .type = type,
                .key = copy(object->key),
                .text = hf__buf_ref(object->text),
                .holder = copy(type == HF_EVENT_DELETED ? "-" : object->holder),
                .fence_term = fence ? fence->term : 0,
                .fence_identity = copy(fence ? fence->identity : NULL),
        };
}

static struct fake_object *add_object(struct fake_store *store, const char *key) {
        struct fake_object *object = calloc(1, sizeof *object);

        store->objects = reallocarray(store->objects, store->n_objects + 1, sizeof *store->objects);
        assert(object && store->objects);
        object->key = copy(key);
        object->holder = copy(NULL);
        object->acquired = copy(NULL);
        store->objects[store->n_objects++] = object;
        return object;
}

/* The server owns the uid: an object that is put without one keeps the stored one. */
static void set_uid(struct fake_store *store, const struct fake_object *before,
                    struct hf__json *json) {
        char uid[HF__U64_TEXT_MAX];

        if (hf__json_string(json, "metadata.uid"))
                return;
        if (before->text) {
                struct hf__json *old = parse(before->text->data);
                int r = hf__json_set_string(json, "metadata.uid",
                                            hf__json_string(old, "metadata.uid"));
                assert(r == 0);
                hf__json_free(old);
                return;
        }
        (void)hf__u64_text(++store->last_uid, uid);
        int r = hf__json_set_string(json, "metadata.uid", uid);
        assert(r == 0);
}

/* A renewal changes neither holder nor acquireTime, so it keeps the term. */
static void set_term(struct fake_object *object, const struct hf__json *json) {
        char *holder = copy(hf__json_string(json, "spec.holderIdentity"));
        char *acquired = copy(hf__json_string(json, "spec.acquireTime"));
        bool is_new = object->term == 0;

        if (is_new || strcmp(object->holder, holder) != 0 ||
            strcmp(object->acquired, acquired) != 0)
                object->term = object->revision;
        free(object->holder);
        free(object->acquired);
        object->holder = holder;
        object->acquired = acquired;
}

uint64_t fake_store_put(struct fake_store *store, const char *key, const char *text,
                        const struct hf_fence *fence) {
        struct fake_object *object = fake_store_find(store, key);
        struct hf__json *json = parse(text);
        bool is_new = !object;

        if (is_new)
                object = add_object(store, key);
        set_uid(store, object, json);
        object->revision = ++store->revision;
        set_term(object, json);
        hf__buf_unref(object->text);
        object->text = print_at(json, object->revision);
        hf__json_free(json);
        add_commit(store, object, is_new ? HF_EVENT_ADDED : HF_EVENT_MODIFIED, fence);
        return object->revision;
}

uint64_t fake_store_delete(struct fake_store *store, const char *key,
                           const struct hf_fence *fence) {
        size_t i = place_of(store, key);
        uint64_t revision = ++store->revision;

        if (i == store->n_objects)
                return revision;
        struct fake_object *object = store->objects[i];
        struct hf__json *json = parse(object->text->data);
        object->revision = revision;
        hf__buf_unref(object->text);
        object->text = print_at(json, revision);
        hf__json_free(json);
        add_commit(store, object, HF_EVENT_DELETED, fence);
        free_object(object);
        store->n_objects--;
        memmove(&store->objects[i], &store->objects[i + 1],
                (store->n_objects - i) * sizeof *store->objects);
        return revision;
}

/* ---- fences ---- */

static bool has_term(const struct fake_store *store, const char *ns, const char *name,
                     uint64_t term, const char *identity) {
        char *key = fake_store_key("leases", ns, name);
        const struct fake_object *lease = fake_store_find(store, key);

        free(key);
        return lease && lease->term == term && strcmp(lease->holder, identity) == 0;
}

bool fake_store_fence_holds(const struct fake_store *store, const struct hf_fence *fence) {
        if (!has_term(store, fence->ns, fence->name, fence->term, fence->identity))
                return false;
        return fence->also_term == 0 ||
               has_term(store, fence->also_ns, fence->also_name, fence->also_term, fence->identity);
}

/* ---- lists ---- */

static bool is_below(const char *key, const char *prefix) {
        return strncmp(key, prefix, strlen(prefix)) == 0;
}

/*
 * All pages of a list have the revision of the first one, so the first page takes a snapshot. There
 * is one snapshot: the next first page replaces it, which is enough for the tests.
 */
static void take_snapshot(struct fake_store *store, const char *prefix) {
        free_snapshot(store);
        store->snapshot_prefix = copy(prefix);
        store->snapshot_revision = store->revision;
        store->snapshot = calloc(store->n_objects + 1, sizeof *store->snapshot);
        assert(store->snapshot);
        for (size_t i = 0; i < store->n_objects; i++)
                if (is_below(store->objects[i]->key, prefix))
                        store->snapshot[store->n_snapshot++] = hf__buf_ref(store->objects[i]->text);
}

static bool is_current(const struct fake_store *store, const char *prefix, uint64_t revision) {
        return store->snapshot_prefix && strcmp(store->snapshot_prefix, prefix) == 0 &&
               store->snapshot_revision == revision && revision >= store->compacted;
}

int fake_store_list(struct fake_store *store, const char *prefix, const struct fake_page *page,
                    struct hf__strbuf *out) {
        size_t from = 0;

        if (page->continue_revision == 0)
                take_snapshot(store, prefix);
        else if (is_current(store, prefix, page->continue_revision))
                from = page->continue_from;
        else
                return HF_E_GONE;
        size_t to = store->n_snapshot;
        if (page->limit > 0 && page->limit < to - from)
                to = from + page->limit;
        hf__strbuf_puts(out, "{\"kind\":\"ThingList\",\"apiVersion\":\"v1\",\"metadata\":{"
                             "\"resourceVersion\":\"");
        hf__strbuf_u64(out, store->snapshot_revision);
        hf__strbuf_puts(out, "\"");
        if (to < store->n_snapshot)
                hf__strbuf_printf(out, ",\"continue\":\"%llu+%zu\"",
                                  (unsigned long long)store->snapshot_revision, to);
        hf__strbuf_puts(out, "},\"items\":[");
        for (size_t i = from; i < to; i++) {
                hf__strbuf_puts(out, i > from ? ", " : "");
                hf__strbuf_add(out, store->snapshot[i]->data, store->snapshot[i]->n);
        }
        hf__strbuf_puts(out, "]}");
        assert(out->error == 0);
        return 0;
}

/* ---- history ---- */

void fake_store_compact(struct fake_store *store) {
        store->first_event = store->n_commits;
        store->compacted = store->revision;
}

void fake_store_roll_back(struct fake_store *store, uint64_t revision) {
        store->first_event = store->n_commits;
        store->revision = revision;
        store->compacted = 0;
}

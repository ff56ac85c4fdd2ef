/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Looks up the owners of objects. Invariants:
 *
 *  - ABSENT is returned only after a consistent read of the server, in this call or an earlier one.
 *    A uid is never used again, so an absent owner remains absent, and the result may be cached.
 *  - An object is looked up once for all references to it, because a client may write the same
 *    reference ten thousand times.
 *  - The key of the cache contains kind, namespace, name and uid. If it were the uid alone, a
 *    dependent whose reference has a wrong name would make the owner absent for all dependents.
 */
#include "server/controllers/garbage/gc_owners.h"

#include <assert.h>
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/json.h"
#include "base/strbuf.h"
#include "base/thread.h"
#include "client/json_span.h"
#include "server/controllers/base/object_client.h"
#include "server/controllers/garbage/gc_core.h"
#include "server/controllers/garbage/gc_notice.h"

#define OWNER_KEY_MAX (HFD_GC_KEY_MAX + HFD_GC_UID_MAX)
#define SEARCH_MAX    1024 /* objects; see find_elsewhere */

int hfd_gc_owners_init(struct hfd_gc_owners *owners, const struct hfd_gc_graph *graph) {
        *owners = (struct hfd_gc_owners){.graph = graph};
        return hf__mutex_init(&owners->mu);
}

void hfd_gc_owners_done(struct hfd_gc_owners *owners) {
        for (size_t i = 0; i < HFD_GC_OWNERS_MAX; i++)
                free(owners->absent[i]);
        (void)pthread_mutex_destroy(&owners->mu);
}

/* ---- the cache of absent owners ---- */

static void format_owner_key(const struct hfd_kind *kind, const char *ns, const char *name,
                             const char *uid, char text[OWNER_KEY_MAX]) {
        assert(strlen(uid) < HFD_GC_UID_MAX); /* a key that is cut could name another owner */
        char key[HFD_GC_KEY_MAX];

        hfd_gc_graph_key(kind, ns, name, key);
        (void)snprintf(text, OWNER_KEY_MAX, "%s %s", uid, key);
}

static bool is_known_absent(struct hfd_gc_owners *owners, const char *owner) {
        bool found = false;

        (void)pthread_mutex_lock(&owners->mu);
        for (size_t i = 0; i < HFD_GC_OWNERS_MAX && owners->absent[i] && !found; i++)
                found = strcmp(owners->absent[i], owner) == 0;
        (void)pthread_mutex_unlock(&owners->mu);
        return found;
}

/* If memory runs out, the owner is not cached, and the next check costs another request. */
static void remember_absent(struct hfd_gc_owners *owners, const char *owner) {
        char *copy = strdup(owner);

        if (!copy)
                return;
        (void)pthread_mutex_lock(&owners->mu);
        size_t place = owners->n_absent++ % HFD_GC_OWNERS_MAX;
        free(owners->absent[place]);
        owners->absent[place] = copy;
        (void)pthread_mutex_unlock(&owners->mu);
}

/* ---- looking an owner up ---- */

/* The object of a kind, namespace and name. */
struct found {
        struct hf__json *object; /* owned; NULL = there is none */
        const char *uid;         /* borrowed from object; NULL = it has none */
        bool waits;
};

/* Takes over object. */
static void found_init(struct found *found, struct hf__json *object) {
        *found = (struct found){.object = object,
                                .uid = hf__json_string(object, "metadata.uid"),
                                .waits = hfd_gc_waits(object)};
}

static enum hfd_gc_owner classify_owner(const struct found *found, const char *uid) {
        if (!found->uid || strcmp(found->uid, uid) != 0)
                return HFD_GC_OWNER_ABSENT;
        return found->waits ? HFD_GC_OWNER_WAITING : HFD_GC_OWNER_SOLID;
}

/*
 * Reads an owner of a custom kind, by a list with a field selector. A get would not be certain:
 * while this instance does not serve the kind (its definition is being established, changed or
 * deleted, or this instance is starting), a get returns "not found", as for an object that does not
 * exist. A list then fails, and the queue tries again.
 */
static int find_custom_owner(struct hf_term *term, const struct hfd_kind *kind, const char *ns,
                             const char *name, struct hf__json **ret_owner) {
        assert(kind->is_custom);
        struct hf__strbuf query = {0};
        struct hf__json *list = NULL;

        hf__strbuf_puts(&query, "fieldSelector=metadata.name%3D");
        hf__strbuf_urlencode(&query, name);
        int r = query.error != 0
                        ? -ENOMEM
                        : hfd_object_client_list(term, &kind->row.resource, ns, query.data, &list);
        hf__strbuf_done(&query);
        if (r == HF_E_NOT_FOUND)
                return HF_E_UNAVAILABLE;
        if (r != 0)
                return r;
        const struct hf__json *owner = hf__json_first(hf__json_get(list, "items"));
        *ret_owner = hf__json_dup(owner);
        hf__json_free(list);
        if (!owner)
                return HF_E_NOT_FOUND;
        return *ret_owner ? 0 : -ENOMEM;
}

static int read_owner(struct hf_term *term, const struct hfd_kind *kind, const char *ns,
                      const char *name, struct found *ret_found) {
        struct hf__json *owner;
        int r = kind->is_custom
                        ? find_custom_owner(term, kind, ns, name, &owner)
                        : hfd_object_client_get(term, &kind->row.resource, ns, name, &owner);

        *ret_found = (struct found){0};
        if (r == 0)
                found_init(ret_found, owner);
        return r == HF_E_NOT_FOUND ? 0 : r;
}

/* Sets `owner` of those references that are absent so far. All n references have the kind,
 * namespace and name that `found` was looked up with. */
static void set_owners(struct hfd_gc_reference *references, size_t n, const struct found *found) {
        for (size_t i = 0; i < n; i++)
                if (references[i].owner == HFD_GC_OWNER_ABSENT)
                        references[i].owner = classify_owner(found, references[i].uid);
}

/* The first of the references whose owner is absent, but is not in the cache; NULL = none. */
static const struct hfd_gc_reference *find_unknown(struct hfd_gc_owners *owners,
                                                   const struct hfd_gc_reference *references,
                                                   size_t n, const char *ns) {
        char owner_key[OWNER_KEY_MAX];
        const char *last = NULL; /* equal uids are neighbours */

        for (size_t i = 0; i < n; i++) {
                const struct hfd_gc_reference *m = &references[i];
                if (m->owner != HFD_GC_OWNER_ABSENT || (last && strcmp(last, m->uid) == 0))
                        continue;
                last = m->uid;
                format_owner_key(m->kind, ns, m->name, m->uid, owner_key);
                if (!is_known_absent(owners, owner_key))
                        return m;
        }
        return NULL;
}

static void remember_all_absent(struct hfd_gc_owners *owners,
                                const struct hfd_gc_reference *references, size_t n,
                                const char *ns) {
        const struct hfd_gc_reference *end = references + n;
        char owner_key[OWNER_KEY_MAX];

        /* More than the cache can hold would only replace each other. */
        for (size_t i = 0; i < HFD_GC_OWNERS_MAX; i++) {
                references = find_unknown(owners, references, (size_t)(end - references), ns);
                if (!references)
                        return;
                format_owner_key(references->kind, ns, references->name, references->uid,
                                 owner_key);
                remember_absent(owners, owner_key);
        }
}

/*
 * Determines the state of the owners in references that have the same kind and name. If the
 * informer's cache has them, no request is needed. Only a read of the server can show that an owner
 * is absent. One read is enough for all uids: the references are older than the read, so an owner
 * that it does not find will not appear later.
 */
static int look_up_owner(struct hfd_gc_owners *owners, struct hf_term *term, const char *ns,
                         struct hfd_gc_reference *references, size_t n) {
        const struct hfd_kind *kind = references->kind;
        struct hf__json *object;
        struct found found;

        if (!kind->row.namespaced)
                ns = NULL;
        int r = hfd_object_client_get_cached(kind->informer, ns, references->name, &object);
        if (r == 0) {
                found_init(&found, object);
                set_owners(references, n, &found);
                hf__json_free(found.object);
        }
        if (!find_unknown(owners, references, n, ns))
                return 0;
        r = read_owner(term, kind, ns, references->name, &found);
        if (r != 0)
                return r;
        set_owners(references, n, &found);
        hf__json_free(found.object);
        remember_all_absent(owners, references, n, ns);
        return 0;
}

/* ---- owners in other namespaces ---- */

struct search {
        const struct hfd_gc_reference **by_uid; /* the references to absent owners, sorted */
        size_t n;
        const char *ns;                       /* objects in this namespace are ignored */
        const struct hfd_gc_reference *found; /* NULL = none so far */
};

static int compare_uids(const void *a, const void *b) {
        const struct hfd_gc_reference *const *x = a, *const *y = b;

        return strcmp((*x)->uid, (*y)->uid);
}

/* Sets search->found if one of the references has the uid of this object. Only the uid is read,
 * because this runs under an informer's lock. */
static void check_uid(void *ctx, const char *ns, const char *name, const char *object, size_t n) {
        struct search *search = ctx;
        struct hf__span text = {object, n};
        char uid[HFD_GC_UID_MAX];

        if (search->found || strcmp(ns, search->ns) == 0 ||
            !hf__span_member(text, "metadata", &text) || !hf__span_member(text, "uid", &text) ||
            !hf__span_is_plain(text) || text.n - 2 >= sizeof uid)
                return;
        (void)snprintf(uid, sizeof uid, "%.*s", (int)(text.n - 2), text.data + 1);
        const struct hfd_gc_reference wanted = {.uid = uid}, *key = &wanted;
        const struct hfd_gc_reference **found =
                bsearch(&key, search->by_uid, search->n, sizeof *search->by_uid, compare_uids);
        if (found)
                search->found = *found;
}

/*
 * Searches other namespaces for the absent owners among the references, which are all of one kind.
 * Only an Event depends on the result, so a large collection is not searched, and nothing is found
 * if memory runs out.
 */
static const struct hfd_gc_reference *find_elsewhere(const struct hfd_gc_reference *references,
                                                     size_t n, const char *ns) {
        struct search search = {.by_uid = calloc(n, sizeof *search.by_uid), .ns = ns};
        struct hf_informer *informer = references->kind->informer;

        assert(n > 0);
        for (size_t i = 0; search.by_uid && i < n; i++)
                if (references[i].owner == HFD_GC_OWNER_ABSENT)
                        search.by_uid[search.n++] = &references[i];
        if (search.n > 0 && hf_informer_count(informer) <= SEARCH_MAX) {
                qsort(search.by_uid, search.n, sizeof *search.by_uid, compare_uids);
                hf_informer_each(informer, check_uid, &search);
        }
        free(search.by_uid);
        return search.found;
}

/* Creates an Event for node if it names an owner in another namespace. The objects of each kind are
 * searched once, however many references there are. */
static void notice_other_namespace(struct hf_term *term, const struct hfd_gc_node *node,
                                   const struct hfd_gc_references *references) {
        const struct hfd_gc_reference *items = references->items, *found = NULL;
        size_t n;

        for (size_t i = 0; i < references->n && items[i].kind && !found; i += n) {
                for (n = 1; i + n < references->n && items[i + n].kind == items[i].kind;)
                        n++;
                if (hf_cancel_fired(hf_term_abort(term)))
                        return;
                if (items[i].kind->row.namespaced)
                        found = find_elsewhere(&items[i], n, node->ns);
        }
        if (found)
                hfd_gc_notice_create(term, node, found->json);
}

/* ---- all references of an object ---- */

/* By kind, name and uid, so that references to the same owner are neighbours. Those without a kind
 * come last. */
static int compare_references(const void *a, const void *b) {
        const struct hfd_gc_reference *x = a, *y = b;

        if (!x->kind || !y->kind)
                return !x->kind - !y->kind;
        if (x->kind != y->kind)
                return x->kind->id < y->kind->id ? -1 : 1;
        int order = strcmp(x->name, y->name);
        return order != 0 ? order : strcmp(x->uid, y->uid);
}

/* The kind of the owner; NULL = it cannot be looked up. */
static const struct hfd_kind *kind_of(const struct hfd_gc_owners *owners,
                                      const struct hfd_gc_reference *reference) {
        const char *uid = reference->uid, *name = reference->name;

        if (!uid || !name || strlen(uid) >= HFD_GC_UID_MAX || strlen(name) > HF_NAME_MAX)
                return NULL;
        return hfd_kind_set_find_by_name(owners->graph->set,
                                         hf__json_string(reference->json, "apiVersion"),
                                         hf__json_string(reference->json, "kind"));
}

/* Sets *ret_references. The owners that can be looked up come first, and are absent so far; the
 * others are solid. *ret_noticed: an Event was created. 0 or -ENOMEM. */
static int read_references(const struct hfd_gc_owners *owners, struct hf_term *term,
                           const struct hfd_gc_node *node, struct hfd_gc_references *ret_references,
                           bool *ret_noticed) {
        const struct hf__json *list = hf__json_path(node->object, "metadata.ownerReferences");
        size_t n = 0;

        *ret_noticed = false;
        ret_references->items = calloc(hf__json_count(list) + 1, sizeof *ret_references->items);
        if (!ret_references->items)
                return -ENOMEM;
        for (const struct hf__json *m = hf__json_first(list); m; m = hf__json_next(m)) {
                struct hfd_gc_reference *reference = &ret_references->items[n++];
                *reference = (struct hfd_gc_reference){.json = m,
                                                       .uid = hf__json_string(m, "uid"),
                                                       .name = hf__json_string(m, "name")};
                reference->kind = kind_of(owners, reference);
                if (reference->kind && reference->kind->row.namespaced && !*node->ns) {
                        reference->kind = NULL;
                        if (!*ret_noticed)
                                hfd_gc_notice_create(term, node, m);
                        *ret_noticed = true;
                }
                reference->owner = reference->kind ? HFD_GC_OWNER_ABSENT : HFD_GC_OWNER_SOLID;
        }
        ret_references->n = n;
        qsort(ret_references->items, n, sizeof *ret_references->items, compare_references);
        return 0;
}

/* The number of references at the beginning that name the same kind and object. */
static size_t count_same(const struct hfd_gc_reference *references, size_t n) {
        size_t i = 1;

        while (i < n && references[i].kind == references->kind &&
               strcmp(references[i].name, references->name) == 0)
                i++;
        return i;
}

int hfd_gc_owners_find(struct hfd_gc_owners *owners, struct hf_term *term,
                       const struct hfd_gc_node *node, struct hfd_gc_references *ret_references) {
        bool noticed;

        assert(node->uid && node->kind);
        *ret_references = (struct hfd_gc_references){0};
        int r = read_references(owners, term, node, ret_references, &noticed);
        struct hfd_gc_reference *items = ret_references->items;
        size_t n = ret_references->n, n_same;
        for (size_t i = 0; r == 0 && i < n && items[i].kind; i += n_same) {
                n_same = count_same(&items[i], n - i);
                /* An object may name many owners, each of which may need a request. */
                if (hf_cancel_fired(hf_term_abort(term)))
                        r = HF_E_CANCELED;
                else
                        r = look_up_owner(owners, term, node->ns, &items[i], n_same);
        }
        if (r == 0 && !noticed)
                notice_other_namespace(term, node, ret_references);
        if (r != 0)
                hfd_gc_references_done(ret_references);
        return r;
}

void hfd_gc_references_done(struct hfd_gc_references *references) {
        free(references->items);
        *references = (struct hfd_gc_references){0};
}

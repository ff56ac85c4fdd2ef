/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Looks up the owners of objects. Invariants:
 *
 *  - ABSENT is returned only after a consistent read of the server, in this call or an earlier one.
 *    A uid is never used again, so an absent owner remains absent, and the result may be cached.
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
#include "server/controllers/base/object_client.h"
#include "server/controllers/garbage/gc_core.h"
#include "server/controllers/garbage/gc_notice.h"

#define OWNER_KEY_MAX (HFD_GC_KEY_MAX + HFD_GC_UID_MAX)
#define SEARCH_MAX    1024 /* objects; see is_in_other_namespace */

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

static enum hfd_gc_owner classify_owner(const struct hf__json *owner, const char *uid) {
        const char *found = hf__json_string(owner, "metadata.uid");

        if (!found || strcmp(found, uid) != 0)
                return HFD_GC_OWNER_ABSENT;
        return hfd_gc_waits(owner) ? HFD_GC_OWNER_WAITING : HFD_GC_OWNER_SOLID;
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

/*
 * If the informer's cache has the owner, no request is needed. Only a read of the server can show
 * that the owner is absent.
 */
static int look_up_owner(struct hfd_gc_owners *owners, struct hf_term *term,
                         const struct hfd_kind *kind, const char *ns, const char *name,
                         const char *uid, enum hfd_gc_owner *ret_owner) {
        char owner_key[OWNER_KEY_MAX];
        struct hf__json *owner;

        int r = hfd_object_client_get_cached(kind->informer, ns, name, &owner);
        if (r == 0) {
                *ret_owner = classify_owner(owner, uid);
                hf__json_free(owner);
                if (*ret_owner != HFD_GC_OWNER_ABSENT)
                        return 0;
        }
        *ret_owner = HFD_GC_OWNER_ABSENT;
        format_owner_key(kind, ns, name, uid, owner_key);
        if (is_known_absent(owners, owner_key))
                return 0;
        if (kind->is_custom)
                r = find_custom_owner(term, kind, ns, name, &owner);
        else
                r = hfd_object_client_get(term, &kind->row.resource, ns, name, &owner);
        if (r != 0 && r != HF_E_NOT_FOUND)
                return r;
        if (r == 0) {
                *ret_owner = classify_owner(owner, uid);
                hf__json_free(owner);
        }
        if (*ret_owner == HFD_GC_OWNER_ABSENT)
                remember_absent(owners, owner_key);
        return 0;
}

/* ---- owners in other namespaces ---- */

struct search {
        const char *uid;
        const char *ns; /* objects in this namespace are ignored */
        bool found;
};

/* Whether this object has the uid itself. Dependents contain the uid too, in a reference, so each
 * object whose text contains it is parsed. */
static void check_uid(void *ctx, const char *ns, const char *name, const char *object, size_t n) {
        struct search *search = ctx;
        struct hf__json *json;

        if (search->found || strcmp(ns, search->ns) == 0 ||
            !memmem(object, n, search->uid, strlen(search->uid)) ||
            hf__json_parse(object, n, &json, NULL) != 0)
                return;
        const char *uid = hf__json_string(json, "metadata.uid");
        search->found = uid && strcmp(uid, search->uid) == 0;
        hf__json_free(json);
}

/* Whether an object of another namespace has the uid. Only an Event depends on the result, so a
 * large collection is not searched for it. */
static bool is_in_other_namespace(const struct hfd_kind *kind, const char *ns, const char *uid) {
        struct search search = {.uid = uid, .ns = ns};

        if (hf_informer_count(kind->informer) <= SEARCH_MAX)
                hf_informer_each(kind->informer, check_uid, &search);
        return search.found;
}

int hfd_gc_owners_find(struct hfd_gc_owners *owners, struct hf_term *term,
                       const struct hfd_gc_node *node, const struct hf__json *reference,
                       enum hfd_gc_owner *ret_owner) {
        const char *uid = hf__json_string(reference, "uid"),
                   *name = hf__json_string(reference, "name");
        const struct hfd_kind *kind =
                hfd_kind_set_find_by_name(owners->graph->set,
                                          hf__json_string(reference, "apiVersion"),
                                          hf__json_string(reference, "kind"));

        assert(node->uid && node->kind);
        *ret_owner = HFD_GC_OWNER_SOLID;
        if (!uid || !name || !kind || strlen(uid) >= HFD_GC_UID_MAX || strlen(name) > HF_NAME_MAX)
                return 0;
        if (kind->row.namespaced && !*node->ns) {
                hfd_gc_notice_create(term, node, reference);
                return 0;
        }
        int r = look_up_owner(owners, term, kind, kind->row.namespaced ? node->ns : NULL, name, uid,
                              ret_owner);
        if (r == 0 && *ret_owner == HFD_GC_OWNER_ABSENT && kind->row.namespaced &&
            is_in_other_namespace(kind, node->ns, uid))
                hfd_gc_notice_create(term, node, reference);
        return r;
}

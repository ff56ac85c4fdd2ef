/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The ownership graph, read from the informers' indexes.
 *
 * Invariant: dependents are found by uid, but an owner waits only for those whose reference matches
 * its kind, name and namespace too (is_reference_to). Otherwise an object whose reference has the
 * owner's uid but another kind, name or namespace would make the owner wait forever.
 */
#include "server/controllers/garbage/gc_graph.h"

#include <assert.h>
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/json.h"
#include "server/controllers/garbage/gc_core.h"

/* Two arrays of the same kinds: hf_informer_wait_all takes an array of informers, and everything
 * else needs the kind. One more element each, because calloc(0) may return NULL. */
int hfd_gc_graph_init(struct hfd_gc_graph *graph, struct hfd_kind_set *set,
                      const struct hfd_kind *without) {
        *graph = (struct hfd_gc_graph){.set = set, .without = without};
        graph->members = calloc(set->n + 1, sizeof *graph->members);
        graph->informers = calloc(set->n + 1, sizeof(struct hf_informer *));
        if (!graph->members || !graph->informers) {
                hfd_gc_graph_done(graph);
                return -ENOMEM;
        }
        for (size_t i = 0; i < set->n; i++) {
                if (set->kinds[i] == without)
                        continue;
                graph->members[graph->n] = set->kinds[i];
                graph->informers[graph->n++] = set->kinds[i]->informer;
        }
        return 0;
}

void hfd_gc_graph_done(struct hfd_gc_graph *graph) {
        assert(!graph->set || graph->n <= graph->set->n);
        free(graph->members);
        free(graph->informers);
        *graph = (struct hfd_gc_graph){0};
}

/* ---- keys ---- */

/* A key has the kind's id and not its name: an id is short, and is never used again. So a key that
 * is left in the queue cannot name an object of a later kind with the same name. */
void hfd_gc_graph_key(const struct hfd_kind *kind, const char *ns, const char *name,
                      char key[HFD_GC_KEY_MAX]) {
        bool with_ns = ns && *ns;

        (void)snprintf(key, HFD_GC_KEY_MAX, "%zu:%s%s%s", kind->id, with_ns ? ns : "",
                       with_ns ? "/" : "", name);
}

const struct hfd_kind *hfd_gc_graph_kind(const struct hfd_gc_graph *graph, const char *key,
                                         const char **ret_rest) {
        char *end;
        unsigned long id = strtoul(key, &end, 10);

        if (*end != ':') /* the key is not from hfd_gc_graph_key */
                return NULL;
        *ret_rest = end + 1;
        const struct hfd_kind *kind = hfd_kind_set_find_by_id(graph->set, id);
        return kind != graph->without ? kind : NULL;
}

/* ---- dependents ---- */

struct each {
        hfd_gc_graph_each_fn fn;
        void *ctx;
        const struct hfd_kind *kind;
};

static void visit_object(void *ctx, const char *ns, const char *name, const char *object,
                         size_t n) {
        struct each *each = ctx;
        each->fn(each->ctx, each->kind, ns, name, object, n);
}

void hfd_gc_graph_each(const struct hfd_gc_graph *graph, const char *uid, hfd_gc_graph_each_fn each,
                       void *ctx) {
        for (size_t i = 0; i < graph->n; i++) {
                struct each call = {.fn = each, .ctx = ctx, .kind = graph->members[i]};
                /* Fails only if the index does not exist; hfd_kind_new_informer created it. */
                (void)hf_informer_by_index(graph->informers[i], HFD_OWNER_INDEX, uid, visit_object,
                                           &call);
        }
}

struct dependents_search {
        const struct hfd_gc_graph *graph;
        const struct hfd_gc_node *owner;
        bool only_blocks; /* only `blocks` is wanted; otherwise only `found` */
        bool is_complete; /* nothing more can be found */
        struct hfd_gc_dependents found;
        bool blocks; /* a dependent has blockOwnerDeletion set in its reference to the owner */
};

/* Whether a reference of an object in ns matches the owner in all parts, not only by uid. */
static bool is_reference_to(const struct dependents_search *search,
                            const struct hf__json *reference, const char *ns) {
        const struct hfd_gc_node *owner = search->owner;
        const char *uid = hf__json_string(reference, "uid"),
                   *name = hf__json_string(reference, "name");

        return uid && name && strcmp(uid, owner->uid) == 0 && strcmp(name, owner->name) == 0 &&
               (!owner->kind->row.namespaced || strcmp(ns, owner->ns) == 0) &&
               hfd_kind_set_find_by_name(search->graph->set,
                                         hf__json_string(reference, "apiVersion"),
                                         hf__json_string(reference, "kind")) == owner->kind;
}

static void add_dependent(void *ctx, const struct hfd_kind *kind, const char *ns, const char *name,
                          const char *object, size_t n) {
        struct dependents_search *search = ctx;
        struct hfd_gc_dependents *found = &search->found;
        struct hf__json *json;
        bool depends = false;

        if (search->is_complete)
                return;
        if (hf__json_parse(object, n, &json, NULL) != 0) {
                /* Out of memory. Assume a dependent that blocks, which keeps the owner until the
                 * next check. */
                found->any = true;
                search->blocks = true;
                search->is_complete = search->only_blocks;
                return;
        }
        const char *uid = hf__json_string(json, "metadata.uid");
        if (uid && strcmp(uid, search->owner->uid) == 0) {
                hf__json_free(json); /* an object that owns itself must not wait for itself */
                return;
        }
        for (const struct hf__json *m =
                     hf__json_first(hf__json_path(json, "metadata.ownerReferences"));
             m; m = hf__json_next(m)) {
                if (!is_reference_to(search, m, ns))
                        continue;
                depends = true;
                search->blocks = search->blocks || hf__json_bool(m, "blockOwnerDeletion", false);
        }
        found->any = found->any || depends;
        found->waits = found->waits || (depends && hfd_gc_waits(json));
        search->is_complete = search->only_blocks ? search->blocks : found->any && found->waits;
        hf__json_free(json);
}

void hfd_gc_graph_find_dependents(const struct hfd_gc_graph *graph, const struct hfd_gc_node *owner,
                                  struct hfd_gc_dependents *ret_dependents) {
        struct dependents_search search = {.graph = graph, .owner = owner};

        assert(owner->uid);
        hfd_gc_graph_each(graph, owner->uid, add_dependent, &search);
        *ret_dependents = search.found;
}

bool hfd_gc_graph_is_blocked(const struct hfd_gc_graph *graph, const struct hfd_gc_node *owner) {
        struct dependents_search search = {.graph = graph, .owner = owner, .only_blocks = true};

        assert(owner->uid);
        hfd_gc_graph_each(graph, owner->uid, add_dependent, &search);
        return search.blocks;
}

/* ---- enqueueing owners and dependents ---- */

struct enqueue {
        struct hf_workqueue *queue;
        int error; /* of the first add that failed */
};

static void enqueue_object(void *ctx, const struct hfd_kind *kind, const char *ns, const char *name,
                           const char *object, size_t n) {
        struct enqueue *enqueue = ctx;
        char key[HFD_GC_KEY_MAX];

        hfd_gc_graph_key(kind, ns, name, key);
        int r = hf_workqueue_add(enqueue->queue, key);
        if (enqueue->error == 0)
                enqueue->error = r;
}

int hfd_gc_graph_enqueue_dependents(const struct hfd_gc_graph *graph, const char *uid,
                                    struct hf_workqueue *queue) {
        struct enqueue enqueue = {.queue = queue};
        hfd_gc_graph_each(graph, uid, enqueue_object, &enqueue);
        return enqueue.error;
}

/* A reference cannot name an owner in another namespace, so a namespaced owner is looked for in the
 * namespace of the dependent. The worker finds out whether there is an object of that name; one
 * with another uid than the reference is only checked once more. A key of a kind that is not in the
 * graph must not be added: the worker would fail, and try it again until the loop ends. */
int hfd_gc_graph_enqueue_owners(const struct hfd_gc_graph *graph, const struct hf__json *object,
                                const char *ns, struct hf_workqueue *queue) {
        char key[HFD_GC_KEY_MAX];
        int r = 0;

        for (const struct hf__json *m =
                     hf__json_first(hf__json_path(object, "metadata.ownerReferences"));
             m && r == 0; m = hf__json_next(m)) {
                const char *name = hf__json_string(m, "name");
                const struct hfd_kind *kind =
                        hfd_kind_set_find_by_name(graph->set, hf__json_string(m, "apiVersion"),
                                                  hf__json_string(m, "kind"));
                if (!kind || kind == graph->without || !name || strlen(name) > HF_NAME_MAX)
                        continue;
                hfd_gc_graph_key(kind, kind->row.namespaced ? ns : NULL, name, key);
                r = hf_workqueue_add(queue, key);
        }
        return r;
}

/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The garbage collector: what its owners have left behind is deleted, what is deleted in the
 * foreground waits for its dependents, and what is deleted as "orphan" leaves them.
 *
 * There is no graph. The caches are the graph: each has an index from an owner's uid to its
 * dependents, and a key ("3:ns/name", the place of the kind in the table) is looked at with what
 * they say now. Who is to be looked at when something happened:
 *
 *      an object comes or changes     the object itself, when it has owners or is marked for
 * deletion; its dependents, when it waits for them an object goes                 its dependents,
 * which have lost an owner, and its owners, which may have waited for it
 *
 * Every cache is told in its own time, so a look may miss what another cache does not know yet; but
 * then that cache's own event brings the same key. Two looks decide for good, and are not left to
 * chance:
 *
 *      an owner is absent             only when a consistent read of it, at that moment, does not
 * find it with that uid. uids never come back, so the answer is remembered, for that kind,
 * namespace, name and uid: an owner that one dependent names wrongly stands for those that name it
 * rightly nothing (more) depends on it   only when every cache has reached the revision at which
 * the object was marked: then all dependents that were there are known, also those that are to be
 * orphaned
 *
 * Owners in other namespaces do not exist for an object, as in the field: it is deleted, and an
 * event (OwnerRefInvalidNamespace) says why. An object without a namespace whose owner would have
 * one, or whose owner is of a kind that is not served, is kept: nothing can be known of that owner.
 * Events own nothing and are owned by nothing.
 *
 * Threads: maps run on the caches' threads and only enqueue; keys are worked on by several workers,
 * one key by one at a time; what they share is the memory of absent uids, under mu.
 */
#include <errno.h>
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/json.h"
#include "base/thread.h"
#include "server/controllers/controllers.h"
#include "server/controllers/gc_core.h"
#include "server/controllers/gc_notice.h"
#include "server/controllers/object_client.h"

#define N_WORKERS  8
#define N_ABSENT   512
#define UID_MAX    64
#define SEARCH_MAX 1024
#define LOOK_AGAIN                                                                                 \
        (2 * HF_NSEC_PER_SEC) /* while it waits: a dependent that only stops blocking sends no     \
                                 event of its own */

#define KEY_MAX (2 * HF_NAME_MAX + 8)

struct collector {
        const struct hfd_kinds *kinds;                /* borrowed */
        const struct hfd_kind *graph[HFD_KINDS_MAX];  /* the kinds it looks after */
        struct hf_informer *informers[HFD_KINDS_MAX]; /* theirs, in the same order */
        size_t n_graph;

        pthread_mutex_t mu;
        char *absent[N_ABSENT]; /* a ring of owners, owned; guarded by mu, as the next */
        size_t n_absent;
};

/* An object as a worker looks at it. */
struct item {
        struct collector *collector;
        struct hf_term *term;
        const struct hfd_kind *kind;
        char ns[HF_NAME_MAX + 1], name[HF_NAME_MAX + 1];
        const char *uid, *resource_version; /* borrowed from the object */
        struct hf__json *object;            /* owned; as cached */
};

/* ---- keys ---- */

static void key_of(const struct collector *collector, const struct hfd_kind *kind, const char *ns,
                   const char *name, char key[KEY_MAX]) {
        bool with_ns = ns && *ns;

        (void)snprintf(key, KEY_MAX, "%zu:%s%s%s", (size_t)(kind - collector->kinds->kinds),
                       with_ns ? ns : "", with_ns ? "/" : "", name);
}

static const struct hfd_kind *kind_of_key(const struct collector *collector, const char *key,
                                          const char **ret_rest) {
        char *end;
        unsigned long place = strtoul(key, &end, 10);

        *ret_rest = end + 1;
        return *end == ':' && place < collector->kinds->n ? &collector->kinds->kinds[place] : NULL;
}

/* ---- dependents ---- */

struct walk {
        const struct collector *collector;
        const struct hfd_kind *kind;
        const char *uid;            /* the owner's */
        struct hf_workqueue *queue; /* enqueue: where to */
        const struct item *owner;   /* look: whose dependents */
        bool any, waits, blocks;    /* look: what was found */
};

static void enqueue_one(void *ctx, const char *ns, const char *name, const char *object, size_t n) {
        struct walk *walk = ctx;
        char key[KEY_MAX];

        key_of(walk->collector, walk->kind, ns, name, key);
        (void)hf_workqueue_add(walk->queue, key);
}

/* Whether a reference of an object in ns finds the owner, and does not only have its uid: else
 * nothing would come of its waiting. */
static bool is_found_by(const struct item *owner, const struct hf__json *reference,
                        const char *ns) {
        const char *uid = hf__json_string(reference, "uid"),
                   *name = hf__json_string(reference, "name");

        return uid && name && strcmp(uid, owner->uid) == 0 && strcmp(name, owner->name) == 0 &&
               (!owner->kind->row.namespaced || strcmp(ns, owner->ns) == 0) &&
               hfd_kinds_named(owner->collector->kinds, hf__json_string(reference, "apiVersion"),
                               hf__json_string(reference, "kind")) == owner->kind;
}

static void look_at_one(void *ctx, const char *ns, const char *name, const char *object, size_t n) {
        struct walk *walk = ctx;
        struct hf__json *json;
        bool depends = false;

        if (walk->any && walk->waits && walk->blocks)
                return;
        if (hf__json_parse(object, n, &json, NULL)) {
                walk->any = walk->blocks = true; /* out of memory: what is not known may block */
                return;
        }
        const char *uid = hf__json_string(json, "metadata.uid");
        if (uid && strcmp(uid, walk->uid) == 0) { /* who owns itself need not wait for itself */
                hf__json_free(json);
                return;
        }
        for (const struct hf__json *m =
                     hf__json_first(hf__json_path(json, "metadata.ownerReferences"));
             m; m = hf__json_next(m)) {
                if (!is_found_by(walk->owner, m, ns))
                        continue;
                depends = true;
                walk->blocks = walk->blocks || hf__json_bool(m, "blockOwnerDeletion", false);
        }
        walk->any = walk->any || depends;
        walk->waits = walk->waits || (depends && hfd_gc_waits(json));
        hf__json_free(json);
}

static void walk_dependents(struct walk *walk,
                            void (*each)(void *ctx, const char *ns, const char *name,
                                         const char *object, size_t n)) {
        const struct collector *collector = walk->collector;

        for (size_t i = 0; i < collector->n_graph; i++) {
                walk->kind = collector->graph[i];
                (void)hf_informer_by_index(walk->kind->informer, HFD_KIND_INDEX, walk->uid, each,
                                           walk);
        }
}

/* ---- owners ---- */

/* How an owner is remembered: all by which a reference finds it. */
static void absent_key(const struct collector *collector, const struct hfd_kind *kind,
                       const char *ns, const char *name, const char *uid,
                       char text[KEY_MAX + UID_MAX]) {
        char key[KEY_MAX];

        key_of(collector, kind, ns, name, key);
        (void)snprintf(text, KEY_MAX + UID_MAX, "%s %s", uid, key);
}

static bool is_known_absent(struct collector *collector, const char *owner) {
        bool known = false;

        (void)pthread_mutex_lock(&collector->mu);
        for (size_t i = 0; i < N_ABSENT && collector->absent[i] && !known; i++)
                known = strcmp(collector->absent[i], owner) == 0;
        (void)pthread_mutex_unlock(&collector->mu);
        return known;
}

/* What cannot be remembered is asked again. */
static void remember_absent(struct collector *collector, const char *owner) {
        char *copy = strdup(owner);

        if (!copy)
                return;
        (void)pthread_mutex_lock(&collector->mu);
        size_t place = collector->n_absent++ % N_ABSENT;
        free(collector->absent[place]);
        collector->absent[place] = copy;
        (void)pthread_mutex_unlock(&collector->mu);
}

enum owner { SOLID, WAITING, ABSENT };

static enum owner judge(const struct hf__json *owner, const char *uid) {
        const char *found = hf__json_string(owner, "metadata.uid");

        if (!found || strcmp(found, uid) != 0)
                return ABSENT;
        return hfd_gc_waits(owner) ? WAITING : SOLID;
}

struct search {
        const char *uid, *ns; /* not in this one */
        bool found;
};

/* Its dependents name the uid as well: it has to be the object's own. */
static void search_one(void *ctx, const char *ns, const char *name, const char *object, size_t n) {
        struct search *search = ctx;
        struct hf__json *json;

        if (search->found || strcmp(ns, search->ns) == 0 ||
            !memmem(object, n, search->uid, strlen(search->uid)) ||
            hf__json_parse(object, n, &json, NULL))
                return;
        const char *uid = hf__json_string(json, "metadata.uid");
        search->found = uid && strcmp(uid, search->uid) == 0;
        hf__json_free(json);
}

/* For the event that says so only, so a large collection is not searched. */
static bool lives_elsewhere(const struct hfd_kind *kind, const char *ns, const char *uid) {
        struct search search = {.uid = uid, .ns = ns};

        if (hf_informer_count(kind->informer) <= SEARCH_MAX)
                hf_informer_each(kind->informer, search_one, &search);
        return search.found;
}

/* What the cache knows is enough to keep an object; that an owner is absent is asked of the server,
 * once. */
static int look_up(struct item *item, const struct hfd_kind *kind, const char *ns, const char *name,
                   const char *uid, enum owner *ret_owner) {
        char known[KEY_MAX + UID_MAX];
        struct hf__json *owner;

        int r = hfd_object_cached(kind->informer, ns, name, &owner);
        if (r == 0) {
                *ret_owner = judge(owner, uid);
                hf__json_free(owner);
                if (*ret_owner != ABSENT)
                        return 0;
        }
        *ret_owner = ABSENT;
        absent_key(item->collector, kind, ns, name, uid, known);
        if (is_known_absent(item->collector, known))
                return 0;
        r = hfd_object_read(item->term, &kind->row.resource, ns, name, &owner);
        if (r != 0 && r != HF_E_NOT_FOUND)
                return r;
        if (r == 0) {
                *ret_owner = judge(owner, uid);
                hf__json_free(owner);
        }
        if (*ret_owner == ABSENT)
                remember_absent(item->collector, known);
        return 0;
}

static int find_owner(struct item *item, const struct hf__json *reference, enum owner *ret_owner) {
        const char *uid = hf__json_string(reference, "uid"),
                   *name = hf__json_string(reference, "name");
        const struct hfd_kind *kind =
                hfd_kinds_named(item->collector->kinds, hf__json_string(reference, "apiVersion"),
                                hf__json_string(reference, "kind"));

        *ret_owner = SOLID;
        if (!uid || !name || !kind || strlen(uid) >= UID_MAX || strlen(name) > HF_NAME_MAX)
                return 0;
        if (kind->row.namespaced && !*item->ns) {
                hfd_gc_notice(item->term, &item->kind->row, item->ns, item->name, item->uid,
                              reference);
                return 0;
        }
        int r = look_up(item, kind, kind->row.namespaced ? item->ns : NULL, name, uid, ret_owner);
        if (r == 0 && *ret_owner == ABSENT && kind->row.namespaced &&
            lives_elsewhere(kind, item->ns, uid))
                hfd_gc_notice(item->term, &item->kind->row, item->ns, item->name, item->uid,
                              reference);
        return r;
}

/* ---- acts ---- */

/* What changed or went meanwhile sends an event, which brings the key again. */
static int settle(int r) { return r == HF_E_CONFLICT || r == HF_E_NOT_FOUND ? 0 : r; }

/*
 * Reads an object whole, lets change edit it, writes it. The caches have metadata only, which must
 * not be written. Only the incarnation of that uid is edited, and where the edit rests on what was
 * looked at (revision not NULL), only that.
 */
static int edit(struct hf_term *term, const struct hfd_kind *kind, const char *ns, const char *name,
                const char *uid, const char *revision,
                int (*change)(struct hf__json *object, void *ctx), void *ctx) {
        struct hf__json *object;
        int r = hfd_object_read(term, &kind->row.resource, ns, name, &object);

        if (r != 0)
                return settle(r);
        const char *found = hf__json_string(object, "metadata.uid"),
                   *now = hf__json_string(object, "metadata.resourceVersion");
        if (found && now && strcmp(found, uid) == 0 && (!revision || strcmp(now, revision) == 0)) {
                r = change(object, ctx);
                if (r == 0)
                        r = hfd_object_update(term, &kind->row.resource, ns, name, NULL, object);
        }
        hf__json_free(object);
        return r == HF_E_NOT_FOUND
                       ? 0
                       : r; /* a conflict is tried again: this edit is somebody's wait */
}

static int edit_item(struct item *item, const char *revision,
                     int (*change)(struct hf__json *object, void *ctx), void *ctx) {
        return edit(item->term, item->kind, item->ns, item->name, item->uid, revision, change, ctx);
}

static int drop_finalizer(struct hf__json *object, void *name) {
        return hfd_list_drop(object, "metadata.finalizers", name);
}
static int drop_owners(struct hf__json *object, void *uids) {
        return hfd_gc_drop_owners(object, uids);
}
static int unblock(struct hf__json *object, void *ctx) { return hfd_gc_unblock(object); }

static int remove_item(struct item *item, enum hfd_gc_verdict verdict) {
        struct hfd_delete what = {.uid = item->uid,
                                  .resource_version = item->resource_version,
                                  .policy = hfd_gc_policy(verdict)};
        return settle(hfd_object_delete(item->term, &item->kind->row.resource, item->ns, item->name,
                                        &what));
}

/* ---- an object with owners ---- */

/* One that stands stays an owner, whatever else a reference with its uid names. */
static int keep_solid(struct hfd_gc_view *view, struct hf__json *uids) {
        int r = 0;

        for (const struct hf__json *m = hf__json_first(hf__json_path(uids, "solid")); r == 0 && m;
             m = hf__json_next(m))
                r = hfd_list_drop(uids, "uids", hf__json_text(m));
        if (view->n_solid > 0 && hf__json_count(hf__json_path(uids, "uids")) == 0)
                view->n_waiting = view->n_absent = 0;
        return r;
}

/* Counts its owners by what they are; uids gets those that do not stand. */
static int look_at_owners(struct item *item, struct hfd_gc_view *view, struct hf__json *uids) {
        int r = 0;

        for (const struct hf__json *m =
                     hf__json_first(hf__json_path(item->object, "metadata.ownerReferences"));
             r == 0 && m; m = hf__json_next(m)) {
                const char *uid = hf__json_string(m, "uid");
                enum owner owner;
                r = find_owner(item, m, &owner);
                view->n_solid += owner == SOLID;
                view->n_waiting += owner == WAITING;
                view->n_absent += owner == ABSENT;
                if (r == 0 && uid)
                        r = hfd_list_add(uids, owner == SOLID ? "solid" : "uids", uid);
        }
        return r != 0 ? r : keep_solid(view, uids);
}

/*
 * What is done rests on one look: a reference is dropped when its owner did not stand at that look,
 * and no other. Were each judged anew at the write, the one that kept the object might have fallen
 * in between, and nobody would own it any more.
 */
static int act(struct item *item, enum hfd_gc_verdict verdict, struct hf__json *uids) {
        if (verdict == HFD_GC_KEEP)
                return 0;
        if (verdict == HFD_GC_DROP_OWNERS)
                return settle(edit_item(item, item->resource_version, drop_owners, uids));
        if (verdict == HFD_GC_UNBLOCK)
                return settle(edit_item(item, item->resource_version, unblock, NULL));
        return remove_item(item, verdict);
}

static int look_at_owned(struct item *item) {
        struct hfd_gc_view view = {.orphan = hfd_list_has(item->object, "metadata.finalizers",
                                                          HFD_ORPHAN),
                                   .foreground = hfd_list_has(item->object, "metadata.finalizers",
                                                              HFD_FOREGROUND),
                                   .blocks = hfd_gc_blocks(item->object)};
        struct walk walk = {.collector = item->collector, .uid = item->uid, .owner = item};
        struct hf__json *uids = hf__json_object();
        int r = uids ? look_at_owners(item, &view, uids) : -ENOMEM;

        if (r == 0 && view.n_waiting > 0 && view.n_solid == 0) {
                walk_dependents(&walk, look_at_one);
                view.has_dependents = walk.any;
                view.dependent_waits = walk.waits;
        }
        if (r == 0)
                r = act(item, hfd_gc_decide(&view), uids);
        hf__json_free(uids);
        return r;
}

/* ---- an object that is deleted and holds on for its dependents ---- */

struct orphans {
        struct item *owner;
        char (*keys)[KEY_MAX]; /* owned */
        size_t n, space;
        int error;
        const struct hfd_kind *kind;
};

static void collect_orphan(void *ctx, const char *ns, const char *name, const char *object,
                           size_t n) {
        struct orphans *orphans = ctx;

        if (orphans->n == orphans->space) {
                size_t space = orphans->space ? orphans->space * 2 : 16;
                char(*grown)[KEY_MAX] = realloc(orphans->keys, space * sizeof *grown);
                if (!grown) {
                        orphans->error = -ENOMEM;
                        return;
                }
                orphans->keys = grown;
                orphans->space = space;
        }
        key_of(orphans->owner->collector, orphans->kind, ns, name, orphans->keys[orphans->n++]);
}

static int orphan_one(struct item *owner, const char *key, struct hf__json *uids) {
        char ns[HF_NAME_MAX + 1], name[HF_NAME_MAX + 1], uid[UID_MAX];
        const char *rest;
        const struct hfd_kind *kind = kind_of_key(owner->collector, key, &rest);
        struct hf__json *dependent;

        int r = hf_key_split(rest, ns, name);
        if (r == 0)
                r = hfd_object_cached(kind->informer, ns, name, &dependent);
        if (r != 0)
                return r == HF_E_NOT_FOUND ? 0 : r;
        const char *text = hf__json_string(dependent, "metadata.uid");
        (void)snprintf(uid, sizeof uid, "%s", text ? text : "");
        hf__json_free(dependent);
        return edit(owner->term, kind, ns, name, uid, NULL, drop_owners, uids);
}

static int let_dependents_go(struct item *item) {
        struct orphans orphans = {.owner = item};
        struct hf__json *uids = hf__json_object();
        int r = uids ? hfd_list_add(uids, "uids", item->uid) : -ENOMEM;

        for (size_t i = 0; i < item->collector->n_graph; i++) {
                orphans.kind = item->collector->graph[i];
                (void)hf_informer_by_index(orphans.kind->informer, HFD_KIND_INDEX, item->uid,
                                           collect_orphan, &orphans);
        }
        if (r == 0)
                r = orphans.error;
        for (size_t i = 0; r == 0 && i < orphans.n; i++)
                r = orphan_one(item, orphans.keys[i], uids);
        hf__json_free(uids);
        free(orphans.keys);
        return r;
}

static int look_at_deleted(struct item *item, hf_nsec *ret_again) {
        struct walk walk = {.collector = item->collector, .uid = item->uid, .owner = item};
        bool orphan = hfd_list_has(item->object, "metadata.finalizers", HFD_ORPHAN);

        if (!orphan && !hfd_list_has(item->object, "metadata.finalizers", HFD_FOREGROUND))
                return 0;
        int r = hf_informer_wait_all(item->collector->informers, item->collector->n_graph,
                                     item->resource_version, hf_term_abort(item->term));

        if (r != 0)
                return r;
        if (orphan) {
                r = let_dependents_go(item);
                return r != 0 ? r : edit_item(item, NULL, drop_finalizer, (void *)HFD_ORPHAN);
        }
        walk_dependents(&walk, look_at_one);
        if (walk.blocks) {
                *ret_again = LOOK_AGAIN;
                return 0;
        }
        return edit_item(item, NULL, drop_finalizer, (void *)HFD_FOREGROUND);
}

static int reconcile(void *ctx, struct hf_term *term, const char *key, hf_nsec *ret_again) {
        struct item item = {.collector = ctx, .term = term};
        const char *rest;

        item.kind = kind_of_key(ctx, key, &rest);
        if (!item.kind)
                return HF_E_INVALID;
        int r = hf_key_split(rest, item.ns, item.name);
        if (r == 0)
                r = hfd_object_cached(item.kind->informer, item.ns, item.name, &item.object);
        if (r != 0)
                return r == HF_E_NOT_FOUND ? 0 : r;
        item.uid = hf__json_string(item.object, "metadata.uid");
        item.resource_version = hf__json_string(item.object, "metadata.resourceVersion");
        if (!item.uid || !item.resource_version)
                r = 0;
        else if (hf__json_string(item.object, "metadata.deletionTimestamp"))
                r = look_at_deleted(&item, ret_again);
        else
                r = look_at_owned(&item);
        hf__json_free(item.object);
        return r;
}

/* ---- events ---- */

static void enqueue_owners(struct collector *collector, struct hf_workqueue *queue,
                           const struct hf__json *object, const char *ns) {
        char key[KEY_MAX];

        for (const struct hf__json *m =
                     hf__json_first(hf__json_path(object, "metadata.ownerReferences"));
             m; m = hf__json_next(m)) {
                const char *name = hf__json_string(m, "name");
                const struct hfd_kind *kind =
                        hfd_kinds_named(collector->kinds, hf__json_string(m, "apiVersion"),
                                        hf__json_string(m, "kind"));
                if (!kind || !name || strlen(name) > HF_NAME_MAX)
                        continue;
                key_of(collector, kind, kind->row.namespaced ? ns : NULL, name, key);
                (void)hf_workqueue_add(queue, key);
        }
}

static void map(void *ctx, struct hf_workqueue *queue, enum hf_event_type type, const char *ns,
                const char *name, const char *object, size_t n) {
        struct collector *collector = ctx;
        struct hf__json *json;
        char key[KEY_MAX];

        if ((type != HF_EVENT_DELETED && !hfd_gc_concerns(object, n)) ||
            hf__json_parse(object, n, &json, NULL))
                return;
        const struct hfd_kind *kind =
                hfd_kinds_named(collector->kinds, hf__json_string(json, "apiVersion"),
                                hf__json_string(json, "kind"));
        const char *uid = hf__json_string(json, "metadata.uid");
        if (kind && uid) {
                struct walk walk = {.collector = collector, .queue = queue, .uid = uid};
                key_of(collector, kind, ns, name, key);
                if (type == HF_EVENT_DELETED)
                        enqueue_owners(collector, queue, json, ns);
                else
                        (void)hf_workqueue_add(queue, key);
                if (type == HF_EVENT_DELETED || hfd_gc_waits(json))
                        walk_dependents(&walk, enqueue_one);
        }
        hf__json_free(json);
}

int hfd_run_garbage_collector(struct hf_term *term, void *ctx) {
        struct hfd_controllers *controllers = ctx;
        struct collector *collector = calloc(1, sizeof *collector);
        struct hf_reconciler_source sources[HFD_KINDS_MAX];
        int r = collector ? hf__mutex_init(&collector->mu) : -ENOMEM;

        if (r != 0) {
                free(collector);
                return r;
        }
        collector->kinds = &controllers->kinds;
        for (size_t i = 0; i < controllers->kinds.n; i++) {
                struct hfd_kind *kind = &controllers->kinds.kinds[i];
                if (kind == controllers->events)
                        continue;
                sources[collector->n_graph] =
                        (struct hf_reconciler_source){.informer = kind->informer, .map = map};
                collector->graph[collector->n_graph] = kind;
                collector->informers[collector->n_graph++] = kind->informer;
        }
        const struct hf_reconciler reconciler = {
                .size = sizeof reconciler,
                .name = HFD_GARBAGE_COLLECTOR,
                .sources = sources,
                .n_sources = collector->n_graph,
                .n_workers = N_WORKERS,
                .reconcile = reconcile,
                .ctx = collector,
        };
        r = hf_reconciler_run(&reconciler, term);
        for (size_t i = 0; i < N_ABSENT; i++)
                free(collector->absent[i]);
        (void)pthread_mutex_destroy(&collector->mu);
        free(collector);
        return r;
}

/* SPDX-License-Identifier: Apache-2.0 */
#pragma once
/*
 * The inside of the API core, shared by the files of server/api only.
 *
 * One mutex, mu, guards the cache, the readers that wait and the list of watches. It is held for
 * look-ups and pointer moves; what has to be called (a reader that may go on, a watch that has
 * events, the store) is collected under it and called after it was released. It is never held
 * together with another lock.
 *
 * Functions ending in _locked need mu.
 */
#include <pthread.h>
#include <stdatomic.h>

#include <holdfast/metrics.h>

#include "base/strbuf.h"
#include "server/registry/request.h"
#include "server/resources/object.h"
#include "server/storage/keys.h"

#define HFD_HISTORY_EVENTS   4096
#define HFD_HISTORY_BYTES    (16u << 20)
#define HFD_CONSISTENT_WAIT  (100 * HF_NSEC_PER_MSEC)
#define HFD_DEFAULT_DEADLINE (10 * HF_NSEC_PER_SEC)
#define HFD_MANY_DEADLINE    (60 * HF_NSEC_PER_SEC) /* of a deletecollection */

/* ---- the cache: a tree per resource, ordered as the store orders keys (cache.c) ---- */

struct hfd_object_node {
        struct hfd_object_node *left, *right;
        uint32_t priority;
        struct hfd_object *object; /* owned */
        struct hfd_object *newer; /* owned; what an own write has made of it already; NULL = nothing
                                     known. For writes only */
};
struct hfd_object_tree {
        struct hfd_object_node *root;
        size_t n;
};
struct hfd_object_node *hfd_object_tree_find(const struct hfd_object_tree *tree, const char *path);
/* Takes object. *ret_old gets what it replaces (the caller unrefs) or NULL. 0 or -ENOMEM (object is
 * then dropped). */
int hfd_object_tree_put(struct hfd_object_tree *tree, struct hfd_object *object,
                        struct hfd_object **ret_old);
struct hfd_object *
hfd_object_tree_remove(struct hfd_object_tree *tree,
                       const char *path); /* the caller unrefs; NULL = was not there */
/* Visits in order what begins with prefix and sorts after `after` ("" = all), until visit returns
 * false. */
void hfd_object_tree_walk(const struct hfd_object_tree *tree, const char *prefix, const char *after,
                          bool (*visit)(void *ctx, struct hfd_object *object), void *ctx);
void hfd_object_tree_clear(struct hfd_object_tree *tree);

/* What happened to one object; kept in the history for watches from a resourceVersion. */
struct hfd_change {
        enum hf_event_type type;
        struct hfd_object
                *object; /* owned; of a deletion: the last state at the deletion's revision */
        struct hfd_object *before; /* owned; NULL when added */
};

/* ---- readers that wait for the cache (consistent_read.c) ---- */

struct hfd_consistent_read {
        struct hfd_consistent_read *next; /* the api's while waiting */
        uint64_t revision;                /* what the cache must have passed */
        hf_nsec until;                    /* when to stop waiting for the cache */
        hf_nsec deadline;                 /* the call's */
        bool by_client; /* the revision is a client's word, and may never come: its lateness says
                           nothing about the cache */
        int outcome;
        struct hf_status status;
        /* outcome 0: the cache has passed revision. HF_E_TIMEOUT: it has not, in time: ask the
         * store. Else the store's failure. */
        void (*ready)(struct hfd_consistent_read *reader);
};

struct hfd_watcher;

struct hfd_api {
        /* immutable after new */
        const struct hf_host *host;
        struct hfd_store *store; /* borrowed */
        struct hfd_auth *auth;   /* borrowed, may be NULL */
        char prefix[256];
        struct hf_metric *metrics[5]; /* store requests by operation */
        pthread_t timer_thread;
        bool timer_running;

        /* guarded by mu */
        pthread_mutex_t mu;
        pthread_cond_t cond; /* the timer's wake-up; synced; the last call of the store is back */
        struct hfd_object_tree trees[HFD_RESOURCES_MAX];
        struct hfd_object_tree unreadable; /* by key: what is stored where objects are and is none;
                                       not served, but expected by the audit */
        uint64_t revision;                 /* all changes up to it are in the trees */
        bool synced, stopping, watches_ended;
        struct hf_status fill_status;                  /* why the cache is not filled */
        struct hfd_change history[HFD_HISTORY_EVENTS]; /* ring: n_history from first_history on */
        size_t first_history, n_history, history_bytes;
        uint64_t history_floor; /* every change after it is in the ring */
        struct hfd_watcher *watches[HFD_RESOURCES_MAX];
        size_t n_watches;
        hf_nsec watches_due; /* when the next bookmark or end of a watch may be due */

        struct hfd_consistent_read *probing,
                *to_probe;                   /* those of the probe under way, those of the next */
        struct hfd_consistent_read *waiting; /* for the cache to pass their revision */
        bool probe_running;
        unsigned n_late;      /* consistent reads in a row that the cache answered too late */
        hf_nsec direct_until; /* until then reads go to the store at once */
        bool rewatch;         /* the store's watch may hang: the timer opens it again */

        enum { HFD_FILL_IDLE, HFD_FILL_RUNNING, HFD_FILL_BACKOFF } fill;
        bool fill_relist; /* begin with a list, else with a watch from revision + 1 */
        bool fill_watching;
        uint64_t fill_n_watches; /* begun: tells which of them an id that comes late belongs to */
        uint64_t fill_watch_id;
        hf_nsec fill_again_at, fill_backoff;
        size_t n_store_calls;

        /* the history's identity (store_identity.c) */
        unsigned long replacement_epoch; /* of a replacement: what began before the last one says
                                  nothing about what is there now */
        uint64_t known_revision, known_cluster; /* the highest revision answered, and by which
                                                   cluster; 0 = nothing known */
        struct hf__buf *epoch; /* owned; as last read, "" when there is none; NULL = not read yet */
        bool epoch_exists;
        bool settles;  /* another epoch was noticed; until the cache is filled again */
        bool replaced; /* noticed; until the cache is filled again */
        bool audit_running;
        hf_nsec audit_at; /* when the next audit is due */

        atomic_llong heard_at;

        /* immutable after new */
        void (*on_history_replaced)(void *ctx);
        void *history_ctx;
        struct hf_metric *history_metrics[2]; /* replacements, differences found */
};

static inline hf_nsec hfd_api_now(struct hfd_api *api) { return hf_now(hf_host_clock(api->host)); }

/* ---- store calls, measured and counted (store_calls.c); a failure to start comes back as the
 * return value ---- */

int hfd_store_get(struct hfd_api *api, const char *key, hf_nsec deadline, hfd_store_fn done,
                  void *ctx);
int hfd_store_list(struct hfd_api *api, const char *prefix, const char *start_key,
                   uint64_t revision, size_t limit, hf_nsec deadline, hfd_store_fn done, void *ctx);
int hfd_store_txn(struct hfd_api *api, const struct hfd_txn *txn, hf_nsec deadline,
                  hfd_store_fn done, void *ctx);
int hfd_store_revision(struct hfd_api *api, hf_nsec deadline, hfd_store_fn done, void *ctx);
/* P/<storage>/<path>; "" paths give the collection's prefix. 0 or HF_E_TOO_LARGE. */
int hfd_object_key(struct hfd_api *api, const struct hfd_resource *resource, const char *path,
                   char key[HFD_KEY_MAX]);
/* The reverse: which resource's, and which path; NULL = none of ours. */
const struct hfd_resource *hfd_object_of_key(struct hfd_api *api, const char *key,
                                             const char **ret_path);
/* "ns/name" or "name" of a call. */
void hfd_request_object_path(const struct hfd_request *request, char path[2 * HF_NAME_MAX + 2]);

int hfd_store_keys(struct hfd_api *api, const char *prefix, const char *start_key,
                   uint64_t revision, size_t limit, hf_nsec deadline, hfd_store_fn done,
                   void *ctx); /* a list without values */

/* ---- the history behind the cache (store_identity.c) ---- */

#define HFD_AUDIT_INTERVAL (3 * 60 * HF_NSEC_PER_SEC)

/* The history is another one: ends the term and the watches, and has the cache filled anew. */
void hfd_store_identity_replaced(struct hfd_api *api, const char *why);
/* What was known when a request was sent (read under the lock), to compare its reply with. */
struct hfd_store_identity_mark {
        unsigned long replacement_epoch;
        uint64_t revision;
};
struct hfd_store_identity_mark hfd_store_identity_mark_locked(const struct hfd_api *api);
void hfd_store_identity_check(struct hfd_api *api, struct hfd_store_identity_mark sent,
                              const struct hfd_store_reply *reply);
int hfd_store_identity_epoch_key(struct hfd_api *api, char key[HFD_KEY_MAX]);
/* Notes the epoch; whether it is another than the one known. value NULL: there is none. */
bool hfd_store_identity_epoch_changed(struct hfd_api *api, const struct hf__buf *value);
/* The epoch as it is known, to be dropped; *ret_exists: whether the key was there. NULL: not read
 * yet. */
struct hf__buf *hfd_store_identity_epoch_known(struct hfd_api *api, bool *ret_exists);
/* Another history was noticed, and the cache is not filled from it yet. */
bool hfd_store_identity_settles(struct hfd_api *api);
void hfd_store_identity_audit(struct hfd_api *api); /* begins an audit, if the cache is in a state
                                            for one. Never blocks */

/* ---- filling (watch_cache.c) ---- */

void hfd_reflector_run(struct hfd_api *api); /* starts or goes on with it; not under mu */
void hfd_reflector_stop(struct hfd_api *api);
/* An own write is known before the watch tells: the next write starts from it. Takes nothing. */
void hfd_cacher_note_write(struct hfd_api *api, struct hfd_object *object);
/* For writes: the newest known version, a reference; NULL = not cached. *ret_synced: whether the
 * cache may be asked at all. */
struct hfd_object *hfd_cacher_newest(struct hfd_api *api, const struct hfd_resource *resource,
                                     const char *path, bool *ret_synced);

/* ---- readers (consistent_read.c) ---- */

void hfd_consistent_read_start(struct hfd_api *api, struct hfd_consistent_read *reader);
void hfd_consistent_read_after(struct hfd_api *api, struct hfd_consistent_read *reader,
                               uint64_t revision, hf_nsec timeout);
struct hfd_consistent_read *
hfd_consistent_reads_passed_locked(struct hfd_api *api); /* those that may go on */
struct hfd_consistent_read *
hfd_consistent_reads_late_locked(struct hfd_api *api, hf_nsec now,
                                 hf_nsec *ret_next);               /* those that gave up */
void hfd_consistent_reads_go(struct hfd_consistent_read *readers); /* calls ready of each */
struct hfd_consistent_read *hfd_consistent_reads_all_locked(struct hfd_api *api,
                                                            int outcome); /* at the end */

/* ---- watches (watch.c) ---- */

/* Queues a change for whom it concerns; they are linked into *dirty for hfd_watchers_deliver. */
void hfd_watchers_change_locked(struct hfd_api *api, const struct hfd_change *change,
                                struct hfd_watcher **dirty);
void hfd_watchers_expire_locked(struct hfd_api *api,
                                struct hfd_watcher **dirty); /* 410 for all: the history was lost */
void hfd_watchers_end_locked(struct hfd_api *api,
                             struct hfd_watcher **dirty); /* a clean end for all */
/*
 * A bookmark for each watch of holdfastd's own client that wants them: a Lease has changed hands,
 * and the new holder's controllers wait until their caches have reached its acquiring write.
 */
void hfd_watchers_taken_locked(struct hfd_api *api, struct hfd_watcher **dirty);
void hfd_watchers_tick_locked(struct hfd_api *api, hf_nsec now, struct hfd_watcher **dirty);
void hfd_watchers_deliver(struct hfd_watcher *dirty);

/* ---- Table and PartialObjectMetadata (table.c) ---- */

/* A Table of these objects. list_meta: the inside of metadata ("resourceVersion":...). columns:
 * with the column definitions. */
struct hf__buf *hfd_table_render(struct hfd_api *api, const struct hfd_request *request,
                                 struct hfd_object *const *objects, size_t n,
                                 const char *list_meta);
struct hf__buf *hfd_partial_render(const struct hfd_object *object);

/* ---- discovery.c ---- */

struct hf__buf *
hfd_discovery(const char *path,
              int *ret_code);         /* NULL: no such path (code 404) or out of memory (500) */
struct hf__buf *hfd_openapi_v2(void); /* the protobuf document */

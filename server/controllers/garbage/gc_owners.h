/* SPDX-License-Identifier: Apache-2.0 */
#pragma once
/*
 * Determines the states of the owners to which an object refers, and caches which owners are
 * absent.
 *
 * If an owner were wrongly called absent, an object that is still needed would be deleted. So an
 * owner in an informer's cache counts as existing. If it is not in that cache, a consistent read of
 * the server decides.
 *
 * Thread: any worker. `mu` guards the cache of absent owners; it is not held during a request.
 */
#include <pthread.h>

#include <holdfast/leader.h>

#include "server/controllers/garbage/gc_graph.h"

#define HFD_GC_OWNERS_MAX 512 /* absent owners in the cache; a new one replaces the oldest */

struct hfd_gc_owners {
        const struct hfd_gc_graph *graph; /* borrowed */
        pthread_mutex_t mu;
        /* guarded by mu */
        char *absent[HFD_GC_OWNERS_MAX]; /* a ring of owned keys, see format_owner_key */
        size_t n_absent;                 /* how many were ever added, including replaced ones */
};

enum hfd_gc_owner {
        HFD_GC_OWNER_SOLID,   /* it exists or cannot be checked: it keeps the object */
        HFD_GC_OWNER_WAITING, /* it exists and is being deleted in the foreground */
        HFD_GC_OWNER_ABSENT,  /* no object of that kind, namespace and name has that uid */
};

/* 0 or -errno. */
int hfd_gc_owners_init(struct hfd_gc_owners *owners, const struct hfd_gc_graph *graph);
void hfd_gc_owners_done(struct hfd_gc_owners *owners);

/* One reference of an object. */
struct hfd_gc_reference {
        const struct hf__json *json; /* borrowed from the object */
        const char *uid, *name;      /* borrowed from json; NULL = it has none */
        const struct hfd_kind *kind; /* NULL: the owner cannot be looked up */
        enum hfd_gc_owner owner;
};

struct hfd_gc_references {
        struct hfd_gc_reference *items; /* owned; not in the order of the object */
        size_t n;
};

/*
 * Determines the states of all owners of node. An owner is SOLID also if its kind is not in the
 * graph's set, if it is namespaced and node is not, or if the reference has no valid name or uid,
 * because such an owner cannot be looked up. May block for requests, and may create an Event for
 * node (gc_notice.h). On success the caller calls hfd_gc_references_done before it frees
 * node->object. Errors: those of hfd_object_client_get, also HF_E_CANCELED: the term was aborted;
 * -ENOMEM; and HF_E_UNAVAILABLE: the server does not serve the kind at the moment.
 */
int hfd_gc_owners_find(struct hfd_gc_owners *owners, struct hf_term *term,
                       const struct hfd_gc_node *node, struct hfd_gc_references *ret_references);
void hfd_gc_references_done(struct hfd_gc_references *references);

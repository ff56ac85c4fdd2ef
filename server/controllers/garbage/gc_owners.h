/* SPDX-License-Identifier: Apache-2.0 */
#pragma once
/*
 * Determines the state of an owner that an object names, and remembers the owners that are absent.
 *
 * A wrong "absent" would delete an object that is still needed. So an owner in an informer's cache
 * counts as existing. If it is not in the cache, a consistent read of the server decides.
 *
 * Thread: any worker; the memory of absent owners has a lock of its own.
 */
#include <pthread.h>

#include <holdfast/leader.h>

#include "server/controllers/garbage/gc_graph.h"

#define HFD_GC_OWNERS_MAX 512 /* absent owners remembered; the oldest is forgotten first */

struct hfd_gc_owners {
        const struct hfd_gc_graph *graph; /* borrowed */
        pthread_mutex_t mu;
        /* guarded by mu */
        char *absent[HFD_GC_OWNERS_MAX]; /* a ring of owned texts, see owner_key */
        size_t n_absent;                 /* all ever added, also forgotten ones */
};

enum hfd_gc_owner {
        HFD_GC_OWNER_SOLID,   /* it exists or cannot be checked: it keeps the object */
        HFD_GC_OWNER_WAITING, /* it exists and is being deleted in the foreground */
        HFD_GC_OWNER_ABSENT,  /* no object of that kind, namespace and name has that uid */
};

/* 0 or -errno. */
int hfd_gc_owners_init(struct hfd_gc_owners *owners, const struct hfd_gc_graph *graph);
void hfd_gc_owners_done(struct hfd_gc_owners *owners);

/*
 * Judges the owner that one reference of node names. A reference to a kind that is not served, or
 * to a namespaced owner from an object without a namespace, is SOLID: nothing can be known of such
 * an owner. May block for a request, and may create an Event for node (gc_notice.h). Errors: those
 * of hfd_object_client_get.
 */
int hfd_gc_owners_find(struct hfd_gc_owners *owners, struct hf_term *term,
                       const struct hfd_gc_node *node, const struct hf__json *reference,
                       enum hfd_gc_owner *ret_owner);

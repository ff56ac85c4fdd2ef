/* SPDX-License-Identifier: Apache-2.0 */
#pragma once
/*
 * The reconcile loop that most controllers run until the term ends (holdfast/reconciler.h): over
 * one or two informers, or over those of a set of kinds. Thread: the controller's; reconcile runs
 * on its workers, and a map on the thread of the informer.
 */
#include <assert.h>

#include <holdfast/reconciler.h>

#include "server/controllers/kinds/kind_set.h"

struct hfd_reconcile_loop {
        const char *name; /* of the controller */
        unsigned n_workers;
        int (*reconcile)(void *ctx, struct hf_term *term, const char *key, hf_nsec *ret_again);
        void *ctx; /* of reconcile and the maps */
        struct {
                struct hf_informer *informer; /* NULL = there is no second one */
                hf_reconciler_map_fn map;     /* NULL = the object's own key */
        } sources[2];                         /* not used by a loop over a set */
};

/* Runs the loop; blocks and returns as hf_reconciler_run. */
int hfd_reconcile_loop_run(const struct hfd_reconcile_loop *loop, struct hf_term *term);

/* The map of a kind's events; NULL = the loop does not use the kind. */
typedef hf_reconciler_map_fn (*hfd_kind_map_fn)(void *ctx, const struct hfd_kind *kind);
/*
 * Like hfd_reconcile_loop_run, with the informers of the set's kinds in place of loop->sources,
 * until `until` fires, which must be the term's drain token or a child of it. The set is borrowed.
 * May also return -ENOMEM.
 */
int hfd_reconcile_loop_run_set(const struct hfd_reconcile_loop *loop, struct hf_term *term,
                               const struct hfd_kind_set *set, hfd_kind_map_fn map_of,
                               struct hf_cancel *until);

/* The informer of a kind that controllers.c has created, because the controller needs it. */
static inline struct hf_informer *hfd_needed_informer(const struct hfd_kind *kind) {
        assert(kind);
        return kind->informer;
}

/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Runs the reconcile loops of most controllers of holdfastd.
 *
 * Invariant: hf_reconciler_run uses the sources until it returns, and not later. So they may be on
 * the stack here, or be freed after the call.
 */
#include "server/controllers/context/reconcile_loop.h"

#include <errno.h>
#include <stdlib.h>

#include "leader/reconciler_until.h"

static struct hf_reconciler make_reconciler(const struct hfd_reconcile_loop *loop,
                                            const struct hf_reconciler_source *sources, size_t n) {
        return (struct hf_reconciler){.size = sizeof(struct hf_reconciler),
                                      .name = loop->name,
                                      .sources = sources,
                                      .n_sources = n,
                                      .n_workers = loop->n_workers,
                                      .reconcile = loop->reconcile,
                                      .ctx = loop->ctx};
}

static struct hf_reconciler_source make_source(struct hf_informer *informer,
                                               hf_reconciler_map_fn map) {
        return (struct hf_reconciler_source){.size = sizeof(struct hf_reconciler_source),
                                             .informer = informer,
                                             .map = map};
}

int hfd_reconcile_loop_run(const struct hfd_reconcile_loop *loop, struct hf_term *term) {
        struct hf_reconciler_source sources[2];
        size_t n = loop->sources[1].informer ? 2 : 1;

        assert(loop->sources[0].informer);
        for (size_t i = 0; i < n; i++)
                sources[i] = make_source(loop->sources[i].informer, loop->sources[i].map);
        const struct hf_reconciler reconciler = make_reconciler(loop, sources, n);
        return hf_reconciler_run(&reconciler, term);
}

int hfd_reconcile_loop_run_set(const struct hfd_reconcile_loop *loop, struct hf_term *term,
                               const struct hfd_kind_set *set, hfd_kind_map_fn map_of,
                               struct hf_cancel *until) {
        struct hf_reconciler_source *sources = calloc(set->n, sizeof *sources);
        size_t n = 0;

        if (!sources)
                return -ENOMEM;
        for (size_t i = 0; i < set->n; i++) {
                hf_reconciler_map_fn map = map_of(loop->ctx, set->kinds[i]);
                if (map)
                        sources[n++] = make_source(set->kinds[i]->informer, map);
        }
        const struct hf_reconciler reconciler = make_reconciler(loop, sources, n);
        int r = hf__reconciler_run_until(&reconciler, term, until);
        free(sources);
        return r;
}

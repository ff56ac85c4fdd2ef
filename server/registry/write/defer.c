/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Passes large writes to the pool of threads.
 *
 * Invariants: a write has at most one turn in the pool, because it belongs to one thread at a time.
 * on_pool is true while a thread of the pool runs the write (and when the pool has refused a
 * committed write). It becomes false before the write may wait, for example for the store, whose
 * callback may be called before the step has returned. So a turn has memory of its own, which the
 * step frees first, and the pool never touches a write.
 */
#include "server/registry/write/defer.h"

#include <assert.h>
#include <errno.h>
#include <stdlib.h>

#include "server/pool/work_pool.h"
#include "server/registry/base/large_work.h"
#include "server/registry/write/reply.h"

/* A turn of a write in the pool. The step that it runs owns it. */
struct turn {
        struct hfd_work_task task; /* first member: run_turn casts it back */
        struct hfd_write *w;
        void (*resume)(struct hfd_write *w);
};

bool hfd_write_must_defer(const struct hfd_write *w) {
        size_t n = w->request->n_body;

        if (w->current && w->current->bytes)
                n += hfd_object_size(w->current);
        if (w->stored)
                n += w->stored->n;
        return n > HFD_LARGE_BODY && !w->on_pool;
}

static enum hfd_work_result run_turn(struct hfd_work_task *task) {
        struct turn turn = *(struct turn *)task;
        struct hfd_write *w = turn.w;
        const atomic_bool *abandoned = w->request->abandoned;
        bool cancelled = hfd_work_is_cancelled(w->registry->work, task) ||
                         (abandoned && atomic_load_explicit(abandoned, memory_order_relaxed));

        free(task);
        assert(!w->awaiting);
        w->on_pool = true;
        if (cancelled && !w->committed_at)
                hfd_write_reply_store_error(w, HF_E_UNAVAILABLE, NULL); /* nothing was written */
        else
                turn.resume(w);
        return HFD_WORK_DONE;
}

/* The pool does not take the write. If it was committed, only its response is left to make, which
 * this thread does. */
static void end_refused(struct hfd_write *w, int r, void (*resume)(struct hfd_write *w)) {
        struct hfd_response response = {0};

        if (w->committed_at) {
                w->on_pool = true; /* so that it is not deferred again */
                resume(w);
                return;
        }
        hfd_large_work_refuse(r, &response);
        hfd_write_reply(w, &response);
}

void hfd_write_defer(struct hfd_write *w, void (*resume)(struct hfd_write *w)) {
        struct turn *turn = malloc(sizeof *turn);
        int r = -ENOMEM;

        assert(!w->on_pool && !w->awaiting);
        if (turn) {
                *turn = (struct turn){.task = {.step = run_turn, .owner = w->request->owner},
                                      .w = w,
                                      .resume = resume};
                /* A write that has begun is not refused: a conflict would then become an error. Nor
                 * is one of a deletecollection, which would then delete a part of the objects. */
                bool bounded = w->n_attempts == 0 && !w->request->of_collection;
                r = hfd_large_work_submit(w->registry, &turn->task, bounded);
        }
        if (r == 0)
                return;
        free(turn);
        end_refused(w, r, resume);
}

/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Runs the work of plug-ins in turns on the pool of threads.
 *
 * Invariant: after a turn has called its function, it does not touch the request, because the
 * request may have ended. So the memory of the turn is its own, and not part of the request.
 */
#include "server/admission/turn.h"

#include <errno.h>
#include <stdlib.h>

#include "base/departure.h"
#include "server/auth/user.h"
#include "server/pool/work_pool.h"

struct turn {
        struct hfd_work_task task; /* first member: run_turn casts it back */
        hfd_admission_turn_fn *fn;
        void *ctx;
};

static enum hfd_work_result run_turn(struct hfd_work_task *task) {
        struct turn *turn = (struct turn *)task;

        turn->fn(turn->ctx, task);
        free(turn);
        return HFD_WORK_DONE;
}

int hfd_admission_take_turn(struct hfd_work_pool *pool, const struct hfd_admission *a,
                            hfd_admission_turn_fn *fn, void *ctx) {
        const char *user = a->of.user ? a->of.user->subject.name : NULL;
        struct turn *turn = malloc(sizeof *turn);

        if (!turn)
                return -ENOMEM;
        /* An evaluation ends early only with its request, so a turn may take longer than the pool's
         * steps. */
        *turn = (struct turn){.task = {.step = run_turn,
                                       .owner = hfd_work_owner(user),
                                       .long_step = true},
                              .fn = fn,
                              .ctx = ctx};
        if (hfd_work_submit(pool, &turn->task))
                return 0;
        free(turn);
        return HF_E_UNAVAILABLE;
}

int hfd_admission_turn_may_go_on(const struct hf_host *host, const struct hfd_work_pool *pool,
                                 const struct hfd_work_task *task, const struct hfd_admission *a) {
        struct hf__departure *departure = a->of.departure;

        if (hfd_work_is_cancelled(pool, task))
                return HF_E_UNAVAILABLE;
        if (departure && atomic_load(&departure->gone))
                return HF_E_TIMEOUT;
        return hf_now(hf_host_clock(host)) >= a->of.deadline ? HF_E_TIMEOUT : 0;
}

void hfd_admission_turn_refuse(int r, struct hfd_response *response) {
        if (r == -ENOMEM)
                hfd_response_no_memory(response);
        else if (r == HF_E_TIMEOUT)
                hfd_response_status(response, HF_E_TIMEOUT, 504, "Timeout",
                                    "Timeout: request did not complete within requested timeout",
                                    NULL);
        else
                hfd_response_store_error(response, HF_E_UNAVAILABLE, NULL);
}

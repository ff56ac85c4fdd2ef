/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Runs a phase in a term. plan.c decides, and this file carries out: it reads the ledger, gets the
 * next action from the plan, does it, and gets the next one. While a record is written, the next
 * step's object is created. Steps whose order does not matter are done together (phase_together.c).
 * The file begins with the loop; the functions that the loop calls follow.
 *
 * After any failure the run discards all known state and, after a pause that grows, reads it again.
 * So the same code handles a lost response, a conflict with another writer, and a crash of the
 * previous leader.
 *
 * A phase that is settled when the term begins reads the ledger a moment later, so that it does not
 * delay the first writes of the controllers that have work.
 *
 * When the phase is complete, the controllers after it may start, and its own keeps running. If a
 * user then deletes the ledger, the phase is done once more, because instances that start later
 * need the ledger to become ready. Objects that exist keep their content. If a phase fails but some
 * version has completed it before, the controllers after it may start, too.
 *
 * When the term drains (will end soon), the run ends between two steps or after a failure. It ends
 * at once when a write is refused because the term is over. After failing for give_way_after the
 * run releases the Lease, which drains the term, unless it has no elector or is writing a deleted
 * ledger again. That time doubles with each release in a row, so that a fault that all instances
 * share does not keep moving the Lease.
 *
 * Invariants: the ledger is written only at the resourceVersion that was last read or written here,
 * so another process's change is never overwritten. All writes go through the term's client, gated
 * and fenced.
 */
#include "bootstrap/phase_run.h"

#include <assert.h>
#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "base/json.h"
#include "base/thread.h"
#include "bootstrap/phase_ledger.h"
#include "bootstrap/phase_object.h"
#include "bootstrap/phase_together.h"
#include "bootstrap/report.h"

#define RETRY_MIN    (100 * HF_NSEC_PER_MSEC)
#define RETRY_MAX    (10 * HF_NSEC_PER_SEC)
#define GIVE_WAY_MAX (600 * HF_NSEC_PER_SEC)
#define LEDGER_CHECK (5 * HF_NSEC_PER_SEC)    /* between two checks that the ledger still exists */
#define SETTLED_WAIT (100 * HF_NSEC_PER_MSEC) /* before a settled phase reads the ledger */

static int run_to_completion(struct hf__phase_run *run);
static int do_next_action(struct hf__phase_run *run, bool *ret_finished, struct hf_status *why);
static int create_object(struct hf__phase_run *run, const struct hf__plan *plan,
                         struct hf_status *why);
static int record_step(struct hf__phase_run *run, const struct hf__plan *plan,
                       struct hf_status *why);
static const struct hf__step *start_next_create(struct hf__phase_run *run,
                                                struct hf__pending_request **ret_pending);
static void handle_failure(struct hf__phase_run *run, int error, const struct hf_status *from);
static void give_way(struct hf__phase_run *run);
static bool wait_until_ledger_is_lost(const struct hf__phase_run *run);

static hf_nsec now_of(const struct hf__phase_run *run) {
        return hf_now(hf_host_clock(run->bootstrap->host));
}

static const char *step_id(const struct hf__phase_run *run) {
        return run->step ? run->step->id : NULL;
}

int hf__phase_run(struct hf_term *term, void *ctx) {
        struct hf__phase *phase = ctx;
        struct hf__phase_run run = {.phase = phase, .bootstrap = phase->bootstrap, .term = term};

        /* Controllers after this phase's need not wait for it, so those that have work come first.
         * hf_term_started lets them run if the phase has become settled since the term began. */
        if (hf__phase_is_settled(phase)) {
                hf_term_started(term);
                (void)hf_cancel_wait(hf_term_drain(term), now_of(&run) + SETTLED_WAIT);
        }
        for (;;) {
                int r = run_to_completion(&run);
                if (r == 0) {
                        run.n_failures = 0; /* also if the ledger was complete when it was read */
                        phase->give_way_after = phase->bootstrap->give_way_after;
                        hf__report_settled(phase);
                }
                hf__phase_run_forget(&run);
                hf__report_idle(phase);
                if (r != 0)
                        return r;
                hf_term_started(term);
                if (!wait_until_ledger_is_lost(&run))
                        return 0;
                hf_log(&phase->bootstrap->host->log, HF_LOG_WARNING, HF__COMPONENT,
                       "%s: the ledger was deleted: writing it again", phase->name);
                run.is_restoring = true;
                run.has_begun = false;
        }
}

/* ---- until the phase is complete ---- */

bool hf__phase_run_means_term_end(int error) {
        return error == HF_E_NOT_LEADER || error == HF_E_STALE_TERM || error == HF_E_UNFENCED ||
               error == HF_E_CANCELED;
}

/* Returns 0 when nothing is left to do, else the error that ended the run. */
static int run_to_completion(struct hf__phase_run *run) {
        for (;;) {
                struct hf_status why = {0};
                bool finished = false;

                /* A drain ends the run between two steps. It must not come between a write and its
                 * record, because the next leader would then have to read the object again. */
                if (run->seen.state == HF__SEEN_NOTHING &&
                    hf_cancel_fired(hf_term_drain(run->term)))
                        return HF_E_CANCELED;
                int r = do_next_action(run, &finished, &why);
                if (finished)
                        return 0;
                if (hf__phase_run_means_term_end(r) ||
                    (r != 0 && hf_cancel_fired(hf_term_drain(run->term))))
                        return r;
                if (r != 0)
                        handle_failure(run, r, &why);
        }
}

/* Does the next action of the plan. *ret_finished: nothing was left to do. */
static int do_next_action(struct hf__phase_run *run, bool *ret_finished, struct hf_status *why) {
        struct hf__phase *phase = run->phase;
        struct hf__plan plan = {.action = HF__PLAN_FINISHED};

        run->step = NULL;
        if (!run->has_ledger)
                return hf__phase_ledger_read(run, why);
        /* A ledger in a newer format shows the phase as complete: otherwise the read has failed. */
        if (!run->ledger.newer_format)
                hf__plan_next(&run->ledger, phase->name, &phase->steps, run->bootstrap->version,
                              &run->seen, &plan);
        *ret_finished = plan.action == HF__PLAN_FINISHED;
        if (*ret_finished)
                return 0;
        if (plan.action != HF__PLAN_COMPLETE) {
                assert(plan.step < phase->steps.n);
                run->step = &phase->steps.list[plan.step];
        }
        if (!run->has_begun) {
                run->has_begun = true;
                /* Without a step only the completion is missing, so all steps are settled. */
                hf__report_progress(phase, HF_BOOTSTRAP_BEGUN, step_id(run),
                                    run->step ? plan.step : phase->steps.n);
        }
        switch (plan.action) {
        case HF__PLAN_CREATE: return create_object(run, &plan, why);
        case HF__PLAN_READ: return hf__phase_object_read(run, why);
        case HF__PLAN_REPLACE: return hf__phase_object_replace(run, false, why);
        case HF__PLAN_DRY_RUN: return hf__phase_object_replace(run, true, why);
        case HF__PLAN_RECORD: return record_step(run, &plan, why);
        case HF__PLAN_COMPLETE: return hf__phase_ledger_complete(run, why);
        case HF__PLAN_FINISHED: break;
        }
        return 0;
}

struct together {
        struct hf__phase_run *run;
        const struct hf__plan *plan;
        struct hf_status *why;
};

static int create_steps_together(void *ctx) {
        const struct together *together = ctx;

        return hf__phase_together(together->run, together->plan, together->why);
}

/* Creates the step's object, and the objects of the steps that may be done together with it. Many
 * steps at once need much stack and memory, which the C library keeps for a thread until the thread
 * ends; the phase's thread lives as long as the term. So they run on a thread of their own. When
 * leadership only moves, there is usually nothing to create, and that thread is not started. */
static int create_object(struct hf__phase_run *run, const struct hf__plan *plan,
                         struct hf_status *why) {
        struct together together = {.run = run, .plan = plan, .why = why};

        return run->step->any_order && !run->found_object
                       ? hf__thread_run(run->bootstrap->host, "hf-phase", create_steps_together,
                                        &together)
                       : hf__phase_object_create(run, why);
}

/* Records the step in the ledger, and creates the next step's object meanwhile. The record is sent
 * first, so a leader that dies leaves at most two objects without a record. */
static int record_step(struct hf__phase_run *run, const struct hf__plan *plan,
                       struct hf_status *why) {
        struct hf__pending_request *recording, *creating = NULL;
        int r = hf__phase_ledger_start_record(run, plan, &recording, why);

        if (r != 0)
                return r;
        const struct hf__step *next = start_next_create(run, &creating);
        r = hf__phase_ledger_end_record(run, plan, recording, why);
        if (!next)
                return r;
        if (r != 0) {
                /* All known state will be discarded, and the plan finds the object by its stamp. */
                (void)hf__pending_request_wait(creating, hf_term_abort(run->term), NULL, NULL,
                                               NULL);
                return r;
        }
        run->step = next;
        return hf__phase_object_end_create(run, creating, why);
}

/* Starts the create that the plan will want when the current record is written; run->ledger has
 * that record already. Returns the step of the create, or NULL: the plan wants something else, the
 * term drains, or the create cannot be started. In the last case no error is reported, because the
 * loop tries the create again. */
static const struct hf__step *start_next_create(struct hf__phase_run *run,
                                                struct hf__pending_request **ret_pending) {
        struct hf__phase *phase = run->phase;
        const struct hf__seen nothing = {.state = HF__SEEN_NOTHING};
        struct hf__plan plan;

        if (hf_cancel_fired(hf_term_drain(run->term)))
                return NULL;
        hf__plan_next(&run->ledger, phase->name, &phase->steps, run->bootstrap->version, &nothing,
                      &plan);
        if (plan.action != HF__PLAN_CREATE)
                return NULL;
        const struct hf__step *step = &phase->steps.list[plan.step];
        return hf__phase_object_start_create(run, step, ret_pending, NULL) == 0 ? step : NULL;
}

/* ---- failures ---- */

/* Bytes of the server's message that fit into our message beside the source and the step. */
#define MAX_REASON 180

/* The message of an invalid object begins with the object's name, which may be long and is in our
 * message already. Skips the name if the rest of the message would be cut off otherwise. */
static const char *skip_object_name(const char *message) {
        static const char invalid[] = "\" is invalid: ";
        const char *at = strlen(message) > MAX_REASON ? strstr(message, invalid) : NULL;

        return at ? at + 2 : message;
}

/* Fills `why` with a message that names the step, or the ledger. */
static void describe_failure(const struct hf__phase_run *run, int error,
                             const struct hf_status *from, struct hf_status *why) {
        const char *reason = from->message[0] ? from->message : hf_strerror(error);

        if (run->step)
                (void)hf_fail(why, error, "%.160s (%.100s): %.*s", run->step->source, run->step->id,
                              MAX_REASON, skip_object_name(reason));
        else
                (void)hf_fail(why, error, "ledger %.60s/%.60s: %.300s", run->bootstrap->ledger_ns,
                              run->bootstrap->ledger_name, reason);
}

/* Whether another writer was faster: a user, or another phase of this process. */
static bool is_conflict(int error) { return error == HF_E_CONFLICT || error == HF_E_EXISTS; }

/* Reports the failure, releases the Lease if the phase has failed for too long, and waits before
 * the next attempt. A conflict that is the first failure in a row is not reported: a single one is
 * normal, because others may write too. */
static void handle_failure(struct hf__phase_run *run, int error, const struct hf_status *from) {
        hf_nsec pause = (hf_nsec)from->retry_after_s * HF_NSEC_PER_SEC;
        struct hf_status why = {0};

        assert(error != 0);
        describe_failure(run, error, from, &why);
        if (run->n_failures++ == 0) {
                run->failing_since = now_of(run);
                run->pause = RETRY_MIN;
        }
        if (run->n_failures > 1 || !is_conflict(error))
                hf__report_failure(run->phase, run->term, step_id(run), run->n_failures, &why);
        /* The same rule as for readiness: if some version has completed the phase, the controllers
         * after it need not wait for the steps that this version adds. */
        if (hf__ledger_find_completed(&run->ledger, run->phase->name))
                hf_term_started(run->term);
        hf__phase_run_forget(run);
        if (pause < run->pause)
                pause = run->pause;
        give_way(run);
        (void)hf_cancel_wait(hf_term_drain(run->term),
                             now_of(run) + (pause < RETRY_MAX ? pause : RETRY_MAX));
        run->pause = run->pause * 2 < RETRY_MAX ? run->pause * 2 : RETRY_MAX;
}

/* Releases the Lease if the phase has failed for too long, so that another instance may try. */
static void give_way(struct hf__phase_run *run) {
        struct hf__phase *phase = run->phase;

        if (run->is_restoring || !run->bootstrap->elector ||
            now_of(run) - run->failing_since < phase->give_way_after ||
            hf_elector_step_down(run->bootstrap->elector) != 0)
                return;
        /* The host may have set more than GIVE_WAY_MAX. Then the time stays as it is. */
        if (phase->give_way_after < GIVE_WAY_MAX)
                phase->give_way_after = phase->give_way_after > GIVE_WAY_MAX / 2
                                                ? GIVE_WAY_MAX
                                                : phase->give_way_after * 2;
        hf_metric_add(phase->metrics.gave_way, 1);
        hf_log(&run->bootstrap->host->log, HF_LOG_WARNING, HF__COMPONENT,
               "%s keeps failing: releasing the Lease, so that another instance may try",
               phase->name);
        hf__report_progress(phase, HF_BOOTSTRAP_GAVE_WAY, step_id(run), HF__UNCHANGED);
        /* The release soon drains the term. Another attempt before that would be in vain. */
        (void)hf_cancel_wait(hf_term_drain(run->term), now_of(run) + RETRY_MAX);
}

/* ---- once the phase is complete ---- */

/* Checks the ledger at intervals. Returns true when the ledger is lost, false when the term
 * drains. */
static bool wait_until_ledger_is_lost(const struct hf__phase_run *run) {
        struct hf_cancel *drain = hf_term_drain(run->term);

        do
                (void)hf_cancel_wait(drain, now_of(run) + LEDGER_CHECK);
        while (!hf_cancel_fired(drain) && !hf__phase_ledger_is_lost(run));
        return !hf_cancel_fired(drain);
}

/* ---- the known state ---- */

void hf__phase_run_forget_object(struct hf__phase_run *run) {
        free(run->present);
        run->present = NULL;
        run->seen = (struct hf__seen){0};
}

void hf__phase_run_forget(struct hf__phase_run *run) {
        hf__phase_run_forget_object(run);
        hf__ledger_done(&run->ledger);
        run->ledger_object = hf__json_free(run->ledger_object);
        run->has_ledger = false;
        run->needs_consistent_read = true;
}

/* SPDX-License-Identifier: Apache-2.0 */
/*
 * A phase in a term: the shell around plan.c. It reads the ledger, asks the core what is next, does
 * that one thing, and asks again. After any failure all that is known is dropped and read anew,
 * after a pause that grows: so a write whose answer was lost, a ledger that somebody else changed,
 * and a crash of the last leader are one and the same case.
 *
 * The ledger is written at the resourceVersion it was read at: it says what this leader saw plus
 * one record, or is not written.
 *
 * Complete, it lets what comes after it begin (so it does once a phase is failing that some version
 * completed), and stays: whoever begins later is ready by the ledger, so that one that somebody
 * deletes is made anew in the same term, from what is there.
 *
 * Ends: drain, between two steps; a write refused by gate or fence; or, when it kept failing for
 * give_way_after, by letting another instance try, which fires the drain. Each time that happened
 * in a row the patience doubles, so that a fault that all instances share does not move the Lease
 * about all day.
 */
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/json.h"
#include "base/strbuf.h"
#include "base/time_format.h"
#include "bootstrap/bootstrap.h"
#include "bootstrap/plan.h"

#define RETRY_MIN    (100 * HF_NSEC_PER_MSEC)
#define RETRY_MAX    (10 * HF_NSEC_PER_SEC)
#define GIVE_WAY_MAX (600 * HF_NSEC_PER_SEC)
#define LOOK_AGAIN   (2 * HF_NSEC_PER_SEC) /* whether the ledger is there */

#define WRITE_QUERY "fieldManager=holdfast-bootstrap&fieldValidation=Strict"

struct run {
        struct hf__phase *phase;
        struct hf_bootstrap *bootstrap;
        struct hf_term *term;

        bool restores; /* it was complete in this term, and its ledger was deleted since */
        bool doubts; /* something was not as it was read: from now on only consistent reads will do
                      */

        /* what is known; forgotten after a failure */
        bool has_ledger;
        struct hf__ledger ledger;
        struct hf__json *ledger_object; /* owned; as read; NULL = there is none */
        struct hf__seen seen;
        char *present; /* owned; the object as read, of HF__SEEN_PRESENT */
        size_t n_present;

        const struct hf__step *step; /* what it is about; NULL = the ledger */
        bool begun;                  /* something was to be done */
        unsigned n_failures;         /* in a row */
        hf_nsec failing_since, pause;
};

static void forget_object(struct run *run) {
        free(run->present);
        run->present = NULL;
        run->seen = (struct hf__seen){0};
}

static void forget(struct run *run) {
        forget_object(run);
        hf__ledger_done(&run->ledger);
        run->ledger_object = hf__json_free(run->ledger_object);
        run->has_ledger = false;
        run->doubts = true;
}

static hf_nsec now_of(const struct run *run) { return hf_now(hf_host_clock(run->bootstrap->host)); }

static void time_text(const struct run *run, char text[HF__MICROTIME_MAX]) {
        const struct hf_clock *clock = hf_host_clock(run->bootstrap->host);
        hf__time_format(clock->real(clock->ctx) / HF_NSEC_PER_SEC, text);
}

/* ---- the ledger ---- */

static int take_ledger(struct run *run, const char *text, size_t n, struct hf_status *why) {
        struct hf_bootstrap *bootstrap = run->bootstrap;
        int r = hf__json_parse(text, n, &run->ledger_object, NULL);

        if (r == 0)
                r = hf__ledger_read(run->ledger_object, bootstrap->phase_names, bootstrap->n_phases,
                                    &run->ledger, why);
        if (r == 0 && run->ledger.newer_format &&
            !hf__ledger_find_completed(&run->ledger, run->phase->name))
                r = hf_fail(why, HF_E_INVALID,
                            "it is in the format of a newer version, which has not completed the "
                            "phase");
        run->has_ledger = r == 0;
        return r;
}

static int read_ledger(struct run *run, struct hf_status *why) {
        struct hf_bootstrap *bootstrap = run->bootstrap;
        const char *acquired_at = hf_term_acquired_at(run->term);
        char query[64] = "", *text = NULL;
        size_t n = 0;

        /* What the last leader wrote came before the acquiring write. */
        if (bootstrap->one_revision && !run->doubts && *acquired_at)
                (void)snprintf(query, sizeof query, "resourceVersion=%.40s", acquired_at);
        struct hf_request request = {.verb = HF_VERB_GET,
                                     .resource = hf__ledger_resource,
                                     .ns = bootstrap->ledger_ns,
                                     .name = bootstrap->ledger_name,
                                     .query = *query ? query : NULL};
        int r = hf_client_do(hf_term_client(run->term), &request, hf_term_abort(run->term), &text,
                             &n, why);
        if (r == HF_E_NOT_FOUND) {
                run->has_ledger = true;
                return 0;
        }
        if (r == 0)
                r = take_ledger(run, text, n, why);
        free(text);
        return r;
}

/*
 * Writes the ledger as it is in memory, and keeps the answer as the object to go on from. That
 * somebody else wrote in between is no fault: *ret_written is false, and what is there is read
 * anew.
 */
static int write_ledger(struct run *run, bool *ret_written, struct hf_status *why) {
        struct hf_bootstrap *bootstrap = run->bootstrap;
        struct hf__strbuf body = {0};
        char *text = NULL;
        size_t n = 0;
        int r = hf__ledger_write(&run->ledger, run->ledger_object, bootstrap->ledger_ns,
                                 bootstrap->ledger_name, &body);

        if (r == 0) {
                struct hf_request request = {.verb = run->ledger_object ? HF_VERB_UPDATE
                                                                        : HF_VERB_CREATE,
                                             .resource = hf__ledger_resource,
                                             .ns = bootstrap->ledger_ns,
                                             .name = run->ledger_object ? bootstrap->ledger_name
                                                                        : NULL,
                                             .query = "fieldManager=holdfast-bootstrap",
                                             .body = body.data,
                                             .n_body = body.n};
                r = hf_client_do(hf_term_client(run->term), &request, hf_term_abort(run->term),
                                 &text, &n, why);
        }
        hf__strbuf_done(&body);
        if (r == 0) {
                run->ledger_object = hf__json_free(run->ledger_object);
                r = hf__json_parse(text, n, &run->ledger_object, NULL);
        }
        free(text);
        *ret_written = r == 0;
        if (r != HF_E_CONFLICT && r != HF_E_EXISTS && r != HF_E_NOT_FOUND)
                return r;
        forget(run);
        return 0;
}

static int record_step(struct run *run, const struct hf__plan *plan, struct hf_status *why) {
        struct hf__ledger_entry entry = {.step = run->step->id, .outcome = plan->outcome};
        bool written = false;

        (void)snprintf(entry.phase, sizeof entry.phase, "%s", run->phase->name);
        (void)snprintf(entry.version, sizeof entry.version, "%s", run->bootstrap->version);
        memcpy(entry.hash, run->step->hash, sizeof entry.hash);
        memcpy(entry.applied, plan->applied, sizeof entry.applied);
        time_text(run, entry.at);
        hf__report_progress(run->phase, HF_BOOTSTRAP_APPLIED, run->step->id, plan->step);
        int r = hf__ledger_add(&run->ledger, &entry);
        if (r == 0)
                r = write_ledger(run, &written, why);
        if (r != 0 || !written)
                return r;
        forget_object(run);
        run->n_failures = 0;
        hf_metric_add(run->phase->metrics.steps[plan->outcome], 1);
        hf_log(&run->bootstrap->host->log, HF_LOG_INFO, HF__COMPONENT, "%s: %s %s",
               run->phase->name, run->step->id, hf__outcome_text(plan->outcome));
        hf__report_progress(run->phase, HF_BOOTSTRAP_RECORDED, run->step->id, plan->step + 1);
        return 0;
}

static int complete_phase(struct run *run, struct hf_status *why) {
        char now[HF__MICROTIME_MAX];
        bool written = false;

        time_text(run, now);
        int r = hf__ledger_complete(&run->ledger, run->phase->name, run->bootstrap->version, now);
        if (r == 0)
                r = write_ledger(run, &written, why);
        if (r != 0 || !written)
                return r;
        run->n_failures = 0;
        hf_log(&run->bootstrap->host->log, HF_LOG_NOTICE, HF__COMPONENT,
               "%s: complete, by version %s", run->phase->name, run->bootstrap->version);
        hf__report_complete(run->phase, true);
        hf__report_progress(run->phase, HF_BOOTSTRAP_COMPLETE, NULL, run->phase->steps.n);
        return 0;
}

/* ---- the step's object ---- */

static struct hf_request call_of(const struct run *run, enum hf_verb verb) {
        const struct hf__step *step = run->step;
        return (struct hf_request){.verb = verb,
                                   .resource = {step->kind->group, step->kind->version,
                                                step->kind->plural},
                                   .ns = step->ns,
                                   .name = verb == HF_VERB_CREATE ? NULL : step->name,
                                   .query = verb == HF_VERB_GET ? NULL : WRITE_QUERY};
}

/* Sends a write with body; what it made of the object becomes the result, in this state. */
static int send_object(struct run *run, struct hf_request *request, struct hf__strbuf *body,
                       enum hf__seen_state state, struct hf_status *why) {
        struct hf__content_seen made;
        char *text = NULL;
        size_t n = 0;

        request->body = body->data;
        request->n_body = body->n;
        int r = hf_client_do(hf_term_client(run->term), request, hf_term_abort(run->term), &text,
                             &n, why);
        if (r == 0)
                r = hf__content_see(text, n, &made);
        free(text);
        if (r != 0)
                return r;
        forget_object(run);
        run->seen.state = state;
        memcpy(run->seen.result, made.present, sizeof run->seen.result);
        return 0;
}

static int create_object(struct run *run, struct hf_status *why) {
        struct hf_request request = call_of(run, HF_VERB_CREATE);
        struct hf__strbuf body = {0};
        int r = hf__content_print_new(run->step, &body);

        if (r == 0)
                r = send_object(run, &request, &body, HF__SEEN_CREATED, why);
        hf__strbuf_done(&body);
        if (r != HF_E_EXISTS)
                return r;
        run->seen.state = HF__SEEN_EXISTS;
        return 0;
}

static int read_object(struct run *run, struct hf_status *why) {
        struct hf_request request = call_of(run, HF_VERB_GET);
        struct hf__content_seen seen = {0};
        char *text = NULL;
        size_t n = 0;
        int r = hf_client_do(hf_term_client(run->term), &request, hf_term_abort(run->term), &text,
                             &n, why);

        forget_object(run);
        if (r == HF_E_NOT_FOUND) {
                run->seen.state = HF__SEEN_ABSENT;
                return 0;
        }
        if (r == 0)
                r = hf__content_see(text, n, &seen);
        if (r != 0) {
                free(text);
                return r;
        }
        run->seen.state = HF__SEEN_PRESENT;
        memcpy(run->seen.stamp, seen.stamp, sizeof run->seen.stamp);
        memcpy(run->seen.present, seen.present, sizeof run->seen.present);
        run->present = text;
        run->n_present = n;
        return 0;
}

static int replace_object(struct run *run, bool dry_run, struct hf_status *why) {
        struct hf_request request = call_of(run, HF_VERB_UPDATE);
        struct hf__strbuf body = {0};
        int r = hf__content_print_replacement(run->step, run->present, run->n_present, &body);

        if (dry_run)
                request.query = WRITE_QUERY "&dryRun=All";
        if (r == 0)
                r = send_object(run, &request, &body, dry_run ? HF__SEEN_TRIED : HF__SEEN_REPLACED,
                                why);
        hf__strbuf_done(&body);
        if (r != HF_E_CONFLICT && r != HF_E_NOT_FOUND)
                return r;
        forget_object(run); /* somebody was there in between: look again */
        return 0;
}

/* ---- the run ---- */

bool hf__phase_is_settled(const struct hf__phase *phase, const struct hf__ledger *ledger) {
        static const struct hf__seen nothing;
        struct hf__plan plan = {0};

        if (!ledger->newer_format)
                hf__plan_next(ledger, phase->name, &phase->steps, phase->bootstrap->version,
                              &nothing, &plan);
        return ledger->newer_format || plan.what == HF__PLAN_FINISHED;
}

static bool wants_nothing(const struct run *run, const struct hf__plan *plan) {
        return run->ledger.newer_format || plan->what == HF__PLAN_FINISHED;
}

/* One thing. *ret_finished: there is nothing left to do. */
static int advance(struct run *run, bool *ret_finished, struct hf_status *why) {
        struct hf__phase *phase = run->phase;
        struct hf__plan plan = {0};

        run->step = NULL;
        if (!run->has_ledger)
                return read_ledger(run, why);
        if (!run->ledger.newer_format)
                hf__plan_next(&run->ledger, phase->name, &phase->steps, run->bootstrap->version,
                              &run->seen, &plan);
        *ret_finished = wants_nothing(run, &plan);
        if (*ret_finished)
                return 0;
        run->step = plan.what == HF__PLAN_COMPLETE ? NULL : &phase->steps.list[plan.step];
        if (!run->begun) {
                run->begun = true;
                hf__report_progress(phase, HF_BOOTSTRAP_BEGUN, run->step ? run->step->id : NULL,
                                    plan.step);
        }
        switch (plan.what) {
        case HF__PLAN_CREATE: return create_object(run, why);
        case HF__PLAN_READ: return read_object(run, why);
        case HF__PLAN_REPLACE: return replace_object(run, false, why);
        case HF__PLAN_TRY: return replace_object(run, true, why);
        case HF__PLAN_RECORD: return record_step(run, &plan, why);
        case HF__PLAN_COMPLETE: return complete_phase(run, why);
        case HF__PLAN_FINISHED: break;
        }
        return 0;
}

static void give_way(struct run *run) {
        struct hf__phase *phase = run->phase;

        if (run->restores || !run->bootstrap->elector ||
            now_of(run) - run->failing_since < phase->give_way_after ||
            hf_elector_step_down(run->bootstrap->elector) != 0)
                return;
        phase->give_way_after =
                phase->give_way_after > GIVE_WAY_MAX / 2 ? GIVE_WAY_MAX : phase->give_way_after * 2;
        hf_metric_add(phase->metrics.gave_way, 1);
        hf_log(&run->bootstrap->host->log, HF_LOG_WARNING, HF__COMPONENT,
               "%s keeps failing: the Lease is released for another to try", phase->name);
        hf__report_progress(phase, HF_BOOTSTRAP_GAVE_WAY, run->step ? run->step->id : NULL,
                            HF__UNCHANGED);
        (void)hf_cancel_wait(hf_term_drain(run->term), now_of(run) + RETRY_MAX);
}

#define ROOM 180 /* for what the server says, beside where the step is from and which it is */

/* A refusal begins with the object's name, which may be long, and is told already: the field behind
 * it is what must not be cut off. */
static const char *without_name(const char *words) {
        static const char refused[] = "\" is invalid: ";
        const char *at = strlen(words) > ROOM ? strstr(words, refused) : NULL;
        return at ? at + 2 : words;
}

static void name_failure(const struct run *run, int error, const struct hf_status *from,
                         struct hf_status *why) {
        const char *words = from->message[0] ? from->message : hf_strerror(error);

        *why = *from;
        if (run->step)
                (void)hf_fail(why, error, "%.160s (%.100s): %.*s", run->step->source, run->step->id,
                              ROOM, without_name(words));
        else
                (void)hf_fail(why, error, "ledger %.60s/%.60s: %.300s", run->bootstrap->ledger_ns,
                              run->bootstrap->ledger_name, words);
}

/* Says so, and waits before the next try; or gives way. */
static void failed(struct run *run, int error, const struct hf_status *from) {
        struct hf_status why;
        hf_nsec pause = (hf_nsec)from->retry_after_s * HF_NSEC_PER_SEC;

        name_failure(run, error, from, &why);
        if (run->n_failures++ == 0) {
                run->failing_since = now_of(run);
                run->pause = RETRY_MIN;
        }
        hf__report_failure(run->phase, run->term, run->step ? run->step->id : NULL, run->n_failures,
                           &why);
        /* As for readiness: a version has completed the phase, so what comes after it need not wait
         * for this one's additions. */
        if (hf__ledger_find_completed(&run->ledger, run->phase->name))
                hf_term_started(run->term);
        forget(run);
        if (pause < run->pause)
                pause = run->pause;
        give_way(run);
        (void)hf_cancel_wait(hf_term_drain(run->term),
                             now_of(run) + (pause < RETRY_MAX ? pause : RETRY_MAX));
        run->pause = run->pause * 2 < RETRY_MAX ? run->pause * 2 : RETRY_MAX;
}

static bool term_is_over(int error) {
        return error == HF_E_NOT_LEADER || error == HF_E_STALE_TERM || error == HF_E_UNFENCED ||
               error == HF_E_CANCELED;
}

static int run_to_end(struct run *run) {
        for (;;) {
                struct hf_status why = {0};
                bool finished = false;

                if (run->seen.state == HF__SEEN_NOTHING &&
                    hf_cancel_fired(hf_term_drain(run->term)))
                        return HF_E_CANCELED;
                int r = advance(run, &finished, &why);
                if (finished)
                        return 0;
                if (term_is_over(r) || (r != 0 && hf_cancel_fired(hf_term_drain(run->term))))
                        return r;
                if (r != 0)
                        failed(run, r, &why);
        }
}

/* The ledger is read all the same, beside the work that comes after. */
bool hf__phase_settled(void *ctx) {
        struct hf__phase *phase = ctx;
        return atomic_load(&phase->settled);
}

/* Is it a ledger that does not know of the phase? One that cannot be read, or is a later program's,
 * is left alone. */
static bool is_without(const struct run *run, const char *text, size_t n) {
        char key[64];
        int n_key = snprintf(key, sizeof key, "\"%s.completed\"", run->phase->name);
        struct hf__ledger ledger = {0};
        struct hf__json *object = NULL;

        if (memmem(text, n, key, (size_t)n_key) || hf__json_parse(text, n, &object, NULL) != 0)
                return false;
        int r = hf__ledger_read(object, run->bootstrap->phase_names, run->bootstrap->n_phases,
                                &ledger, NULL);
        bool without = r == 0 && !ledger.newer_format &&
                       !hf__ledger_find_completed(&ledger, run->phase->name);
        hf__ledger_done(&ledger);
        hf__json_free(object);
        return without;
}

/* Gone, or made anew by another phase. What any cache says is enough: before anything is done the
 * ledger is read for good. */
static bool ledger_is_lost(const struct run *run) {
        const struct hf_bootstrap *bootstrap = run->bootstrap;
        struct hf_status status;
        char *text = NULL;
        size_t n = 0;
        struct hf_request request = {.verb = HF_VERB_GET,
                                     .resource = hf__ledger_resource,
                                     .ns = bootstrap->ledger_ns,
                                     .name = bootstrap->ledger_name,
                                     .query = bootstrap->one_revision ? "resourceVersion=0" : NULL};
        int r = hf_client_do(hf_term_client(run->term), &request, hf_term_abort(run->term), &text,
                             &n, &status);
        bool lost = r == HF_E_NOT_FOUND || (r == 0 && text && is_without(run, text, n));

        free(text);
        return lost;
}

/* Until the ledger is lost, or the drain. False: the drain. */
static bool stay(const struct run *run) {
        struct hf_cancel *drain = hf_term_drain(run->term);

        do
                (void)hf_cancel_wait(drain, now_of(run) + LOOK_AGAIN);
        while (!hf_cancel_fired(drain) && !ledger_is_lost(run));
        return !hf_cancel_fired(drain);
}

int hf__phase_run(struct hf_term *term, void *ctx) {
        struct hf__phase *phase = ctx;
        struct run run = {.phase = phase, .bootstrap = phase->bootstrap, .term = term};

        for (;;) {
                int r = run_to_end(&run);
                if (r == 0) {
                        atomic_store(&phase->settled, true);
                        phase->give_way_after = phase->bootstrap->give_way_after;
                        hf__report_complete(phase, true);
                }
                forget(&run);
                hf__report_over(phase);
                if (r != 0)
                        return r;
                hf_term_started(term);
                if (!stay(&run))
                        return 0;
                hf_log(&phase->bootstrap->host->log, HF_LOG_WARNING, HF__COMPONENT,
                       "%s: the ledger was deleted: it is made anew", phase->name);
                run.restores = true;
                run.begun = false;
        }
}

/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The requests for the ledger that a phase sends in a term.
 *
 * Invariant: run->ledger is what was last read or written, plus at most one change: a record, the
 * records of steps that were done together, a completion, or such records and the completion. In a
 * full ledger each new record takes the place of an old one. Each write stores exactly that change.
 * After any failure, including a conflict, the caller discards all known state.
 */
#include "bootstrap/phase_ledger.h"

#include <assert.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/json.h"
#include "base/strbuf.h"
#include "base/time_format.h"
#include "bootstrap/plan.h"
#include "bootstrap/report.h"

static void format_now(const struct hf__phase_run *run, char text[HF__MICROTIME_MAX]) {
        const struct hf_clock *clock = hf_host_clock(run->bootstrap->host);

        hf__time_format(clock->real(clock->ctx) / HF_NSEC_PER_SEC, text);
}

/* ---- reading ---- */

static int parse_ledger(struct hf__phase_run *run, const char *text, size_t n,
                        struct hf_status *why) {
        struct hf_bootstrap *bootstrap = run->bootstrap;
        int r = hf__json_parse(text, n, &run->ledger_object, NULL);

        if (r == 0)
                r = hf__ledger_read(run->ledger_object, bootstrap->phase_names, bootstrap->n_phases,
                                    &run->ledger, why);
        if (r == 0 && run->ledger.newer_format &&
            !hf__ledger_find_completed(&run->ledger, run->phase->name))
                r = hf_fail(why, HF_E_INVALID,
                            "it is in the format of a newer version, which has not "
                            "completed the phase");
        run->has_ledger = r == 0;
        return r;
}

int hf__phase_ledger_read(struct hf__phase_run *run, struct hf_status *why) {
        struct hf_bootstrap *bootstrap = run->bootstrap;
        const char *acquired_at = hf_term_acquired_at(run->term);
        char query[64] = "", *text = NULL;
        size_t n = 0;

        assert(!run->has_ledger && !run->ledger_object);
        /* The previous leader made all its writes before this term's Lease was acquired. A state
         * that is at least as new as that acquisition therefore contains them all, and the server
         * may take it from its cache. */
        if (bootstrap->one_revision && !run->needs_consistent_read && *acquired_at)
                (void)snprintf(query, sizeof query, "resourceVersion=%.40s", acquired_at);
        const struct hf_request request = {.size = sizeof request,
                                           .verb = HF_VERB_GET,
                                           .resource = hf__ledger_resource,
                                           .ns = bootstrap->ledger_ns,
                                           .name = bootstrap->ledger_name,
                                           .query = *query ? query : NULL};
        int r = hf_client_do(hf_term_client(run->term), &request, hf_term_abort(run->term), &text,
                             &n, why);
        if (r == HF_E_NOT_FOUND) {
                run->has_ledger = true; /* an empty ledger */
                return 0;
        }
        if (r == 0)
                r = parse_ledger(run, text, n, why);
        free(text);
        /* Report the completion even if a record could not be read, because hf__ledger_read reads
         * `completed` first. */
        if (hf__ledger_find_completed(&run->ledger, run->phase->name))
                hf__report_complete(run->phase);
        return r;
}

/* ---- writing ---- */

static int start_request(struct hf__phase_run *run, const struct hf__strbuf *body,
                         struct hf__pending_request **ret_pending, struct hf_status *why) {
        struct hf_bootstrap *bootstrap = run->bootstrap;
        bool exists = run->ledger_object;
        const struct hf_request request = {.size = sizeof request,
                                           .verb = exists ? HF_VERB_UPDATE : HF_VERB_CREATE,
                                           .resource = hf__ledger_resource,
                                           .ns = bootstrap->ledger_ns,
                                           .name = exists ? bootstrap->ledger_name : NULL,
                                           .query = HF__FIELD_MANAGER,
                                           .body = body->data,
                                           .n_body = body->n};

        return hf__pending_request_start(hf_term_client(run->term), &request,
                                         hf_term_abort(run->term), ret_pending, why);
}

/* Sends run->ledger to the server. Does not wait for the response: end_write does. */
static int start_write(struct hf__phase_run *run, struct hf__pending_request **ret_pending,
                       struct hf_status *why) {
        struct hf_bootstrap *bootstrap = run->bootstrap;
        struct hf__strbuf body = {0};

        assert(run->has_ledger);
        int r = hf__ledger_write(&run->ledger, run->ledger_object, bootstrap->ledger_ns,
                                 bootstrap->ledger_name, &body);
        if (r == 0)
                r = start_request(run, &body, ret_pending, why);
        hf__strbuf_done(&body);
        return r;
}

/* Waits for the response. Keeps the object in it, because the next write needs its
 * resourceVersion. */
static int end_write(struct hf__phase_run *run, struct hf__pending_request *pending,
                     struct hf_status *why) {
        char *text = NULL;
        size_t n = 0;
        int r = hf__pending_request_wait(pending, hf_term_abort(run->term), &text, &n, why);

        if (r == 0) {
                run->ledger_object = hf__json_free(run->ledger_object);
                r = hf__json_parse(text, n, &run->ledger_object, NULL);
        }
        free(text);
        return r;
}

static bool has_step(const struct hf_bootstrap *bootstrap, const char *id) {
        for (size_t i = 0; i < bootstrap->n_phases; i++) {
                const struct hf__steps *steps = &bootstrap->phases[i].steps;
                for (size_t k = 0; k < steps->n; k++)
                        if (strcmp(steps->list[k].id, id) == 0)
                                return true;
        }
        return false;
}

/* Removes the oldest record whose step this program does not have. Skips the records of newer
 * versions, which may still need them. If the step comes back, it counts as new. */
static void drop_old_record(struct hf__phase_run *run) {
        struct hf__ledger *ledger = &run->ledger;
        size_t i = 0;

        while (i < ledger->n_entries &&
               (hf__version_compare(ledger->entries[i].version, run->bootstrap->version) > 0 ||
                has_step(run->bootstrap, ledger->entries[i].step)))
                i++;
        if (i == ledger->n_entries)
                return;
        hf_log(&run->bootstrap->host->log, HF_LOG_INFO, HF__COMPONENT,
               "%s: the ledger is full: dropping the record of %s, which this version does not "
               "have",
               run->phase->name, ledger->entries[i].step);
        hf__ledger_remove(ledger, i);
}

/* Adds a step's record to run->ledger, which the caller then writes to the server. */
static int add_record(struct hf__phase_run *run, const struct hf__step *step,
                      enum hf__outcome outcome, const char *applied, struct hf_status *why) {
        struct hf__ledger_entry entry = {.step = step->id, .outcome = outcome};

        (void)snprintf(entry.phase, sizeof entry.phase, "%s", run->phase->name);
        (void)snprintf(entry.version, sizeof entry.version, "%s", run->bootstrap->version);
        memcpy(entry.hash, step->hash, sizeof entry.hash);
        (void)snprintf(entry.applied, sizeof entry.applied, "%s", applied);
        format_now(run, entry.at);
        if (run->ledger.n_entries == HF__LEDGER_RECORDS_MAX &&
            !hf__ledger_find(&run->ledger, step->id))
                drop_old_record(run);
        int r = hf__ledger_add(&run->ledger, &entry);
        if (r == HF_E_TOO_LARGE)
                (void)hf_fail(why, r,
                              "the ledger is full: %d records, and each is of a step of this "
                              "program or of a newer version",
                              HF__LEDGER_RECORDS_MAX);
        return r;
}

/* Counts, logs and reports a record that the server has stored. */
static void report_record(struct hf__phase_run *run, const struct hf__step *step,
                          enum hf__outcome outcome, size_t n_settled) {
        hf_metric_add(run->phase->metrics.steps[outcome], 1);
        hf_log(&run->bootstrap->host->log, HF_LOG_INFO, HF__COMPONENT, "%s: %s %s",
               run->phase->name, step->id, hf__outcome_text(outcome));
        hf__report_progress(run->phase, HF_BOOTSTRAP_RECORDED, step->id, n_settled);
}

int hf__phase_ledger_start_record(struct hf__phase_run *run, const struct hf__plan *plan,
                                  struct hf__pending_request **ret_pending, struct hf_status *why) {
        assert(plan->action == HF__PLAN_RECORD);
        hf__report_progress(run->phase, HF_BOOTSTRAP_APPLIED, run->step->id, plan->step);
        int r = add_record(run, run->step, plan->outcome, plan->applied, why);
        return r == 0 ? start_write(run, ret_pending, why) : r;
}

int hf__phase_ledger_end_record(struct hf__phase_run *run, const struct hf__plan *plan,
                                struct hf__pending_request *pending, struct hf_status *why) {
        int r = end_write(run, pending, why);

        if (r != 0)
                return r;
        hf__phase_run_forget_object(run);
        run->n_failures = 0;
        report_record(run, run->step, plan->outcome, plan->step + 1);
        return 0;
}

/* ---- steps that were done together, and the completion ---- */

static int write_and_wait(struct hf__phase_run *run, struct hf_status *why) {
        struct hf__pending_request *pending;
        int r = start_write(run, &pending, why);

        return r == 0 ? end_write(run, pending, why) : r;
}

static int add_completion(struct hf__phase_run *run) {
        char now[HF__MICROTIME_MAX];

        format_now(run, now);
        return hf__ledger_complete(&run->ledger, run->phase->name, run->bootstrap->version, now);
}

static void report_completion(struct hf__phase_run *run) {
        hf_log(&run->bootstrap->host->log, HF_LOG_NOTICE, HF__COMPONENT,
               "%s: complete, by version %s", run->phase->name, run->bootstrap->version);
        hf__report_complete(run->phase);
        hf__report_progress(run->phase, HF_BOOTSTRAP_COMPLETE, NULL, run->phase->steps.n);
}

int hf__phase_ledger_record_created(struct hf__phase_run *run, const struct hf__created *created,
                                    size_t n, struct hf_status *why) {
        const struct hf__steps *steps = &run->phase->steps;
        int r = 0;

        for (size_t i = 0; i < n && r == 0; i++)
                r = add_record(run, &steps->list[created[i].step], HF__OUTCOME_CREATED,
                               created[i].applied, why);
        size_t n_settled = hf__plan_n_settled(&run->ledger, steps, run->bootstrap->version);
        bool completes = r == 0 && n_settled == steps->n;
        if (completes)
                r = add_completion(run);
        if (r == 0)
                r = write_and_wait(run, why);
        if (r != 0)
                return r;
        run->n_failures = 0;
        /* n_settled counts the settled steps at the beginning of the list. Each report but the
         * last counts only those up to its own step, so that the reported progress grows. The last
         * one counts them all. */
        for (size_t i = 0; i < n; i++) {
                bool counts_to_own = i + 1 < n && created[i].step < n_settled;
                report_record(run, &steps->list[created[i].step], HF__OUTCOME_CREATED,
                              counts_to_own ? created[i].step + 1 : n_settled);
        }
        if (completes)
                report_completion(run);
        return 0;
}

int hf__phase_ledger_complete(struct hf__phase_run *run, struct hf_status *why) {
        int r = add_completion(run);

        if (r == 0)
                r = write_and_wait(run, why);
        if (r != 0)
                return r;
        run->n_failures = 0;
        report_completion(run);
        return 0;
}

/* ---- checking that the ledger still exists ---- */

/* Whether the text is a ledger that does not show the phase as complete. Returns false for a ledger
 * that cannot be read or that a newer program wrote, so that such a ledger is left alone. */
static bool lacks_phase(const struct hf__phase_run *run, const char *text, size_t n) {
        char key[64];
        int n_key = snprintf(key, sizeof key, "\"%s.completed\":\"", run->phase->name);
        struct hf__ledger ledger = {0};
        struct hf__json *object = NULL;

        /* Usually the search finds a value, and no parsing is needed. An empty one does not count
         * (hf__ledger_read). */
        const char *found = memmem(text, n, key, (size_t)n_key);
        const char *value = found ? found + n_key : NULL;
        if ((value && value < text + n && *value != '"') ||
            hf__json_parse(text, n, &object, NULL) != 0)
                return false;
        int r = hf__ledger_read(object, run->bootstrap->phase_names, run->bootstrap->n_phases,
                                &ledger, NULL);
        bool lacks = r == 0 && !ledger.newer_format &&
                     !hf__ledger_find_completed(&ledger, run->phase->name);
        hf__ledger_done(&ledger);
        hf__json_free(object);
        return lacks;
}

bool hf__phase_ledger_is_lost(const struct hf__phase_run *run) {
        const struct hf_bootstrap *bootstrap = run->bootstrap;
        struct hf_status status;
        char *text = NULL;
        size_t n = 0;
        /* With resourceVersion=0 the server may answer from an outdated cache. That does no harm:
         * if the ledger seems lost, the phase begins with a consistent read before it writes. */
        const struct hf_request request = {.size = sizeof request,
                                           .verb = HF_VERB_GET,
                                           .resource = hf__ledger_resource,
                                           .ns = bootstrap->ledger_ns,
                                           .name = bootstrap->ledger_name,
                                           .query = bootstrap->one_revision ? "resourceVersion=0"
                                                                            : NULL};
        int r = hf_client_do(hf_term_client(run->term), &request, hf_term_abort(run->term), &text,
                             &n, &status);
        bool lost = r == HF_E_NOT_FOUND || (r == 0 && text && lacks_phase(run, text, n));

        free(text);
        return lost;
}

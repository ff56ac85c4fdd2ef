/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Reports the state of phases: info, log, metrics, health checks, Events, on_progress.
 *
 * Health. The check `bootstrap` (healthz) fails while some phase's `info` has `failing` set: its
 * last attempt in this process failed, which can only happen on the leader. The check
 * `bootstrap-<phase>` (healthz, readyz) exists for a phase that readiness depends on: one without
 * hook_patience. The check fails until the ledger shows that some version has completed the phase.
 * livez includes neither, because a restart would repair neither.
 *
 * Invariant: the lock guards `info` only. Copies of it are passed on after the lock is released.
 */
#include "bootstrap/report.h"

#include <assert.h>
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <holdfast/health.h>

#include "base/json.h"
#include "base/sha256.h"
#include "base/strbuf.h"
#include "base/thread.h"
#include "base/time_format.h"

#define EVENT_TIMEOUT (2 * HF_NSEC_PER_SEC)

/* ---- health checks; thread: any ---- */

/* Whether no phase fails. The reason names the first that does, because later phases usually wait
 * for it. */
static bool check_failing(void *ctx, char *reason, size_t max_reason) {
        struct hf_bootstrap *bootstrap = ctx;
        bool healthy = true;

        pthread_mutex_lock(&bootstrap->mu);
        for (size_t i = 0; healthy && i < bootstrap->n_phases; i++) {
                const struct hf_bootstrap_info *info = &bootstrap->phases[i].info;
                healthy = !info->failing;
                if (!healthy)
                        (void)snprintf(reason, max_reason, "%s fails at %.60s: %s", info->phase,
                                       info->step[0] ? info->step : "its ledger", info->message);
        }
        pthread_mutex_unlock(&bootstrap->mu);
        return healthy;
}

/* Whether a phase that readiness depends on is complete. If it fails, the reason says why; else if
 * it runs in this process, how many steps are done; else that it waits for the leader. */
static bool check_complete(void *ctx, char *reason, size_t max_reason) {
        struct hf__phase *phase = ctx;
        const struct hf_bootstrap_info *info = &phase->info;

        pthread_mutex_lock(&phase->bootstrap->mu);
        bool complete = info->complete;
        if (info->failing)
                (void)snprintf(reason, max_reason, "not complete, it fails at %.60s: %s",
                               info->step[0] ? info->step : "its ledger", info->message);
        else if (info->running)
                (void)snprintf(reason, max_reason, "not complete: %zu of %zu steps are done",
                               info->n_settled, info->n_steps);
        else
                (void)snprintf(reason, max_reason, "not complete: waiting for the leader");
        pthread_mutex_unlock(&phase->bootstrap->mu);
        return complete;
}

/* ---- metrics and registration ---- */

/* Creates the series of all outcomes at once, so that rates are correct from the first step on. */
static void make_metrics(struct hf__phase *phase) {
        struct hf_metrics *registry = phase->bootstrap->host->metrics;
        struct hf__phase_metrics *metrics = &phase->metrics;
        char labels[128];

        (void)snprintf(labels, sizeof labels, "phase=\"%s\"", phase->name);
        metrics->complete =
                hf_metrics_get(registry, HF_METRIC_GAUGE, "holdfast_bootstrap_complete",
                               "1 once the ledger shows that some version has completed the phase",
                               labels);
        metrics->failing =
                hf_metrics_get(registry, HF_METRIC_GAUGE, "holdfast_bootstrap_failing",
                               "1 while this process leads and a step of the phase fails", labels);
        metrics->failures = hf_metrics_get(registry, HF_METRIC_COUNTER,
                                           "holdfast_bootstrap_step_failures_total",
                                           "Failed attempts to do a step", labels);
        metrics->gave_way = hf_metrics_get(
                registry, HF_METRIC_COUNTER, "holdfast_bootstrap_gave_way_total",
                "Times this process released the Lease because the phase kept failing", labels);
        for (unsigned i = 0; i < _HF__OUTCOME_MAX; i++) {
                (void)snprintf(labels, sizeof labels, "phase=\"%s\",outcome=\"%s\"", phase->name,
                               hf__outcome_text((enum hf__outcome)i));
                metrics->steps[i] =
                        hf_metrics_get(registry, HF_METRIC_COUNTER,
                                       "holdfast_bootstrap_steps_total",
                                       "Steps that this process recorded, by outcome", labels);
        }
}

int hf__report_init(struct hf_bootstrap *bootstrap) {
        for (size_t i = 0; i < bootstrap->n_phases; i++)
                make_metrics(&bootstrap->phases[i]);
        assert(!bootstrap->has_health_check);
        int r = hf_health_add(bootstrap->host->health, "bootstrap", HF_HEALTHZ, check_failing,
                              bootstrap);
        bootstrap->has_health_check = r == 0;
        return r;
}

int hf__report_add_readiness(struct hf__phase *phase) {
        assert(!phase->has_readiness_check);
        int r = hf_health_add(phase->bootstrap->host->health, phase->full_name,
                              HF_HEALTHZ | HF_READYZ, check_complete, phase);
        phase->has_readiness_check = r == 0;
        return r;
}

void hf__report_done(struct hf_bootstrap *bootstrap) {
        if (bootstrap->has_health_check)
                hf_health_remove(bootstrap->host->health, "bootstrap");
        for (size_t i = 0; i < bootstrap->n_phases; i++)
                if (bootstrap->phases[i].has_readiness_check)
                        hf_health_remove(bootstrap->host->health, bootstrap->phases[i].full_name);
}

/* ---- progress ---- */

void hf__report_complete(struct hf__phase *phase) {
        pthread_mutex_lock(&phase->bootstrap->mu);
        phase->info.complete = true;
        pthread_mutex_unlock(&phase->bootstrap->mu);
        hf_metric_set(phase->metrics.complete, 1);
}

void hf__report_settled(struct hf__phase *phase) {
        atomic_store(&phase->settled, true);
        pthread_mutex_lock(&phase->bootstrap->mu);
        phase->info.n_settled = phase->info.n_steps;
        pthread_mutex_unlock(&phase->bootstrap->mu);
}

static void call_on_progress(struct hf__phase *phase, enum hf_bootstrap_point point,
                             const struct hf_bootstrap_info *info) {
        if (phase->bootstrap->on_progress)
                phase->bootstrap->on_progress(phase->bootstrap->ctx, point, info);
}

/* Copies the info under the lock, and passes the copy to on_progress after unlocking. */
void hf__report_progress(struct hf__phase *phase, enum hf_bootstrap_point point, const char *step,
                         size_t n_settled) {
        struct hf_bootstrap_info *info = &phase->info, copy;

        pthread_mutex_lock(&phase->bootstrap->mu);
        info->running = true;
        (void)snprintf(info->step, sizeof info->step, "%s", step ? step : "");
        if (n_settled != HF__UNCHANGED)
                info->n_settled = n_settled;
        /* The step succeeded, so the failures are no longer consecutive. */
        if (point == HF_BOOTSTRAP_RECORDED || point == HF_BOOTSTRAP_COMPLETE) {
                info->failing = false;
                info->n_failures = 0;
                info->message[0] = '\0';
        }
        copy = *info;
        pthread_mutex_unlock(&phase->bootstrap->mu);
        hf_metric_set(phase->metrics.failing, copy.failing);
        call_on_progress(phase, point, &copy);
}

void hf__report_idle(struct hf__phase *phase) {
        struct hf_bootstrap_info *info = &phase->info;

        pthread_mutex_lock(&phase->bootstrap->mu);
        info->running = false;
        info->failing = false;
        info->n_failures = 0;
        info->step[0] = '\0';
        info->message[0] = '\0';
        pthread_mutex_unlock(&phase->bootstrap->mu);
        hf_metric_set(phase->metrics.failing, 0);
}

/* ---- Events ---- */

/* There is one Event per phase and step. Its name is made from both, so that its count continues
 * under another leader. */
static void make_event_name(const struct hf__phase *phase, const char *step, char name[64]) {
        char text[512], digits[17];
        int n = snprintf(text, sizeof text, "%s %.440s", phase->name, step ? step : "");

        hf__sha256_text(text, n > 0 ? (size_t)n : 0, 16, digits);
        (void)snprintf(name, 64, "holdfast-bootstrap.%s", digits);
}

/* Fills the Event. Keeps an existing firstTimestamp. */
static int fill_event(struct hf__json *event, const struct hf__phase *phase, const char *name,
                      const char *now, int64_t count, const char *message) {
        const struct hf_bootstrap *bootstrap = phase->bootstrap;
        const char *const texts[][2] = {{"apiVersion", "v1"},
                                        {"kind", "Event"},
                                        {"metadata.name", name},
                                        {"metadata.namespace", bootstrap->ledger_ns},
                                        {"involvedObject.apiVersion", "v1"},
                                        {"involvedObject.kind", "ConfigMap"},
                                        {"involvedObject.namespace", bootstrap->ledger_ns},
                                        {"involvedObject.name", bootstrap->ledger_name},
                                        {"type", "Warning"},
                                        {"reason", "BootstrapFailed"},
                                        {"message", message},
                                        {"source.component", "holdfast-bootstrap"},
                                        {"lastTimestamp", now}};
        int r = 0;

        for (size_t i = 0; r == 0 && i < sizeof texts / sizeof texts[0]; i++)
                r = hf__json_set_string(event, texts[i][0], texts[i][1]);
        if (r == 0 && !hf__json_string(event, "firstTimestamp"))
                r = hf__json_set_string(event, "firstTimestamp", now);
        if (r == 0)
                r = hf__json_set_i64(event, "count", count);
        return r;
}

/* Sends a request about the Event. The timeout is short, because the phase waits for the response,
 * and an Event is not worth a delay. */
static int request_event(struct hf_term *term, struct hf_request *request, char **ret_text,
                         size_t *ret_n) {
        static const struct hf_resource events = {"", "v1", "events"};
        struct hf_status status;

        request->resource = events;
        request->deadline = hf_now(hf_host_clock(hf_term_host(term))) + EVENT_TIMEOUT;
        return hf_client_do(hf_term_client(term), request, hf_term_abort(term), ret_text, ret_n,
                            &status);
}

/* Reads the Event, or creates a new object. NULL: out of memory. */
static struct hf__json *get_event(const struct hf__phase *phase, struct hf_term *term,
                                  const char *name, bool *ret_exists) {
        struct hf_request request = {.size = sizeof request,
                                     .verb = HF_VERB_GET,
                                     .ns = phase->bootstrap->ledger_ns,
                                     .name = name};
        struct hf__json *event = NULL;
        char *text = NULL;
        size_t n = 0;

        *ret_exists = request_event(term, &request, &text, &n) == 0 &&
                      hf__json_parse(text, n, &event, NULL) == 0;
        free(text);
        return *ret_exists ? event : hf__json_object();
}

/* Writes the Event. Errors are ignored: Events are for people, and the log has the failure too. */
static void write_event(const struct hf__phase *phase, struct hf_term *term, const char *step,
                        const char *message) {
        const struct hf_clock *clock = hf_host_clock(phase->bootstrap->host);
        char name[64], now[HF__MICROTIME_MAX];
        struct hf__strbuf body = {0};
        int64_t count = 0;
        bool exists;

        make_event_name(phase, step, name);
        hf__time_format(clock->real(clock->ctx) / HF_NSEC_PER_SEC, now);
        struct hf__json *event = get_event(phase, term, name, &exists);
        (void)hf__json_i64(event, "count", &count);
        int r = event ? fill_event(event, phase, name, now, count + 1, message) : -ENOMEM;
        if (r == 0)
                hf__json_print(event, &body);
        if (r == 0 && body.error == 0) {
                struct hf_request request = {.size = sizeof request,
                                             .verb = exists ? HF_VERB_UPDATE : HF_VERB_CREATE,
                                             .ns = phase->bootstrap->ledger_ns,
                                             .name = exists ? name : NULL,
                                             .body = body.data,
                                             .n_body = body.n};
                (void)request_event(term, &request, NULL, NULL);
        }
        hf__strbuf_done(&body);
        hf__json_free(event);
}

void hf__report_failure(struct hf__phase *phase, struct hf_term *term, const char *step,
                        unsigned n_failures, const struct hf_status *why) {
        struct hf_bootstrap_info *info = &phase->info, copy;

        pthread_mutex_lock(&phase->bootstrap->mu);
        assert(n_failures > 0);
        info->running = true;
        info->failing = true;
        info->n_failures = n_failures;
        (void)snprintf(info->step, sizeof info->step, "%s", step ? step : "");
        (void)snprintf(info->message, sizeof info->message, "%s", why->message);
        copy = *info;
        pthread_mutex_unlock(&phase->bootstrap->mu);
        hf_metric_add(phase->metrics.failures, 1);
        hf_metric_set(phase->metrics.failing, 1);
        call_on_progress(phase, HF_BOOTSTRAP_FAILING, &copy);
        /* Logs and writes an Event only for the 1st, 2nd, 4th, ... failure, so that a lasting fault
         * does not fill the log. */
        if ((n_failures & (n_failures - 1)) != 0)
                return;
        hf_log(&phase->bootstrap->host->log, HF_LOG_WARNING, HF__COMPONENT, "%s fails, try %u: %s",
               phase->name, n_failures, why->message);
        write_event(phase, term, step, why->message);
}

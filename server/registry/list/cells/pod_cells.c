/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Cells of Pods and Jobs, as kube-apiserver shows them. The cell STATUS of a pod shows its phase,
 * unless a container or the deletion of the pod has something more specific to report.
 *
 * Invariant: a status that no kubelet would write still gives a text. What is missing counts as
 * empty or 0, and long texts are cut. Otherwise one pod would make the list of all pods fail.
 */
#include "server/registry/list/cells/pod_cells.h"

#include <inttypes.h>
#include <stdio.h>
#include <string.h>

#include "base/json.h"
#include "base/json_index.h"
#include "base/strbuf.h"
#include "base/time_format.h"

static const char *text_of(const struct hf__json *object, const char *path) {
        const char *text = hf__json_string(object, path);

        return text ? text : "";
}

static int64_t number_of(const struct hf__json *object, const char *path) {
        int64_t number = 0;

        (void)hf__json_i64(object, path, &number);
        return number;
}

static const struct hf__json *find_condition(const struct hf__json *object, const char *type) {
        return hf__json_element_with(hf__json_path(object, "status.conditions"), "type", type);
}

/* ---- pods ---- */

/* What a container that does not run says about itself: the reason why it waits, or how it ended.
 * False: nothing. */
static bool describe_container(const struct hf__json *status, char *text, size_t max) {
        const struct hf__json *waiting = hf__json_path(status, "state.waiting"),
                              *ended = hf__json_path(status, "state.terminated");

        if (*text_of(waiting, "reason"))
                (void)snprintf(text, max, "%s", text_of(waiting, "reason"));
        else if (*text_of(ended, "reason"))
                (void)snprintf(text, max, "%s", text_of(ended, "reason"));
        else if (ended && number_of(ended, "signal") != 0)
                (void)snprintf(text, max, "Signal:%" PRId64, number_of(ended, "signal"));
        else if (ended)
                (void)snprintf(text, max, "ExitCode:%" PRId64, number_of(ended, "exitCode"));
        else
                return false;
        return true;
}

/* Describes the first init container that has not ended well. False: there is none. */
static bool describe_init(const struct hf__json *pod, char *text, size_t max) {
        size_t n = hf__json_count(hf__json_path(pod, "spec.initContainers")), i = 0;
        char why[120];

        for (const struct hf__json *m =
                     hf__json_first(hf__json_path(pod, "status.initContainerStatuses"));
             m; m = hf__json_next(m), i++) {
                const struct hf__json *ended = hf__json_path(m, "state.terminated");
                if (ended && number_of(ended, "exitCode") == 0)
                        continue;
                if (describe_container(m, why, sizeof why) && strcmp(why, "PodInitializing") != 0)
                        (void)snprintf(text, max, "Init:%s", why);
                else
                        (void)snprintf(text, max, "Init:%zu/%zu", i, n);
                return true;
        }
        return false;
}

/* Later texts replace earlier ones: the phase, the gate of the scheduler, what an init container or
 * the last container says, the deletion. */
static void put_status(struct hf__strbuf *out, const struct hf__json *pod) {
        const char *phase = text_of(pod, "status.phase"), *reason = text_of(pod, "status.reason");
        char text[160];
        bool running = false;

        (void)snprintf(text, sizeof text, "%s", *reason ? reason : phase);
        if (hf__json_has_text(find_condition(pod, "PodScheduled"), "reason", "SchedulingGated"))
                (void)snprintf(text, sizeof text, "SchedulingGated");
        if (!describe_init(pod, text, sizeof text)) {
                for (const struct hf__json *m =
                             hf__json_first(hf__json_path(pod, "status.containerStatuses"));
                     m; m = hf__json_next(m)) {
                        running = running || (hf__json_path(m, "state.running") &&
                                              hf__json_bool(m, "ready", false));
                        (void)describe_container(m, text, sizeof text);
                }
                if (strcmp(text, "Completed") == 0 && running)
                        (void)snprintf(text, sizeof text, "%s",
                                       hf__json_has_text(find_condition(pod, "Ready"), "status",
                                                         "True")
                                               ? "Running"
                                               : "NotReady");
        }
        if (hf__json_path(pod, "metadata.deletionTimestamp"))
                (void)snprintf(text, sizeof text, "%s",
                               strcmp(reason, "NodeLost") == 0 ? "Unknown" : "Terminating");
        hf__strbuf_puts(out, text);
}

static void put_ready(struct hf__strbuf *out, const struct hf__json *pod) {
        size_t ready = 0;

        for (const struct hf__json *m =
                     hf__json_first(hf__json_path(pod, "status.containerStatuses"));
             m; m = hf__json_next(m))
                ready += hf__json_bool(m, "ready", false) && hf__json_path(m, "state.running");
        hf__strbuf_printf(out, "%zu/%zu", ready,
                          hf__json_count(hf__json_path(pod, "spec.containers")));
}

/* "3 (2m ago)": how often containers were restarted, and when the last one was. */
static void put_restarts(struct hf__strbuf *out, const struct hf__json *pod, int64_t now_s) {
        int64_t n = 0, last = 0, then;
        char age[HF__AGE_MAX];

        for (const struct hf__json *m =
                     hf__json_first(hf__json_path(pod, "status.containerStatuses"));
             m; m = hf__json_next(m)) {
                n += number_of(m, "restartCount");
                if (hf__time_parse(text_of(m, "lastState.terminated.finishedAt"), &then) == 0 &&
                    then > last)
                        last = then;
        }
        hf__strbuf_printf(out, "%" PRId64, n);
        if (n == 0 || last == 0)
                return;
        hf__age_format(now_s - last, age);
        hf__strbuf_printf(out, " (%s ago)", age);
}

/* How many readiness gates have a condition that is true, of all: "1/2". */
static void put_gates(struct hf__strbuf *out, const struct hf__json *pod) {
        const struct hf__json *gates = hf__json_path(pod, "spec.readinessGates");
        struct hf__json_index conditions;
        size_t met = 0;

        if (!hf__json_first(gates)) {
                hf__strbuf_puts(out, "<none>");
                return;
        }
        int r = hf__json_index_init(&conditions, hf__json_path(pod, "status.conditions"), "type");
        for (const struct hf__json *m = hf__json_first(gates); m && r == 0; m = hf__json_next(m)) {
                const struct hf__json_index_entry *condition =
                        hf__json_index_find(&conditions, text_of(m, "conditionType"));
                met += condition && hf__json_has_text(condition->item, "status", "True");
        }
        hf__json_index_done(&conditions);
        if (r != 0)
                out->error = r;
        hf__strbuf_printf(out, "%zu/%zu", met, hf__json_count(gates));
}

void hfd_pod_put_cell(struct hf__strbuf *out, const struct hf__json *pod, const char *what,
                      int64_t now_s) {
        if (strcmp(what, "ready") == 0)
                put_ready(out, pod);
        else if (strcmp(what, "status") == 0)
                put_status(out, pod);
        else if (strcmp(what, "restarts") == 0)
                put_restarts(out, pod, now_s);
        else
                put_gates(out, pod);
}

/* ---- jobs ---- */

static void put_job_status(struct hf__strbuf *out, const struct hf__json *job) {
        static const char *const types[][2] = {{"Complete", "Complete"},
                                               {"Failed", "Failed"},
                                               {"Suspended", "Suspended"},
                                               {"FailureTarget", "FailureTarget"},
                                               {"SuccessCriteriaMet", "SuccessCriteriaMet"}};

        for (size_t i = 0; i < sizeof types / sizeof types[0]; i++)
                if (hf__json_has_text(find_condition(job, types[i][0]), "status", "True")) {
                        hf__strbuf_puts(out, types[i][1]);
                        return;
                }
        hf__strbuf_puts(out, hf__json_path(job, "metadata.deletionTimestamp") ? "Terminating"
                                                                              : "Running");
}

static void put_completions(struct hf__strbuf *out, const struct hf__json *job) {
        int64_t done = number_of(job, "status.succeeded"),
                parallelism = number_of(job, "spec.parallelism");

        if (hf__json_path(job, "spec.completions"))
                hf__strbuf_printf(out, "%" PRId64 "/%" PRId64, done,
                                  number_of(job, "spec.completions"));
        else if (parallelism > 1)
                hf__strbuf_printf(out, "%" PRId64 "/1 of %" PRId64, done, parallelism);
        else
                hf__strbuf_printf(out, "%" PRId64 "/1", done);
}

/* How long the job took, or has taken so far. Empty: it has not started. */
static void put_job_duration(struct hf__strbuf *out, const struct hf__json *job, int64_t now_s) {
        int64_t start, end = now_s;
        char text[HF__AGE_MAX];

        if (hf__time_parse(text_of(job, "status.startTime"), &start) != 0)
                return;
        (void)hf__time_parse(text_of(job, "status.completionTime"), &end);
        hf__age_format(end - start, text);
        hf__strbuf_puts(out, text);
}

void hfd_job_put_cell(struct hf__strbuf *out, const struct hf__json *job, const char *what,
                      int64_t now_s) {
        if (strcmp(what, "status") == 0)
                put_job_status(out, job);
        else if (strcmp(what, "completions") == 0)
                put_completions(out, job);
        else
                put_job_duration(out, job, now_s);
}

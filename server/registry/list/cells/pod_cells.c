/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Cells of Pods and Jobs, as kube-apiserver shows them. The cell STATUS of a pod shows its phase,
 * unless its reason, the scheduler, a container or its deletion says something more specific.
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

        if (*hf__json_string_or_empty(waiting, "reason"))
                (void)snprintf(text, max, "%s", hf__json_string_or_empty(waiting, "reason"));
        else if (*hf__json_string_or_empty(ended, "reason"))
                (void)snprintf(text, max, "%s", hf__json_string_or_empty(ended, "reason"));
        else if (ended && number_of(ended, "signal") != 0)
                (void)snprintf(text, max, "Signal:%" PRId64, number_of(ended, "signal"));
        else if (ended)
                (void)snprintf(text, max, "ExitCode:%" PRId64, number_of(ended, "exitCode"));
        else
                return false;
        return true;
}

/* How often containers were restarted, and when one of them last ended before a restart. */
struct restarts {
        int64_t n;
        int64_t last_s; /* seconds since 1970; 0: unknown */
};

static void add_restarts(struct restarts *restarts, const struct hf__json *status) {
        int64_t ended;

        /* Another program may have stored any number, so the sum may be too large for its type. */
        if (__builtin_add_overflow(restarts->n, number_of(status, "restartCount"), &restarts->n))
                restarts->n = INT64_MAX;
        if (hf__time_parse(hf__json_string_or_empty(status, "lastState.terminated.finishedAt"),
                           &ended) == 0 &&
            ended > restarts->last_s)
                restarts->last_s = ended;
}

/* What the cells "ready", "status" and "restarts" of a pod show. All three come from this summary,
 * so they agree with each other. The summary is computed again for each cell, which is cheap,
 * because a pod has few containers. */
struct pod_summary {
        char status[160];
        size_t ready; /* containers */
        struct restarts restarts;
};

/* A sidecar is an init container that goes on to run beside the containers. */
static bool is_sidecar(const struct hf__json *init_container) {
        return hf__json_has_text(init_container, "restartPolicy", "Always");
}

/*
 * Looks at the init containers up to the first that still has to end well or, as a sidecar, to
 * start. If there is such a container, it gives the status, and *ret_initializing is true. Adds the
 * restarts of all containers that it looked at to summary->restarts, and those of the sidecars
 * among them to *sidecars too. 0 or -ENOMEM.
 */
static int summarize_init(const struct hf__json *pod, struct pod_summary *summary,
                          struct restarts *sidecars, bool *ret_initializing) {
        const struct hf__json *specs = hf__json_path(pod, "spec.initContainers");
        struct hf__json_index by_name;
        size_t i = 0;
        char why[120];
        int r = hf__json_index_init(&by_name, specs, "name");

        *ret_initializing = false;
        for (const struct hf__json *m =
                     hf__json_first(hf__json_path(pod, "status.initContainerStatuses"));
             m && r == 0 && !*ret_initializing; m = hf__json_next(m), i++) {
                const struct hf__json *ended = hf__json_path(m, "state.terminated");
                const struct hf__json_index_entry *spec =
                        hf__json_index_find(&by_name, hf__json_string_or_empty(m, "name"));
                bool sidecar = spec && is_sidecar(spec->item);

                add_restarts(&summary->restarts, m);
                if (sidecar)
                        add_restarts(sidecars, m);
                if (ended && number_of(ended, "exitCode") == 0)
                        continue;
                if (sidecar && hf__json_bool(m, "started", false)) {
                        summary->ready += hf__json_bool(m, "ready", false);
                        continue;
                }
                *ret_initializing = true;
                if (describe_container(m, why, sizeof why) && strcmp(why, "PodInitializing") != 0)
                        (void)snprintf(summary->status, sizeof summary->status, "Init:%s", why);
                else
                        (void)snprintf(summary->status, sizeof summary->status, "Init:%zu/%zu", i,
                                       hf__json_count(specs));
        }
        hf__json_index_done(&by_name);
        return r;
}

/* The first container that has something to report gives the status. */
static void summarize_containers(const struct hf__json *pod, struct pod_summary *summary) {
        bool running = false, described = false;

        for (const struct hf__json *m =
                     hf__json_first(hf__json_path(pod, "status.containerStatuses"));
             m; m = hf__json_next(m)) {
                add_restarts(&summary->restarts, m);
                described =
                        described || describe_container(m, summary->status, sizeof summary->status);
                if (hf__json_path(m, "state.running") && hf__json_bool(m, "ready", false)) {
                        running = true;
                        summary->ready++;
                }
        }
        /* "Completed" would hide that others still run. */
        if (strcmp(summary->status, "Completed") == 0 && running)
                (void)snprintf(summary->status, sizeof summary->status, "%s",
                               hf__json_has_text(find_condition(pod, "Ready"), "status", "True")
                                       ? "Running"
                                       : "NotReady");
}

/* A later text for the status replaces an earlier one: the phase, or status.reason in its place,
 * the gate of the scheduler, what an init container or a container says, the deletion. 0 or
 * -ENOMEM. */
static int summarize(const struct hf__json *pod, struct pod_summary *summary) {
        const char *phase = hf__json_string_or_empty(pod, "status.phase"),
                   *reason = hf__json_string_or_empty(pod, "status.reason");
        const char *deleted = NULL;
        struct restarts sidecars = {0};
        bool initializing;

        *summary = (struct pod_summary){0};
        (void)snprintf(summary->status, sizeof summary->status, "%s", *reason ? reason : phase);
        if (hf__json_has_text(find_condition(pod, "PodScheduled"), "reason", "SchedulingGated"))
                (void)snprintf(summary->status, sizeof summary->status, "SchedulingGated");
        int r = summarize_init(pod, summary, &sidecars, &initializing);
        if (r != 0)
                return r;
        /* As in Kubernetes, the condition outweighs what the init containers say. */
        if (!initializing ||
            hf__json_has_text(find_condition(pod, "Initialized"), "status", "True")) {
                /* From then on, of the init containers only the restarts of sidecars count. */
                summary->restarts = sidecars;
                summarize_containers(pod, summary);
        }
        if (strcmp(reason, "NodeLost") == 0)
                deleted = "Unknown"; /* nobody can tell whether the containers still run */
        else if (strcmp(phase, "Succeeded") != 0 && strcmp(phase, "Failed") != 0)
                deleted = "Terminating"; /* in the other phases, nothing is left to terminate */
        if (deleted && hf__json_path(pod, "metadata.deletionTimestamp"))
                (void)snprintf(summary->status, sizeof summary->status, "%s", deleted);
        return 0;
}

/* "1/2": the containers that are ready, of those that are meant to run for as long as the pod. */
static void put_ready(struct hf__strbuf *out, const struct hf__json *pod,
                      const struct pod_summary *summary) {
        size_t n = hf__json_count(hf__json_path(pod, "spec.containers"));

        for (const struct hf__json *m = hf__json_first(hf__json_path(pod, "spec.initContainers"));
             m; m = hf__json_next(m))
                n += is_sidecar(m);
        hf__strbuf_printf(out, "%zu/%zu", summary->ready, n);
}

/* "3 (2m ago)": how often containers were restarted, and when the last one was. */
static void put_restarts(struct hf__strbuf *out, const struct restarts *restarts, int64_t now_s) {
        char age[HF__AGE_MAX];

        hf__strbuf_printf(out, "%" PRId64, restarts->n);
        if (restarts->n == 0 || restarts->last_s == 0)
                return;
        hf__age_format(now_s - restarts->last_s, age);
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
                        hf__json_index_find(&conditions,
                                            hf__json_string_or_empty(m, "conditionType"));
                met += condition && hf__json_has_text(condition->item, "status", "True");
        }
        hf__json_index_done(&conditions);
        if (r != 0)
                out->error = r;
        hf__strbuf_printf(out, "%zu/%zu", met, hf__json_count(gates));
}

void hfd_pod_put_cell(struct hf__strbuf *out, const struct hf__json *pod, const char *what,
                      int64_t now_s) {
        struct pod_summary summary;

        if (strcmp(what, "gates") == 0) {
                put_gates(out, pod);
                return;
        }
        int r = summarize(pod, &summary);
        if (r != 0)
                out->error = r;
        else if (strcmp(what, "ready") == 0)
                put_ready(out, pod, &summary);
        else if (strcmp(what, "status") == 0)
                hf__strbuf_puts(out, summary.status);
        else
                put_restarts(out, &summary.restarts, now_s);
}

/* ---- jobs ---- */

static bool job_is(const struct hf__json *job, const char *status) {
        if (strcmp(status, "Terminating") == 0)
                return hf__json_path(job, "metadata.deletionTimestamp") != NULL;
        return hf__json_has_text(find_condition(job, status), "status", "True");
}

/* A job can be several of these at once, and the first one is shown: a job that has ended has
 * nothing left to terminate. */
static void put_job_status(struct hf__strbuf *out, const struct hf__json *job) {
        static const char *const all[] = {"Complete",  "Failed",        "Terminating",
                                          "Suspended", "FailureTarget", "SuccessCriteriaMet"};
        const size_t n = sizeof all / sizeof all[0];
        size_t i = 0;

        while (i < n && !job_is(job, all[i]))
                i++;
        hf__strbuf_puts(out, i < n ? all[i] : "Running");
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

/* How long the job took to complete; the time since its start if it has not completed, also if it
 * has failed. Empty: it has not started. */
static void put_job_duration(struct hf__strbuf *out, const struct hf__json *job, int64_t now_s) {
        int64_t start, end = now_s;
        char text[HF__AGE_MAX];

        if (hf__time_parse(hf__json_string_or_empty(job, "status.startTime"), &start) != 0)
                return;
        (void)hf__time_parse(hf__json_string_or_empty(job, "status.completionTime"), &end);
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

/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Metrics of requests. Invariants: their names and labels stay as they are, because dashboards and
 * alerts depend on them. A label is an element of a table below, never a text from a client.
 *
 * A counter is created on first use and kept in a table. So two atomic loads find a counter that
 * exists, without the mutex and the search of hf_metrics_get; and a scrape shows only combinations
 * that have occurred. The table has a row for each verb and resource, also created on first use,
 * because most pairs of a verb and a resource never occur. If two threads create the same counter,
 * the metrics registry returns the same one to both, so storing it twice is harmless.
 */
#include "server/filters/request/request_metrics.h"

#include <assert.h>
#include <errno.h>
#include <stdatomic.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <holdfast/metrics.h>

/* The sets of label values. The last element of each set represents all other values. */

/* A verb of the API, and its label. As in kube-apiserver, HEAD counts as GET. Unlike in
 * kube-apiserver, an apply counts as PATCH, because only the verb is known here. */
static const struct {
        const char *verb, *label;
} verbs[] = {
        {"get", "GET"},       {"list", "LIST"},
        {"watch", "WATCH"},   {"create", "POST"},
        {"post", "POST"},     {"update", "PUT"},
        {"put", "PUT"},       {"patch", "PATCH"},
        {"delete", "DELETE"}, {"deletecollection", "DELETECOLLECTION"},
        {"head", "GET"},      {"", "other"},
};
/* The resources with a label of their own; all others count as "other". "" is for requests that are
 * not for a resource. */
static const char *const resources[] = {"",
                                        "namespaces",
                                        "configmaps",
                                        "secrets",
                                        "events",
                                        "serviceaccounts",
                                        "resourcequotas",
                                        "limitranges",
                                        "podtemplates",
                                        "leases",
                                        "leasecandidates",
                                        "roles",
                                        "rolebindings",
                                        "clusterroles",
                                        "clusterrolebindings",
                                        "priorityclasses",
                                        "runtimeclasses",
                                        "flowschemas",
                                        "prioritylevelconfigurations",
                                        "apiservices",
                                        "workspaces",
                                        "other"};
static const int codes[] = {200, 201, 202, 304, 400, 401, 403, 404, 405, 406, 408,
                            409, 410, 413, 415, 422, 429, 500, 503, 504, 0};

#define N_VERBS     (sizeof verbs / sizeof verbs[0])
#define N_RESOURCES (sizeof resources / sizeof resources[0])
#define N_CODES     (sizeof codes / sizeof codes[0])

/* The counters of a verb and a resource, one for each code; NULL until needed. */
struct row {
        _Atomic(struct hf_metric *) by_code[N_CODES];
};

struct hfd_request_metrics {
        struct hf_metrics *registry;                       /* borrowed; NULL = nothing is counted */
        _Atomic(struct row *) total[N_VERBS][N_RESOURCES]; /* owned; NULL until needed */
        struct hf_metric *duration[N_VERBS];               /* immutable */
        struct hf_metric *inflight[2];                     /* immutable; [1] of mutating requests */
};

int hfd_request_metrics_new(const struct hf_host *host, struct hfd_request_metrics **ret_metrics) {
        static const char *const kinds[] = {"request_kind=\"readOnly\"",
                                            "request_kind=\"mutating\""};
        struct hfd_request_metrics *metrics = calloc(1, sizeof *metrics);
        char labels[64];

        if (!metrics)
                return -ENOMEM;
        assert(host && ret_metrics);
        metrics->registry = host->metrics;
        for (size_t i = 0; i < N_VERBS; i++) {
                (void)snprintf(labels, sizeof labels, "verb=\"%s\"", verbs[i].label);
                metrics->duration[i] =
                        hf_metrics_get(host->metrics, HF_METRIC_HISTOGRAM,
                                       "apiserver_request_duration_seconds",
                                       "Response latency distribution in seconds for each verb.",
                                       labels);
        }
        for (size_t i = 0; i < sizeof kinds / sizeof kinds[0]; i++)
                metrics->inflight[i] =
                        hf_metrics_get(host->metrics, HF_METRIC_GAUGE,
                                       "apiserver_current_inflight_requests",
                                       "Number of requests in progress of each kind.", kinds[i]);
        *ret_metrics = metrics;
        return 0;
}

struct hfd_request_metrics *hfd_request_metrics_free(struct hfd_request_metrics *metrics) {
        if (!metrics)
                return NULL;
        for (size_t verb = 0; verb < N_VERBS; verb++)
                for (size_t resource = 0; resource < N_RESOURCES; resource++)
                        free(atomic_load(&metrics->total[verb][resource]));
        free(metrics);
        return NULL;
}

/* Compares the first bytes before it calls strcmp: most names differ there, and every request whose
 * path is parsed needs this comparison. */
static bool is_same(const char *a, const char *b) { return a[0] == b[0] && strcmp(a, b) == 0; }

struct hfd_request_labels hfd_request_labels(const char *verb, const char *resource) {
        struct hfd_request_labels labels = {.verb = 0, .resource = 0};

        while (labels.verb < N_VERBS - 1 && !is_same(verbs[labels.verb].verb, verb))
                labels.verb++;
        while (labels.resource < N_RESOURCES - 1 && !is_same(resources[labels.resource], resource))
                labels.resource++;
        return labels;
}

/* Asks the metrics registry for the counter of one combination, which the registry creates on first
 * use. NULL: there is no registry, the registry is full, or memory has run out. */
static struct hf_metric *registered_total(struct hfd_request_metrics *metrics,
                                          struct hfd_request_labels labels, size_t code_index) {
        char text[160], number[16] = "other";

        if (codes[code_index] != 0)
                (void)snprintf(number, sizeof number, "%d", codes[code_index]);
        (void)snprintf(text, sizeof text, "verb=\"%s\",resource=\"%s\",code=\"%s\"",
                       verbs[labels.verb].label, resources[labels.resource], number);
        return hf_metrics_get(metrics->registry, HF_METRIC_COUNTER, "apiserver_request_total",
                              "Counter of requests broken out for each verb, resource and HTTP "
                              "response code.",
                              text);
}

/* Gets the row of a verb and a resource, or creates it. NULL: out of memory. Acquire, here and in
 * get_total, pairs with the store of the thread that has made the row or the counter, so that this
 * thread sees its contents. */
static struct row *get_row(struct hfd_request_metrics *metrics, struct hfd_request_labels labels) {
        _Atomic(struct row *) *place = &metrics->total[labels.verb][labels.resource];
        struct row *row = atomic_load_explicit(place, memory_order_acquire);

        if (row)
                return row;
        struct row *made = calloc(1, sizeof *made);
        if (!made || atomic_compare_exchange_strong(place, &row, made))
                return made;
        free(made); /* another thread was faster */
        return row;
}

/* Gets a counter from the table. If it is not there, asks the registry and stores it. */
static struct hf_metric *get_total(struct hfd_request_metrics *metrics,
                                   struct hfd_request_labels labels, size_t code_index) {
        struct row *row = get_row(metrics, labels);
        struct hf_metric *total =
                row ? atomic_load_explicit(&row->by_code[code_index], memory_order_acquire) : NULL;

        if (!total) {
                total = registered_total(metrics, labels, code_index);
                if (row)
                        atomic_store_explicit(&row->by_code[code_index], total,
                                              memory_order_release);
        }
        return total;
}

void hfd_request_metrics_count(struct hfd_request_metrics *metrics,
                               struct hfd_request_labels labels, int code, hf_nsec duration) {
        size_t i = 0;

        assert(labels.verb < N_VERBS && labels.resource < N_RESOURCES);
        while (i < N_CODES - 1 && codes[i] != code)
                i++;
        hf_metric_add(get_total(metrics, labels, i), 1);
        if (duration >= 0)
                hf_metric_observe(metrics->duration[labels.verb],
                                  (double)duration / (double)HF_NSEC_PER_SEC);
}

void hfd_request_metrics_inflight(struct hfd_request_metrics *metrics, bool mutating, int delta) {
        hf_metric_add(metrics->inflight[mutating], delta);
}

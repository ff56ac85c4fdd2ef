/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The registry of metrics: a list of families (one name, kind and help text), each with a list of
 * metrics (one set of labels).
 *
 * Until the registry is freed, both lists only grow, and they change only under the mutex. So a
 * pointer to a metric stays valid, and hf_metrics_write may release the mutex between two families.
 * Values are atomic and need no lock. A double is stored as its bits, so that an integer
 * compare-and-swap can add to it.
 *
 * No lock is held while a collector runs. Instead the collector's list element counts the running
 * calls in `n_running`. A removal waits until this count is zero before it removes the element.
 */
#include <holdfast/error.h>
#include <holdfast/metrics.h>

#include <assert.h>
#include <errno.h>
#include <math.h>
#include <stdatomic.h>
#include <stdbool.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/strbuf.h"
#include "base/thread.h"

/* Upper bounds of the buckets, in seconds: from a fast read in memory to the usual timeout of a
 * request. */
static const double bucket_bounds[] = {0.001, 0.0025, 0.005, 0.01, 0.025, 0.05, 0.1, 0.25,
                                       0.5,   1,      2.5,   5,    10,    15,   30,  60};
#define N_BOUNDS (sizeof bucket_bounds / sizeof bucket_bounds[0])

struct hf_metric {
        struct hf_metric *next;
        enum hf_metric_kind kind;
        char *labels;              /* owned */
        _Atomic uint64_t value;    /* the bits of a double; for a histogram, the sum */
        _Atomic uint64_t counts[]; /* for a histogram, N_BOUNDS + 1 buckets, not cumulative */
};

struct family {
        struct family *next;
        enum hf_metric_kind kind;
        char *name, *help; /* owned */
        struct hf_metric *metrics;
};

struct collector {
        struct collector *next;
        void (*collect)(void *ctx);
        void *ctx;
        unsigned n_running; /* calls of collect that have not returned */
        bool removed;       /* hf_metrics_remove_collector waits for n_running to become 0 */
};

struct hf_metrics {
        pthread_mutex_t mu;
        pthread_cond_t collector_returned; /* used with mu: n_running of a collector became zero */
        /* guarded by mu */
        struct family *families;
        struct collector *collectors;
        size_t n_metrics;
};

int hf_metrics_new(struct hf_metrics **ret_metrics) {
        struct hf_metrics *metrics = calloc(1, sizeof *metrics);

        if (!metrics)
                return -ENOMEM;
        int r = hf__mutex_cond_init(&metrics->mu, &metrics->collector_returned);
        if (r < 0) {
                free(metrics);
                return r;
        }
        *ret_metrics = metrics;
        return 0;
}

static void family_free(struct family *family) {
        for (struct hf_metric *metric = family->metrics, *next; metric; metric = next) {
                next = metric->next;
                free(metric->labels);
                free(metric);
        }
        free(family->name);
        free(family->help);
        free(family);
}

struct hf_metrics *hf_metrics_free(struct hf_metrics *metrics) {
        if (!metrics)
                return NULL;
        for (struct family *family = metrics->families, *next; family; family = next) {
                next = family->next;
                family_free(family);
        }
        for (struct collector *collector = metrics->collectors, *next; collector;
             collector = next) {
                next = collector->next;
                assert(collector->n_running == 0);
                free(collector);
        }
        pthread_cond_destroy(&metrics->collector_returned);
        pthread_mutex_destroy(&metrics->mu);
        free(metrics);
        return NULL;
}

/* Finds or creates a family. A new one is appended, so that the order of the output is stable.
 * NULL: out of memory, the registry is full, or the family has another kind. */
static struct family *get_family_locked(struct hf_metrics *metrics, enum hf_metric_kind kind,
                                        const char *name, const char *help) {
        struct family **link = &metrics->families;

        hf__mutex_assert_held(&metrics->mu);
        for (; *link; link = &(*link)->next)
                if (strcmp((*link)->name, name) == 0)
                        return (*link)->kind == kind ? *link : NULL;
        if (metrics->n_metrics >= HF_METRICS_MAX)
                return NULL; /* it would have no metric */
        struct family *family = calloc(1, sizeof *family);
        if (!family)
                return NULL;
        *family = (struct family){.kind = kind,
                                  .name = strdup(name),
                                  .help = strdup(help ? help : "")};
        if (!family->name || !family->help) {
                family_free(family);
                return NULL;
        }
        *link = family;
        return family;
}

/* Finds or creates a metric of a family. NULL: out of memory, or the registry is full. */
static struct hf_metric *get_metric_locked(struct hf_metrics *metrics, struct family *family,
                                           const char *labels) {
        struct hf_metric **link = &family->metrics;

        hf__mutex_assert_held(&metrics->mu);
        for (; *link; link = &(*link)->next)
                if (strcmp((*link)->labels, labels) == 0)
                        return *link;
        if (metrics->n_metrics >= HF_METRICS_MAX)
                return NULL;
        size_t n_counts = family->kind == HF_METRIC_HISTOGRAM ? N_BOUNDS + 1 : 0;
        struct hf_metric *metric = calloc(1, sizeof *metric + n_counts * sizeof metric->counts[0]);
        if (!metric)
                return NULL;
        metric->kind = family->kind;
        metric->labels = strdup(labels);
        if (!metric->labels) {
                free(metric);
                return NULL;
        }
        metrics->n_metrics++;
        *link = metric;
        return metric;
}

struct hf_metric *hf_metrics_get(struct hf_metrics *metrics, enum hf_metric_kind kind,
                                 const char *name, const char *help, const char *labels) {
        struct hf_metric *metric = NULL;

        if (!metrics || !name || name[0] == '\0')
                return NULL;
        pthread_mutex_lock(&metrics->mu);
        struct family *family = get_family_locked(metrics, kind, name, help);
        if (family)
                metric = get_metric_locked(metrics, family, labels ? labels : "");
        pthread_mutex_unlock(&metrics->mu);
        return metric;
}

static uint64_t to_bits(double value) {
        uint64_t bits;
        memcpy(&bits, &value, sizeof bits);
        return bits;
}

static double from_bits(uint64_t bits) {
        double value;
        memcpy(&value, &bits, sizeof value);
        return value;
}

/* Relaxed order is sufficient here and below, because no other data depends on a metric's value. */
static void add_atomically(_Atomic uint64_t *bits, double value) {
        uint64_t previous = atomic_load_explicit(bits, memory_order_relaxed);
        uint64_t next;

        do
                next = to_bits(from_bits(previous) + value);
        while (!atomic_compare_exchange_weak_explicit(bits, &previous, next, memory_order_relaxed,
                                                      memory_order_relaxed));
}

void hf_metric_add(struct hf_metric *metric, double value) {
        if (metric && metric->kind != HF_METRIC_HISTOGRAM)
                add_atomically(&metric->value, value);
}

void hf_metric_set(struct hf_metric *metric, double value) {
        if (metric && metric->kind == HF_METRIC_GAUGE)
                atomic_store_explicit(&metric->value, to_bits(value), memory_order_relaxed);
}

void hf_metric_observe(struct hf_metric *metric, double value) {
        size_t i = 0;

        if (!metric || metric->kind != HF_METRIC_HISTOGRAM)
                return;
        /* NaN is not below any bound, so it is counted in the last bucket. */
        while (i < N_BOUNDS && !(value <= bucket_bounds[i]))
                i++;
        atomic_fetch_add_explicit(&metric->counts[i], 1, memory_order_relaxed);
        add_atomically(&metric->value, value);
}

static uint64_t load_relaxed(_Atomic uint64_t *value) {
        return atomic_load_explicit(value, memory_order_relaxed);
}

/* Writes whole numbers of at most 15 digits, which a double holds exactly, without an exponent.
 * Other finite numbers get at most 12 significant digits. */
static void put_number(struct hf__strbuf *out, double value) {
        if (isnan(value)) {
                hf__strbuf_puts(out, "NaN");
        } else if (isinf(value)) {
                hf__strbuf_puts(out, value > 0 ? "+Inf" : "-Inf");
        } else if (value == floor(value) && fabs(value) < 1e15) {
                hf__strbuf_printf(out, "%.0f", value);
        } else {
                size_t at = out->n;
                hf__strbuf_printf(out, "%.12g", value);
                if (out->error)
                        return;
                /* printf uses the decimal point of the host's locale. */
                for (char *p = out->data + at; *p != '\0'; p++)
                        if (*p == ',')
                                *p = '.';
        }
}

/* Writes one line. bound: the value of a bucket's `le` label; NULL = the sample is not a bucket. */
static void put_sample(struct hf__strbuf *out, const char *name, const char *suffix,
                       const char *labels, const double *bound, double value) {
        hf__strbuf_printf(out, "%s%s", name, suffix);
        if (labels[0] != '\0' || bound) {
                hf__strbuf_printf(out, "{%s", labels);
                if (bound) {
                        hf__strbuf_printf(out, "%sle=\"", labels[0] != '\0' ? "," : "");
                        put_number(out, *bound);
                        hf__strbuf_putc(out, '"');
                }
                hf__strbuf_putc(out, '}');
        }
        hf__strbuf_putc(out, ' ');
        put_number(out, value);
        hf__strbuf_putc(out, '\n');
}

/* Writes a histogram. The exposition format requires cumulative buckets, so this adds the counts
 * up. */
static void put_histogram(struct hf__strbuf *out, const char *name, struct hf_metric *metric) {
        static const double infinity = INFINITY;
        uint64_t count = 0;

        for (size_t i = 0; i <= N_BOUNDS; i++) {
                count += load_relaxed(&metric->counts[i]);
                put_sample(out, name, "_bucket", metric->labels,
                           i < N_BOUNDS ? &bucket_bounds[i] : &infinity, (double)count);
        }
        put_sample(out, name, "_sum", metric->labels, NULL,
                   from_bits(load_relaxed(&metric->value)));
        put_sample(out, name, "_count", metric->labels, NULL, (double)count);
}

/* Writes all samples of a family. Other threads may update metrics at the same time, so a
 * histogram's sum may include observations that its counts do not, or the other way round. */
static void put_family_locked(struct hf__strbuf *out, const struct family *family) {
        static const char *const kinds[] = {[HF_METRIC_COUNTER] = "counter",
                                            [HF_METRIC_GAUGE] = "gauge",
                                            [HF_METRIC_HISTOGRAM] = "histogram"};

        assert((unsigned)family->kind < sizeof kinds / sizeof kinds[0]);
        hf__strbuf_printf(out, "# HELP %s ", family->name);
        for (const char *p = family->help; *p; p++)
                if (*p == '\n')
                        hf__strbuf_puts(out, "\\n");
                else if (*p == '\\')
                        hf__strbuf_puts(out, "\\\\");
                else
                        hf__strbuf_putc(out, *p);
        hf__strbuf_printf(out, "\n# TYPE %s %s\n", family->name, kinds[family->kind]);
        for (struct hf_metric *metric = family->metrics; metric; metric = metric->next)
                if (family->kind == HF_METRIC_HISTOGRAM)
                        put_histogram(out, family->name, metric);
                else
                        put_sample(out, family->name, "", metric->labels, NULL,
                                   from_bits(load_relaxed(&metric->value)));
}

/* Collectors run without the lock, because they may call hf_metrics_get, which takes it. */
static void call_collectors(struct hf_metrics *metrics) {
        pthread_mutex_lock(&metrics->mu);
        for (struct collector *collector = metrics->collectors; collector;
             collector = collector->next) {
                if (collector->removed)
                        continue;
                /* The count keeps the element in the list while the lock is released. When it is 0
                 * again, this thread holds the lock until it has read `next`. */
                collector->n_running++;
                pthread_mutex_unlock(&metrics->mu);
                collector->collect(collector->ctx);
                pthread_mutex_lock(&metrics->mu);
                assert(collector->n_running > 0);
                if (--collector->n_running == 0)
                        pthread_cond_broadcast(&metrics->collector_returned);
        }
        pthread_mutex_unlock(&metrics->mu);
}

void hf_metrics_write(struct hf_metrics *metrics,
                      void (*write)(void *ctx, const char *text, size_t n), void *ctx) {
        struct hf__strbuf out = {0};

        if (!metrics)
                return;
        call_collectors(metrics);
        pthread_mutex_lock(&metrics->mu);
        for (struct family *family = metrics->families; family; family = family->next) {
                put_family_locked(&out, family);
                /* Unlock here, because write may block, and hf_metrics_get must not wait for it. */
                pthread_mutex_unlock(&metrics->mu);
                if (!out.error)
                        write(ctx, out.data, out.n);
                hf__strbuf_reset(&out);
                pthread_mutex_lock(&metrics->mu);
        }
        pthread_mutex_unlock(&metrics->mu);
        hf__strbuf_done(&out);
}

int hf_metrics_add_collector(struct hf_metrics *metrics, void (*collect)(void *ctx), void *ctx) {
        if (!metrics)
                return 0;
        struct collector *collector = calloc(1, sizeof *collector);
        if (!collector)
                return -ENOMEM;
        collector->collect = collect;
        collector->ctx = ctx;
        pthread_mutex_lock(&metrics->mu);
        struct collector **link = &metrics->collectors;
        while (*link)
                link = &(*link)->next;
        *link = collector;
        pthread_mutex_unlock(&metrics->mu);
        return 0;
}

/* Sets `removed` first, so that no new call begins while it waits for the running ones, and so that
 * another removal does not find the same element. */
void hf_metrics_remove_collector(struct hf_metrics *metrics, void (*collect)(void *ctx),
                                 void *ctx) {
        if (!metrics)
                return;
        pthread_mutex_lock(&metrics->mu);
        struct collector *collector = metrics->collectors;
        while (collector &&
               (collector->removed || collector->collect != collect || collector->ctx != ctx))
                collector = collector->next;
        if (collector) {
                collector->removed = true;
                while (collector->n_running > 0) /* short: collect must not block */
                        pthread_cond_wait(&metrics->collector_returned, &metrics->mu);
                struct collector **link = &metrics->collectors;
                while (*link != collector)
                        link = &(*link)->next;
                *link = collector->next;
        }
        pthread_mutex_unlock(&metrics->mu);
        free(collector);
}

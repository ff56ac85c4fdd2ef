/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Prometheus text of the priority levels and of their classes of requests (one for each FlowSchema
 * that leads to the level). The format requires that each family is written in one piece, so the
 * levels are read again for each one.
 *
 * Invariants: names, labels and buckets are those of kube-apiserver, because dashboards use them.
 * Names of objects contain only characters that need no escape in a label.
 */
#include "server/flow/flow_metrics.h"

#include <inttypes.h>
#include <stddef.h>

#include "base/strbuf.h"
#include "server/flow/flow_private.h"

#define PREFIX "apiserver_flowcontrol_"

/* What a family has a number for: each priority level, or each class of requests in a level. */
enum source { OF_LEVEL, OF_CLASS };

/* A gauge or counter: one number of each level or class. */
struct family {
        const char *name, *type, *help;
        enum source source; /* only the function for this source is set */
        double (*of_level)(const struct hfd_flow_level *level);
        uint64_t (*of_class)(const struct hfd_flow_class *flow_class);
};

/* A histogram of each class. */
struct histogram_family {
        const char *name, *help, *label; /* label: more labels, or "" */
        const struct hfd_histogram_bounds *bounds;
        size_t offset; /* of the histogram in the class */
        bool begins;   /* it is the first of its name */
};

static double nominal(const struct hfd_flow_level *level) { return level->limits.nominal; }
static double lower(const struct hfd_flow_level *level) { return level->limits.lower; }
static double upper(const struct hfd_flow_level *level) { return level->limits.upper; }
static double current(const struct hfd_flow_level *level) { return level->limits.current; }
static double target(const struct hfd_flow_level *level) { return level->limits.target; }
static double average(const struct hfd_flow_level *level) { return level->demand.average; }
static double deviation(const struct hfd_flow_level *level) { return level->demand.deviation; }
static double smoothed(const struct hfd_flow_level *level) { return level->demand.smoothed; }
static double watermark(const struct hfd_flow_level *level) {
        return (double)level->demand.high_watermark;
}
static double current_r(const struct hfd_flow_level *level) { return (double)level->set.r / 1e9; }

static uint64_t dispatched(const struct hfd_flow_class *c) { return c->n_dispatched; }
static uint64_t inqueue(const struct hfd_flow_class *c) { return c->n_waiting; }
static uint64_t inqueue_seats(const struct hfd_flow_class *c) { return c->waiting_seats; }
static uint64_t executing(const struct hfd_flow_class *c) { return c->n_executing; }
static uint64_t executing_seats(const struct hfd_flow_class *c) { return c->executing_seats; }

static const struct family families[] = {
        {"nominal_limit_seats", "gauge", "Seats of a priority level by its share.", OF_LEVEL,
         .of_level = nominal},
        {"lower_limit_seats", "gauge", "Seats that a priority level keeps when it lends.", OF_LEVEL,
         .of_level = lower},
        {"upper_limit_seats", "gauge", "Seats that a priority level has at most when it borrows.",
         OF_LEVEL, .of_level = upper},
        {"current_limit_seats", "gauge", "Seats that a priority level has now.", OF_LEVEL,
         .of_level = current},
        {"target_seats", "gauge", "Seats that a priority level is meant to have.", OF_LEVEL,
         .of_level = target},
        {"demand_seats_high_watermark", "gauge", "The most seats wanted in the last period.",
         OF_LEVEL, .of_level = watermark},
        {"demand_seats_average", "gauge", "Seats wanted in the last period, on average.", OF_LEVEL,
         .of_level = average},
        {"demand_seats_stdev", "gauge", "Standard deviation of the seats wanted.", OF_LEVEL,
         .of_level = deviation},
        {"demand_seats_smoothed", "gauge", "Seats wanted, smoothed over the periods.", OF_LEVEL,
         .of_level = smoothed},
        {"current_r", "gauge", "Virtual time of the fair queuing, in seat-seconds.", OF_LEVEL,
         .of_level = current_r},
        {"dispatched_requests_total", "counter", "Requests that got seats.", OF_CLASS,
         .of_class = dispatched},
        {"current_inqueue_requests", "gauge", "Requests that wait in queues.", OF_CLASS,
         .of_class = inqueue},
        {"current_inqueue_seats", "gauge", "Seats that requests in queues wait for.", OF_CLASS,
         .of_class = inqueue_seats},
        {"current_executing_requests", "gauge", "Requests that have seats.", OF_CLASS,
         .of_class = executing},
        {"current_executing_seats", "gauge", "Seats that requests have.", OF_CLASS,
         .of_class = executing_seats},
};

#define WAITED_HELP "How long requests waited for seats."
#define RAN_HELP    "How long requests had seats."
static const struct histogram_family histograms[] = {
        {"request_wait_duration_seconds", WAITED_HELP, ",execute=\"true\"", &hfd_flow_seconds,
         offsetof(struct hfd_flow_class, waited), true},
        {"request_wait_duration_seconds", WAITED_HELP, ",execute=\"false\"", &hfd_flow_seconds,
         offsetof(struct hfd_flow_class, waited_in_vain), false},
        {"request_execution_seconds", RAN_HELP, ",type=\"regular\"", &hfd_flow_seconds,
         offsetof(struct hfd_flow_class, ran), true},
        {"request_execution_seconds", RAN_HELP, ",type=\"watch\"", &hfd_flow_seconds,
         offsetof(struct hfd_flow_class, watch_ran), false},
        {"request_queue_length_after_enqueue",
         "Length of the queue that a request has entered, with the request.", "", &hfd_flow_lengths,
         offsetof(struct hfd_flow_class, queue_length), true},
        {"work_estimated_seats", "Seats that a request needs.", "", &hfd_flow_widths,
         offsetof(struct hfd_flow_class, width), true},
};

static const char *const reasons[HFD_FLOW_N_REFUSALS] = {[HFD_FLOW_QUEUE_FULL] = "queue-full",
                                                         [HFD_FLOW_CONCURRENCY_LIMIT] =
                                                                 "concurrency-limit",
                                                         [HFD_FLOW_TIME_OUT] = "time-out"};

/*
 * The context of the three functions below that write a level. hfd_flow_levels_each calls them with
 * the locks of the list and of the level held, so they do nothing but append text. A quiescing
 * level is written like any other: it still has requests, and its counters must not vanish before
 * it does. All use `text`; write_family also uses `family`, and write_histogram `histogram`.
 */
struct pass {
        struct hf__strbuf *text;
        const struct family *family;
        const struct histogram_family *histogram;
};

static void put_head(struct hf__strbuf *text, const char *name, const char *type,
                     const char *help) {
        hf__strbuf_printf(text, "# HELP " PREFIX "%s %s\n# TYPE " PREFIX "%s %s\n", name, help,
                          name, type);
}

static void write_family(void *ctx, struct hfd_flow_level *level, bool quiescing) {
        const struct pass *pass = ctx;
        const struct family *family = pass->family;

        if (family->source == OF_LEVEL) {
                hf__strbuf_printf(pass->text, PREFIX "%s{priority_level=\"%s\"} %.9g\n",
                                  family->name, level->name, family->of_level(level));
                return;
        }
        for (const struct hfd_flow_class *m = level->classes; m; m = m->next)
                hf__strbuf_printf(pass->text,
                                  PREFIX "%s{flow_schema=\"%s\",priority_level=\"%s\"} %" PRIu64
                                         "\n",
                                  family->name, m->schema, level->name, family->of_class(m));
}

/* As in Kubernetes, a combination that has not occurred is left out. Otherwise each class would
 * have lines that always say 0: a level without queues, for example, never refuses for
 * `queue-full`. */
static void write_refusals(void *ctx, struct hfd_flow_level *level, bool quiescing) {
        const struct pass *pass = ctx;

        for (const struct hfd_flow_class *m = level->classes; m; m = m->next)
                for (size_t i = 0; i < HFD_FLOW_N_REFUSALS; i++)
                        if (m->n_refused[i] > 0)
                                hf__strbuf_printf(pass->text,
                                                  PREFIX "rejected_requests_total{flow_schema="
                                                         "\"%s\",priority_level=\"%s\",reason="
                                                         "\"%s\"} %" PRIu64 "\n",
                                                  m->schema, level->name, reasons[i],
                                                  m->n_refused[i]);
}

/* The labels of a class, with those of a family: three texts. */
#define CLASS_LABELS "flow_schema=\"%s\",priority_level=\"%s\"%s"

/* A bucket counts all observations up to its bound, so it includes those of the smaller ones. */
static void write_buckets(struct hf__strbuf *text, const struct histogram_family *family,
                          const struct hfd_histogram *histogram, const char *schema,
                          const char *level) {
        const struct hfd_histogram_bounds *bounds = family->bounds;
        uint64_t n = 0;

        for (size_t i = 0; i < bounds->n; i++) {
                n += histogram->counts[i];
                hf__strbuf_printf(text,
                                  PREFIX "%s_bucket{" CLASS_LABELS ",le=\"%.9g\"} %" PRIu64 "\n",
                                  family->name, schema, level, family->label,
                                  (double)bounds->at[i] / bounds->unit, n);
        }
        n += histogram->counts[bounds->n];
        hf__strbuf_printf(text, PREFIX "%s_bucket{" CLASS_LABELS ",le=\"+Inf\"} %" PRIu64 "\n",
                          family->name, schema, level, family->label, n);
        hf__strbuf_printf(text, PREFIX "%s_sum{" CLASS_LABELS "} %.9g\n", family->name, schema,
                          level, family->label, (double)histogram->sum / bounds->unit);
        hf__strbuf_printf(text, PREFIX "%s_count{" CLASS_LABELS "} %" PRIu64 "\n", family->name,
                          schema, level, family->label, n);
}

/* A class without observations is left out. Its buckets would be many lines that say nothing: many
 * classes have no watches, for example, and few requests are refused. */
static void write_histogram(void *ctx, struct hfd_flow_level *level, bool quiescing) {
        const struct pass *pass = ctx;
        const struct histogram_family *family = pass->histogram;

        for (const struct hfd_flow_class *m = level->classes; m; m = m->next) {
                const struct hfd_histogram *histogram =
                        (const void *)((const char *)m + family->offset);
                uint64_t n = 0;
                for (size_t i = 0; i <= family->bounds->n; i++)
                        n += histogram->counts[i];
                if (n > 0)
                        write_buckets(pass->text, family, histogram, m->schema, level->name);
        }
}

void hfd_flow_metrics_write(struct hfd_flow_levels *levels, struct hf__strbuf *text) {
        struct pass pass = {.text = text};

        for (size_t i = 0; i < sizeof families / sizeof families[0]; i++) {
                pass.family = &families[i];
                put_head(text, pass.family->name, pass.family->type, pass.family->help);
                hfd_flow_levels_each(levels, write_family, &pass);
        }
        put_head(text, "rejected_requests_total", "counter", "Requests that were refused.");
        hfd_flow_levels_each(levels, write_refusals, &pass);
        for (size_t i = 0; i < sizeof histograms / sizeof histograms[0]; i++) {
                pass.histogram = &histograms[i];
                if (pass.histogram->begins)
                        put_head(text, pass.histogram->name, "histogram", pass.histogram->help);
                hfd_flow_levels_each(levels, write_histogram, &pass);
        }
        /* One number for the whole server, therefore without labels. */
        put_head(text, "seat_fair_frac", "gauge",
                 "The part of its target that each priority level gets.");
        hf__strbuf_printf(text, PREFIX "seat_fair_frac %.9g\n", hfd_flow_levels_fraction(levels));
}

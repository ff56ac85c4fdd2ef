/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The queue of audit events and its thread.
 *
 * The thread takes the whole queue at once, and prints the events into one buffer. It writes the
 * buffer when that is large enough, and when all events that it took are printed. So a busy server
 * makes few system calls, and an idle server has each event in the file at once.
 *
 * Invariant: an event that is not in the log as a whole is counted as lost. If a pipe has taken
 * only a part of the buffer, all events in the buffer count, because it is not known which of them
 * the part contains.
 */
#include "server/audit/audit_writer.h"

#include <assert.h>
#include <errno.h>
#include <stdlib.h>

#include <holdfast/error.h>
#include <holdfast/metrics.h>

#include "base/cleanup.h"
#include "base/strbuf.h"
#include "base/thread.h"
#include "server/audit/event_json.h"

#define BUDGET          ((size_t)16 << 20) /* bytes of bodies, annotations and waiting events */
#define BATCH           ((size_t)64 << 10) /* bytes after which the buffer is written */
#define REPORT_INTERVAL (60 * HF_NSEC_PER_SEC)
#define DRAIN_TIME      (2 * HF_NSEC_PER_SEC) /* from the stop; part of the process's shutdown */

struct hfd_audit_writer {
        /* Immutable after new. */
        const struct hf_host *host;         /* borrowed */
        struct hf_metric *written, *errors; /* borrowed; NULL = not counted */
        pthread_t thread;
        struct hfd_audit_budget budget; /* its counter is atomic */
        /* Guarded by mu. */
        pthread_mutex_t mu;
        pthread_cond_t cond; /* wakes the thread */
        struct hfd_audit_event *head, **tail;
        bool stopping, reopen;
        hf_nsec drain_until; /* valid while stopping */
        uint64_t lost;       /* since the last report */
        /* The thread only. */
        struct hfd_audit_file *file; /* owned */
        struct hf__strbuf lines;     /* printed, but not written yet */
        size_t n_lines;              /* events in lines */
        int error;         /* of the last write that failed; 0 = none since the last report */
        hf_nsec report_at; /* the earliest time of the next report */
};

static hf_nsec now(const struct hfd_audit_writer *writer) {
        return hf_now(hf_host_clock(writer->host));
}

struct hfd_audit_budget *hfd_audit_writer_budget(struct hfd_audit_writer *writer) {
        return &writer->budget;
}

/* ---- the queue ---- */

static void count_lost(struct hfd_audit_writer *writer, size_t n) {
        hf_metric_add(writer->errors, (double)n);
        pthread_mutex_lock(&writer->mu);
        writer->lost += n;
        pthread_cond_signal(&writer->cond);
        pthread_mutex_unlock(&writer->mu);
}

void hfd_audit_writer_lose(struct hfd_audit_writer *writer) { count_lost(writer, 1); }

void hfd_audit_writer_put(struct hfd_audit_writer *writer, struct hfd_audit_event *event) {
        if (!event) {
                count_lost(writer, 1);
                return;
        }
        event->next = NULL;
        pthread_mutex_lock(&writer->mu);
        bool was_empty = !writer->head;
        *writer->tail = event;
        writer->tail = &event->next;
        if (was_empty)
                pthread_cond_signal(&writer->cond);
        pthread_mutex_unlock(&writer->mu);
}

void hfd_audit_writer_reopen(struct hfd_audit_writer *writer) {
        pthread_mutex_lock(&writer->mu);
        writer->reopen = true;
        pthread_cond_signal(&writer->cond);
        pthread_mutex_unlock(&writer->mu);
}

/* ---- the thread ---- */

/* Logs how many events were lost, if there are any and the last report is old enough. is_last: does
 * not wait, because no report follows. */
static void report_lost(struct hfd_audit_writer *writer, bool is_last) {
        hf_nsec at = now(writer);

        if (at < writer->report_at && !is_last)
                return;
        pthread_mutex_lock(&writer->mu);
        uint64_t lost = writer->lost;
        writer->lost = 0;
        pthread_mutex_unlock(&writer->mu);
        if (lost == 0)
                return;
        hf_log(&writer->host->log, HF_LOG_ERROR, "audit", "%llu audit events were lost: %s",
               (unsigned long long)lost,
               writer->error ? hf_strerror(writer->error)
                             : "they came faster than the log could be written");
        writer->error = 0;
        writer->report_at = at + REPORT_INTERVAL;
}

/* Whether to wait longer for the reader of a pipe: always until the stop, and then until
 * drain_until. Called about once a second or more often while a pipe does not take all data, so
 * that losses are reported meanwhile, too. */
static bool may_wait_for_reader(void *ctx) {
        struct hfd_audit_writer *writer = ctx;

        report_lost(writer, false);
        pthread_mutex_lock(&writer->mu);
        bool more = !writer->stopping || now(writer) < writer->drain_until;
        pthread_mutex_unlock(&writer->mu);
        return more;
}

/* Writes the member `lines`, or counts its events as lost. False: drain_until has passed. */
static bool write_lines(struct hfd_audit_writer *writer) {
        if (writer->n_lines == 0)
                return true;
        int r = writer->lines.error;
        if (r == 0)
                r = hfd_audit_file_write(writer->file, writer->lines.data, writer->lines.n,
                                         may_wait_for_reader, writer);
        if (r == 0) {
                hf_metric_add(writer->written, (double)writer->n_lines);
        } else {
                writer->error = r;
                count_lost(writer, writer->n_lines);
        }
        writer->n_lines = 0;
        /* One large event must not keep its memory for ever. */
        if (writer->lines.space > 4 * BATCH)
                hf__strbuf_done(&writer->lines);
        else
                hf__strbuf_reset(&writer->lines);
        return r != -EAGAIN;
}

/* Writes the events, and frees them. give_up: counts them as lost instead of writing them. */
static void write_events(struct hfd_audit_writer *writer, struct hfd_audit_event *events,
                         bool give_up) {
        size_t n_lost = 0;

        while (events) {
                struct hfd_audit_event *event = events;
                events = event->next;
                if (give_up) {
                        n_lost++;
                } else {
                        hfd_audit_event_print(event, &writer->lines);
                        writer->n_lines++;
                }
                hfd_audit_event_free(event);
                if (writer->lines.n >= BATCH || writer->lines.error != 0)
                        give_up = !write_lines(writer) || give_up;
        }
        (void)write_lines(writer);
        if (n_lost > 0)
                count_lost(writer, n_lost);
}

/* Waits until there are events, a stop or a reopen, or until lost events are to be reported. mu is
 * held. */
static void wait_locked(struct hfd_audit_writer *writer) {
        const struct hf_clock *clock = hf_host_clock(writer->host);

        hf__mutex_assert_held(&writer->mu);
        while (!writer->head && !writer->stopping && !writer->reopen &&
               (writer->lost == 0 || now(writer) < writer->report_at))
                (void)clock->wait(clock->ctx, &writer->cond, &writer->mu,
                                  writer->lost > 0 ? writer->report_at : HF_NSEC_NEVER);
}

static void *run_writer(void *ctx) {
        struct hfd_audit_writer *writer = ctx;
        bool ended = false;

        while (!ended) {
                pthread_mutex_lock(&writer->mu);
                wait_locked(writer);
                struct hfd_audit_event *events = writer->head;
                bool reopen = writer->reopen, stopping = writer->stopping;
                bool give_up = stopping && now(writer) >= writer->drain_until;
                writer->head = NULL;
                writer->tail = &writer->head;
                writer->reopen = false;
                pthread_mutex_unlock(&writer->mu);
                if (reopen && hfd_audit_file_reopen(writer->file) != 0)
                        hf_log(&writer->host->log, HF_LOG_ERROR, "audit",
                               "the audit log cannot be opened again");
                write_events(writer, events, give_up);
                /* Nobody adds an event after the stop, so a queue that was empty stays empty. */
                ended = stopping && !events;
                report_lost(writer, ended);
        }
        return NULL;
}

/* ---- the object ---- */

static void register_metrics(struct hfd_audit_writer *writer) {
        struct hf_metrics *metrics = writer->host->metrics;

        writer->written = hf_metrics_get(metrics, HF_METRIC_COUNTER, "apiserver_audit_event_total",
                                         "Counter of audit events written to the audit log.", "");
        writer->errors =
                hf_metrics_get(metrics, HF_METRIC_COUNTER, "apiserver_audit_error_total",
                               "Counter of audit events that were lost.", "plugin=\"log\"");
}

static void free_parts(struct hfd_audit_writer *writer) {
        hfd_audit_file_free(writer->file);
        hf__strbuf_done(&writer->lines);
        pthread_cond_destroy(&writer->cond);
        pthread_mutex_destroy(&writer->mu);
        free(writer);
}

HF__CLEANUP_DEFINE(parts_cleanup, struct hfd_audit_writer *, free_parts)

int hfd_audit_writer_new(const struct hf_host *host, const struct hfd_audit_file_config *config,
                         struct hfd_audit_writer **ret_writer, struct hf_status *reterr_status) {
        HF__CLEANUP(hf__free_cleanup) struct hfd_audit_writer *memory = calloc(1, sizeof *memory);

        if (!memory)
                return hf_fail(reterr_status, -ENOMEM, "out of memory");
        int r = hf__mutex_cond_init(&memory->mu, &memory->cond);
        if (r != 0)
                return hf_fail(reterr_status, r, "%s", hf_strerror(r));
        HF__CLEANUP(parts_cleanup) struct hfd_audit_writer *writer = HF__TAKE(memory);
        writer->host = host;
        writer->budget.max = BUDGET;
        writer->tail = &writer->head;
        register_metrics(writer);
        r = hfd_audit_file_new(host, config, &writer->file, reterr_status);
        if (r != 0)
                return r;
        r = hf__thread_start(host, "hfd-audit", run_writer, writer, &writer->thread);
        if (r != 0)
                return hf_fail(reterr_status, r, "cannot start a thread: %s", hf_strerror(r));
        *ret_writer = HF__TAKE(writer);
        return 0;
}

struct hfd_audit_writer *hfd_audit_writer_free(struct hfd_audit_writer *writer) {
        if (!writer)
                return NULL;
        pthread_mutex_lock(&writer->mu);
        writer->stopping = true;
        writer->drain_until = now(writer) + DRAIN_TIME;
        pthread_cond_signal(&writer->cond);
        pthread_mutex_unlock(&writer->mu);
        (void)hf__thread_join(writer->thread);
        assert(!writer->head && atomic_load(&writer->budget.held) == 0);
        free_parts(writer);
        return NULL;
}

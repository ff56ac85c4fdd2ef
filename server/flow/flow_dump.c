/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Tables of the levels, their queues and their requests, for people who look for the cause of
 * waiting (/debug/api_priority_and_fairness/). Columns and texts are those of kube-apiserver.
 *
 * A table is collected first, as cells with a comma and a tab between them and a line feed after
 * each row. Then it is aligned: a column is as wide as its widest cell, a comma and a blank, but at
 * least WIDTH_MIN. The last cell of a row is not filled up.
 *
 * Invariant: no cell contains a tab or a line feed; put_cell sees to it.
 */
#include "server/flow/flow_dump.h"

#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

#include "base/strbuf.h"
#include "server/flow/flow_private.h"

#define N_COLUMNS_MAX 18 /* of the widest table */
#define WIDTH_MIN     8  /* of a column; widths are in bytes, so a name in UTF-8 shifts its row */

struct dump {
        struct hf__strbuf cells;
        bool begun;        /* the row has a cell */
        bool details;      /* of requests */
        hf_nsec boot_zero; /* the real time at which the boot clock was 0 */
};

/* ---- cells ---- */

static void put_cell(struct dump *dump, const char *text) {
        if (dump->begun)
                hf__strbuf_puts(&dump->cells, ",\t");
        dump->begun = true;
        for (const char *c = text; *c; c++)
                hf__strbuf_putc(&dump->cells, (unsigned char)*c < ' ' ? ' ' : *c);
}

static void put_number(struct dump *dump, uint64_t number) {
        char text[HF__U64_TEXT_MAX];

        (void)hf__u64_text(number, text);
        put_cell(dump, text);
}

/* Seat-nanoseconds as Kubernetes writes seat-seconds. */
static void put_work(struct dump *dump, int64_t work) {
        char text[48];
        int64_t w = work < 0 ? 0 : work;

        (void)snprintf(text, sizeof text, "%" PRId64 ".%08" PRId64 "ss", w / HF_NSEC_PER_SEC,
                       w % HF_NSEC_PER_SEC / 10);
        put_cell(dump, text);
}

/* RFC 3339 with as many digits as needed; boot time 0 is Go's zero time. */
static void put_time(struct dump *dump, hf_nsec boot) {
        char text[64] = "0001-01-01T00:00:00Z", digits[16];
        hf_nsec real = dump->boot_zero + boot;
        time_t seconds = (time_t)(real / HF_NSEC_PER_SEC);
        struct tm parts;

        if (boot != 0 && gmtime_r(&seconds, &parts)) {
                size_t n = strftime(text, sizeof text, "%Y-%m-%dT%H:%M:%S", &parts);
                int n_digits =
                        snprintf(digits, sizeof digits, ".%09d", (int)(real % HF_NSEC_PER_SEC));
                while (n_digits > 0 && (digits[n_digits - 1] == '0' || n_digits == 1))
                        digits[--n_digits] = '\0';
                (void)snprintf(text + n, sizeof text - n, "%sZ", digits);
        }
        put_cell(dump, text);
}

static void end_row(struct dump *dump) {
        hf__strbuf_putc(&dump->cells, '\n');
        dump->begun = false;
}

static void put_row(struct dump *dump, const char *const *cells, size_t n) {
        for (size_t i = 0; i < n; i++)
                put_cell(dump, cells[i]);
}

/* ---- alignment ---- */

/* Sets each width to that of the widest cell, its comma and a blank, if that is more. */
static void measure_cells(const char *cells, size_t widths[N_COLUMNS_MAX]) {
        size_t column = 0, n = 0;

        for (const char *c = cells; *c; c++, n++) {
                if (*c == '\t' && n + 1 > widths[column])
                        widths[column] = n + 1;
                if (*c == '\t' && column + 1 < N_COLUMNS_MAX)
                        column++;
                if (*c == '\n')
                        column = 0;
                if (*c == '\t' || *c == '\n')
                        n = (size_t)-1; /* the loop makes it 0 */
        }
}

/* Writes the table, and frees the cells. */
static void align_columns(struct dump *dump, struct hf__strbuf *text) {
        size_t widths[N_COLUMNS_MAX], column = 0, n = 0;

        for (size_t i = 0; i < N_COLUMNS_MAX; i++)
                widths[i] = WIDTH_MIN;
        if (dump->cells.error != 0 && text->error == 0)
                text->error = dump->cells.error;
        if (dump->cells.error == 0 && dump->cells.data)
                measure_cells(dump->cells.data, widths);
        for (const char *c = dump->cells.error == 0 ? dump->cells.data : NULL; c && *c; c++) {
                if (*c != '\t') {
                        hf__strbuf_putc(text, *c);
                        n = *c == '\n' ? 0 : n + 1;
                        column = *c == '\n' ? 0 : column;
                        continue;
                }
                for (; n < widths[column]; n++)
                        hf__strbuf_putc(text, ' ');
                column += column + 1 < N_COLUMNS_MAX;
                n = 0;
        }
        hf__strbuf_done(&dump->cells);
}

/* ---- levels ---- */

static void dump_level(void *ctx, struct hfd_flow_level *level, bool quiescing) {
        const struct hfd_queue_set *set = &level->set;
        struct dump *dump = ctx;
        size_t n_active = 0;

        for (unsigned i = 0; i < set->n_queues; i++)
                n_active += set->queues[i] && set->queues[i]->n_waiting > 0;
        put_cell(dump, level->name);
        put_number(dump, n_active);
        put_cell(dump, set->n_waiting + set->n_executing == 0 ? "true" : "false");
        put_cell(dump, quiescing ? "true" : "false");
        put_number(dump, set->n_waiting);
        put_number(dump, set->n_executing);
        put_number(dump, set->n_dispatched);
        put_number(dump, set->n_rejected);
        put_number(dump, set->n_timed_out);
        put_number(dump, set->n_cancelled);
        end_row(dump);
}

void hfd_flow_dump_levels(struct hfd_flow_levels *levels, struct hf__strbuf *text) {
        static const char *const header[] =
                {"PriorityLevelName",  "ActiveQueues",     "IsIdle",
                 "IsQuiescing",        "WaitingRequests",  "ExecutingRequests",
                 "DispatchedRequests", "RejectedRequests", "TimedoutRequests",
                 "CancelledRequests"};
        struct dump dump = {0};

        put_row(&dump, header, sizeof header / sizeof header[0]);
        end_row(&dump);
        hfd_flow_levels_each(levels, dump_level, &dump);
        align_columns(&dump, text);
}

/* ---- queues ---- */

static void dump_queues(void *ctx, struct hfd_flow_level *level, bool quiescing) {
        const struct hfd_queue_set *set = &level->set;
        struct dump *dump = ctx;

        for (unsigned i = 0; i < set->n_queues; i++) {
                const struct hfd_seat_queue *queue = set->queues[i];
                if (!queue)
                        continue;
                put_cell(dump, level->name);
                put_number(dump, i);
                put_number(dump, queue->n_waiting);
                put_number(dump, queue->n_executing);
                put_number(dump, queue->executing_seats);
                put_work(dump, queue->next_r);
                /* In Kubernetes a request may need more seats at its end than at its start. Here it
                 * has the same number throughout, so InitialSeatsSum and MaxSeatsSum are equal. */
                put_number(dump, queue->waiting_seats);
                put_number(dump, queue->waiting_seats);
                put_work(dump, (int64_t)queue->waiting_seats * HFD_SERVICE_TIME);
                end_row(dump);
        }
}

void hfd_flow_dump_queues(struct hfd_flow_levels *levels, struct hf__strbuf *text) {
        static const char *const header[] = {"PriorityLevelName", "Index",       "PendingRequests",
                                             "ExecutingRequests", "SeatsInUse",  "NextDispatchR",
                                             "InitialSeatsSum",   "MaxSeatsSum", "TotalWorkSum"};
        struct dump dump = {0};

        put_row(&dump, header, sizeof header / sizeof header[0]);
        end_row(&dump);
        hfd_flow_levels_each(levels, dump_queues, &dump);
        align_columns(&dump, text);
}

/* ---- requests ---- */

static void put_details(struct dump *dump, const struct hfd_flow_description *of) {
        struct hf__strbuf version = {0};

        if (*of->group)
                hf__strbuf_printf(&version, "%s/", of->group);
        hf__strbuf_puts(&version, of->version);
        const char *const cells[] = {of->user,     of->verb,       of->path,
                                     of->ns,       of->name,       version.data ? version.data : "",
                                     of->resource, of->subresource};
        put_row(dump, cells, sizeof cells / sizeof cells[0]);
        hf__strbuf_done(&version);
}

/* position: in the queue; -1 = it executes. queue: -1 = none. */
static void dump_request(struct dump *dump, const struct hfd_flow_level *level,
                         const struct hfd_seats *seats, int64_t queue, int64_t position) {
        const struct hfd_flow_place *place = (const void *)seats; /* its first member */
        struct hfd_flow_description of = {"", "", "", "", "", "", "", "", "", ""};
        char number[24];

        place->owner->describe(place, &of);
        put_cell(dump, level->name);
        put_cell(dump, place->flow_class->schema);
        (void)snprintf(number, sizeof number, "%" PRId64, queue);
        put_cell(dump, number);
        (void)snprintf(number, sizeof number, "%" PRId64, position);
        put_cell(dump, number);
        put_cell(dump, of.distinguisher);
        put_time(dump, seats->arrived);
        put_number(dump, seats->width);
        /* FinalSeats and AdditionalLatency. In Kubernetes a write keeps seats after its end while
         * watches are served with its event; here the watches share the bytes of the event. */
        put_number(dump, 0);
        put_cell(dump, "0s");
        put_time(dump, seats->started);
        if (dump->details)
                put_details(dump, &of);
        end_row(dump);
}

static void dump_requests(void *ctx, struct hfd_flow_level *level, bool quiescing) {
        const struct hfd_queue_set *set = &level->set;
        struct dump *dump = ctx;

        for (unsigned i = 0; i < set->n_queues; i++) {
                int64_t position = 0;
                if (!set->queues[i])
                        continue;
                /* The list begins at the head, so a position is the number of requests in front. */
                for (const struct hfd_seats *m = set->queues[i]->waiting.first; m; m = m->next)
                        dump_request(dump, level, m, i, position++);
        }
        for (const struct hfd_seats *m = set->executing.first; m; m = m->next)
                dump_request(dump, level, m, m->queue ? (int64_t)m->queue->index : -1, -1);
}

void hfd_flow_dump_requests(struct hfd_flow_levels *levels, const struct hf_host *host,
                            bool details, struct hf__strbuf *text) {
        /* The misspelling of "distinguisher" is Kubernetes'. */
        static const char *const header[] = {"PriorityLevelName", "FlowSchemaName",
                                             "QueueIndex",        "RequestIndexInQueue",
                                             "FlowDistingsher",   "ArriveTime",
                                             "InitialSeats",      "FinalSeats",
                                             "AdditionalLatency", "StartTime"};
        static const char *const more[] = {"UserName", "Verb",       "APIPath",  "Namespace",
                                           "Name",     "APIVersion", "Resource", "SubResource"};
        const struct hf_clock *clock = hf_host_clock(host);
        struct dump dump = {.details = details,
                            .boot_zero = clock->real(clock->ctx) - hf_now(clock)};

        put_row(&dump, header, sizeof header / sizeof header[0]);
        if (details)
                put_row(&dump, more, sizeof more / sizeof more[0]);
        end_row(&dump);
        hfd_flow_levels_each(levels, dump_requests, &dump);
        align_columns(&dump, text);
}

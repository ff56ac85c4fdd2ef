/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The status model as text.
 *
 * A table is written twice: first with a tab between cells and a newline after each row, then with
 * aligned columns. Only the complete table shows how wide a column must be.
 *
 * Invariant: a cell contains no tab and no newline, because align_rows would split it there. The
 * model guarantees this for its texts, which are printable ASCII.
 */
#include "server/status/render.h"

#include <assert.h>
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/strbuf.h"
#include "base/time_format.h"
#include "server/status/model.h"

#define MAX_COLUMNS    8
#define MAX_HAND_OVERS 10 /* hand-overs that are shown: the newest ones of all Leases together */

void hfd_status_render_age(int64_t age_us, char text[HFD_STATUS_AGE_MAX]) {
        static_assert(HFD_STATUS_AGE_MAX >= HF__AGE_MAX, "an age fits");
        hf__age_format(age_us / 1000000, text);
}

/* In a planned hand-over nobody leads for a few milliseconds, in a take-over after a crash for many
 * seconds. Ages have no unit below a second, so short gaps have a format of their own. */
static void format_gap(int64_t ms, char text[HFD_STATUS_AGE_MAX]) {
        if (ms < 1000)
                (void)snprintf(text, HFD_STATUS_AGE_MAX, "%" PRId64 "ms", ms);
        else if (ms < 100000)
                (void)snprintf(text, HFD_STATUS_AGE_MAX, "%" PRId64 ".%" PRId64 "s", ms / 1000,
                               ms % 1000 / 100);
        else
                hfd_status_render_age(ms > INT64_MAX / 1000 ? INT64_MAX : ms * 1000, text);
}

/* Splits an identity only if it has the exact form host_instance_boot_random
 * (server/controllers/instances/identity.c). Other programs may hold Leases too, and the parts of
 * their identities are unknown. */
void hfd_status_render_identity(const char *identity, char text[HFD_STATUS_IDENTITY_MAX]) {
        const char *instance = strchr(identity, '_'),
                   *boot = instance ? strchr(instance + 1, '_') : NULL;
        const char *random = boot ? strchr(boot + 1, '_') : NULL;
        size_t n = boot ? (size_t)(boot - instance - 1) : 0;

        if (random && !strchr(random + 1, '_') && strspn(random + 1, "0123456789abcdef") == 16 &&
            !random[17] && n > 0 && n <= 40)
                (void)snprintf(text, HFD_STATUS_IDENTITY_MAX, "%.*s/%.4s", (int)n, instance + 1,
                               random + 1);
        else if (strlen(identity) > 40)
                (void)snprintf(text, HFD_STATUS_IDENTITY_MAX, "%.39s~", identity);
        else
                (void)snprintf(text, HFD_STATUS_IDENTITY_MAX, "%s", identity);
}

/* ---- tables ---- */

/* Appends rows (cells separated by tabs, rows ended by newlines) as aligned columns. The first pass
 * measures the columns, the second one writes. The last cell of a row gets no trailing spaces. */
static void align_rows(const struct hf__strbuf *rows, struct hf__strbuf *out) {
        size_t widths[MAX_COLUMNS] = {0};
        const char *text = rows->data ? rows->data : "";

        if (rows->error) {
                if (!out->error)
                        out->error = rows->error;
                return;
        }
        for (unsigned pass = 0; pass < 2; pass++) {
                unsigned column = 0;
                for (const char *cell = text; *cell;) {
                        size_t n = strcspn(cell, "\t\n");
                        char after = cell[n];
                        if (pass == 0) {
                                widths[column] = widths[column] > n ? widths[column] : n;
                        } else {
                                hf__strbuf_add(out, cell, n);
                                if (after == '\t')
                                        hf__strbuf_printf(out, "%*s", (int)(widths[column] - n + 2),
                                                          "");
                                else
                                        hf__strbuf_putc(out, '\n');
                        }
                        column = after == '\t' ? column + 1 : 0;
                        assert(column < MAX_COLUMNS); /* the tables below have fewer columns */
                        cell += n + (after != '\0');
                }
        }
}

/* Appends the age of a time and then `after`; "-" if the time is not known (0). */
static void add_age(struct hf__strbuf *rows, int64_t then_us, int64_t now_us, const char *after) {
        char age[HFD_STATUS_AGE_MAX] = "-";

        if (then_us > 0)
                hfd_status_render_age(now_us - then_us, age);
        hf__strbuf_printf(rows, "%s%s", age, then_us > 0 ? after : "");
}

/* An empty identity: the Lease has no holder, or in a hand-over the previous holder is not known or
 * there was none. */
static void add_identity(struct hf__strbuf *rows, const char *identity) {
        char text[HFD_STATUS_IDENTITY_MAX];

        hfd_status_render_identity(identity, text);
        hf__strbuf_puts(rows, text[0] ? text : "nobody");
}

/* Reports the rows beyond the model's limits, so that a cut table does not look complete. */
static void add_omitted(struct hf__strbuf *out, unsigned n) {
        if (n)
                hf__strbuf_printf(out, "... and %u more\n", n);
}

static const char *or_dash(const char *text) { return text[0] ? text : "-"; }

static void add_instances(const struct hfd_status_model *model, int64_t now_us,
                          struct hf__strbuf *out) {
        struct hf__strbuf rows = {0};

        if (model->n_instances == 0) {
                hf__strbuf_puts(out, "No instances: there is no identity Lease of a holdfastd.\n");
                return;
        }
        hf__strbuf_puts(&rows, "INSTANCE\tHOST\tENDPOINT\tSTATE\tSEEN\n");
        for (unsigned i = 0; i < model->n_instances; i++) {
                const struct hfd_status_instance *instance = &model->instances[i];
                add_identity(&rows, instance->identity);
                hf__strbuf_printf(&rows, "\t%s\t%s\t%s\t", or_dash(instance->host),
                                  or_dash(instance->endpoint), instance->state);
                add_age(&rows, instance->renew_us, now_us, " ago");
                hf__strbuf_putc(&rows, '\n');
        }
        align_rows(&rows, out);
        add_omitted(out, model->n_omitted_instances);
        hf__strbuf_done(&rows);
}

static void add_leases(const struct hfd_status_model *model, int64_t now_us,
                       struct hf__strbuf *out) {
        struct hf__strbuf rows = {0};

        if (model->n_leases == 0) {
                hf__strbuf_puts(out, "Nothing is led: there is no Lease.\n");
                return;
        }
        hf__strbuf_puts(&rows, "LEASE\tHOLDER\tSINCE\tTERM\tTRANSITIONS\tRENEWED\n");
        for (unsigned i = 0; i < model->n_leases; i++) {
                const struct hfd_status_lease *lease = &model->leases[i];
                uint64_t term = hfd_status_model_term(model, lease);
                hf__strbuf_printf(&rows, "%s\t", lease->label);
                add_identity(&rows, lease->holder);
                if (hfd_status_model_is_silent(lease, now_us))
                        hf__strbuf_puts(&rows, " (silent)");
                hf__strbuf_putc(&rows, '\t');
                add_age(&rows, lease->acquire_us, now_us, "");
                if (term)
                        hf__strbuf_printf(&rows, "\t%" PRIu64, term);
                else
                        hf__strbuf_puts(&rows, "\t-");
                hf__strbuf_printf(&rows, "\t%" PRId64 "\t", lease->n_transitions);
                add_age(&rows, lease->renew_us, now_us, " ago");
                hf__strbuf_putc(&rows, '\n');
        }
        align_rows(&rows, out);
        add_omitted(out, model->n_omitted_leases);
        hf__strbuf_done(&rows);
}

/* One row of the table of hand-overs; both borrowed from the model. */
struct hand_over {
        const struct hfd_status_lease *lease;
        const struct hf__lease_history_entry *transition;
};

static int compare_newest_first(const void *a, const void *b) {
        int64_t left = ((const struct hand_over *)a)->transition->at_us,
                right = ((const struct hand_over *)b)->transition->at_us;
        return (left < right) - (left > right);
}

/* Merges the histories of all Leases, newest first. There is a column LEASE only if more than one
 * Lease has a history; otherwise every row would repeat the same name. */
static void add_hand_overs(const struct hfd_status_model *model, int64_t now_us,
                           struct hf__strbuf *out) {
        struct hand_over list[HFD_STATUS_MAX_LEASES * HF__LEASE_HISTORY_MAX];
        unsigned n = 0, n_with_history = 0;
        struct hf__strbuf rows = {0};
        char gap[HFD_STATUS_AGE_MAX];

        assert(model->n_leases <= HFD_STATUS_MAX_LEASES);
        for (unsigned i = 0; i < model->n_leases; i++) {
                const struct hfd_status_lease *lease = &model->leases[i];
                n_with_history += lease->n_history > 0;
                for (unsigned k = lease->n_history; k-- > 0;)
                        list[n++] = (struct hand_over){.lease = lease,
                                                       .transition = &lease->history[k]};
        }
        if (n == 0)
                return;
        qsort(list, n, sizeof list[0], compare_newest_first);
        hf__strbuf_printf(&rows, "HAND-OVER\tFROM -> TO\tCAUSE\tGAP%s\n",
                          n_with_history > 1 ? "\tLEASE" : "");
        for (unsigned i = 0; i < n && i < MAX_HAND_OVERS; i++) {
                const struct hf__lease_history_entry *transition = list[i].transition;
                add_age(&rows, transition->at_us, now_us, " ago");
                hf__strbuf_putc(&rows, '\t');
                add_identity(&rows, transition->previous);
                hf__strbuf_puts(&rows, " -> ");
                add_identity(&rows, transition->holder);
                format_gap(transition->gap_ms, gap);
                /* A new Lease had no previous holder, so there is no gap. */
                hf__strbuf_printf(&rows, "\t%s\t%s", transition->cause,
                                  strcmp(transition->cause, "created") == 0 ? "-" : gap);
                if (n_with_history > 1)
                        hf__strbuf_printf(&rows, "\t%s", list[i].lease->label);
                hf__strbuf_putc(&rows, '\n');
        }
        hf__strbuf_putc(out, '\n');
        align_rows(&rows, out);
        hf__strbuf_done(&rows);
}

void hfd_status_render(const struct hfd_status_model *model, int64_t now_us,
                       struct hf__strbuf *out) {
        char now[HF__MICROTIME_MAX];

        hf__time_format(now_us / 1000000, now);
        hf__strbuf_printf(out, "%s  %s\n", model->server, now);
        if (model->read_error[0])
                hf__strbuf_printf(out, "not fresh: %s\n", model->read_error);
        hf__strbuf_putc(out, '\n');
        assert(model->n_instances <= HFD_STATUS_MAX_INSTANCES);
        add_instances(model, now_us, out);
        hf__strbuf_putc(out, '\n');
        add_leases(model, now_us, out);
        add_hand_overs(model, now_us, out);
}

/* Leaves out ages and renewal times: they change every second and would make every text new. The
 * message of a read error is left out too, because only its presence matters. */
void hfd_status_render_facts(const struct hfd_status_model *model, struct hf__strbuf *out) {
        hf__strbuf_printf(out, "%s %s %u %u\n", model->server, model->read_error[0] ? "stale" : "",
                          model->n_omitted_instances, model->n_omitted_leases);
        for (unsigned i = 0; i < model->n_instances; i++)
                hf__strbuf_printf(out, "%s %s %s\n", model->instances[i].identity,
                                  model->instances[i].endpoint, model->instances[i].state);
        for (unsigned i = 0; i < model->n_leases; i++) {
                const struct hfd_status_lease *lease = &model->leases[i];
                hf__strbuf_printf(out, "%s %s %" PRId64 " %" PRId64 " %" PRIu64 "\n", lease->label,
                                  lease->holder, lease->acquire_us, lease->n_transitions,
                                  hfd_status_model_term(model, lease));
        }
}

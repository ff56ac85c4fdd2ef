/* SPDX-License-Identifier: Apache-2.0 */
/* The picture in words. Tables are written with tabs between the cells and then aligned, each by
 * its own widest cells. */
#include "server/status/status.h"

#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/strbuf.h"
#include "base/time_format.h"

#define MAX_COLUMNS    8
#define MAX_HAND_OVERS 10

void hfd_age_format(int64_t usec, char *text) {
        static const struct {
                int64_t below, unit, rest; /* seconds; rest 0 = the unit alone */
                char unit_message, rest_message;
        } forms[] = {
                {2 * 60, 1, 0, 's', 0},
                {10 * 60, 60, 1, 'm', 's'},
                {3 * 3600, 60, 0, 'm', 0},
                {8 * 3600, 3600, 60, 'h', 'm'},
                {2 * 86400, 3600, 0, 'h', 0},
                {8 * 86400, 86400, 3600, 'd', 'h'},
                {2 * 365 * 86400, 86400, 0, 'd', 0},
                {8 * 365 * INT64_C(86400), 365 * 86400, 86400, 'y', 'd'},
                {INT64_MAX, 365 * 86400, 0, 'y', 0},
        };
        int64_t seconds = usec > 0 ? usec / 1000000 : 0;
        unsigned i = 0;

        while (seconds >= forms[i].below)
                i++;
        int64_t rest = forms[i].rest ? seconds % forms[i].unit / forms[i].rest : 0;
        if (rest)
                (void)snprintf(text, 32, "%" PRId64 "%c%" PRId64 "%c", seconds / forms[i].unit,
                               forms[i].unit_message, rest, forms[i].rest_message);
        else
                (void)snprintf(text, 32, "%" PRId64 "%c", seconds / forms[i].unit,
                               forms[i].unit_message);
}

/* A gap is interesting to the millisecond while it is short. */
static void gap_format(int64_t ms, char *text) {
        if (ms < 1000)
                (void)snprintf(text, 32, "%" PRId64 "ms", ms);
        else if (ms < 100000)
                (void)snprintf(text, 32, "%" PRId64 ".%" PRId64 "s", ms / 1000, ms % 1000 / 100);
        else
                hfd_age_format(ms > INT64_MAX / 1000 ? INT64_MAX : ms * 1000, text);
}

void hfd_identity_short(const char *identity, char *text) {
        const char *instance = strchr(identity, '_'),
                   *boot = instance ? strchr(instance + 1, '_') : NULL;
        const char *random = boot ? strchr(boot + 1, '_') : NULL;
        size_t n = boot ? (size_t)(boot - instance - 1) : 0;

        if (random && !strchr(random + 1, '_') && strspn(random + 1, "0123456789abcdef") == 16 &&
            !random[17] && n > 0 && n <= 40)
                (void)snprintf(text, 48, "%.*s/%.4s", (int)n, instance + 1, random + 1);
        else if (strlen(identity) > 40)
                (void)snprintf(text, 48, "%.39s~", identity);
        else
                (void)snprintf(text, 48, "%s", identity);
}

/* ---- tables ---- */

/* Cells are apart by tabs, rows end in a newline; the last cell of a row is not filled up. */
static void align(const struct hf__strbuf *rows, struct hf__strbuf *out) {
        size_t widths[MAX_COLUMNS] = {0};
        const char *text = rows->data ? rows->data : "";

        if (rows->error) {
                out->error = out->error ? out->error : rows->error;
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
                        column = after == '\t' && column + 1 < MAX_COLUMNS ? column + 1 : 0;
                        cell += n + (after != '\0');
                }
        }
}

static void add_age(struct hf__strbuf *rows, int64_t then_us, int64_t now_us, const char *after) {
        char age[32] = "-";

        if (then_us > 0)
                hfd_age_format(now_us - then_us, age);
        hf__strbuf_printf(rows, "%s%s", age, then_us > 0 ? after : "");
}

static void add_identity(struct hf__strbuf *rows, const char *identity) {
        char text[48];

        hfd_identity_short(identity, text);
        hf__strbuf_puts(rows, text[0] ? text : "nobody");
}

static void add_more(struct hf__strbuf *out, unsigned n) {
        if (n)
                hf__strbuf_printf(out, "... and %u more\n", n);
}

static const char *or_dash(const char *text) { return text[0] ? text : "-"; }

static void instances(const struct hfd_status_model *picture, int64_t now_us,
                      struct hf__strbuf *out) {
        struct hf__strbuf rows = {0};

        if (picture->n_instances == 0) {
                hf__strbuf_puts(out, "No instances: there is no identity Lease of a holdfastd.\n");
                return;
        }
        hf__strbuf_puts(&rows, "INSTANCE\tHOST\tENDPOINT\tSTATE\tSEEN\n");
        for (unsigned i = 0; i < picture->n_instances; i++) {
                const struct hfd_status_instance *instance = &picture->instances[i];
                add_identity(&rows, instance->identity);
                hf__strbuf_printf(&rows, "\t%s\t%s\t%s\t", or_dash(instance->host),
                                  or_dash(instance->endpoint), instance->state);
                add_age(&rows, instance->renew_us, now_us, " ago");
                hf__strbuf_putc(&rows, '\n');
        }
        align(&rows, out);
        add_more(out, picture->n_more_instances);
        hf__strbuf_done(&rows);
}

static void leases(const struct hfd_status_model *picture, int64_t now_us, struct hf__strbuf *out) {
        struct hf__strbuf rows = {0};

        if (picture->n_leases == 0) {
                hf__strbuf_puts(out, "Nothing is led: there is no Lease.\n");
                return;
        }
        hf__strbuf_puts(&rows, "LEASE\tHOLDER\tSINCE\tTERM\tTRANSITIONS\tRENEWED\n");
        for (unsigned i = 0; i < picture->n_leases; i++) {
                const struct hfd_status_lease *lease = &picture->leases[i];
                uint64_t term = hfd_status_term(picture, lease);
                hf__strbuf_printf(&rows, "%s\t", lease->label);
                add_identity(&rows, lease->holder);
                if (lease->holder[0] && lease->renew_us > 0 &&
                    (now_us - lease->renew_us) / 1000000 > lease->duration_s)
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
        align(&rows, out);
        add_more(out, picture->n_more_leases);
        hf__strbuf_done(&rows);
}

struct hand_over {
        const struct hfd_status_lease *lease;
        const struct hf__lease_history_entry *transition;
};

static int newest_first(const void *a, const void *b) {
        int64_t left = ((const struct hand_over *)a)->transition->at_us,
                right = ((const struct hand_over *)b)->transition->at_us;
        return (left < right) - (left > right);
}

/* The newest of all Leases; the Lease is named where there are several. */
static void hand_overs(const struct hfd_status_model *picture, int64_t now_us,
                       struct hf__strbuf *out) {
        struct hand_over list[HFD_STATUS_MAX_LEASES * HF__LEASE_HISTORY_MAX];
        unsigned n = 0, n_with_history = 0;
        struct hf__strbuf rows = {0};
        char gap[32];

        for (unsigned i = 0; i < picture->n_leases; i++) {
                const struct hfd_status_lease *lease = &picture->leases[i];
                n_with_history += lease->n_history > 0;
                for (unsigned k = lease->n_history; k-- > 0;)
                        list[n++] = (struct hand_over){.lease = lease,
                                                       .transition = &lease->history[k]};
        }
        if (n == 0)
                return;
        qsort(list, n, sizeof list[0], newest_first);
        hf__strbuf_printf(&rows, "HAND-OVER\tFROM -> TO\tCAUSE\tGAP%s\n",
                          n_with_history > 1 ? "\tLEASE" : "");
        for (unsigned i = 0; i < n && i < MAX_HAND_OVERS; i++) {
                const struct hf__lease_history_entry *transition = list[i].transition;
                add_age(&rows, transition->at_us, now_us, " ago");
                hf__strbuf_putc(&rows, '\t');
                add_identity(&rows, transition->previous);
                hf__strbuf_puts(&rows, " -> ");
                add_identity(&rows, transition->holder);
                gap_format(transition->gap_ms, gap);
                hf__strbuf_printf(&rows, "\t%s\t%s", transition->cause,
                                  strcmp(transition->cause, "created") == 0 ? "-" : gap);
                if (n_with_history > 1)
                        hf__strbuf_printf(&rows, "\t%s", list[i].lease->label);
                hf__strbuf_putc(&rows, '\n');
        }
        hf__strbuf_putc(out, '\n');
        align(&rows, out);
        hf__strbuf_done(&rows);
}

void hfd_status_render(const struct hfd_status_model *picture, int64_t now_us,
                       struct hf__strbuf *out) {
        char now[HF__MICROTIME_MAX];

        hf__time_format(now_us / 1000000, now);
        hf__strbuf_printf(out, "%s  %s\n", picture->server, now);
        if (picture->trouble[0])
                hf__strbuf_printf(out, "not fresh: %s\n", picture->trouble);
        hf__strbuf_putc(out, '\n');
        instances(picture, now_us, out);
        hf__strbuf_putc(out, '\n');
        leases(picture, now_us, out);
        hand_overs(picture, now_us, out);
}

void hfd_status_facts(const struct hfd_status_model *picture, struct hf__strbuf *out) {
        hf__strbuf_printf(out, "%s %s %u %u\n", picture->server, picture->trouble[0] ? "stale" : "",
                          picture->n_more_instances, picture->n_more_leases);
        for (unsigned i = 0; i < picture->n_instances; i++)
                hf__strbuf_printf(out, "%s %s %s\n", picture->instances[i].identity,
                                  picture->instances[i].endpoint, picture->instances[i].state);
        for (unsigned i = 0; i < picture->n_leases; i++) {
                const struct hfd_status_lease *lease = &picture->leases[i];
                hf__strbuf_printf(out, "%s %s %" PRId64 " %" PRId64 " %" PRIu64 "\n", lease->label,
                                  lease->holder, lease->acquire_us, lease->n_transitions,
                                  hfd_status_term(picture, lease));
        }
}

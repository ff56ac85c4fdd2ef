/* SPDX-License-Identifier: Apache-2.0 */
/*
 * A schedule as a picture (SVG). From top to bottom: the broken promise; the Lease with its
 * holders; a lane for each process.
 *
 * A lane shows:
 *
 *      notes     asked to stop, why a term ended, refused writes
 *      state     a broad bar; hatched: the process is paused, crossed: its clock stands still
 *      validity  a narrow bar: until when the gate lets it act, in true time
 *      network   a line at the bottom, where the network is not good
 *
 * A request is a line from the lane to the Lease, where it is applied, and back to the lane.
 * Without a reply it ends in a cross.
 *
 * The marks (sim_mark) are kept while the schedule runs. The operations and the Lease's history are
 * in struct sim anyway.
 */
#include <errno.h>
#include <inttypes.h>
#include <stdio.h>
#include <string.h>

#include "tests/sim/sim.h"

#define WIDTH       1200
#define LEFT        70
#define RIGHT       12
#define LEASE_Y     52
#define LEASE_H     20
#define LANE_Y      112
#define LANE_H      54
#define STATE_H     14
#define MAX_MARKS   65536
#define TEXT_WIDTH  4.6 /* about the width of a character of a note */
#define LABEL_WIDTH 6.2

void sim_mark(struct sim *sim, enum sim_mark_kind kind, int proc, hf_nsec until, int value,
              const char *text) {
        struct sim_mark *marks;

        if (!sim->draw ||
            sim->n_marks == MAX_MARKS) /* a picture with more marks would be unreadable anyway */
                return;
        if (sim->n_marks == sim->max_marks) {
                unsigned max = sim->max_marks ? 2 * sim->max_marks : 256;

                marks = realloc(sim->marks, max * sizeof *marks);
                if (!marks)
                        return;
                sim->marks = marks;
                sim->max_marks = max;
        }
        marks = &sim->marks[sim->n_marks++];
        *marks = (struct sim_mark){.kind = kind,
                                   .proc = proc,
                                   .at = sim->now,
                                   .until = until,
                                   .value = value};
        snprintf(marks->text, sizeof marks->text, "%s", text);
}

/* A kill or the end of the chaos ends a pause early: its mark was drawn to the planned end. */
void sim_mark_resumed(struct sim *sim, int proc) {
        for (unsigned i = sim->n_marks; i > 0; i--) {
                struct sim_mark *mark = &sim->marks[i - 1];

                if (mark->proc != proc || mark->kind != MARK_PAUSE)
                        continue;
                if (mark->until > sim->now)
                        mark->until = sim->now;
                return;
        }
}

/* ---- the canvas ---- */

struct canvas {
        const struct sim *sim; /* borrowed */
        FILE *file;            /* owned by the caller */
        hf_nsec from, to;      /* true time */
};

static const char *const palette[MAX_PROCS] = {"#4e79a7", "#f28e2b", "#76b7b2", "#edc948",
                                               "#b07aa1", "#9c755f", "#8cd17d"};
static const char *const state_classes[] = {"fo", "le", "dr", "ab", "re", "so", "su"};
static const char *const network_colours[_N_NETWORKS] = {"none", "#e8a33d", "#111", "#d1242f",
                                                         "#8b5e3c"};

static double x_of(const struct canvas *c, hf_nsec at) {
        hf_nsec t = at;

        if (t < c->from)
                t = c->from;
        if (t > c->to)
                t = c->to;
        return LEFT + (double)(t - c->from) / (double)(c->to - c->from) * (WIDTH - LEFT - RIGHT);
}

static double lane_y(int p) { return LANE_Y + p * LANE_H; }
static bool is_seen(const struct canvas *c, hf_nsec from, hf_nsec to) {
        return to >= c->from && from <= c->to;
}

static void put_text(FILE *file, const char *text) {
        for (; *text; text++)
                switch (*text) {
                case '<': fputs("&lt;", file); break;
                case '>': fputs("&gt;", file); break;
                case '&': fputs("&amp;", file); break;
                default: fputc(*text, file); break;
                }
}

static void text_at(const struct canvas *c, double x, double y, const char *class,
                    const char *text) {
        fprintf(c->file, "<text x=\"%.1f\" y=\"%.1f\" class=\"%s\">", x, y, class);
        put_text(c->file, text);
        fputs("</text>\n", c->file);
}

static void draw_bar(const struct canvas *c, hf_nsec from, hf_nsec to, double y, double height,
                     const char *attributes) {
        double x = x_of(c, from), width = x_of(c, to) - x;

        if (is_seen(c, from, to))
                fprintf(c->file,
                        "<rect x=\"%.1f\" y=\"%.1f\" width=\"%.1f\" height=\"%.1f\" %s/>\n", x, y,
                        width > 0.5 ? width : 0.5, height, attributes);
}

/* ---- parts of the picture ---- */

static void draw_head(const struct canvas *c, uint64_t seed) {
        int height = LANE_Y + c->sim->n_procs * LANE_H + 54;
        char title[128];

        fprintf(c->file,
                "<svg xmlns=\"http://www.w3.org/2000/svg\" viewBox=\"0 0 %d %d\" "
                "font-family=\"sans-serif\" font-size=\"11\">\n"
                "<style>.fo{fill:#cfd6dd}.le{fill:#2da44e}.dr{fill:#d9a514}.ab{fill:#e5534b}.re{"
                "fill:#9a6fe0}.so{fill:#6e7781}.su{fill:#"
                "000}"
                ".va{fill:#116329}.r,.w,.l,.c{fill:none;stroke-width:.8}.r{stroke:#aab2ba}.w{"
                "stroke:#2f6fd0}.c{stroke:#e08600}"
                ".l{stroke:#d1242f;stroke-dasharray:3 "
                "2}.n{font-size:8px;fill:#444}.g{stroke:#e6e9ec}.v{fill:#d1242f;font-weight:bold}"
                ".k{fill:#57606a;font-size:9px}</style>\n"
                "<defs><pattern id=\"pa\" width=\"6\" height=\"6\" patternUnits=\"userSpaceOnUse\" "
                "patternTransform=\"rotate(45)\">"
                "<rect width=\"3\" height=\"6\" fill=\"#000\" fill-opacity=\".45\"/></pattern>"
                "<pattern id=\"fr\" width=\"6\" height=\"6\" patternUnits=\"userSpaceOnUse\"><path "
                "d=\"M0 0L6 6M6 0L0 6\" "
                "stroke=\"#0550ae\"/>"
                "</pattern></defs>\n<rect width=\"100%%\" height=\"100%%\" fill=\"#fff\"/>\n",
                WIDTH, height);
        snprintf(title, sizeof title,
                 "seed %" PRIu64
                 ": %d contenders, lease %d s, renew deadline %d s, retry period %.1f s",
                 seed, c->sim->n_procs, (int)(c->sim->timing.lease_duration / S),
                 (int)(c->sim->timing.renew_deadline / S),
                 (double)c->sim->timing.retry_period / 1e9);
        text_at(c, LEFT, 14, "t", title);
}

static void draw_axis(const struct canvas *c) {
        static const int steps[] = {1, 2, 5, 10, 20, 50};
        double seconds = (double)(c->to - c->from) / 1e9;
        int step = 50, bottom = LANE_Y + c->sim->n_procs * LANE_H;
        char label[16];

        for (int i = 5; i >= 0; i--)
                if (seconds / steps[i] <= 24)
                        step = steps[i];
        for (hf_nsec t = (c->from / (step * S) + (c->from ? 1 : 0)) * step * S; t <= c->to;
             t += step * S) {
                fprintf(c->file, "<path class=\"g\" d=\"M%.1f %dV%d\"/>\n", x_of(c, t), LEASE_Y - 6,
                        bottom);
                snprintf(label, sizeof label, "%d s", (int)(t / S));
                text_at(c, x_of(c, t) + 2, bottom + 10, "n", label);
        }
}

static void draw_legend(const struct canvas *c) {
        static const struct {
                const char *class, *text;
        } entries[] = {{"fo", "following"}, {"le", "leading"},
                       {"dr", "draining"},  {"ab", "aborting"},
                       {"re", "releasing"}, {"so", "stopped"},
                       {"su", "stuck"},     {"va", "may act"},
                       {"#pa", "paused"},   {"#fr", "clock stands still"}};
        double x = LEFT, y = LANE_Y + c->sim->n_procs * LANE_H + 20;

        for (size_t i = 0; i < sizeof entries / sizeof entries[0]; i++) {
                bool pattern = entries[i].class[0] == '#';

                fprintf(c->file,
                        "<rect x=\"%.1f\" y=\"%.1f\" width=\"16\" height=\"10\" %s%s%s/>\n", x, y,
                        pattern ? "fill=\"url(" : "class=\"", entries[i].class,
                        pattern ? ")\"" : "\"");
                text_at(c, x + 20, y + 9, "k", entries[i].text);
                x += 34 + 5.2 * (double)strlen(entries[i].text);
        }
        text_at(c, LEFT, y + 25, "k",
                "lines: blue a write, grey a read, orange a conflict, red without a reply; below a "
                "lane its network: orange lossy, black "
                "cut, red refusing, brown slow");
}

/* The identity of process p begins with "e" and p. */
static const char *lease_colour(const struct hf__record *record) {
        int p = record->holder[0] == 'e' ? record->holder[1] - '0' : -1;

        if (!record->exists)
                return "#eee";
        if (record->holder[0] == '\0')
                return "#fff";
        return p >= 0 && p < MAX_PROCS ? palette[p] : "#333";
}

static void draw_lease(const struct canvas *c) {
        const struct sim *sim = c->sim;
        char style[96], label[64];

        text_at(c, 4, LEASE_Y + 14, "t", "Lease");
        for (unsigned i = 0, next; i < sim->n_history; i = next) {
                const struct hf__record *record = &sim->history[i];
                hf_nsec from = i ? sim->put_times[i] : 0, to;

                for (next = i + 1; next < sim->n_history; next++)
                        if (sim->history[next].exists != record->exists ||
                            sim->history[next].acquire_us != record->acquire_us ||
                            strcmp(sim->history[next].holder, record->holder) != 0)
                                break;
                to = next < sim->n_history ? sim->put_times[next] : c->to;
                snprintf(style, sizeof style, "fill=\"%s\" stroke=\"#777\" stroke-width=\".5\"",
                         lease_colour(record));
                draw_bar(c, from, to, LEASE_Y, LEASE_H, style);
                snprintf(label, sizeof label, "%.20s", record->exists ? record->holder : "none");
                if (is_seen(c, from, to) &&
                    x_of(c, to) - x_of(c, from) > LABEL_WIDTH * (double)strlen(label))
                        text_at(c, x_of(c, from) + 3, LEASE_Y + 14, "t", label);
        }
}

/* The bars of a lane: each mark lasts until the next one of its kind. */
static void draw_states(const struct canvas *c, int p, enum sim_mark_kind kind) {
        const struct sim_mark *last = NULL;
        char style[64];

        for (unsigned i = 0; i <= c->sim->n_marks; i++) {
                const struct sim_mark *mark = i < c->sim->n_marks ? &c->sim->marks[i] : NULL;

                if (mark && (mark->proc != p || mark->kind != kind))
                        continue;
                if (last && kind == MARK_STATE && last->value >= 0) {
                        snprintf(style, sizeof style, "class=\"%s\"", state_classes[last->value]);
                        draw_bar(c, last->at, mark ? mark->at : c->to, lane_y(p), STATE_H, style);
                } else if (last && kind == MARK_NETWORK && last->value != NET_GOOD) {
                        snprintf(style, sizeof style, "fill=\"%s\"", network_colours[last->value]);
                        draw_bar(c, last->at, mark ? mark->at : c->to, lane_y(p) + STATE_H + 8, 2,
                                 style);
                }
                last = mark;
        }
}

/* The gate is open from the first mark until validity or the term ends. */
static void draw_validity(const struct canvas *c, int p) {
        hf_nsec from = -1, until = 0;

        for (unsigned i = 0; i <= c->sim->n_marks; i++) {
                const struct sim_mark *mark = i < c->sim->n_marks ? &c->sim->marks[i] : NULL;
                bool shut = !mark || (mark->proc == p && mark->kind == MARK_STATE &&
                                      mark->value != HF_LEADING && mark->value != HF_DRAINING);

                if (mark && !shut && (mark->proc != p || mark->kind != MARK_VALID))
                        continue;
                if (from >= 0 && (shut || mark->at > until)) {
                        draw_bar(c, from, mark && mark->at < until ? mark->at : until,
                                 lane_y(p) + STATE_H + 1, 4, "class=\"va\"");
                        from = -1;
                }
                if (shut)
                        continue;
                if (from < 0)
                        from = mark->at;
                until = mark->until;
        }
}

static void draw_notes(const struct canvas *c, int p) {
        double free_from = 0, width, y = p < 0 ? LEASE_Y - 4 : lane_y(p) - 4;

        for (unsigned i = 0; i < c->sim->n_marks; i++) {
                const struct sim_mark *mark = &c->sim->marks[i];
                double x = x_of(c, mark->at);

                if (mark->proc != p || !is_seen(c, mark->at, mark->until))
                        continue;
                if (mark->kind == MARK_PAUSE)
                        draw_bar(c, mark->at, mark->until, lane_y(p), STATE_H, "fill=\"url(#pa)\"");
                else if (mark->kind == MARK_FREEZE)
                        draw_bar(c, mark->at, mark->until, lane_y(p), STATE_H, "fill=\"url(#fr)\"");
                else if (mark->kind == MARK_REFUSED)
                        fprintf(c->file,
                                "<circle cx=\"%.1f\" cy=\"%.1f\" r=\"2.2\" fill=\"#d1242f\"/>\n", x,
                                lane_y(p) - 2);
                else if (mark->kind == MARK_STORE && mark->until > mark->at)
                        draw_bar(c, mark->at, mark->until, LEASE_Y + LEASE_H + 2, 3,
                                 "fill=\"#8b5e3c\"");
                if (!mark->text[0] || mark->kind == MARK_PAUSE || mark->kind == MARK_FREEZE ||
                    mark->kind == MARK_REFUSED || mark->kind == MARK_VIOLATION)
                        continue;
                fprintf(c->file, "<path d=\"M%.1f %.1fv5\" stroke=\"#444\"/>\n", x, y);
                width = TEXT_WIDTH * (double)strlen(mark->text);
                if (x + width > WIDTH)
                        x = WIDTH - width - 2;
                if (x < free_from)
                        continue;
                text_at(c, x + 2, y + 2, "n", mark->text);
                free_from = x + width;
        }
}

static const char *op_class(const struct sim_op *op) {
        if (op->replied_at < 0)
                return "l";
        if (op->result == HF_E_CONFLICT || op->result == HF_E_EXISTS)
                return "c";
        return op->is_write ? "w" : "r";
}

static hf_nsec end_of(const struct sim_op *op) {
        if (op->replied_at >= 0)
                return op->replied_at;
        return op->applied_at >= 0 ? op->applied_at : op->sent_at;
}

static void draw_ops(const struct canvas *c) {
        for (unsigned i = 0; i < c->sim->n_ops; i++) {
                const struct sim_op *op = &c->sim->ops[i];
                double y = lane_y(op->proc), store = LEASE_Y + LEASE_H, x = x_of(c, op->sent_at);
                hf_nsec end = end_of(op);

                if (!is_seen(c, op->sent_at, end))
                        continue;
                fprintf(c->file, "<path class=\"%s\" d=\"M%.1f %.1f", op_class(op), x, y);
                if (op->applied_at >= 0)
                        fprintf(c->file, "L%.1f %.1f", x_of(c, op->applied_at), store);
                if (op->replied_at >= 0 && op->applied_at >= 0)
                        fprintf(c->file, "L%.1f %.1f", x_of(c, op->replied_at), y);
                else if (op->replied_at >= 0) /* the network refused it */
                        fprintf(c->file, "L%.1f %.1f", x_of(c, op->replied_at), y - 8);
                else if (op->applied_at >= 0)
                        fputs("m-3 -3l6 6m0 -6l-6 6", c->file);
                else
                        fputs("v-8m-3 -3l6 6m0 -6l-6 6", c->file);
                fputs("\"/>\n", c->file);
        }
}

static void draw_violation(const struct canvas *c) {
        for (unsigned i = 0; i < c->sim->n_marks; i++) {
                const struct sim_mark *mark = &c->sim->marks[i];

                if (mark->kind != MARK_VIOLATION)
                        continue;
                fprintf(c->file,
                        "<path id=\"violation\" d=\"M%.1f %dV%d\" stroke=\"#d1242f\" "
                        "stroke-width=\"2\"/>\n",
                        x_of(c, mark->at), LEASE_Y - 10, LANE_Y + c->sim->n_procs * LANE_H);
                fprintf(c->file, "<text x=\"%d\" y=\"30\" class=\"v\">%.4f s: ", LEFT,
                        (double)mark->at / 1e9);
                put_text(c->file, c->sim->violation);
                fputs("</text>\n", c->file);
        }
}

int sim_timeline_write(const struct sim *sim, const char *path, uint64_t seed, hf_nsec last) {
        struct canvas c = {.sim = sim, .to = sim->now > S ? sim->now : S};
        int r;

        c.file = fopen(path, "w");
        if (!c.file)
                return -errno;
        /* A margin, so that the end can be seen. */
        c.to += (last && last < c.to ? last : c.to) / 100;
        c.from = last && last < c.to ? c.to - last : 0;
        draw_head(&c, seed);
        draw_axis(&c);
        draw_ops(&c);
        draw_lease(&c);
        for (int p = 0; p < sim->n_procs; p++) {
                text_at(&c, 4, lane_y(p) + 11, "t", sim->procs[p].identity);
                fprintf(c.file,
                        "<rect x=\"58\" y=\"%.1f\" width=\"8\" height=\"%d\" fill=\"%s\"/>\n",
                        lane_y(p), STATE_H, palette[p]);
                draw_states(&c, p, MARK_STATE);
                draw_validity(&c, p);
                draw_states(&c, p, MARK_NETWORK);
                draw_notes(&c, p);
        }
        draw_notes(&c, -1);
        draw_violation(&c);
        draw_legend(&c);
        fputs("</svg>\n", c.file);
        r = ferror(c.file) ? -EIO : 0;
        if (fclose(c.file) != 0 && r == 0)
                r = -errno;
        return r;
}

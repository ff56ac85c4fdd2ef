/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The sub-command `holdfastd status`: reads the model once and prints it, or with --watch keeps it
 * up to date until a signal.
 *
 * The live mode reads the Leases when their watch reports a change, and asks the instances once a
 * second. On a terminal it draws over its previous output. Elsewhere it prints the model again only
 * when facts have changed, so that the output is a record of what happened. A server that stops
 * responding does not end it: the previous model stays, marked as not fresh, and the collector
 * tries the other instances.
 *
 * Invariant: a round of the live mode takes at least MIN_ROUND, whatever its callbacks report; and
 * it waits for nothing longer than ROUND, except for the bounded requests of the collector.
 *
 * Threads. The command's thread does everything. In the live mode a second thread waits for SIGINT
 * and SIGTERM and fires a token; callbacks of the watch and of the token only set a flag under `mu`
 * and signal.
 */
#include "server/status/status.h"

#include <errno.h>
#include <pthread.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/ioctl.h>
#include <unistd.h>

#include <holdfast/cancel.h>
#include <holdfast/host.h>

#include "base/strbuf.h"
#include "base/thread.h"
#include "server/status/collector.h"
#include "server/status/model.h"
#include "server/status/render.h"

#define ROUND     (1 * HF_NSEC_PER_SEC)    /* ages are printed anew, instances asked again */
#define MIN_ROUND (100 * HF_NSEC_PER_MSEC) /* collects many changes at once into one round */
/* After this time the Leases are read again even without a change: the watch may have stalled. */
#define MAX_AGE (10 * HF_NSEC_PER_SEC)

struct live {
        const struct hf_clock *clock; /* borrowed */
        struct hf_cancel *stop;       /* owned */
        bool on_terminal;
        unsigned n_drawn;        /* lines of the previous drawing on the terminal */
        struct hf__strbuf facts; /* of the last printed model; empty = nothing printed yet */

        pthread_mutex_t mu;
        pthread_cond_t cond;
        bool changed; /* guarded by mu */
};

static int64_t real_us(void) {
        const struct hf_clock *clock = hf_clock_system();
        return clock->real(clock->ctx) / HF_NSEC_PER_USEC;
}

static int report_failure(const char *kubeconfig, int r, const struct hf_status *status) {
        const char *hint = "";

        if (r == -ENOENT)
                hint = "; start holdfastd with this --data-dir first, or name a kubeconfig with "
                       "--kubeconfig";
        else if (r == HF_E_UNAVAILABLE || r == HF_E_TIMEOUT)
                hint = "; is that instance running? Use --kubeconfig to name the file of another "
                       "one";
        if (r == -ENOENT || strstr(status->message, kubeconfig))
                (void)fprintf(stderr, "holdfastd status: %s%s\n", status->message, hint);
        else
                (void)fprintf(stderr, "holdfastd status: %s (server of %s)%s\n",
                              status->message[0] ? status->message : hf_strerror(r), kubeconfig,
                              hint);
        return 1;
}

/* ---- output ---- */

static bool print_model(const struct hfd_status_model *model) {
        struct hf__strbuf text = {0};

        hfd_status_render(model, real_us(), &text);
        bool good = !text.error && fwrite(text.data, 1, text.n, stdout) == text.n &&
                    fflush(stdout) == 0;
        hf__strbuf_done(&text);
        return good;
}

/* Draws over the previous drawing. Lines are cut to the window: a line that wrapped, or scrolled
 * out at the top, would make "n_drawn lines up" miss the first line of the drawing. */
static bool draw_model(struct live *live, const struct hfd_status_model *model) {
        struct winsize window = {0};
        struct hf__strbuf text = {0}, screen = {0};
        size_t rows = 24, columns = 80;

        if (ioctl(STDOUT_FILENO, TIOCGWINSZ, &window) == 0 && window.ws_row > 1 &&
            window.ws_col > 1) {
                rows = window.ws_row;
                columns = window.ws_col;
        }
        hfd_status_render(model, real_us(), &text);
        if (live->n_drawn > 0)
                hf__strbuf_printf(&screen, "\033[%uF", live->n_drawn);
        live->n_drawn = 0;
        for (const char *line = text.data; line && *line && live->n_drawn + 1 < rows;
             live->n_drawn++) {
                size_t n = strcspn(line, "\n");
                hf__strbuf_add(&screen, line, n < columns ? n : columns - 1);
                hf__strbuf_puts(&screen, "\033[K\n");
                line += n + (line[n] == '\n');
        }
        hf__strbuf_puts(&screen, "\033[J");
        bool good = !text.error && !screen.error &&
                    fwrite(screen.data, 1, screen.n, stdout) == screen.n && fflush(stdout) == 0;
        hf__strbuf_done(&text);
        hf__strbuf_done(&screen);
        return good;
}

/* Returns false if the output cannot be written or memory has run out. */
static bool show_model(struct live *live, const struct hfd_status_model *model) {
        struct hf__strbuf facts = {0};

        if (live->on_terminal)
                return draw_model(live, model);
        hfd_status_render_facts(model, &facts);
        if (facts.error) {
                hf__strbuf_done(&facts);
                return false;
        }
        bool first = live->facts.n == 0, same = !first && strcmp(facts.data, live->facts.data) == 0;
        hf__strbuf_done(&live->facts);
        live->facts = facts; /* consumed */
        if (same)
                return true;
        return (first || putchar('\n') != EOF) && print_model(model);
}

/* ---- the live mode ---- */

/* The watch's callback. Thread: any. */
static void on_changed(void *ctx) {
        struct live *live = ctx;

        (void)pthread_mutex_lock(&live->mu);
        live->changed = true;
        (void)pthread_cond_signal(&live->cond);
        (void)pthread_mutex_unlock(&live->mu);
}

/* The token's waker. Thread: any. */
static void on_stop(void *ctx) {
        struct live *live = ctx;

        (void)pthread_mutex_lock(&live->mu);
        (void)pthread_cond_signal(&live->cond);
        (void)pthread_mutex_unlock(&live->mu);
}

/* Waits for a change, the time `until` or the stop. Returns whether a Lease has changed. */
static bool wait_for_change(struct live *live, hf_nsec until) {
        struct hf_cancel_waker waker = {0};

        hf_cancel_add_waker(live->stop, &waker, on_stop, live);
        (void)pthread_mutex_lock(&live->mu);
        while (!live->changed && !hf_cancel_fired(live->stop) && hf_now(live->clock) < until)
                (void)live->clock->wait(live->clock->ctx, &live->cond, &live->mu, until);
        bool changed = live->changed;
        live->changed = false;
        (void)pthread_mutex_unlock(&live->mu);
        hf_cancel_remove_waker(&waker);
        return changed;
}

/* Reads the Leases again. Returns false on failure: the model keeps the previous ones, and its
 * `trouble` has the reason. */
static bool refresh_leases(struct live *live, struct hfd_status_collector *collector,
                           struct hfd_status_model *model) {
        struct hf_status status;
        int r = hfd_status_collector_read_leases(collector, live->stop, model, &status);

        if (r != 0)
                (void)snprintf(model->trouble, sizeof model->trouble, "%.255s", status.message);
        return r == 0;
}

/* Runs until a stop signal, or until the output cannot be written. The caller has filled the model
 * once. Returns the exit status. */
static int run_live(struct live *live, struct hfd_status_collector *collector,
                    struct hfd_status_model *model) {
        bool stale = false, written = true;
        hf_nsec read_at = hf_now(live->clock);

        while (!hf_cancel_fired(live->stop) && written) {
                hf_nsec round_at = hf_now(live->clock);
                if (stale) {
                        stale = !refresh_leases(live, collector, model);
                        read_at = round_at;
                        if (hf_cancel_fired(live->stop))
                                break;
                        /* Shows the new Leases before the instances are asked, which may take 2 s.
                         * In a file, one change would then be printed twice. */
                        if (live->on_terminal)
                                (void)show_model(live, model);
                }
                if (!stale)
                        hfd_status_collector_watch(collector, model, on_changed, live);
                hfd_status_collector_ask_instances(collector, model);
                written = show_model(live, model);
                bool changed = written && wait_for_change(live, round_at + ROUND);
                stale = stale || changed || hfd_status_collector_is_silent(collector, model) ||
                        hf_now(live->clock) >= read_at + MAX_AGE;
                (void)hf_cancel_wait(live->stop, round_at + MIN_ROUND);
        }
        if (!written)
                (void)fprintf(stderr, "holdfastd status: cannot write to the standard output\n");
        return written ? 0 : 1;
}

static void stop_signals(sigset_t *ret_set) {
        (void)sigemptyset(ret_set);
        (void)sigaddset(ret_set, SIGINT);
        (void)sigaddset(ret_set, SIGTERM);
}

static void *wait_for_signal(void *stop) {
        sigset_t set;
        int number;

        stop_signals(&set);
        (void)sigwait(&set, &number);
        hf_cancel_fire(stop, HF_CANCEL_STOPPING);
        return NULL;
}

static int watch_leases(struct live *live, const struct hf_host *host,
                        struct hfd_status_collector *collector, struct hfd_status_model *model) {
        pthread_t signals;
        int r = hf__thread_start(host, "hf-signals", wait_for_signal, live->stop, &signals);

        if (r != 0) {
                (void)fprintf(stderr, "holdfastd status: %s\n", hf_strerror(r));
                return 1;
        }
        int exit_status = run_live(live, collector, model);
        /* If run_live ended by a failure, the thread still waits for a signal. */
        (void)pthread_kill(signals, SIGTERM);
        (void)pthread_join(signals, NULL);
        return exit_status;
}

/* ---- the command ---- */

static int run_command(const struct hfd_status_options *options, const struct hf_host *host,
                       struct live *live, struct hfd_status_model *model) {
        struct hfd_status_collector *collector = NULL;
        struct hf_status status = {0};
        int exit_status;
        int r = hfd_status_collector_new(host, options->kubeconfig, &collector, &status);

        if (r == 0)
                r = hfd_status_collector_read_leases(collector, live->stop, model, &status);
        if (r != 0) {
                exit_status = report_failure(options->kubeconfig, r, &status);
        } else if (options->watch) {
                exit_status = watch_leases(live, host, collector, model);
        } else {
                hfd_status_collector_ask_instances(collector, model);
                exit_status = print_model(model) ? 0 : 1;
        }
        hfd_status_collector_free(collector);
        return exit_status;
}

int hfd_status_main(const struct hfd_status_options *options) {
        struct hf_host host = {.size = sizeof host,
                               .clock = hf_clock_system(),
                               .log = options->log};
        struct live live = {.clock = host.clock,
                            .on_terminal = isatty(STDOUT_FILENO),
                            .mu = PTHREAD_MUTEX_INITIALIZER};
        struct hfd_status_model *model = calloc(1, sizeof *model);
        sigset_t set;
        int r = model ? hf_cond_init(&live.cond) : -ENOMEM;

        if (options->watch) { /* before any thread is created: threads inherit the mask */
                stop_signals(&set);
                (void)pthread_sigmask(SIG_BLOCK, &set, NULL);
        }
        if (r == 0) {
                r = hf_cancel_new(NULL, host.clock, &live.stop);
                if (r != 0)
                        (void)pthread_cond_destroy(&live.cond);
        }
        if (r != 0) {
                (void)fprintf(stderr, "holdfastd status: %s\n", hf_strerror(r));
                free(model);
                return 1;
        }
        int exit_status = run_command(options, &host, &live, model);
        hf_cancel_unref(live.stop);
        hf__strbuf_done(&live.facts);
        (void)pthread_cond_destroy(&live.cond);
        free(model);
        return exit_status;
}

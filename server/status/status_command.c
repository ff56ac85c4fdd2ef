/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The sub-command `holdfastd status`. It reads the model once and prints it. With --watch (the live
 * mode) it then refreshes and shows the model until a signal.
 *
 * The live mode refreshes once a second, and sooner when the watch reports a change of a Lease. A
 * refresh reads the Leases again if they may have changed, and queries the instances in any case.
 * On a terminal it draws over its previous output. In a pipe or file, and always with JSON, it
 * prints the model only when facts have changed, so that the output is a record of what happened. A
 * server that stops responding does not end the live mode: the previous model stays, marked as not
 * fresh, and the collector tries the other instances.
 *
 * Invariants. Two refreshes are at least MIN_REFRESH_INTERVAL apart, however many changes the watch
 * reports. A refresh waits only for the collector's requests, which have timeouts, and for its
 * output to be written.
 *
 * Threads. The command's thread does everything. In the live mode a second thread waits for SIGINT
 * and SIGTERM and fires a token. The callbacks of the watch and of the token only wake the
 * command's thread; before that, the callback of the watch sets a flag under `mu`.
 */
#include "server/status/status_command.h"

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

#include "base/cleanup.h"
#include "base/strbuf.h"
#include "base/thread.h"
#include "server/status/collector.h"
#include "server/status/model.h"
#include "server/status/render.h"
#include "server/status/render_json.h"

#define REFRESH_INTERVAL     (1 * HF_NSEC_PER_SEC)    /* so that ages and instances are current */
#define MIN_REFRESH_INTERVAL (100 * HF_NSEC_PER_MSEC) /* one refresh covers many quick changes */
/* After this time the Leases are read again even without a change: the watch may have stalled. */
#define MAX_LEASES_AGE (10 * HF_NSEC_PER_SEC)

/* The state of the live mode. Everything belongs to the command's thread, unless `mu` guards it. */
struct live {
        const struct hf_clock *clock; /* borrowed */
        struct hf_cancel *stop;       /* owned */
        bool json;
        bool on_terminal;        /* draws over the previous output; false with JSON */
        unsigned n_drawn;        /* lines that the previous draw_model wrote */
        struct hf__strbuf facts; /* of the last printed model; empty = nothing printed yet */

        pthread_mutex_t mu;
        pthread_cond_t cond;
        bool changed; /* guarded by mu: a Lease has changed, or its watch has ended */
};

static int64_t wall_clock_us(void) {
        const struct hf_clock *clock = hf_clock_system();
        return clock->real(clock->ctx) / HF_NSEC_PER_USEC;
}

/* Prints why the collector could not be made or the first read failed. For some errors a hint says
 * what to do. Returns the exit status. */
static int report_failure(const char *kubeconfig, int r, const struct hf_status *status) {
        const char *hint = "";

        if (r == -ENOENT)
                hint = "; start holdfastd with this --data-dir first, or name a kubeconfig with "
                       "--kubeconfig";
        else if (r == HF_E_UNAVAILABLE || r == HF_E_TIMEOUT)
                hint = "; is that instance running? Use --kubeconfig to name the file of "
                       "another one";
        /* A message about a server does not say which kubeconfig named that server. */
        if (r == -ENOENT || strstr(status->message, kubeconfig))
                (void)fprintf(stderr, "holdfastd status: %s%s\n", status->message, hint);
        else
                (void)fprintf(stderr, "holdfastd status: %s (server of %s)%s\n",
                              status->message[0] ? status->message : hf_strerror(r), kubeconfig,
                              hint);
        return 1;
}

/* ---- output ---- */

/* Returns the exit status. written: all output was written; otherwise a line says that it was
 * not. */
static int report_output(bool written) {
        if (!written)
                (void)fprintf(stderr, "holdfastd status: cannot write to the standard output\n");
        return written ? 0 : 1;
}

static bool print_model(const struct live *live, const struct hfd_status_model *model) {
        struct hf__strbuf text = {0};

        if (live->json)
                hfd_status_render_json(model, wall_clock_us(), &text);
        else
                hfd_status_render(model, wall_clock_us(), &text);
        bool good = !text.error && fwrite(text.data, 1, text.n, stdout) == text.n &&
                    fflush(stdout) == 0;
        hf__strbuf_done(&text);
        return good;
}

/* Overwrites the previous output: moves the cursor up by n_drawn lines and writes the new text. The
 * text is cut to the window's size. A line that wraps or scrolls out of the window would make
 * n_drawn wrong, so that parts of the previous output would remain. */
static bool draw_model(struct live *live, const struct hfd_status_model *model) {
        struct winsize window = {0};
        struct hf__strbuf text = {0}, screen = {0};
        size_t rows = 24, columns = 80;

        if (ioctl(STDOUT_FILENO, TIOCGWINSZ, &window) == 0 && window.ws_row > 1 &&
            window.ws_col > 1) {
                rows = window.ws_row;
                columns = window.ws_col;
        }
        hfd_status_render(model, wall_clock_us(), &text);
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
        hf__strbuf_puts(&screen, "\033[J"); /* erases the rest of a longer previous output */
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
        live->facts = facts; /* live owns the buffer now */
        if (same)
                return true;
        return (first || live->json || putchar('\n') != EOF) && print_model(live, model);
}

/* ---- the live mode ---- */

/* Called when a Lease has changed or the watch has ended. Thread: any. */
static void on_changed(void *ctx) {
        struct live *live = ctx;

        (void)pthread_mutex_lock(&live->mu);
        live->changed = true;
        (void)pthread_cond_signal(&live->cond);
        (void)pthread_mutex_unlock(&live->mu);
}

/* Called when the stop token fires. The waiting thread checks the token itself. Thread: any. */
static void on_stop(void *ctx) {
        struct live *live = ctx;

        (void)pthread_mutex_lock(&live->mu);
        (void)pthread_cond_signal(&live->cond);
        (void)pthread_mutex_unlock(&live->mu);
}

/* Waits until a Lease changes, the watch ends, the stop token fires, or the boot time (hf_now)
 * reaches `until`. Returns whether a Lease may have changed. */
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

/* Reads the Leases again. On failure returns false, keeps the previous Leases and stores the reason
 * in model->read_error. */
static bool refresh_leases(struct live *live, struct hfd_status_collector *collector,
                           struct hfd_status_model *model) {
        struct hf_status status;
        int r = hfd_status_collector_read_leases(collector, live->stop, model, &status);

        if (r != 0)
                hfd_status_model_set_read_error(model, status.message);
        return r == 0;
}

/* Runs until a stop signal, or until the output cannot be written. The caller has filled the model
 * once. Returns the exit status. */
static int refresh_until_stopped(struct live *live, struct hfd_status_collector *collector,
                                 struct hfd_status_model *model) {
        bool stale = false, written = true;
        hf_nsec read_at = hf_now(live->clock);

        while (!hf_cancel_fired(live->stop) && written) {
                hf_nsec refresh_at = hf_now(live->clock);
                if (stale) {
                        stale = !refresh_leases(live, collector, model);
                        read_at = refresh_at;
                        if (hf_cancel_fired(live->stop))
                                break;
                        /* The queries may take 2 s, so a terminal shows the new Leases first. In a
                         * file, one change would then be printed twice. */
                        if (live->on_terminal)
                                (void)show_model(live, model);
                }
                if (!stale)
                        hfd_status_collector_watch(collector, model, on_changed, live);
                hfd_status_collector_query_instances(collector, model);
                written = show_model(live, model);
                bool changed = written && wait_for_change(live, refresh_at + REFRESH_INTERVAL);
                stale = stale || changed ||
                        hfd_status_collector_is_server_unreachable(collector, model) ||
                        hf_now(live->clock) >= read_at + MAX_LEASES_AGE;
                (void)hf_cancel_wait(live->stop, refresh_at + MIN_REFRESH_INTERVAL);
        }
        return report_output(written);
}

static void fill_stop_signals(sigset_t *ret_set) {
        (void)sigemptyset(ret_set);
        (void)sigaddset(ret_set, SIGINT);
        (void)sigaddset(ret_set, SIGTERM);
}

/* The signal thread: fires the stop token at the first signal. */
static void *wait_for_signal(void *stop) {
        sigset_t set;
        int number;

        fill_stop_signals(&set);
        (void)sigwait(&set, &number);
        hf_cancel_fire(stop, HF_CANCEL_STOPPING);
        return NULL;
}

/* Returns the exit status. */
static int run_live_mode(struct live *live, const struct hf_host *host,
                         struct hfd_status_collector *collector, struct hfd_status_model *model) {
        pthread_t signals;
        int r = hf__thread_start(host, "hf-signals", wait_for_signal, live->stop, &signals);

        if (r != 0) {
                (void)fprintf(stderr, "holdfastd status: %s\n", hf_strerror(r));
                return 1;
        }
        int exit_status = refresh_until_stopped(live, collector, model);
        /* If the output failed, the thread may still wait for a signal. If it has returned already,
         * its id stays valid until the join, and this does nothing. */
        (void)pthread_kill(signals, SIGTERM);
        (void)hf__thread_join(signals);
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
                exit_status = run_live_mode(live, host, collector, model);
        } else {
                hfd_status_collector_query_instances(collector, model);
                exit_status = report_output(print_model(live, model));
        }
        hfd_status_collector_free(collector);
        return exit_status;
}

/* Makes the condition and the stop token, or none of them. */
static int live_init(struct live *live) {
        int r = hf_cond_init(&live->cond);

        if (r != 0)
                return r;
        r = hf_cancel_new(NULL, live->clock, &live->stop);
        if (r != 0)
                (void)pthread_cond_destroy(&live->cond);
        return r;
}

static void live_done(struct live *live) {
        hf_cancel_unref(live->stop);
        hf__strbuf_done(&live->facts);
        (void)pthread_cond_destroy(&live->cond);
}

int hfd_status_main(const struct hfd_status_options *options) {
        struct hf_host host = {.size = sizeof host,
                               .clock = hf_clock_system(),
                               .log = options->log};
        struct live live = {.clock = host.clock,
                            .json = options->json,
                            .on_terminal = !options->json && isatty(STDOUT_FILENO),
                            .mu = PTHREAD_MUTEX_INITIALIZER};
        HF__CLEANUP(hf__free_cleanup) struct hfd_status_model *model = calloc(1, sizeof *model);
        sigset_t set;
        int r = model ? live_init(&live) : -ENOMEM;

        if (options->watch) { /* before any thread is created: threads inherit the mask */
                fill_stop_signals(&set);
                (void)pthread_sigmask(SIG_BLOCK, &set, NULL);
        }
        if (r != 0) {
                (void)fprintf(stderr, "holdfastd status: %s\n", hf_strerror(r));
                return 1;
        }
        int exit_status = run_command(options, &host, &live, model);
        live_done(&live);
        return exit_status;
}

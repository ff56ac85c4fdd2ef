/* SPDX-License-Identifier: Apache-2.0 */
/*
 * `holdfastd status`: who is there, who leads what since when, and how it came to that. Once, or
 * with --watch until it is told to stop.
 *
 * The live mode reads the Leases when their watch says that something happened, and asks the
 * instances each second. On a terminal the picture is drawn over the last one; elsewhere a new one
 * is printed only when its facts are others, so that the output is a record of what happened. A
 * server that stops answering does not end it: the last picture stays, marked as not fresh, and the
 * other instances are tried.
 *
 * Signals: only the live mode takes them, on a thread that waits for SIGINT and SIGTERM and fires a
 * token.
 */
#include <errno.h>
#include <pthread.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/ioctl.h>
#include <unistd.h>

#include "base/strbuf.h"
#include "base/thread.h"
#include "server/server.h"
#include "server/status/status.h"

#define TURN (1 * HF_NSEC_PER_SEC) /* ages are drawn anew, instances asked */
#define MAX_AGE                                                                                    \
        (10 * HF_NSEC_PER_SEC) /* the Leases are read again, should a watch be silent for no good  \
                                  reason */
#define MIN_TURN (100 * HF_NSEC_PER_MSEC) /* many changes at once are one */

struct live {
        const struct hf_clock *clock;
        struct hf_cancel *stop;
        bool on_terminal;
        unsigned n_drawn;        /* lines on the terminal */
        struct hf__strbuf facts; /* of what was printed last */

        pthread_mutex_t mu;
        pthread_cond_t cond;
        bool changed; /* guarded by mu */
};

static int64_t real_us(void) {
        const struct hf_clock *clock = hf_clock_system();
        return clock->real(clock->ctx) / HF_NSEC_PER_USEC;
}

static int say(const struct hfd_config *config, int r, const struct hf_status *status) {
        const char *hint = "";

        if (r == -ENOENT)
                hint = "; start holdfastd with this --data-dir first, or name a kubeconfig with "
                       "--kubeconfig";
        else if (r == HF_E_UNAVAILABLE || r == HF_E_TIMEOUT)
                hint = "; is that instance running? Another one's file can be named with "
                       "--kubeconfig";
        if (r == -ENOENT || strstr(status->message, config->kubeconfig))
                (void)fprintf(stderr, "holdfastd status: %s%s\n", status->message, hint);
        else
                (void)fprintf(stderr, "holdfastd status: %s (server of %s)%s\n",
                              status->message[0] ? status->message : hf_strerror(r),
                              config->kubeconfig, hint);
        return 1;
}

/* ---- drawing ---- */

static bool print_picture(const struct hfd_status_model *picture) {
        struct hf__strbuf text = {0};

        hfd_status_render(picture, real_us(), &text);
        bool good = !text.error && fwrite(text.data, 1, text.n, stdout) == text.n &&
                    fflush(stdout) == 0;
        hf__strbuf_done(&text);
        return good;
}

/* Over the last picture, cut to the window, so that the cursor always finds back to the first line.
 */
static bool draw(struct live *live, const struct hfd_status_model *picture) {
        struct winsize window = {0};
        struct hf__strbuf text = {0}, screen = {0};
        size_t rows = 24, columns = 80;

        if (ioctl(STDOUT_FILENO, TIOCGWINSZ, &window) == 0 && window.ws_row > 1 &&
            window.ws_col > 1) {
                rows = window.ws_row;
                columns = window.ws_col;
        }
        hfd_status_render(picture, real_us(), &text);
        if (live->n_drawn)
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

static bool show(struct live *live, const struct hfd_status_model *picture) {
        struct hf__strbuf facts = {0};

        if (live->on_terminal)
                return draw(live, picture);
        hfd_status_facts(picture, &facts);
        if (facts.error) {
                hf__strbuf_done(&facts);
                return false;
        }
        bool first = live->facts.n == 0, same = !first && strcmp(facts.data, live->facts.data) == 0;
        hf__strbuf_done(&live->facts);
        live->facts = facts; /* consumed */
        return same || ((first || putchar('\n') != EOF) && print_picture(picture));
}

/* ---- the live mode ---- */

static void on_changed(void *ctx) {
        struct live *live = ctx;

        (void)pthread_mutex_lock(&live->mu);
        live->changed = true;
        (void)pthread_cond_signal(&live->cond);
        (void)pthread_mutex_unlock(&live->mu);
}

/* The token's waker. */
static void on_stop(void *ctx) {
        struct live *live = ctx;

        (void)pthread_mutex_lock(&live->mu);
        (void)pthread_cond_signal(&live->cond);
        (void)pthread_mutex_unlock(&live->mu);
}

/* Waits for a change, the next turn or the stop. Tells whether the Leases changed. */
static bool wait_change(struct live *live, hf_nsec until) {
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

/* Reads the Leases anew. False: the picture is as old as it was, and says so. */
static bool refresh(struct live *live, struct hfd_status_collector *gather,
                    struct hfd_status_model *picture) {
        struct hf_status status;
        int r = hfd_status_collector_leases(gather, live->stop, picture, &status);

        if (r != 0)
                (void)snprintf(picture->trouble, sizeof picture->trouble, "%.255s", status.message);
        return r == 0;
}

/* Until the stop. The picture has been read once. Returns the exit status. */
static int run(struct live *live, struct hfd_status_collector *gather,
               struct hfd_status_model *picture) {
        bool stale = false, written = true;
        hf_nsec read_at = hf_now(live->clock);

        while (!hf_cancel_fired(live->stop) && written) {
                hf_nsec turn_at = hf_now(live->clock);
                if (stale) {
                        stale = !refresh(live, gather, picture);
                        read_at = turn_at;
                        if (hf_cancel_fired(live->stop))
                                break;
                        if (live->on_terminal) /* what the instances say may take a moment */
                                (void)show(live, picture);
                }
                if (!stale)
                        hfd_status_collector_watch(gather, picture, on_changed, live);
                hfd_status_collector_responses(gather, picture);
                written = show(live, picture);
                bool changed = written && wait_change(live, turn_at + TURN);
                stale = stale || changed || hfd_status_collector_is_deaf(gather, picture) ||
                        hf_now(live->clock) >= read_at + MAX_AGE;
                (void)hf_cancel_wait(live->stop, turn_at + MIN_TURN);
        }
        if (!written)
                (void)fprintf(stderr, "holdfastd status: cannot write\n");
        return written ? 0 : 1;
}

static void *wait_signal(void *ctx) {
        sigset_t set;
        int number;

        (void)sigemptyset(&set);
        (void)sigaddset(&set, SIGINT);
        (void)sigaddset(&set, SIGTERM);
        (void)sigwait(&set, &number);
        hf_cancel_fire(ctx, HF_CANCEL_STOPPING);
        return NULL;
}

static int watch(struct live *live, const struct hf_host *host, struct hfd_status_collector *gather,
                 struct hfd_status_model *picture) {
        pthread_t signals;
        int r = hf__thread_start(host, "hf-signals", wait_signal, live->stop, &signals);

        if (r != 0) {
                (void)fprintf(stderr, "holdfastd status: %s\n", hf_strerror(r));
                return 1;
        }
        int exit_status = run(live, gather, picture);
        (void)pthread_kill(signals, SIGTERM); /* still there when a failure ended the turns */
        (void)pthread_join(signals, NULL);
        return exit_status;
}

/* ---- the command ---- */

static int run_status(const struct hfd_config *config, const struct hf_host *host,
                      struct live *live, struct hfd_status_model *picture) {
        struct hfd_status_collector *gather = NULL;
        struct hf_status status = {0};
        int exit_status;
        int r = hfd_status_collector_new(host, config->kubeconfig, &gather, &status);

        if (r == 0)
                r = hfd_status_collector_leases(gather, live->stop, picture, &status);
        if (r != 0) {
                exit_status = say(config, r, &status);
        } else if (config->watch) {
                exit_status = watch(live, host, gather, picture);
        } else {
                hfd_status_collector_responses(gather, picture);
                exit_status = print_picture(picture) ? 0 : 1;
        }
        hfd_status_collector_free(gather);
        return exit_status;
}

int hfd_status_main(const struct hfd_config *config) {
        struct hf_host host = {.size = sizeof host, .clock = hf_clock_system()};
        struct live live = {.clock = host.clock,
                            .on_terminal = isatty(STDOUT_FILENO),
                            .mu = PTHREAD_MUTEX_INITIALIZER};
        struct hfd_status_model *picture = calloc(1, sizeof *picture);
        struct hfd_log_sink sink;
        sigset_t set;
        int r = picture ? hf_cond_init(&live.cond) : -ENOMEM;

        if (config->v > 1)
                hfd_log_sink_init(&sink, config, &host.log);
        if (config->watch) { /* before any thread is made; the signals' thread then takes them */
                (void)sigemptyset(&set);
                (void)sigaddset(&set, SIGINT);
                (void)sigaddset(&set, SIGTERM);
                (void)pthread_sigmask(SIG_BLOCK, &set, NULL);
        }
        if (r == 0 && (r = hf_cancel_new(NULL, host.clock, &live.stop)) != 0)
                (void)pthread_cond_destroy(&live.cond);
        if (r != 0) {
                (void)fprintf(stderr, "holdfastd status: %s\n", hf_strerror(r));
                free(picture);
                return 1;
        }
        int exit_status = run_status(config, &host, &live, picture);
        hf_cancel_unref(live.stop);
        hf__strbuf_done(&live.facts);
        (void)pthread_cond_destroy(&live.cond);
        free(picture);
        return exit_status;
}

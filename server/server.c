/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The main thread: signals, the watchdog, the status line, the shutdown delay, reload. It decides
 * nothing about the order of things (boot.c, shutdown.c) and never waits for anything but its poll.
 *
 *      BOOTING --hooks done--> RUNNING --SIGTERM, a failed start, stuck work--> STOPPING --sequence
 * ended--> exit
 *
 * A second SIGTERM or SIGINT exits at once, with status 1.
 */
#include "server/server.h"

#include <errno.h>
#include <poll.h>
#include <signal.h>
#include <stdio.h>
#include <string.h>
#include <sys/eventfd.h>
#include <sys/signalfd.h>
#include <unistd.h>

#include "base/thread.h"
#include "server/sdnotify.h"
#include "server/trim.h"

#define STUCK_LINGER                                                                               \
        (5 * HF_NSEC_PER_SEC) /* livez shows the stuck controller for so long before the process   \
                                 ends */
#define EXTEND_BY                                                                                  \
        (30 * HF_NSEC_PER_SEC) /* asked of systemd at a time while booting or stopping             \
                                */
#define EXTEND_EVERY (10 * HF_NSEC_PER_SEC)

/* What only the main thread touches. */
struct main_loop {
        struct hfd_host *h;
        int signal_fd;
        unsigned n_stops;       /* SIGTERM and SIGINT seen */
        hf_nsec watchdog_every; /* 0 = systemd asked for none */
        hf_nsec watchdog_at, extend_at, delay_until, stuck_until;
        uint64_t turns[3]; /* elector, store, http: as last seen by the watchdog */
        bool said_ready, said_stopping, reload_wanted;
        char status[480]; /* the last STATUS= */
};

void hfd_host_wake(struct hfd_host *h) {
        uint64_t one = 1;
        ssize_t written = write(h->event_fd, &one, sizeof one);
        (void)written; /* full means that main will wake anyway */
}

static hf_nsec now_of(struct hfd_host *h) { return hf_now(hf_host_clock(&h->host)); }

/* ---- the sequence thread ---- */

static int run_sequence(struct hfd_host *h, struct hf_status *reterr_status) {
        int r = hfd_host_boot(h, reterr_status);
        bool stopped = r == HF_E_CANCELED && hf_cancel_fired(h->stop);
        struct hf_status status = {0};

        if (r == 0)
                (void)hf_cancel_wait(h->stop, HF_NSEC_NEVER);
        else if (!stopped)
                hf_log(&h->host.log, HF_LOG_ERROR, "holdfastd", "start failed: %s",
                       reterr_status->message);
        int s = hfd_host_shut_down(h, &status);
        if (s == HF_E_STUCK) {
                *reterr_status = status;
                return HF_E_STUCK;
        }
        if (r == 0 || stopped)
                r = atomic_load(&h->stuck) ? HF_E_STUCK : 0;
        return r;
}

static void *sequence_thread(void *ctx) {
        struct hfd_host *h = ctx;
        struct hf_status status = {0};
        int r = run_sequence(h, &status);

        if (r == HF_E_STUCK) {
                /* Threads that ignore their tokens are alive and use these objects: nothing is
                 * freed, nothing released. */
                hf_log(&h->host.log, HF_LOG_ERROR, "holdfastd",
                       "%s; the lease is not released, exiting", status.message);
                _exit(70);
        }
        if (r) {
                char line[600];
                int n = snprintf(line, sizeof line, "holdfastd: %s\n", status.message);
                ssize_t written =
                        write(STDERR_FILENO, line,
                              n > 0 && (size_t)n < sizeof line ? (size_t)n : sizeof line - 1);
                (void)written;
                hfd_notify_status("%s", status.message);
        }
        atomic_store(&h->exit_status, r ? 1 : 0);
        atomic_store(&h->sequence_ended, true);
        hfd_host_wake(h);
        return NULL;
}

/* ---- what main does when it wakes ---- */

static void say_reloaded(struct hfd_host *h, const char *what, int r,
                         const struct hf_status *status) {
        if (r)
                hf_log(&h->host.log, HF_LOG_ERROR, "holdfastd", "reload: %s; the %s of before stay",
                       status->message, what);
        else
                hf_log(&h->host.log, HF_LOG_NOTICE, "holdfastd", "%s reloaded", what);
}

/*
 * Only between ready and stopping: the boot reads on another thread what is replaced here, and
 * READY=1, which ends the reload for the service manager, would be a lie. A SIGHUP that comes
 * before is kept for then.
 */
static void reload(struct main_loop *m) {
        struct hfd_host *h = m->h;
        struct hf_status status = {0};
        int r;

        m->reload_wanted = !m->said_ready;
        if (!m->said_ready || m->said_stopping)
                return;
        hfd_notify_reloading();
        r = hfd_read_certificates(h, &status);
        if (r == 0)
                r = hfd_http_reload(h->http, h->server_cert_pem, h->server_key_pem,
                                    h->client_ca_pem, &status);
        say_reloaded(h, "certificates", r, &status);
        /* Each on its own: a slip in one file does not keep a revoked token, or an old certificate,
         * alive. */
        say_reloaded(h, "tokens", hfd_auth_reload(h->auth, &status), &status);
        hfd_notify_ready();
}

static void take_signal(struct main_loop *m) {
        struct signalfd_siginfo info;

        while (read(m->signal_fd, &info, sizeof info) == (ssize_t)sizeof info) {
                if (info.ssi_signo == SIGHUP) {
                        reload(m);
                        continue;
                }
                if (m->n_stops++ > 0) {
                        hf_log(&m->h->host.log, HF_LOG_WARNING, "holdfastd",
                               "second stop signal: exiting at once");
                        _exit(1);
                }
                hf_log(&m->h->host.log, HF_LOG_NOTICE, "holdfastd", "%s: stopping",
                       info.ssi_signo == SIGTERM ? "SIGTERM" : "SIGINT");
                hf_cancel_fire(m->h->stop, HF_CANCEL_STOPPING);
                hf_hooks_shut_down(m->h->hooks);
        }
}

static void say_status(struct main_loop *m) {
        struct hfd_host *h = m->h;
        struct hf_leader_info info;
        char text[sizeof m->status];

        hf_elector_info(h->elector, &info);
        if (hfd_lifecycle_signalled(&h->lifecycle, HFD_SHUTDOWN_INITIATED))
                (void)snprintf(text, sizeof text, "stopping");
        else if (atomic_load(&h->waiting_for_store))
                (void)snprintf(text, sizeof text, "waiting for etcd at %.160s",
                               h->config->etcd_servers[0]);
        else if (info.state != HF_STUCK && hfd_bootstrap_says(h, text, sizeof text))
                ;
        else if (info.state == HF_LEADING)
                (void)snprintf(text, sizeof text, "leading %.60s/%.60s, term %llu", info.ns,
                               info.name, (unsigned long long)info.term);
        else if (info.state == HF_STUCK)
                (void)snprintf(text, sizeof text, "stuck: controller %s ignores its tokens",
                               info.stuck_controller);
        else
                (void)snprintf(text, sizeof text, "following %.100s",
                               *info.holder ? info.holder : "nobody");
        if (strcmp(text, m->status) != 0) {
                memcpy(m->status, text, sizeof text);
                hfd_notify_status("%s", text);
        }
}

static void say_milestones(struct main_loop *m) {
        struct hfd_host *h = m->h;
        bool stopping = hfd_lifecycle_signalled(&h->lifecycle, HFD_SHUTDOWN_INITIATED);

        if (!m->said_ready && atomic_load(&h->ready)) {
                m->said_ready = true;
                hfd_notify_ready();
                hf_log(&h->host.log, HF_LOG_NOTICE, "holdfastd", "ready: %s, identity %s",
                       h->identity.endpoint, h->identity.identity);
                hfd_trim_after_start();
        }
        if (m->reload_wanted && m->said_ready)
                reload(m);
        if (!m->said_stopping && stopping) {
                m->said_stopping = true;
                hfd_notify_stopping();
                m->delay_until = now_of(h) + h->config->shutdown_delay;
                m->extend_at = 0; /* systemd's clock for the stop has begun: the extensions of the
                                     start do not count */
        }
        if (stopping && now_of(h) >= m->delay_until)
                hfd_lifecycle_signal(&h->lifecycle, HFD_AFTER_SHUTDOWN_DELAY_DURATION);
}

/* Work that ignores its tokens: livez has been red for a while, now the process ends, and its
 * successor can be started. */
static void end_when_stuck(struct main_loop *m, hf_nsec now) {
        if (!atomic_load(&m->h->stuck) || hf_cancel_fired(m->h->stop))
                return;
        if (m->stuck_until == 0)
                m->stuck_until = now + STUCK_LINGER;
        else if (now >= m->stuck_until) {
                hf_cancel_fire(m->h->stop, HF_CANCEL_FAILED);
                hf_hooks_shut_down(m->h->hooks);
        }
}

/* WATCHDOG=1 is sent when every loop has turned since the last time; a loop that hangs is what the
 * watchdog is for. */
static void feed_watchdog(struct main_loop *m, hf_nsec now) {
        struct hfd_host *h = m->h;

        if (m->watchdog_every == 0 || now < m->watchdog_at)
                return;
        m->watchdog_at = now + m->watchdog_every;
        uint64_t turns[3] = {hf_electors_turns(h->electors), h->store->ops->turns(h->store),
                             hfd_http_turns(h->http)};
        bool all = true;
        for (int i = 0; i < 3; i++)
                all = all && (turns[i] != m->turns[i] || !m->said_ready || m->said_stopping);
        memcpy(m->turns, turns, sizeof turns);
        if (all)
                hfd_notify_watchdog();
}

static void tick_compactor(struct main_loop *m, hf_nsec now) {
        if (m->said_ready && !m->said_stopping)
                hfd_compactor_tick(m->h->compactor, now);
}

static void extend_timeout(struct main_loop *m, hf_nsec now) {
        if ((m->said_ready && !m->said_stopping) || now < m->extend_at)
                return;
        m->extend_at = now + EXTEND_EVERY;
        hfd_notify_extend(EXTEND_BY);
}

static hf_nsec next_wake(const struct main_loop *m, hf_nsec now) {
        hf_nsec at = now + 60 * HF_NSEC_PER_SEC;

        if (m->watchdog_every && m->watchdog_at < at)
                at = m->watchdog_at;
        if ((!m->said_ready || m->said_stopping) && m->extend_at < at)
                at = m->extend_at;
        if (m->said_stopping && m->delay_until > now && m->delay_until < at)
                at = m->delay_until;
        if (m->stuck_until > now && m->stuck_until < at)
                at = m->stuck_until;
        return at;
}

static void main_loop(struct main_loop *m) {
        struct hfd_host *h = m->h;
        struct pollfd fds[2] = {{.fd = m->signal_fd, .events = POLLIN},
                                {.fd = h->event_fd, .events = POLLIN}};

        while (!atomic_load(&h->sequence_ended)) {
                hf_nsec now = now_of(h);
                say_milestones(m);
                say_status(m);
                end_when_stuck(m, now);
                feed_watchdog(m, now);
                tick_compactor(m, now);
                extend_timeout(m, now);
                hf_nsec wait_ms = (next_wake(m, now) - now) / HF_NSEC_PER_MSEC + 1;
                (void)poll(fds, 2, (int)wait_ms);
                uint64_t count;
                ssize_t n = read(h->event_fd, &count, sizeof count);
                (void)n;
                take_signal(m);
        }
}

static int open_fds(struct main_loop *m) {
        sigset_t set;

        (void)sigemptyset(&set);
        (void)sigaddset(&set, SIGTERM);
        (void)sigaddset(&set, SIGINT);
        (void)sigaddset(&set, SIGHUP);
        (void)pthread_sigmask(SIG_BLOCK, &set, NULL);
        m->signal_fd = signalfd(-1, &set, SFD_CLOEXEC | SFD_NONBLOCK);
        m->h->event_fd = eventfd(0, EFD_CLOEXEC | EFD_NONBLOCK);
        return m->signal_fd >= 0 && m->h->event_fd >= 0 ? 0 : -errno;
}

static int run(struct main_loop *m) {
        struct hfd_host *h = m->h;
        struct hf_status status = {0};
        pthread_t thread;

        int r = hfd_host_make(h, &status);
        if (r == 0) {
                m->watchdog_every = hfd_notify_watchdog_interval();
                r = hf__thread_start(&h->host, "hf-sequence", sequence_thread, h, &thread);
                if (r)
                        (void)hf_fail(&status, r, "cannot start a thread: %s", hf_strerror(r));
        }
        if (r) {
                fprintf(stderr, "holdfastd: %s\n", status.message);
                hfd_host_free(h);
                return atomic_load(&h->exit_status) ? atomic_load(&h->exit_status) : 1;
        }
        main_loop(m);
        (void)pthread_join(thread, NULL);
        hfd_host_free(h);
        return atomic_load(&h->exit_status);
}

int hfd_host_run(const struct hfd_config *config, const struct hfd_extra *extra) {
        static const struct hfd_extra nothing;
        struct hfd_host h = {.config = config, .extra = extra ? extra : &nothing, .event_fd = -1};
        struct main_loop m = {.h = &h, .signal_fd = -1};

        h.host = (struct hf_host){.size = sizeof h.host, .clock = hf_clock_system()};
        hfd_log_init(&h.host.log, (int)config->v);
        int r = open_fds(&m);
        if (r == 0)
                r = hfd_lifecycle_init(&h.lifecycle, &h.host);
        if (r == 0)
                r = hf_cancel_new(NULL, h.host.clock, &h.stop);
        if (r)
                fprintf(stderr, "holdfastd: cannot start: %s\n", hf_strerror(r));
        int status = r ? 1 : run(&m);
        hf_cancel_unref(h.stop);
        hfd_lifecycle_done(&h.lifecycle);
        if (m.signal_fd >= 0)
                (void)close(m.signal_fd);
        if (h.event_fd >= 0)
                (void)close(h.event_fd);
        return status;
}

/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The main thread: signals, the watchdog, the status line, the shutdown delay, when a reload runs.
 * It decides nothing about the order of things (boot.c, shutdown.c).
 *
 * Main first makes all objects, and may wait up to 30 s for the lock of the certificate directory.
 * From then on it waits in poll only, until the sequence thread has ended. What can take long is on
 * another thread: the boot and the shutdown on the sequence thread, the files and the lock of a
 * reload on the reload thread. So signals and the watchdog are served at any time.
 *
 *      BOOTING --hooks done--> RUNNING --SIGTERM, stuck work--> STOPPING --sequence ended--> exit
 *          +----------SIGTERM, a failed start---------------------->+
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
#include "server/reload.h"
#include "server/systemd/sdnotify.h"

#define STUCK_LINGER                                                                               \
        (5 * HF_NSEC_PER_SEC) /* livez shows the stuck controller for so long before the process   \
                                 ends */
#define EXTEND_BY                                                                                  \
        (30 * HF_NSEC_PER_SEC) /* asked of systemd at a time while booting or stopping             \
                                */
#define EXTEND_EVERY (10 * HF_NSEC_PER_SEC)

/* What only the main thread touches. */
struct main_loop {
        struct hfd_server *server;
        int signal_fd;
        unsigned n_stops;       /* SIGTERM and SIGINT seen */
        hf_nsec watchdog_every; /* 0 = systemd asked for none */
        hf_nsec watchdog_at, extend_at, delay_until, stuck_until;
        uint64_t iterations[3]; /* elector, store, http: as last seen by the watchdog */
        bool said_ready, said_stopping;
        struct hfd_reload reload;
        char status[480]; /* the last STATUS= */
};

void hfd_server_wake(struct hfd_server *server) {
        uint64_t one = 1;
        ssize_t written = write(server->event_fd, &one, sizeof one);
        (void)written; /* full means that main will wake anyway */
}

static hf_nsec now_of(struct hfd_server *server) { return hf_now(hf_host_clock(&server->host)); }

/* ---- the sequence thread ---- */

static int run_sequence(struct hfd_server *server, struct hf_status *reterr_status) {
        int r = hfd_server_boot(server, reterr_status);
        bool stopped = r == HF_E_CANCELED && hf_cancel_fired(server->stop);
        struct hf_status status = {0};

        if (r == 0)
                (void)hf_cancel_wait(server->stop, HF_NSEC_NEVER);
        else if (!stopped)
                hf_log(&server->host.log, HF_LOG_ERROR, "holdfastd", "start failed: %s",
                       reterr_status->message);
        int s = hfd_server_shut_down(server, &status);
        if (s == HF_E_STUCK) {
                *reterr_status = status;
                return HF_E_STUCK;
        }
        if (r == 0 || stopped)
                r = atomic_load(&server->stuck) ? HF_E_STUCK : 0;
        return r;
}

static void *sequence_thread(void *ctx) {
        struct hfd_server *server = ctx;
        struct hf_status status = {0};
        int r = run_sequence(server, &status);

        if (r == HF_E_STUCK) {
                /* Threads that ignore their tokens are alive and use these objects: nothing is
                 * freed, nothing released. */
                hf_log(&server->host.log, HF_LOG_ERROR, "holdfastd",
                       "%s; the lease is not released, exiting", status.message);
                _exit(70);
        }
        if (r != 0) {
                char line[600];
                int n = snprintf(line, sizeof line, "holdfastd: %s\n", status.message);
                ssize_t written =
                        write(STDERR_FILENO, line,
                              n > 0 && (size_t)n < sizeof line ? (size_t)n : sizeof line - 1);
                (void)written;
                hfd_notify_status("%s", status.message);
        }
        atomic_store(&server->exit_status, r ? 1 : 0);
        atomic_store(&server->sequence_ended, true);
        hfd_server_wake(server);
        return NULL;
}

/* ---- the reload thread ---- */

static void log_reloaded(struct hfd_server *server, const char *what, int r,
                         const struct hf_status *status) {
        if (r == HF_E_CANCELED)
                hf_log(&server->host.log, HF_LOG_NOTICE, "holdfastd",
                       "reload: given up, the server stops: %s", status->message);
        else if (r != 0)
                hf_log(&server->host.log, HF_LOG_ERROR, "holdfastd",
                       "reload: %s; keeping the previous %s", status->message, what);
        else
                hf_log(&server->host.log, HF_LOG_NOTICE, "holdfastd", "%s reloaded", what);
}

/* The work of one reload. Waits for the lock of the certificate directory, until the stop. */
static void reload_files(void *ctx) {
        struct hfd_server *server = ctx;
        struct hf_status status = {0};

        int r = hfd_read_certificates(server, &status);
        if (r == 0)
                r = hfd_http_reload(server->http, server->server_cert_pem, server->server_key_pem,
                                    server->client_ca_pem, &status);
        log_reloaded(server, "certificates", r, &status);
        if (r == HF_E_CANCELED)
                return;
        /* Each on its own: a mistake in one file keeps neither a revoked token nor an old
         * certificate alive. */
        r = hfd_auth_reload(server->auth, &status);
        log_reloaded(server, "tokens", r, &status);
}

static void wake_main(void *ctx) { hfd_server_wake(ctx); }

/* ---- what main does when it wakes ---- */

static void take_signal(struct main_loop *m) {
        struct signalfd_siginfo info;

        while (read(m->signal_fd, &info, sizeof info) == (ssize_t)sizeof info) {
                if (info.ssi_signo == SIGHUP) {
                        hfd_reload_ask(&m->reload);
                        continue;
                }
                if (m->n_stops++ > 0) {
                        hf_log(&m->server->host.log, HF_LOG_WARNING, "holdfastd",
                               "second stop signal: exiting at once");
                        _exit(1);
                }
                hf_log(&m->server->host.log, HF_LOG_NOTICE, "holdfastd", "%s: stopping",
                       info.ssi_signo == SIGTERM ? "SIGTERM" : "SIGINT");
                hf_cancel_fire(m->server->stop, HF_CANCEL_STOPPING);
                hf_hooks_shut_down(m->server->hooks);
        }
}

static void say_status(struct main_loop *m) {
        struct hfd_server *server = m->server;
        struct hf_leader_info info;
        char text[sizeof m->status];

        hf_elector_info(server->elector, &info);
        if (hfd_lifecycle_signalled(&server->lifecycle, HFD_SHUTDOWN_INITIATED))
                (void)snprintf(text, sizeof text, "stopping");
        else if (atomic_load(&server->waiting_for_store))
                (void)snprintf(text, sizeof text, "waiting for etcd at %.160s",
                               server->config->etcd_servers[0]);
        else if (info.state != HF_STUCK && hfd_bootstrap_phases_status(server, text, sizeof text))
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
        struct hfd_server *server = m->server;
        bool stopping = hfd_lifecycle_signalled(&server->lifecycle, HFD_SHUTDOWN_INITIATED);

        if (!m->said_ready && atomic_load(&server->ready)) {
                m->said_ready = true;
                hfd_notify_ready();
                hf_log(&server->host.log, HF_LOG_NOTICE, "holdfastd", "ready: %s, identity %s",
                       server->identity.endpoint, server->identity.identity);
        }
        if (!m->said_stopping && stopping) {
                m->said_stopping = true;
                hfd_notify_stopping();
                m->delay_until = now_of(server) + server->config->shutdown_delay;
                m->extend_at = 0; /* systemd's clock for the stop has begun: the extensions of the
                                     start do not count */
        }
        if (stopping && now_of(server) >= m->delay_until)
                hfd_lifecycle_signal(&server->lifecycle, HFD_AFTER_SHUTDOWN_DELAY_DURATION);
}

/*
 * A reload runs only between ready and stopping: the boot reads on another thread what a reload
 * replaces, and READY=1, which ends the reload for the service manager, would be untrue. A SIGHUP
 * that comes before is kept until the server is ready.
 */
static void step_reload(struct main_loop *m) {
        bool stopping = m->said_stopping || hf_cancel_fired(m->server->stop);

        if (stopping)
                hfd_reload_drop(&m->reload);
        hfd_reload_step(&m->reload, m->said_ready && !stopping);
}

/* Work that ignores its tokens: livez has been red for a while, now the process ends, and its
 * successor can be started. */
static void end_when_stuck(struct main_loop *m, hf_nsec now) {
        if (!atomic_load(&m->server->stuck) || hf_cancel_fired(m->server->stop))
                return;
        if (m->stuck_until == 0)
                m->stuck_until = now + STUCK_LINGER;
        else if (now >= m->stuck_until) {
                hf_cancel_fire(m->server->stop, HF_CANCEL_FAILED);
                hf_hooks_shut_down(m->server->hooks);
        }
}

/* WATCHDOG=1 is sent when every loop has turned since the last time; a loop that hangs is what the
 * watchdog is for. */
static void feed_watchdog(struct main_loop *m, hf_nsec now) {
        struct hfd_server *server = m->server;

        if (m->watchdog_every == 0 || now < m->watchdog_at)
                return;
        m->watchdog_at = now + m->watchdog_every;
        uint64_t iterations[3] = {hf_electors_iterations(server->electors),
                                  server->store->ops->iterations(server->store),
                                  hfd_http_iterations(server->http)};
        bool all = true;
        for (int i = 0; i < 3; i++)
                all = all &&
                      (iterations[i] != m->iterations[i] || !m->said_ready || m->said_stopping);
        memcpy(m->iterations, iterations, sizeof iterations);
        if (all)
                hfd_notify_watchdog();
}

static void tick_compactor(struct main_loop *m, hf_nsec now) {
        if (m->said_ready && !m->said_stopping)
                hfd_compactor_tick(m->server->compactor, now);
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
        struct hfd_server *server = m->server;
        struct pollfd fds[2] = {{.fd = m->signal_fd, .events = POLLIN},
                                {.fd = server->event_fd, .events = POLLIN}};

        while (!atomic_load(&server->sequence_ended)) {
                hf_nsec now = now_of(server);
                say_milestones(m);
                step_reload(m);
                say_status(m);
                end_when_stuck(m, now);
                feed_watchdog(m, now);
                tick_compactor(m, now);
                extend_timeout(m, now);
                hf_nsec wait_ms = (next_wake(m, now) - now) / HF_NSEC_PER_MSEC + 1;
                (void)poll(fds, 2, (int)wait_ms);
                uint64_t count;
                ssize_t n = read(server->event_fd, &count, sizeof count);
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
        m->server->event_fd = eventfd(0, EFD_CLOEXEC | EFD_NONBLOCK);
        return m->signal_fd >= 0 && m->server->event_fd >= 0 ? 0 : -errno;
}

static int run(struct main_loop *m) {
        struct hfd_server *server = m->server;
        struct hf_status status = {0};
        pthread_t thread;

        hfd_notify_warn_unsupported(&server->host.log);
        int r = hfd_server_make(server, &status);
        if (r == 0) {
                m->watchdog_every = hfd_notify_watchdog_interval();
                r = hf__thread_start(&server->host, "hf-sequence", sequence_thread, server,
                                     &thread);
                if (r != 0)
                        (void)hf_fail(&status, r, "cannot start a thread: %s", hf_strerror(r));
        }
        if (r != 0) {
                fprintf(stderr, "holdfastd: %s\n", status.message);
                hfd_server_free(server);
                return atomic_load(&server->exit_status) ? atomic_load(&server->exit_status) : 1;
        }
        main_loop(m);
        (void)pthread_join(thread, NULL);
        /* The sequence ends after the stop has fired, or after a start that failed, without a
         * reload. */
        hfd_reload_drop(&m->reload);
        hfd_reload_join(&m->reload);
        hfd_server_free(server);
        return atomic_load(&server->exit_status);
}

int hfd_server_run(const struct hfd_config *config, const struct hfd_extra *extra) {
        static const struct hfd_extra nothing;
        struct hfd_server server = {.config = config,
                                    .extra = extra ? extra : &nothing,
                                    .event_fd = -1};
        struct main_loop m = {.server = &server, .signal_fd = -1};

        hfd_reload_init(&m.reload, &server.host, reload_files, wake_main, &server);

        server.host = (struct hf_host){.size = sizeof server.host, .clock = hf_clock_system()};
        hfd_log_sink_init(&server.log_sink, config, &server.host.log);
        int r = open_fds(&m);
        if (r == 0)
                r = hfd_lifecycle_init(&server.lifecycle, &server.host);
        if (r == 0)
                r = hf_cancel_new(NULL, server.host.clock, &server.stop);
        if (r != 0)
                fprintf(stderr, "holdfastd: cannot start: %s\n", hf_strerror(r));
        int status = r != 0 ? 1 : run(&m);
        hf_cancel_unref(server.stop);
        hfd_lifecycle_done(&server.lifecycle);
        if (m.signal_fd >= 0)
                (void)close(m.signal_fd);
        if (server.event_fd >= 0)
                (void)close(server.event_fd);
        return status;
}

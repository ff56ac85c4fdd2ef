/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The main thread. It waits in poll for a signal, a call of hfd_server_wake or its next deadline.
 * Then it checks everything once, because a wake-up does not say what has changed. sequence.c
 * controls the order of boot and shutdown.
 *
 *      BOOTING --ready--> RUNNING --SIGTERM, SIGINT, a failure-----------> STOPPING --> exit
 *          +--------SIGTERM, SIGINT, the boot failed--------------------------^
 *
 * Only main sends the states READY, RELOADING and STOPPING to the service manager, so these
 * messages cannot overtake each other.
 *
 * Invariant: while the sequence thread runs, main blocks only in poll, in writes to the log or to
 * the service manager that nobody reads yet, and while it trims memory (about 100 ms for a
 * gigabyte). So it handles signals and feeds the watchdog in time. Work that may take long runs on
 * other threads: the boot and the shutdown on the sequence thread, reading files for a reload on
 * the reload's thread. Before it starts the sequence thread, main waits until the objects are
 * created, which blocks on files and for up to 30 s on the lock of --cert-dir.
 *
 * A second SIGTERM or SIGINT exits at once, with status 1, unless it belongs to the first one
 * (SAME_STOP).
 */
#include "server/main/main_loop.h"

#include <assert.h>
#include <errno.h>
#include <poll.h>
#include <signal.h>
#include <stdio.h>
#include <string.h>
#include <sys/signalfd.h>
#include <unistd.h>

#include "base/cleanup.h"
#include "base/descriptor.h"
#include "base/thread.h"
#include "server/certificates/certificate_expiry.h"
#include "server/certificates/certificates.h"
#include "server/main/assembly.h"
#include "server/main/sequence.h"
#include "server/process/memory_trim.h"
#include "server/process/process_limits.h"
#include "server/reload/reload.h"
#include "server/reload/reload_files.h"
#include "server/server.h"
#include "server/status_line.h"
#include "server/systemd/sdnotify.h"

/* How long livez fails because of a stuck controller before the process ends, so that probes and
 * people can see the reason. */
#define STUCK_GRACE (5 * HF_NSEC_PER_SEC)
/* While it boots or stops, the server requests this much more time from the service manager. */
#define EXTEND_BY (30 * HF_NSEC_PER_SEC)
/* How often it requests more time. */
#define EXTEND_INTERVAL (10 * HF_NSEC_PER_SEC)
/* How long main waits at the end for a reload, which a disk or a file server may hold up. */
#define RELOAD_GRACE (10 * HF_NSEC_PER_SEC)
/* How long to wait after an instance has come or gone before the kubeconfig is written, because
 * others often follow, and one that restarts comes back. */
#define PEERS_DELAY (2 * HF_NSEC_PER_SEC)
/* The longest pause between two attempts to write a kubeconfig that could not be written. The first
 * pause is PEERS_DELAY, and each further pause is twice as long as the one before. */
#define KUBECONFIG_RETRY_MAX (60 * HF_NSEC_PER_SEC)
/* A stop signal that comes this soon after the first one is a part of the same stop: timeout(1) and
 * other programs signal the process and then its group, and a terminal and a wrapper may both pass
 * on one Ctrl-C. */
#define SAME_STOP (1 * HF_NSEC_PER_SEC)
/* The longest wait, when there is no earlier deadline. */
#define IDLE_WAIT (60 * HF_NSEC_PER_SEC)

/* The loops of other threads whose progress the watchdog depends on. */
enum { ELECTOR_LOOP, STORE_LOOP, HTTP_LOOP, N_LOOPS };

/* Owned and used by the main thread only. Times are boot times. */
struct main_loop {
        struct hfd_server *server;
        int signal_fd;
        hf_nsec stop_signal_at; /* when the first SIGTERM or SIGINT was handled; 0 = there was none
                                 */
        bool ready_sent;        /* READY=1 was sent */
        bool stopping_sent;     /* STOPPING=1 was sent */
        hf_nsec watchdog_interval; /* 0 = there is no watchdog */
        hf_nsec watchdog_at;       /* when to feed the watchdog next */
        hf_nsec extend_at;         /* when to request more time next; while booting or stopping */
        hf_nsec delay_until;       /* end of the shutdown delay; while stopping */
        hf_nsec stuck_until;       /* when a stuck controller ends the process; 0 = none is stuck */
        uint64_t iterations[N_LOOPS]; /* counts at the previous check for the watchdog */
        hf_nsec reload_until;  /* at the end: when to give up a reload; 0 = main waits for none */
        hf_nsec renew_at;      /* when to try next to renew certificates */
        hf_nsec kubeconfig_at; /* when to write the kubeconfig again; 0 = not planned */
        hf_nsec retry_delay;   /* before the latest retry to write the kubeconfig; 0 = none */
        struct hfd_reload reload;
        char status[HFD_STATUS_LINE_MAX]; /* the STATUS= that was sent last */
        struct hfd_memory_trim memory_trim;
};

static bool is_running(const struct main_loop *m) { return m->ready_sent && !m->stopping_sent; }

/* ---- reloads ---- */

static void wake_main(void *ctx) { hfd_server_wake(ctx); }

/* Plans to write the kubeconfig again at the time `at`, or earlier if that is already planned. */
static void plan_kubeconfig(struct main_loop *m, hf_nsec at) {
        if (m->kubeconfig_at == 0 || at < m->kubeconfig_at)
                m->kubeconfig_at = at;
}

/* Plans another attempt after one that has failed: the disk may be full. */
static void retry_kubeconfig(struct main_loop *m, hf_nsec now) {
        if (!atomic_load(&m->server->kubeconfig_failed)) {
                m->retry_delay = 0;
        } else if (m->kubeconfig_at == 0 && hfd_reload_is_idle(&m->reload)) {
                m->retry_delay = m->retry_delay == 0 ? PEERS_DELAY : 2 * m->retry_delay;
                if (m->retry_delay > KUBECONFIG_RETRY_MAX)
                        m->retry_delay = KUBECONFIG_RETRY_MAX;
                plan_kubeconfig(m, now + m->retry_delay);
        }
}

/* Requests a new kubeconfig some time after other instances have come or gone, or when the pause
 * after a failed attempt is over (retry_kubeconfig). */
static void follow_peers(struct main_loop *m, hf_nsec now) {
        if (!is_running(m))
                return;
        if (atomic_exchange(&m->server->peers_changed, false))
                plan_kubeconfig(m, now + PEERS_DELAY);
        if (m->kubeconfig_at == 0 || now < m->kubeconfig_at)
                return;
        m->kubeconfig_at = 0;
        hfd_reload_request_minor(&m->reload);
}

/*
 * A reload begins only between READY and STOPPING. During the boot hfd_boot_run reads the data that
 * a reload replaces, and the READY=1 that ends a reload would claim that the boot is complete. A
 * SIGHUP during the boot is kept until the server is ready.
 */
static void step_reload(struct main_loop *m) {
        bool stopping = m->stopping_sent || hf_cancel_fired(m->server->stop);

        if (stopping)
                hfd_reload_disable(&m->reload);
        hfd_reload_step(&m->reload, m->ready_sent && !stopping);
}

/* ---- the steps of an iteration ---- */

/* Begins the shutdown: the sequence thread waits for the token. The hooks are told to stop, so that
 * those that are still starting return. */
static void begin_stop(struct main_loop *m, enum hf_cancel_reason reason) {
        hf_cancel_fire(m->server->stop, reason);
        hf_hooks_shut_down(m->server->hooks);
}

static void handle_stop_signal(struct main_loop *m, const char *name) {
        const struct hf_log *log = &m->server->host.log;
        hf_nsec now = hfd_server_now(m->server);

        if (m->stop_signal_at != 0) {
                if (now < m->stop_signal_at + SAME_STOP)
                        return;
                hf_log(log, HF_LOG_WARNING, "holdfastd", "second stop signal: exiting at once");
                _exit(1);
        }
        m->stop_signal_at = now;
        hf_log(log, HF_LOG_NOTICE, "holdfastd", "%s: stopping", name);
        begin_stop(m, HF_CANCEL_STOPPING);
}

static void handle_signals(struct main_loop *m) {
        struct signalfd_siginfo info;

        while (read(m->signal_fd, &info, sizeof info) == (ssize_t)sizeof info)
                switch (info.ssi_signo) {
                case SIGHUP: hfd_reload_request(&m->reload); break;
                case SIGTERM: handle_stop_signal(m, "SIGTERM"); break;
                case SIGINT: handle_stop_signal(m, "SIGINT"); break;
                default: assert(false); /* open_signals selects no other signal */
                }
}

/* Sends READY=1 and STOPPING=1, and starts and ends the shutdown delay. */
static void report_state(struct main_loop *m, hf_nsec now) {
        struct hfd_server *server = m->server;
        bool stopping = hfd_lifecycle_signalled(&server->lifecycle, HFD_SHUTDOWN_INITIATED);

        if (!m->ready_sent && atomic_load(&server->ready)) {
                m->ready_sent = true;
                hfd_sdnotify_ready();
                hf_log(&server->host.log, HF_LOG_NOTICE, "holdfastd", "ready: %s, identity %s",
                       server->identity.endpoint, server->identity.identity);
        }
        if (!m->stopping_sent && stopping) {
                m->stopping_sent = true;
                hfd_sdnotify_stopping();
                m->delay_until = now + server->config->shutdown_delay;
                /* The service manager's stop timeout begins now, and extensions of the start
                 * timeout do not count for it. So an extension is requested at once. */
                m->extend_at = 0;
        }
        if (stopping && now >= m->delay_until)
                hfd_lifecycle_signal(&server->lifecycle, HFD_AFTER_SHUTDOWN_DELAY_DURATION);
}

static void report_status(struct main_loop *m) {
        char text[HFD_STATUS_LINE_MAX];

        hfd_status_line_format(m->server, text);
        if (strcmp(text, m->status) == 0)
                return;
        memcpy(m->status, text, strlen(text) + 1);
        hfd_sdnotify_status("%s", text);
}

/* If a controller does not stop after its term, livez fails for STUCK_GRACE. Then the process ends,
 * so that the service manager can restart it. */
static void end_when_stuck(struct main_loop *m, hf_nsec now) {
        if (!atomic_load(&m->server->stuck) || hf_cancel_fired(m->server->stop))
                return;
        if (m->stuck_until == 0)
                m->stuck_until = now + STUCK_GRACE;
        else if (now >= m->stuck_until)
                begin_stop(m, HF_CANCEL_FAILED);
}

/* Stops the server if `holdfastd store copy` begins to write to its store after the cache was
 * filled. (refuse_incomplete_copy in boot.c detects a copy that has begun before.) Objects are
 * missing until the copy is complete, so a controller would delete what belongs to them. */
static void end_when_copied_to(struct main_loop *m) {
        struct hfd_server *server = m->server;

        if (!atomic_load(&server->copy_begun) || hf_cancel_fired(server->stop))
                return;
        hf_log(&server->host.log, HF_LOG_ERROR, "holdfastd",
               "holdfastd store copy writes to the store of this instance: stopping");
        atomic_store(&server->exit_status, 1);
        begin_stop(m, HF_CANCEL_FAILED);
}

/* Whether every loop that runs has completed an iteration since the previous call. The loop of the
 * elections does not run with --leader-elect=false (hooks.c). */
static bool have_loops_progressed(struct main_loop *m) {
        struct hfd_server *server = m->server;
        const uint64_t iterations[N_LOOPS] = {[ELECTOR_LOOP] =
                                                      hf_electors_iterations(server->electors),
                                              [STORE_LOOP] =
                                                      server->store->ops->iterations(server->store),
                                              [HTTP_LOOP] = hfd_http_iterations(server->http)};
        bool progressed = true;

        for (size_t i = 0; i < N_LOOPS; i++)
                if (i != ELECTOR_LOOP || server->config->leader_elect)
                        progressed = progressed && iterations[i] != m->iterations[i];
        memcpy(m->iterations, iterations, sizeof iterations);
        return progressed;
}

/* If a loop hangs, the watchdog is no longer fed, and the service manager restarts the process.
 * During boot and shutdown the loops need not run, so the watchdog is fed without this check; the
 * service manager's start and stop timeouts apply instead. */
static void feed_watchdog(struct main_loop *m, hf_nsec now) {
        if (m->watchdog_interval == 0 || now < m->watchdog_at)
                return;
        m->watchdog_at = now + m->watchdog_interval;
        bool progressed = have_loops_progressed(m);
        if (progressed || !is_running(m))
                hfd_sdnotify_watchdog();
}

static void extend_timeout(struct main_loop *m, hf_nsec now) {
        if (is_running(m) || now < m->extend_at)
                return;
        m->extend_at = now + EXTEND_INTERVAL;
        hfd_sdnotify_extend_timeout(EXTEND_BY);
}

/* When the loop must run again. delay_until, stuck_until and reload_until keep their value after
 * they have passed, so they count only while they are in the future. */
static hf_nsec next_wake_up(const struct main_loop *m, hf_nsec now) {
        hf_nsec at = now + IDLE_WAIT;

        if (m->watchdog_interval != 0 && m->watchdog_at < at)
                at = m->watchdog_at;
        if (is_running(m) && hfd_certificate_expiry_next(m->server, now, m->renew_at) < at)
                at = hfd_certificate_expiry_next(m->server, now, m->renew_at);
        if (is_running(m) && hfd_compactor_next(m->server->compactor) < at)
                at = hfd_compactor_next(m->server->compactor);
        if (is_running(m) && m->kubeconfig_at != 0 && m->kubeconfig_at < at)
                at = m->kubeconfig_at;
        if (is_running(m) && hfd_memory_trim_next(&m->memory_trim) < at)
                at = hfd_memory_trim_next(&m->memory_trim);
        if (!is_running(m) && m->extend_at < at)
                at = m->extend_at;
        if (m->stopping_sent && m->delay_until > now && m->delay_until < at)
                at = m->delay_until;
        if (m->stuck_until > now && m->stuck_until < at)
                at = m->stuck_until;
        if (m->reload_until > now && m->reload_until < at)
                at = m->reload_until;
        return at;
}

static void wait_for_events(struct main_loop *m, hf_nsec until, hf_nsec now) {
        struct pollfd fds[] = {{.fd = m->signal_fd, .events = POLLIN},
                               {.fd = m->server->event_fd, .events = POLLIN}};
        hf_nsec wait = until > now ? until - now : 0;
        uint64_t count;

        /* Rounded up, so that poll does not return shortly before `until` again and again. */
        (void)poll(fds, sizeof fds / sizeof fds[0], (int)(wait / HF_NSEC_PER_MSEC) + 1);
        /* Reset the eventfd before the loop checks anything. A wake-up during the checks then makes
         * the next poll return at once. */
        ssize_t n = read(m->server->event_fd, &count, sizeof count);
        (void)n;
}

/* Whether something runs that main must wait for. While main waits, it feeds the watchdog. */
static bool must_continue(struct main_loop *m, hf_nsec now) {
        if (!atomic_load(&m->server->sequence_ended))
                return true;
        if (!hfd_reload_is_running(&m->reload))
                return false;
        if (m->reload_until == 0)
                m->reload_until = now + RELOAD_GRACE;
        return now < m->reload_until;
}

static void run_loop(struct main_loop *m) {
        struct hfd_server *server = m->server;

        for (;;) {
                hf_nsec now = hfd_server_now(server);

                if (!must_continue(m, now))
                        return;
                report_state(m, now);
                if (is_running(m) && hfd_certificate_expiry_is_due(server, now, &m->renew_at))
                        hfd_reload_request(&m->reload);
                follow_peers(m, now);
                step_reload(m);
                retry_kubeconfig(m, now); /* step_reload has noticed the end of an attempt */
                report_status(m);
                end_when_stuck(m, now);
                end_when_copied_to(m);
                feed_watchdog(m, now);
                if (is_running(m))
                        hfd_compactor_tick(server->compactor, now);
                if (m->ready_sent)
                        hfd_memory_trim_tick(&m->memory_trim, &server->host, now);
                extend_timeout(m, now);
                wait_for_events(m, next_wake_up(m, now), now);
                handle_signals(m);
        }
}

/* ---- start and end of the process ---- */

/* Blocks the signals. Threads that are created later inherit the mask, so the signals arrive on the
 * descriptor only. */
static int open_signals(int *ret_fd) {
        sigset_t set;

        (void)sigemptyset(&set);
        (void)sigaddset(&set, SIGTERM);
        (void)sigaddset(&set, SIGINT);
        (void)sigaddset(&set, SIGHUP);
        (void)pthread_sigmask(SIG_BLOCK, &set, NULL);
        *ret_fd = signalfd(-1, &set, SFD_CLOEXEC | SFD_NONBLOCK);
        return *ret_fd >= 0 ? 0 : -errno;
}

struct assembly {
        struct hfd_server *server;
        struct hf_status *status; /* borrowed */
};

static int make_assembly(void *ctx) {
        const struct assembly *assembly = ctx;

        return hfd_assembly_make(assembly->server, assembly->status);
}

/* Creates the objects and starts the sequence thread. The objects are created on a thread of their
 * own, so that the stack and the allocator's cache that this work uses do not stay in memory
 * (hf__thread_run). */
static int start_server(struct hfd_server *server, pthread_t *ret_sequence,
                        struct hf_status *reterr_status) {
        hfd_sdnotify_warn_unsupported(&server->host.log);
        hfd_process_limits_raise_files(&server->host.log);
        if (server->config->ignored_flags && *server->config->ignored_flags)
                hf_log(&server->host.log, HF_LOG_NOTICE, "holdfastd",
                       "ignoring flags of kube-apiserver that have no meaning here: %s",
                       server->config->ignored_flags);
        struct assembly assembly = {.server = server, .status = reterr_status};
        int r = hf__thread_run(&server->host, "hf-assembly", make_assembly, &assembly);
        if (r != 0)
                return r;
        r = hf__thread_start(&server->host, "hf-sequence", hfd_sequence_thread, server,
                             ret_sequence);
        if (r != 0)
                return hf_fail(reterr_status, r, "cannot start a thread: %s", hf_strerror(r));
        return 0;
}

static int run_server(struct hfd_server *server, int signal_fd) {
        struct main_loop m = {.server = server, .signal_fd = signal_fd};
        struct hf_status status = {0};
        pthread_t sequence;

        hfd_reload_init(&m.reload, &server->host, hfd_reload_files, wake_main, server);
        m.reload.minor_work = hfd_reload_kubeconfig;
        int r = start_server(server, &sequence, &status);
        if (r != 0) {
                int exit_status = atomic_load(&server->exit_status);
                hfd_server_report_failure(server, &status);
                hfd_assembly_free(server);
                return exit_status != 0 ? exit_status : 1;
        }
        m.watchdog_interval = hfd_sdnotify_watchdog_interval();
        run_loop(&m);
        (void)hf__thread_join(sequence);
        if (hfd_reload_is_running(&m.reload)) {
                /* Its thread still uses the objects, so they are not freed. Nothing else is left to
                 * do: the sequence has ended, and with it the shutdown. */
                hf_log(&server->host.log, HF_LOG_ERROR, "holdfastd",
                       "a reload hangs: exiting without waiting for it");
                _exit(atomic_load(&server->exit_status));
        }
        hfd_assembly_free(server);
        return atomic_load(&server->exit_status);
}

int hfd_main_loop_run(const struct hfd_config *config, const struct hfd_extra *extra) {
        struct hfd_server server;
        HF__CLEANUP(hf__close_cleanup) int signal_fd = -1;

        int r = open_signals(&signal_fd);
        if (r == 0)
                r = hfd_server_init(&server, config, extra);
        if (r != 0) {
                (void)fprintf(stderr, "holdfastd: cannot start: %s\n", hf_strerror(r));
                return 1;
        }
        int exit_status = run_server(&server, signal_fd);
        hfd_server_done(&server);
        return exit_status;
}

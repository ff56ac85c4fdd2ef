/* SPDX-License-Identifier: Apache-2.0 */
#pragma once
/*
 * Reloads of the files that the server reads at its start: certificates, tokens, keys, the audit
 * policy. SIGHUP requests a reload, and so does a certificate that must be renewed. A separate
 * thread does the work, and main notifies the service manager.
 *
 *      IDLE --requested, may begin--> RUNNING (RELOADING=1) --work returned--> IDLE (READY=1)
 *
 * There may also be minor work; in holdfastd it writes the kubeconfig. It begins and ends in the
 * same way, but the service manager is not notified. It never runs at the same time as a reload,
 * because both write the kubeconfig.
 *
 * At most one reload runs at a time. All requests during a reload together cause one more reload
 * after it, because the running one may have read the files already. Once the server stops, no
 * reload begins and READY=1 is not sent. The work has its own thread because it may block on a lock
 * or a slow disk, and main must feed the watchdog.
 *
 * Thread: main for all functions. `work`, `minor_work` and `wake` are called on the reload's
 * thread.
 */
#include <pthread.h>
#include <stdatomic.h>
#include <stdbool.h>

#include <holdfast/host.h>

struct hfd_reload {
        /* immutable after init */
        const struct hf_host *host; /* borrowed */
        void (*work)(void *ctx);
        void (*wake)(void *ctx);
        void *ctx;                     /* borrowed */
        void (*minor_work)(void *ctx); /* NULL = there is none; set before the first step */
        /* main only */
        bool requested;       /* a reload is requested and has not begun */
        bool minor_requested; /* the minor work is requested and has not begun */
        bool is_minor;        /* while running: it is the minor work; the thread reads it, too */
        bool disabled;    /* the server stops: nothing begins any more, and READY=1 is not sent */
        bool running;     /* thread exists and has not been joined */
        pthread_t thread; /* valid while running */
        /* shared */
        _Atomic bool returned; /* set by the reload's thread: the work has returned */
};

/* wake makes main call hfd_reload_step soon and must not block. host and ctx outlive reload. */
void hfd_reload_init(struct hfd_reload *reload, const struct hf_host *host, void (*work)(void *ctx),
                     void (*wake)(void *ctx), void *ctx);
/* Requests a reload. A later hfd_reload_step begins it. Ignored after hfd_reload_disable. */
void hfd_reload_request(struct hfd_reload *reload);
/* Requests the minor work in the same way. reload->minor_work must not be NULL. */
void hfd_reload_request_minor(struct hfd_reload *reload);
/*
 * Ends the reload or minor work that has returned, and begins the next one if it was requested.
 * may_begin false: nothing may begin now, because the server is not ready, or stops; requests are
 * kept. Blocks only if the service manager does not read (sdnotify.h).
 */
void hfd_reload_step(struct hfd_reload *reload, bool may_begin);
/*
 * Call when the server stops. Neither a reload nor the minor work begins afterwards, and a running
 * reload will not send READY=1, which would contradict STOPPING=1. Idempotent.
 */
void hfd_reload_disable(struct hfd_reload *reload);
/* Whether a reload or the minor work has begun and hfd_reload_step has not ended it yet. */
bool hfd_reload_is_running(const struct hfd_reload *reload);
/* Whether neither a reload nor the minor work runs or is requested. */
bool hfd_reload_is_idle(const struct hfd_reload *reload);

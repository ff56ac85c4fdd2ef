/* SPDX-License-Identifier: Apache-2.0 */
#pragma once
/*
 * The lifecycle of a server: named, idempotent, one-way signals, and the order of a graceful
 * termination.
 *
 *      start   listening ─ storage readiness ─ system namespaces ─ post-start hooks ─ READY=1
 * (HasBeenReady: first /readyz 200)
 *
 *      T0      SIGTERM: ShutdownInitiated (readyz 500, STOPPING=1), then side by side
 *                a) shutdown delay ................................. AfterShutdownDelayDuration
 *                b) pre-shutdown hooks: stop intake, drain, join, gate off, release
 * PreShutdownHooksStopped a and b NotAcceptingNewRequest without --shutdown-send-retry-after: the
 * listener closes (HTTPServerStoppedListening), watches end, requests under way are waited for
 * (InFlightRequestsDrained); with it: new requests get 429 with Retry-After 5, watches end,
 * InFlightRequestsDrained, then the listener closes (HTTPServerStoppedListening). end     hooks are
 * told that the API is gone; everything is freed; exit 0
 *
 * While hooks stop, the API answers, so that the release goes through it. A second SIGTERM exits at
 * once. Work that ignores its tokens ends in _exit without a release. reference: apiserver.md 2;
 * HK01-HK04.
 *
 * Thread: any.
 */
#include <pthread.h>
#include <stdbool.h>

#include <holdfast/host.h>

enum hfd_signal {
        HFD_MUX_AND_DISCOVERY_COMPLETE,
        HFD_HAS_BEEN_READY,
        HFD_SHUTDOWN_INITIATED,
        HFD_AFTER_SHUTDOWN_DELAY_DURATION,
        HFD_PRE_SHUTDOWN_HOOKS_STOPPED,
        HFD_NOT_ACCEPTING_NEW_REQUEST,
        HFD_IN_FLIGHT_REQUESTS_DRAINED,
        HFD_HTTP_SERVER_STOPPED_LISTENING,
        _HFD_SIGNAL_MAX
};

struct hfd_lifecycle {
        const struct hf_host *host; /* borrowed */
        pthread_mutex_t mu;
        pthread_cond_t cond;
        hf_nsec at[_HFD_SIGNAL_MAX]; /* guarded by mu: boot time of the signal, 0 = not yet */
};

int hfd_lifecycle_init(struct hfd_lifecycle *lifecycle, const struct hf_host *host);
void hfd_lifecycle_done(struct hfd_lifecycle *lifecycle);
void hfd_lifecycle_signal(struct hfd_lifecycle *lifecycle,
                          enum hfd_signal signal); /* logs the first time, then nothing */
bool hfd_lifecycle_signalled(struct hfd_lifecycle *lifecycle, enum hfd_signal signal);
/* Blocks until signalled, or boot time deadline: HF_E_TIMEOUT. */
int hfd_lifecycle_wait(struct hfd_lifecycle *lifecycle, enum hfd_signal signal, hf_nsec deadline);
const char *hfd_signal_name(enum hfd_signal signal);

/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The signals of a server's lifecycle (lifecycle.h).
 *
 * Invariants. A signal never becomes unset, and its time never changes, so a waiter cannot miss it.
 * Log lines are written after the lock is released, because the log sink may block.
 */
#include "server/lifecycle.h"

#include <assert.h>

#include <holdfast/error.h>

#include "base/thread.h"

const char *hfd_signal_name(enum hfd_signal signal) {
        static const char *const names[_HFD_SIGNAL_MAX] = {
                [HFD_MUX_AND_DISCOVERY_COMPLETE] = "MuxAndDiscoveryComplete",
                [HFD_HAS_BEEN_READY] = "HasBeenReady",
                [HFD_SHUTDOWN_INITIATED] = "ShutdownInitiated",
                [HFD_AFTER_SHUTDOWN_DELAY_DURATION] = "AfterShutdownDelayDuration",
                [HFD_PRE_SHUTDOWN_HOOKS_STOPPED] = "PreShutdownHooksStopped",
                [HFD_NOT_ACCEPTING_NEW_REQUEST] = "NotAcceptingNewRequest",
                [HFD_IN_FLIGHT_REQUESTS_DRAINED] = "InFlightRequestsDrained",
                [HFD_HTTP_SERVER_STOPPED_LISTENING] = "HTTPServerStoppedListening",
        };

        assert((unsigned)signal < _HFD_SIGNAL_MAX);
        return names[signal];
}

int hfd_lifecycle_init(struct hfd_lifecycle *lifecycle, const struct hf_host *host) {
        *lifecycle = (struct hfd_lifecycle){.host = host};
        return hf__mutex_cond_init(&lifecycle->mu, &lifecycle->cond);
}

void hfd_lifecycle_done(struct hfd_lifecycle *lifecycle) {
        (void)pthread_cond_destroy(&lifecycle->cond);
        (void)pthread_mutex_destroy(&lifecycle->mu);
}

/* Only the first call sets the time and logs, so each name is in the log once. */
void hfd_lifecycle_signal(struct hfd_lifecycle *lifecycle, enum hfd_signal signal) {
        hf_nsec now = hf_now(hf_host_clock(lifecycle->host));

        assert((unsigned)signal < _HFD_SIGNAL_MAX && now > 0);
        (void)pthread_mutex_lock(&lifecycle->mu);
        bool first = lifecycle->at[signal] == 0;
        if (first) {
                lifecycle->at[signal] = now;
                (void)pthread_cond_broadcast(&lifecycle->cond);
        }
        (void)pthread_mutex_unlock(&lifecycle->mu);
        if (first)
                hf_log(&lifecycle->host->log, HF_LOG_INFO, "lifecycle", "%s",
                       hfd_signal_name(signal));
}

bool hfd_lifecycle_signalled(struct hfd_lifecycle *lifecycle, enum hfd_signal signal) {
        assert((unsigned)signal < _HFD_SIGNAL_MAX);
        (void)pthread_mutex_lock(&lifecycle->mu);
        bool signalled = lifecycle->at[signal] != 0;
        (void)pthread_mutex_unlock(&lifecycle->mu);
        return signalled;
}

int hfd_lifecycle_wait(struct hfd_lifecycle *lifecycle, enum hfd_signal signal, hf_nsec deadline) {
        const struct hf_clock *clock = hf_host_clock(lifecycle->host);
        int r = 0;

        assert((unsigned)signal < _HFD_SIGNAL_MAX);
        (void)pthread_mutex_lock(&lifecycle->mu);
        while (lifecycle->at[signal] == 0 && r == 0)
                r = clock->wait(clock->ctx, &lifecycle->cond, &lifecycle->mu, deadline);
        if (lifecycle->at[signal] != 0)
                r = 0; /* the signal was set after the timeout, before this thread had the lock */
        (void)pthread_mutex_unlock(&lifecycle->mu);
        return r;
}

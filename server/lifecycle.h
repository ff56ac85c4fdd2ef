/* SPDX-License-Identifier: Apache-2.0 */
#pragma once
/*
 * The lifecycle of a server: named one-way signals, and the order of a graceful shutdown. The names
 * are those of kube-apiserver.
 *
 *      start   the listener accepts ......................... MuxAndDiscoveryComplete
 *              the store responds, the post-start hooks run, READY=1
 *              the first /readyz with status 200 ............ HasBeenReady
 *
 *      T0      SIGTERM, SIGINT or a failure ................. ShutdownInitiated
 *              /readyz fails, STOPPING=1; then a) and b) at the same time:
 *                a) the shutdown delay passes ............... AfterShutdownDelayDuration
 *                b) the pre-shutdown hooks stop: controllers finish and are joined, the gate
 *                   of the term (holdfast/leader.h) is shut,
 *                   the Lease is released ................... PreShutdownHooksStopped
 *
 *      after a) and b) ...................................... NotAcceptingNewRequest
 *              without --shutdown-send-retry-after:
 *                the listener closes ........................ HTTPServerStoppedListening
 *                watches end, requests in progress end ...... InFlightRequestsDrained
 *              with it:
 *                new requests get 429 with Retry-After
 *                watches end, requests in progress end ...... InFlightRequestsDrained
 *                the listener closes ........................ HTTPServerStoppedListening
 *
 *      end     the hooks' token `stopped` fires; everything is freed; exit status 0, or another
 *              one after a failure (main/sequence.c)
 *
 * The API serves while the hooks stop, because the release of the Lease goes through it. A SIGTERM
 * or SIGINT more than a second after the first one exits at once. A controller that does not stop
 * ends the process without a release.
 *
 * This type only records the signals; other files set them. If the start fails, its remaining
 * signals are not set. The mutex mu guards the times. No other lock is taken while it is held.
 * Thread: any, except for init and done.
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
        pthread_cond_t cond;         /* broadcast with each new signal */
        hf_nsec at[_HFD_SIGNAL_MAX]; /* guarded by mu: boot time of the signal; 0 = not set */
};

/* host outlives lifecycle. 0 or -errno; after an error there is nothing to undo. */
int hfd_lifecycle_init(struct hfd_lifecycle *lifecycle, const struct hf_host *host);
/* Requires that no thread uses lifecycle or waits on it any more. */
void hfd_lifecycle_done(struct hfd_lifecycle *lifecycle);
/* Sets a signal and logs its name. Further calls with the same signal do nothing. Blocks at most on
 * the log sink. */
void hfd_lifecycle_signal(struct hfd_lifecycle *lifecycle, enum hfd_signal signal);
bool hfd_lifecycle_signalled(struct hfd_lifecycle *lifecycle, enum hfd_signal signal);
/* Blocks until the signal is set (0), or until boot time deadline (HF_E_TIMEOUT). Or -errno. */
int hfd_lifecycle_wait(struct hfd_lifecycle *lifecycle, enum hfd_signal signal, hf_nsec deadline);
/* The name as in kube-apiserver; static. */
const char *hfd_signal_name(enum hfd_signal signal);

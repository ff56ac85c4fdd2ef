/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The graceful shutdown, in the order that lifecycle.h draws.
 *
 * Invariants. The API serves until the pre-shutdown hooks have returned, because the release of the
 * Lease and the last writes of the controllers go through it. The server refuses new requests
 * before it waits for those in progress, so that the wait ends.
 */
#include "server/main/shutdown.h"

#include <assert.h>

#include "server/server.h"

/*
 * How long a leader pauses after its hooks have released the Lease. Closing and freeing use a
 * processor for some milliseconds. If the successor is on the same machine, this would delay its
 * first writes.
 */
#define SUCCESSOR_PAUSE (25 * HF_NSEC_PER_MSEC)
/* How long to wait for requests in progress. Equals kube-apiserver's default request timeout. */
#define DRAIN_TIMEOUT (60 * HF_NSEC_PER_SEC)
/* How long clients may take to read the last bytes of responses and watches. */
#define CLOSE_TIMEOUT (2 * HF_NSEC_PER_SEC)

static int stop_hooks(struct hfd_server *server, struct hf_status *reterr_status) {
        int r = hf_hooks_stop(server->hooks, reterr_status);

        if (r != 0)
                hf_log(&server->host.log, HF_LOG_ERROR, "lifecycle", "pre-shutdown hooks: %s",
                       reterr_status->message);
        hfd_lifecycle_signal(&server->lifecycle, HFD_PRE_SHUTDOWN_HOOKS_STOPPED);
        return r;
}

static void stop_listening(struct hfd_server *server) {
        hfd_http_stop_accepting(server->http);
        hfd_lifecycle_signal(&server->lifecycle, HFD_HTTP_SERVER_STOPPED_LISTENING);
}

static void drain_requests(struct hfd_server *server) {
        hf_nsec deadline = hfd_server_now(server) + DRAIN_TIMEOUT;

        hfd_cacher_end_watches(server->cacher);
        if (hfd_filters_wait_drained(server->filters, deadline) == HF_E_TIMEOUT)
                hf_log(&server->host.log, HF_LOG_WARNING, "lifecycle",
                       "%zu requests are still in progress after %d s: closing their connections",
                       hfd_filters_inflight(server->filters),
                       (int)(DRAIN_TIMEOUT / HF_NSEC_PER_SEC));
        hfd_lifecycle_signal(&server->lifecycle, HFD_IN_FLIGHT_REQUESTS_DRAINED);
}

/* Refuses new requests, waits for those in progress and closes the listener. With
 * --shutdown-send-retry-after the listener stays open during the drain, so that new requests get a
 * 429 instead of a refused connection. */
static void close_api(struct hfd_server *server) {
        hfd_filters_refuse(server->filters);
        hfd_lifecycle_signal(&server->lifecycle, HFD_NOT_ACCEPTING_NEW_REQUEST);
        if (server->config->shutdown_send_retry_after) {
                drain_requests(server);
                stop_listening(server);
        } else {
                stop_listening(server);
                drain_requests(server);
        }
        (void)hfd_http_wait_closed(server->http, hfd_server_now(server) + CLOSE_TIMEOUT);
}

static bool is_leading(struct hfd_server *server) {
        struct hf_leader_info info = {.size = sizeof info};

        hf_elector_info(server->elector, &info);
        return info.state == HF_LEADING;
}

int hfd_shutdown_run(struct hfd_server *server, struct hf_status *reterr_status) {
        assert(server->controllers && server->elector && server->hooks);
        assert(!hfd_lifecycle_signalled(&server->lifecycle, HFD_SHUTDOWN_INITIATED));
        hfd_lifecycle_signal(&server->lifecycle, HFD_SHUTDOWN_INITIATED);
        hfd_server_wake(server); /* main starts the shutdown delay, in parallel with the hooks */
        hfd_controllers_leave(server->controllers);
        bool was_leading = is_leading(server);
        int r = stop_hooks(server, reterr_status);
        if (r == HF_E_STUCK)
                return r;
        if (was_leading)
                (void)hf_cancel_wait(hf_cancel_never(), hfd_server_now(server) + SUCCESSOR_PAUSE);
        /* The controllers have been joined. Their informers are freed before the API closes:
         * otherwise each would log the end of its watch as an error. */
        server->controllers = hfd_controllers_free(server->controllers);
        /* During the shutdown delay load balancers notice that readyz fails. */
        (void)hfd_lifecycle_wait(&server->lifecycle, HFD_AFTER_SHUTDOWN_DELAY_DURATION,
                                 HF_NSEC_NEVER);
        close_api(server);
        hf_hooks_fire_stopped(server->hooks);
        return r;
}

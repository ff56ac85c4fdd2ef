/* SPDX-License-Identifier: Apache-2.0 */
/* The graceful termination whose timeline stands in lifecycle.h. Runs on the sequence thread, after
 * boot has returned. */
#include <stdlib.h>

#include "server/server.h"

/*
 * After a release the end of this process waits for so long: closing, freeing and unmapping take
 * some milliseconds of processor, which on a machine that runs the successor too would come out of
 * the hand-over's gap.
 */
#define SUCCESSOR_FIRST (25 * HF_NSEC_PER_MSEC)
#define DRAIN_DEADLINE                                                                             \
        (60 * HF_NSEC_PER_SEC) /* of requests under way: the field's RequestTimeout */
#define CLOSE_DEADLINE                                                                             \
        (2 * HF_NSEC_PER_SEC) /* for the last bytes of answers and of watches to be taken by their \
                                 readers */

static int stop_hooks(struct hfd_host *h, struct hf_status *reterr_status) {
        int r = h->hooks ? hf_hooks_stop(h->hooks, reterr_status) : 0;

        if (r)
                hf_log(&h->host.log, HF_LOG_ERROR, "lifecycle", "pre-shutdown hooks: %s",
                       reterr_status->message);
        hfd_lifecycle_signal(&h->lifecycle, HFD_PRE_SHUTDOWN_HOOKS_STOPPED);
        return r;
}

static void stop_listening(struct hfd_host *h) {
        hfd_http_stop_accepting(h->http);
        hfd_lifecycle_signal(&h->lifecycle, HFD_HTTP_SERVER_STOPPED_LISTENING);
}

static void drain_requests(struct hfd_host *h) {
        hf_nsec deadline = hf_now(hf_host_clock(&h->host)) + DRAIN_DEADLINE;

        hfd_api_end_watches(h->api);
        if (hfd_filters_wait_drained(h->filters, deadline) == HF_E_TIMEOUT)
                hf_log(&h->host.log, HF_LOG_WARNING, "lifecycle",
                       "%zu requests are still under way after %d s: they are cut",
                       hfd_filters_inflight(h->filters), (int)(DRAIN_DEADLINE / HF_NSEC_PER_SEC));
        hfd_lifecycle_signal(&h->lifecycle, HFD_IN_FLIGHT_REQUESTS_DRAINED);
}

static bool is_leading(struct hfd_host *h) {
        struct hf_leader_info info = {0};

        if (h->elector)
                hf_elector_info(h->elector, &info);
        return info.state == HF_LEADING;
}

int hfd_host_shut_down(struct hfd_host *h, struct hf_status *reterr_status) {
        hfd_lifecycle_signal(&h->lifecycle, HFD_SHUTDOWN_INITIATED);
        hfd_host_wake(h); /* main starts the shutdown delay, which runs beside the hooks */
        if (h->controllers)
                hfd_controllers_leave(h->controllers);
        bool led = is_leading(h);
        int r = stop_hooks(h, reterr_status);
        if (r == HF_E_STUCK)
                return r;
        if (led)
                (void)hf_cancel_wait(hf_cancel_never(),
                                     hf_now(hf_host_clock(&h->host)) + SUCCESSOR_FIRST);
        /* Their work has joined. Their caches' watches are not to be refused by the API that stops,
         * for they would say so as a fault. */
        h->controllers = hfd_controllers_free(h->controllers);
        /* Load balancers are given that time to notice that readyz is red. */
        (void)hfd_lifecycle_wait(&h->lifecycle, HFD_AFTER_SHUTDOWN_DELAY_DURATION, HF_NSEC_NEVER);
        hfd_filters_refuse(h->filters);
        hfd_lifecycle_signal(&h->lifecycle, HFD_NOT_ACCEPTING_NEW_REQUEST);
        if (h->config->shutdown_send_retry_after) {
                drain_requests(h);
                stop_listening(h);
        } else {
                stop_listening(h);
                drain_requests(h);
        }
        (void)hfd_http_wait_closed(h->http, hf_now(hf_host_clock(&h->host)) + CLOSE_DEADLINE);
        if (h->hooks)
                hf_hooks_stopped(h->hooks);
        return r;
}

/* From the outside in: first what calls, then what is called; nobody waits for the store any more.
 */
void hfd_host_free(struct hfd_host *h) {
        if (h->store)
                h->store->ops->stop(
                        h->store); /* what still waits for a store that hangs is told now */
        hf_hooks_free(h->hooks);
        hf_electors_free(h->electors);
        hf_bootstrap_free(h->bootstrap);
        hfd_controllers_free(h->controllers);
        hfd_http_free(h->http);
        hf_client_free(h->loopback);
        hfd_compactor_free(h->compactor);
        hfd_api_free(h->api);
        if (h->store)
                h->store->ops->free(h->store);
        hfd_filters_free(h->filters);
        hfd_endpoints_free(h->endpoints);
        hfd_router_free(h->router);
        hfd_auth_free(h->auth);
        hfd_pki_done(&h->pki);
        hfd_runfile_free(h->runfile);
        hfd_runfile_free(h->data_lock);
        free(h->server_cert_pem);
        free(h->server_key_pem);
        free(h->client_ca_pem);
        hf_health_free(h->host.health);
        hf_metrics_free(h->host.metrics);
}

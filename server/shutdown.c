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

static int stop_hooks(struct hfd_server *server, struct hf_status *reterr_status) {
        int r = server->hooks ? hf_hooks_stop(server->hooks, reterr_status) : 0;

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
        hf_nsec deadline = hf_now(hf_host_clock(&server->host)) + DRAIN_DEADLINE;

        hfd_cacher_end_watches(server->cacher);
        if (hfd_filters_wait_drained(server->filters, deadline) == HF_E_TIMEOUT)
                hf_log(&server->host.log, HF_LOG_WARNING, "lifecycle",
                       "%zu requests are still under way after %d s: they are cut",
                       hfd_filters_inflight(server->filters),
                       (int)(DRAIN_DEADLINE / HF_NSEC_PER_SEC));
        hfd_lifecycle_signal(&server->lifecycle, HFD_IN_FLIGHT_REQUESTS_DRAINED);
}

static bool is_leading(struct hfd_server *server) {
        struct hf_leader_info info = {0};

        if (server->elector)
                hf_elector_info(server->elector, &info);
        return info.state == HF_LEADING;
}

int hfd_server_shut_down(struct hfd_server *server, struct hf_status *reterr_status) {
        hfd_lifecycle_signal(&server->lifecycle, HFD_SHUTDOWN_INITIATED);
        hfd_server_wake(server); /* main starts the shutdown delay, which runs beside the hooks */
        if (server->controllers)
                hfd_controllers_leave(server->controllers);
        bool led = is_leading(server);
        int r = stop_hooks(server, reterr_status);
        if (r == HF_E_STUCK)
                return r;
        if (led)
                (void)hf_cancel_wait(hf_cancel_never(),
                                     hf_now(hf_host_clock(&server->host)) + SUCCESSOR_FIRST);
        /* Their work has joined. Their caches' watches are not to be refused by the API that stops,
         * for they would say so as a fault. */
        server->controllers = hfd_controllers_free(server->controllers);
        /* Load balancers are given that time to notice that readyz is red. */
        (void)hfd_lifecycle_wait(&server->lifecycle, HFD_AFTER_SHUTDOWN_DELAY_DURATION,
                                 HF_NSEC_NEVER);
        hfd_filters_refuse(server->filters);
        hfd_lifecycle_signal(&server->lifecycle, HFD_NOT_ACCEPTING_NEW_REQUEST);
        if (server->config->shutdown_send_retry_after) {
                drain_requests(server);
                stop_listening(server);
        } else {
                stop_listening(server);
                drain_requests(server);
        }
        (void)hfd_http_wait_closed(server->http,
                                   hf_now(hf_host_clock(&server->host)) + CLOSE_DEADLINE);
        if (server->hooks)
                hf_hooks_stopped(server->hooks);
        return r;
}

/* From the outside in: first what calls, then what is called; nobody waits for the store any more.
 */
void hfd_server_free(struct hfd_server *server) {
        if (server->store)
                server->store->ops->stop(
                        server->store); /* what still waits for a store that hangs is told now */
        hf_hooks_free(server->hooks);
        hf_electors_free(server->electors);
        hf_bootstrap_free(server->bootstrap);
        hfd_controllers_free(server->controllers);
        hfd_http_free(server->http);
        hf_client_free(server->loopback);
        hfd_compactor_free(server->compactor);
        hfd_registry_free(server->registry);
        hfd_cacher_free(server->cacher);
        if (server->store)
                server->store->ops->free(server->store);
        hfd_filters_free(server->filters);
        hfd_healthz_free(server->healthz);
        hfd_metrics_handler_free(server->metrics_handler);
        hfd_router_free(server->router);
        hfd_auth_free(server->auth);
        hfd_pki_done(&server->pki);
        hfd_runfile_free(server->runfile);
        hfd_runfile_free(server->data_lock);
        free(server->server_cert_pem);
        free(server->server_key_pem);
        free(server->client_ca_pem);
        hf_health_free(server->host.health);
        hf_metrics_free(server->host.metrics);
}

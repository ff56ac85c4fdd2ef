/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Initializes and destroys struct hfd_server (server.h).
 *
 * Invariant: the struct outlives its objects. main/assembly.c creates them after the initialization
 * and frees them before hfd_server_done, because they log through the host and use its clock.
 */
#include "server/server.h"

#include <assert.h>
#include <errno.h>
#include <stdio.h>
#include <sys/eventfd.h>
#include <unistd.h>

#include "base/cleanup.h"
#include "base/descriptor.h"
#include "base/thread.h"

HF__CLEANUP_DEFINE(cancel_cleanup, struct hf_cancel *, hf_cancel_unref)

int hfd_server_init(struct hfd_server *server, const struct hfd_config *config,
                    const struct hfd_extra *extra) {
        static const struct hfd_extra nothing;

        *server = (struct hfd_server){.host = {.size = sizeof server->host,
                                               .clock = hf_clock_system()},
                                      .config = config,
                                      .extra = extra ? extra : &nothing};
        hfd_log_sink_init(&server->log_sink, config, &server->host.log);
        HF__CLEANUP(hf__close_cleanup) int event_fd = eventfd(0, EFD_CLOEXEC | EFD_NONBLOCK);
        if (event_fd < 0)
                return -errno;
        HF__CLEANUP(cancel_cleanup) struct hf_cancel *stop = NULL;
        int r = hf_cancel_new(NULL, server->host.clock, &stop);
        if (r != 0)
                return r;
        r = hf__mutex_init(&server->elector_mu);
        if (r != 0)
                return r;
        r = hfd_lifecycle_init(&server->lifecycle, &server->host);
        if (r != 0) {
                (void)pthread_mutex_destroy(&server->elector_mu);
                return r;
        }
        server->stop = HF__TAKE(stop);
        server->event_fd = event_fd;
        event_fd = -1; /* it is the server's now */
        return 0;
}

void hfd_server_done(struct hfd_server *server) {
        /* The objects must be freed first, because they log through the host and wait for the stop
         * token. */
        assert(!server->hooks && !server->http && !server->store && !server->host.metrics);
        server->stop = hf_cancel_unref(server->stop);
        hfd_lifecycle_done(&server->lifecycle);
        (void)pthread_mutex_destroy(&server->elector_mu);
        (void)close(server->event_fd);
}

void hfd_server_report_failure(struct hfd_server *server, const struct hf_status *status) {
        if (server->log_sink.uses_journal)
                hf_log(&server->host.log, HF_LOG_ERROR, "holdfastd", "start failed: %s",
                       status->message);
        else
                (void)fprintf(stderr, "holdfastd: %s\n", status->message);
}

void hfd_server_wake(struct hfd_server *server) {
        uint64_t one = 1;

        assert(server->event_fd >= 0);
        /* The write fails only if the eventfd's counter is at its maximum, and then main wakes up
         * anyway. */
        ssize_t written = write(server->event_fd, &one, sizeof one);
        (void)written;
}

hf_nsec hfd_server_now(const struct hfd_server *server) {
        return hf_now(hf_host_clock(&server->host));
}

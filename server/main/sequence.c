/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The sequence thread. It exists so that main can wait for signals and feed the watchdog while the
 * boot and the shutdown block.
 *
 *      boot --ready--> wait for the stop token --> shut down --> end
 *        +-------------failed or stopped-------------^
 *
 * Exit status: 0 after a requested stop; after a failed boot 2 if only the user can correct the
 * mistake (a flag or a file), else 1; 1 if main stops the server because of a copy into its
 * store; 70 if a controller or another hook does not stop.
 *
 * Invariant: with status 70 the process ends at once, by _exit. The thread that did not stop in
 * time may still use the objects, so nothing may be freed. And if it is a controller's, the Lease
 * is not released, because the controller may still write.
 */
#include "server/main/sequence.h"

#include <assert.h>
#include <unistd.h>

#include "base/thread.h"
#include "server/main/boot.h"
#include "server/main/shutdown.h"
#include "server/server.h"
#include "server/systemd/sdnotify.h"

#define EXIT_STUCK 70 /* EX_SOFTWARE */

struct boot {
        struct hfd_server *server;
        struct hf_status *status; /* borrowed */
};

static int run_boot(void *ctx) {
        const struct boot *boot = ctx;

        return hfd_boot_run(boot->server, boot->status);
}

/* 0, HF_E_STUCK, or the error of the boot. The message is set unless the result is 0. */
static int run_sequence(struct hfd_server *server, struct hf_status *reterr_status) {
        struct boot boot = {.server = server, .status = reterr_status};
        struct hf_status why = {0};
        /* On a thread of its own, so that the stack and the allocator's cache that this work uses
         * do not stay in memory (hf__thread_run). */
        int r = hf__thread_run(&server->host, "hf-boot", run_boot, &boot);

        if (r == 0)
                (void)hf_cancel_wait(server->stop, HF_NSEC_NEVER);
        else if (r == HF_E_CANCELED && hf_cancel_fired(server->stop))
                r = 0; /* a stop during the boot is not a failure */
        else
                hfd_server_report_failure(server, reterr_status);
        /* hfd_shutdown_run logs the failures of hooks. Except for HF_E_STUCK they do not change the
         * exit status, because the process has stopped as requested. */
        if (hfd_shutdown_run(server, &why) == HF_E_STUCK) {
                *reterr_status = why;
                return HF_E_STUCK;
        }
        /* HF_STUCK is final: the Lease was not released, even if the controller has stopped
         * since. */
        if (r == 0 && atomic_load(&server->stuck))
                return hf_fail(reterr_status, HF_E_STUCK, "a controller did not stop in time");
        return r;
}

void *hfd_sequence_thread(void *ctx) {
        struct hfd_server *server = ctx;
        struct hf_status status = {0};

        assert(!atomic_load(&server->sequence_ended));
        int r = run_sequence(server, &status);
        if (r == HF_E_STUCK) {
                /* Another hook that is stuck does not prevent the release. */
                const char *effect =
                        atomic_load(&server->stuck) ? "the lease is not released, " : "";
                hf_log(&server->host.log, HF_LOG_ERROR, "holdfastd", "%s; %sexiting",
                       status.message, effect);
                _exit(EXIT_STUCK);
        }
        if (r != 0)
                hfd_sdnotify_status("%s", status.message);
        /* The boot may have set status 2. */
        if (r != 0 && atomic_load(&server->exit_status) == 0)
                atomic_store(&server->exit_status, 1);
        atomic_store(&server->sequence_ended, true);
        hfd_server_wake(server);
        return NULL;
}

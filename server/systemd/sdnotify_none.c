/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Replaces sdnotify.c in a build without libsystemd (-Dsystemd=disabled).
 *
 * Invariant: no notification is sent, the watchdog gets no messages, and a socket that the service
 * manager passes is not used; but the log has a warning if the service manager expects one of
 * these, because it would wait for them.
 */
#include "server/systemd/sdnotify.h"

#include <stdlib.h>

bool hfd_sdnotify_supported(void) { return false; }

void hfd_sdnotify_warn_unsupported(const struct hf_log *log) {
        bool notify = getenv("NOTIFY_SOCKET") != NULL, listen = getenv("LISTEN_FDS") != NULL;
        const char *ignored = "NOTIFY_SOCKET and LISTEN_FDS";

        if (!notify && !listen)
                return;
        if (!listen)
                ignored = "NOTIFY_SOCKET";
        else if (!notify)
                ignored = "LISTEN_FDS";
        hf_log(log, HF_LOG_WARNING, "holdfastd",
               "this build has no libsystemd and ignores %s in the environment", ignored);
}

void hfd_sdnotify_ready(void) {}

void hfd_sdnotify_stopping(void) {}

void hfd_sdnotify_reloading(void) {}

void hfd_sdnotify_status(const char *format, ...) { (void)format; }

void hfd_sdnotify_extend_timeout(hf_nsec more) { (void)more; }

void hfd_sdnotify_watchdog(void) {}

hf_nsec hfd_sdnotify_watchdog_interval(void) { return 0; }

int hfd_sdnotify_listen_fd(int *ret_fd, struct hf_status *reterr_status) {
        (void)reterr_status;
        *ret_fd = -1;
        return 0;
}

/* SPDX-License-Identifier: Apache-2.0 */
#pragma once
/*
 * The service manager's side: readiness, the watchdog and socket activation.
 *
 * There are two implementations, and the build chooses one. sdnotify.c uses libsystemd.
 * sdnotify_none.c is for a build without libsystemd: its functions do nothing, and the server
 * behaves as it does outside systemd.
 *
 * A notification does nothing when NOTIFY_SOCKET is unset, and a failed notification is ignored:
 * the server tells the service manager what it does, and never depends on it. Thread: any, while no
 * thread changes the environment. hfd_notify_listen_fd changes it: from main, before other threads
 * start.
 */
#include <stdbool.h>

#include <holdfast/clock.h>
#include <holdfast/error.h>
#include <holdfast/log.h>

bool hfd_notify_supported(void); /* false: this build has no libsystemd */
/*
 * Logs one warning when the service manager expects something (NOTIFY_SOCKET, LISTEN_FDS) that this
 * build cannot do. Call it before hfd_notify_listen_fd, which takes LISTEN_FDS out of the
 * environment.
 */
void hfd_notify_warn_unsupported(const struct hf_log *log);

void hfd_notify_ready(void);    /* READY=1: also ends a reload */
void hfd_notify_stopping(void); /* STOPPING=1 */
void hfd_notify_reloading(void);
void hfd_notify_status(const char *format, ...)
        __attribute__((format(printf, 1, 2))); /* STATUS=, one line */
/* Asks for that much more time to start or stop, counted from now. Ask again before it has passed.
 */
void hfd_notify_extend(hf_nsec more);
void hfd_notify_watchdog(void); /* WATCHDOG=1 */

/* How often to send WATCHDOG=1: half of the watchdog's timeout. 0 = this process has no watchdog.
 */
hf_nsec hfd_notify_watchdog_interval(void);

/*
 * The listening socket that the service manager passed to this process, close-on-exec. *ret_fd is
 * -1 when there is none. Takes LISTEN_* out of the environment. HF_E_INVALID: more than one, or not
 * a listening stream socket.
 */
int hfd_notify_listen_fd(int *ret_fd, struct hf_status *reterr_status);

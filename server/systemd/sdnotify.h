/* SPDX-License-Identifier: Apache-2.0 */
#pragma once
/*
 * The protocol with the service manager: readiness, the watchdog and socket activation.
 *
 * There are two implementations, and the build chooses one. sdnotify.c uses libsystemd.
 * sdnotify_none.c is for a build without libsystemd: apart from one warning its functions do
 * nothing, and the server behaves as it does outside systemd.
 *
 * A notification does nothing when NOTIFY_SOCKET is unset, and a failed notification is ignored:
 * the server reports to the service manager and never depends on it. If the service manager does
 * not read, READY=1, STOPPING=1 and RELOADING=1 wait for it for five seconds, and are lost then.
 * All others are dropped at once: they are sent again, or replaced by the next one.
 *
 * Thread: any, while no thread changes the environment. hfd_sdnotify_listen_fd changes it: when it
 * is called, no other thread may run that could read the environment.
 */
#include <stdbool.h>

#include <holdfast/clock.h>
#include <holdfast/error.h>
#include <holdfast/log.h>

/* False: this build has no libsystemd. */
bool hfd_sdnotify_supported(void);
/* Logs one warning if the environment shows that the service manager expects something which this
 * build cannot do (NOTIFY_SOCKET, LISTEN_FDS), or cannot do because libsystemd cannot be loaded
 * (WATCHDOG_USEC). Call it before hfd_sdnotify_listen_fd, which removes LISTEN_FDS. */
void hfd_sdnotify_warn_unsupported(const struct hf_log *log);

/* READY=1: the start is complete, or a reload is. */
void hfd_sdnotify_ready(void);
/* STOPPING=1 */
void hfd_sdnotify_stopping(void);
/* RELOADING=1: a reload has begun. It lasts until hfd_sdnotify_ready. */
void hfd_sdnotify_reloading(void);
/* STATUS=. A line break in the text becomes a space; more than 599 bytes are cut. */
void hfd_sdnotify_status(const char *format, ...) __attribute__((format(printf, 1, 2)));
/* EXTEND_TIMEOUT_USEC: requests this much more time, counted from now, to start or stop. Call again
 * before that time has passed. */
void hfd_sdnotify_extend_timeout(hf_nsec more);
/* WATCHDOG=1 */
void hfd_sdnotify_watchdog(void);

/* How often to call hfd_sdnotify_watchdog: half of the watchdog's timeout. 0 = this process has no
 * watchdog, or libsystemd cannot be loaded. */
hf_nsec hfd_sdnotify_watchdog_interval(void);

/*
 * The listening socket that the service manager passed to this process. It is close-on-exec, and
 * the caller owns it. *ret_fd is -1 if there is none. Removes LISTEN_* from the environment.
 * HF_E_INVALID: LISTEN_* is malformed, there is more than one socket, it is not a listening stream
 * socket, or libsystemd cannot be loaded.
 */
int hfd_sdnotify_listen_fd(int *ret_fd, struct hf_status *reterr_status);

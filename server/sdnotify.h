/* SPDX-License-Identifier: Apache-2.0 */
#pragma once
/*
 * The service manager's side: sd_notify(3), the watchdog, socket activation.
 *
 * Every notification does nothing when NOTIFY_SOCKET is unset, and a failed one is ignored: the
 * service manager is told, never depended on. Thread: any, while nobody changes the environment;
 * hfd_notify_listen_fd from main, before threads.
 */
#include <holdfast/clock.h>
#include <holdfast/error.h>

void hfd_notify_ready(void);    /* READY=1: also ends a reload */
void hfd_notify_stopping(void); /* STOPPING=1 */
void hfd_notify_reloading(void);
void hfd_notify_status(const char *format, ...)
        __attribute__((format(printf, 1, 2))); /* STATUS=, one line */
/* Asks for that much more time to start or stop, counted from now; to be repeated before it has
 * passed. */
void hfd_notify_extend(hf_nsec more);
void hfd_notify_watchdog(void); /* WATCHDOG=1 */

/* How often the watchdog wants to hear of us: half its timeout. 0 = there is none for this process.
 */
hf_nsec hfd_notify_watchdog_interval(void);

/*
 * The listening socket that the service manager holds for us, close-on-exec; *ret_fd is -1 when
 * there is none. Takes LISTEN_* out of the environment. HF_E_INVALID: more than one, or not a
 * listening stream socket.
 */
int hfd_notify_listen_fd(int *ret_fd, struct hf_status *reterr_status);

/* SPDX-License-Identifier: Apache-2.0 */
#include "server/sdnotify.h"

#include <errno.h>
#include <stdarg.h>
#include <stdio.h>
#include <string.h>
#include <sys/socket.h>
#include <systemd/sd-daemon.h>

void hfd_notify_ready(void) { (void)sd_notify(0, "READY=1"); }

void hfd_notify_stopping(void) { (void)sd_notify(0, "STOPPING=1"); }

/* MONOTONIC_USEC is for Type=notify-reload of newer managers; older ones ignore it. */
void hfd_notify_reloading(void) {
        const struct hf_clock *clock = hf_clock_system();
        (void)sd_notifyf(0, "RELOADING=1\nMONOTONIC_USEC=%lld", (long long)(clock->monotonic(clock->ctx) / HF_NSEC_PER_USEC));
}

/* A newline would start another assignment. */
void hfd_notify_status(const char *format, ...) {
        char text[512];
        va_list args;
        va_start(args, format);
        int n = vsnprintf(text, sizeof text, format, args);
        va_end(args);
        if (n < 0)
                return;
        for (char *c = text; *c; c++)
                if (*c == '\n' || *c == '\r')
                        *c = ' ';
        (void)sd_notifyf(0, "STATUS=%s", text);
}

void hfd_notify_extend(hf_nsec more) { (void)sd_notifyf(0, "EXTEND_TIMEOUT_USEC=%lld", (long long)(more / HF_NSEC_PER_USEC)); }

void hfd_notify_watchdog(void) { (void)sd_notify(0, "WATCHDOG=1"); }

hf_nsec hfd_notify_watchdog_interval(void) {
        uint64_t usec = 0;
        if (sd_watchdog_enabled(0, &usec) <= 0 || usec > (uint64_t)INT64_MAX / 1000)
                return 0;
        return (hf_nsec)(usec / 2) * HF_NSEC_PER_USEC;
}

int hfd_notify_listen_fd(int *ret_fd, struct hf_status *reterr_status) {
        int n = sd_listen_fds(1);
        if (n < 0)
                return hf_fail(reterr_status, HF_E_INVALID, "LISTEN_FDS or LISTEN_PID in the environment is not usable: %s", strerror(-n));
        if (n > 1)
                return hf_fail(reterr_status, HF_E_INVALID, "the service manager passed %d sockets; holdfastd takes one", n);
        if (n == 1 && sd_is_socket(SD_LISTEN_FDS_START, AF_UNSPEC, SOCK_STREAM, 1) <= 0)
                return hf_fail(reterr_status, HF_E_INVALID, "what the service manager passed is not a listening stream socket");
        *ret_fd = n == 1 ? SD_LISTEN_FDS_START : -1;
        return 0;
}

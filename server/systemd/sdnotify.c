/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Talks to the service manager with libsystemd: sd_notify(3), sd_watchdog_enabled(3),
 * sd_listen_fds_with_names(3). sdnotify_none.c replaces it in a build without libsystemd.
 *
 * Invariant: a text cannot add an assignment to a message. Assignments are separated by line
 * breaks, so line breaks in a text, such as an error message, are replaced.
 */
#include "server/systemd/sdnotify.h"

#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <systemd/sd-daemon.h>

bool hfd_notify_supported(void) { return true; }

void hfd_notify_warn_unsupported(const struct hf_log *log) { (void)log; }

void hfd_notify_ready(void) { (void)sd_notify(0, "READY=1"); }

void hfd_notify_stopping(void) { (void)sd_notify(0, "STOPPING=1"); }

/* systemd needs MONOTONIC_USEC for Type=notify-reload, which exists since version 253. Older
 * versions ignore it. */
void hfd_notify_reloading(void) {
        const struct hf_clock *clock = hf_clock_system();
        hf_nsec now = clock->monotonic(clock->ctx);

        (void)sd_notifyf(0, "RELOADING=1\nMONOTONIC_USEC=%lld",
                         (long long)(now / HF_NSEC_PER_USEC));
}

void hfd_notify_status(const char *format, ...) {
        char text[600];
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

void hfd_notify_extend_timeout(hf_nsec more) {
        (void)sd_notifyf(0, "EXTEND_TIMEOUT_USEC=%lld", (long long)(more / HF_NSEC_PER_USEC));
}

void hfd_notify_watchdog(void) { (void)sd_notify(0, "WATCHDOG=1"); }

/* An invalid WATCHDOG_USEC counts as no watchdog. If the service manager expects messages all the
 * same, it restarts the process, which makes the mistake visible. */
hf_nsec hfd_notify_watchdog_interval(void) {
        uint64_t usec;

        if (sd_watchdog_enabled(0, &usec) <= 0 || usec > (uint64_t)INT64_MAX / HF_NSEC_PER_USEC)
                return 0;
        return (hf_nsec)(usec / 2) * HF_NSEC_PER_USEC;
}

/* Joins the names of the sockets for an error message. names is NULL-terminated. */
static void join_names(char *const *names, char *text, size_t max_text) {
        size_t n = 0;

        text[0] = '\0';
        for (size_t i = 0; names[i] && n < max_text; i++)
                n += (size_t)snprintf(text + n, max_text - n, "%s%.60s", i ? ", " : "", names[i]);
}

static void free_names(char **names) {
        for (size_t i = 0; names && names[i]; i++)
                free(names[i]);
        free(names);
}

int hfd_notify_listen_fd(int *ret_fd, struct hf_status *reterr_status) {
        char **names = NULL, text[256];
        int n = sd_listen_fds_with_names(1, &names);
        int r = 0;

        if (n < 0) {
                r = hf_fail(reterr_status, HF_E_INVALID,
                            "LISTEN_FDS or LISTEN_PID in the environment is invalid: %s",
                            strerror(-n));
        } else if (n > 1) {
                join_names(names, text, sizeof text);
                r = hf_fail(reterr_status, HF_E_INVALID,
                            "the service manager passed %d sockets; holdfastd takes one: %s", n,
                            text);
        } else if (n == 1 && sd_is_socket(SD_LISTEN_FDS_START, AF_UNSPEC, SOCK_STREAM, 1) <= 0) {
                r = hf_fail(reterr_status, HF_E_INVALID,
                            "the socket that the service manager passed is not a listening stream "
                            "socket: the socket unit needs ListenStream=");
        }
        free_names(names);
        if (r == 0)
                *ret_fd = n == 1 ? SD_LISTEN_FDS_START : -1;
        return r;
}

/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Talks to the service manager with libsystemd: sd_watchdog_enabled(3),
 * sd_listen_fds_with_names(3), sd_is_socket(3). sdnotify_none.c replaces this file in a build
 * without libsystemd.
 *
 * The messages themselves are datagrams to the socket NOTIFY_SOCKET, as sd_notify(3) describes.
 * sd_notify itself would block the main thread, which handles the signals, for as long as the
 * service manager does not read. Here a message that will be repeated is dropped instead, and any
 * other one waits for WAIT_S at most.
 *
 * Invariant: a text cannot add an assignment to a message. Assignments are separated by line
 * breaks, so line breaks in a text, such as an error message, are replaced.
 */
#include "server/systemd/sdnotify.h"

#include <stdarg.h>
#include <stddef.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/time.h>
#include <sys/un.h>
#include <systemd/sd-daemon.h>
#include <unistd.h>

#include "server/systemd/systemd_library.h"

#define WAIT_S 5

bool hfd_sdnotify_supported(void) { return true; }

void hfd_sdnotify_warn_unsupported(const struct hf_log *log) {
        if (getenv("WATCHDOG_USEC") && !hfd_systemd_library())
                hf_log(log, HF_LOG_WARNING, "holdfastd",
                       "the watchdog gets no messages, because " HFD_SYSTEMD_LIBRARY_MISSING);
}

/* Connects to the service manager. -1: there is none, or it cannot be reached. */
static int connect_manager(void) {
        struct sockaddr_un address = {.sun_family = AF_UNIX};
        const char *name = getenv("NOTIFY_SOCKET");
        size_t n = name ? strlen(name) : 0;
        int fd;

        if (n < 2 || n >= sizeof address.sun_path || (name[0] != '/' && name[0] != '@'))
                return -1;
        memcpy(address.sun_path, name, n);
        if (name[0] == '@') /* an abstract name */
                address.sun_path[0] = '\0';
        fd = socket(AF_UNIX, SOCK_DGRAM | SOCK_CLOEXEC, 0);
        if (fd >= 0 && connect(fd, (struct sockaddr *)&address,
                               (socklen_t)(offsetof(struct sockaddr_un, sun_path) + n)) != 0) {
                close(fd);
                return -1;
        }
        return fd;
}

/* flags: MSG_DONTWAIT drops the message if the service manager does not read; 0 waits. */
static void send_message(const char *text, int flags) {
        const struct timeval wait = {.tv_sec = WAIT_S};
        int fd = connect_manager();

        if (fd < 0)
                return;
        if (setsockopt(fd, SOL_SOCKET, SO_SNDTIMEO, &wait, sizeof wait) != 0)
                flags = MSG_DONTWAIT;
        (void)send(fd, text, strlen(text), flags | MSG_NOSIGNAL);
        close(fd);
}

void hfd_sdnotify_ready(void) { send_message("READY=1", 0); }

void hfd_sdnotify_stopping(void) { send_message("STOPPING=1", 0); }

/* systemd needs MONOTONIC_USEC for Type=notify-reload, which exists since version 253. Older
 * versions ignore it. */
void hfd_sdnotify_reloading(void) {
        const struct hf_clock *clock = hf_clock_system();
        hf_nsec now = clock->monotonic(clock->ctx);
        char text[80];

        (void)snprintf(text, sizeof text, "RELOADING=1\nMONOTONIC_USEC=%lld",
                       (long long)(now / HF_NSEC_PER_USEC));
        send_message(text, 0);
}

void hfd_sdnotify_status(const char *format, ...) {
        static const char name[] = "STATUS=";
        const size_t n_name = sizeof name - 1;
        char text[sizeof name - 1 + 600];
        va_list args;

        memcpy(text, name, n_name);
        va_start(args, format);
        int n = vsnprintf(text + n_name, sizeof text - n_name, format, args);
        va_end(args);
        if (n < 0)
                return;
        for (char *c = text; *c; c++)
                if (*c == '\n' || *c == '\r')
                        *c = ' ';
        send_message(text, MSG_DONTWAIT);
}

void hfd_sdnotify_extend_timeout(hf_nsec more) {
        char text[60];

        (void)snprintf(text, sizeof text, "EXTEND_TIMEOUT_USEC=%lld",
                       (long long)(more / HF_NSEC_PER_USEC));
        send_message(text, MSG_DONTWAIT);
}

void hfd_sdnotify_watchdog(void) { send_message("WATCHDOG=1", MSG_DONTWAIT); }

/* An invalid WATCHDOG_USEC counts as no watchdog. If the service manager expects messages all the
 * same, it restarts the process, which makes the mistake visible. */
hf_nsec hfd_sdnotify_watchdog_interval(void) {
        const struct hfd_systemd_library *library;
        uint64_t usec;

        if (!getenv("WATCHDOG_USEC"))
                return 0;
        library = hfd_systemd_library();
        if (!library || library->watchdog_enabled(0, &usec) <= 0 ||
            usec > (uint64_t)INT64_MAX / HF_NSEC_PER_USEC)
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

int hfd_sdnotify_listen_fd(int *ret_fd, struct hf_status *reterr_status) {
        const struct hfd_systemd_library *library;
        char **names = NULL, text[256];
        int r = 0;

        *ret_fd = -1;
        if (!getenv("LISTEN_PID") && !getenv("LISTEN_FDS"))
                return 0;
        library = hfd_systemd_library();
        if (!library)
                return hf_fail(reterr_status, HF_E_INVALID,
                               "the service manager passed a socket, but %s",
                               HFD_SYSTEMD_LIBRARY_MISSING);
        int n = library->listen_fds_with_names(1, &names);
        if (n < 0) {
                r = hf_fail(reterr_status, HF_E_INVALID,
                            "LISTEN_FDS or LISTEN_PID in the environment is invalid: %s",
                            strerror(-n));
        } else if (n > 1) {
                join_names(names, text, sizeof text);
                r = hf_fail(reterr_status, HF_E_INVALID,
                            "the service manager passed %d sockets; holdfastd takes one: %s", n,
                            text);
        } else if (n == 1 &&
                   library->is_socket(SD_LISTEN_FDS_START, AF_UNSPEC, SOCK_STREAM, 1) <= 0) {
                r = hf_fail(reterr_status, HF_E_INVALID,
                            "the socket that the service manager passed is not a listening stream "
                            "socket: the socket unit needs ListenStream=");
        }
        free_names(names);
        if (r == 0 && n == 1)
                *ret_fd = SD_LISTEN_FDS_START;
        return r;
}

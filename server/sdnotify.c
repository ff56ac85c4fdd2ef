/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The protocols are those of sd_notify(3), sd_watchdog_enabled(3) and sd_listen_fds(3), which
 * systemd promises to keep and which take a datagram and a few variables: libsystemd itself, with
 * what it loads, would be a twentieth of the process's memory.
 */
#include "server/sdnotify.h"

#include <errno.h>
#include <fcntl.h>
#include <stdarg.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/un.h>
#include <unistd.h>

#define FIRST_PASSED_FD 3

/* One datagram to the manager's socket: a path, or with @ in front an abstract name. */
static void notify(const char *format, ...) __attribute__((format(printf, 1, 2)));

static void notify(const char *format, ...) {
        const char *name = getenv("NOTIFY_SOCKET");
        struct sockaddr_un address = {.sun_family = AF_UNIX};
        size_t n_name = name ? strlen(name) : 0;
        char text[640];
        va_list args;

        if (n_name < 2 || n_name >= sizeof address.sun_path || (*name != '/' && *name != '@'))
                return;
        va_start(args, format);
        int n = vsnprintf(text, sizeof text, format, args);
        va_end(args);
        int fd = n > 0 && (size_t)n < sizeof text ? socket(AF_UNIX, SOCK_DGRAM | SOCK_CLOEXEC, 0)
                                                  : -1;
        if (fd < 0)
                return;
        memcpy(address.sun_path, name, n_name);
        if (*name == '@')
                address.sun_path[0] = '\0';
        ssize_t sent = sendto(fd, text, (size_t)n, MSG_NOSIGNAL, (const struct sockaddr *)&address,
                              (socklen_t)(offsetof(struct sockaddr_un, sun_path) + n_name +
                                          (*name == '/')));
        (void)sent;
        (void)close(fd);
}

void hfd_notify_ready(void) { notify("READY=1"); }

void hfd_notify_stopping(void) { notify("STOPPING=1"); }

/* MONOTONIC_USEC is for Type=notify-reload of newer managers; older ones ignore it. */
void hfd_notify_reloading(void) {
        const struct hf_clock *clock = hf_clock_system();
        notify("RELOADING=1\nMONOTONIC_USEC=%lld",
               (long long)(clock->monotonic(clock->ctx) / HF_NSEC_PER_USEC));
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
        notify("STATUS=%s", text);
}

void hfd_notify_extend(hf_nsec more) {
        notify("EXTEND_TIMEOUT_USEC=%lld", (long long)(more / HF_NSEC_PER_USEC));
}

void hfd_notify_watchdog(void) { notify("WATCHDOG=1"); }

/* A decimal number of the environment. False when it is unset; -EINVAL in *ret when it is none. */
static bool number_of(const char *variable, long long *ret) {
        const char *text = getenv(variable);
        char *end;

        if (!text)
                return false;
        errno = 0;
        *ret = strtoll(text, &end, 10);
        if (errno || end == text || *end || *ret < 0)
                *ret = -EINVAL;
        return true;
}

hf_nsec hfd_notify_watchdog_interval(void) {
        long long usec, pid;

        if (!number_of("WATCHDOG_USEC", &usec) || usec <= 0 || usec > INT64_MAX / 1000)
                return 0;
        if (number_of("WATCHDOG_PID", &pid) && pid != (long long)getpid())
                return 0;
        return (hf_nsec)(usec / 2) * HF_NSEC_PER_USEC;
}

/* How many descriptors are passed to this process; they begin at 3. -EINVAL: the variables make no
 * sense. */
static int take_passed(void) {
        long long pid, n;

        if (!number_of("LISTEN_PID", &pid) || !number_of("LISTEN_FDS", &n))
                n = 0;
        else if (pid < 0 || n < 0 || n > 1000)
                n = -EINVAL;
        else if (pid != (long long)getpid())
                n = 0; /* meant for a parent */
        for (int fd = FIRST_PASSED_FD; fd < FIRST_PASSED_FD + n; fd++)
                if (fcntl(fd, F_SETFD, FD_CLOEXEC) < 0)
                        n = -errno;
        (void)unsetenv("LISTEN_PID");
        (void)unsetenv("LISTEN_FDS");
        (void)unsetenv("LISTEN_FDNAMES");
        return (int)n;
}

static bool is_listening_stream(int fd) {
        int type = 0, listening = 0;
        socklen_t n_type = sizeof type, n_listening = sizeof listening;

        return getsockopt(fd, SOL_SOCKET, SO_TYPE, &type, &n_type) == 0 && type == SOCK_STREAM &&
               getsockopt(fd, SOL_SOCKET, SO_ACCEPTCONN, &listening, &n_listening) == 0 &&
               listening;
}

int hfd_notify_listen_fd(int *ret_fd, struct hf_status *reterr_status) {
        int n = take_passed();
        if (n < 0)
                return hf_fail(reterr_status, HF_E_INVALID,
                               "LISTEN_FDS or LISTEN_PID in the environment is not usable: %s",
                               strerror(-n));
        if (n > 1)
                return hf_fail(reterr_status, HF_E_INVALID,
                               "the service manager passed %d sockets; holdfastd takes one", n);
        if (n == 1 && !is_listening_stream(FIRST_PASSED_FD))
                return hf_fail(reterr_status, HF_E_INVALID,
                               "what the service manager passed is not a listening stream socket");
        *ret_fd = n == 1 ? FIRST_PASSED_FD : -1;
        return 0;
}

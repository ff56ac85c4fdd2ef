/* SPDX-License-Identifier: Apache-2.0 */
/* The messages of holdfastd to systemd, and the sockets and settings that it gets from it. */
#undef NDEBUG
#include <assert.h>
#include <fcntl.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/un.h>
#include <sys/wait.h>
#include <unistd.h>

#include <cmocka.h>

#include "server/systemd/sdnotify.h"

static int manager = -1;

static int bind_manager(void **state) {
        struct sockaddr_un address = {.sun_family = AF_UNIX};
        char name[64];
        /* An abstract name, so there is nothing to clean up. */
        int n = snprintf(name, sizeof name, "@holdfast-sdnotify-%d", (int)getpid());
        memcpy(address.sun_path + 1, name + 1, (size_t)n - 1);
        manager = socket(AF_UNIX, SOCK_DGRAM | SOCK_CLOEXEC, 0);
        if (bind(manager, (struct sockaddr *)&address,
                 (socklen_t)(offsetof(struct sockaddr_un, sun_path) + (size_t)n)) != 0)
                return -1;
        return setenv("NOTIFY_SOCKET", name, 1);
}

static int close_manager(void **state) { return close(manager); }

/* When the send returns, datagrams of a local socket have arrived. */
static const char *received(void) {
        static char text[1024];
        ssize_t n = recv(manager, text, sizeof text - 1, MSG_DONTWAIT);
        text[n > 0 ? n : 0] = '\0';
        return text;
}

static void test_the_service_manager_gets_the_messages(void **state) {
        hfd_sdnotify_ready();
        assert_string_equal(received(), "READY=1");
        hfd_sdnotify_status("leading term %d,\nline two", 7);
        assert_string_equal(received(), "STATUS=leading term 7, line two");
        hfd_sdnotify_extend_timeout(90 * HF_NSEC_PER_SEC);
        assert_string_equal(received(), "EXTEND_TIMEOUT_USEC=90000000");
        hfd_sdnotify_watchdog();
        assert_string_equal(received(), "WATCHDOG=1");
        hfd_sdnotify_reloading();
        assert_int_equal(strncmp(received(), "RELOADING=1\nMONOTONIC_USEC=", 27), 0);
        hfd_sdnotify_stopping();
        assert_string_equal(received(), "STOPPING=1");
}

static void test_without_a_service_manager_nothing_happens(void **state) {
        char *name = strdup(getenv("NOTIFY_SOCKET"));
        unsetenv("NOTIFY_SOCKET");
        hfd_sdnotify_ready();
        hfd_sdnotify_status("%s", "x");
        assert_string_equal(received(), "");
        setenv("NOTIFY_SOCKET", name, 1);
        free(name);
}

/* When the queue of its socket is full, a message that will be repeated anyway is dropped. */
static void test_a_service_manager_that_does_not_read_blocks_nothing(void **state) {
        size_t n = 0;

        for (int i = 0; i < 2000; i++)
                hfd_sdnotify_watchdog();
        hfd_sdnotify_status("%s", "x");
        hfd_sdnotify_extend_timeout(HF_NSEC_PER_SEC);
        while (strcmp(received(), "WATCHDOG=1") == 0)
                n++;
        assert_in_range(n, 1, 1999);
        hfd_sdnotify_ready();
        assert_string_equal(received(), "READY=1");
}

static void test_the_watchdog_interval_is_half_the_limit(void **state) {
        char pid[32];
        unsetenv("WATCHDOG_USEC");
        assert_true(hfd_sdnotify_watchdog_interval() == 0);
        setenv("WATCHDOG_USEC", "30000000", 1);
        assert_true(hfd_sdnotify_watchdog_interval() == 15 * HF_NSEC_PER_SEC);
        setenv("WATCHDOG_PID", "1", 1);
        assert_true(hfd_sdnotify_watchdog_interval() == 0);
        snprintf(pid, sizeof pid, "%d", (int)getpid());
        setenv("WATCHDOG_PID", pid, 1);
        assert_true(hfd_sdnotify_watchdog_interval() == 15 * HF_NSEC_PER_SEC);
}

static void test_without_a_passed_socket_there_is_no_listener(void **state) {
        int fd = 0;
        unsetenv("LISTEN_FDS");
        assert_int_equal(hfd_sdnotify_listen_fd(&fd, NULL), 0);
        assert_int_equal(fd, -1);
}

/*
 * Runs in a child process with descriptor 3 as the service manager passes it. Exits with 0 if
 * everything is as expected.
 */
static int run_activated(const char *n_fds, int fd, int expected_result, int expected_fd) {
        int status = -1;
        pid_t pid = fork();
        assert(pid >= 0);
        if (pid == 0) {
                char pid_text[32];
                int found = -2;
                dup2(fd, 3);
                if (fd != 3)
                        fcntl(3, F_SETFD, 0);
                snprintf(pid_text, sizeof pid_text, "%d", (int)getpid());
                setenv("LISTEN_PID", pid_text, 1);
                setenv("LISTEN_FDS", n_fds, 1);
                int r = hfd_sdnotify_listen_fd(&found, NULL);
                if (r != expected_result ||
                    (r == 0 && (found != expected_fd || !(fcntl(found, F_GETFD) & FD_CLOEXEC))))
                        _exit(1);
                _exit(getenv("LISTEN_FDS") ? 2 : 0);
        }
        assert(waitpid(pid, &status, 0) == pid);
        return status;
}

static void test_a_passed_socket_must_be_listening(void **state) {
        int listening = socket(AF_INET, SOCK_STREAM, 0);
        int idle = socket(AF_INET, SOCK_STREAM, 0);
        assert(listen(listening, 1) == 0);
        assert_int_equal(run_activated("1", listening, 0, 3), 0);
        assert_int_equal(run_activated("1", idle, HF_E_INVALID, 0), 0);
        close(listening);
        close(idle);
}

/*
 * The messages of refusals: the number of sockets, their names, or an invalid environment.
 */
static void test_refusals_are_named(void **state) {
        int fds[2], status = -1;
        assert(pipe(fds) == 0);
        pid_t pid = fork();
        assert(pid >= 0);
        if (pid == 0) {
                char pid_text[32];
                struct hf_status why = {0};
                int fd = -1;
                dup2(fds[0], 3);
                dup2(fds[1], 4);
                snprintf(pid_text, sizeof pid_text, "%d", (int)getpid());
                setenv("LISTEN_PID", pid_text, 1);
                setenv("LISTEN_FDS", "2", 1);
                setenv("LISTEN_FDNAMES", "one:two", 1);
                if (hfd_sdnotify_listen_fd(&fd, &why) != HF_E_INVALID ||
                    strcmp(why.message,
                           "the service manager passed 2 sockets; holdfastd takes one: one, two") !=
                            0)
                        _exit(1);
                setenv("LISTEN_PID", pid_text, 1);
                setenv("LISTEN_FDS", "many", 1);
                if (hfd_sdnotify_listen_fd(&fd, &why) != HF_E_INVALID ||
                    !strstr(why.message, "LISTEN_FDS or LISTEN_PID"))
                        _exit(2);
                setenv("LISTEN_PID", "1", 1);
                setenv("LISTEN_FDS", "1", 1);
                /* Meant for another process. */
                if (hfd_sdnotify_listen_fd(&fd, &why) != 0 || fd != -1 || getenv("LISTEN_FDS"))
                        _exit(3);
                _exit(0);
        }
        assert(waitpid(pid, &status, 0) == pid);
        assert_int_equal(status, 0);
        close(fds[0]);
        close(fds[1]);
}

static int n_lines;
static char last_line[256];

static void count_line(void *ctx, enum hf_log_level level, const char *component,
                       const char *message) {
        n_lines++;
        assert_int_equal(level, HF_LOG_WARNING);
        snprintf(last_line, sizeof last_line, "%s", message);
}

/* In a build without libsystemd: one line for whatever the manager expects, and no effect. */
static void test_without_libsystemd_unsupported_features_are_logged(void **state) {
        const struct hf_log log = {.write = count_line};
        char pid_text[32], *name = strdup(getenv("NOTIFY_SOCKET"));
        int fd = 0;
        hfd_sdnotify_warn_unsupported(&log);
        assert_int_equal(n_lines, 1);
        assert_non_null(
                strstr(last_line, "no libsystemd and ignores NOTIFY_SOCKET in the environment"));
        snprintf(pid_text, sizeof pid_text, "%d", (int)getpid());
        setenv("LISTEN_PID", pid_text, 1);
        setenv("LISTEN_FDS", "1", 1);
        hfd_sdnotify_warn_unsupported(&log);
        assert_int_equal(n_lines, 2);
        assert_non_null(
                strstr(last_line, "ignores NOTIFY_SOCKET and LISTEN_FDS in the environment"));
        assert_int_equal(hfd_sdnotify_listen_fd(&fd, NULL), 0);
        assert_int_equal(fd, -1);
        unsetenv("LISTEN_PID");
        unsetenv("LISTEN_FDS");
        hfd_sdnotify_ready();
        hfd_sdnotify_status("%s", "x");
        assert_string_equal(received(), "");
        setenv("WATCHDOG_USEC", "30000000", 1);
        assert_true(hfd_sdnotify_watchdog_interval() == 0);
        unsetenv("WATCHDOG_USEC");
        unsetenv("NOTIFY_SOCKET");
        hfd_sdnotify_warn_unsupported(&log);
        assert_int_equal(n_lines, 2);
        setenv("NOTIFY_SOCKET", name, 1);
        free(name);
}

static void test_with_libsystemd_there_is_no_warning(void **state) {
        const struct hf_log log = {.write = count_line};
        hfd_sdnotify_warn_unsupported(&log);
        assert_int_equal(n_lines, 0);
}

int main(void) {
        const struct CMUnitTest with[] = {
                cmocka_unit_test(test_the_service_manager_gets_the_messages),
                cmocka_unit_test(test_without_a_service_manager_nothing_happens),
                cmocka_unit_test(test_a_service_manager_that_does_not_read_blocks_nothing),
                cmocka_unit_test(test_the_watchdog_interval_is_half_the_limit),
                cmocka_unit_test(test_without_a_passed_socket_there_is_no_listener),
                cmocka_unit_test(test_a_passed_socket_must_be_listening),
                cmocka_unit_test(test_refusals_are_named),
                cmocka_unit_test(test_with_libsystemd_there_is_no_warning),
        };
        const struct CMUnitTest without[] = {
                cmocka_unit_test(test_without_a_service_manager_nothing_happens),
                cmocka_unit_test(test_without_a_passed_socket_there_is_no_listener),
                cmocka_unit_test(test_without_libsystemd_unsupported_features_are_logged),
        };
        return hfd_sdnotify_supported()
                       ? cmocka_run_group_tests(with, bind_manager, close_manager)
                       : cmocka_run_group_tests(without, bind_manager, close_manager);
}

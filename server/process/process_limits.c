/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The limits of this process (process_limits.h).
 *
 * Invariant: the process is not dumpable unless the user asks for it. So all of its memory is
 * protected, including the copies of keys in OpenSSL's memory, which MADV_DONTDUMP on our own pages
 * would miss. systemd can still supervise the process, because it reads /proc as root.
 */
#include "server/process/process_limits.h"

#include <errno.h>
#include <fcntl.h>
#include <stdlib.h>
#include <sys/prctl.h>
#include <sys/resource.h>
#include <unistd.h>

#include <holdfast/error.h>

int hfd_process_limits_reserve_standard(void) {
        /* open returns the lowest free descriptor, so each closed one is opened under its own
         * number. Output on it remains an error, because /dev/null is opened for reading; log lines
         * get lost. */
        for (int fd = STDIN_FILENO; fd <= STDERR_FILENO; fd++)
                if (fcntl(fd, F_GETFD) < 0 && errno == EBADF &&
                    open("/dev/null", O_RDONLY | O_NOCTTY) != fd)
                        return -errno;
        return 0;
}

void hfd_process_limits_hide_memory(void) {
        const char *allow = getenv("HOLDFASTD_ALLOW_DEBUG");

        if (allow && allow[0])
                return;
        /* Fails only for values other than 0 and 1. */
        (void)prctl(PR_SET_DUMPABLE, 0, 0, 0, 0);
}

void hfd_process_limits_raise_files(const struct hf_log *log) {
        struct rlimit limit;

        if (getrlimit(RLIMIT_NOFILE, &limit) != 0 || limit.rlim_cur == limit.rlim_max)
                return;
        unsigned long long before = limit.rlim_cur;
        limit.rlim_cur = limit.rlim_max;
        if (setrlimit(RLIMIT_NOFILE, &limit) == 0)
                hf_log(log, HF_LOG_DEBUG, "holdfastd",
                       "raised the limit of open files from %llu to %llu", before,
                       (unsigned long long)limit.rlim_cur);
        else /* a seccomp filter may refuse it */
                hf_log(log, HF_LOG_DEBUG, "holdfastd",
                       "cannot raise the limit of open files from %llu: %s", before,
                       hf_strerror(-errno));
}

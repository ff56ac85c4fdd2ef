/* SPDX-License-Identifier: Apache-2.0 */
#pragma once
/*
 * libsystemd. It is not linked, but loaded at its first use: with the seven libraries that it needs
 * it takes 0.9 MB, and a process that no service manager has started needs none of them.
 */
#include <stdint.h>
#include <sys/uio.h>

struct hfd_systemd_library {
        int (*watchdog_enabled)(int unset_environment, uint64_t *usec);
        int (*listen_fds_with_names)(int unset_environment, char ***names);
        int (*is_socket)(int fd, int family, int type, int listening);
        int (*journal_sendv)(const struct iovec *fields, int n);
};

/* The library, which the first call loads and the process keeps. NULL: it cannot be loaded.
 * Thread: any. */
const struct hfd_systemd_library *hfd_systemd_library(void);
/* What to do when it cannot be loaded, for a message. */
#define HFD_SYSTEMD_LIBRARY_MISSING                                                                \
        "libsystemd.so.0 cannot be loaded: install the package libsystemd0"

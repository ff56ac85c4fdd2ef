/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Loads libsystemd.
 *
 * Invariant: only load_library() writes `library` and `loaded`, and pthread_once makes every caller
 * wait for it. So any thread may use the result without a lock.
 */
#include "server/systemd/systemd_library.h"

#include <dlfcn.h>
#include <pthread.h>
#include <stddef.h>

static struct hfd_systemd_library library;
static const struct hfd_systemd_library *loaded;

/* Stores the addresses through void pointers, as POSIX recommends for dlsym. */
static void load_library(void) {
        void *handle = dlopen("libsystemd.so.0", RTLD_NOW | RTLD_LOCAL);

        if (!handle)
                return;
        *(void **)&library.watchdog_enabled = dlsym(handle, "sd_watchdog_enabled");
        *(void **)&library.listen_fds_with_names = dlsym(handle, "sd_listen_fds_with_names");
        *(void **)&library.is_socket = dlsym(handle, "sd_is_socket");
        *(void **)&library.journal_sendv = dlsym(handle, "sd_journal_sendv");
        if (library.watchdog_enabled && library.listen_fds_with_names && library.is_socket &&
            library.journal_sendv)
                loaded = &library;
        else
                (void)dlclose(handle);
}

const struct hfd_systemd_library *hfd_systemd_library(void) {
        static pthread_once_t once = PTHREAD_ONCE_INIT;

        (void)pthread_once(&once, load_library);
        return loaded;
}

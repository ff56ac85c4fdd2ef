/* SPDX-License-Identifier: Apache-2.0 */
/* Entries for the journal, by libsystemd. With sdnotify.c the only file that includes libsystemd's
 * headers. */
#include "server/systemd/journal.h"

#include <unistd.h>

/* The place in the source would be this file for every entry. */
#define SD_JOURNAL_SUPPRESS_LOCATION
#include <systemd/sd-journal.h>

#define JOURNAL_SOCKET "/run/systemd/journal/socket"

/* sd_journal_sendv reports success when the socket does not exist, so the socket is looked at
 * first. */
bool hfd_journal_send(const struct iovec *fields, size_t n) {
        return access(JOURNAL_SOCKET, W_OK) == 0 && sd_journal_sendv(fields, (int)n) == 0;
}

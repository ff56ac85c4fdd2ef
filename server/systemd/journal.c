/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Sends entries to the journal with libsystemd.
 *
 * Invariant: true means that the entry was sent to a journal. sd_journal_sendv reports success even
 * if the journal's socket does not exist, so the socket is checked first.
 */
#include "server/systemd/journal.h"

#include <assert.h>
#include <unistd.h>

#include "server/systemd/systemd_library.h"

#define JOURNAL_SOCKET "/run/systemd/journal/socket"

bool hfd_journal_send(const struct iovec *fields, size_t n) {
        assert(n > 0);
        if (access(JOURNAL_SOCKET, W_OK) != 0)
                return false;
        const struct hfd_systemd_library *library = hfd_systemd_library();
        return library && library->journal_sendv(fields, (int)n) == 0;
}

/* SPDX-License-Identifier: Apache-2.0 */
#pragma once
/*
 * The memory that requests hold on behalf of the peers: heads, complete or not, bodies, and the
 * responses to requests that the worker has refused; and the input that an HTTP/1.1 connection has
 * read after its current request. There are two accounts: one for known senders, and one for
 * strangers. A sender becomes known by a client certificate that verifies, or by a request whose
 * body on_head wants to read (http_request.h); then the connection moves from the second account to
 * the first. So strangers can use up only the second.
 *
 * Threads: any for struct hfd_account; a share belongs to its connection's worker. No lock.
 */
#include <stdatomic.h>
#include <stdbool.h>
#include <stddef.h>

/* Limits in bytes: of one connection, and of all connections together. */
#define HFD_ACCOUNT_KNOWN_SHARE    ((size_t)32 << 20)
#define HFD_ACCOUNT_KNOWN_TOTAL    ((size_t)256 << 20)
#define HFD_ACCOUNT_STRANGER_SHARE ((size_t)512 << 10)
#define HFD_ACCOUNT_STRANGER_TOTAL ((size_t)64 << 20)
/* A stranger with no more than this is within the limits even when the account is used up, so that
 * other strangers cannot keep an ordinary client from authenticating. The number of strangers'
 * connections bounds how far the total can be exceeded. */
#define HFD_ACCOUNT_STRANGER_FREE ((size_t)16 << 10)

struct hfd_account {
        _Atomic size_t known, strangers;
};

/* The share of one connection in the account. Zero = no bytes, the sender is unknown. */
struct hfd_account_share {
        size_t n;
        bool known;
};

/* Changes the bytes that the connection holds for one purpose (a request, or the input after its
 * current one) from `before` to `after`. 0, or HF_E_TOO_LARGE: a limit is exceeded; the bytes are
 * counted anyway. A decrease never fails. */
int hfd_account_change(struct hfd_account *account, struct hfd_account_share *share, size_t before,
                       size_t after);
/* The sender has become known, or is known no more: the share moves to the other account.
 * Idempotent. */
void hfd_account_set_known(struct hfd_account *account, struct hfd_account_share *share,
                           bool known);

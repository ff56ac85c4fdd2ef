/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The accounts of account.h. Bytes are counted first and checked afterwards, so that several
 * workers at once cannot all pass the check. The atomics are relaxed: they order no other memory.
 *
 * Invariant: each of the two totals is the sum of the shares of its kind.
 */
#include "server/http/limits/account.h"

#include <assert.h>

#include <holdfast/error.h>

static int check_known(size_t share, size_t total) {
        if (share > HFD_ACCOUNT_KNOWN_SHARE || total > HFD_ACCOUNT_KNOWN_TOTAL)
                return HF_E_TOO_LARGE;
        return 0;
}

static int check_stranger(size_t share, size_t total) {
        if (share <= HFD_ACCOUNT_STRANGER_FREE)
                return 0;
        if (share > HFD_ACCOUNT_STRANGER_SHARE || total > HFD_ACCOUNT_STRANGER_TOTAL)
                return HF_E_TOO_LARGE;
        return 0;
}

static _Atomic size_t *total_of(struct hfd_account *account, bool known) {
        return known ? &account->known : &account->strangers;
}

int hfd_account_change(struct hfd_account *account, struct hfd_account_share *share, size_t before,
                       size_t after) {
        _Atomic size_t *total = total_of(account, share->known);

        assert(share->n >= before);
        if (after <= before) {
                share->n -= before - after;
                atomic_fetch_sub_explicit(total, before - after, memory_order_relaxed);
                return 0;
        }
        size_t added = after - before;
        size_t sum = atomic_fetch_add_explicit(total, added, memory_order_relaxed) + added;

        share->n += added;
        return share->known ? check_known(share->n, sum) : check_stranger(share->n, sum);
}

void hfd_account_set_known(struct hfd_account *account, struct hfd_account_share *share,
                           bool known) {
        _Atomic size_t *from = total_of(account, share->known), *to = total_of(account, known);

        assert(atomic_load_explicit(from, memory_order_relaxed) >= share->n);
        atomic_fetch_sub_explicit(from, share->n, memory_order_relaxed);
        atomic_fetch_add_explicit(to, share->n, memory_order_relaxed);
        share->known = known;
}

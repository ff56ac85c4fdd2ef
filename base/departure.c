/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Records whether a client still waits, without a lock (departure.h). Invariant: leave writes
 * `gone` before it reads the token, and a thread that creates a token reads `gone` after it has
 * published the token. So at least one of these two threads sees the other's write and fires the
 * token. Each of them stores before it loads, so all these accesses must be sequentially
 * consistent.
 */
#include "base/departure.h"

#include <stddef.h>

#include <holdfast/cancel.h>

void hf__departure_done(struct hf__departure *departure) {
        hf_cancel_unref(atomic_exchange(&departure->token, NULL));
}

void hf__departure_leave(struct hf__departure *departure) {
        atomic_store(&departure->gone, true);
        struct hf_cancel *token = atomic_load(&departure->token);
        if (token)
                hf_cancel_fire(token, HF_CANCEL_STOPPING);
}

struct hf_cancel *hf__departure_token(struct hf__departure *departure) {
        struct hf_cancel *token = atomic_load(&departure->token), *made = NULL;

        if (token || hf_cancel_new(NULL, NULL, &made) != 0)
                return token;
        if (atomic_compare_exchange_strong(&departure->token, &token, made))
                token = made;
        else
                hf_cancel_unref(made);
        if (atomic_load(&departure->gone))
                hf_cancel_fire(token, HF_CANCEL_STOPPING);
        return token;
}

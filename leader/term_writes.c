/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Keeps the client of an ended term until its last write has ended, or is not waited for any more.
 *
 * Invariant: hf__term_writes_begin sets `client` only if it returns HF_NSEC_NEVER. `client` is
 * cleared when hf__term_writes_settled returns true, and by hf__term_writes_give_up.
 */
#include "leader/term_writes.h"

#include <assert.h>

hf_nsec hf__term_writes_begin(struct hf__term_writes *writes, struct hf__term *term) {
        struct hf_client *client = term ? hf__term_take_client(term) : NULL;

        assert(!writes->client);
        if (!client)
                return 0;
        /* Cleared before hf__leader_client_end: from then on the client may call on_settled
         * (elector_actions.c), which sets the flag. */
        atomic_store(&writes->settled, false);
        hf__leader_client_end(client);
        hf_nsec doubt_at = hf__leader_client_doubt_at(client);
        writes->is_fenced = hf__leader_client_is_fenced(client);
        if (doubt_at == HF_NSEC_NEVER)
                writes->client = client;
        else
                hf__leader_client_release(client);
        return doubt_at;
}

bool hf__term_writes_settled(struct hf__term_writes *writes, hf_nsec *ret_doubt_at) {
        /* The flag may be set although no write is waited for: see hf__leader_client_config. */
        if (!atomic_exchange(&writes->settled, false) || !writes->client)
                return false;
        *ret_doubt_at = hf__leader_client_doubt_at(writes->client);
        assert(*ret_doubt_at != HF_NSEC_NEVER);
        writes->is_fenced = hf__leader_client_is_fenced(writes->client);
        hf__term_writes_give_up(writes);
        return true;
}

void hf__term_writes_give_up(struct hf__term_writes *writes) {
        hf__leader_client_release(writes->client);
        writes->client = NULL;
}

/* SPDX-License-Identifier: Apache-2.0 */
#pragma once
/*
 * The writes of an elector's last term that may still take effect after its controllers have
 * returned. The client of the term counts them (leader_client.c), and the core decides how long to
 * wait for them (rule 13 in core.h). struct hf__term_writes keeps that client until the last of
 * them has ended, or nobody waits for it any more.
 */
#include <stdatomic.h>
#include <stdbool.h>

#include "leader/term.h"

/* Zero is the initial state. */
struct hf__term_writes {
        /* any thread; call hf__elector_wake after setting it */
        atomic_bool settled; /* the last unanswered write has ended */
        /* only the loop's thread */
        struct hf_client *client; /* owned; NULL = no write is waited for */
        bool is_fenced;           /* the server has confirmed a fence, of that term or before */
};

/* Thread: the loop's, or the owner's once the loop has ended, for each function. */

/* The controllers of the term have returned: takes its client. term may be NULL. Returns what the
 * core must know, as hf__core_event.doubt_at. */
hf_nsec hf__term_writes_begin(struct hf__term_writes *writes, struct hf__term *term);
/* True, once: the last unanswered write has ended since hf__term_writes_begin returned
 * HF_NSEC_NEVER, and *ret_doubt_at is set for the core. */
bool hf__term_writes_settled(struct hf__term_writes *writes, hf_nsec *ret_doubt_at);
/* Waits for no write any more, and cancels those under way. Idempotent. */
void hf__term_writes_give_up(struct hf__term_writes *writes);

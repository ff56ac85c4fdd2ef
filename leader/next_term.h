/* SPDX-License-Identifier: Apache-2.0 */
#pragma once
/*
 * The next term of an elector. While another process holds the Lease, the threads of this process's
 * next term exist already and wait (hf__term_prepare). So the controllers run as soon as this
 * process has acquired the Lease.
 *
 * A set of electors keeps at most HF__NEXT_TERM_THREADS_MAX such threads, for the electors that
 * prepared theirs first. The others start their threads when they have acquired their Lease.
 *
 * Thread: the loop's only, unless a comment says otherwise.
 */
#include "leader/electors.h"

/* Enough for holdfastd, whose term has some twenty threads. Without a limit, a set of thousands of
 * electors would keep as many idle threads. */
#define HF__NEXT_TERM_THREADS_MAX 64

/* The values that the elector's terms have in common; the client and acquired_at are left to the
 * caller. */
struct hf__term_config hf__next_term_config(struct hf_elector *elector);
/* Prepares the next term if there is none yet, the elector follows, and the Lease has a holder.
 * Stays within the limit above. If the threads cannot be started, this function does nothing more
 * until a term has begun. Takes almost no time if there is nothing to do. */
void hf__next_term_prepare(struct hf_elector *elector);
/* Begins the prepared term, or a new one, and sets elector->term. 0 or -errno: then there is no
 * term and nothing has run. */
int hf__next_term_begin(struct hf_elector *elector, const struct hf__term_config *config);
/* Frees the prepared term, if there is one: its threads return and are joined. Thread: the loop's,
 * or the one that has joined the loop. */
void hf__next_term_dismiss(struct hf_elector *elector);

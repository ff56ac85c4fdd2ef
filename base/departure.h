/* SPDX-License-Identifier: Apache-2.0 */
#pragma once
/*
 * Whether a client still waits for the response to its request, and a token that fires when it has
 * left. Few requests need the token, so it is made at the first call of hf__departure_token.
 * Thread: any, except that done is the last call. Nothing blocks, apart from the wakers of the
 * token (cancel.h).
 */
#include <stdatomic.h>
#include <stdbool.h>

struct hf_cancel;

/* Zero: the client waits. */
struct hf__departure {
        atomic_bool gone;
        _Atomic(struct hf_cancel *) token; /* owned reference; NULL = nobody has asked for it */
};

/* Drops the token. */
void hf__departure_done(struct hf__departure *departure);
/* The client has left, or has its response. Fires the token. */
void hf__departure_leave(struct hf__departure *departure);
/* The token, which lives as long as the departure. NULL: out of memory. */
struct hf_cancel *hf__departure_token(struct hf__departure *departure);

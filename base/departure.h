/* SPDX-License-Identifier: Apache-2.0 */
#pragma once
/*
 * Records whether the client of a request still waits for the response. The departure has a token
 * that fires when the client has left. Few requests need the token, so the first call of
 * hf__departure_token creates it. Thread: any; hf__departure_done must be the last call. Nothing
 * blocks, except that firing the token may wait for a mutex for a short time (cancel.h).
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
/* Call it when the client has left or has got its response. Fires the token. */
void hf__departure_leave(struct hf__departure *departure);
/* The token, which lives as long as the departure. If the client has left, the token has fired, or
 * another thread is about to fire it. NULL: out of memory. */
struct hf_cancel *hf__departure_token(struct hf__departure *departure);

/* SPDX-License-Identifier: Apache-2.0 */
#pragma once
/*
 * The history of a Lease: its last changes of term, kept on the Lease itself as the annotation
 * holdfast.dev/transitions. Pure.
 *
 * Whoever takes the Lease adds one entry, within the very write that takes it, so the history costs
 * no write of its own and cannot tell of a take-over that did not happen. It is for people to read:
 * nothing decides by it. It is bounded, and one that cannot be read (edited by hand, of another
 * make) is begun anew.
 */
#include <stddef.h>
#include <stdint.h>

#include "leader/record.h"

struct hf__strbuf;

#define HF__LEASE_HISTORY_ANNOTATION "holdfast.dev/transitions"
#define HF__LEASE_HISTORY_MAX        8
#define HF__LEASE_HISTORY_MAX_BYTES  ((size_t)16 << 10) /* a longer text is none of ours */

struct hf__lease_history_entry {
        int64_t at_us;  /* acquireTime of the term that began, microseconds since 1970 */
        int64_t gap_ms; /* since the last sign of the former holder, by the taker's real-time clock;
                           never negative */
        char holder[HF_IDENTITY_MAX + 1];   /* who took it */
        char previous[HF_IDENTITY_MAX + 1]; /* from whom; "" = not known */
        char cause[24]; /* hf__cause_text of this version, or another one's word */
};

const char *hf__cause_text(enum hf__cause cause); /* "released"; static */
/* Fills ret_list with the newest of text, oldest first, and returns how many. text NULL or
 * malformed: 0. */
unsigned hf__lease_history_read(const char *text, struct hf__lease_history_entry *ret_list);
/* Writes what text (may be NULL or malformed) becomes when record, which begins a term, is written.
 * -ENOMEM sticks in out. */
void hf__lease_history_append(const char *text, const struct hf__record *record,
                              struct hf__strbuf *out);

/* SPDX-License-Identifier: Apache-2.0 */
#pragma once
/*
 * The history of a Lease: its last terms, in the annotation holdfast.dev/transitions on the Lease
 * itself. Pure.
 *
 * The process that acquires the Lease adds one entry in the same write. So the history costs no
 * separate write, and has no entry for an acquire that the server did not accept. It is for people
 * to read; no decision depends on it. Its size is bounded. A history that cannot be parsed (edited
 * by hand, written by other software) is replaced by a new one.
 */
#include <stddef.h>
#include <stdint.h>

#include "leader/record.h"

struct hf__strbuf;

#define HF__LEASE_HISTORY_ANNOTATION "holdfast.dev/transitions"
#define HF__LEASE_HISTORY_MAX        8                  /* entries */
#define HF__LEASE_HISTORY_MAX_BYTES  ((size_t)16 << 10) /* a longer text counts as malformed */

/* One term. */
struct hf__lease_history_entry {
        int64_t at_us;  /* its acquireTime, microseconds since 1970 */
        int64_t gap_ms; /* from the last renewal or release, by the previous holder's real-time
                           clock, to the acquire, by the new holder's; never negative */
        char holder[HF_IDENTITY_MAX + 1];
        char previous[HF_IDENTITY_MAX + 1]; /* the previous holder; "" = not known */
        char cause[24];                     /* hf__cause_text, or a text of another version */
};

/* "released", "expired", ...; static. HF__CAUSE_NONE: "". */
const char *hf__cause_text(enum hf__cause cause);
/* Fills ret_list (HF__LEASE_HISTORY_MAX entries) with the newest entries of text, oldest first, and
 * returns their number. 0 if text is NULL or malformed, or if memory runs out. */
unsigned hf__lease_history_read(const char *text, struct hf__lease_history_entry *ret_list);
/* Appends to out the history in text, as hf__lease_history_read reads it, with a new entry for
 * record, which begins a term. The oldest entries are left out if it would exceed one of the
 * limits. -ENOMEM is left in out->error. */
void hf__lease_history_append(const char *text, const struct hf__record *record,
                              struct hf__strbuf *out);

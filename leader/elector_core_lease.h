/* SPDX-License-Identifier: Apache-2.0 */
#pragma once
/*
 * The core's knowledge of the Lease: what it has seen, when, whose it is, when it may be taken, and
 * the records it writes. Private to elector_core.c, but for what the loop tells of it. Pure.
 */
#include "leader/elector_core.h"

/* Whether the record is the one of the term I lead: holder, acquire time and duration. */
bool hf__core_is_mine(const struct hf__core *core, const struct hf__record *record);
/* Whether the record was written by this very core, in this term, a former one, or by a write whose
 * reply was lost. */
bool hf__core_is_own(const struct hf__core *core, const struct hf__record *record);
/* Whether somebody else goes by my identity. */
bool hf__core_is_twin(const struct hf__core *core, const struct hf__record *record);

/* News from the watch or a write. False: it is older than what is known, and nothing changed. */
bool hf__core_learn(struct hf__core *core, const struct hf__record *record, hf_nsec now);
/*
 * The answer to a read; record NULL = not found. It decides, whatever its revision, unless the
 * watch told something since the read was sent. False: it is older than that. must_read is set
 * where the two cannot be ordered.
 */
bool hf__core_learn_read(struct hf__core *core, const struct hf__record *record, hf_nsec now);

/* Whether my last write, if its outcome is unknown, may yet be applied: what it expects is still
 * so. */
bool hf__core_may_still_apply(const struct hf__core *core);
/* Coordinated: whether the record names me, is not expired, and nobody else is preferred. */
bool hf__core_is_named(const struct hf__core *core, hf_nsec now);
/* Boot time from which the observed record may be taken; 0 = it is free. */
hf_nsec hf__core_free_at(const struct hf__core *core);

void hf__core_make_acquire(struct hf__core *core, struct hf__core_time now,
                           struct hf__record *ret_record);
void hf__core_make_renewal(const struct hf__core *core, struct hf__core_time now,
                           struct hf__record *ret_record);
void hf__core_make_release(const struct hf__core *core, struct hf__core_time now,
                           struct hf__record *ret_record);

/* SPDX-License-Identifier: Apache-2.0 */
#pragma once
/* Applies the patch of a write to the current object. Thread: that of the write (write.h); computes
 * only. */
#include "server/registry/write/write.h"

/* Whether the patch may read or change managedFields of the current object. Otherwise these may be
 * a raw value in `old`, and are then left out of the new object, as by a client that does not send
 * them. */
bool hfd_write_patch_reads_managers(const struct hfd_write *w);
/*
 * Applies the patch in w->body to a copy of old, and stores the result in w->object, in the normal
 * form of its kind. w->body is not changed. False: the response was sent, or another attempt was
 * started; the caller must not touch w.
 */
bool hfd_write_patch_apply(struct hfd_write *w, const struct hf__json *old);

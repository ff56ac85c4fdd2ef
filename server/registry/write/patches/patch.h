/* SPDX-License-Identifier: Apache-2.0 */
#pragma once
/* Applies the patch of a write to the current object. Thread: that of the write (write.h). Nothing
 * blocks. */
#include "server/patch/patch.h"
#include "server/registry/write/write.h"

/* Whether the patch may read or change managedFields of the current object. If not, the `old` of
 * hfd_write_patch_apply may have them as a raw value (json.h). Then the new object has none, as if
 * a client had sent it without them. */
bool hfd_write_patch_reads_managers(const struct hfd_write *w);
/*
 * Applies the patch in w->body to a copy of old, and stores the result in w->object, in the normal
 * form of its kind. w->body is not changed. False: the response was sent, or another attempt was
 * started; the caller must not touch w.
 */
bool hfd_write_patch_apply(struct hfd_write *w, const struct hf__json *old);

/* For registry/parts/, which makes a struct hfd_write as for body.h, and sets w->object too. */

/* Applies the patch in w->body, which is not an apply, to w->object. 0, or an error of
 * server/patch/patch.h; then w->object may contain some of the changes. */
int hfd_write_patch_object(struct hfd_write *w, struct hfd_patch_outcome *outcome);
/* Fills response for a patch that could not be applied. r: the error. */
void hfd_write_patch_refuse(int r, const struct hfd_patch_outcome *outcome,
                            struct hfd_response *response);

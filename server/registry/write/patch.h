/* SPDX-License-Identifier: Apache-2.0 */
#pragma once
/* Of a patch: the object that it makes of the current one. */
#include "server/registry/write/write.h"

/*
 * Applies the patch in w->sent, which stays, to a copy of old, and makes the result w->object in
 * the normal form of its kind. False: w was answered, or is attempted again; the caller must not
 * touch it.
 */
bool hfd_write_patch_apply(struct hfd_write *w, const struct hf__json *old);

/* SPDX-License-Identifier: Apache-2.0 */
#pragma once
/* Merge patch (RFC 7396). Thread: as patch.h. */
#include "server/patch/patch.h"

struct hf__json;

/*
 * Merges patch into *document. Both must be objects without duplicate keys at any depth. Results:
 * 0, HF_E_TOO_LARGE or -ENOMEM, as in patch.h.
 */
int hfd_merge_patch_apply(struct hf__json **document, const struct hf__json *patch,
                          struct hfd_patch_outcome *outcome);

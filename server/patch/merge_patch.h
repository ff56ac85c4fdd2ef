/* SPDX-License-Identifier: Apache-2.0 */
#pragma once
/* Merge patch (RFC 7396). Thread: as patch.h. */
#include "server/patch/patch.h"

struct hf__json;

/*
 * Merges patch into *document. Both must be objects without duplicate keys at any depth. patch.h
 * lists the results; HF_E_INVALID is not among them.
 */
int hfd_merge_patch_apply(struct hf__json **document, const struct hf__json *patch,
                          struct hfd_patch_outcome *outcome);

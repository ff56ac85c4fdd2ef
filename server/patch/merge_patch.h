/* SPDX-License-Identifier: Apache-2.0 */
#pragma once
/* Merge patch (RFC 7386). */

struct hf__json;

/*
 * Merges patch into *document. Both are objects, and no object in them has a key twice. 0 or
 * -ENOMEM; otherwise as patch.h has it.
 */
int hfd_merge_patch_apply(struct hf__json **document, const struct hf__json *patch);

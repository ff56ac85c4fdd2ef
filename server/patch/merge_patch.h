/* SPDX-License-Identifier: Apache-2.0 */
#pragma once
/* Merge patch (RFC 7396). */

struct hf__json;

/*
 * Merges patch into *document. Both must be objects without duplicate keys at any depth. 0 or
 * -ENOMEM. patch.h has the other rules.
 */
int hfd_merge_patch_apply(struct hf__json **document, const struct hf__json *patch);

/* SPDX-License-Identifier: Apache-2.0 */
#pragma once
/* JSON patch (RFC 6902). Thread: as patch.h. */
#include "server/patch/patch.h"

struct hf__json;

/*
 * Applies the operations of patch in order. patch must be an array with at most HFD_PATCH_OPS_MAX
 * elements. patch.h lists the results.
 */
int hfd_json_patch_apply(struct hf__json **document, const struct hf__json *patch,
                         struct hfd_patch_outcome *outcome);

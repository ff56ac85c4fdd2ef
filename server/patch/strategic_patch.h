/* SPDX-License-Identifier: Apache-2.0 */
#pragma once
/* Strategic merge patch: Kubernetes' merge patch that also merges lists. Thread: as patch.h. */
#include "server/patch/patch.h"
#include "server/resources/resource.h"

/*
 * Merges patch into *document, an object of the resource's kind. Both must be objects without
 * duplicate keys at any depth. patch.h lists the results.
 */
int hfd_strategic_patch_apply(const struct hfd_resource *resource, struct hf__json **document,
                              const struct hf__json *patch, struct hfd_patch_outcome *outcome);

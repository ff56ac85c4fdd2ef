/* SPDX-License-Identifier: Apache-2.0 */
#pragma once
/*
 * The deletecollection verb: lists the objects that the selectors match, and deletes each of them.
 * Thread: any. Nothing blocks.
 */
#include "server/registry/base/request.h"
#include "server/registry/registry.h"

/* request->done is called once, perhaps before this returns. */
void hfd_delete_collection(struct hfd_registry *registry, struct hfd_request *request);

/* SPDX-License-Identifier: Apache-2.0 */
#pragma once
/*
 * deletecollection: lists what the selectors match, and deletes each of the listed objects.
 * Thread: any. Nothing blocks.
 */
#include "server/registry/registry.h"
#include "server/registry/request.h"

/* The request is answered once, perhaps before this returns. */
void hfd_delete_collection(struct hfd_registry *registry, struct hfd_request *request);

/* SPDX-License-Identifier: Apache-2.0 */
#pragma once
/* deletecollection: lists what the selectors match, and deletes each object. */
#include "server/registry/registry.h"
#include "server/registry/request.h"

void hfd_delete_collection(struct hfd_registry *registry, struct hfd_request *request);

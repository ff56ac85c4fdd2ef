/* SPDX-License-Identifier: Apache-2.0 */
#pragma once
/*
 * ComponentStatuses, an old kind that only says whether the store can be reached. They are made
 * when somebody reads them; nothing is stored. Thread: any. Never blocks.
 */
#include "server/registry/base/request.h"
#include "server/resources/response.h"

struct hfd_registry;

/* request: a get or a list of componentstatuses. Fills response. */
void hfd_component_status(struct hfd_registry *registry, const struct hfd_request *request,
                          struct hfd_response *response);

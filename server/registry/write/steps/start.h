/* SPDX-License-Identifier: Apache-2.0 */
#pragma once
/* The start of a write. */
#include "server/registry/base/registry_state.h"
#include "server/registry/base/request.h"

/*
 * Carries out request. request->done is called once, on any thread, perhaps before this returns.
 * Thread: any. Never blocks.
 */
void hfd_write_start(struct hfd_registry *registry, struct hfd_request *request);

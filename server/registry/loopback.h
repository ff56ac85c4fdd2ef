/* SPDX-License-Identifier: Apache-2.0 */
#pragma once
/* The client inside the process: the same registry, without HTTP. */
#include <holdfast/client.h>

#include "server/registry/registry.h"

/*
 * A client with the rights of system:masters. Fences are compared as over HTTP, and always echoed.
 * The registry outlives it. hf_client_free cancels what is under way, and waits for it.
 */
int hfd_loopback_new(struct hfd_registry *registry, struct hf_client **ret_client);

/* SPDX-License-Identifier: Apache-2.0 */
#pragma once
/*
 * The client inside the process: holdfastd's own controllers and electors use the registry without
 * HTTP. It is a client as any other (<holdfast/client.h>) and keeps the same rules.
 *
 * It has the rights of system:masters: nothing is authorized. Fences are compared as over HTTP, and
 * every response to a fenced request says so.
 */
#include <holdfast/client.h>

#include "server/registry/registry.h"

/*
 * Makes a client. 0, -ENOMEM or -errno. The registry outlives it. hf_client_free cancels what is
 * under way and waits until the registry has let go of it.
 */
int hfd_loopback_new(struct hfd_registry *registry, struct hf_client **ret_client);

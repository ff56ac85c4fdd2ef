/* SPDX-License-Identifier: Apache-2.0 */
#pragma once
/*
 * The in-process client: holdfastd's hooks, controllers, bootstrap and elector use the registry
 * through it, without HTTP. It implements <holdfast/client.h> under the same rules as every other
 * client.
 *
 * Its requests are not checked by an authorizer: it has all rights, like the group system:masters.
 * Fences are compared as for HTTP requests, and a response states whether its fence was compared.
 */
#include <holdfast/client.h>

#include "server/registry/registry.h"

/*
 * Creates a client. The registry must outlive it. hf_client_free cancels all requests and watches,
 * and blocks until the registry no longer uses them. 0 or -errno. Thread: any.
 */
int hfd_loopback_new(struct hfd_registry *registry, struct hf_client **ret_client);

/*
 * Creates a client for informers that keep and need metadata only. Its watches leave out the
 * changes that keep the metadata as they are (kept_metadata.h). So the resourceVersion that such an
 * informer has of an object without owners and finalizers may be an old one. In place of changes
 * that it leaves out, a watch sends a BOOKMARK with their resourceVersion, at most every 20 ms.
 * Otherwise as hfd_loopback_new.
 */
int hfd_loopback_new_for_metadata(struct hfd_registry *registry, struct hf_client **ret_client);

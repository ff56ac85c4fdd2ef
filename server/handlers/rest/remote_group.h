/* SPDX-License-Identifier: Apache-2.0 */
#pragma once
/*
 * Groups that an APIService gives to a service. This server does not pass requests on to the
 * service, so such a group is not available: 503, as from kube-apiserver while a service is
 * missing. Thread: any.
 */
#include <stdbool.h>

#include "server/http/http.h"
#include "server/registry/registry.h"
#include "server/resources/response.h"

/*
 * Called for a resource that is not served. If a service should serve the group and version, and
 * this server does not, the response becomes 503.
 */
void hfd_remote_group_refuse(struct hfd_cacher *cacher, const char *group, const char *version,
                             struct hfd_response *response);
/* The same for the document /apis/GROUP/VERSION. True: the response was sent; the reference of the
 * caller to the HTTP request is consumed. */
bool hfd_remote_group_handle(struct hfd_registry *registry, struct hfd_http_request *http_request);

/* SPDX-License-Identifier: Apache-2.0 */
#pragma once
/* The content and the status of this server's APIServices. Pure. Thread: any. */
#include <stdbool.h>
#include <stddef.h>

#include "server/controllers/base/api_version.h"

struct hf__json;

#define HFD_API_SERVICE_NAME_MAX 256 /* bytes, with the NUL */

/* The name of the APIService of a group version: "v1.", "v1.coordination.k8s.io". A name that is
 * too long is cut, so the caller checks the length of a custom group version. */
void hfd_api_service_name(const struct hfd_api_version *version,
                          char name[HFD_API_SERVICE_NAME_MAX]);
/*
 * Parses the name of the APIService of a custom group version, and fills in Kubernetes' priorities.
 * The group and the version are copied to space. False: no definition can have such a group
 * version.
 */
bool hfd_api_service_custom_version(const char *name, char space[HFD_API_SERVICE_NAME_MAX],
                                    struct hfd_api_version *ret_version);
/* A new APIService for this group version; the caller frees it. NULL = out of memory. */
struct hf__json *hfd_api_service_make(const struct hfd_api_version *version);
/*
 * Brings the stored APIService of this group version up to date. Changes nothing if it lacks the
 * label of the APIServices that the server maintains: then a user maintains it. 0 or -ENOMEM.
 */
int hfd_api_service_restore(struct hf__json *service, const struct hfd_api_version *version,
                            bool *ret_changed);
/* Whether the server has made the APIService for custom resources, so that it may delete it. */
bool hfd_api_service_is_custom(const struct hf__json *service);
/*
 * Sets the condition Available. It is False if the APIService names a Service, because this server
 * forwards no API request to another server, and otherwise True. now: a metav1.Time, for a change
 * of the status. 0; -ENOMEM; or -EINVAL: the status is malformed.
 */
int hfd_api_service_set_available(struct hf__json *service, const char *now, bool *ret_changed);

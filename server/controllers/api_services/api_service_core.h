/* SPDX-License-Identifier: Apache-2.0 */
#pragma once
/* What the APIServices of this server contain, and what their status says. Pure. Thread: any. */
#include <stdbool.h>
#include <stddef.h>

struct hf__json;

/* A group version that this server serves. The strings are static. */
struct hfd_api_version {
        const char *group, *version;
        int group_priority, version_priority;
};

#define HFD_API_SERVICE_NAME_MAX 256 /* bytes, with the NUL */

/* The name of its APIService: "v1.", "v1.coordination.k8s.io". */
void hfd_api_service_name(const struct hfd_api_version *version,
                          char name[HFD_API_SERVICE_NAME_MAX]);
/* The APIService that stands for it; the caller frees. NULL = out of memory. */
struct hf__json *hfd_api_service_make(const struct hfd_api_version *version);
/*
 * Brings a stored APIService of the name up to date, unless a user has taken it over: then it has
 * not the label that marks those which the server keeps. 0 or -ENOMEM.
 */
int hfd_api_service_restore(struct hf__json *service, const struct hfd_api_version *version,
                            bool *ret_changed);
/*
 * Sets the condition Available: a service cannot be reached, everything else is served here. now: a
 * Time, for a change. 0 or -ENOMEM.
 */
int hfd_api_service_set_available(struct hf__json *service, const char *now, bool *ret_changed);

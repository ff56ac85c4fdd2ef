/* SPDX-License-Identifier: Apache-2.0 */
#pragma once
/* Resources that the API serves, as clients name them. */
#include <holdfast/client.h>

extern const struct hf_resource api_configmaps;
extern const struct hf_resource api_leases;
extern const struct hf_resource api_namespaces;
extern const struct hf_resource api_workspaces; /* cluster-scoped */

/* SPDX-License-Identifier: Apache-2.0 */
/* See api_resources.h. */
#include "api_resources.h"

const struct hf_resource api_configmaps = {"", "v1", "configmaps"};
const struct hf_resource api_leases = {"coordination.k8s.io", "v1", "leases"};
const struct hf_resource api_namespaces = {"", "v1", "namespaces"};
const struct hf_resource api_workspaces = {"tenancy.holdfast.dev", "v1alpha1", "workspaces"};

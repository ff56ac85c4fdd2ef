/* SPDX-License-Identifier: Apache-2.0 */
#pragma once
/*
 * Whether the Kubernetes community has approved a CustomResourceDefinition. The community's groups
 * (k8s.io, kubernetes.io and those below) are protected: a definition in one of them says in an
 * annotation where it was approved, or that it was not. Pure. Thread: any.
 */
#include "base/strbuf.h"

#define HFD_API_APPROVED "api-approved.kubernetes.io"

/* The content of the condition KubernetesAPIApprovalPolicyConformant. */
struct hfd_api_approval {
        const char *status, *reason; /* static; NULL = the group is not protected */
        struct hf__strbuf message;   /* the caller frees it */
};

/* group and annotation may be NULL. The caller zeroes *approval before the call. 0 or -ENOMEM. */
int hfd_api_approval(const char *group, const char *annotation, struct hfd_api_approval *approval);

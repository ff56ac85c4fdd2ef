/* SPDX-License-Identifier: Apache-2.0 */
#pragma once
/* The Secrets that a pod uses, and whether it may use them. Objects have the form of their schemas.
 * Pure. Thread: any. */
#include <stdbool.h>

struct hf__json;
struct hf__strbuf;

/* The annotation of a mirror pod. */
#define HFD_MIRROR_POD "kubernetes.io/config.mirror"

/* Whether the pod is a mirror pod: a kubelet has created it to show a static pod, which it runs
 * from a file of its node. */
bool hfd_pod_is_mirror(const struct hf__json *pod);
/* The message about a member that a mirror pod must not have, such as a Secret. Static storage.
 * NULL = the pod has no such member. */
const char *hfd_mirror_pod_mistake(const struct hf__json *pod);
/*
 * Whether an annotation of the service account restricts its pods to the Secrets that the account
 * names.
 */
bool hfd_account_limits_secrets(const struct hf__json *account);
/* Checks that a pod's spec uses only Secrets that its account names. As in Kubernetes, it looks at
 * volumes with the source `secret`, at variables of containers and init containers, and at
 * imagePullSecrets, and at nothing else.
 * 0, HF_E_FORBIDDEN with the message in why, or -ENOMEM. Takes time in proportion to n log n for
 * spec and account. */
int hfd_pod_check_secrets(const struct hf__json *spec, const struct hf__json *account,
                          struct hf__strbuf *why);
/* The same for the Secrets of its ephemeral containers only, which are added to a pod later. */
int hfd_pod_check_ephemeral_secrets(const struct hf__json *spec, const struct hf__json *account,
                                    struct hf__strbuf *why);

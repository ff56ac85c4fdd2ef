/* SPDX-License-Identifier: Apache-2.0 */
#pragma once
/* The Secrets that a pod names, and who may name them. Objects have the form of their schemas.
 * Pure. Thread: any. */
#include <stdbool.h>

struct hf__json;
struct hf__strbuf;

/* Whether the pod mirrors a static pod of a kubelet. */
bool hfd_pod_is_mirror(const struct hf__json *pod);
/* What a mirror pod has and may not have, as a message. NULL = nothing. */
const char *hfd_mirror_pod_mistake(const struct hf__json *pod);
/*
 * Whether pods may use only the Secrets that their account, which is this one, names: an annotation
 * of the account says so.
 */
bool hfd_account_limits_secrets(const struct hf__json *account);
/* Checks that a pod's spec does so. 0, HF_E_FORBIDDEN with the message in why, or -ENOMEM. The time
 * is in proportion to the spec and the account, but for a logarithm. */
int hfd_pod_check_secrets(const struct hf__json *spec, const struct hf__json *account,
                          struct hf__strbuf *why);
/* The same for the Secrets of its ephemeral containers only, which are added to a pod later. */
int hfd_pod_check_ephemeral_secrets(const struct hf__json *spec, const struct hf__json *account,
                                    struct hf__strbuf *why);

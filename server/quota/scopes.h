/* SPDX-License-Identifier: Apache-2.0 */
#pragma once
/* Decides which objects the scopes of a quota select. Pure. Thread: any. */
#include "server/quota/usage.h"

/* Whether the pod has the scope Terminating: its time is limited. */
bool hfd_pod_is_terminating(const struct hf__json *pod);
bool hfd_quota_has_scopes(const struct hf__json *quota);
/*
 * Whether the object has all scopes of the quota. A quota without scopes selects every object. Pods
 * can have all scopes except VolumeAttributesClass, which only claims can have. Objects of other
 * kinds have no scopes.
 */
bool hfd_quota_selects(const struct hf__json *quota, enum hfd_quota_kind kind,
                       const struct hf__json *object);

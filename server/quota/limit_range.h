/* SPDX-License-Identifier: Apache-2.0 */
#pragma once
/*
 * Applies a LimitRange to a pod or a volume claim: it adds the requests and limits that containers
 * leave out, and refuses amounts that are out of its bounds, with the texts of kube-apiserver.
 * Pure. Thread: any.
 */
#include <stdbool.h>

#include "server/quota/usage.h"

struct hf__json;
struct hf__strbuf;

/* The most pairs of a container and an amount in a LimitRange. Clients choose both numbers, and the
 * work is their product. */
#define HFD_LIMIT_RANGE_PAIRS_MAX 50000

/* Whether there are more than HFD_LIMIT_RANGE_PAIRS_MAX pairs; then the pod is refused. */
bool hfd_limit_range_is_too_much(const struct hf__json *range, const struct hf__json *pod);
/* Adds the default requests and limits to the containers of a pod, and an annotation that names
 * them. 0 or -ENOMEM. */
int hfd_limit_range_default_pod(const struct hf__json *range, struct hf__json *pod);
/* Appends to `why` a message about the amounts that are out of bounds; nothing if there are none.
 * kind: HFD_QUOTA_PODS or HFD_QUOTA_CLAIMS. 0 or -ENOMEM. */
int hfd_limit_range_check(const struct hf__json *range, enum hfd_quota_kind kind,
                          const struct hf__json *object, struct hf__strbuf *why);

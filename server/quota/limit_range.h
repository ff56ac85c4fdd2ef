/* SPDX-License-Identifier: Apache-2.0 */
#pragma once
/*
 * Applies a LimitRange to a pod or a volume claim: it sets what containers leave out, and refuses
 * what is out of its bounds, with the texts of kube-apiserver. Pure. Thread: any.
 */
#include <stdbool.h>

#include "server/quota/usage.h"

struct hf__json;
struct hf__strbuf;

/* The most pairs of a container and a name of a LimitRange that are looked at. */
#define HFD_LIMIT_RANGE_PAIRS_MAX 50000

/* Whether the pod has so many containers, and the LimitRange so many names, that it is refused. */
bool hfd_limit_range_is_too_much(const struct hf__json *range, const struct hf__json *pod);
/* Sets what the containers of a pod leave out, and says so in an annotation. 0 or -ENOMEM. */
int hfd_limit_range_default_pod(const struct hf__json *range, struct hf__json *pod);
/* Appends to why what is out of bounds; nothing if all is within. kind: HFD_QUOTA_PODS or
 * HFD_QUOTA_CLAIMS. 0 or -ENOMEM. */
int hfd_limit_range_check(const struct hf__json *range, enum hfd_quota_kind kind,
                          const struct hf__json *object, struct hf__strbuf *why);

/* SPDX-License-Identifier: Apache-2.0 */
#pragma once
/*
 * A quota of processor time or memory refuses a pod if one of its containers does not say how much
 * it needs, unless the pod has resources of its own. Pure. Thread: any.
 */
#include <stdbool.h>
#include <stddef.h>

struct hf__json;
struct hf__strbuf;

#define HFD_MUST_SPECIFY_MAX 6

/* Initially only the pod is set. */
struct hfd_must_specify {
        const struct hf__json *pod;              /* borrowed */
        const char *names[HFD_MUST_SPECIFY_MAX]; /* not specified; borrowed from the quota */
        size_t n;
        bool any;
};

/* Checks one resource that the quota limits. The message has the resources in the order of the
 * calls; kube-apiserver sorts them by name, so the caller passes them in that order. */
void hfd_must_specify_check(struct hfd_must_specify *missing, const char *name);
/* Appends "must specify NAME for: CONTAINERS; ...". */
void hfd_must_specify_print(const struct hfd_must_specify *missing, struct hf__strbuf *out);

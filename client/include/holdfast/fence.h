/* SPDX-License-Identifier: Apache-2.0 */
#pragma once
/*
 * The fence of a leader's write: which Lease, which term, whose. design 6; docs/semantics.md.
 *
 * Over HTTP it is the header `Holdfast-Fence: namespace/name;term;identity`, which the server
 * echoes in its reply. The term is the resourceVersion that the acquiring write returned. A leader
 * that holds two Leases at once (a migration from one to another) names both,
 * `namespace/name;term,namespace/name;term;identity`, and the write commits only while both are
 * its.
 */
#include <stddef.h>
#include <stdint.h>

#define HF_FENCE_HEADER "Holdfast-Fence"
#define HF_IDENTITY_MAX 255 /* bytes of a holder identity we make or fence with */
#define HF_NAME_MAX     253 /* bytes of an object's name or namespace */
#define HF_FENCE_MAX                                                                               \
        (4 * HF_NAME_MAX + HF_IDENTITY_MAX + 64) /* bytes that hold any fence as text */

struct hf_fence {
        char ns[HF_NAME_MAX + 1];
        char name[HF_NAME_MAX + 1];
        uint64_t term; /* never 0 */
        char identity[HF_IDENTITY_MAX + 1];
        /* The second Lease, of the same holder; also_term 0 = there is none. */
        char also_ns[HF_NAME_MAX + 1];
        char also_name[HF_NAME_MAX + 1];
        uint64_t also_term;
};

/* Writes the header's value. Returns its length, -ENOSPC, or -EINVAL: term 0, a part that is empty
 * or would break the header. */
int hf_fence_format(const struct hf_fence *fence, char *text, size_t max_text);
/* 0 or -EINVAL; ret_fence is set on success only. */
int hf_fence_parse(const char *text, size_t n, struct hf_fence *ret_fence);

/* SPDX-License-Identifier: Apache-2.0 */
#pragma once
/*
 * The fence of a leader's write: the Lease, the term and the holder under which the leader writes.
 * A server that supports fences commits the write only while this holder still leads in this term.
 * docs/semantics.md describes which failures this prevents.
 *
 * Over HTTP a fence is the header `Holdfast-Fence: namespace/name;term;identity`, which the server
 * repeats in its response. The term is the resourceVersion of the write that acquired the Lease; if
 * that is not a number, the server has no fences, and the term is a count of this process's terms.
 * A leader that holds two Leases during a migration names both:
 * `namespace/name;term,namespace/name;term;identity`. The server then commits the write only while
 * the holder still leads under both Leases in these terms.
 *
 * Thread: any; the functions are pure.
 */
#include <stddef.h>
#include <stdint.h>

#include <holdfast/api.h>

#ifdef __cplusplus
extern "C" {
#endif

#define HF_FENCE_HEADER "Holdfast-Fence"
/* Bytes of a holder identity that this library creates or uses in a fence. */
#define HF_IDENTITY_MAX 255
#define HF_NAME_MAX     253 /* bytes of an object's name or namespace */
/* The size of a buffer that holds any fence as text, with its NUL. Two terms of up to 20 digits and
 * the separators need less than the 64 bytes. */
#define HF_FENCE_MAX (4 * HF_NAME_MAX + HF_IDENTITY_MAX + 64)

/* All texts are NUL-terminated. Frozen: it has what the header `Holdfast-Fence` can say. */
struct hf_fence {
        char ns[HF_NAME_MAX + 1];           /* the Lease's namespace */
        char name[HF_NAME_MAX + 1];         /* the Lease's name */
        uint64_t term;                      /* never 0 */
        char identity[HF_IDENTITY_MAX + 1]; /* the holder of the Lease, or of both Leases */
        /* The second Lease. also_term is 0 if there is only one. */
        char also_ns[HF_NAME_MAX + 1];
        char also_name[HF_NAME_MAX + 1];
        uint64_t also_term;
};

/* Writes the value of the header and a NUL into `text`, a buffer of max_text bytes. Returns the
 * length without the NUL. -ENOSPC: the buffer is too small. -EINVAL: fence is NULL, the term is 0,
 * or a text is empty, begins or ends with a space, or contains characters that header values or
 * this format do not allow. */
HF_MUST_CHECK int hf_fence_format(const struct hf_fence *fence, char *text, size_t max_text);
/* Parses a header value of n bytes (a NUL is not needed). Returns 0, or -EINVAL if it is not a
 * fence. Accepts only the spelling that hf_fence_format writes, so that equal fences have equal
 * texts. *ret_fence is set only on success. */
HF_MUST_CHECK int hf_fence_parse(const char *text, size_t n, struct hf_fence *ret_fence);

#ifdef __cplusplus
}
#endif

/* SPDX-License-Identifier: Apache-2.0 */
#pragma once
/*
 * The rules that Kubernetes' three kinds of patches share: JSON patch (json_patch.h), merge patch
 * (merge_patch.h) and strategic merge patch (strategic_patch.h).
 *
 * Each kind has one function, which changes or replaces *document. It does not change the patch,
 * which can therefore be applied again. Results:
 *
 *      0
 *      HF_E_INVALID     the patch cannot be applied to this document; outcome->why is the reason
 *      HF_E_TOO_LARGE   the patch needs more copies or steps than one request may use, or its
 *                       result would be nested too deeply; outcome->why is the reason
 *      -ENOMEM
 *
 * After a failure *document may be partly patched, and the caller must still free it.
 *
 * Work: a merge takes n log n time for a document and a patch of n values together; a JSON patch
 * also needs time for each operation, and a strategic merge patch may merge one element of a list
 * again and again. Steps are counted, so that a patch that needs too many is refused before it has
 * used much processor time. Pure. Thread: owner only.
 */
#include <stdbool.h>
#include <stddef.h>

#define HFD_PATCH_OPS_MAX   10000 /* operations of a JSON patch; the caller checks the limit */
#define HFD_PATCH_STEPS_MAX ((size_t)10 << 20) /* of one patch; at most about a second */
/* Limit of `repeats`: less than 0.1 s. */
#define HFD_PATCH_REPEATS_MAX ((size_t)2 << 20)
#define HFD_PATCH_STEP_BYTES  64  /* so many bytes of a key or a merge key's value are a step */
#define HFD_PATCH_WHY         240 /* size of the buffer `why`, in bytes */

enum hfd_patch {
        HFD_PATCH_JSON,
        HFD_PATCH_MERGE,
        HFD_PATCH_STRATEGIC,
        HFD_PATCH_APPLY /* server-side apply (server/apply) */
};

/* Begins as {0}. */
struct hfd_patch_outcome {
        size_t steps; /* values that were visited, compared or copied so far */
        /* The work of merges into list elements that the patch has named before: n steps at once
         * count as n times the logarithm of n, because they may be a sort. */
        size_t repeats;
        unsigned repeating;      /* how many such merges are under way, one within the other */
        bool too_deep;           /* with HF_E_TOO_LARGE: the result would be nested too deeply */
        bool malformed;          /* with HF_E_INVALID: do not try a newer document */
        bool test_failed;        /* with HF_E_INVALID: a test of a JSON patch was not true */
        char why[HFD_PATCH_WHY]; /* the reason of a refusal; mostly in Kubernetes' words */
};

/* The rest of this header is for the functions of the three kinds. */

/* Counts steps. 0, or HF_E_TOO_LARGE: the limit is exceeded; why is set. */
int hfd_patch_spend(struct hfd_patch_outcome *outcome, size_t steps);
/* Sets the reason. Always returns HF_E_INVALID. */
int hfd_patch_refuse(struct hfd_patch_outcome *outcome, const char *format, ...)
        __attribute__((format(printf, 2, 3)));
/* The same for a patch that is malformed: also sets `malformed`. */
int hfd_patch_malformed(struct hfd_patch_outcome *outcome, const char *why);

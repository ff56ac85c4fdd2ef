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
 *      HF_E_INVALID     the patch cannot be applied to this document; `why` contains the reason
 *      HF_E_TOO_LARGE   it needs more copies or comparisons than one request may use
 *      -ENOMEM
 *
 * After a failure *document may be partly patched, and the caller must still free it. Pure. Thread:
 * a document belongs to one thread.
 */

#define HFD_PATCH_OPS_MAX 10000 /* operations of a JSON patch; the caller checks the limit */
#define HFD_PATCH_WHY     240   /* size of the buffer `why`, in bytes */

enum hfd_patch { HFD_PATCH_JSON, HFD_PATCH_MERGE, HFD_PATCH_STRATEGIC };

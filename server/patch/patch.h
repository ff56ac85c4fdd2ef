/* SPDX-License-Identifier: Apache-2.0 */
#pragma once
/*
 * What the three kinds of patches of Kubernetes have in common: JSON patch (json_patch.h), merge
 * patch (merge_patch.h) and strategic merge patch (strategic_patch.h).
 *
 * Each kind has one function, which changes *document in place, or puts another document in its
 * place. The patch stays as it is, so that it can be applied again. Results:
 *
 *      0
 *      HF_E_INVALID     the patch cannot be applied to this document; why says why not
 *      HF_E_TOO_LARGE   it asks for more copies or comparisons than one request may
 *      -ENOMEM
 *
 * After a failure *document is half patched, and still the caller's to free. Pure. Thread: a
 * document belongs to one thread.
 */

#define HFD_PATCH_OPS_MAX 10000 /* operations of a JSON patch; the caller has checked it */
#define HFD_PATCH_WHY     240   /* bytes of a message, with its NUL */

enum hfd_patch { HFD_PATCH_JSON, HFD_PATCH_MERGE, HFD_PATCH_STRATEGIC };

/* SPDX-License-Identifier: Apache-2.0 */
#pragma once
/*
 * Copies all keys that instances keep below one prefix P from a store to another, empty one.
 *
 * Values are copied byte for byte, and keys are created in the order of their last writes. Each key
 * gets new revisions, those of its write to the target. The key P.holdfast/epoch (keys.h) gets a
 * new value. P.holdfast/compact and P.holdfast/progress are left out, because they name revisions
 * of the source.
 *
 * While the copy is not complete, the target has the key P.holdfast/copying. holdfastd does not
 * serve such a store. Every transaction of the copy requires that this key is unchanged and that
 * the keys that it writes do not exist. So it overwrites neither another copy nor another program's
 * object.
 *
 * The source is read at one revision (copy_source.h). At the end its keys are listed once more: if
 * one of them was written or deleted meanwhile, the copy fails.
 *
 * The source has all keys with their revisions in memory; the copy adds a few values. Blocks; logs
 * nothing. Thread: any.
 */
#include "server/storage/copy_source.h"

struct hfd_copy {
        const struct hfd_copy_source *source; /* borrowed, and its store */
        struct hfd_store *to;                 /* borrowed */
        /* Called at the beginning and after each percent. NULL = no callback. */
        void (*on_progress)(void *ctx, size_t n_copied, size_t n_keys);
        void *ctx;
};

struct hfd_copy_result {
        /* After an error: this copy may have left its key P.holdfast/copying, and some or all of
         * the copied keys, in the target. They must be removed before the next attempt. False: this
         * copy has left nothing there. */
        bool incomplete;
};

/*
 * 0, HF_E_EXISTS (the target is not empty; no key was copied), HF_E_CONFLICT (the source or the
 * target was written to meanwhile), HF_E_GONE (the source was compacted meanwhile), HF_E_TOO_LARGE
 * (the prefix, or a value for the target), another error of a store, or -errno. HF_E_UNAVAILABLE
 * and HF_E_TIMEOUT: the store did not work for 20 s.
 */
int hfd_copy_run(const struct hfd_copy *copy, struct hfd_copy_result *ret_result,
                 struct hf_status *reterr_status);

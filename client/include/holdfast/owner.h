/* SPDX-License-Identifier: Apache-2.0 */
#pragma once
/*
 * Owner references: an object names its owners in metadata.ownerReferences, and the garbage
 * collector deletes it when they are gone. At most one owner is the controller. Objects are JSON
 * text (<holdfast/upsert.h> says why). Pure. Thread: any.
 */
#include <stdbool.h>
#include <stddef.h>

#include <holdfast/api.h>
#include <holdfast/error.h>

#ifdef __cplusplus
extern "C" {
#endif

/*
 * Adds `owner` to the owner references of `object` as its controller, with blockOwnerDeletion. If
 * the object has a reference with the owner's uid, that one becomes the controller. Both objects
 * are JSON of the given bytes; the owner has apiVersion, kind, metadata.name and metadata.uid, as
 * every object from the server. (Items of a list may lack apiVersion and kind; objects of an
 * informer are as the server sent them.)
 *
 * *ret_object is the changed object, malloc'ed and NUL-terminated, and the caller frees it. Returns
 * 0, -ENOMEM, -EINVAL (an argument is NULL), HF_E_CONFLICT (another owner is the controller), or
 * HF_E_INVALID (a text is not such an object, the object's metadata is no object or its owner
 * references are no list, or the owner has a namespace and the object has none or another one).
 */
HF_MUST_CHECK int hf_owner_set(const char *object, size_t n, const char *owner, size_t n_owner,
                               char **ret_object);
/*
 * Finds out whether the object with this uid is the controller of `object`, which is JSON of n
 * bytes. Call it before you change or delete an object that has the name of one of yours. Returns
 * 0, -ENOMEM, -EINVAL (an argument is NULL), or HF_E_INVALID: `object` is not JSON.
 */
HF_MUST_CHECK int hf_owner_check(const char *object, size_t n, const char *uid,
                                 bool *ret_is_controller);

#ifdef __cplusplus
}
#endif

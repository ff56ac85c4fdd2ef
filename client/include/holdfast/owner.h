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
#include <holdfast/fence.h>

#ifdef __cplusplus
extern "C" {
#endif

/*
 * Adds `owner` to the owner references of `object` as its controller, with blockOwnerDeletion. If
 * the object has a reference with the owner's uid, that one becomes the controller. Both objects
 * are JSON of the given bytes; the owner has apiVersion, kind, metadata.name and metadata.uid, as
 * every object from the server. (An item of a list from the server may lack apiVersion and kind. An
 * object of an informer has both: the informer adds them.)
 *
 * *ret_object is the changed object, malloc'ed and NUL-terminated; the caller frees it. Returns
 * 0, -ENOMEM, -EINVAL (an argument is NULL), HF_E_CONFLICT (another owner is the controller), or
 * HF_E_INVALID (a text is not such an object, the object's metadata is not an object or its owner
 * references are not a list, or the owner has a namespace and the object is not in that namespace).
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
/*
 * Finds the name of the controller of `object`, which is JSON of n bytes. The controller must have
 * the given kind, in any version of the group (NULL or "" = the core group). For the map function
 * of a reconciler's source, which maps an event of an owned object to the key of the controller.
 * That key has the returned name, and the object's namespace if the controller's kind has
 * namespaces. Returns 0, HF_E_NOT_FOUND (there is no such controller), -ENOMEM, -EINVAL (an
 * argument other than group is NULL), or HF_E_INVALID: `object` is not JSON.
 */
HF_MUST_CHECK int hf_owner_name(const char *object, size_t n, const char *group, const char *kind,
                                char ret_name[HF_NAME_MAX + 1]);

#ifdef __cplusplus
}
#endif

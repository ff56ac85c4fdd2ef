/* SPDX-License-Identifier: Apache-2.0 */
#pragma once
/*
 * Objects that a controller creates for one of its own objects, their owner. A name proves
 * nothing, because another user may have created an object of that name. So these functions read
 * the object, compare its controller (<holdfast/owner.h>), and write only if the object still has
 * the uid that was read. They block; made for controllers. Thread: any.
 */
#include <stddef.h>

#include <holdfast/api.h>
#include <holdfast/client.h>
#include <holdfast/upsert.h>

#ifdef __cplusplus
extern "C" {
#endif

/*
 * Creates the object that `desired` names, with `owner` (JSON of n_owner bytes) as its controller,
 * or merges the body into the existing one as hf_upsert does. `desired` is as in hf_upsert, without
 * a subresource; the object's name and namespace are put into the body.
 *
 * ret_result may be NULL. Returns 0 or an error of hf_upsert or hf_owner_set; HF_E_EXISTS: an
 * object of this name has another controller, or none, and was left alone. reterr_status may be
 * NULL.
 */
HF_MUST_CHECK int hf_owned_upsert(struct hf_client *client, const struct hf_request *desired,
                                  const char *owner, size_t n_owner, struct hf_cancel *token,
                                  enum hf_upsert_result *ret_result,
                                  struct hf_status *reterr_status);
/*
 * Deletes the object that `request` names by resource, ns and name, if `owner` is its controller.
 * HF_E_CONFLICT: someone changed the object between the read and the delete. fence, deadline and
 * lane of `request` apply too. An object that does not exist or has another controller counts as
 * deleted.
 *
 * Returns 0 or an error of hf_client_do; HF_E_INVALID: the owner has no uid. reterr_status may be
 * NULL.
 */
HF_MUST_CHECK int hf_owned_delete(struct hf_client *client, const struct hf_request *request,
                                  const char *owner, size_t n_owner, struct hf_cancel *token,
                                  struct hf_status *reterr_status);

#ifdef __cplusplus
}
#endif

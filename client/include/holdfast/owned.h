/* SPDX-License-Identifier: Apache-2.0 */
#pragma once
/*
 * Writes and deletes objects that a program creates for another object, their owner. Such an object
 * has an owner reference with "controller": true (<holdfast/owner.h>); below, its controller is the
 * owner that this reference names. A name does not prove who created an object: another user may
 * have created one of that name. So these functions read the object, check that the given owner is
 * its controller, and write only if the object still has the uid that was read. They block,
 * and are made for the programs that are called controllers. Thread: any.
 */
#include <stddef.h>

#include <holdfast/api.h>
#include <holdfast/client.h>
#include <holdfast/upsert.h>

#ifdef __cplusplus
extern "C" {
#endif

/*
 * Creates the object that `desired` names, with `owner` (JSON of n_owner bytes) as its controller.
 * If the object exists and `owner` is its controller, merges the body into it as hf_upsert does;
 * owner references in the body replace those of the object, but `owner` stays its controller.
 * `desired` is as in hf_upsert, but without a subresource; the function puts the name and the
 * namespace of `desired` into the body.
 *
 * ret_result may be NULL. Returns 0, -EINVAL, or an error of hf_upsert or hf_owner_set;
 * HF_E_EXISTS: an object of this name has another controller, or none, and was left alone; or in
 * each of 5 attempts another client created the object and it was deleted again. reterr_status may
 * be NULL.
 */
HF_MUST_CHECK int hf_owned_upsert(struct hf_client *client, const struct hf_request *desired,
                                  const char *owner, size_t n_owner, struct hf_cancel *token,
                                  enum hf_upsert_result *ret_result,
                                  struct hf_status *reterr_status);
/*
 * Deletes the object that `request` names by resource, ns and name, if `owner` is its controller.
 * fence, deadline and lane of `request` apply too; verb and body are ignored.
 *
 * Returns 0 or an error of hf_client_do. 0 also if the object does not exist, or was left alone
 * because it has another controller or none. HF_E_CONFLICT: another client changed the object
 * between the read and the delete. HF_E_INVALID: the owner has no uid. reterr_status may be NULL.
 */
HF_MUST_CHECK int hf_owned_delete(struct hf_client *client, const struct hf_request *request,
                                  const char *owner, size_t n_owner, struct hf_cancel *token,
                                  struct hf_status *reterr_status);

#ifdef __cplusplus
}
#endif

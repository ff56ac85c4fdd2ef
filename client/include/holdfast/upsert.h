/* SPDX-License-Identifier: Apache-2.0 */
#pragma once
/*
 * Creates an object, or brings an existing one to a desired state: what most controllers do at the
 * end of a reconcile. Blocks; made for controllers. Thread: any.
 *
 * This and the other helpers (condition.h, finalizer.h, owned.h, owner.h, recorder.h) take and
 * return objects as JSON text. Informers and the client use JSON text too, and the types of a JSON
 * library would bind each host to that library and its version. A helper parses a text, changes it,
 * and leaves everything else in it as it was.
 */
#include <stddef.h>

#include <holdfast/api.h>
#include <holdfast/client.h>

#ifdef __cplusplus
extern "C" {
#endif

enum hf_upsert_result { HF_UPSERT_UNCHANGED = 0, HF_UPSERT_CREATED, HF_UPSERT_UPDATED };

/*
 * Reads the object that `desired` names, and writes it if a member differs.
 *
 * desired: a request with resource, ns, name and body, and perhaps subresource, query, fence,
 * deadline and lane; verb and patch are ignored. The body has the members of the object that the
 * caller wants to set, and also apiVersion, kind and metadata.name, because the object may have to
 * be created. The body is merged into an existing object like a JSON merge patch (RFC 7396):
 * objects are merged member by member, lists and other values are replaced, and null removes a
 * member. A member that the body does not name stays. If nothing differs, nothing is written.
 *
 * An update has the resourceVersion that was read. After a conflict, or if another writer creates
 * or deletes the object in between, hf_upsert reads again: it makes at most 5 attempts. If the body
 * has a metadata.resourceVersion or metadata.uid that is not empty, the object must have the same,
 * or nothing is written; such a body never creates an object. The deadline is a time, so if it is
 * given, all requests together must end by then; otherwise each request has the client's default
 * timeout. `token` ends all attempts.
 *
 * ret_result and ret_object may be NULL; *ret_object is the object as the server returned it,
 * malloc'ed and NUL-terminated, and the caller frees it. Returns 0, -EINVAL, -ENOMEM or an error of
 * hf_client_do; HF_E_CONFLICT: 5 attempts failed, or the body has a uid or resourceVersion, and the
 * object does not exist or has another one; HF_E_INVALID: the body is not a JSON object;
 * HF_E_NOT_FOUND: `desired` has a subresource, and the object does not exist; or the server does
 * not know the namespace or the resource of an object to create. reterr_status may be NULL.
 */
HF_MUST_CHECK int hf_upsert(struct hf_client *client, const struct hf_request *desired,
                            struct hf_cancel *token, enum hf_upsert_result *ret_result,
                            char **ret_object, struct hf_status *reterr_status);

#ifdef __cplusplus
}
#endif

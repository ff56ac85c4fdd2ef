/* SPDX-License-Identifier: Apache-2.0 */
#pragma once
/*
 * The requests that controllers send. These functions convert between JSON text and struct
 * hf__json, and use the client of the term. That client is gated and fenced (holdfast/leader.h), so
 * a controller whose term has ended gets HF_E_NOT_LEADER, HF_E_STALE_TERM or HF_E_CANCELED from
 * every write. A controller that runs on every instance has no such client, and must not use these
 * functions.
 *
 * The functions that have a term block until the response has arrived or the term's abort token
 * fires (HF_E_CANCELED). They return 0, -ENOMEM, or an error of hf_client_do; those that return an
 * object or a list also an error of hf__json_parse. Thread: any worker of the term.
 */
#include <holdfast/informer.h>
#include <holdfast/leader.h>

struct hf__json;

/*
 * Copies the object from the informer's cache; the caller frees the copy. The copy may be outdated.
 * If the informer keeps metadata only, the copy has metadata only. 0; HF_E_NOT_FOUND: the object is
 * not in the cache; -ENOMEM; or another error of hf__json_parse. Never blocks.
 */
int hfd_object_client_get_cached(struct hf_informer *informer, const char *ns, const char *name,
                                 struct hf__json **ret_object);

/* Gets the object by a consistent read; the caller frees it. HF_E_NOT_FOUND: the object does not
 * exist, or this instance does not serve its kind. */
int hfd_object_client_get(struct hf_term *term, const struct hf_resource *resource, const char *ns,
                          const char *name, struct hf__json **ret_object);

/* Gets the list of the objects in the namespace (NULL = in all), or a page of the list; the caller
 * frees *ret_list. query as in struct hf_request. */
int hfd_object_client_list(struct hf_term *term, const struct hf_resource *resource, const char *ns,
                           const char *query, struct hf__json **ret_list);

/* Creates the object. HF_E_EXISTS: there is one of this name. */
int hfd_object_client_create(struct hf_term *term, const struct hf_resource *resource,
                             const char *ns, const struct hf__json *object);

/*
 * Updates the object, if the stored object still has the same resourceVersion. HF_E_CONFLICT:
 * another client has changed the object; HF_E_NOT_FOUND: another client has deleted it, or this
 * instance does not serve its kind. The event of another client's write enqueues the object's key
 * again. subresource may be NULL.
 */
int hfd_object_client_update(struct hf_term *term, const struct hf_resource *resource,
                             const char *ns, const char *name, const char *subresource,
                             const struct hf__json *object);

/*
 * hfd_object_client_patch changes the members at the given paths, if the stored object still has
 * the resourceVersion `revision`; that saves sending the whole of a large object. For
 * cluster-scoped objects only. The caller frees *ret_object, the object after the change.
 * HF_E_CONFLICT and HF_E_NOT_FOUND as for an update.
 */
struct hfd_object_client_change {
        const char *pointer;          /* a JSON pointer: "/status/conditions" */
        const struct hf__json *value; /* NULL = the change is left out */
};
int hfd_object_client_patch(struct hf_term *term, const struct hf_resource *resource,
                            const char *name, const char *subresource, const char *revision,
                            const struct hfd_object_client_change *changes, size_t n_changes,
                            struct hf__json **ret_object);

/* The DeleteOptions of a delete. NULL fields are not sent. */
struct hfd_object_client_delete_options {
        const char *uid, *resource_version; /* preconditions */
        const char *policy; /* propagationPolicy: "Foreground", "Background" or "Orphan" */
};

/* HF_E_NOT_FOUND: there is no such object, or this instance does not serve its kind. HF_E_CONFLICT:
 * a precondition does not hold. */
int hfd_object_client_delete(struct hf_term *term, const struct hf_resource *resource,
                             const char *ns, const char *name,
                             const struct hfd_object_client_delete_options *options);

/*
 * Returns 0 for HF_E_CONFLICT and HF_E_NOT_FOUND, otherwise r. For writes that need no retry if
 * another client has changed or deleted the object: the event of that change enqueues the key
 * again.
 */
int hfd_object_client_ignore_stale(int r);

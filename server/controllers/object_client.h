/* SPDX-License-Identifier: Apache-2.0 */
#pragma once
/*
 * The requests that controllers send: one object each, parsed and printed, through the client of
 * the term. That client is gated and fenced (holdfast/leader.h), so a controller whose term has
 * ended gets HF_E_NOT_LEADER or HF_E_STALE_TERM from every write.
 *
 * All functions but hfd_object_client_get_cached block until the response is there or the term's
 * abort fires (HF_E_CANCELED). Thread: any worker of the term.
 */
#include <holdfast/informer.h>
#include <holdfast/leader.h>

struct hf__json;

/* The object as the informer knows it, a copy that the caller frees. It may be outdated, and has
 * metadata only if the informer keeps only that. HF_E_NOT_FOUND: the informer does not know it. */
int hfd_object_client_get_cached(struct hf_informer *informer, const char *ns, const char *name,
                                 struct hf__json **ret_object);

/* The object as the server has it now (a consistent read); the caller frees. */
int hfd_object_client_get(struct hf_term *term, const struct hf_resource *resource, const char *ns,
                          const char *name, struct hf__json **ret_object);

int hfd_object_client_create(struct hf_term *term, const struct hf_resource *resource,
                             const char *ns, const struct hf__json *object);

/* Writes object if the server still has the resourceVersion in it. HF_E_CONFLICT: another client
 * changed the object, and the event of that change brings its key back. subresource may be NULL. */
int hfd_object_client_update(struct hf_term *term, const struct hf_resource *resource,
                             const char *ns, const char *name, const char *subresource,
                             const struct hf__json *object);

/* The DeleteOptions of a delete. NULL fields are not sent. */
struct hfd_object_client_delete_options {
        const char *uid, *resource_version; /* preconditions */
        const char *policy; /* propagationPolicy: "Foreground", "Background" or "Orphan" */
};

/* HF_E_NOT_FOUND: there is no such object. HF_E_CONFLICT: a precondition does not hold. */
int hfd_object_client_delete(struct hf_term *term, const struct hf_resource *resource,
                             const char *ns, const char *name,
                             const struct hfd_object_client_delete_options *options);

/* 0 for HF_E_CONFLICT and HF_E_NOT_FOUND, else r. For writes that need no retry if the object has
 * changed or gone meanwhile, because the event of that brings its key back anyway. */
int hfd_object_client_ignore_stale(int r);

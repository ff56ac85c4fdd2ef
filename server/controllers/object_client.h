/* SPDX-License-Identifier: Apache-2.0 */
#pragma once
/*
 * What every controller does with objects: lists of strings in them (finalizers, initializers), and
 * one call each through the term's gated and fenced client. Calls block until they are answered, or
 * abort fires.
 */
#include <holdfast/informer.h>
#include <holdfast/leader.h>

struct hf__json;

/* ---- lists of strings below a path. Pure ---- */

bool hfd_list_has(const struct hf__json *object, const char *path, const char *text);
int hfd_list_add(struct hf__json *object, const char *path,
                 const char *text); /* last; nothing when it is there. 0, -ENOMEM */
int hfd_list_drop(struct hf__json *object, const char *path,
                  const char *text); /* the list goes with its last entry. 0, -ENOMEM */

/* ---- calls ---- */

/* A copy out of a cache, parsed; the caller frees. HF_E_NOT_FOUND. */
int hfd_object_cached(struct hf_informer *informer, const char *ns, const char *name,
                      struct hf__json **ret_object);
/* A consistent read; the caller frees. */
int hfd_object_read(struct hf_term *term, const struct hf_resource *resource, const char *ns,
                    const char *name, struct hf__json **ret_object);
int hfd_object_create(struct hf_term *term, const struct hf_resource *resource, const char *ns,
                      const struct hf__json *object);
/* Writes object at the resourceVersion in it. HF_E_CONFLICT: it is another by now, and an event
 * will tell. */
int hfd_object_update(struct hf_term *term, const struct hf_resource *resource, const char *ns,
                      const char *name, const char *subresource, const struct hf__json *object);

/* What a delete demands of the object, and what becomes of its dependents; NULL = nothing said. */
struct hfd_delete {
        const char *uid, *resource_version;
        const char *policy; /* "Foreground", "Background", "Orphan" */
};
/* HF_E_NOT_FOUND and HF_E_CONFLICT are the caller's to judge: mostly both mean that there is
 * nothing left to do. */
int hfd_object_delete(struct hf_term *term, const struct hf_resource *resource, const char *ns,
                      const char *name, const struct hfd_delete *what);

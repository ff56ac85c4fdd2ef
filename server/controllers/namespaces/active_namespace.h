/* SPDX-License-Identifier: Apache-2.0 */
#pragma once
/*
 * Whether objects may be added to a namespace. Controllers that keep an object in every namespace
 * ask here, so that they leave a terminating namespace alone: otherwise they would try to create
 * again the objects that the controller namespace-lifecycle deletes.
 *
 * Thread: any worker of the term.
 */
#include <stdbool.h>

#include <holdfast/leader.h>

struct hfd_controller_context;

/* Checks the informer's copy of the namespace, which may be outdated. *ret_active is false if
 * there is no copy. 0, -ENOMEM, or another error of hf__json_parse. */
int hfd_active_namespace(const struct hfd_controller_context *context, const char *name,
                         bool *ret_active);
/*
 * Call it after a create in a namespace that was active, with the result r of the request. Returns
 * 0 if the object exists now, or if r or a consistent read shows that the namespace is gone or
 * being deleted; otherwise r. Blocks as a request of the term does.
 */
int hfd_active_namespace_created(struct hf_term *term, const char *name, int r);

/* SPDX-License-Identifier: Apache-2.0 */
#pragma once
/*
 * The list verb: returns the objects that the selectors match, in pages if the client asks for it.
 * Thread: any. Nothing blocks.
 */
#include "server/registry/list/read.h"

/* Carries out a list. request->done is called once, perhaps before this returns. */
void hfd_list(struct hfd_registry *registry, struct hfd_request *request);
/*
 * The same, but on_objects receives the objects and must send the response. If the list fails,
 * request->done is called instead.
 */
void hfd_list_objects(struct hfd_registry *registry, struct hfd_request *request,
                      hfd_list_objects_fn on_objects);
/*
 * Renders a list of these objects in the format that the request asks for, but always in JSON: for
 * a client that gets protobuf, the HTTP handler converts the response later. meta contains the
 * members of the list's metadata ("resourceVersion":...). The caller owns the returned reference.
 * NULL: out of memory, the list would exceed 512 MiB, or the bytes of an object are malformed.
 */
struct hf__buf *hfd_list_render(struct hfd_registry *registry, const struct hfd_request *request,
                                struct hfd_object *const *objects, size_t n, const char *meta);

/* SPDX-License-Identifier: Apache-2.0 */
#pragma once
/*
 * list: the objects of a collection that the selectors match, in pages if the client wants that.
 * Thread: any. Nothing blocks.
 */
#include "server/registry/read.h"

/* Carries out a list. The request is answered once, perhaps before this returns. */
void hfd_list(struct hfd_registry *registry, struct hfd_request *request);
/* The same, but gives the objects to take instead of answering. A failure is answered. */
void hfd_list_for(struct hfd_registry *registry, struct hfd_request *request, hfd_list_fn take);
/*
 * The body of a list of these objects, in the form that the request asks for. meta is the inside of
 * its metadata ("resourceVersion":...). The caller drops the reference. NULL: out of memory.
 */
struct hf__buf *hfd_list_render(struct hfd_registry *registry, const struct hfd_request *request,
                                struct hfd_object *const *objects, size_t n, const char *meta);

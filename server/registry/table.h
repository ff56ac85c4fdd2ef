/* SPDX-License-Identifier: Apache-2.0 */
#pragma once
/*
 * Renders Table and PartialObjectMetadata, the response formats that kubectl and metadata clients
 * request. Pure, except that ages depend on the clock. Thread: any.
 *
 * Each function returns a new reference, or NULL if memory runs out.
 */
#include "server/registry/registry.h"
#include "server/registry/request.h"

/*
 * A Table with a row for each of the n objects, in the version that the request asks for. list_meta
 * contains the members of the Table's metadata ("resourceVersion":...).
 */
struct hf__buf *hfd_table_render(struct hfd_registry *registry, const struct hfd_request *request,
                                 struct hfd_object *const *objects, size_t n,
                                 const char *list_meta);
/* The PartialObjectMetadata of one object. */
struct hf__buf *hfd_table_render_partial(const struct hfd_object *object);

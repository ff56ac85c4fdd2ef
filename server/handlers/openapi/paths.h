/* SPDX-License-Identifier: Apache-2.0 */
#pragma once
/*
 * The paths of resources and the operations on them, for OpenAPI documents. Pure. Thread: any.
 */
#include "server/resources/resource.h"

struct hf__strbuf;

/*
 * Appends the paths of a resource and of its subresources, as members of an object, each with a
 * comma. They refer to the definitions that hfd_definitions_add adds (definitions.h).
 */
void hfd_openapi_put_paths(struct hf__strbuf *s, bool v2, const struct hfd_resource *resource);
/* Appends "api/v1" for the core group, and "apis/GROUP/VERSION" for others. */
void hfd_openapi_put_prefix(struct hf__strbuf *s, const struct hfd_resource *resource);

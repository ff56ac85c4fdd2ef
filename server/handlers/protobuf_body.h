/* SPDX-License-Identifier: Apache-2.0 */
#pragma once
/*
 * Converts bodies in Kubernetes' protobuf format, which kubectl's typed commands send, to JSON. So
 * no other code of the server decodes that format. Pure. Thread: any.
 */
#include <stdbool.h>

#include "server/resources/resource.h"

struct hf__json;

/* Whether the kind has a protobuf form. Workspaces, which Kubernetes does not have, have none, like
 * custom resources. */
bool hfd_protobuf_has_form(const struct hfd_resource *resource);
/*
 * Converts a body to the JSON of the resource's kind, or of DeleteOptions. Unknown fields are
 * ignored. The caller frees *ret_json. 0; -ENOMEM; or HF_E_INVALID: the body is malformed or has
 * something that protobuf_body.c refuses, or the kind has no protobuf form.
 */
int hfd_protobuf_to_json(const struct hfd_resource *resource, bool delete_options, const void *body,
                         size_t n_body, struct hf__json **ret_json);

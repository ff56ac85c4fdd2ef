/* SPDX-License-Identifier: Apache-2.0 */
#pragma once
/*
 * Bodies in Kubernetes' protobuf form, as kubectl's typed commands send them: they become JSON, so
 * that everything behind it knows one form only. Pure. Thread: any.
 */
#include <stdbool.h>

#include "server/resources/resource.h"

struct hf__json;

/*
 * Brings a body into the JSON form of the resource's kind, or of DeleteOptions. Unknown fields are
 * ignored. The caller frees *ret_json. 0; -ENOMEM; or HF_E_INVALID: the body is malformed, or the
 * kind has no protobuf form (protobuf_fields.h).
 */
int hfd_protobuf_to_json(const struct hfd_resource *resource, bool delete_options, const void *body,
                         size_t n_body, struct hf__json **ret_json);

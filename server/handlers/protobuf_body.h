/* SPDX-License-Identifier: Apache-2.0 */
#pragma once
/* Bodies in Kubernetes' protobuf form (`k8s\0` and a runtime.Unknown), as kubectl's typed commands
 * send them. Pure. */
#include <stdbool.h>

#include "server/resources/resource.h"

struct hf__json;

bool hfd_is_protobuf(const char *content_type);
bool hfd_protobuf_known(const struct hfd_resource *resource); /* whether its kind has such a form */
/*
 * Brings a body into the JSON form of the resource's kind, or of DeleteOptions. Fields that the
 * kind's table does not know are passed over. 0, -ENOMEM, or HF_E_INVALID: it is no such message.
 */
int hfd_protobuf_to_json(const struct hfd_resource *resource, bool delete_options, const void *body,
                         size_t n_body, struct hf__json **ret_json);

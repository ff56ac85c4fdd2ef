/* SPDX-License-Identifier: Apache-2.0 */
#pragma once
/* The body of a write: the registry takes JSON, so YAML and protobuf are converted. */
#include "server/handlers/rest/rest_request.h"

/*
 * Makes the request's body JSON. is_delete: it is DeleteOptions, not the resource's object. False:
 * response is the error (400, 413, 415, 500). Thread: any.
 */
bool hfd_rest_body_decode(struct hfd_rest_request *rest, bool is_delete,
                          struct hfd_response *response);
/*
 * The same for the configuration of an apply, which is YAML. JSON is YAML too: a text that begins
 * with "{" is left as it is.
 */
bool hfd_rest_body_decode_apply(struct hfd_rest_request *rest, struct hfd_response *response);

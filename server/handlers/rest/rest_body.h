/* SPDX-License-Identifier: Apache-2.0 */
#pragma once
/*
 * The body of a write: the registry takes JSON, so YAML and protobuf are converted. The request's
 * body then is the translation, which rest owns. If the client has sent YAML, request->yaml points
 * to its text. A conversion parses the whole body, so large bodies belong on the pool
 * (work_pool.h).
 */
#include "server/handlers/rest/rest_request.h"

/*
 * Converts the body to JSON. A JSON body is left as it is and is not checked. is_delete: it is
 * DeleteOptions, not the resource's object. False: response is the error (400, 413, 415, 500).
 * Thread: any.
 */
bool hfd_rest_body_decode(struct hfd_rest_request *rest, bool is_delete,
                          struct hfd_response *response);
/*
 * The same for the configuration of an apply, which is YAML. A JSON object with only spaces and
 * line feeds before its "{" is left as it is, and request->yaml points to it, because it is YAML,
 * too. Everything else is converted, also YAML that begins with "{".
 */
bool hfd_rest_body_decode_apply(struct hfd_rest_request *rest, struct hfd_response *response);

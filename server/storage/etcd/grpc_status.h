/* SPDX-License-Identifier: Apache-2.0 */
#pragma once
/*
 * Maps the ways in which a request to etcd can fail to the errors of the storage port. Pure.
 * Thread: any. Private to server/storage/etcd.
 */
#include <stdbool.h>

#include "base/http/engine.h"

/*
 * The error of a request without a good response, from the engine's outcome, the HTTP status and
 * the gRPC status. unknown: the request may have written something. If etcd is unavailable or the
 * response breaks off, the result is HF_E_TIMEOUT unless the error proves that nothing was written.
 * Never 0. The message names the endpoint.
 */
int hfd_grpc_status_error(const struct hf__http_result *result, bool unknown, const char *endpoint,
                          struct hf_status *reterr_status);

/* SPDX-License-Identifier: Apache-2.0 */
#pragma once
/*
 * Maps a failed request to etcd to an error of the storage port (store.h). Pure. Thread: any.
 * Private to server/storage/etcd.
 */
#include <stdbool.h>

#include <holdfast/error.h>

#include "server/storage/grpc/stream.h"

/*
 * Returns the error of a failed request, from the stream's outcome, the HTTP status and the gRPC
 * status. maybe_written: the request is a write. If etcd is then unavailable or its response is
 * incomplete, the result is HF_E_TIMEOUT, unless the error proves that nothing was written. Never
 * 0. The message names the endpoint, except with HF_E_CANCELED.
 */
int hfd_grpc_status_error(const struct hfd_grpc_result *result, bool maybe_written,
                          const char *endpoint, struct hf_status *reterr_status);

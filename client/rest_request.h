/* SPDX-License-Identifier: Apache-2.0 */
#pragma once
/* Requests of the REST client, other than watches. Thread: any. */
#include <holdfast/client_port.h>

/* The `request` operation of struct hf_client_ops. */
int hf__rest_request(struct hf_client *client, const struct hf_request *from, hf_response_fn done,
                     void *ctx, uint64_t *ret_id);

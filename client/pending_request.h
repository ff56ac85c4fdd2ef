/* SPDX-License-Identifier: Apache-2.0 */
#pragma once
/*
 * hf_client_do in two halves, for a thread that has something else to do, or to send, before it
 * waits for the response. Every request that was started must be waited for, by one thread.
 */
#include <holdfast/cancel.h>
#include <holdfast/client.h>

struct hf__pending_request;

/* Starts the request. Does not block. Returns the errors of hf_client_do that precede a response;
 * after an error nothing is pending, and *ret_pending is not set. The hf_request and what it points
 * to are the caller's again. The client must outlive the pending request. */
HF_MUST_CHECK int hf__pending_request_start(struct hf_client *client,
                                            const struct hf_request *request,
                                            struct hf_cancel *token,
                                            struct hf__pending_request **ret_pending,
                                            struct hf_status *reterr_status);
/* Blocks until the response has arrived or the token has fired, and frees the pending request.
 * Otherwise as hf_client_do. */
HF_MUST_CHECK int hf__pending_request_wait(struct hf__pending_request *pending,
                                           struct hf_cancel *token, char **ret_body, size_t *ret_n,
                                           struct hf_status *reterr_status);

/* SPDX-License-Identifier: Apache-2.0 */
#pragma once
/* The parameter `timeout` of a request: how long its client waits for the response. */
#include <stdbool.h>

struct hfd_request_context;

/* True: the request may go on. False: its timeout is malformed, and a response was sent. The
 * timeout of a watch is ignored. Thread: the worker of the request. */
bool hfd_timeout_filter(struct hfd_request_context *context);

/* SPDX-License-Identifier: Apache-2.0 */
#pragma once
/* Watches of the REST client. Thread: any. */
#include <holdfast/client_port.h>

/* The `watch` operation of struct hf_client_ops. */
int hf__rest_watch(struct hf_client *client, const struct hf_watch_spec *spec, hf_event_fn on_event,
                   hf_watch_end_fn on_end, void *ctx, uint64_t *ret_id);

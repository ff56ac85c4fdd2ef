/* SPDX-License-Identifier: Apache-2.0 */
#pragma once
/* The watches of the in-process client: the functions `watch` and `watch_cancel` of hf_client_ops
 * (holdfast/client_port.h), which states their rules. Thread: any. */
#include <holdfast/client_port.h>

int hfd_loopback_watch(struct hf_client *self, const struct hf_watch_spec *spec,
                       hf_event_fn on_event, hf_watch_end_fn on_end, void *ctx, uint64_t *ret_id);
void hfd_loopback_watch_cancel(struct hf_client *self, uint64_t id);

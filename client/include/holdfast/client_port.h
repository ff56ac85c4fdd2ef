/* SPDX-License-Identifier: Apache-2.0 */
#pragma once
/*
 * For those who implement a client (loopback, fakes, wrappers): the operations behind
 * <holdfast/client.h>, with the same rules. A client is made by embedding struct hf_client as the
 * first member of one's own struct.
 */
#include <holdfast/client.h>

struct hf_client_ops {
        int (*request)(struct hf_client *self, const struct hf_request *request,
                       hf_response_fn done, void *ctx, uint64_t *ret_id);
        void (*cancel)(struct hf_client *self, uint64_t id);
        int (*watch)(struct hf_client *self, const struct hf_watch_spec *spec, hf_event_fn on_event,
                     hf_watch_end_fn on_end, void *ctx, uint64_t *ret_id);
        void (*watch_cancel)(struct hf_client *self, uint64_t id);
        void (*free)(struct hf_client *self);
};

struct hf_client {
        const struct hf_client_ops *ops;
        const struct hf_host *host; /* borrowed */
};

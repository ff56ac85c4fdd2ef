/* SPDX-License-Identifier: Apache-2.0 */
#pragma once
/*
 * For implementers of a client (loopback, fakes, wrappers): the operations behind
 * <holdfast/client.h>. Users of a client do not need this header.
 *
 * An implementation embeds struct hf_client as the first member of its own struct and sets both
 * members before it hands the client out. The functions of <holdfast/client.h> check their
 * arguments and then call these operations. The operations have the same contracts: any thread may
 * call them at any time, and none of them blocks except `free`. If a start returns 0, its final
 * callback must be called exactly once.
 *
 * Sizes: what an operation gets has the size of the library, which may be newer than the
 * implementation. Pass the pointer on to another client, or set the `size` of a copy to its sizeof.
 * In a response, set `size` to sizeof(struct hf_response); if it is 0, for example, hf_client_do
 * returns -EINVAL.
 */
#include <stddef.h>

#include <holdfast/client.h>

#ifdef __cplusplus
extern "C" {
#endif

struct hf_client_ops {
        size_t size; /* sizeof(struct hf_client_ops) */
        /* As hf_client_request; request is complete and valid for its verb, done is not NULL. */
        int (*request)(struct hf_client *self, const struct hf_request *request,
                       hf_response_fn done, void *ctx, uint64_t *ret_id);
        /* As hf_client_cancel. Must ignore an id that it does not know. */
        void (*cancel)(struct hf_client *self, uint64_t id);
        /* As hf_client_watch; spec has a resource, neither callback is NULL. */
        int (*watch)(struct hf_client *self, const struct hf_watch_spec *spec, hf_event_fn on_event,
                     hf_watch_end_fn on_end, void *ctx, uint64_t *ret_id);
        /* As hf_client_watch_cancel. Must ignore an id that it does not know. */
        void (*watch_cancel)(struct hf_client *self, uint64_t id);
        /* As hf_client_free; self is not NULL. Ends all requests and watches, then frees self. This
         * member may be NULL if there is nothing to free. */
        void (*free)(struct hf_client *self);
};

/* Both members are immutable once the client is handed out. Frozen: implementations embed it, and
 * what else a client can do is in its operations. */
struct hf_client {
        const struct hf_client_ops *ops; /* borrowed; usually static */
        const struct hf_host *host;      /* borrowed; hf_client_do takes its clock from here */
};

#ifdef __cplusplus
}
#endif

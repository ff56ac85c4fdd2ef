/* SPDX-License-Identifier: Apache-2.0 */
#pragma once
/*
 * Callbacks in the host's own event loop. By default callbacks run on threads of the library. A
 * host with an event loop creates a struct hf_loop, adds its descriptor to that event loop, and
 * calls hf_loop_dispatch when the descriptor is readable. Objects that are created with the hf_loop
 * call back only from hf_loop_dispatch and hf_loop_free:
 *
 *      a client              hf_loop_client_new, <holdfast/client.h>
 *      hf_elector_config     on_change: the member `loop`, <holdfast/leader.h>
 *      a controller          hf_loop_controller_run, <holdfast/loop_controller.h>
 *      the end of a stop     hf_electors_stop_begin, <holdfast/leader.h>
 *      anything else         hf_loop_post, for example in a handler of an informer
 *
 * Order of calls: hf_loop_new; create the objects that use it; free these; hf_loop_free.
 */
#include <stddef.h>

#include <holdfast/api.h>

#ifdef __cplusplus
extern "C" {
#endif

struct hf_loop;

/* 0 or -errno. Thread: any. */
HF_MUST_CHECK int hf_loop_new(struct hf_loop **ret_loop);
/* Makes the calls that are still queued, then frees the loop. All objects that use it must have
 * been freed. Accepts NULL, returns NULL. Thread: the loop's. */
struct hf_loop *hf_loop_free(struct hf_loop *loop);
/* A descriptor that is readable while calls are queued. Only poll it; do not read it. Thread: any.
 */
int hf_loop_fd(struct hf_loop *loop);
/* Makes the calls that are queued now, in the order in which they were posted, and returns their
 * number. Does not block. Calls that are posted meanwhile wait for the next hf_loop_dispatch.
 * Thread: the loop's, which is always the same one. */
size_t hf_loop_dispatch(struct hf_loop *loop);
/* Queues one call of fn(ctx), which hf_loop_dispatch or hf_loop_free makes. 0 or -ENOMEM. Blocks
 * only on a mutex that is held for a short time. Thread: any. */
HF_MUST_CHECK int hf_loop_post(struct hf_loop *loop, void (*fn)(void *ctx), void *ctx);

#ifdef __cplusplus
}
#endif

/* SPDX-License-Identifier: Apache-2.0 */
#pragma once
/*
 * The host's own event loop. Callbacks of the library run on its threads. A host with an event loop
 * makes a struct hf_loop, adds its descriptor to its loop, and calls hf_loop_dispatch when the
 * descriptor is readable. Objects that get the hf_loop call back there, and nowhere else:
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
/* Calls the functions that still wait, then frees the loop. All objects that use it must have been
 * freed. Accepts NULL, returns NULL. Thread: the loop's. */
struct hf_loop *hf_loop_free(struct hf_loop *loop);
/* A descriptor that is readable while functions wait. Only poll it. Thread: any. */
int hf_loop_fd(struct hf_loop *loop);
/* Calls the functions that wait now, in the order in which they were posted, and returns their
 * number. The thread that calls it is the loop's: always the same one. Does not block. A called
 * function may post others, which wait for the next call. */
size_t hf_loop_dispatch(struct hf_loop *loop);
/* Has fn(ctx) called once, as hf_loop_dispatch and hf_loop_free describe. 0 or -ENOMEM. Never
 * blocks. Thread: any. */
HF_MUST_CHECK int hf_loop_post(struct hf_loop *loop, void (*fn)(void *ctx), void *ctx);

#ifdef __cplusplus
}
#endif

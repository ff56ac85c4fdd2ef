/* SPDX-License-Identifier: Apache-2.0 */
#pragma once
/*
 * A controller whose code runs in the host's event loop. Its thread only waits for the end of the
 * run. In struct hf_controller set `run` to hf_loop_controller_run, and `ctx` to a struct
 * hf_loop_controller.
 *
 * In each term the loop calls `begin`. It calls `drain` when the term ends, for whatever reason,
 * and then `abort` if the term was lost or its drain deadline has passed. The host ends the run
 * with hf_loop_run_done. It may do so at any time after `begin` was called: in `drain` or `abort`
 * itself, or when its last request has ended. Until then the run is valid, and the Lease is not
 * released. A loop that does not dispatch makes the controller stuck (HF_E_STUCK).
 *
 * Requests of the term go through a client that hf_loop_client_new makes in `begin` from
 * hf_term_client(hf_loop_run_term(run)). Free it before hf_loop_run_done.
 */
#include <holdfast/api.h>
#include <holdfast/leader.h>
#include <holdfast/loop.h>

#ifdef __cplusplus
extern "C" {
#endif

struct hf_loop_run; /* one run of the controller: from a call of `begin` to hf_loop_run_done */

struct hf_loop_controller {
        size_t size;                                       /* sizeof(struct hf_loop_controller) */
        struct hf_loop *loop;                              /* required; borrowed */
        void (*begin)(void *ctx, struct hf_loop_run *run); /* required */
        void (*drain)(void *ctx, struct hf_loop_run *run); /* required */
        void (*abort)(void *ctx, struct hf_loop_run *run); /* required */
        void *ctx;                                         /* passed to the three; borrowed */
};

/* For hf_controller.run; ctx is a const struct hf_loop_controller. Blocks until hf_loop_run_done
 * and returns its result; -EINVAL if a required member is missing or `size` is wrong; another
 * -errno. */
HF_MUST_CHECK int hf_loop_controller_run(struct hf_term *term, void *ctx);
/* Borrowed until hf_loop_run_done. Thread: the loop's. */
struct hf_term *hf_loop_run_term(struct hf_loop_run *run);
/* Ends the run; it must not be used afterwards, and none of the three functions is called any more.
 * result is as for hf_controller.run: 0 = finished for this term; an error = begin again after a
 * pause. Thread: the loop's. Never blocks. */
void hf_loop_run_done(struct hf_loop_run *run, int result);

#ifdef __cplusplus
}
#endif

/* SPDX-License-Identifier: Apache-2.0 */
#pragma once
/*
 * Runs the work of a plug-in in a turn on the pool of threads: for expressions that cost too much
 * for a thread that serves connections, or that receives the responses of webhooks or of the store.
 */
#include "server/admission/admission.h"

struct hfd_work_pool;
struct hfd_work_task;

/* What evaluations may use outside of the pool, on a thread that serves connections or receives
 * responses, as struct hfd_expression_allowance counts it: about a millisecond. */
#define HFD_ADMISSION_INLINE_COST 50000

/* What a turn may use until it ends, if its work can be divided. The next turn continues it. */
#define HFD_ADMISSION_TURN_COST 100000

/* Thread: one of the pool. task: for hfd_work_is_cancelled; it dies with the call. */
typedef void hfd_admission_turn_fn(void *ctx, const struct hfd_work_task *task);
/*
 * Calls fn(ctx) soon, on the pool, in the turn of the request's user. After success fn is called
 * in any case; if the pool stops meanwhile, hfd_admission_turn_may_go_on says so. 0; or -ENOMEM or
 * HF_E_UNAVAILABLE (the pool is stopping), and fn is not called. After success the caller must not
 * touch what fn may free. Thread: owner of the admission. Never blocks.
 */
int hfd_admission_take_turn(struct hfd_work_pool *pool, const struct hfd_admission *a,
                            hfd_admission_turn_fn *fn, void *ctx);
/*
 * Whether a turn may go on. Call it before each evaluation, and often within one. 0; HF_E_TIMEOUT:
 * the deadline of the request has passed, or its client has left; HF_E_UNAVAILABLE: the server
 * stops.
 */
int hfd_admission_turn_may_go_on(const struct hf_host *host, const struct hfd_work_pool *pool,
                                 const struct hfd_work_task *task, const struct hfd_admission *a);
/* Makes the response for r, an error of the functions above or -ENOMEM. */
void hfd_admission_turn_refuse(int r, struct hfd_response *response);

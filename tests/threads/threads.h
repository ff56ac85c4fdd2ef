/* SPDX-License-Identifier: Apache-2.0 */
#pragma once
/*
 * The scenarios of the program `threads`. A scenario is what one schedule runs: it begins threads
 * that use a part of the library, checks what the part's header promises, and ends everything that
 * it began. It makes its choices with baton_random.
 */
#include <pthread.h>

#include <holdfast/host.h>

#include "base/thread.h"
#include "baton.h"

/* The scenarios. The comment at the top of each file says what they check. */
void cancel_wait(void);
void cancel_waker(void);
void hooks_stop(void);
void queue_keys(void);
void informer_end(void);
void informers_share(void);
void elector_start_stop(void);
void elector_terms(void);
void elector_late_refusal(void);
void elector_last_answer(void);
void controller_order(void);
void custom_kinds(void);
void lock_end(void);
void loop_client(void);
void reconciler_workers(void);
void cacher_life(void);
/* These have planted mistakes, which the scheduler must find. */
void planted_lost_wake(void);
void planted_late_signal(void);
void planted_lock_order(void);
void planted_flag(void);
void planted_thread_left(void);
void planted_spin(void);

/* A thread of a scenario, beside those of the library. It is joined with hf__thread_join. */
pthread_t scenario_thread(const char *name, void *(*fn)(void *ctx), void *ctx);
/* Waits for the duration in virtual time. */
void scenario_sleep(hf_nsec duration);
/* A host with all defaults. So its clock is the system's clock, which is virtual in a schedule. */
extern const struct hf_host scenario_host;

/* SPDX-License-Identifier: Apache-2.0 */
#pragma once
/* The cacher's timer thread. The head of timer.c says what it does. Private to server/cacher. */
struct hfd_cacher;
struct hfd_cacher_timer;

/* NULL: out of memory. */
struct hfd_cacher_timer *hfd_cacher_timer_new(void);
/* The thread must not be running. Accepts NULL; returns NULL. */
struct hfd_cacher_timer *hfd_cacher_timer_free(struct hfd_cacher_timer *timer);
/* Starts the thread. Call it once. 0 or -errno. */
int hfd_cacher_timer_start(struct hfd_cacher *cacher);
/* Joins the thread, which ends when the cacher stops and no listing runs. Does nothing if it was
 * not started. */
void hfd_cacher_timer_join(struct hfd_cacher *cacher);

/* SPDX-License-Identifier: Apache-2.0 */
#pragma once
/*
 * The loop of a worker, and its thread. The head of worker_loop.c describes an iteration.
 *
 * Threads: those that start and free the server. No lock.
 */

struct hfd_worker;

/* Starts the thread. Start worker 0 last, because it passes sockets to the others. 0 or -errno. */
int hfd_worker_loop_start(struct hfd_worker *worker);
/*
 * Joins the thread, if it was started, and handles the messages that it has left: closes sockets,
 * drops the references to requests, and makes the calls. http->closing must be set. Stop worker 0
 * first, because it may post sockets to the others until its thread is joined.
 */
void hfd_worker_loop_stop(struct hfd_worker *worker);

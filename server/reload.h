/* SPDX-License-Identifier: Apache-2.0 */
#pragma once
/*
 * Reloads: SIGHUP asks for one, a thread of its own does the work, and main tells the service
 * manager.
 *
 *      IDLE --asked, may begin--> RUNNING (RELOADING=1) --work returned--> IDLE (READY=1)
 *
 * Never two at once. What is asked for while one runs is one more reload after it, however often it
 * is asked for: the one that runs may have read the files already. The work runs on its own thread
 * because it may wait, for a lock or a slow disk, and main has the watchdog to feed.
 *
 * Thread: main only, but for the work and the wake-up, which are called on the reload's thread.
 */
#include <pthread.h>
#include <stdatomic.h>
#include <stdbool.h>

#include <holdfast/host.h>

struct hfd_reload {
        /* immutable after init */
        const struct hf_host *host; /* borrowed */
        void (*work)(void *ctx);
        void (*wake)(void *ctx); /* makes main call hfd_reload_step; must not block */
        void *ctx;
        /* main only */
        bool asked;   /* one more reload */
        bool dropped; /* no reload begins any more, and READY=1 is not sent */
        bool running; /* thread is to be joined */
        pthread_t thread;
        /* shared */
        _Atomic bool returned; /* the work of the running reload has returned */
};

void hfd_reload_init(struct hfd_reload *reload, const struct hf_host *host, void (*work)(void *ctx),
                     void (*wake)(void *ctx), void *ctx);
void hfd_reload_ask(struct hfd_reload *reload);
/*
 * Ends the reload whose work has returned, and begins the next one when it was asked for. may_begin
 * is false while the server starts: what was asked for then is kept. Does not block.
 */
void hfd_reload_step(struct hfd_reload *reload, bool may_begin);
/*
 * The server stops: what was asked for is dropped, and the running reload does not say READY=1 any
 * more, which would contradict STOPPING=1.
 */
void hfd_reload_drop(struct hfd_reload *reload);
/* Blocks until the running work has returned. At the end of the process, after drop and after the
 * work's token has fired. */
void hfd_reload_join(struct hfd_reload *reload);

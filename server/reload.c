/* SPDX-License-Identifier: Apache-2.0 */
/*
 * When a reload begins and ends (reload.h). What it reads is the work's matter.
 *
 * The service manager hears RELOADING=1 before the work begins, and READY=1 once after its end,
 * both from main: so they cannot come in the wrong order, and READY=1 never follows STOPPING=1.
 */
#include "server/reload.h"

#include <assert.h>

#include <holdfast/error.h>

#include "base/thread.h"
#include "server/systemd/sdnotify.h"

void hfd_reload_init(struct hfd_reload *reload, const struct hf_host *host, void (*work)(void *ctx),
                     void (*wake)(void *ctx), void *ctx) {
        assert(work && wake);
        *reload = (struct hfd_reload){.host = host, .work = work, .wake = wake, .ctx = ctx};
}

static void *reload_thread(void *arg) {
        struct hfd_reload *reload = arg;

        reload->work(reload->ctx);
        atomic_store(&reload->returned, true);
        reload->wake(reload->ctx);
        return NULL;
}

static void begin(struct hfd_reload *reload) {
        assert(!reload->running);
        reload->asked = false;
        atomic_store(&reload->returned, false);
        hfd_notify_reloading();
        int r = hf__thread_start(reload->host, "hfd-reload", reload_thread, reload,
                                 &reload->thread);
        if (r != 0) {
                hf_log(&reload->host->log, HF_LOG_ERROR, "holdfastd",
                       "reload: cannot start a thread: %s", hf_strerror(r));
                hfd_notify_ready();
                return;
        }
        reload->running = true;
}

void hfd_reload_ask(struct hfd_reload *reload) { reload->asked = !reload->dropped; }

void hfd_reload_step(struct hfd_reload *reload, bool may_begin) {
        if (reload->running && atomic_load(&reload->returned)) {
                hfd_reload_join(reload);
                if (!reload->dropped)
                        hfd_notify_ready();
        }
        if (may_begin && reload->asked && !reload->running)
                begin(reload);
}

void hfd_reload_drop(struct hfd_reload *reload) {
        reload->asked = false;
        reload->dropped = true;
}

void hfd_reload_join(struct hfd_reload *reload) {
        if (!reload->running)
                return;
        assert(reload->dropped || atomic_load(&reload->returned)); /* else main would wait */
        (void)pthread_join(reload->thread, NULL);
        reload->running = false;
}

/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Begins and ends reloads (reload.h). The work function decides what a reload reads
 * (reload_files.c in holdfastd).
 *
 * Invariants. RELOADING=1 is sent before the work begins, and READY=1 once after it has ended, so
 * that the service manager knows when a reload is complete. Once the server stops, READY=1 is not
 * sent any more, because it would contradict STOPPING=1. Main sends all three, so their order is
 * certain.
 */
#include "server/reload/reload.h"

#include <assert.h>

#include <holdfast/error.h>

#include "base/thread.h"
#include "server/systemd/sdnotify.h"

void hfd_reload_init(struct hfd_reload *reload, const struct hf_host *host, void (*work)(void *ctx),
                     void (*wake)(void *ctx), void *ctx) {
        assert(work && wake);
        *reload = (struct hfd_reload){.host = host, .work = work, .wake = wake, .ctx = ctx};
}

static void *reload_thread(void *ctx) {
        struct hfd_reload *reload = ctx;

        assert(!atomic_load(&reload->returned));
        (reload->is_minor ? reload->minor_work : reload->work)(reload->ctx);
        atomic_store(&reload->returned, true);
        reload->wake(reload->ctx);
        return NULL;
}

/* Begins the reload that is requested, or else the minor work. */
static void begin_reload(struct hfd_reload *reload) {
        assert(!reload->running && !reload->disabled);
        reload->is_minor = !reload->requested;
        if (reload->is_minor)
                reload->minor_requested = false;
        reload->requested = false;
        atomic_store(&reload->returned, false);
        if (!reload->is_minor)
                hfd_sdnotify_reloading();
        int r = hf__thread_start(reload->host, "hfd-reload", reload_thread, reload,
                                 &reload->thread);
        if (r != 0) {
                hf_log(&reload->host->log, HF_LOG_ERROR, "holdfastd",
                       "reload: cannot start a thread: %s", hf_strerror(r));
                if (reload->is_minor)
                        reload->minor_requested = true; /* nobody else requests it again */
                else
                        hfd_sdnotify_ready(); /* completes the reload for the service manager */
                return;
        }
        reload->running = true;
}

void hfd_reload_request(struct hfd_reload *reload) { reload->requested = !reload->disabled; }

void hfd_reload_request_minor(struct hfd_reload *reload) {
        assert(reload->minor_work);
        reload->minor_requested = !reload->disabled;
}

void hfd_reload_step(struct hfd_reload *reload, bool may_begin) {
        if (reload->running && atomic_load(&reload->returned)) {
                (void)hf__thread_join(reload->thread);
                reload->running = false;
                if (!reload->disabled && !reload->is_minor)
                        hfd_sdnotify_ready();
        }
        if (may_begin && (reload->requested || reload->minor_requested) && !reload->running)
                begin_reload(reload);
}

void hfd_reload_disable(struct hfd_reload *reload) {
        reload->requested = false;
        reload->minor_requested = false;
        reload->disabled = true;
}

bool hfd_reload_is_running(const struct hfd_reload *reload) { return reload->running; }

bool hfd_reload_is_idle(const struct hfd_reload *reload) {
        return !reload->running && !reload->requested && !reload->minor_requested;
}

/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The hook of a phase: waits until the ledger shows that some version has completed the phase. The
 * hook watches the ledger's ConfigMap, beginning with its current state. When a watch ends, the
 * hook opens another after a pause that grows.
 *
 * Invariant: when the hook returns, its watch has ended, and no callback uses the state that it
 * shares with the hook (struct wait), because that state is on the hook's stack.
 */
#include "bootstrap/ledger_wait.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/host.h"
#include "base/json.h"
#include "base/thread.h"
#include "bootstrap/ledger.h"
#include "bootstrap/report.h"

#define REOPEN_MIN (100 * HF_NSEC_PER_MSEC)
#define REOPEN_MAX (5 * HF_NSEC_PER_SEC)

/* Shared by the hook's thread, the callbacks of its watch, and on_cancel. */
struct wait {
        struct hf__phase *phase; /* borrowed; immutable */
        pthread_mutex_t mu;
        pthread_cond_t changed; /* signals that a flag below was set */
        /* Guarded by mu. Exception: only callbacks of the watch set `complete` and `ended`, so the
         * hook's thread uses these two without mu while no watch is open. */
        bool complete; /* the ledger shows the phase as complete; stays true */
        bool ended;    /* the current watch has ended */
        bool canceled; /* the hooks shut down; stays true */
};

/* Whether the ledger, as JSON, shows the phase as complete. If nothing is left to do, also reports
 * that. While the phase runs, each record changes the ledger. To save time, the text is parsed only
 * if it contains the phase's key. JSON escapes no character of it, so a plain search finds it. */
static bool shows_completion(struct wait *wait, const char *text, size_t n) {
        struct hf__ledger ledger = {0};
        struct hf__json *object;
        const char *name = wait->phase->name;
        char key[64];
        int n_key = snprintf(key, sizeof key, "\"%.47s.completed\"", name);

        if (!memmem(text, n, key, (size_t)n_key) || hf__json_parse(text, n, &object, NULL) != 0)
                return false;
        /* The leader reports records that cannot be read. `completed` is read in any case. */
        (void)hf__ledger_read(object, &name, 1, &ledger, NULL);
        bool complete = hf__ledger_find_completed(&ledger, name) != NULL;
        if (complete && hf__phase_settled_by(wait->phase, &ledger))
                hf__report_settled(wait->phase);
        hf__ledger_done(&ledger);
        hf__json_free(object);
        return complete;
}

static void set_flag(struct wait *wait, bool *flag) {
        pthread_mutex_lock(&wait->mu);
        *flag = true;
        pthread_cond_broadcast(&wait->changed);
        pthread_mutex_unlock(&wait->mu);
}

static void on_event(void *ctx, const struct hf_event *event) {
        struct wait *wait = ctx;
        if ((event->type == HF_EVENT_ADDED || event->type == HF_EVENT_MODIFIED) &&
            shows_completion(wait, event->object, event->n_object))
                set_flag(wait, &wait->complete);
}

static void on_watch_end(void *ctx, int error, const struct hf_status *status) {
        struct wait *wait = ctx;
        set_flag(wait, &wait->ended);
}

static void on_cancel(void *ctx) {
        struct wait *wait = ctx;
        set_flag(wait, &wait->canceled);
}

/* Watches until the phase is complete, the watch ends, the hooks shut down, or the time `until` is
 * reached. */
static void watch_ledger(struct wait *wait, struct hf_client *client, hf_nsec until) {
        struct hf_bootstrap *bootstrap = wait->phase->bootstrap;
        const struct hf_clock *clock = hf_host_clock(bootstrap->host);
        struct hf_watch_spec spec = {.size = sizeof spec,
                                     .resource = hf__ledger_resource,
                                     .ns = bootstrap->ledger_ns,
                                     .name = bootstrap->ledger_name};
        uint64_t id = 0;

        wait->ended = false;
        if (hf_client_watch(client, &spec, on_event, on_watch_end, wait, &id) != 0)
                return;
        pthread_mutex_lock(&wait->mu);
        while (!wait->complete && !wait->ended && !wait->canceled && hf_now(clock) < until)
                (void)clock->wait(clock->ctx, &wait->changed, &wait->mu, until);
        bool ended = wait->ended;
        pthread_mutex_unlock(&wait->mu);
        if (!ended)
                hf_client_watch_cancel(client, id);
        /* Wait for the end, because the callbacks use this stack. The client guarantees it soon
         * after the cancellation. */
        pthread_mutex_lock(&wait->mu);
        while (!wait->ended)
                (void)clock->wait(clock->ctx, &wait->changed, &wait->mu, HF_NSEC_NEVER);
        pthread_mutex_unlock(&wait->mu);
}

/* Reopens the watch until the phase is complete. 0, HF_E_CANCELED, or HF_E_TIMEOUT: the hook's
 * patience is over. */
static int wait_complete(struct wait *wait, struct hf_client *client, struct hf_cancel *token) {
        const struct hf_clock *clock = hf_host_clock(wait->phase->bootstrap->host);
        hf_nsec patience = wait->phase->hook_patience;
        hf_nsec pause = REOPEN_MIN;
        hf_nsec until = patience ? hf__nsec_after(hf_now(clock), patience) : HF_NSEC_NEVER;

        for (;;) {
                hf_nsec began = hf_now(clock);
                watch_ledger(wait, client, until);
                hf_nsec now = hf_now(clock);
                if (wait->complete)
                        return 0;
                if (hf_cancel_fired(token))
                        return HF_E_CANCELED;
                if (now >= until)
                        return HF_E_TIMEOUT;
                if (now - began > REOPEN_MAX) /* this watch lasted, so it was no failure */
                        pause = REOPEN_MIN;
                (void)hf_cancel_wait(token, now + pause < until ? now + pause : until);
                pause = pause * 2 < REOPEN_MAX ? pause * 2 : REOPEN_MAX;
        }
}

static int wait_init(struct wait *wait, struct hf__phase *phase) {
        *wait = (struct wait){.phase = phase};
        return hf__mutex_cond_init(&wait->mu, &wait->changed);
}

int hf__ledger_wait(struct hf_hook_context *context, void *ctx, struct hf_status *reterr_status) {
        struct hf__phase *phase = ctx;
        struct hf_client *client =
                phase->bootstrap->client ? phase->bootstrap->client : hf_hook_client(context);
        struct hf_cancel *token = hf_hook_shutting_down(context);
        struct hf_cancel_waker waker;
        struct wait wait;

        if (!client)
                return hf_fail(reterr_status, -EINVAL,
                               "hook %s has no client to watch the ledger with", phase->full_name);
        int r = wait_init(&wait, phase);
        if (r != 0)
                return hf_fail(reterr_status, r, "hook %s: %s", phase->full_name, hf_strerror(r));
        hf_cancel_add_waker(token, &waker, on_cancel, &wait);
        r = wait_complete(&wait, client, token);
        hf_cancel_remove_waker(&waker);
        pthread_cond_destroy(&wait.changed);
        pthread_mutex_destroy(&wait.mu);
        if (r == HF_E_CANCELED)
                return hf_fail(reterr_status, r, "shut down before %s was complete", phase->name);
        if (r == HF_E_TIMEOUT)
                hf_log(&phase->bootstrap->host->log, HF_LOG_WARNING, HF__COMPONENT,
                       "%s is not complete yet: this instance no longer waits for it", phase->name);
        else
                hf__report_complete(phase);
        return 0;
}

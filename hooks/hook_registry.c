/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The registry of hooks.
 *
 * Model. A hook has a start function, a stop function, and the threads that it has spawned. Two
 * coordinators change its state, each on the thread of its caller: hf_hooks_start (start_hooks.c)
 * and hf_hooks_stop (stop_hooks.c). Each is a loop: it looks at all hooks, advances those that can
 * advance, and waits on one condition variable until a state changes or the nearest deadline
 * passes. Hook functions run on their own threads without the lock, and their results are stored
 * under the lock. So a hook that is slow, calls back into the registry, or never returns delays
 * only hooks that must wait for it: in a start the hooks after it, in a stop the hooks before it.
 * (If no thread can be created for a stop function, the stop coordinator runs the function on its
 * own thread, and all hooks wait for it.)
 *
 *      start:  WAITING -> RUNNING -> DONE or FAILED
 *      stop:   WAITING -> RUNNING -> JOINING -> DONE
 *              WAITING -> DONE          its start was never begun
 *              WAITING -> JOINING       it has no stop function
 *              RUNNING or JOINING -> STUCK
 *
 * The start coordinator changes start_state, and so does the hook's start thread in its last access
 * to the registry. Only the stop coordinator changes stop_state. `shutdown` is set under the lock
 * and never cleared, and the start coordinator tests it under the same lock before it begins a
 * start. So no start begins after hf_hooks_shut_down, and hf_hooks_stop sees every start that was
 * begun, because it first waits until the start coordinator has returned.
 *
 * A stop never waits for work that would be canceled only after this stop. The shutting-down token
 * fires before any stop runs, a hook's own token fires before its stop runs, and each wait for a
 * hook's thread has a deadline, unless the hook asked for none (HF_NSEC_NEVER).
 */
#include "hooks/hook_registry.h"

#include <assert.h>
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <holdfast/health.h>

#include "base/cleanup.h"
#include "base/host.h"
#include "base/sized_struct.h"
#include "base/thread.h"

#define DEFAULT_START_DEADLINE (60 * HF_NSEC_PER_SEC)
#define DEFAULT_STOP_DEADLINE  (30 * HF_NSEC_PER_SEC)

static const struct hf__sized sized_hook = HF__SIZED(struct hf_hook, start);

static struct hf_hook_context *hook_free(struct hf_hook_context *hook) {
        if (!hook)
                return NULL;
        assert(!hook->threads);
        for (size_t i = 0; hook->after && i < hook->n_after; i++)
                free(hook->after[i]);
        free(hook->after);
        free(hook->dependencies);
        free(hook->name);
        free(hook->caller);
        free(hook->check);
        hf_cancel_unref(hook->token);
        free(hook);
        return NULL;
}

HF__CLEANUP_DEFINE(hook_cleanup, struct hf_hook_context *, hook_free)

/* Copies the names in from->after. hook->n_after counts the copies, so that hook_free frees the
 * right number after a failure. */
static int copy_after(struct hf_hook_context *hook, const struct hf_hook *from) {
        size_t n = from->n_after ? from->n_after : 1; /* calloc(0) may return NULL */

        hook->after = calloc(n, sizeof *hook->after);
        hook->dependencies = calloc(n, sizeof(struct hf_hook_context *));
        if (!hook->after || !hook->dependencies)
                return -ENOMEM;
        for (; hook->n_after < from->n_after; hook->n_after++) {
                hook->after[hook->n_after] = strdup(from->after[hook->n_after]);
                if (!hook->after[hook->n_after])
                        return -ENOMEM;
        }
        return 0;
}

static struct hf_hook_context *hook_new(struct hf_hooks *hooks, const struct hf_hook *from,
                                        const char *caller) {
        struct hf_hook_context *hook = calloc(1, sizeof *hook);
        if (!hook)
                return NULL;
        hook->hooks = hooks;
        hook->hook = *from;
        if (hook->hook.start_deadline <= 0)
                hook->hook.start_deadline = DEFAULT_START_DEADLINE;
        if (hook->hook.stop_deadline <= 0)
                hook->hook.stop_deadline = DEFAULT_STOP_DEADLINE;
        hook->name = strdup(from->name);
        hook->caller = strdup(caller);
        if (asprintf(&hook->check, "poststarthook/%s", from->name) < 0)
                hook->check = NULL;
        if (!hook->name || !hook->caller || !hook->check || copy_after(hook, from) != 0 ||
            hf_cancel_new(NULL, hf_host_clock(hooks->host), &hook->token) != 0)
                return hook_free(hook);
        return hook;
}

HF__CLEANUP_DEFINE(hooks_cleanup, struct hf_hooks *, hf_hooks_free)

int hf_hooks_new(const struct hf_host *host, struct hf_client *client,
                 struct hf_hooks **ret_hooks) {
        int r = hf__host_check(host, NULL);
        if (r != 0)
                return r;
        HF__CLEANUP(hf__free_cleanup) struct hf_hooks *memory = calloc(1, sizeof *memory);
        if (!memory)
                return -ENOMEM;
        r = hf__mutex_cond_init(&memory->mu, &memory->changed);
        if (r != 0)
                return r;
        HF__CLEANUP(hooks_cleanup) struct hf_hooks *hooks = HF__TAKE(memory);
        hooks->host = host;
        hooks->client = client;
        r = hf_cancel_new(NULL, hf_host_clock(host), &hooks->stopped);
        if (r != 0)
                return r;
        r = hf_cancel_new(hooks->stopped, hf_host_clock(host), &hooks->shutting_down);
        if (r != 0)
                return r;
        *ret_hooks = HF__TAKE(hooks);
        return 0;
}

struct hf_hooks *hf_hooks_free(struct hf_hooks *hooks) {
        if (!hooks)
                return NULL;
        for (size_t i = 0; i < hooks->n; i++)
                hf_health_remove(hooks->host->health, hooks->list[i]->check);
        /* Threads may still be running, because some are stuck, or because the hooks were started
         * and never stopped. They use the memory, so it must not be freed. */
        if (hooks->stuck || hooks->starting || (hooks->closed && !hooks->stop_done))
                return NULL;
        for (size_t i = 0; i < hooks->n; i++)
                hook_free(hooks->list[i]);
        free(hooks->list);
        hf_cancel_unref(hooks->shutting_down);
        hf_cancel_unref(hooks->stopped);
        pthread_cond_destroy(&hooks->changed);
        pthread_mutex_destroy(&hooks->mu);
        free(hooks);
        return NULL;
}

/* The health check of a hook. It takes no lock, because a health check must return at once. */
static bool check_finished(void *ctx, char *reason, size_t max_reason) {
        struct hf_hook_context *hook = ctx;
        if (atomic_load(&hook->finished))
                return true;
        (void)snprintf(reason, max_reason, "not finished");
        return false;
}

static struct hf_hook_context *find_locked(struct hf_hooks *hooks, const char *name) {
        hf__mutex_assert_held(&hooks->mu);
        for (size_t i = 0; i < hooks->n; i++)
                if (strcmp(hooks->list[i]->name, name) == 0)
                        return hooks->list[i];
        return NULL;
}

/* Checks that the hook can be added to the list now. 0, or the reason as for hf_hooks_add. */
static int check_registration_locked(struct hf_hooks *hooks, const struct hf_hook_context *hook,
                                     struct hf_status *reterr_status) {
        hf__mutex_assert_held(&hooks->mu);
        if (hooks->closed)
                return hf_fail(reterr_status, HF_E_CLOSED,
                               "hook \"%s\" (by %s) cannot be registered: the hooks were started "
                               "or stopped already",
                               hook->name, hook->caller);
        struct hf_hook_context *first = find_locked(hooks, hook->name);
        if (first)
                return hf_fail(reterr_status, HF_E_EXISTS,
                               "hook \"%s\" (by %s) is already registered by %s", hook->name,
                               hook->caller, first->caller);
        return 0;
}

static int check_registration(struct hf_hooks *hooks, const struct hf_hook_context *hook,
                              struct hf_status *reterr_status) {
        pthread_mutex_lock(&hooks->mu);
        int r = check_registration_locked(hooks, hook, reterr_status);
        pthread_mutex_unlock(&hooks->mu);
        return r;
}

/* Adds hook to the list, which then owns it. After a failure the caller still owns it. */
static int publish_hook(struct hf_hooks *hooks, struct hf_hook_context *hook,
                        struct hf_status *reterr_status) {
        pthread_mutex_lock(&hooks->mu);
        int r = check_registration_locked(hooks, hook, reterr_status);
        struct hf_hook_context **list =
                r == 0 ? realloc(hooks->list, (hooks->n + 1) * sizeof(struct hf_hook_context *))
                       : NULL;
        if (list) {
                hooks->list = list;
                list[hooks->n++] = hook;
        } else if (r == 0) {
                r = hf_fail(reterr_status, -ENOMEM, "hook \"%s\": out of memory", hook->name);
        }
        pthread_mutex_unlock(&hooks->mu);
        return r;
}

/* Checks the hook before it is copied. reterr_status names the hook and its caller. */
static int check_hook(const struct hf_hook *hook, const char *caller,
                      struct hf_status *reterr_status) {
        if (!hook->name || hook->name[0] == '\0')
                return hf_fail(reterr_status, HF_E_INVALID, "a hook registered by %s has no name",
                               caller);
        if (!hook->start)
                return hf_fail(reterr_status, HF_E_INVALID,
                               "hook \"%s\" (by %s) has no start function", hook->name, caller);
        for (size_t i = 0; i < hook->n_after; i++)
                if (!hook->after || !hook->after[i] || hook->after[i][0] == '\0')
                        return hf_fail(reterr_status, HF_E_INVALID,
                                       "hook \"%s\" (by %s) is after a hook without a name",
                                       hook->name, caller);
        return 0;
}

static int add_check(struct hf_hook_context *hook, struct hf_status *reterr_status) {
        int r = hf_health_add(hook->hooks->host->health, hook->check,
                              HF_HEALTHZ | HF_LIVEZ | HF_READYZ, check_finished, hook);

        return r == 0 ? 0
                      : hf_fail(reterr_status, r, "hook \"%s\" (by %s): health check %s: %s",
                                hook->name, hook->caller, hook->check, hf_strerror(r));
}

/* Adds the health check first and the hook last, because a hook in the list may start at once. The
 * registration is also checked before the health check is added, so that the error about a
 * duplicate names both callers: hf_health_add knows no callers. */
int hf_hooks_add(struct hf_hooks *hooks, const struct hf_hook *given, const char *caller,
                 struct hf_status *reterr_status) {
        struct hf_hook from;

        if (!caller)
                caller = "an unnamed caller";
        int r = hf__sized_copy(&sized_hook, &from, given, reterr_status);
        if (r == 0)
                r = check_hook(&from, caller, reterr_status);
        if (r != 0)
                return r;
        HF__CLEANUP(hook_cleanup) struct hf_hook_context *hook = hook_new(hooks, &from, caller);
        if (!hook)
                return hf_fail(reterr_status, -ENOMEM, "hook \"%s\": out of memory", from.name);
        r = check_registration(hooks, hook, reterr_status);
        if (r == 0)
                r = add_check(hook, reterr_status);
        if (r != 0)
                return r;
        r = publish_hook(hooks, hook, reterr_status);
        if (r != 0) {
                hf_health_remove(hooks->host->health, hook->check);
                return r;
        }
        (void)HF__TAKE(hook); /* the list owns it */
        return 0;
}

void hf__hook_complete_status(struct hf_status *status, int r) {
        if (r != 0 && status->message[0] == '\0')
                (void)hf_fail(status, r, "%s", hf_strerror(r));
        status->error = r;
}

struct hf_cancel *hf_hook_shutting_down(struct hf_hook_context *context) {
        return context->hooks->shutting_down;
}
struct hf_cancel *hf_hook_stopped(struct hf_hook_context *context) {
        return context->hooks->stopped;
}
struct hf_client *hf_hook_client(struct hf_hook_context *context) {
        return context->hooks->client;
}

void hf_hook_set_stop_deadline(struct hf_hook_context *context, hf_nsec deadline) {
        assert(deadline > 0);
        pthread_mutex_lock(&context->hooks->mu);
        /* Ignored once the stop has begun. Otherwise the stop's deadline would get this length if
         * it began anew (base/deadline.h). */
        if (!context->stop_begun)
                context->hook.stop_deadline = deadline;
        pthread_mutex_unlock(&context->hooks->mu);
}

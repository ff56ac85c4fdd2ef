/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The registry of hooks: who is registered, by whom, after what.
 *
 * Model. A hook is a pair of functions and the threads it spawned. Two coordinators move it:
 * hf_hooks_start (start.c) and hf_hooks_stop (stop.c), each on its caller's thread, each a loop
 * that looks at all hooks, moves those that can move, and waits on one condition variable until
 * something changed or the nearest deadline came. Hook functions run on threads of their own,
 * outside the lock, and report by setting their flag under it. Thus a hook may take its time, call
 * back into the registry, or never return, without holding up the others.
 *
 *      start:  WAITING -> RUNNING -> DONE | FAILED
 *      stop:   WAITING -> RUNNING -> JOINING -> DONE | STUCK       (only hooks whose start was
 * begun)
 *
 * Who may change what: start_state by the start coordinator and by the hook's start thread as its
 * last act; stop_state by the stop coordinator alone. `shutdown` is set once and only under the
 * lock, and the start coordinator tests it under the same lock before it begins a start: so after
 * hf_hooks_shut_down nothing begins, and hf_hooks_stop, which first waits for the start coordinator
 * to leave, sees every start that was begun.
 *
 * The deadlock that such hooks are known for (a stop that waits for work which something later
 * cancels) cannot form: the shutting-down token fires before any stop runs, a hook's own token
 * fires before its own stop runs, and each wait has a deadline.
 */
#include "hooks/registry.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <holdfast/health.h>

#include "base/thread.h"

static struct hf_hook_context *hook_free(struct hf_hook_context *hook) {
        if (!hook)
                return NULL;
        for (size_t i = 0; hook->after && i < hook->n_after; i++)
                free(hook->after[i]);
        free(hook->after);
        free(hook->needs);
        free(hook->name);
        free(hook->caller);
        free(hook->check);
        hf_cancel_unref(hook->token);
        free(hook);
        return NULL;
}

static struct hf_hook_context *hook_new(struct hf_hooks *hooks, const struct hf_hook *from,
                                        const char *caller) {
        struct hf_hook_context *hook = calloc(1, sizeof *hook);
        if (!hook)
                return NULL;
        hook->hooks = hooks;
        hook->hook = *from;
        hook->hook.start_deadline =
                from->start_deadline > 0 ? from->start_deadline : 60 * HF_NSEC_PER_SEC;
        hook->hook.stop_deadline =
                from->stop_deadline > 0 ? from->stop_deadline : 30 * HF_NSEC_PER_SEC;
        hook->name = strdup(from->name);
        hook->caller = strdup(caller ? caller : "somebody unnamed");
        if (asprintf(&hook->check, "poststarthook/%s", from->name) < 0)
                hook->check = NULL;
        hook->after = calloc(from->n_after ? from->n_after : 1, sizeof *hook->after);
        hook->needs = calloc(from->n_after ? from->n_after : 1, sizeof(struct hf_hook_context *));
        if (!hook->name || !hook->caller || !hook->check || !hook->after || !hook->needs ||
            hf_cancel_new(NULL, hf_host_clock(hooks->host), &hook->token) != 0)
                return hook_free(hook);
        for (; hook->n_after < from->n_after; hook->n_after++) {
                hook->after[hook->n_after] = strdup(from->after[hook->n_after]);
                if (!hook->after[hook->n_after])
                        return hook_free(hook);
        }
        return hook;
}

int hf_hooks_new(const struct hf_host *host, struct hf_client *client,
                 struct hf_hooks **ret_hooks) {
        struct hf_hooks *hooks = calloc(1, sizeof *hooks);
        if (!hooks)
                return -ENOMEM;
        hooks->host = host;
        hooks->client = client;
        int r = hf__mutex_init(&hooks->mu);
        if (r == 0 && (r = hf_cond_init(&hooks->changed)) != 0)
                pthread_mutex_destroy(&hooks->mu);
        if (r != 0) {
                free(hooks);
                return r;
        }
        r = hf_cancel_new(NULL, hf_host_clock(host), &hooks->stopped);
        if (r == 0)
                r = hf_cancel_new(hooks->stopped, hf_host_clock(host), &hooks->shutting);
        if (r != 0) {
                hf_hooks_free(hooks);
                return r;
        }
        *ret_hooks = hooks;
        return 0;
}

struct hf_hooks *hf_hooks_free(struct hf_hooks *hooks) {
        if (!hooks)
                return NULL;
        for (size_t i = 0; i < hooks->n; i++)
                hf_health_remove(hooks->host->health, hooks->list[i]->check);
        /* With a thread alive, or a start that nobody stopped, the memory is still in use and
         * stays. */
        if (hooks->stuck || hooks->starting || (hooks->closed && !hooks->stop_done))
                return NULL;
        for (size_t i = 0; i < hooks->n; i++)
                hook_free(hooks->list[i]);
        free(hooks->list);
        hf_cancel_unref(hooks->shutting);
        hf_cancel_unref(hooks->stopped);
        pthread_cond_destroy(&hooks->changed);
        pthread_mutex_destroy(&hooks->mu);
        free(hooks);
        return NULL;
}

/* Health checks name a hook as finished; they take no lock, for they may run while a coordinator
 * works. */
static bool check_finished(void *ctx, char *reason, size_t max_reason) {
        struct hf_hook_context *hook = ctx;
        if (atomic_load(&hook->finished))
                return true;
        (void)snprintf(reason, max_reason, "not finished");
        return false;
}

static struct hf_hook_context *find_locked(struct hf_hooks *hooks, const char *name) {
        for (size_t i = 0; i < hooks->n; i++)
                if (strcmp(hooks->list[i]->name, name) == 0)
                        return hooks->list[i];
        return NULL;
}

/* Puts hook on the list. On failure it is the caller's still. */
static int publish(struct hf_hooks *hooks, struct hf_hook_context *hook,
                   struct hf_status *reterr_status) {
        int r = 0;
        pthread_mutex_lock(&hooks->mu);
        struct hf_hook_context *first = find_locked(hooks, hook->name);
        if (hooks->closed) {
                r = hf_fail(reterr_status, HF_E_CLOSED,
                            "hook \"%s\" (by %s) comes too late: the hooks were started",
                            hook->name, hook->caller);
        } else if (first) {
                r = hf_fail(reterr_status, HF_E_EXISTS,
                            "hook \"%s\" (by %s) is registered already, by %s", hook->name,
                            hook->caller, first->caller);
        } else {
                struct hf_hook_context **list =
                        realloc(hooks->list, (hooks->n + 1) * sizeof(struct hf_hook_context *));
                if (list) {
                        hooks->list = list;
                        list[hooks->n++] = hook;
                } else {
                        r = hf_fail(reterr_status, -ENOMEM, "hook \"%s\": out of memory",
                                    hook->name);
                }
        }
        pthread_mutex_unlock(&hooks->mu);
        return r;
}

int hf_hooks_add(struct hf_hooks *hooks, const struct hf_hook *from, const char *caller,
                 struct hf_status *reterr_status) {
        const char *who = caller ? caller : "somebody unnamed";
        if (!from->name || !*from->name)
                return hf_fail(reterr_status, HF_E_INVALID, "a hook registered by %s has no name",
                               who);
        if (!from->start)
                return hf_fail(reterr_status, HF_E_INVALID,
                               "hook \"%s\" (by %s) has no start function", from->name, who);
        for (size_t i = 0; i < from->n_after; i++)
                if (!from->after || !from->after[i] || !*from->after[i])
                        return hf_fail(reterr_status, HF_E_INVALID,
                                       "hook \"%s\" (by %s) is after a hook without a name",
                                       from->name, who);
        struct hf_hook_context *hook = hook_new(hooks, from, caller);
        if (!hook)
                return hf_fail(reterr_status, -ENOMEM, "hook \"%s\": out of memory", from->name);
        int r = publish(hooks, hook, reterr_status);
        if (r != 0) {
                hook_free(hook);
                return r;
        }
        r = hf_health_add(hooks->host->health, hook->check, HF_HEALTHZ | HF_LIVEZ | HF_READYZ,
                          check_finished, hook);
        if (r == 0)
                return 0;
        r = hf_fail(reterr_status, r, "hook \"%s\" (by %s): health check %s: %s", hook->name,
                    hook->caller, hook->check, hf_strerror(r));
        pthread_mutex_lock(&hooks->mu);
        for (size_t i = 0; i < hooks->n; i++)
                if (hooks->list[i] == hook) {
                        memmove(&hooks->list[i], &hooks->list[i + 1],
                                (hooks->n - i - 1) * sizeof(struct hf_hook_context *));
                        hooks->n--;
                        break;
                }
        pthread_mutex_unlock(&hooks->mu);
        hook_free(hook);
        return r;
}

/* Writes "a -> b -> a" for the circle that begins and ends with stack[from]. */
static void name_circle(struct hf_hook_context **stack, size_t from, size_t n, char *text,
                        size_t max_text) {
        size_t used = 0;
        for (size_t i = from; i <= n && used < max_text; i++) {
                int w = snprintf(text + used, max_text - used, "%s\"%s\"",
                                 i > from ? " after " : "", stack[i < n ? i : from]->name);
                used += w > 0 ? (size_t)w : 0;
        }
}

/*
 * Walks the needs depth first with a stack of its own. mark: 0 not seen, 1 on the stack, 2 known to
 * be free of circles. Registration is closed, so the list is read without the lock.
 */
static int walk(struct hf_hooks *hooks, size_t root, unsigned char *mark,
                struct hf_hook_context **stack, size_t *next, struct hf_status *reterr_status) {
        size_t n = 0;
        stack[n] = hooks->list[root];
        next[n++] = 0;
        mark[root] = 1;
        while (n) {
                struct hf_hook_context *top = stack[n - 1];
                size_t at = 0;
                while (hooks->list[at] != top)
                        at++;
                if (next[n - 1] == top->n_after) {
                        mark[at] = 2;
                        n--;
                        continue;
                }
                struct hf_hook_context *need = top->needs[next[n - 1]++];
                size_t i = 0;
                while (hooks->list[i] != need)
                        i++;
                if (mark[i] == 1) {
                        size_t from = 0;
                        while (stack[from] != need)
                                from++;
                        char circle[320];
                        name_circle(stack, from, n, circle, sizeof circle);
                        return hf_fail(reterr_status, HF_E_INVALID,
                                       "hooks wait for each other in a circle: %s", circle);
                }
                if (mark[i] == 0) {
                        mark[i] = 1;
                        stack[n] = need;
                        next[n++] = 0;
                }
        }
        return 0;
}

int hf__hooks_resolve(struct hf_hooks *hooks, struct hf_status *reterr_status) {
        for (size_t i = 0; i < hooks->n; i++)
                for (size_t k = 0; k < hooks->list[i]->n_after; k++) {
                        struct hf_hook_context *hook = hooks->list[i];
                        hook->needs[k] = find_locked(hooks, hook->after[k]);
                        if (!hook->needs[k])
                                return hf_fail(reterr_status, HF_E_INVALID,
                                               "hook \"%s\" (by %s) is after \"%s\", which is not "
                                               "registered",
                                               hook->name, hook->caller, hook->after[k]);
                }
        unsigned char *mark = calloc(hooks->n + 1, 1);
        struct hf_hook_context **stack = calloc(hooks->n + 1, sizeof(struct hf_hook_context *));
        size_t *next = calloc(hooks->n + 1, sizeof *next);
        int r = mark && stack && next ? 0 : hf_fail(reterr_status, -ENOMEM, "hooks: out of memory");
        for (size_t i = 0; r == 0 && i < hooks->n; i++)
                if (mark[i] == 0)
                        r = walk(hooks, i, mark, stack, next, reterr_status);
        free(mark);
        free(stack);
        free(next);
        return r;
}

struct hf_cancel *hf_hook_shutting_down(struct hf_hook_context *context) {
        return context->hooks->shutting;
}
struct hf_cancel *hf_hook_stopped(struct hf_hook_context *context) {
        return context->hooks->stopped;
}
struct hf_client *hf_hook_client(struct hf_hook_context *context) {
        return context->hooks->client;
}

/* SPDX-License-Identifier: Apache-2.0 */
#pragma once
/*
 * Post-start and pre-shutdown hooks, as in Kubernetes' API server. A hook has a start and a stop
 * function under one name, so that the code that starts something is also responsible for stopping
 * it.
 *
 * Starts run in the order of dependencies (`after`). Hooks that do not depend on each other start
 * concurrently, each on a separate thread. Stops run in the reverse order. Each start and stop has
 * a deadline, and the other stops run even if one fails. Each hook has a health check
 * `poststarthook/<name>` in healthz, livez and readyz, which reports "not finished" until the start
 * has returned 0, and is removed by hf_hooks_free. hf_hooks_stop may be called while hooks are
 * starting: then the shutting-down token fires, no further hook starts, and those whose start has
 * begun are stopped.
 *
 * hf_hooks_start and hf_hooks_stop close the registration. A hook can use two tokens of the
 * registry: *shutting down* (stop working; the API still responds) and *stopped* (the API is gone).
 *
 * Order of calls: hf_hooks_new; hf_hooks_add for each hook; hf_hooks_start once; hf_hooks_shut_down
 * if the start must end early; hf_hooks_stop, also after a start that failed;
 * hf_hooks_fire_stopped; hf_hooks_free. A registry that was never started may be freed at once.
 *
 * Starts, stops and spawned functions run on threads of the registry (hf_hooks_stop names the
 * exception), and stops of independent hooks run concurrently. They must not call hf_hooks_start or
 * hf_hooks_stop, which wait for them, nor hf_hooks_free. No lock is held while they run.
 *
 * Thread: any for hf_hooks_add, hf_hooks_shut_down and hf_hooks_stop; the last may be called while
 * another thread is in hf_hooks_start. The other functions of the registry: owner only.
 */
#include <stdbool.h>
#include <stddef.h>

#include <holdfast/api.h>
#include <holdfast/cancel.h>
#include <holdfast/error.h>
#include <holdfast/host.h>

#ifdef __cplusplus
extern "C" {
#endif

struct hf_hooks;
struct hf_hook_context; /* one per hook; valid from its start until hf_hooks_stop has returned, and
                           longer while a thread of the hook is stuck */
struct hf_client;       /* <holdfast/client.h>; hooks only pass it on */

struct hf_hook {
        size_t size;      /* sizeof(struct hf_hook) */
        const char *name; /* required, unique; copied */
        /* Names of the hooks whose start must have returned 0 before this one starts; copied. */
        const char *const *after;
        size_t n_after;
        /* Required. Runs on a separate thread and may block, but not past its deadline. */
        int (*start)(struct hf_hook_context *context, void *ctx, struct hf_status *reterr_status);
        /* Ends the work that start began. Usually runs on a separate thread. Also runs when start
         * has returned an error, and beside a start that missed its deadline. NULL = there is
         * nothing to end but the spawned threads. */
        int (*stop)(struct hf_hook_context *context, void *ctx, struct hf_status *reterr_status);
        hf_nsec start_deadline; /* relative; 0 = 60 s; HF_NSEC_NEVER = none */
        hf_nsec stop_deadline;  /* relative; 0 = 30 s; HF_NSEC_NEVER = none */
        void *ctx;              /* borrowed; passed to start and stop */
};

/* host and client (may be NULL) are borrowed until hf_hooks_free. 0 or -errno. */
HF_MUST_CHECK int hf_hooks_new(const struct hf_host *host, struct hf_client *client,
                               struct hf_hooks **ret_hooks);
/* Frees the registry after hf_hooks_stop, or when it was never started. If a hook is stuck, or the
 * hooks were started and not stopped, threads of hooks may still use the memory. The memory then
 * leaks on purpose. Accepts NULL, returns NULL. */
struct hf_hooks *hf_hooks_free(struct hf_hooks *hooks);

/*
 * Registers a hook. caller (may be NULL) is copied and names the code that registers
 * ("server/main/assembly.c:120"); an error message about a duplicate contains it. HF_E_EXISTS: the
 * name, or that of its health check, is taken; HF_E_INVALID: an empty name, also in `after`, or no
 * start function; HF_E_CLOSED: the hooks were started or stopped already; -EINVAL: hook->size is
 * wrong; or another -errno. reterr_status names the hook, and for a duplicate the first caller.
 */
HF_MUST_CHECK int hf_hooks_add(struct hf_hooks *hooks, const struct hf_hook *hook,
                               const char *caller, struct hf_status *reterr_status);
#define HF_HOOKS_STRING_(x) #x
#define HF_HOOKS_STRING(x)  HF_HOOKS_STRING_(x)
#define HF_HOOKS_HERE       __FILE__ ":" HF_HOOKS_STRING(__LINE__)

/*
 * Closes the registration, checks `after` (HF_E_INVALID for an unknown name or a cycle; the message
 * contains it) and runs all starts. Blocks until all have returned 0, one has failed (its error is
 * returned; other starts may still run), a deadline has passed (HF_E_TIMEOUT, the message names the
 * hook), or hf_hooks_shut_down was called (HF_E_CANCELED). Call hf_hooks_stop after any of these.
 * HF_E_CLOSED if the hooks were started or stopped before; -ENOMEM.
 */
HF_MUST_CHECK int hf_hooks_start(struct hf_hooks *hooks, struct hf_status *reterr_status);
/* Fires the shutting-down token, and causes a running hf_hooks_start to return soon. Idempotent.
 * Waits only for mutexes that are held for a short time. Thread: any. */
void hf_hooks_shut_down(struct hf_hooks *hooks);
/*
 * Fires the shutting-down token, runs the stops of all hooks whose start was begun, and joins the
 * threads of each hook after its stop. Blocks at most for the sum of the start and stop deadlines
 * along the longest chain of dependencies. A deadline that is noticed 2 s late or more, because the
 * process was stopped or the machine was suspended, begins anew, three times at most; so does that
 * of a start, while hf_hooks_start or this function waits for it. If a thread for a stop function
 * cannot be created, the function runs on the caller's thread, and no deadline ends it. Returns 0,
 * or the first error; reterr_status then lists the hooks that failed or missed their deadlines.
 * HF_E_STUCK: a thread could not be joined, or a stop function returned this. The thread is still
 * alive and uses the hook's objects, so do not free them. Further calls, during the stop or later,
 * wait until the stop has ended and return the same result. A hook must not call hf_hooks_stop: the
 * hook's own stop would wait for itself until the deadline.
 */
HF_MUST_CHECK int hf_hooks_stop(struct hf_hooks *hooks, struct hf_status *reterr_status);
/* Fires the stopped token: the API is gone. Call it after hf_hooks_stop and before
 * hf_hooks_free. */
void hf_hooks_fire_stopped(struct hf_hooks *hooks);

/* The functions below are for the hooks themselves. Thread: any thread of the hook. */
struct hf_cancel *hf_hook_shutting_down(struct hf_hook_context *context); /* borrowed */
struct hf_cancel *hf_hook_stopped(struct hf_hook_context *context);       /* borrowed */
struct hf_client *hf_hook_client(struct hf_hook_context *context); /* borrowed; may be NULL */
/* Replaces the hook's stop deadline (relative, positive). A start function calls this if it finds
 * out only while it runs how long the stop may take. No effect on a stop that has begun. */
void hf_hook_set_stop_deadline(struct hf_hook_context *context, hf_nsec deadline);
/*
 * Starts a thread of the hook, named by the first 15 bytes of thread_name. fn gets a token that
 * fires when the stop of this hook begins; the registry joins the thread. 0 or -errno; HF_E_CLOSED
 * when the hook is being stopped or the shutdown has begun.
 */
HF_MUST_CHECK int hf_hook_spawn(struct hf_hook_context *context, const char *thread_name,
                                void (*fn)(void *ctx, struct hf_cancel *token), void *ctx);

#ifdef __cplusplus
}
#endif

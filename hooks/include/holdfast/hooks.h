/* SPDX-License-Identifier: Apache-2.0 */
#pragma once
/*
 * Post-start and pre-shutdown hooks: pairs of start and stop under one name, so that what joins
 * also cancels.
 *
 * Starts run in dependency order (`after`), independent ones concurrently on threads of their own,
 * each with a deadline; stops in reverse dependency order, each with a deadline; one failing stop
 * never skips the others. Each hook is a health check `poststarthook/<name>` under healthz, livez
 * and readyz, "not finished" until its start returned 0. A stop asked for during the start fires
 * the shutting-down token, starts nothing more, and stops what has started.
 *
 * Registration closes with hf_hooks_start. A hook gets two tokens: *shutting down* (stop working;
 * the API still answers) and *stopped* (the API is gone). reference: apiserver.md 1 and 2.4;
 * HK01-HK07.
 */
#include <stdbool.h>
#include <stddef.h>

#include <holdfast/cancel.h>
#include <holdfast/error.h>
#include <holdfast/host.h>

struct hf_hooks;
struct hf_hook_context; /* one per hook, valid from its start until hf_hooks_stop returned */
struct hf_client;       /* <holdfast/client.h>; this module only hands the pointer on */

struct hf_hook {
        const char *name;         /* required, unique; copied */
        const char *const *after; /* names of hooks whose start must have returned 0 before; n_after
                                     of them; copied */
        size_t n_after;
        int (*start)(struct hf_hook_context *context, void *ctx,
                     struct hf_status *reterr_status); /* required */
        int (*stop)(struct hf_hook_context *context, void *ctx,
                    struct hf_status *reterr_status); /* NULL = nothing to join */
        hf_nsec start_deadline;                       /* relative; 0 = 60 s */
        hf_nsec stop_deadline;                        /* relative; 0 = 30 s */
        void *ctx;                                    /* borrowed */
};

/* client may be NULL; borrowed until free. */
int hf_hooks_new(const struct hf_host *host, struct hf_client *client, struct hf_hooks **ret_hooks);
struct hf_hooks *
hf_hooks_free(struct hf_hooks *hooks); /* after stop, or never started; accepts NULL */

/*
 * caller says who registers ("server/main.c:120"), for the message of a later duplicate; copied.
 * HF_E_EXISTS duplicate, HF_E_INVALID empty name or missing function, HF_E_CLOSED after start:
 * reterr_status names the hook and who came first.
 */
int hf_hooks_add(struct hf_hooks *hooks, const struct hf_hook *hook, const char *caller,
                 struct hf_status *reterr_status);
#define HF_HOOKS_STRING_(x) #x
#define HF_HOOKS_STRING(x)  HF_HOOKS_STRING_(x)
#define HF_HOOKS_HERE       __FILE__ ":" HF_HOOKS_STRING(__LINE__)

/*
 * Checks `after` (unknown and circular names: HF_E_INVALID, the message names the circle), closes
 * registration and runs all starts. Blocks until all returned, one failed (its status comes back),
 * a deadline passed (HF_E_TIMEOUT naming the hook), or hf_hooks_shut_down was called
 * (HF_E_CANCELED). After any of these call hf_hooks_stop.
 */
int hf_hooks_start(struct hf_hooks *hooks, struct hf_status *reterr_status);
/* Fires the shutting-down token; a running hf_hooks_start returns soon. Idempotent. Thread: any.
 * Never blocks. */
void hf_hooks_shut_down(struct hf_hooks *hooks);
/*
 * Fires shutting-down, runs the stops of all hooks whose start was begun, joins spawned threads of
 * each hook after its stop. Blocks up to the sum of deadlines along a dependency chain. Returns 0,
 * or the first error with reterr_status listing every hook that failed or overran; HF_E_STUCK when
 * a thread could not be joined (it stays, as do the objects: do not free).
 */
int hf_hooks_stop(struct hf_hooks *hooks, struct hf_status *reterr_status);
/* Tells the hooks that the API is gone: fires the stopped token. After hf_hooks_stop, before
 * hf_hooks_free. */
void hf_hooks_stopped(struct hf_hooks *hooks);

/* What a hook may ask of its context. Thread: any thread of the hook. */
struct hf_cancel *hf_hook_shutting_down(struct hf_hook_context *context); /* borrowed */
struct hf_cancel *hf_hook_stopped(struct hf_hook_context *context);       /* borrowed */
struct hf_client *hf_hook_client(struct hf_hook_context *context); /* borrowed; may be NULL */
/* A supervised thread: fn gets a token that fires when the hook's stop begins; the registry joins
 * it. 0 or -errno, HF_E_CLOSED. */
int hf_hook_spawn(struct hf_hook_context *context, const char *thread_name,
                  void (*fn)(void *ctx, struct hf_cancel *token), void *ctx);

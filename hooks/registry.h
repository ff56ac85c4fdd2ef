/* SPDX-License-Identifier: Apache-2.0 */
#pragma once
/*
 * What the parts of the hooks module share: the registry and its hooks. The essay is in registry.c.
 */
#include <pthread.h>
#include <stdatomic.h>

#include <holdfast/hooks.h>

enum hf__hook_start_state {
        HF__START_WAITING,
        HF__START_RUNNING,
        HF__START_DONE,
        HF__START_FAILED
};
enum hf__hook_stop_state {
        HF__STOP_WAITING, /* for those after it, then for its own start to return */
        HF__STOP_RUNNING, /* its stop function runs */
        HF__STOP_JOINING, /* the stop function has returned, threads have not */
        HF__STOP_DONE,    /* nothing of it is alive */
        HF__STOP_STUCK,   /* its deadline passed with threads alive */
};

struct hf__hook_thread { /* one of hf_hook_spawn */
        struct hf__hook_thread *next;
        struct hf_hook_context *hook;
        void (*fn)(void *ctx, struct hf_cancel *token);
        void *ctx;
        pthread_t thread;
        bool done; /* guarded by hooks->mu: fn has returned */
};

struct hf_hook_context {
        /* immutable after registration */
        struct hf_hooks *hooks;
        char *name;   /* owned */
        char *caller; /* owned */
        char *check;  /* owned: the health check's name */
        char **after; /* owned */
        size_t n_after;
        struct hf_hook hook;     /* its strings are not used */
        struct hf_cancel *token; /* owned; fires when the stop begins */
        atomic_bool finished;    /* the health check's answer */

        /* immutable after hf_hooks_start began: the hooks this one is after */
        struct hf_hook_context **needs; /* owned */

        /* guarded by hooks->mu */
        enum hf__hook_start_state start_state;
        bool start_begun; /* its start function was called or is about to be */
        bool start_returned;
        hf_nsec start_until;
        pthread_t start_thread;
        struct hf_status start_status;
        enum hf__hook_stop_state stop_state;
        bool stop_closed; /* no more spawns */
        bool stop_thread_made, stop_returned;
        hf_nsec stop_until;
        pthread_t stop_thread;
        int stop_error;
        struct hf_status stop_status;
        struct hf__hook_thread *threads; /* owned */
};

struct hf_hooks {
        /* immutable */
        const struct hf_host *host; /* borrowed */
        struct hf_client *client;   /* borrowed; may be NULL */
        struct hf_cancel *stopped;  /* owned */
        struct hf_cancel *shutting; /* owned; child of stopped */
        pthread_cond_t changed;     /* any field below, or of a hook, changed */

        pthread_mutex_t mu;
        /* guarded by mu */
        struct hf_hook_context **list; /* owned; in order of registration, fixed once closed */
        size_t n;
        bool closed;   /* to registration */
        bool shutdown; /* nothing more starts */
        bool starting; /* hf_hooks_start is at work */
        bool stop_begun, stop_done, stuck;
};

/* Resolves `after` and looks for circles. Thread: the one that starts, registration closed.
 * HF_E_INVALID, -ENOMEM. */
int hf__hooks_resolve(struct hf_hooks *hooks, struct hf_status *reterr_status);
/* Joins and frees them; each is done, so that this is a matter of its exit. Without the lock. */
void hf__hook_threads_join(struct hf__hook_thread *threads);

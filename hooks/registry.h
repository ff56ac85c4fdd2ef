/* SPDX-License-Identifier: Apache-2.0 */
#pragma once
/*
 * The registry of hooks, for the files of this module. The model is explained in registry.c.
 *
 * Lock: hooks->mu guards what is marked below. It is released around every call of a hook function,
 * of a token and of pthread_join.
 */
#include <pthread.h>
#include <stdatomic.h>

#include <holdfast/hooks.h>

enum hf__hook_start_state {
        HF__START_WAITING, /* for the hooks that it is after */
        HF__START_RUNNING, /* its start function runs */
        HF__START_DONE,    /* it has returned 0 */
        HF__START_FAILED   /* it has returned an error, or its thread could not be started */
};

enum hf__hook_stop_state {
        HF__STOP_WAITING, /* for the hooks that are after it, then for its own start to return */
        HF__STOP_RUNNING, /* its stop function runs */
        HF__STOP_JOINING, /* its stop function has returned, but not all of its threads */
        HF__STOP_DONE,    /* all its threads are joined, or its start was never begun */
        HF__STOP_STUCK    /* its deadline has passed and threads are alive */
};

struct hf_hook_context {
        /* immutable after registration */
        struct hf_hooks *hooks;
        char *name;   /* owned */
        char *caller; /* owned; the code that registered it */
        char *check;  /* owned; the name of its health check */
        char **after; /* owned */
        size_t n_after;
        struct hf_hook hook;     /* its strings are not used */
        struct hf_cancel *token; /* owned; fires when the stop of this hook begins */

        /* set by hf__hook_dependencies_resolve, immutable afterwards */
        struct hf_hook_context **dependencies; /* owned; the hooks that `after` names */

        atomic_bool finished; /* what the health check reports */

        /* guarded by hooks->mu */
        enum hf__hook_start_state start_state;
        bool start_begun;    /* start_thread exists */
        bool start_returned; /* the thread does not touch the registry any more */
        hf_nsec start_until;
        pthread_t start_thread;
        struct hf_status start_status;
        enum hf__hook_stop_state stop_state;
        bool stop_begun;       /* no more threads may be spawned */
        bool stop_thread_made; /* stop_thread exists */
        bool stop_returned;
        hf_nsec stop_until;
        pthread_t stop_thread;
        int stop_error;
        struct hf_status stop_status;
        struct hf__hook_thread *threads; /* owned; spawned and not joined */
};

struct hf_hooks {
        /* immutable */
        const struct hf_host *host;      /* borrowed */
        struct hf_client *client;        /* borrowed; may be NULL */
        struct hf_cancel *stopped;       /* owned */
        struct hf_cancel *shutting_down; /* owned; child of stopped */

        pthread_mutex_t mu;
        pthread_cond_t changed; /* with mu: a flag below, or of a hook, has changed */
        /* guarded by mu */
        struct hf_hook_context **list; /* owned; in the order of registration, fixed once closed */
        size_t n;
        bool closed;   /* registration is closed */
        bool shutdown; /* no further start begins */
        bool starting; /* hf_hooks_start is running */
        bool stop_begun, stop_done;
        bool stuck; /* threads are alive after the stop: nothing may be freed */
};

/* Completes the status of a hook function that returned r: a message that it did not set describes
 * r. */
void hf__hook_complete_status(struct hf_status *status, int r);

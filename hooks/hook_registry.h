/* SPDX-License-Identifier: Apache-2.0 */
#pragma once
/*
 * The registry of hooks, for the files of this module. The model is explained in hook_registry.c.
 *
 * Lock: hooks->mu guards the members marked below. It is released during every call of a hook
 * function, every firing of a token, and the joins of a stop. It is held while a start thread or a
 * spawned thread is created, and while a start thread that has stored its result is joined: both
 * are short.
 */
#include <pthread.h>
#include <stdatomic.h>

#include <holdfast/hooks.h>

#include "base/deadline.h"

enum hf__hook_start_state {
        HF__START_WAITING, /* waits for the hooks that it depends on */
        HF__START_RUNNING, /* its start function runs */
        HF__START_DONE,    /* its start function has returned 0 */
        HF__START_FAILED   /* its start function has returned an error, or got no thread */
};

enum hf__hook_stop_state {
        /* waits for the hooks that depend on it, then for its own start to return or to miss its
         * deadline */
        HF__STOP_WAITING,
        HF__STOP_RUNNING, /* its stop function runs */
        /* its stop function has returned or is missing, and not all of its threads are joined */
        HF__STOP_JOINING,
        HF__STOP_DONE, /* all its threads are joined, or its start was never begun */
        HF__STOP_STUCK /* its deadline has passed and threads are still running */
};

struct hf_hook_context {
        /* immutable after registration */
        struct hf_hooks *hooks;
        char *name;   /* owned */
        char *caller; /* owned; the code that registered it */
        char *check;  /* owned; the name of its health check */
        char **after; /* owned */
        size_t n_after;
        /* A copy. Its name and `after` are not used. stop_deadline is guarded by hooks->mu. */
        struct hf_hook hook;
        struct hf_cancel *token; /* owned; fires when the stop of this hook begins */

        /* set by hf__hook_dependencies_resolve, immutable afterwards */
        struct hf_hook_context **dependencies; /* owned; the hooks that `after` names */

        atomic_bool finished; /* the start function has returned 0; for the health check */

        /* guarded by hooks->mu */
        enum hf__hook_start_state start_state;
        bool start_begun;    /* start_thread was created; false: a stop skips the hook */
        bool start_returned; /* the start thread will not access the registry again */
        bool start_joined;
        bool start_awaited; /* the stop coordinator waits for the start function */
        struct hf__deadline start_until;
        pthread_t start_thread;
        struct hf_status start_status;
        enum hf__hook_stop_state stop_state;
        bool stop_begun;       /* no more threads may be spawned */
        bool stop_thread_made; /* stop_thread exists */
        bool stop_returned;
        struct hf__deadline stop_until;
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
        /* used with mu; signalled whenever something changes that a coordinator, or another caller
         * of hf_hooks_stop, waits for */
        pthread_cond_t changed;
        /* guarded by mu */
        struct hf_hook_context **list; /* owned; in the order of registration, fixed once closed */
        size_t n;
        bool closed;   /* registration is closed */
        bool shutdown; /* no further start begins */
        bool starting; /* hf_hooks_start is running */
        bool stop_begun, stop_done;
        int stop_result;              /* of the stop, for other callers; set with stop_done */
        struct hf_status stop_status; /* its message */
        bool stuck; /* threads are still running after the stop, or a stop function has said so
                       (HF_E_STUCK): nothing may be freed */
};

/* Completes the status of a hook function that returned r: sets its error, and a message that
 * describes r if the function set none. */
void hf__hook_complete_status(struct hf_status *status, int r);

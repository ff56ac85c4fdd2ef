/* SPDX-License-Identifier: Apache-2.0 */
#pragma once
/*
 * What the parts of the leader module share: the set of electors (electors.c) and its loop
 * (elector_loop.c).
 */
#include <pthread.h>
#include <stdatomic.h>

#include <holdfast/leader.h>

#include "base/mailbox.h"
#include "leader/elector_core.h"
#include "leader/gate.h"
#include "leader/leader_metrics.h"
#include "leader/lease_events.h"
#include "leader/lock_port.h"
#include "leader/term.h"

struct hf_elector {
        /* immutable after add */
        struct hf_electors *electors;
        char ns[HF_NAME_MAX + 1], name[HF_NAME_MAX + 1], identity[HF_IDENTITY_MAX + 1];
        char label[2 * HF_NAME_MAX + 2];     /* "namespace/name" */
        char old_label[2 * HF_NAME_MAX + 2]; /* of the Lease from which it migrates; "" = none */
        struct hf_client *client;            /* borrowed */
        struct hf_leader_timing timing;
        struct hf_controller *controllers; /* owned, with their names */
        size_t n_controllers;
        bool unfenced, unsafe_gate_off;
        void (*on_change)(void *ctx, const struct hf_leader_info *info);
        void *ctx;
        struct hf__lock *lock;           /* owned */
        struct hf__lease_events *events; /* owned; NULL = none are wanted */
        struct hf__leader_metrics metrics;

        /* any thread */
        struct hf__gate gate;
        atomic_bool
                stale; /* a write of the present term met a fence that is not its own, or none */
        atomic_bool doubted;    /* the host says so of whichever term there is, also of one whose
                                   acquire is under way */
        atomic_bool event_lost; /* an observation could not be kept for want of memory */

        /* the loop's only */
        struct hf__core core;
        hf_nsec wake_at;
        struct hf__term *work; /* owned; NULL = no work */
        uint32_t write_id;     /* of the last write, to tell its answer from a read's */
        hf_nsec write_sent_at, ending_at;
        unsigned n_failed_ops; /* in a row: the first is worth a line */
        bool stop_told;
        bool stepped;   /* since its last turn */
        bool announced; /* an Event told of the present term */
        struct hf__record
                led; /* when announced: the record it was taken by, as the server returned it */
        hf_nsec counted_at; /* until when the time without a leader is counted */

        /* the starting and stopping thread's only */
        struct hf__term *instance; /* owned; the controllers of every instance */

        /* guarded by electors->mu */
        struct hf_leader_info info;
        bool released;          /* HF_STOPPED: the Lease does not bear our name */
        char last_failure[160]; /* why the Lease was last not read or written; "" = it was */
};

enum hf__electors_state {
        HF__ELECTORS_NEW,
        HF__ELECTORS_STARTING,
        HF__ELECTORS_RUNNING,
        HF__ELECTORS_STOPPING,
        HF__ELECTORS_STOPPED,
        HF__ELECTORS_HUNG, /* stopped, but the loop's thread has not ended */
};

struct hf_electors {
        /* immutable after start */
        const struct hf_host *host; /* borrowed */
        struct hf_elector **list;   /* owned */
        size_t n;
        int epoll_fd, timer_fd;
        pthread_t thread;
        bool has_health; /* the health checks are ours */

        /* any thread */
        struct hf__mailbox mailbox;
        atomic_bool stop_asked;
        atomic_bool attention; /* a flag was raised: the loop looks at all electors, not only at
                                  those whose time has come */
        _Atomic uint64_t iterations;

        pthread_mutex_t mu;
        pthread_cond_t changed;
        /* guarded by mu */
        enum hf__electors_state state;
        bool loop_over;  /* every elector is stopped or stuck, the thread is about to exit */
        int stop_result; /* what the stop came to, for whoever asks again */
        struct hf_status stop_status; /* its words */
};

/* After raising a flag. Thread: any. */
static inline void hf__electors_wake(struct hf_electors *electors) {
        atomic_store(&electors->attention, true);
        hf__mailbox_wake(&electors->mailbox);
}

/* A letter to the loop: news for one elector. malloc'ed, the loop frees it. */
struct hf__elector_message {
        struct hf__message message; /* first */
        struct hf_elector *elector;
        bool is_reply; /* of the lock: event.type is set by the loop, from op_id */
        struct hf__core_event event;
        struct hf_status status; /* of a reply that failed */
};

/* Checks config and copies it. The owner is the caller until the elector is on electors' list. */
int hf__elector_new(struct hf_electors *electors, const struct hf_elector_config *config,
                    struct hf_elector **ret_elector, struct hf_status *reterr_status);
struct hf_elector *hf__elector_free(
        struct hf_elector *elector);    /* accepts NULL, returns NULL; no work of it is alive */
bool hf__is_identity(const char *text); /* visible ASCII, 1 to HF_IDENTITY_MAX bytes */
/* The lock's callbacks (any thread): they post. */
void hf__elector_on_reply(void *ctx, uint32_t op_id, const struct hf__lock_reply *reply);
void hf__elector_on_record(void *ctx, const struct hf__record *record);
/* Carries out what a step of the core asked for. Thread: the loop's only. */
void hf__elector_carry_out(struct hf_elector *elector, const struct hf__core_actions *actions,
                           struct hf__core_time now);
/* Thread function of the loop; ctx is the struct hf_electors. */
void *hf__electors_loop(void *ctx);
/* A copy of the state as it is now. Thread: any. */
void hf__elector_info(struct hf_elector *elector, struct hf_leader_info *ret_info);

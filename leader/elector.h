/* SPDX-License-Identifier: Apache-2.0 */
#pragma once
/*
 * One elector: it contends for one Lease, and runs a set of controllers while it holds the Lease.
 *
 * The elector loop (elector_loop.h) owns it while the loop runs. Other threads send messages to the
 * loop's mailbox, set the atomic flags below, and read the copy of its state in `info`.
 */
#include <stdatomic.h>

#include <holdfast/leader.h>

#include "base/loop.h"
#include "base/timer_heap.h"
#include "leader/core.h"
#include "leader/gate.h"
#include "leader/leader_metrics.h"
#include "leader/lease_events.h"
#include "leader/lock_port.h"
#include "leader/op_queue.h"
#include "leader/term.h"
#include "leader/term_writes.h"

/* The changing part of what hf_elector_info reports, except valid_until, which the gate has. struct
 * hf_leader_info describes the members. */
struct hf__elector_info {
        enum hf_leader_state state;
        const char *holder; /* as the core keeps it: the loop may free it once another holder is
                               here, so copy it while electors->mu is held */
        uint64_t term, n_terms;
        hf_nsec since, heard_at, free_at;
        const char *last_end;         /* static */
        const char *stuck_controller; /* borrowed from `controllers`; NULL or "" = none */
        bool identity_taken;
};

struct hf_elector {
        /* immutable once it is on the electors' list */
        struct hf_electors *electors; /* borrowed; the set it belongs to */
        char *texts;                  /* owned; contains the next six strings */
        const char *ns, *name, *identity;
        const char *cluster;               /* "" = it has no name */
        const char *label;                 /* "namespace/name", or "cluster:namespace/name" */
        const char *old_label;             /* the Lease that it migrates from; "" = none */
        struct hf_client *client;          /* borrowed */
        struct hf_controller *controllers; /* owned, with their names */
        size_t n_controllers;
        bool unfenced;
        void (*on_change)(void *ctx, const struct hf_leader_info *info);
        void *ctx;                       /* passed to on_change; borrowed */
        struct hf_loop *host_loop;       /* where on_change runs; borrowed; NULL = on the elector
                                            loop's thread */
        struct hf__loop_task change;     /* calls on_change in host_loop */
        struct hf__lock *lock;           /* owned */
        struct hf__lease_events *events; /* owned; NULL = no Events are written */
        const struct hf__leader_metrics *metrics; /* owned, unless the host has no metrics */

        /* any thread; call hf__elector_wake after setting a flag */
        struct hf__gate gate;
        atomic_int stale_error;    /* why the current term must end: HF_E_STALE_TERM (the fence
                                      refused a write), HF_E_UNFENCED (the server did not confirm
                                      the fence), or the error with which the controllers could
                                      not start; 0 = it need not */
        atomic_bool end_requested; /* the embedder ends the current term, even one whose
                                      acquire is still under way */
        atomic_bool event_lost;    /* a watch event was dropped because memory ran out */
        atomic_bool is_flagged;    /* the elector is in electors->flagged */
        /* In electors->flagged. Only the thread that has set is_flagged writes it, and the loop
         * reads it before it clears is_flagged. */
        struct hf_elector *next_flagged;

        struct hf__term_writes writes; /* of the last term */

        /* only the loop's thread */
        struct hf__core core;
        hf_nsec wake_at;
        struct hf__timer timer;          /* in electors->timers: due at wake_at */
        struct hf_elector *next_stepped; /* in electors->stepped */
        struct hf__term *term;           /* owned; NULL = no controllers of a term exist */
        struct hf__term *next_term;      /* owned; see next_term.h. NULL = none is prepared */
        bool cannot_prepare;             /* next_term was not made; cleared by the next term */
        uint32_t write_id;          /* op_id of the last write: a reply with another id counts as a
                                       read's */
        hf_nsec write_sent_at;      /* time of the step that sent the last write: not later than the
                                       sending */
        struct hf__op_queue *queue; /* borrowed; the client's */
        struct hf__op_ticket ticket;
        hf_nsec ending_at;     /* when the term's drain or abort began; 0 = not yet */
        unsigned n_failed_ops; /* in a row; only the first is logged as a warning */
        bool stop_sent;        /* the core has received HF__EV_STOP */
        bool stepped;          /* its core was stepped since its last iteration, so that
                                  the next iteration must include it */
        bool term_announced;   /* an Event about the beginning of the current term was added */
        /* If term_announced: the record that began the term. Owned; NULL without `events`. */
        struct hf__record *announced_record;
        hf_nsec leaderless_from; /* leaderless time is counted up to here; 0 = not yet */

        struct hf__holder_ref *holder_ref; /* owned; see holder_watch.h. NULL = none */

        /* only the thread that starts or stops the electors */
        struct hf__term *instance; /* owned; the controllers of class HF_EVERY_INSTANCE */

        /* guarded by electors->mu */
        struct hf__elector_info info;
        bool released; /* if HF_STOPPED: this process certainly does not hold the Lease */
        /* Why the last operation on the Lease failed; NULL = it did not. Only the loop's thread
         * writes it. It is failure_text, or a static text if there was no memory. */
        const char *last_failure;
        char *failure_text; /* owned */
};

/* Whether it has controllers of this class. */
static inline bool hf__elector_runs(const struct hf_elector *elector,
                                    enum hf_controller_class class) {
        size_t i = 0;

        while (i < elector->n_controllers && elector->controllers[i].runs != class)
                i++;
        return i < elector->n_controllers;
}
/* Checks config and copies it. The caller owns the elector until it is on the electors' list. */
int hf__elector_new(struct hf_electors *electors, const struct hf_elector_config *config,
                    struct hf_elector **ret_elector, struct hf_status *reterr_status);
/* Sets how much longer than other standbys this one waits before it takes a free Lease; see rule 15
 * of core.h. 0 or -ENOMEM. Thread: any; never blocks. */
int hf__elector_hold_back(struct hf_elector *elector, hf_nsec hold_back);
/* The loop must have ended, or never started, and `term`, `next_term` and `instance` must have been
 * freed, and `writes` given up (hf__term_writes_give_up). Accepts NULL, returns NULL. Waits only
 * for lock callbacks that are posting to the mailbox at this moment. */
struct hf_elector *hf__elector_free(struct hf_elector *elector);
/* Whether text is a valid identity: visible ASCII without spaces, 1 to HF_IDENTITY_MAX bytes. NULL
 * is not. */
bool hf__elector_is_identity(const char *text);

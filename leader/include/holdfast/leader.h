/* SPDX-License-Identifier: Apache-2.0 */
#pragma once
/*
 * Leader-elected controllers: this process contends for a Lease, without end, and runs a set of
 * controllers while it holds the Lease.
 *
 * Guarantees (docs/semantics.md):
 *  - One acting leader, also across pauses and suspends of a machine (the gate).
 *  - A write of a leader that has lost its Lease never commits (the fence, on a Holdfast server).
 *  - Losing the Lease never ends the process.
 *  - Terms strictly alternate: start, stop, start. Nothing of an old term runs when a new one
 *    starts.
 *  - The Lease is released only after the controllers have returned, and only if the record is
 *    still this process's own.
 *
 * Use: hf_electors_new, hf_electors_add for each Lease, hf_controllers_install (one pair of hooks
 * for all of them), then run the hooks. A host without hooks calls hf_electors_start and
 * hf_electors_stop itself.
 */
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include <holdfast/cancel.h>
#include <holdfast/client.h>
#include <holdfast/hooks.h>
#include <holdfast/host.h>

/* ---- timing ---- */

struct hf_leader_timing {
        hf_nsec lease_duration;  /* default 15 s; whole seconds. A standby waits this long after the
                                    last renewal it saw */
        hf_nsec renew_deadline;  /* default 10 s. The leader acts for this long after it sent its
                                    last successful renewal */
        hf_nsec retry_period;    /* default 2 s: between renewals; between polls of a standby whose
                                    watch does not work */
        hf_nsec request_timeout; /* default renew_deadline / 2: of one read or write of the Lease */
        hf_nsec stop_grace;      /* default min(3 s, (lease_duration - renew_deadline) / 2): from
                                    abort until the controllers must have returned */
        hf_nsec drain_deadline;  /* default 10 s: from drain to abort on a planned stop */
};
/* Fills zero fields with their defaults. Pure. */
void hf_leader_timing_defaults(struct hf_leader_timing *timing);
/*
 * Checks the timing as a whole: lease_duration > renew_deadline + stop_grace + lease_duration / 20
 * (a margin for clocks of different speed); renew_deadline > retry_period x 1.2 + request_timeout;
 * lease_duration in whole seconds; everything positive. HF_E_INVALID with a line that names the
 * broken rule and the numbers. Pure.
 */
int hf_leader_timing_check(const struct hf_leader_timing *timing, struct hf_status *reterr_status);
/* The longest time from a leader's death to the next leader, for a timing that has passed the
 * check. Pure. */
hf_nsec hf_leader_timing_worst_takeover(const struct hf_leader_timing *timing);

/* ---- controllers ---- */

/* One controller's part in one term: what its run() may ask. Valid until run() returns. */
struct hf_term;

enum hf_controller_class {
        HF_LEADER_ONLY,    /* runs while this process leads */
        HF_EVERY_INSTANCE, /* runs from start to stop, in every process */
};

struct hf_controller {
        const char *name; /* required; unique among all electors of the process; copied */
        enum hf_controller_class class;
        /*
         * Runs on a thread of its own, once per term, with fresh state. Must return when drain or
         * abort has fired and its work is done. If it returns earlier: 0 = finished for this term;
         * an error = it is called again, with backoff.
         */
        int (*run)(struct hf_term *term, void *ctx);
        void *ctx; /* of run and is_settled; borrowed */
        /*
         * Names of controllers of the same set and class; NULL-terminated; copied; NULL = none. In
         * each term this controller begins when each of them has called hf_term_started or has
         * returned 0. On a planned stop it is drained, and must return, before they are. An abort
         * reaches all at once. A controller that fails before it has started holds up those after
         * it until it succeeds; one that fails later is restarted while they keep running. All
         * controllers of a term share the one drain_deadline.
         */
        const char *const *after;
        /*
         * Optional. Called when a term begins. true: the controllers after this one need not wait
         * for it this time; it counts as started. Runs on the elector loop and must not block.
         */
        bool (*is_settled)(void *ctx);
};

/* Reports that the calling controller has started: those after it may begin. Holds for the rest of
 * the term. Idempotent. Thread: any. */
void hf_term_started(struct hf_term *term);
/* Planned stop: take nothing new, finish what is in hand. Borrowed. Thread: any. */
struct hf_cancel *hf_term_drain(struct hf_term *term);
/* The Lease is lost, or the drain deadline has passed: return now. Borrowed. Thread: any. */
struct hf_cancel *hf_term_abort(struct hf_term *term);
/* The term's client. It refuses writes (HF_E_NOT_LEADER) while this process may not act, and sends
 * the term's fence with each write. For HF_EVERY_INSTANCE: the embedder's own client. Borrowed. */
struct hf_client *hf_term_client(struct hf_term *term);
/* Names the term to the server. Borrowed; NULL for HF_EVERY_INSTANCE. */
const struct hf_fence *hf_term_fence(struct hf_term *term);
/* The resourceVersion of the write that began the term: a cache that has reached it has seen
 * everything the previous leader wrote. Borrowed; "" for HF_EVERY_INSTANCE. */
const char *hf_term_acquired_at(struct hf_term *term);
/* Whether this process may act at this moment. For HF_EVERY_INSTANCE: true until abort. Thread:
 * any. */
bool hf_term_may_act(struct hf_term *term);
const struct hf_host *hf_term_host(struct hf_term *term); /* borrowed */

/* ---- locks ---- */

/*
 * Checks a Kubernetes lock-type name. Only NULL and "leases" are supported (0). The types that
 * client-go has removed (endpoints, configmaps, endpointsleases, configmapsleases) are refused with
 * a line that says what to migrate to, all other names as unknown: HF_E_INVALID. Pure.
 */
int hf_leader_lock_type_check(const char *lock_type, struct hf_status *reterr_status);

/* ---- electors ---- */

struct hf_electors; /* all electors of a process, on one loop thread */
struct hf_elector;  /* one Lease, and the controllers that run while it is held */

enum hf_leader_state {
        HF_FOLLOWING, /* another process leads, or nobody does */
        HF_LEADING,   /* the controllers run */
        HF_DRAINING,  /* planned end of the term: the controllers finish */
        HF_ABORTING,  /* the term was lost: the controllers must return at once */
        HF_RELEASING, /* the controllers have returned, the Lease is being released */
        HF_STOPPED,   /* final */
        HF_STUCK      /* final: a controller did not return within stop_grace */
};

struct hf_leader_info {
        enum hf_leader_state state;
        char ns[HF_NAME_MAX + 1], name[HF_NAME_MAX + 1];
        char identity[HF_IDENTITY_MAX + 1];
        char holder[HF_IDENTITY_MAX + 1]; /* as last observed; "" = nobody */
        uint64_t term;                    /* of this process while it leads, else 0 */
        uint64_t n_terms;                 /* that this process has led since its start */
        hf_nsec since;                    /* boot time of the last change of state or holder */
        hf_nsec valid_until;              /* boot time; 0 unless leading */
        char last_end[96];         /* why this process's last term ended; "" = it never led */
        char stuck_controller[64]; /* if HF_STUCK: its name */
        hf_nsec heard_at;          /* boot time at which the Lease was last read, written or
                                      reported by the watch */
        bool identity_taken;       /* another process has, or had, the same identity: the Lease is
                                      held under it, but this process did not acquire it */
        hf_nsec free_at; /* boot time at which another holder's Lease may be taken, by this
                            process's own observation; 0 = it is free, or our own */
};

struct hf_elector_config {
        size_t size;              /* sizeof(struct hf_elector_config) */
        const char *ns, *name;    /* of the Lease; required; copied */
        const char *identity;     /* unique for each start of a process; required; copied; visible
                                     ASCII without spaces */
        struct hf_client *client; /* for the Lease (on lane HF_LANE_LEASE) and for the controllers'
                                     writes; required; borrowed until hf_electors_free */
        struct hf_leader_timing timing;          /* zero fields = defaults */
        const struct hf_controller *controllers; /* n_controllers; copied */
        size_t n_controllers;
        const char *const *labels; /* "key=value", put on the Lease; NULL-terminated; NULL = none */
        bool events;   /* write LeaderElection Events on the Lease, as client-go does: who became
                          leader, who stopped leading. Best effort, nothing waits for them */
        bool unfenced; /* accept a server without fences: then only the gate protects */
        bool unsafe_gate_off; /* only to test the fence: send writes although the gate is shut */
        /* Called on the loop thread after every change of info; must not block. Optional. */
        void (*on_change)(void *ctx, const struct hf_leader_info *info);
        void *ctx;             /* of on_change; borrowed */
        const char *lock_type; /* see hf_leader_lock_type_check; NULL = leases */
        /*
         * The Lease from which a running fleet migrates to this one. This process leads only while
         * it holds both, and its fence names both. docs/semantics.md describes the three steps of a
         * migration. Name and namespace (NULL = ns); NULL = no migration; copied.
         */
        const char *migrate_from, *migrate_from_ns;
        /*
         * Coordinated election (KEP-4355): a coordinator at the server chooses among
         * LeaseCandidates (candidate.h) and writes the chosen one's name into the Lease. This
         * elector never creates the Lease and never takes an expired one. It leads when the Lease
         * names it, and gives the Lease up when another holder is preferred. Not together with
         * migrate_from.
         */
        bool coordinated;
};

/* 0 or -errno. host is borrowed until hf_electors_free. */
int hf_electors_new(const struct hf_host *host, struct hf_electors **ret_electors);
/*
 * Adds an elector, before start only. HF_E_INVALID: names the broken rule (of `after`: the
 * controller and the name, or the circle). HF_E_EXISTS: two electors for one Lease, or two
 * controllers with one name. HF_E_CLOSED: after start. -EINVAL: config->size is wrong, or there is
 * no client. ret_elector (may be NULL) is owned by electors.
 */
int hf_electors_add(struct hf_electors *electors, const struct hf_elector_config *config,
                    struct hf_elector **ret_elector, struct hf_status *reterr_status);
/*
 * Starts all of them and returns at once. HF_E_EXISTS: another set has registered its checks with
 * the host's health already. A process has one set with as many Leases as it wants, or several
 * hosts with a health of their own. HF_E_CLOSED: already started or stopped.
 */
int hf_electors_start(struct hf_electors *electors, struct hf_status *reterr_status);
/*
 * Drains, joins and releases every elector, then joins the loop. Blocks up to drain_deadline +
 * stop_grace + request_timeout x 2 (of the slowest elector), 2 s for a busy machine, and another
 * stop_grace for HF_EVERY_INSTANCE controllers that ignore drain. 0; HF_E_STUCK: names a controller
 * that did not return (nothing it uses may be freed, and its Lease was not released); HF_E_TIMEOUT:
 * a Lease could not be released. Later calls, also calls during the stop, wait for it and return
 * the same. Must not be called from on_change or from a controller's run: it would wait for itself.
 */
int hf_electors_stop(struct hf_electors *electors, struct hf_status *reterr_status);
/* After stop. Accepts NULL, returns NULL. Leaks everything if a controller is stuck, because that
 * controller may still use it. */
struct hf_electors *hf_electors_free(struct hf_electors *electors);

/* Registers one pair of hooks, start-controllers and stop-controllers, for all electors. after:
 * names of hooks; NULL-terminated; NULL = none. */
int hf_controllers_install(struct hf_hooks *hooks, struct hf_electors *electors,
                           const char *const *after, struct hf_status *reterr_status);

void hf_elector_info(struct hf_elector *elector, struct hf_leader_info *ret_info); /* Thread: any */
/* Whether this process may act under the elector's Lease at this moment. Reads two atomics and the
 * clock. Thread: any. */
bool hf_elector_may_act(struct hf_elector *elector);
/*
 * Planned hand-over to the standby named identity (copied): drains, joins, and releases the Lease
 * with the annotation holdfast.dev/successor. HF_E_NOT_LEADER; -EINVAL: not an identity; -ENOMEM.
 * Returns at once. Thread: any.
 */
int hf_elector_hand_over(struct hf_elector *elector, const char *identity);
/*
 * The same without a named successor: any standby leads at once. This process goes on contending,
 * but not before two retry periods have passed. For a leader that cannot do its work where another
 * process might. HF_E_NOT_LEADER; -ENOMEM. Returns at once. Thread: any, also a controller's.
 */
int hf_elector_step_down(struct hf_elector *elector);
/*
 * Ends the term at once, like a loss. For a host which learns that the store behind its API was
 * replaced by a backup. A standby reads the Lease again before it next writes it. Thread: any.
 * Never blocks.
 */
void hf_elector_end_term(struct hf_elector *elector);
/* Counts the iterations of the loop, at least one per second. A watchdog can check that it rises.
 * Thread: any. */
uint64_t hf_electors_iterations(struct hf_electors *electors);

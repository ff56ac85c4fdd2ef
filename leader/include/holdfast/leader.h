/* SPDX-License-Identifier: Apache-2.0 */
#pragma once
/*
 * Leader-elected controllers: a Lease is contended for, without end, and a set of controllers runs
 * while it is held.
 *
 * Guarantees (docs/semantics.md): one acting leader, also across pauses and suspends (the gate); a
 * deposed leader's write never commits (the fence, on a Holdfast server); losing the Lease never
 * ends the process; terms strictly alternate start, stop, start, and nothing of an old term is
 * alive when a new one starts; the Lease is released after the work has joined, by
 * compare-and-clear, never somebody else's.
 *
 * Use: hf_electors_new, hf_electors_add per Lease, hf_controllers_install (one hook pair for
 * everything), then run the hooks. A host with hook machinery of its own calls hf_electors_start
 * and hf_electors_stop instead.
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
        hf_nsec lease_duration; /* default 15 s; whole seconds on the wire */
        hf_nsec renew_deadline; /* default 10 s: the leader acts for this long after sending its
                                   last successful renewal */
        hf_nsec retry_period; /* default 2 s: between renewals; standby polling where watching fails
                               */
        hf_nsec request_timeout; /* default renew_deadline / 2 */
        hf_nsec stop_grace;     /* default min(3 s, (lease_duration - renew_deadline) / 2): abort to
                                   joined */
        hf_nsec drain_deadline; /* default 10 s: drain to abort on a planned stop */
};
/* Fills zero fields with their defaults. Pure. */
void hf_leader_timing_defaults(struct hf_leader_timing *timing);
/*
 * Checks the relations as a whole: lease_duration > renew_deadline + stop_grace + lease_duration /
 * 20 (skew margin); renew_deadline > retry_period x 1.2 + request_timeout; whole seconds; all
 * positive. HF_E_INVALID with a line that names the broken relation and the numbers. Pure.
 */
int hf_leader_timing_check(const struct hf_leader_timing *timing, struct hf_status *reterr_status);
/* Worst-case times that follow from a valid timing, for the log at start. Pure. */
hf_nsec hf_leader_timing_worst_takeover(const struct hf_leader_timing *timing);

/* ---- controllers ---- */

struct hf_term; /* what one running controller may ask of its term; valid until its run returns */

enum hf_controller_class { HF_LEADER_ONLY, HF_EVERY_INSTANCE };

struct hf_controller {
        const char *name; /* required, unique; copied */
        enum hf_controller_class class;
        /*
         * Runs on a thread of its own, once per term, on fresh state; returns when drain or abort
         * fired and its work is done. Returning while leading: 0 = finished for this term; else it
         * is restarted with backoff.
         */
        int (*run)(struct hf_term *term, void *ctx);
        void *ctx; /* borrowed */
        /*
         * Names of controllers of the same set and class, NULL-terminated, copied; NULL = none. In
         * each term this one begins once each of them has called hf_term_started or has returned 0;
         * on a planned stop it is drained, and has returned, before they are. Abort is for all at
         * once. One that fails before it has started holds up those after it until a later run of
         * it has; one that fails after that is restarted under them. All of a term drain within the
         * one drain_deadline.
         */
        const char *const *after;
        /*
         * Optional. Asked when a term begins: true = there is nothing those after it need wait for
         * this time, it counts as started. On the elector's loop: must not block.
         */
        bool (*is_settled)(void *ctx);
};

/* The calling controller is under way: those that come after it may begin. Holds for the term.
 * Idempotent. Thread: any. */
void hf_term_started(struct hf_term *term);
struct hf_cancel *
hf_term_drain(struct hf_term *term); /* planned stop: take nothing new, finish what is in hand */
struct hf_cancel *
hf_term_abort(struct hf_term *term); /* loss, or the drain deadline passed: return now */
/* Gated and fenced: writes are refused (HF_E_NOT_LEADER) when this process may not act, and carry
 * the term. Borrowed. */
struct hf_client *hf_term_client(struct hf_term *term);
const struct hf_fence *hf_term_fence(struct hf_term *term); /* NULL for HF_EVERY_INSTANCE */
/* resourceVersion of the acquiring write: a cache that has reached it has seen all that the last
 * leader wrote. "" for every-instance. */
const char *hf_term_acquired_at(struct hf_term *term);
bool hf_term_may_act(
        struct hf_term *term); /* the gate, now. Always true for every-instance until abort */
const struct hf_host *hf_term_host(struct hf_term *term);

/* ---- locks ---- */

/*
 * What a lock type of the field's configurations means here: NULL and "leases" are the one there is
 * (0). The types that once were (endpoints, configmaps, endpointsleases, configmapsleases) are
 * refused with what to migrate to, anything else as unknown: HF_E_INVALID. Pure.
 */
int hf_leader_lock_type_check(const char *lock_type, struct hf_status *reterr_status);

/* ---- electors ---- */

struct hf_electors; /* all electors of a process, on one loop thread */
struct hf_elector;  /* one Lease */

enum hf_leader_state {
        HF_FOLLOWING,
        HF_LEADING,
        HF_DRAINING,
        HF_ABORTING,
        HF_RELEASING,
        HF_STOPPED,
        HF_STUCK
};

struct hf_leader_info {
        enum hf_leader_state state;
        char ns[HF_NAME_MAX + 1], name[HF_NAME_MAX + 1];
        char identity[HF_IDENTITY_MAX + 1];
        char holder[HF_IDENTITY_MAX + 1]; /* as last observed; "" = nobody */
        uint64_t term;                    /* of our term while leading, else 0 */
        uint64_t n_terms;                 /* led by this process since start */
        hf_nsec since;                    /* boot time of the last change of state or holder */
        hf_nsec valid_until;              /* boot time; 0 unless leading */
        char last_end[96];                /* why our last term ended; "" = never led */
        char stuck_controller[64];        /* HF_STUCK: who */
        hf_nsec heard_at;                 /* boot time at which the Lease last answered or told */
        bool identity_taken; /* the Lease bears our identity but was not taken by this process:
                                another one goes by it, or did */
        hf_nsec free_at; /* boot time at which another's Lease may be taken, by our own observation;
                            0 = it is free, or ours */
};

struct hf_elector_config {
        size_t size;
        const char *ns, *name;    /* of the Lease; required; copied */
        const char *identity;     /* unique per incarnation; required; copied; visible ASCII */
        struct hf_client *client; /* Lease traffic (lane HF_LANE_LEASE) and the controllers' writes;
                                     borrowed */
        struct hf_leader_timing timing;
        const struct hf_controller *controllers; /* n_controllers; copied */
        size_t n_controllers;
        const char *const *labels; /* "key=value" put on the Lease; NULL-terminated; NULL = none */
        bool events;   /* write LeaderElection Events on the Lease: who became leader, who stopped.
                          Best effort, never waited for */
        bool unfenced; /* true: a server without fences is accepted; only the gate holds */
        bool unsafe_gate_off; /* for proofs of the fence alone: writes are sent although the gate
                                 says no */
        /* Called on the loop thread on any change; must not block. Optional. */
        void (*on_change)(void *ctx, const struct hf_leader_info *info);
        void *ctx;
        const char *lock_type; /* as in hf_leader_lock_type_check; NULL = leases */
        /*
         * The Lease from which a running fleet migrates to this one: this process leads only while
         * it holds both, and its fence names both. The three steps of a migration are in
         * docs/semantics.md. NULL = none; copied.
         */
        const char *migrate_from, *migrate_from_ns; /* its name, and its namespace: NULL = ns */
        /*
         * Coordinated election (KEP-4355): a coordinator at the server chooses among
         * LeaseCandidates (candidate.h) and writes the chosen one's name into the Lease. This
         * elector never creates the Lease nor takes an expired one; it leads when it finds itself
         * named, and gives the Lease up when another is preferred. Not together with migrate_from.
         */
        bool coordinated;
};

int hf_electors_new(const struct hf_host *host, struct hf_electors **ret_electors);
/*
 * Before start only. HF_E_INVALID with the broken rule (of `after`: the controller and the name, or
 * the circle); HF_E_EXISTS two electors on one Lease, or two controllers of a name.
 */
int hf_electors_add(struct hf_electors *electors, const struct hf_elector_config *config,
                    struct hf_elector **ret_elector, struct hf_status *reterr_status);
/*
 * Returns at once. HF_E_EXISTS when another set has its checks in the host's health already: a
 * process has one set, with as many Leases as it wants, or hosts with a health of their own.
 */
int hf_electors_start(struct hf_electors *electors, struct hf_status *reterr_status);
/*
 * Drains, joins, releases, joins the loop. Blocks up to drain_deadline + stop_grace +
 * request_timeout x 2 (of the elector with the longest), 2 s for the machine's own delays, and
 * another stop_grace for HF_EVERY_INSTANCE controllers that ignore drain. Returns 0, HF_E_STUCK
 * naming the controller (nothing of it may be freed; its Lease was not released), or the release's
 * failure. Asked again, also while another thread is at it, it waits for that stop and returns the
 * same. Not from on_change nor from a controller's run: it would wait for itself.
 */
int hf_electors_stop(struct hf_electors *electors, struct hf_status *reterr_status);
struct hf_electors *
hf_electors_free(struct hf_electors *electors); /* after stop; accepts NULL; leaks a stuck one */

/* Registers the one pair start-controllers / stop-controllers around all electors. after: hook
 * names, NULL-terminated. */
int hf_controllers_install(struct hf_hooks *hooks, struct hf_electors *electors,
                           const char *const *after, struct hf_status *reterr_status);

void hf_elector_info(struct hf_elector *elector, struct hf_leader_info *ret_info); /* Thread: any */
/* May this process act under the elector's Lease at this instant? A read of two atomics and the
 * clock. Thread: any. */
bool hf_elector_may_act(struct hf_elector *elector);
/* Drain, join, release with the annotation holdfast.dev/successor = identity (copied).
 * HF_E_NOT_LEADER. Returns at once. */
int hf_elector_hand_over(struct hf_elector *elector, const char *identity);
/*
 * The same for whoever comes: a standby leads at once, and this elector, which goes on as one,
 * holds back for two retry periods. For a leader that cannot do its work, where another might.
 * HF_E_NOT_LEADER. Returns at once. Thread: any, also of a controller.
 */
int hf_elector_step_down(struct hf_elector *elector);
/*
 * Ends the term at once, as a loss: for a host that learns that the ground it stands on is gone
 * (the store behind its API was replaced by a backup). Of a standby it makes that the Lease is read
 * before it is next written. Thread: any. Never blocks.
 */
void hf_elector_end_term(struct hf_elector *elector);
/* A counter that rises each time the loop turns (at least once a second): the watchdog's witness.
 * Thread: any. */
uint64_t hf_electors_iterations(struct hf_electors *electors);

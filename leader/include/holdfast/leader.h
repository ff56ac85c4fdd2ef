/* SPDX-License-Identifier: Apache-2.0 */
#pragma once
/*
 * Leader-elected controllers: this process contends for a Lease until it is stopped, and runs a set
 * of controllers while it holds the Lease.
 *
 * Guarantees, within the limits that docs/semantics.md names:
 *  - At most one process acts as leader, even if a machine is paused or suspended (the gate).
 *  - A Holdfast server commits no write of a leader that has lost its Lease (the fence).
 *  - The process survives the loss of the Lease, and contends for it again unless a controller is
 *    stuck.
 *  - Terms strictly alternate: start, stop, start. No controller of an old term runs when a
 *    new term starts.
 *  - The Lease is released only after the controllers have returned, and never while another
 *    process holds it.
 *
 * Use: hf_electors_new, hf_electors_add for each Lease, hf_controllers_install (one hook for all of
 * them), then run the hooks. An embedder without hooks calls hf_electors_start and hf_electors_stop
 * itself.
 *
 * Thread: any for hf_electors_start, hf_electors_stop and hf_electors_stop_begin, and where a
 * function's comment says so; the owner's for the others.
 */
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include <holdfast/api.h>
#include <holdfast/cancel.h>
#include <holdfast/client.h>
#include <holdfast/hooks.h>
#include <holdfast/host.h>

#ifdef __cplusplus
extern "C" {
#endif

/* ---- timing ---- */

/* Frozen: it is a part of struct hf_elector_config, which grows at its own end. */
struct hf_leader_timing {
        hf_nsec lease_duration; /* default 15 s; whole seconds. The leader writes it into the Lease,
                                   and standbys wait this long after they have seen the last
                                   renewal */
        hf_nsec renew_deadline; /* default 10 s. The leader may act for this long after it sent its
                                   last successful renewal */
        hf_nsec retry_period;   /* default 2 s. Longest time from one renewal to the next while
                                   the server responds quickly. A standby whose watch does not work
                                   polls the Lease after this time, or up to a fifth later */
        hf_nsec request_timeout; /* default renew_deadline / 2. Limit for one read or write of the
                                    Lease */
        hf_nsec stop_grace;     /* default min(3 s, (lease_duration - renew_deadline) / 2). After an
                                   abort the controllers must return within this time */
        hf_nsec drain_deadline; /* default 10 s. A drain that takes longer becomes an abort */
};
/* Fills zero fields with their defaults. Pure. */
void hf_leader_timing_defaults(struct hf_leader_timing *timing);
/*
 * Checks the timing as a whole: lease_duration > renew_deadline + stop_grace + lease_duration / 20
 * (a margin for clocks of different speed); renew_deadline > retry_period x 1.2 + request_timeout;
 * lease_duration in whole seconds; everything positive and below 2^31 s. HF_E_INVALID:
 * reterr_status names the broken rule and the numbers. Pure.
 */
HF_MUST_CHECK int hf_leader_timing_check(const struct hf_leader_timing *timing,
                                         struct hf_status *reterr_status);
/*
 * An upper bound of the time from a leader's death until the next leader acts. The timing must have
 * passed hf_leader_timing_check. Pure. While the watch works and the server is quick, a take-over
 * takes little more than lease_duration. The bound also covers a silent or broken watch and
 * requests that take as long as they may. It holds if
 *
 *  - a standby runs that is not waiting after a failed request or after a term that it lost;
 *  - the server responds to each of the standbys' requests within request_timeout;
 *  - the dead leader's last request is applied within request_timeout or never, and an event of a
 *    watch arrives within request_timeout or never;
 *  - only electors write the Lease, and its resourceVersion is a number;
 *  - the clocks' speeds differ by at most a twentieth.
 */
hf_nsec hf_leader_timing_worst_takeover(const struct hf_leader_timing *timing);

/* ---- controllers ---- */

/* One controller's part in one term, which the controller's run() receives. Valid until run()
 * returns. */
struct hf_term;

enum hf_controller_class {
        HF_LEADER_ONLY,    /* runs while this process leads */
        HF_EVERY_INSTANCE, /* runs from start to stop, in every process */
};

struct hf_controller {
        size_t size;      /* sizeof(struct hf_controller) */
        const char *name; /* required; copied. In a struct hf_electors, no other controller of
                             this cluster has the name */
        enum hf_controller_class runs;
        /*
         * Required. Called on a separate thread when a term begins (HF_EVERY_INSTANCE: when the
         * electors start) and the controllers in `after` have started, unless the term ends before.
         * A standby starts the threads of its next term while another process leads.
         * Each term has a new struct hf_term. After drain has fired, run must finish its work and
         * return; after abort it must return at once. If it returns earlier: 0 = finished for this
         * term; an error = it is called again in the same term, with backoff.
         */
        int (*run)(struct hf_term *term, void *ctx);
        void *ctx; /* passed to run and is_settled; borrowed */
        /*
         * The controllers that must have started before this one begins: names of the same elector
         * and class; n_after; copied. A controller has started when it has called hf_term_started
         * or has returned 0, or if it is settled (see below). A planned stop goes in the opposite
         * order: the named controllers are drained only after this one has returned. An abort
         * reaches all controllers at once. If a controller fails before it has started, those after
         * it wait until it succeeds. If it fails later, it is restarted and they keep running. All
         * controllers of a leader's term share one drain_deadline.
         */
        const char *const *after;
        size_t n_after;
        /*
         * Optional. Called when a term begins. True: this controller counts as started in this
         * term, so the controllers after it need not wait for it. Called on the elector loop's
         * thread (HF_EVERY_INSTANCE: in hf_electors_start); must not block.
         */
        bool (*is_settled)(void *ctx);
};

/* Reports that this controller has started, so that the controllers after it may begin. It counts
 * as started for the rest of the term. Idempotent. Thread: any. */
void hf_term_started(struct hf_term *term);
/* Fires on a planned stop, once the controllers that are `after` this one have returned: begin no
 * new work, finish the work under way. Fires on an abort too. Borrowed. Thread: any. */
struct hf_cancel *hf_term_drain(struct hf_term *term);
/* Fires when the term is lost or the drain deadline has passed: return now. Borrowed. Thread:
 * any. */
struct hf_cancel *hf_term_abort(struct hf_term *term);
/* The term's client. It refuses writes (HF_E_NOT_LEADER) while this process may not act, and sends
 * the term's fence with each write. The abort cancels the writes under way; reads and watches under
 * way go on. From then on the client refuses everything. Borrowed; NULL for HF_EVERY_INSTANCE.
 * Thread: any, as for the next five functions. */
struct hf_client *hf_term_client(struct hf_term *term);
/* The embedder's own client, for HF_EVERY_INSTANCE: no gate and no fence protect its writes, and
 * the other instances write at the same time. Borrowed; NULL for HF_LEADER_ONLY. */
struct hf_client *hf_term_ungated_client(struct hf_term *term);
/* The fence that identifies the term to the server; hf_term_client sends it already. Borrowed; NULL
 * for HF_EVERY_INSTANCE. */
const struct hf_fence *hf_term_fence(struct hf_term *term);
/* The resourceVersion of the write that began the term. If the server has one revision for all
 * collections, a cache that has reached it has seen everything the previous leader wrote;
 * hf_informer_wait_term waits for that on any server. Borrowed; "" for HF_EVERY_INSTANCE. */
const char *hf_term_acquired_at(struct hf_term *term);
/* Whether this process may act as leader at this moment. For HF_EVERY_INSTANCE: true until
 * abort. */
bool hf_term_may_act(struct hf_term *term);
const struct hf_host *hf_term_host(struct hf_term *term); /* borrowed */

/* ---- locks ---- */

/*
 * Checks a Kubernetes lock-type name. Only NULL and "leases" are supported (0). The types that
 * client-go has removed (endpoints, configmaps, endpointsleases, configmapsleases) and unknown
 * names are refused: HF_E_INVALID, and reterr_status recommends leases. Pure.
 */
HF_MUST_CHECK int hf_leader_lock_type_check(const char *lock_type, struct hf_status *reterr_status);

/* ---- electors ---- */

struct hf_loop;     /* <holdfast/loop.h> */
struct hf_electors; /* all electors of a process, on one loop thread */
struct hf_elector;  /* one Lease, and the controllers that run while it is held */

enum hf_leader_state {
        HF_FOLLOWING, /* another process leads, or no process does */
        HF_LEADING,   /* the controllers run */
        HF_DRAINING,  /* planned end of the term: the controllers finish */
        HF_ABORTING,  /* the term was lost, or its drain took too long: the controllers must return
                         at once */
        HF_RELEASING, /* the controllers have returned; the Lease is being released */
        HF_STOPPED,   /* final */
        HF_STUCK      /* final: a controller did not return within stop_grace */
};

struct hf_leader_info {
        size_t size; /* sizeof(struct hf_leader_info); the caller sets it before hf_elector_info */
        enum hf_leader_state state;
        char ns[HF_NAME_MAX + 1], name[HF_NAME_MAX + 1];
        char identity[HF_IDENTITY_MAX + 1];
        char holder[HF_IDENTITY_MAX + 1]; /* as last observed; "" = none */
        uint64_t term;                    /* number of this process's term; 0 = it does not lead */
        uint64_t n_terms;                 /* terms that this process has led since its start */
        hf_nsec since;                    /* boot time of the last change of state or holder */
        hf_nsec valid_until;       /* boot time until which it may act; 0 = it does not lead */
        char last_end[96];         /* why this process's last term ended; "" = none has ended */
        char stuck_controller[64]; /* if HF_STUCK: the controller that did not return */
        hf_nsec heard_at;          /* boot time of the last successful read or write of the Lease,
                                      or of the last event from its watch; at first that of
                                      hf_electors_add */
        bool identity_taken;       /* the Lease is held under our identity, but this process did
                                      not acquire it: another process uses, or used, the same */
        hf_nsec free_at; /* boot time from which this process may take a Lease that another process
                            holds or is the named successor for; 0 = it is free or our own, or was
                            not read yet */
};

#define HF_CLUSTER_MAX 63 /* bytes of hf_elector_config.cluster */

struct hf_elector_config {
        size_t size;              /* sizeof(struct hf_elector_config) */
        const char *ns, *name;    /* the Lease's; required; copied */
        const char *identity;     /* must differ between processes, and between two starts of one;
                                     visible ASCII without spaces; required; copied */
        struct hf_client *client; /* accesses the Lease (on lane HF_LANE_LEASE) and sends the
                                     controllers' requests; required; borrowed until
                                     hf_electors_free. Its last responses may come later, so
                                     free it before the host */
        struct hf_leader_timing timing;          /* zero fields = defaults */
        const struct hf_controller *controllers; /* n_controllers; copied */
        size_t n_controllers;
        const char *const *labels; /* "key=value", set on the Lease; n_labels; copied */
        size_t n_labels;
        bool events;   /* write LeaderElection Events on the Lease, as client-go does, when a term
                          begins or ends. Best effort: nothing waits for the responses, which may
                          come after hf_electors_free */
        bool unfenced; /* accept a server without fences: then only the gate stops late writes */
        /* Called when the state or the holder has changed, or identity_taken has become true; must
         * not block. info is borrowed. Optional. Thread: see `loop`. */
        void (*on_change)(void *ctx, const struct hf_leader_info *info);
        void *ctx;             /* passed to on_change; borrowed */
        const char *lock_type; /* see hf_leader_lock_type_check; NULL = leases */
        /*
         * The name and namespace of an old Lease, from which running processes migrate to this one.
         * This process leads only while it holds both Leases, and its fence names both.
         * docs/semantics.md describes the three steps of a migration. migrate_from NULL = no
         * migration; migrate_from_ns NULL = ns. Copied.
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
        /*
         * The name of the cluster of `client`, for a process with electors in several clusters. It
         * distinguishes Leases and controllers of the same name, in messages and as the label
         * `cluster` of the metrics. Letters, digits, '-', '_' and '.', up to HF_CLUSTER_MAX bytes.
         * NULL = no name; copied.
         */
        const char *cluster;
        /* on_change runs in this loop, and may be called once for several changes; borrowed until
         * hf_electors_free, which must then be called on the loop's thread, because on_change could
         * still be running there otherwise. NULL = it runs on the elector loop's thread */
        struct hf_loop *loop;
};

/* 0 or -errno. host is borrowed until hf_electors_free. */
HF_MUST_CHECK int hf_electors_new(const struct hf_host *host, struct hf_electors **ret_electors);
/*
 * Lets processes of one host take each other's Leases before they expire, when the holder has died.
 * Creates the file if it is missing and locks it until hf_electors_free; the kernel frees the lock
 * when the process dies. Each process has a file of its own, all in one directory on a local file
 * system, and runs as the same user. A file's name has up to 100 letters, digits, dots, dashes and
 * underscores, and no dot at its beginning.
 * Files are never removed. The process must not close descriptors that it did not open. Call it
 * before the first hf_electors_add; the electors must be fenced and must not migrate.
 *
 * A death counts only if it is proven (docs/semantics.md). HF_E_BUSY: a living process has the
 * file. HF_E_INVALID: the path cannot be used. HF_E_CLOSED: too late, or called before. -errno.
 * reterr_status has the reason. Blocks on the file system.
 */
HF_MUST_CHECK int hf_electors_use_lock_file(struct hf_electors *electors, const char *path,
                                            struct hf_status *reterr_status);
/*
 * Adds an elector. Call it before start. 0 or an error. HF_E_INVALID: reterr_status names the
 * broken rule (for `after`: the controller and the unknown name, or the cycle). HF_E_EXISTS:
 * another elector of this cluster has the same Lease, or another controller the same name.
 * HF_E_CLOSED: already started or stopped. -EINVAL: the size of config or of a controller is wrong,
 * or there is no client. Another -errno. *ret_elector (may be NULL) is owned by electors.
 */
HF_MUST_CHECK int hf_electors_add(struct hf_electors *electors,
                                  const struct hf_elector_config *config,
                                  struct hf_elector **ret_elector, struct hf_status *reterr_status);
/*
 * Starts all electors and returns at once. 0 or -errno. HF_E_EXISTS: another set has already
 * registered its checks with the host's health: use one set for all Leases of a process, or several
 * hosts with separate healths. HF_E_CLOSED: already started or stopped. After any error but
 * HF_E_CLOSED no elector contends, and only hf_electors_stop and hf_electors_free may follow. An
 * error may come after HF_EVERY_INSTANCE controllers have begun: then hf_electors_start aborts them
 * and blocks up to stop_grace until they return. If one does not, hf_electors_stop returns
 * HF_E_STUCK.
 */
HF_MUST_CHECK int hf_electors_start(struct hf_electors *electors, struct hf_status *reterr_status);
/*
 * Drains, joins and releases every elector, then joins the loop. Before the start it only makes a
 * later start fail, and returns 0. Blocks up to drain_deadline + stop_grace + request_timeout x 2
 * (of the slowest elector), 2 s for a busy machine, and another stop_grace for HF_EVERY_INSTANCE
 * controllers that ignore drain. If the end of one of these times is noticed 2 s late or more,
 * because the process was stopped or the machine was suspended, it begins anew, three times at
 * most. A time that begins anew or late lengthens the stop by as much, and by 2 s more if the loop
 * does not run then. 0 = all stopped. HF_E_STUCK: a controller or an on_change callback did not
 * return. reterr_status says which one, and nothing that it uses may be freed. The Lease of a
 * leader-only controller that is stuck was not released. HF_E_TIMEOUT: a Lease was not released,
 * because the server did not respond or refused the release, or because the server has no fences
 * and a write of the term may still take effect. Other calls, during the stop or later, wait
 * for its end and return the same. Must not be called from on_change or from a controller's run: it
 * would wait for itself.
 */
HF_MUST_CHECK int hf_electors_stop(struct hf_electors *electors, struct hf_status *reterr_status);
/*
 * The same for an event loop, which must not block. Begins the stop and returns at once. A thread
 * ("hf-stop") runs hf_electors_stop; when it has ended, done (NULL = none) is called with its
 * result: in `loop`, or on that thread if loop is NULL. On that thread it must not call
 * hf_electors_free, which joins the thread. With a loop, hf_electors_free must be called on the
 * loop's thread, because done could still be running there otherwise. status is borrowed for the
 * call. 0; HF_E_CLOSED: this function has begun a stop already; -errno: there is no thread, so
 * nothing has begun.
 */
HF_MUST_CHECK int hf_electors_stop_begin(struct hf_electors *electors, struct hf_loop *loop,
                                         void (*done)(void *ctx, int result,
                                                      const struct hf_status *status),
                                         void *ctx);
/* Returns what hf_electors_stop has returned on the thread of hf_electors_stop_begin; HF_E_BUSY
 * while the stop goes on; -EINVAL if none was begun. Never blocks. Thread: any. */
HF_MUST_CHECK int hf_electors_stop_poll(struct hf_electors *electors,
                                        struct hf_status *reterr_status);
/* Call it after stop, or without a start. Waits for a stop that hf_electors_stop_begin has begun.
 * Accepts NULL, returns NULL. Leaks everything if a controller or the loop is stuck or was not
 * stopped, because it may still use the memory. */
struct hf_electors *hf_electors_free(struct hf_electors *electors);

/* Registers one hook, start-controllers, whose start and stop functions are for all electors, also
 * those that are added later. The stop has no deadline but the limit of hf_electors_stop. after:
 * n_after names of the hooks that must start first; copied. electors is borrowed until
 * hf_hooks_stop has returned. 0, or an error of hf_hooks_add. */
HF_MUST_CHECK int hf_controllers_install(struct hf_hooks *hooks, struct hf_electors *electors,
                                         const char *const *after, size_t n_after,
                                         struct hf_status *reterr_status);

/* Fills *ret_info, whose size the caller has set. 0, or -EINVAL: that size is wrong. Thread:
 * any. */
int hf_elector_info(struct hf_elector *elector, struct hf_leader_info *ret_info);
/* Whether this process may act under the elector's Lease at this moment. Cheap, takes no lock.
 * Thread: any. */
bool hf_elector_may_act(struct hf_elector *elector);
/*
 * Begins a planned hand-over to the standby named identity (copied), and returns at once. The
 * elector drains and joins its controllers, then releases the Lease with the annotation
 * holdfast.dev/successor, also if hf_electors_stop is called meanwhile. 0 = requested. If the term
 * ends before the request is handled, it has no effect, except on a next term that has begun by
 * then. A request that names this process itself has no effect. HF_E_NOT_LEADER: it does not lead,
 * or the term ends already; -EINVAL: not an identity; -ENOMEM. Thread: any.
 */
HF_MUST_CHECK int hf_elector_hand_over(struct hf_elector *elector, const char *identity);
/*
 * The same without a named successor: any standby may lead at once. This process contends again
 * after two retry periods, or when another process holds the Lease. For a leader that cannot do its
 * work while another process might. HF_E_NOT_LEADER; -ENOMEM. Returns at once. Thread: any, also a
 * controller's.
 */
HF_MUST_CHECK int hf_elector_step_down(struct hf_elector *elector);
/*
 * Ends the term as if the Lease had been lost, because what this process knows of the Lease may be
 * wrong. For an embedder whose store was replaced by a backup. On a standby it only forces a read
 * before the next write of the Lease. Thread: any. Never blocks.
 */
void hf_elector_end_term(struct hf_elector *elector);
/* Counts the iterations of the loop: while the electors run, at least one per second unless a
 * callback blocks it. A watchdog can check that it rises. Thread: any. */
uint64_t hf_electors_iterations(struct hf_electors *electors);

#ifdef __cplusplus
}
#endif

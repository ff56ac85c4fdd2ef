/* SPDX-License-Identifier: Apache-2.0 */
#pragma once
/*
 * One elector of the Lease kube-system/lead, with the identity "a", over the fake API server and
 * under a clock that the test moves (hand_clock.h). So a test knows exactly which times are
 * measured, and what happens while no time passes. The host has health, metrics and a log, which is
 * kept as text.
 *
 * The elector has one controller, "worker", which waits for its drain, and then for
 * clocked_elector_let_end.
 *
 * Times: a Lease of 100 s that must be renewed every 10 s and for which the leader may act for 60
 * s; requests end after 30 s, a drain after 40 s, the stop grace after 20 s.
 *
 * Waits abort after PATIENCE_MSEC. One fixture per program. Thread: the test's.
 */
#include <stdbool.h>

#include <holdfast/health.h>
#include <holdfast/hooks.h>
#include <holdfast/leader.h>
#include <holdfast/metrics.h>

#include "fake_api_client.h"
#include "hand_clock.h"
#include "leader/electors.h"
#include "patience.h"
#include "time_units.h"

#define CLOCKED_LEASE "leases/kube-system/lead"

struct clocked_change {
        enum hf_leader_state state;
        char holder[64];
};

struct clocked_elector {
        struct hf_host host;
        struct fake_api *api;
        struct fake_api_client *client;
        struct hf_electors *electors;
        struct hf_elector *elector, *more[256];
        int (*run)(struct hf_term *term); /* instead of the controller above; NULL = that one */
        void (*in_change)(enum hf_leader_state state); /* on_change calls it; NULL = nothing */

        pthread_mutex_t mu;
        pthread_cond_t changed;
        /* guarded by mu */
        char log[32768];                   /* "level message\n" of each line of the elector */
        struct clocked_change changes[64]; /* the calls of on_change */
        unsigned n_changes;
        bool leading_was_told; /* on_change was called before the log line about the term */
        bool may_end;
        unsigned n_running, n_runs;
};

extern struct clocked_elector clocked;

struct clocked_options {
        bool events, unfenced, held; /* held: no request is served until the test ends the hold */
        const char *lock_file;       /* NULL = none */
        const char *cluster;         /* NULL = none */
        int (*local)(struct hf_term *term, void *ctx); /* a controller "local" of each instance */
        const struct hf_leader_timing *timing;         /* NULL = the times above */
        struct hf_hooks *hooks; /* borrowed; they start the elector; NULL = no hooks do */
        unsigned n_more; /* electors without controllers, of the Leases more-0, more-1 and so on */
};
/* Makes the host and the server. Afterwards the test may write a Lease (clocked_put_lease). */
void clocked_elector_init(void);
/* Makes the elector and starts it. */
void clocked_elector_start(const struct clocked_options *options);
void clocked_elector_free(void); /* after clocked_elector_stop */
/* Lets the controller end, and stops the elector, while the clock stands still. */
void clocked_elector_stop(void);
void clocked_elector_let_end(void);
/* Begins a write of the thing "x" by the term's client, and ignores the response. Returns the
 * result of hf_client_request. Thread: the controller's. */
int clocked_begin_write(struct hf_term *term, enum hf_verb verb);

/* Writes the Lease as another process does: with this holder, renewed at the real time at which the
 * clock began. spec: more members of the spec, each with a comma before it. */
void clocked_put_lease(const char *holder, const char *spec);

void clocked_await_term(void); /* until the elector leads and its controller runs; then settles */
/* Settles: waits until the elector's loop has nothing to do, because it has seen the replies to all
 * of its requests that are not held. */
void clocked_settle(void);
void clocked_move(hf_nsec by); /* moves the clock, and settles */

/* Whether the server has a request that it will serve without the test. */
bool clocked_is_request_under_way(void);

struct hf_leader_info clocked_info(void);
bool clocked_is(enum hf_leader_state state);
bool clocked_logged(const char *text);     /* a part of the log */
double clocked_metric(const char *series); /* the beginning of its line; -1 = there is none */
/* Waits until a condition is true that does not depend on the clock, and settles. */
#define CLOCKED_AWAIT(condition)                                                                   \
        do {                                                                                       \
                PATIENCE_AWAIT(condition);                                                         \
                clocked_settle();                                                                  \
        } while (0)

/* SPDX-License-Identifier: Apache-2.0 */
#pragma once
/*
 * One participant of an election: an hf_electors with one elector, on a client of its own of a fake
 * API server, with two controllers that watch over themselves. Several of them with one server make
 * an election, in real time with short timings.
 *
 * Tests wait for events (a commit, a change of state, a note of a controller) with a time limit far
 * beyond what they take, and assert order, never duration.
 *
 * The controller "worker" leads (HF_LEADER_ONLY) and works as enum elector_fixture_work says; it
 * counts that terms never overlap. The controller "local" runs in every instance, and counts that
 * it outlives the worker.
 *
 * Thread: any. The fields marked so are guarded by api->mu; api->changed is signalled after every
 * change of them.
 */
#include <stdbool.h>
#include <stddef.h>

#include <holdfast/leader.h>

#include "fake_api_client.h"

#define ELECTOR_FIXTURE_KEY      "leases/kube-system/lead"
#define ELECTOR_FIXTURE_PATIENCE (20 * HF_NSEC_PER_SEC)

enum elector_fixture_work {
        ELECTOR_WRITES,            /* all the time until the drain */
        ELECTOR_WRITES_AT_DRAIN,   /* waits at the drain for a renewal, then writes once */
        ELECTOR_IGNORES_TOKENS,    /* until may_end is set */
        ELECTOR_WRITES_AFTER_LOSS, /* once, when the term was aborted */
        ELECTOR_FAILS_TWICE,       /* then waits for the drain */
};

struct elector_fixture {
        struct fake_api *api;
        struct fake_api_client *client;
        struct hf_electors *electors;
        struct hf_elector *elector;
        const char *identity;
        /* guarded by api->mu */
        enum elector_fixture_work work;
        bool may_end;                      /* see the kinds of work */
        int n_running, n_started, n_ended; /* runs of the worker */
        int n_overlaps;                    /* runs that began before the last one ended */
        int n_failures;
        int n_local_running, n_local_ended_early; /* early: before the worker */
        int n_written, n_unfenced, last_error;    /* the worker's writes */
};

/* The elector's configuration, to be changed by the test. */
struct hf_elector_config elector_fixture_config(struct elector_fixture *f,
                                                const struct hf_controller *controllers, size_t n);
/* Makes one that is not started. unfenced: it accepts a server without fences, and has one. */
struct elector_fixture *elector_fixture_new(struct fake_api *api, const char *identity,
                                            enum elector_fixture_work work, bool unfenced);
struct elector_fixture *elector_fixture_start(struct fake_api *api, const char *identity,
                                              enum elector_fixture_work work);
/* Starts one that holds the Lease "lead-old" too, from which the fleet comes. It has the worker
 * only. */
struct elector_fixture *elector_fixture_start_migrating(struct fake_api *api, const char *identity);
/* Stops its electors, and asserts that all work was ended in order. */
void elector_fixture_stop(struct elector_fixture *f);
void elector_fixture_free(struct elector_fixture *f);

/* The worker's function, for configurations of the test's own. ctx is the fixture. */
int elector_fixture_run_worker(struct hf_term *term, void *ctx);

void elector_fixture_lock(struct elector_fixture *f);
void elector_fixture_unlock(struct elector_fixture *f); /* and signals api->changed */

/* ---- what to wait for ---- */

/* Waits until test(ctx) is true, which is called with api->mu held. Else it fails, naming the line.
 */
void elector_fixture_await(struct fake_api *api, bool (*test)(void *ctx), void *ctx, int line);
#define ELECTOR_AWAIT(f, test) elector_fixture_await((f)->api, test, (f), __LINE__)

enum hf_leader_state elector_fixture_state(struct elector_fixture *f);
bool elector_fixture_leads(void *ctx); /* and its worker runs */
bool elector_fixture_leads_again(void *ctx);
bool elector_fixture_follows(void *ctx);
bool elector_fixture_knows_holder(void *ctx);
bool elector_fixture_drains(void *ctx);
bool elector_fixture_is_stuck(void *ctx);
bool elector_fixture_has_written(void *ctx);
bool elector_fixture_has_ended(void *ctx); /* its worker does not run */
bool elector_fixture_was_run_thrice(void *ctx);
bool elector_fixture_runs_local(void *ctx);
bool elector_fixture_may_end(void *ctx);

/*
 * Asserts that every fenced commit came from the Lease's holder of that moment, and returns how
 * many there are. The server refuses all others: this shows that fences were sent at all.
 */
size_t elector_fixture_check_commits(struct fake_api *api);

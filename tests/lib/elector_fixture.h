/* SPDX-License-Identifier: Apache-2.0 */
#pragma once
/*
 * One participant of an election: an hf_electors with one elector and two controllers, with its own
 * client of a fake API server. Several participants with one server hold an election in real time,
 * with short timings.
 *
 * Tests wait for events (a commit, a change of state, something that a controller recorded) with a
 * time limit far above what they take. They assert order, never duration.
 *
 * The controller "worker" is HF_LEADER_ONLY. It does what enum elector_fixture_work says, and
 * counts terms that overlap (there must be none). The controller "local" is HF_EVERY_INSTANCE; it
 * counts the times when it ended before the worker (there must be none).
 *
 * Thread: any. api->mu guards the members marked so; api->changed is signalled after each change of
 * them.
 */
#include <stdbool.h>
#include <stddef.h>

#include <holdfast/leader.h>

#include "fake_api_client.h"

#define ELECTOR_FIXTURE_KEY      "leases/kube-system/lead"
#define ELECTOR_FIXTURE_PATIENCE (20 * HF_NSEC_PER_SEC)

enum elector_fixture_work {
        ELECTOR_WRITES,            /* until the drain */
        ELECTOR_WRITES_AT_DRAIN,   /* at the drain, waits for may_end and a renewal, writes once */
        ELECTOR_IGNORES_TOKENS,    /* runs until may_end is set */
        ELECTOR_WRITES_AFTER_LOSS, /* writes once after the term was aborted */
        ELECTOR_FAILS_TWICE,       /* fails its first two runs; the third waits for the drain */
};

struct elector_fixture {
        struct fake_api *api;
        struct fake_api_client *client;
        struct hf_electors *electors;
        struct hf_elector *elector;
        const char *identity;
        /* guarded by api->mu */
        enum elector_fixture_work work;
        bool may_end;                      /* see enum elector_fixture_work */
        int n_running, n_started, n_ended; /* runs of the worker */
        int n_overlaps;                    /* runs that began before the previous run ended */
        int n_failures;
        int n_local_running, n_local_ended_early; /* early: before the worker */
        int n_written, n_unfenced, last_error;    /* the worker's writes */
};

/* The default configuration of the elector, which a test may change. */
struct hf_elector_config elector_fixture_config(struct elector_fixture *f,
                                                const struct hf_controller *controllers, size_t n);
/*
 * Creates a participant and does not start it. unfenced: the elector accepts a server without
 * fences, and the server has none.
 */
struct elector_fixture *elector_fixture_new(struct fake_api *api, const char *identity,
                                            enum elector_fixture_work work, bool unfenced);
struct elector_fixture *elector_fixture_start(struct fake_api *api, const char *identity,
                                              enum elector_fixture_work work);
/* Starts a participant that migrates from the Lease "lead-old". It has only the worker. */
struct elector_fixture *elector_fixture_start_migrating(struct fake_api *api, const char *identity);
/* Stops the electors, and asserts that all work ended in order. */
void elector_fixture_stop(struct elector_fixture *f);
/* After elector_fixture_stop, or without a start; before its server is freed. */
void elector_fixture_free(struct elector_fixture *f);

/* The run function of the worker, for tests with their own configuration. ctx is the fixture. */
int elector_fixture_run_worker(struct hf_term *term, void *ctx);

void elector_fixture_lock(struct elector_fixture *f);
void elector_fixture_unlock(struct elector_fixture *f); /* also signals api->changed */

/* ---- what to wait for ---- */

/*
 * Waits until test(ctx) is true; it is called with api->mu held. After ELECTOR_FIXTURE_PATIENCE the
 * test fails with the line number.
 */
void elector_fixture_await(struct fake_api *api, bool (*test)(void *ctx), void *ctx, int line);
#define ELECTOR_AWAIT(f, test) elector_fixture_await((f)->api, test, (f), __LINE__)

enum hf_leader_state elector_fixture_state(struct elector_fixture *f);
bool elector_fixture_leads(void *ctx); /* the state is HF_LEADING and the worker runs */
bool elector_fixture_leads_again(void *ctx);
bool elector_fixture_follows(void *ctx);
bool elector_fixture_knows_holder(void *ctx);
bool elector_fixture_drains(void *ctx);
bool elector_fixture_is_stuck(void *ctx);
bool elector_fixture_has_written(void *ctx);
bool elector_fixture_has_ended(void *ctx); /* the worker does not run now */
bool elector_fixture_was_run_thrice(void *ctx);
bool elector_fixture_runs_local(void *ctx);
bool elector_fixture_may_end(void *ctx);

/*
 * Asserts that every fenced commit came from the identity that held the Lease at that moment.
 * Returns the number of fenced commits, so that a test can check that fences were sent at all.
 */
size_t elector_fixture_check_commits(struct fake_api *api);

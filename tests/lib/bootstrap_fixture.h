/* SPDX-License-Identifier: Apache-2.0 */
#pragma once
/*
 * An instance that runs the bootstrap of two phases over the fake API server: electors, hooks,
 * health and metrics, and a client that can fail. Each phase has one manifest, the ConfigMap a or b
 * in the namespace default. Asserts instead of handling errors. Thread: that of the test; the
 * library counts points and calls the client on its own threads.
 */
#include <pthread.h>
#include <stdatomic.h>
#include <stddef.h>
#include <stdint.h>

#include <holdfast/bootstrap.h>

#include "fake_api_client.h"

/* How the client treats writes of ConfigMaps. */
enum bootstrap_fault {
        BOOTSTRAP_FAULT_NONE,
        BOOTSTRAP_FAULT_REPLY_LOST,   /* one write is done, and its outcome is unknown */
        BOOTSTRAP_FAULT_NOT_SENT,     /* one write is not sent */
        BOOTSTRAP_FAULT_REFUSED,      /* every write is refused */
        BOOTSTRAP_FAULT_NO_NAMESPACE, /* the ledger cannot be created */
        BOOTSTRAP_FAULT_CONFLICT,     /* the first writes of the ledger meet a conflict */
};

/*
 * The client of the elector: requests for Leases are forwarded, other writes meet the fault. It
 * handles dry runs itself, because the fake server has none.
 */
struct faulty_client {
        struct hf_client base; /* first */
        struct fake_api_client *inner;
        enum bootstrap_fault fault;
        /* REPLY_LOST, NOT_SENT: writes before the one that meets the fault; < 0: none does.
         * CONFLICT: how many writes of the ledger meet a conflict. */
        atomic_int countdown;
        atomic_bool hit; /* REPLY_LOST, NOT_SENT: a write has met the fault */
};

struct bootstrap_fixture {
        struct fake_api *api;
        struct hf_host host;
        struct faulty_client client;
        struct hf_bootstrap *bootstrap;
        struct hf_electors *electors;
        struct hf_elector *elector;
        struct hf_hooks *hooks;
        pthread_mutex_t mu;
        pthread_cond_t changed;
        unsigned points[HF_BOOTSTRAP_GAVE_WAY + 1]; /* guarded by mu: how often each was reached */
};

/* A new instance. countdown: see struct faulty_client. patience: of the hooks; 0 = no limit.
 * give_way_after: see struct hf_bootstrap_config. */
struct bootstrap_fixture *bootstrap_fixture_new(enum bootstrap_fault fault, int countdown,
                                                hf_nsec patience, hf_nsec give_way_after);
/* Adds an elector that runs the bootstrap. */
void bootstrap_fixture_add_elector(struct bootstrap_fixture *f);
/* Adds the elector, its hooks and the bootstrap's hooks. */
void bootstrap_fixture_install(struct bootstrap_fixture *f);
/* Shuts the instance down and frees it. Asserts that all its health checks are removed. */
void bootstrap_fixture_free(struct bootstrap_fixture *f);

/* Waits until the bootstrap has reached the point n times. */
void bootstrap_fixture_await(struct bootstrap_fixture *f, enum hf_bootstrap_point point,
                             unsigned n);
/* How often the key was written; deletions do not count. */
unsigned bootstrap_fixture_n_commits(struct bootstrap_fixture *f, const char *key);
/* Asserts that every write of a ConfigMap had the leader's fence. */
void bootstrap_fixture_assert_fenced(struct bootstrap_fixture *f);
/* What the thread whose write met a conflict did with the ledger: W for a write, G for a get, p for
 * a pause. A copy in static storage. */
const char *bootstrap_fixture_calls(void);

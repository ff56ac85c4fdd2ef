/* SPDX-License-Identifier: Apache-2.0 */
#pragma once
/*
 * One bootstrap phase in a term, in the thread of the test, with a server that answers at once and
 * a clock that jumps to each deadline that the phase waits for. The phase is called "zero". It has
 * the steps ConfigMap/default/a and ConfigMap/default/b, until a test loads others.
 *
 * The functions of the term and of the elector are replaced (--wrap): tests/meson.build lists them
 * for each test that uses this fixture. Asserts instead of handling errors. Thread: that of the
 * test.
 */
#include <stdbool.h>
#include <stddef.h>

#include <holdfast/bootstrap.h>
#include <holdfast/client_port.h>
#include <holdfast/hooks.h>

#include "fake_store.h"
#include "time_units.h"

#define PHASE_FIXTURE_BEGIN  (1000 * SEC) /* the boot time at which a term begins */
#define PHASE_FIXTURE_LEDGER "configmaps/kube-system/holdfast-bootstrap"
#define PHASE_FIXTURE_MAX    512

/* What happens to a write of ConfigMaps, or to a read. */
enum phase_fault {
        PHASE_NO_FAULT,
        PHASE_UNSENT,  /* the client returns the error at once (writes only) */
        PHASE_REFUSED, /* with the error, and nothing is done */
        PHASE_LOST,    /* it is done, and the reply is the error */
        PHASE_GARBLED, /* it is done, and the reply is no JSON */
};

struct phase_fixture {
        struct hf_client client; /* first */
        struct hf_clock clock;
        struct hf_host host;
        struct fake_store store;
        struct hf_bootstrap *bootstrap;
        struct hf_cancel *drain, *abort;
        const char *acquired_at;
        hf_nsec now;
        unsigned n_started;
        bool any_order; /* of the steps that phase_fixture_load loads */

        /* the next writes (skip the first n_pass, then fault the next n_fault) */
        enum phase_fault fault;
        int error;
        unsigned n_pass, n_fault;
        unsigned retry_after_s;
        const char *message; /* of the error; NULL = "the test says: " and the error */
        bool faults_reads;   /* in place of writes */
        bool faults_all;     /* reads and writes */
        hf_nsec epoch;       /* added to the time of day */

        /* the drain fires before this request; 0 = never */
        unsigned drain_at_request;
        unsigned drain_at_check;     /* ... at the n-th check that the ledger still exists */
        const char *ledger_at_check; /* what a check finds; "" = nothing; NULL = the ledger */
        hf_nsec drain_at;            /* ... at the first report from this time on; 0 = never */
        int step_down_result;
        hf_nsec step_downs[PHASE_FIXTURE_MAX];
        unsigned n_step_downs;

        char requests[16384]; /* one line each */
        unsigned n_requests, n_checks;
        hf_nsec write_times[PHASE_FIXTURE_MAX]; /* of the writes of ConfigMaps */
        unsigned n_writes;
        char progress[16384]; /* one line for each call of on_progress */
        struct hf_bootstrap_info last_info;
        char log[32768];
        char reason[512]; /* of the failing health check when the phase last failed */
        char ready[512];  /* of the readiness check at the last report */
        char first_ready[512];
        struct hf_hooks *hooks;
};

/* ---- the requests of a phase, as phase_fixture.requests has them ---- */

#define FIRST_READ "GET configmaps/kube-system/holdfast-bootstrap?resourceVersion=7\n"
#define SAFE_READ  "GET configmaps/kube-system/holdfast-bootstrap\n"
#define CHECK      "GET configmaps/kube-system/holdfast-bootstrap?resourceVersion=0\n"
#define CREATE_STEP                                                                                \
        "CREATE configmaps/default/?fieldManager=holdfast-bootstrap&fieldValidation=Strict\n"
#define NEW_LEDGER "CREATE configmaps/kube-system/?fieldManager=holdfast-bootstrap\n"
#define OLD_LEDGER                                                                                 \
        "UPDATE configmaps/kube-system/holdfast-bootstrap?fieldManager=holdfast-bootstrap\n"
#define READ(name) "GET configmaps/default/" name "\n"
#define REPLACE(name)                                                                              \
        "UPDATE configmaps/default/" name                                                          \
        "?fieldManager=holdfast-bootstrap&fieldValidation=Strict\n"
#define DRY_RUN(name)                                                                              \
        "UPDATE configmaps/default/" name                                                          \
        "?fieldManager=holdfast-bootstrap&fieldValidation=Strict&dryRun=All\n"

#define PHASE_FIXTURE_CONFIGMAP(name, value)                                                       \
        "{\"apiVersion\":\"v1\",\"kind\":\"ConfigMap\",\"metadata\":{\"name\":\"" name             \
        "\",\"namespace\":\"default\"},\"data\":{\"k\":\"" value "\"}}"

/* Begins with an empty store, and version 1.0.0 of the two steps. */
struct phase_fixture *phase_fixture_new(void);
void phase_fixture_free(struct phase_fixture *f);
/* Replaces the bootstrap by one of this version with the manifests a and b. b NULL = only a. */
void phase_fixture_load(struct phase_fixture *f, const char *version, const char *a, const char *b);
/* Runs the phase in a new term until the term is drained. Resets the counts and records of the
 * fixture first. Returns the phase's result. */
int phase_fixture_lead(struct phase_fixture *f);
/* The phase may give way from now on: it releases the Lease of this elector. */
void phase_fixture_set_elector(struct phase_fixture *f);
/* Passes n_pass writes of ConfigMaps (or reads: faults_reads, faults_all), then lets n_fault
 * fail. */
void phase_fixture_fail(struct phase_fixture *f, enum phase_fault fault, int error, unsigned n_pass,
                        unsigned n_fault);

bool phase_fixture_is_settled(struct phase_fixture *f);
/* The text of an object, which must exist. */
const char *phase_fixture_text(struct phase_fixture *f, const char *key);
unsigned phase_fixture_n_commits(const struct phase_fixture *f, const char *key);
/* Records the report in progress, last_info, reason and ready. A test that replaces on_progress
 * calls it. ctx is the fixture. */
void phase_fixture_on_progress(void *ctx, enum hf_bootstrap_point point,
                               const struct hf_bootstrap_info *info);

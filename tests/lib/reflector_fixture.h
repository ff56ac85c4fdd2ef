/* SPDX-License-Identifier: Apache-2.0 */
#pragma once
/*
 * A reflector on a clock that the test moves. The test itself responds to each request. After each
 * step of the test the fixture waits until the reflector sleeps, and checks until when it sleeps.
 * The reflector continues only at the next step. Asserts instead of handling errors. Thread: that
 * of the test.
 */
#include <pthread.h>
#include <stdatomic.h>
#include <stdbool.h>
#include <stdint.h>

#include <holdfast/client_port.h>
#include <holdfast/informer.h>

#include "time_units.h"

#define REFLECTOR_NEVER (-1) /* it sleeps until it is woken */

struct reflector_fixture {
        struct hf_client client; /* first */
        struct hf_clock clock;
        struct hf_host host;
        struct hf_informer *informer;
        _Atomic hf_nsec now;

        pthread_mutex_t mu;
        pthread_cond_t changed;
        /* guarded by mu */
        unsigned n_sleeps; /* how often the reflector has begun to sleep */
        bool sleeps;
        hf_nsec until;
        char last[256]; /* the last request, "" = none since it was looked at */
        unsigned n_requests;
        hf_response_fn list_done;
        void *list_ctx;
        hf_event_fn on_event;
        hf_watch_end_fn on_end;
        void *watch_ctx;
        bool watch_canceled, list_canceled;
        /* not guarded: the test uses these only while the reflector sleeps, or before it starts */
        bool refuses; /* the client starts nothing */
        char log[8192];
        char events[4096]; /* of a handler */
};

#define REFLECTOR_LIST(version, items)                                                             \
        "{\"kind\":\"List\",\"metadata\":{\"resourceVersion\":\"" version "\"},\"items\":[" items  \
        "]}"
#define REFLECTOR_THING(name, version, value)                                                      \
        "{\"metadata\":{\"name\":\"" name "\",\"resourceVersion\":\"" version "\"},\"v\":\"" value \
        "\"}"

struct reflector_fixture *reflector_fixture_new(bool one_revision, hf_nsec resync);
/* A fixture that has got its list, with one object, and watches. */
struct reflector_fixture *reflector_fixture_new_watching(bool one_revision);
void reflector_fixture_free(struct reflector_fixture *f);

unsigned reflector_fixture_n_sleeps(struct reflector_fixture *f);
/* Waits until the reflector sleeps again. Asserts that it has sent `request` (NULL = none) and
 * sleeps for that many milliseconds. n_sleeps: reflector_fixture_n_sleeps before it was woken. */
void reflector_fixture_assert_step(struct reflector_fixture *f, unsigned n_sleeps,
                                   const char *request, hf_nsec milliseconds);
/* Responds to the list that is open, if there is one. */
void reflector_fixture_respond(struct reflector_fixture *f, int error, uint32_t retry_after_s,
                               const char *body);

/* One step each: gives the reflector the response, the end of its watch or an event. Asserts that
 * it then sends `request` and sleeps for that many milliseconds. */
void reflector_fixture_list(struct reflector_fixture *f, int error, uint32_t retry_after_s,
                            const char *body, const char *request, hf_nsec milliseconds);
void reflector_fixture_watch_end(struct reflector_fixture *f, int error, const char *message,
                                 const char *request, hf_nsec milliseconds);
void reflector_fixture_event(struct reflector_fixture *f, enum hf_event_type type,
                             const char *object, const char *version, const char *request,
                             hf_nsec milliseconds);
/* The same: moves the clock to the end of the sleep. */
void reflector_fixture_time(struct reflector_fixture *f, const char *request, hf_nsec milliseconds);
/* Moves the clock, and wakes nobody. */
void reflector_fixture_pass(struct reflector_fixture *f, hf_nsec time);

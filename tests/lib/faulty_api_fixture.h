/* SPDX-License-Identifier: Apache-2.0 */
#pragma once
/*
 * The API core over a faulty store (faulty_store.h), with its loopback client. Through
 * f->store.inner (store_client.h) a test bypasses the API and accesses the store itself.
 */
#include <setjmp.h>
#include <stdarg.h>
#include <stdatomic.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include "api_resources.h"
#include "client_watch.h"
#include "faulty_store.h"
#include "server/cacher/cacher.h"
#include "server/registry/registry.h"

struct faulty_api_fixture {
        struct hf_host host;
        struct faulty_store store;
        struct hfd_cacher *cacher;
        struct hfd_registry *registry;
        struct hf_client *client;
        struct hf_cancel *token; /* ends the waits for requests after a minute */
        atomic_int n_replaced;   /* how often the cacher reported a replaced history */
};

/* cmocka's set-up and tear-down; the state is the fixture. */
int faulty_api_fixture_set_up(void **state);
int faulty_api_fixture_tear_down(void **state);
#define FAULTY_API_TEST(name)                                                                      \
        cmocka_unit_test_setup_teardown(name, faulty_api_fixture_set_up,                           \
                                        faulty_api_fixture_tear_down)

/* A request for a workspace. Returns the error of the response. ret_status may be NULL. */
int faulty_api_fixture_request(struct faulty_api_fixture *f, enum hf_verb verb, const char *name,
                               const char *body, struct hf_status *ret_status);
/* Creates a workspace of this name, which must succeed. */
void faulty_api_fixture_create(struct faulty_api_fixture *f, const char *name);
struct client_watch *faulty_api_fixture_watch(struct faulty_api_fixture *f);
/* Lets the server end its watches, and waits for the end of this one, which must have at least n
 * events by then. Returns its error. */
int faulty_api_fixture_end_watch(struct faulty_api_fixture *f, struct client_watch *watch,
                                 size_t n);
/* Writes to the inner store directly. */
void faulty_api_fixture_put(struct faulty_api_fixture *f, const char *key, const char *text);

/* SPDX-License-Identifier: Apache-2.0 */
#pragma once
/*
 * The API core over the memory store, with its loopback client. The fixture's functions send a
 * request and wait for the response, which stays in `last` until the next request.
 *
 * Thread: the fixture's functions are for one thread. Other threads use `client`.
 */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include "api_resources.h"
#include "api_response.h"
#include "server/cacher/cacher.h"
#include "server/registry/base/request.h"
#include "server/registry/registry.h"

struct api_fixture {
        struct hf_host host;
        struct hfd_store *store;
        struct hfd_custom_table *table; /* NULL = no custom resources */
        struct hfd_kind_feed *feed;     /* the same */
        struct hfd_cacher *cacher;
        struct hfd_registry *registry;
        struct hf_client *client;
        struct api_response last;
};

/* cmocka's set-up and tear-down; the state is the fixture. */
int api_fixture_set_up(void **state);
int api_fixture_set_up_by_hand(void **state); /* with a clock that the test moves (hand_clock.h) */
int api_fixture_set_up_custom(void **state);  /* it follows CustomResourceDefinitions */
int api_fixture_set_up_custom_by_hand(void **state);
int api_fixture_tear_down(void **state);
#define API_TEST(name)                                                                             \
        cmocka_unit_test_setup_teardown(name, api_fixture_set_up, api_fixture_tear_down)

/* ---- requests ----
 * The functions that return an int return the error of the response. */

int api_fixture_request(struct api_fixture *f, enum hf_verb verb, struct hf_resource resource,
                        const char *ns, const char *name, const char *query, const char *body);
int api_fixture_request_fenced(struct api_fixture *f, enum hf_verb verb,
                               struct hf_resource resource, const char *ns, const char *name,
                               const char *query, const char *body, const struct hf_fence *fence);
/* Updates a subresource of a cluster-scoped object; with body NULL, gets it instead. */
int api_fixture_request_subresource(struct api_fixture *f, struct hf_resource resource,
                                    const char *name, const char *subresource, const char *body);
int api_fixture_patch(struct api_fixture *f, struct hf_resource resource, const char *ns,
                      const char *name, enum hfd_subresource subresource, enum hfd_patch type,
                      const char *query, const char *body);
/* Creates an object, and asserts that the response is 201. */
void api_fixture_make(struct api_fixture *f, struct hf_resource resource, const char *ns,
                      const char *body);
int api_fixture_get(struct api_fixture *f, struct hf_resource resource, const char *ns,
                    const char *name);
/* options: the body; NULL = none. */
int api_fixture_delete(struct api_fixture *f, struct hf_resource resource, const char *ns,
                       const char *name, const char *options);
/* Sends any other request. */
int api_fixture_send(struct api_fixture *f, const struct hf_request *request);
/* Makes *response, which the test got in another way, the last response. Takes its content, and
 * deinitializes it. Returns its error. */
int api_fixture_set_last(struct api_fixture *f, struct api_response *response);

/* Creates w00, w01, ... with the labels parity (even or odd) and a.b/n (the number). */
void api_fixture_make_workspaces(struct api_fixture *f, int n);
size_t api_fixture_n_selected(struct api_fixture *f,
                              const char *query); /* selects among the workspaces */

/* ---- the last response ---- */

/* The string at this path in the body, cut after 599 bytes, or "". Returns one of four static
 * buffers in rotation. */
const char *api_fixture_text_at(const struct api_fixture *f, const char *path);
size_t api_fixture_count_at(const struct api_fixture *f, const char *path);
/* Asserts that the body is a Status of a failure, with this code, reason and message. */
void api_fixture_expect_failure(const struct api_fixture *f, int code, const char *reason,
                                const char *message);

/* SPDX-License-Identifier: Apache-2.0 */
#pragma once
/*
 * The API's core over the memory store, with its loopback client, and requests that wait for their
 * response. The response of the last request stays in `last` until the next one. Requests through
 * the fixture are made by one thread; others use the client.
 */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include "api_resources.h"
#include "api_response.h"
#include "server/cacher/cacher.h"
#include "server/registry/registry.h"
#include "server/registry/request.h"

struct api_fixture {
        struct hf_host host;
        struct hfd_store *store;
        struct hfd_cacher *cacher;
        struct hfd_registry *registry;
        struct hf_client *client;
        struct api_response last;
};

/* cmocka's set-up and tear-down; the state is the fixture. */
int api_fixture_set_up(void **state);
int api_fixture_tear_down(void **state);
#define API_TEST(name)                                                                             \
        cmocka_unit_test_setup_teardown(name, api_fixture_set_up, api_fixture_tear_down)

/* ---- requests: return the error of the response ---- */

int api_fixture_call(struct api_fixture *f, enum hf_verb verb, struct hf_resource resource,
                     const char *ns, const char *name, const char *query, const char *body);
int api_fixture_call_fenced(struct api_fixture *f, enum hf_verb verb, struct hf_resource resource,
                            const char *ns, const char *name, const char *query, const char *body,
                            const struct hf_fence *fence);
/* Updates a subresource of a cluster-scoped object; without a body gets it. */
int api_fixture_call_subresource(struct api_fixture *f, struct hf_resource resource,
                                 const char *name, const char *subresource, const char *body);
int api_fixture_patch(struct api_fixture *f, struct hf_resource resource, const char *ns,
                      const char *name, enum hfd_subresource subresource, enum hfd_patch type,
                      const char *query, const char *body);
/* Any other one. */
int api_fixture_run(struct api_fixture *f, const struct hf_request *request);
/* One that was made elsewhere becomes the last response, which owns it. */
int api_fixture_take(struct api_fixture *f, struct api_response *response);

void api_fixture_make_workspaces(struct api_fixture *f, int n); /* w00 odd and even, labeled */
size_t api_fixture_n_selected(struct api_fixture *f, const char *query); /* of the workspaces */

/* ---- the last response ---- */

/* A string in its body, "" = none; one of four static buffers in turn. */
const char *api_fixture_text_at(const struct api_fixture *f, const char *path);
size_t api_fixture_count_at(const struct api_fixture *f, const char *path);
/* Asserts that it is a Status of this kind. */
void api_fixture_expect_failure(const struct api_fixture *f, int code, const char *reason,
                                const char *message);

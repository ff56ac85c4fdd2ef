/* SPDX-License-Identifier: Apache-2.0 */
#pragma once
/* A create of serviceaccounts/NAME/token: issues a token. Nothing is stored. */
#include <stdint.h>

#include <holdfast/clock.h>

#include "server/resources/response.h"

struct hfd_registry;
struct hfd_service_accounts;

struct hfd_token_request {
        struct hfd_registry *registry;         /* borrowed */
        struct hfd_service_accounts *accounts; /* borrowed; NULL: the response is a 500 */
        const char *ns, *account;              /* of the path; copied */
        hf_nsec deadline;                      /* boot time */
        uint64_t owner;                        /* for turns in the pool; hfd_work_owner */
        /* Called once, perhaps before serve returns, on any thread. The response is borrowed. */
        void (*done)(void *ctx, const struct hfd_response *response);
        void *ctx;
};

/* body: JSON; it is not used after the call. Thread: any. Never blocks: the account and the Secret
 * are read as by a get, so a token can be had as soon as the account was created. */
void hfd_token_request_serve(const struct hfd_token_request *request, const void *body,
                             size_t n_body);

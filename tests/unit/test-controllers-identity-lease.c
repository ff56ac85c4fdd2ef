/* SPDX-License-Identifier: Apache-2.0 */
/* What becomes of the identity Lease at the end of the controller. */
#undef NDEBUG
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include <holdfast/error.h>

#include "server/controllers/context/controller_context.h"
#include "server/controllers/instances/identity.h"
#include "server/controllers/instances/identity_lease.h"
#include "server/controllers/instances/peers.h"

static const struct hf_host host = {.size = sizeof host};
static struct hf_cancel *abort_token, *drain_token;
static int create_result;             /* of each create; the controller drains after it */
static unsigned n_creates, n_deletes; /* requests */

/* ---- the linker redirects these functions ---- */

const struct hf_host *__wrap_hf_term_host(struct hf_term *term);
const struct hf_host *__wrap_hf_term_host(struct hf_term *term) { return &host; }

struct hf_client *__wrap_hf_term_ungated_client(struct hf_term *term);
struct hf_client *__wrap_hf_term_ungated_client(struct hf_term *term) {
        return NULL;
}

struct hf_cancel *__wrap_hf_term_abort(struct hf_term *term);
struct hf_cancel *__wrap_hf_term_abort(struct hf_term *term) {
        return abort_token;
}

struct hf_cancel *__wrap_hf_term_drain(struct hf_term *term);
struct hf_cancel *__wrap_hf_term_drain(struct hf_term *term) {
        return drain_token;
}

void __wrap_hfd_peers_own_ca(struct hfd_peers *peers, char ca[HFD_PEERS_CA_MAX]);
void __wrap_hfd_peers_own_ca(struct hfd_peers *peers, char ca[HFD_PEERS_CA_MAX]) { ca[0] = '\0'; }

int __wrap_hf_client_do(struct hf_client *client, const struct hf_request *request,
                        struct hf_cancel *token, char **ret_body, size_t *ret_n,
                        struct hf_status *reterr_status);
int __wrap_hf_client_do(struct hf_client *client, const struct hf_request *request,
                        struct hf_cancel *token, char **ret_body, size_t *ret_n,
                        struct hf_status *reterr_status) {
        if (request->verb == HF_VERB_DELETE) {
                assert_string_equal(request->name, "mine");
                n_deletes++;
                return 0;
        }
        assert_int_equal(request->verb, HF_VERB_CREATE);
        n_creates++;
        hf_cancel_fire(drain_token, HF_CANCEL_STOPPING);
        return create_result;
}

/* ---- tests ---- */

/* Runs the controller for one attempt. */
static void run_controller(bool aborted) {
        static const struct hfd_identity identity = {.identity = "me", .lease_name = "mine"};
        struct hfd_controller_context context = {.host = &host, .identity = &identity};

        n_creates = n_deletes = 0;
        assert_int_equal(hf_cancel_new(NULL, hf_clock_system(), &abort_token), 0);
        assert_int_equal(hf_cancel_new(NULL, hf_clock_system(), &drain_token), 0);
        assert_int_equal(hf_cancel_new(NULL, hf_clock_system(), &context.stopping), 0);
        assert_int_equal(hf_cancel_new(NULL, hf_clock_system(), &context.identity_deleted), 0);
        if (aborted)
                hf_cancel_fire(abort_token, HF_CANCEL_STOPPING);
        assert_int_equal(hfd_identity_lease_run(NULL, &context), 0);
        assert_true(hf_cancel_fired(context.identity_deleted));
        hf_cancel_unref(context.identity_deleted);
        hf_cancel_unref(context.stopping);
        hf_cancel_unref(drain_token);
        hf_cancel_unref(abort_token);
}

/* The server may have created the Lease, although the controller has no response. */
static void test_a_lease_that_may_exist_is_deleted(void **state) {
        create_result = HF_E_TIMEOUT;
        run_controller(false);
        assert_int_equal(n_creates, 1);
        assert_int_equal(n_deletes, 1);
}

static void test_an_aborted_term_sends_no_delete(void **state) {
        create_result = HF_E_CANCELED;
        run_controller(true);
        assert_int_equal(n_creates, 1);
        assert_int_equal(n_deletes, 0);
}

int main(void) {
        const struct CMUnitTest tests[] = {
                cmocka_unit_test(test_a_lease_that_may_exist_is_deleted),
                cmocka_unit_test(test_an_aborted_term_sends_no_delete),
        };

        return cmocka_run_group_tests(tests, NULL, NULL);
}

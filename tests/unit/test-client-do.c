/* SPDX-License-Identifier: Apache-2.0 */
/* hf_client_do: a request that blocks. */
#undef NDEBUG
#include <errno.h>
#include <pthread.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#include <holdfast/client.h>

#include "fake_api_client.h"

static const struct hf_request list = {.size = sizeof list,
                                       .verb = HF_VERB_LIST,
                                       .resource = {.group = "",
                                                    .version = "v1",
                                                    .plural = "things"}};

static void test_a_response_is_returned(void **state) {
        struct fake_api *api = fake_api_new();
        struct fake_api_client *fake = fake_api_client_new(api);
        struct hf_client *client = &fake->base;
        struct hf_status status = {0};
        char *body = NULL;
        size_t n = 0;

        fake_api_put_thing(api, "a", "one", "1");
        assert_int_equal(hf_client_do(client, &list, hf_cancel_never(), &body, &n, &status), 0);
        assert_int_equal(strlen(body), n);
        assert_non_null(strstr(body, "\"one\""));
        free(body);
        assert_int_equal(hf_client_do(client, &list, hf_cancel_never(), NULL, NULL, NULL), 0);
        fake_api_client_refuse(fake, HF_E_FORBIDDEN, 1);
        body = NULL;
        assert_int_equal(hf_client_do(client, &list, hf_cancel_never(), &body, &n, &status),
                         HF_E_FORBIDDEN);
        assert_null(body);
        assert_int_equal(status.error, HF_E_FORBIDDEN);
        hf_client_free(client);
        fake_api_free(api);
}

static void test_misuse_is_refused(void **state) {
        struct fake_api *api = fake_api_new();
        struct hf_client *client = &fake_api_client_new(api)->base;
        struct hf_request request = list;

        request.verb = HF_VERB_GET; /* without a name */
        assert_int_equal(hf_client_do(client, &request, hf_cancel_never(), NULL, NULL, NULL),
                         -EINVAL);
        request.verb = HF_VERB_CREATE; /* without an object */
        assert_int_equal(hf_client_do(client, &request, hf_cancel_never(), NULL, NULL, NULL),
                         -EINVAL);
        assert_int_equal(hf_client_do(client, &list, NULL, NULL, NULL, NULL), -EINVAL);
        assert_null(hf_client_free(NULL));
        hf_client_free(client);
        fake_api_free(api);
}

static void *fire(void *ctx) {
        hf_cancel_fire(ctx, HF_CANCEL_LOST);
        return NULL;
}

static void test_a_token_ends_the_wait(void **state) {
        struct fake_api *api = fake_api_new();
        struct fake_api_client *fake = fake_api_client_new(api);
        struct hf_client *client = &fake->base;
        struct hf_status status = {0};

        fake_api_client_hold_requests(fake, true);
        /* the late response and the return of the caller race in every order */
        for (int i = 0; i < 50; i++) {
                struct hf_cancel *token = NULL;
                pthread_t thread;
                assert_int_equal(hf_cancel_new(NULL, hf_clock_system(), &token), 0);
                assert_int_equal(pthread_create(&thread, NULL, fire, token), 0);
                assert_int_equal(hf_client_do(client, &list, token, NULL, NULL, &status),
                                 HF_E_CANCELED);
                assert_int_equal(status.error, HF_E_CANCELED);
                pthread_join(thread, NULL);
                unsigned n = fake_api_n_lists(api);
                assert_int_equal(hf_client_do(client, &list, token, NULL, NULL, NULL),
                                 HF_E_CANCELED);
                assert_int_equal(fake_api_n_lists(api), n); /* nothing is sent after it has fired */
                hf_cancel_unref(token);
        }
        struct hf_cancel *token = NULL;
        assert_int_equal(hf_cancel_new(NULL, hf_clock_system(), &token), 0);
        hf_cancel_set_deadline(token, hf_now(hf_clock_system()) + HF_NSEC_PER_MSEC);
        assert_int_equal(hf_client_do(client, &list, token, NULL, NULL, NULL), HF_E_CANCELED);
        hf_cancel_unref(token);
        hf_client_free(client);
        fake_api_free(api);
}

int main(void) {
        const struct CMUnitTest tests[] = {
                cmocka_unit_test(test_a_response_is_returned),
                cmocka_unit_test(test_misuse_is_refused),
                cmocka_unit_test(test_a_token_ends_the_wait),
        };
        return cmocka_run_group_tests(tests, NULL, NULL);
}

/* SPDX-License-Identifier: Apache-2.0 */
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

#include "api-fake.c"

static const struct hf_host host = {.size = sizeof host};
static const struct hf_request list = {.verb = HF_VERB_LIST,
                                       .resource = {.group = "",
                                                    .version = "v1",
                                                    .plural = "things"}};

static void test_an_answer_comes_back(void **state) {
        struct api_fake *fake = api_fake_new(&host);
        struct hf_client *client = api_fake_client(fake);
        struct hf_status status = {0};
        char *body = NULL;
        size_t n = 0;

        api_fake_put(fake, "a", "one", "1");
        assert_int_equal(hf_client_do(client, &list, hf_cancel_never(), &body, &n, &status), 0);
        assert_int_equal(strlen(body), n);
        assert_non_null(strstr(body, "\"one\""));
        free(body);
        assert_int_equal(hf_client_do(client, &list, hf_cancel_never(), NULL, NULL, NULL), 0);
        api_fake_fail_lists(fake, 1, HF_E_FORBIDDEN);
        body = NULL;
        assert_int_equal(hf_client_do(client, &list, hf_cancel_never(), &body, &n, &status),
                         HF_E_FORBIDDEN);
        assert_null(body);
        assert_int_equal(status.error, HF_E_FORBIDDEN);
        hf_client_free(client);
}

static void test_misuse_is_refused(void **state) {
        struct hf_client *client = api_fake_client(api_fake_new(&host));
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
}

static void *fire(void *ctx) {
        hf_cancel_fire(ctx, HF_CANCEL_LOST);
        return NULL;
}

static void test_a_token_ends_the_wait(void **state) {
        struct api_fake *fake = api_fake_new(&host);
        struct hf_client *client = api_fake_client(fake);
        struct hf_status status = {0};

        api_fake_hold_calls(fake, true);
        for (int i = 0; i < 50;
             i++) { /* the late answer and the leaving caller meet in all orders */
                struct hf_cancel *token = NULL;
                pthread_t thread;
                assert_int_equal(hf_cancel_new(NULL, hf_clock_system(), &token), 0);
                assert_int_equal(pthread_create(&thread, NULL, fire, token), 0);
                assert_int_equal(hf_client_do(client, &list, token, NULL, NULL, &status),
                                 HF_E_CANCELED);
                assert_int_equal(status.error, HF_E_CANCELED);
                pthread_join(thread, NULL);
                unsigned n = api_fake_n_lists(fake);
                assert_int_equal(hf_client_do(client, &list, token, NULL, NULL, NULL),
                                 HF_E_CANCELED);
                assert_int_equal(api_fake_n_lists(fake), n); /* nothing is sent once it has fired */
                hf_cancel_unref(token);
        }
        struct hf_cancel *token = NULL;
        assert_int_equal(hf_cancel_new(NULL, hf_clock_system(), &token), 0);
        hf_cancel_set_deadline(token, hf_now(hf_clock_system()) + HF_NSEC_PER_MSEC);
        assert_int_equal(hf_client_do(client, &list, token, NULL, NULL, NULL), HF_E_CANCELED);
        hf_cancel_unref(token);
        hf_client_free(client);
}

int main(void) {
        const struct CMUnitTest tests[] = {
                cmocka_unit_test(test_an_answer_comes_back),
                cmocka_unit_test(test_misuse_is_refused),
                cmocka_unit_test(test_a_token_ends_the_wait),
        };
        return cmocka_run_group_tests(tests, NULL, NULL);
}

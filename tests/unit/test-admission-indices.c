/* SPDX-License-Identifier: Apache-2.0 */
/* The indices of webhooks and policies: a new one shares with the old one what has not changed, and
 * is made without comparing each with each. */
#undef NDEBUG
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <string.h>

#include <cmocka.h>

#include "base/strbuf.h"
#include "faulty_api_fixture.h"
#include "server/admission/policy/policy_index.h"
#include "server/admission/webhooks/webhook.h"

/* Comparisons of texts by this thread. */
static _Thread_local size_t n_compared;

int __real_strcmp(const char *a, const char *b);
int __wrap_strcmp(const char *a, const char *b);
int __wrap_strcmp(const char *a, const char *b) {
        n_compared++;
        return __real_strcmp(a, b);
}

static struct hfd_webhook_index *webhooks_of(struct faulty_api_fixture *f,
                                             const struct hfd_webhook_index *old) {
        struct hfd_webhook_index *index = NULL;

        assert_int_equal(faulty_api_fixture_request(f, HF_VERB_LIST, NULL, NULL, NULL), 0);
        n_compared = 0;
        assert_int_equal(hfd_webhook_index_new(f->cacher, "validatingwebhookconfigurations", NULL,
                                               old, &index),
                         0);
        return index;
}

#define N_MANY 1000

/* Puts a configuration with many webhooks into the store. */
static void put_many(struct faulty_api_fixture *f) {
        struct hf__strbuf text = {0};

        hf__strbuf_puts(&text, "{\"metadata\":{\"name\":\"many\"},\"webhooks\":[");
        for (int i = 0; i < N_MANY; i++)
                hf__strbuf_printf(&text,
                                  "%s{\"name\":\"w%d.example.com\",\"clientConfig\":{\"url\":"
                                  "\"https://127.0.0.1:1/\"}}",
                                  i > 0 ? "," : "", i);
        hf__strbuf_puts(&text, "]}");
        assert_int_equal(text.error, 0);
        faulty_api_fixture_put(f, "/registry/validatingwebhookconfigurations/many", text.data);
        hf__strbuf_done(&text);
}

/* Each changed webhook takes over the load of its predecessor, and looks for it among the others
 * only a few times, however many there are. */
static void test_the_loads_of_many_webhooks_are_found_fast(void **state) {
        struct faulty_api_fixture *f = *state;
        struct hfd_webhook_index *first, *second;
        size_t n_first;

        put_many(f);
        first = webhooks_of(f, NULL);
        n_first = n_compared;
        put_many(f);
        second = webhooks_of(f, first);
        assert_true(n_compared < n_first + (size_t)30 * N_MANY);
        assert_int_equal(second->n, N_MANY);
        for (size_t i = 0; i < N_MANY; i++) {
                assert_ptr_not_equal(second->items[i], first->items[i]);
                assert_ptr_equal(second->items[i]->load, first->items[i]->load);
        }
        hfd_webhook_index_unref(first);
        hfd_webhook_index_unref(second);
}

static struct hfd_policy_index *policies_of(struct faulty_api_fixture *f,
                                            const struct hfd_policy_index *old) {
        struct hfd_policy_index *index = NULL;

        assert_int_equal(faulty_api_fixture_request(f, HF_VERB_LIST, NULL, NULL, NULL), 0);
        n_compared = 0;
        assert_int_equal(hfd_policy_index_new(f->cacher, false, old, &index), 0);
        return index;
}

/* Policies and bindings that have not changed are found in the old index by their names, whether a
 * policy has a binding or not, and although the bindings are sorted by policy. */
static void test_policies_that_have_not_changed_are_shared(void **state) {
        enum { N = 200 };
        struct faulty_api_fixture *f = *state;
        struct hfd_policy_index *first, *second;
        char key[80], text[160];

        for (int i = 0; i < N; i++) {
                (void)snprintf(key, sizeof key, "/registry/validatingadmissionpolicies/p%d", i);
                (void)snprintf(text, sizeof text, "{\"metadata\":{\"name\":\"p%d\"},\"spec\":{}}",
                               i);
                faulty_api_fixture_put(f, key, text);
                (void)snprintf(key, sizeof key, "/registry/validatingadmissionpolicybindings/b%d",
                               i);
                (void)snprintf(text, sizeof text,
                               "{\"metadata\":{\"name\":\"b%d\"},\"spec\":{\"policyName\":"
                               "\"p%d\"}}",
                               i, (N - i) / 2 * 2);
                faulty_api_fixture_put(f, key, text);
        }
        first = policies_of(f, NULL);
        assert_int_equal(first->n_hooks + first->n_idle, N);
        assert_true(first->n_hooks > 1 && first->n_idle > 1);
        faulty_api_fixture_put(f, "/registry/validatingadmissionpolicies/p2",
                               "{\"metadata\":{\"name\":\"p2\"},\"spec\":{}}");
        second = policies_of(f, first);
        assert_true(n_compared < (size_t)100 * N);
        assert_int_equal(second->n_hooks, first->n_hooks);
        assert_int_equal(second->n_idle, first->n_idle);
        for (size_t i = 0; i < first->n_hooks; i++)
                assert_true((second->hooks[i].policy == first->hooks[i].policy) ==
                            (strcmp(first->hooks[i].policy->name, "p2") != 0));
        for (size_t i = 0; i < first->n_idle; i++)
                assert_ptr_equal(second->idle[i], first->idle[i]);
        for (size_t i = 0; i < first->n_bindings; i++)
                assert_ptr_equal(second->bindings[i], first->bindings[i]);
        hfd_policy_index_unref(first);
        hfd_policy_index_unref(second);
}

#define TEST(name)                                                                                 \
        cmocka_unit_test_setup_teardown(name, faulty_api_fixture_set_up,                           \
                                        faulty_api_fixture_tear_down)

int main(void) {
        const struct CMUnitTest tests[] = {
                TEST(test_the_loads_of_many_webhooks_are_found_fast),
                TEST(test_policies_that_have_not_changed_are_shared),
        };

        return cmocka_run_group_tests(tests, NULL, NULL);
}

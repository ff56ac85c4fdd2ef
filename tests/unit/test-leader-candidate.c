/* SPDX-License-Identifier: Apache-2.0 */
/*
 * A candidate of a coordinated election, over the fake API server. The test is the coordinator. It
 * waits for events, never for times.
 */
#undef NDEBUG
#include <errno.h>
#include <pthread.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stdatomic.h>
#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#include "fake_api_client.h"

#include <holdfast/candidate.h>

#include "base/json.h"
#include "base/strbuf.h"
#include "base/time_format.h"

#define KEY "leasecandidates/kube-system/me_1"

struct fixture {
        struct fake_api *api;
        struct fake_api_client *client;
        struct hf_candidate *candidate;
};

static struct hf_candidate_config config_of(struct fixture *f) {
        return (struct hf_candidate_config){.size = sizeof(struct hf_candidate_config),
                                            .client = &f->client->base,
                                            .ns = "kube-system",
                                            .name = "me_1",
                                            .lease_name = "lead",
                                            .binary_version = "1.3.0",
                                            .emulation_version = "1.2.0"};
}

static struct fixture fixture_new(void) {
        struct fixture f = {.api = fake_api_new()};

        f.client = fake_api_client_new(f.api);
        return f;
}

static void fixture_start(struct fixture *f) {
        struct hf_candidate_config config = config_of(f);

        assert_int_equal(hf_candidate_new(&f->api->host, &config, &f->candidate, NULL), 0);
        assert_int_equal(hf_candidate_start(f->candidate), 0);
}

static void fixture_free(struct fixture *f) {
        hf_candidate_free(f->candidate);
        hf_client_free(&f->client->base);
        fake_api_free(f->api);
}

static struct hf__json *object_of(struct fixture *f) {
        char *text = fake_api_get(f->api, KEY);
        struct hf__json *object = NULL;

        assert_non_null(text);
        assert_int_equal(hf__json_parse(text, strlen(text), &object, NULL), 0);
        free(text);
        return object;
}

static int64_t time_at(const struct hf__json *object, const char *path) {
        int64_t usec = 0;

        assert_int_equal(hf__microtime_parse(hf__json_string(object, path), &usec), 0);
        return usec;
}

/* Scenario of docs/parity.md: CG26. */
static void test_a_candidate_creates_its_object(void **state) {
        struct fixture f = fixture_new();

        fixture_start(&f);
        (void)fake_api_await_commits(f.api, 1);
        struct hf__json *object = object_of(&f);
        assert_string_equal(hf__json_string(object, "kind"), "LeaseCandidate");
        assert_string_equal(hf__json_string(object, "spec.leaseName"), "lead");
        assert_string_equal(hf__json_string(object, "spec.binaryVersion"), "1.3.0");
        assert_string_equal(hf__json_string(object, "spec.emulationVersion"), "1.2.0");
        assert_string_equal(hf__json_string(object, "spec.strategy"), "OldestEmulationVersion");
        assert_true(time_at(object, "spec.renewTime") > 0);
        hf__json_free(object);
        fixture_free(&f);
}

/* Pings the candidate. The clock of the coordinator is ahead by `ahead`. */
static int64_t ping(struct fixture *f, int64_t ahead) {
        struct hf__json *object = object_of(f);
        struct hf__strbuf text = {0};
        char pinged[HF__MICROTIME_MAX];
        int64_t at = time_at(object, "spec.renewTime") + ahead;

        hf__microtime_format(at, pinged);
        assert_int_equal(hf__json_set_string(object, "spec.pingTime", pinged), 0);
        hf__json_print(object, &text);
        fake_api_put(f->api, KEY, text.data);
        hf__strbuf_done(&text);
        hf__json_free(object);
        return at;
}

/* Scenario of docs/parity.md: CG27. */
static void test_a_candidate_responds_to_pings(void **state) {
        struct fixture f = fixture_new();

        fixture_start(&f);
        (void)fake_api_await_commits(f.api, 1);
        for (size_t i = 0; i < 3; i++) {
                int64_t pinged = ping(&f, i == 2 ? INT64_C(3600000000) : 1);
                (void)fake_api_await_commits(f.api,
                                             3 + 2 * i); /* the ping and the response to it */
                struct hf__json *object = object_of(&f);
                assert_true(time_at(object, "spec.renewTime") > pinged);
                /* the coordinator owns this field */
                assert_int_equal(time_at(object, "spec.pingTime"), pinged);
                hf__json_free(object);
        }
        fixture_free(&f);
}

static void test_a_candidate_recreates_its_deleted_object(void **state) {
        struct fixture f = fixture_new();

        fixture_start(&f);
        (void)fake_api_await_commits(f.api, 1);
        (void)fake_api_delete(f.api, KEY);
        (void)fake_api_await_commits(f.api, 3);
        hf__json_free(object_of(&f));
        fixture_free(&f);
}

static void test_a_candidate_tries_again_after_refusals(void **state) {
        struct fixture f = fixture_new();

        fake_api_client_refuse(f.client, HF_E_UNAVAILABLE, 2);
        fixture_start(&f);
        (void)fake_api_await_commits(f.api, 1);
        fixture_free(&f);
}

static void count_warnings(void *ctx, enum hf_log_level level, const char *component,
                           const char *message) {
        if (level == HF_LOG_WARNING)
                atomic_fetch_add((_Atomic unsigned *)ctx, 1);
}

static void test_a_conflict_is_no_warning(void **state) {
        static const int errors[] = {HF_E_CONFLICT, HF_E_UNAVAILABLE};

        for (unsigned i = 0; i < 2; i++) {
                struct fixture f = fixture_new();
                _Atomic unsigned n_warnings = 0;

                f.api->host.log = (struct hf_log){.write = count_warnings, .ctx = &n_warnings};
                fake_api_client_refuse(f.client, errors[i], 2);
                fixture_start(&f);
                (void)fake_api_await_commits(f.api, 1);
                fixture_free(&f);
                assert_int_equal(n_warnings, i);
        }
}

/* A server that does not respond does not delay the stop. */
static void test_a_candidate_stops_while_the_server_hangs(void **state) {
        struct fixture f = fixture_new();

        fake_api_client_set_mode(f.client, FAKE_API_HANGS);
        fixture_start(&f);
        hf_candidate_stop(f.candidate);
        assert_int_equal(hf_candidate_start(f.candidate), HF_E_CLOSED);
        fixture_free(&f);
}

static void test_missing_fields_are_named(void **state) {
        struct fixture f = fixture_new();
        struct hf_candidate_config config = config_of(&f);
        struct hf_status status = {0};

        config.binary_version = "";
        assert_int_equal(hf_candidate_new(&f.api->host, &config, &f.candidate, &status),
                         HF_E_INVALID);
        assert_string_equal(status.message, "candidate: it has no binary version");
        config = config_of(&f);
        config.client = NULL;
        assert_int_equal(hf_candidate_new(&f.api->host, &config, &f.candidate, &status),
                         HF_E_INVALID);
        config = config_of(&f);
        config.size = 0;
        assert_int_equal(hf_candidate_new(&f.api->host, &config, &f.candidate, &status), -EINVAL);
        config = config_of(&f);
        /* and it is never started */
        assert_int_equal(hf_candidate_new(&f.api->host, &config, &f.candidate, NULL), 0);
        fixture_free(&f);
}

int main(void) {
        const struct CMUnitTest tests[] = {
                cmocka_unit_test(test_a_candidate_creates_its_object),
                cmocka_unit_test(test_a_candidate_responds_to_pings),
                cmocka_unit_test(test_a_candidate_recreates_its_deleted_object),
                cmocka_unit_test(test_a_candidate_tries_again_after_refusals),
                cmocka_unit_test(test_a_conflict_is_no_warning),
                cmocka_unit_test(test_a_candidate_stops_while_the_server_hangs),
                cmocka_unit_test(test_missing_fields_are_named),
        };
        return cmocka_run_group_tests(tests, NULL, NULL);
}

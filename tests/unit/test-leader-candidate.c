/* SPDX-License-Identifier: Apache-2.0 */
/* A candidate of a coordinated election, over an API in memory; the test is the coordinator. Waits
 * are for events. */
#undef NDEBUG
#include <errno.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include "fake_api.h"

#include <holdfast/candidate.h>

#include "base/time_format.h"

#define KEY   "leasecandidates/kube-system/me_1"
#define GUARD (20 * HF_NSEC_PER_SEC)

struct rig {
        struct fake_api *api;
        struct fake_client *client;
        struct hf_candidate *candidate;
};

static struct hf_candidate_config config_of(struct rig *rig) {
        return (struct hf_candidate_config){.size = sizeof(struct hf_candidate_config),
                                            .client = &rig->client->base,
                                            .ns = "kube-system",
                                            .name = "me_1",
                                            .lease_name = "lead",
                                            .binary_version = "1.3.0",
                                            .emulation_version = "1.2.0"};
}

static struct rig rig_new(void) {
        struct rig rig = {.api = fake_api_new()};

        rig.client = fake_client_new(rig.api);
        return rig;
}

static void rig_start(struct rig *rig) {
        struct hf_candidate_config config = config_of(rig);

        assert_int_equal(hf_candidate_new(&rig->api->host, &config, &rig->candidate, NULL), 0);
        assert_int_equal(hf_candidate_start(rig->candidate), 0);
}

static void rig_free(struct rig *rig) {
        hf_candidate_free(rig->candidate);
        hf_client_free(&rig->client->base);
        fake_api_free(rig->api);
}

/* Waits until the object was written anew by the candidate: n times in all, deletions and our own
 * writes not counted. */
static void await_commits(struct rig *rig, size_t n) {
        const struct hf_clock *clock = hf_clock_system();
        hf_nsec until = hf_now(clock) + GUARD;

        pthread_mutex_lock(&rig->api->mu);
        while (rig->api->n_commits < n && hf_now(clock) < until)
                (void)clock->wait(clock->ctx, &rig->api->changed, &rig->api->mu, until);
        bool ok = rig->api->n_commits >= n;
        pthread_mutex_unlock(&rig->api->mu);
        assert_true(ok);
}

static struct hf__json *object_of(struct rig *rig) {
        char *text = fake_get(rig->api, KEY);
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

static void test_it_appears(void **state) { /* CG26 */
        struct rig rig = rig_new();

        rig_start(&rig);
        await_commits(&rig, 1);
        struct hf__json *object = object_of(&rig);
        assert_string_equal(hf__json_string(object, "kind"), "LeaseCandidate");
        assert_string_equal(hf__json_string(object, "spec.leaseName"), "lead");
        assert_string_equal(hf__json_string(object, "spec.binaryVersion"), "1.3.0");
        assert_string_equal(hf__json_string(object, "spec.emulationVersion"), "1.2.0");
        assert_string_equal(hf__json_string(object, "spec.strategy"), "OldestEmulationVersion");
        assert_true(time_at(object, "spec.renewTime") > 0);
        hf__json_free(object);
        rig_free(&rig);
}

/* The coordinator's ping, by a clock that is ahead of ours by `ahead`. */
static int64_t ping(struct rig *rig, int64_t ahead) {
        struct hf__json *object = object_of(rig);
        struct hf__strbuf text = {0};
        char pinged[HF__MICROTIME_MAX];
        int64_t at = time_at(object, "spec.renewTime") + ahead;

        hf__microtime_format(at, pinged);
        assert_int_equal(hf__json_set_string(object, "spec.pingTime", pinged), 0);
        hf__json_print(object, &text);
        fake_put(rig->api, KEY, text.data);
        hf__strbuf_done(&text);
        hf__json_free(object);
        return at;
}

static void test_it_answers_pings(void **state) { /* CG27 */
        struct rig rig = rig_new();

        rig_start(&rig);
        await_commits(&rig, 1);
        for (size_t i = 0; i < 3; i++) {
                int64_t pinged = ping(&rig, i == 2 ? INT64_C(3600000000) : 1);
                await_commits(&rig, 3 + 2 * i); /* ours, and the answer */
                struct hf__json *object = object_of(&rig);
                assert_true(time_at(object, "spec.renewTime") > pinged);
                assert_int_equal(time_at(object, "spec.pingTime"),
                                 pinged); /* it is the coordinator's */
                hf__json_free(object);
        }
        rig_free(&rig);
}

static void test_it_comes_back_when_deleted(void **state) {
        struct rig rig = rig_new();

        rig_start(&rig);
        await_commits(&rig, 1);
        pthread_mutex_lock(&rig.api->mu);
        fake_remove(rig.api, KEY, NULL);
        pthread_mutex_unlock(&rig.api->mu);
        await_commits(&rig, 3);
        hf__json_free(object_of(&rig));
        rig_free(&rig);
}

static void test_it_goes_on_after_refusals(void **state) {
        struct rig rig = rig_new();

        rig.client->mode = FAKE_REFUSE;
        rig.client->refuse_error = HF_E_UNAVAILABLE;
        rig.client->n_refuse = 2;
        rig_start(&rig);
        await_commits(&rig, 1);
        rig_free(&rig);
}

/* A server that does not answer does not hold up the stop. */
static void test_it_stops_while_it_hangs(void **state) {
        struct rig rig = rig_new();

        rig.client->mode = FAKE_HANG;
        rig_start(&rig);
        hf_candidate_stop(rig.candidate);
        assert_int_equal(hf_candidate_start(rig.candidate), HF_E_CLOSED);
        rig_free(&rig);
}

static void test_what_is_missing_is_named(void **state) {
        struct rig rig = rig_new();
        struct hf_candidate_config config = config_of(&rig);
        struct hf_status status = {0};

        config.binary_version = "";
        assert_int_equal(hf_candidate_new(&rig.api->host, &config, &rig.candidate, &status),
                         HF_E_INVALID);
        assert_string_equal(status.message, "candidate: it has no binary version");
        config = config_of(&rig);
        config.client = NULL;
        assert_int_equal(hf_candidate_new(&rig.api->host, &config, &rig.candidate, &status),
                         HF_E_INVALID);
        config = config_of(&rig);
        config.size = 0;
        assert_int_equal(hf_candidate_new(&rig.api->host, &config, &rig.candidate, &status),
                         -EINVAL);
        config = config_of(&rig);
        assert_int_equal(hf_candidate_new(&rig.api->host, &config, &rig.candidate, NULL),
                         0); /* and never started */
        rig_free(&rig);
}

int main(void) {
        const struct CMUnitTest tests[] = {
                cmocka_unit_test(test_it_appears),
                cmocka_unit_test(test_it_answers_pings),
                cmocka_unit_test(test_it_comes_back_when_deleted),
                cmocka_unit_test(test_it_goes_on_after_refusals),
                cmocka_unit_test(test_it_stops_while_it_hangs),
                cmocka_unit_test(test_what_is_missing_is_named),
        };
        return cmocka_run_group_tests(tests, NULL, NULL);
}

/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The wait for the kind of a definition, request by request: with a client that answers from a
 * script, and with a clock on which each pause is over at once.
 */
#undef NDEBUG
#include <errno.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <string.h>

#include <cmocka.h>

#include <holdfast/cancel.h>
#include <holdfast/client_port.h>
#include <holdfast/definition.h>

#include "time_units.h"

#define VERSION(name, more) "{\"name\":\"" name "\"" more "}"
#define SPEC(versions)                                                                             \
        "{\"metadata\":{\"name\":\"things.g.com\",\"resourceVersion\":\"7\"},\"spec\":{"           \
        "\"group\":\"g.com\",\"names\":{\"plural\":\"things\"},\"versions\":[" versions "]}"
#define SERVED     ",\"served\":true"
#define STORED     ",\"storage\":true"
#define DEFINITION SPEC(VERSION("v1", SERVED) "," VERSION("v2", SERVED STORED)) "}"
#define WITH(conditions)                                                                           \
        SPEC(VERSION("v2", SERVED STORED)) ",\"status\":{\"conditions\":[" conditions "]}}"
#define ESTABLISHED "{\"type\":\"Established\",\"status\":\"True\"}"
#define WAITING     WITH("{\"type\":\"Established\",\"status\":\"False\"}")

struct step {
        enum hf_verb verb;
        int error;
        const char *body; /* of the response; NULL = none */
};

static struct {
        struct hf_clock clock;
        struct hf_host host;
        struct hf_client client;
        struct hf_cancel *token;
        hf_nsec now, pauses[16];
        size_t n_pauses, n_sent, n_steps;
        const struct step *steps;
        struct hf_status status;
} f;

static hf_nsec boot(void *ctx) { return f.now; }

static int wait_for(void *ctx, pthread_cond_t *cond, pthread_mutex_t *mutex, hf_nsec deadline) {
        assert_true(f.n_pauses < 16 && deadline > f.now);
        f.pauses[f.n_pauses++] = deadline - f.now;
        f.now = deadline;
        return HF_E_TIMEOUT;
}

static int on_request(struct hf_client *self, const struct hf_request *request, hf_response_fn done,
                      void *ctx, uint64_t *ret_id) {
        assert_true(f.n_sent < f.n_steps);
        const struct step *step = &f.steps[f.n_sent++];
        const struct hf_response response = {.size = sizeof response,
                                             .error = step->error,
                                             .body = step->body,
                                             .n_body = step->body ? strlen(step->body) : 0,
                                             .status.error = step->error};

        assert_int_equal(request->verb, step->verb);
        if (request->verb == HF_VERB_LIST) {
                assert_string_equal(request->resource.group, "g.com");
                assert_string_equal(request->resource.version, "v2"); /* the stored one */
                assert_string_equal(request->resource.plural, "things");
        } else if (request->verb == HF_VERB_GET) {
                assert_string_equal(request->name, "things.g.com");
        }
        if (ret_id)
                *ret_id = f.n_sent;
        done(ctx, &response);
        return 0;
}

static void on_cancel(struct hf_client *self, uint64_t id) {}

static int set_up(void **state) {
        static const struct hf_client_ops ops = {.size = sizeof ops,
                                                 .request = on_request,
                                                 .cancel = on_cancel};

        memset(&f, 0, sizeof f);
        f.now = SEC;
        f.clock = *hf_clock_system();
        f.clock.boot = boot;
        f.clock.wait = wait_for;
        f.host = (struct hf_host){.size = sizeof f.host, .clock = &f.clock};
        f.client = (struct hf_client){.ops = &ops, .host = &f.host};
        return hf_cancel_new(NULL, &f.clock, &f.token);
}

static int tear_down(void **state) {
        hf_cancel_unref(f.token);
        return 0;
}

static int establish(const char *definition, const struct step *steps, size_t n) {
        f.steps = steps;
        f.n_steps = n;
        f.n_sent = f.n_pauses = 0;
        f.status = (struct hf_status){0};
        int r = hf_definition_establish(&f.client, definition, strlen(definition), f.token,
                                        &f.status);
        assert_int_equal(f.n_sent, n);
        return r;
}

#define ESTABLISH(...)                                                                             \
        establish(DEFINITION, (const struct step[]){__VA_ARGS__},                                  \
                  sizeof((const struct step[]){__VA_ARGS__}) / sizeof(struct step))
/* The upsert reads an object that equals the one that it would write. */
#define KEPT                                                                                       \
        { HF_VERB_GET, 0, DEFINITION }

/* The condition Established means that the kind is served soon. A list shows that it is. */
static void test_it_waits_until_the_kind_can_be_listed(void **state) {
        assert_int_equal(ESTABLISH(KEPT, {HF_VERB_GET, 0, WITH(ESTABLISHED)},
                                   {HF_VERB_LIST, 0, "{}"}),
                         0);
        assert_int_equal(f.n_pauses, 0);
        assert_int_equal(
                ESTABLISH(KEPT, {HF_VERB_GET, 0, WAITING}, {HF_VERB_GET, 0, WITH(ESTABLISHED)},
                          {HF_VERB_LIST, HF_E_NOT_FOUND, NULL},
                          {HF_VERB_GET, 0,
                           WITH("{\"type\":\"NamesAccepted\",\"status\":\"False\"}," ESTABLISHED)},
                          {HF_VERB_LIST, 0, "{}"}),
                0);
        assert_int_equal(f.n_pauses, 2);
}

static void test_the_pauses_grow_to_a_second(void **state) {
        static const hf_nsec pauses[] = {20, 40, 80, 160, 320, 640, 1000, 1000};
        struct step steps[11] = {KEPT};

        for (size_t i = 1; i < 9; i++)
                steps[i] = (struct step){HF_VERB_GET, 0, WAITING};
        steps[9] = (struct step){HF_VERB_GET, 0, WITH(ESTABLISHED)};
        steps[10] = (struct step){HF_VERB_LIST, 0, "{}"};
        assert_int_equal(establish(DEFINITION, steps, 11), 0);
        assert_int_equal(f.n_pauses, 8);
        for (size_t i = 0; i < 8; i++)
                assert_int_equal(f.pauses[i], pauses[i] * MSEC);
}

static void test_it_ends_when_the_kind_will_not_be_served(void **state) {
        assert_int_equal(ESTABLISH(KEPT, {HF_VERB_GET, 0,
                                          WITH("{\"type\":\"NamesAccepted\",\"status\":\"False\","
                                               "\"message\":\"taken\"}")}),
                         HF_E_CONFLICT);
        assert_string_equal(f.status.message, "things.g.com: taken");
        assert_int_equal(ESTABLISH(KEPT,
                                   {HF_VERB_GET, 0,
                                    WITH("{\"type\":\"NamesAccepted\",\"status\":\"False\"}")}),
                         HF_E_CONFLICT);
        assert_string_equal(f.status.message, "things.g.com: its names are not accepted");
        assert_int_equal(ESTABLISH(KEPT, {HF_VERB_GET, HF_E_NOT_FOUND, NULL}), HF_E_CONFLICT);
        assert_int_equal(f.status.error, HF_E_CONFLICT);
        assert_string_equal(f.status.message, "things.g.com: it was deleted before it was served");
        assert_int_equal(ESTABLISH(KEPT, {HF_VERB_GET, HF_E_FORBIDDEN, NULL}), HF_E_FORBIDDEN);
        assert_int_equal(ESTABLISH(KEPT, {HF_VERB_GET, 0, "nonsense"}), HF_E_INVALID);
        assert_int_equal(f.status.error, HF_E_INVALID);
        assert_int_equal(ESTABLISH(KEPT, {HF_VERB_GET, 0, WITH(ESTABLISHED)},
                                   {HF_VERB_LIST, HF_E_FORBIDDEN, NULL}),
                         HF_E_FORBIDDEN);
        assert_int_equal(ESTABLISH({HF_VERB_GET, HF_E_UNAVAILABLE, NULL}), HF_E_UNAVAILABLE);
        assert_int_equal(f.n_pauses, 0);
}

static void test_a_token_ends_a_pause(void **state) {
        hf_cancel_set_deadline(f.token, f.now + 30 * MSEC);
        assert_int_equal(ESTABLISH(KEPT, {HF_VERB_GET, 0, WAITING}, {HF_VERB_GET, 0, WAITING}),
                         HF_E_CANCELED);
        assert_string_equal(f.status.message, "things.g.com: canceled before it was served");
}

static void test_a_definition_serves_what_it_stores(void **state) {
        static const char *const wrong[] = {
                SPEC(VERSION("v1", SERVED)) "}",
                SPEC(VERSION("v1", STORED)) "}",
                SPEC(VERSION("v1", STORED ",\"served\":false") "," VERSION("v2", SERVED)) "}",
                SPEC("{\"served\":true,\"storage\":true}") "}",
                "{\"metadata\":{\"name\":\"x\"},\"spec\":{\"names\":{\"plural\":\"things\"},"
                "\"versions\":[" VERSION("v1", SERVED STORED) "]}}",
                "{\"metadata\":{\"name\":\"x\"},\"spec\":{\"group\":\"g.com\",\"versions\":"
                "[" VERSION("v1", SERVED STORED) "]}}",
                "{\"spec\":{\"group\":\"g.com\",\"names\":{\"plural\":\"things\"},"
                "\"versions\":[" VERSION("v1", SERVED STORED) "]}}",
        };

        for (size_t i = 0; i < sizeof wrong / sizeof wrong[0]; i++) {
                assert_int_equal(establish(wrong[i], NULL, 0), HF_E_INVALID);
                assert_string_equal(f.status.message, "this is not a CustomResourceDefinition that "
                                                      "serves its storage "
                                                      "version");
        }
        assert_int_equal(establish("nonsense", NULL, 0), HF_E_INVALID);
        assert_true(strncmp(f.status.message, "the definition is not JSON: ", 28) == 0);
}

#define TEST(name) cmocka_unit_test_setup_teardown(name, set_up, tear_down)

int main(void) {
        const struct CMUnitTest tests[] = {
                TEST(test_it_waits_until_the_kind_can_be_listed),
                TEST(test_the_pauses_grow_to_a_second),
                TEST(test_it_ends_when_the_kind_will_not_be_served),
                TEST(test_a_token_ends_a_pause),
                TEST(test_a_definition_serves_what_it_stores),
        };
        return cmocka_run_group_tests(tests, NULL, NULL);
}

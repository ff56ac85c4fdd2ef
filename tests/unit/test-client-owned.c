/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The requests of an upsert and of an owned object, one by one, with a client that answers from a
 * script: what each sends, when it begins again, and what it reports.
 */
#undef NDEBUG
#include <errno.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#include <holdfast/cancel.h>
#include <holdfast/client_port.h>
#include <holdfast/owned.h>
#include <holdfast/upsert.h>

#define OWNER                                                                                      \
        "{\"apiVersion\":\"v1\",\"kind\":\"Boss\",\"metadata\":{\"name\":\"o\",\"uid\":\"u\"}}"
#define OURS(uid) "{\"controller\":true,\"uid\":\"" uid "\"}"
#define FOUND(owner_uid)                                                                           \
        "{\"metadata\":{\"name\":\"a\",\"ownerReferences\":[" OURS(                                \
                owner_uid) "],\"resourceVersion\":\"7\",\"uid\":\"i\"},\"spec\":{\"n\":1}}"

/* ---- a client that answers from a script ---- */

struct step {
        enum hf_verb verb;
        int error;
        const char *body;    /* of the response; NULL = none */
        const char *message; /* of the status; NULL = none */
};

static struct {
        struct hf_client client;
        struct hf_cancel *token;
        const struct step *steps;
        size_t n_steps, n_sent;
        char sent[12][512]; /* the bodies of the requests */
        char names[12][32];
        const char *ns; /* of all requests */
        struct hf_status status;
} f;

static int on_request(struct hf_client *self, const struct hf_request *request, hf_response_fn done,
                      void *ctx, uint64_t *ret_id) {
        assert_true(f.n_sent < f.n_steps);
        const struct step *step = &f.steps[f.n_sent];
        struct hf_response response = {.size = sizeof response,
                                       .error = step->error,
                                       .body = step->body,
                                       .n_body = step->body ? strlen(step->body) : 0,
                                       .status.error = step->error};

        assert_int_equal(request->verb, step->verb);
        if (f.ns)
                assert_string_equal(request->ns, f.ns);
        else
                assert_null(request->ns);
        (void)snprintf(f.sent[f.n_sent], sizeof f.sent[0], "%.*s", (int)request->n_body,
                       request->body ? (const char *)request->body : "");
        (void)snprintf(f.names[f.n_sent], sizeof f.names[0], "%s",
                       request->name ? request->name : "-");
        if (step->message)
                (void)snprintf(response.status.message, sizeof response.status.message, "%s",
                               step->message);
        f.n_sent++;
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
        static const struct hf_host host = {.size = sizeof host};

        memset(&f, 0, sizeof f);
        f.client = (struct hf_client){.ops = &ops, .host = &host};
        f.ns = "ns";
        return hf_cancel_new(NULL, hf_clock_system(), &f.token);
}

static int tear_down(void **state) {
        hf_cancel_unref(f.token);
        return 0;
}

static struct hf_request desired(const char *body) {
        return (struct hf_request){.size = sizeof(struct hf_request),
                                   .resource = {.version = "v1", .plural = "things"},
                                   .ns = f.ns,
                                   .name = "a",
                                   .body = body,
                                   .n_body = body ? strlen(body) : 0};
}

static void script(const struct step *steps, size_t n) {
        f.steps = steps;
        f.n_steps = n;
        f.n_sent = 0;
        f.status = (struct hf_status){0};
}
#define SCRIPT(...)                                                                                \
        do {                                                                                       \
                static const struct step steps[] = {__VA_ARGS__};                                  \
                script(steps, sizeof steps / sizeof steps[0]);                                     \
        } while (0)

static int upsert(const char *body, enum hf_upsert_result *result, char **object) {
        const struct hf_request request = desired(body);
        int r = hf_upsert(&f.client, &request, f.token, result, object, &f.status);

        assert_int_equal(f.n_sent, f.n_steps);
        return r;
}

static int owned_upsert(const char *body, const char *owner, enum hf_upsert_result *result) {
        const struct hf_request request = desired(body);
        int r = hf_owned_upsert(&f.client, &request, owner, owner ? strlen(owner) : 0, f.token,
                                result, &f.status);

        assert_int_equal(f.n_sent, f.n_steps);
        return r;
}

static int owned_delete(const char *owner) {
        const struct hf_request request = desired(NULL);
        int r = hf_owned_delete(&f.client, &request, owner, strlen(owner), f.token, &f.status);

        assert_int_equal(f.n_sent, f.n_steps);
        return r;
}

/* ---- upserts ---- */

static void test_an_upsert_merges_members(void **state) {
        enum hf_upsert_result result = HF_UPSERT_CREATED;
        char *object = NULL;

        SCRIPT({HF_VERB_GET, 0,
                "{\"metadata\":{\"resourceVersion\":\"7\"},\"a\":1,\"b\":{\"c\":1,\"d\":2},\"e\":"
                "3}",
                NULL},
               {HF_VERB_UPDATE, 0, "{\"stored\":true}", NULL});
        assert_int_equal(upsert("{\"a\":null,\"b\":{\"c\":5},\"e\":{\"f\":{\"g\":6}},\"h\":[7]}",
                                &result, &object),
                         0);
        assert_int_equal(result, HF_UPSERT_UPDATED);
        assert_string_equal(object, "{\"stored\":true}");
        free(object);
        assert_string_equal(f.sent[1], "{\"metadata\":{\"resourceVersion\":\"7\"},\"b\":{\"c\":5,"
                                       "\"d\":2},\"e\":{\"f\":{\"g\":6}},\"h\":[7]}");
        assert_string_equal(f.names[1], "a");
        assert_string_equal(f.sent[0], "");
}

static void test_an_upsert_that_changes_nothing_writes_nothing(void **state) {
        static const char found[] = "{\"metadata\":{\"resourceVersion\":\"7\"},\"a\":1}";
        enum hf_upsert_result result = HF_UPSERT_CREATED;
        char *object = NULL;

        SCRIPT({HF_VERB_GET, 0, found, NULL});
        assert_int_equal(upsert("{\"metadata\":{\"resourceVersion\":\"\"},\"a\":1,\"x\":null}",
                                &result, &object),
                         0);
        assert_int_equal(result, HF_UPSERT_UNCHANGED);
        assert_string_equal(object, found);
        free(object);
}

static void test_an_upsert_creates_what_is_missing(void **state) {
        enum hf_upsert_result result = HF_UPSERT_UNCHANGED;

        SCRIPT({HF_VERB_GET, HF_E_NOT_FOUND, NULL, NULL},
               {HF_VERB_CREATE, HF_E_EXISTS, NULL, "another one was first"},
               {HF_VERB_GET, HF_E_NOT_FOUND, NULL, NULL}, {HF_VERB_CREATE, 0, "{}", NULL});
        assert_int_equal(upsert("{\"a\":1}", &result, NULL), 0);
        assert_int_equal(result, HF_UPSERT_CREATED);
        assert_string_equal(f.sent[3], "{\"a\":1}");
        assert_string_equal(f.names[3], "-");
        assert_string_equal(f.names[2], "a");
        assert_string_equal(f.status.message,
                            ""); /* a failure that a retry has overcome is not reported */
}

static void test_an_upsert_tries_five_times(void **state) {
        static const char found[] = "{\"metadata\":{}}";
        enum hf_upsert_result result = HF_UPSERT_UNCHANGED;

#define CONFLICT {HF_VERB_GET, 0, found, NULL}, {HF_VERB_UPDATE, HF_E_CONFLICT, NULL, "changed"}
#define GONE                                                                                       \
        {HF_VERB_GET, 0, found, NULL}, { HF_VERB_UPDATE, HF_E_NOT_FOUND, NULL, "gone" }
        SCRIPT(CONFLICT, CONFLICT, CONFLICT, CONFLICT, CONFLICT);
        assert_int_equal(upsert("{\"a\":1}", &result, NULL), HF_E_CONFLICT);
        assert_string_equal(f.status.message, "changed");
        assert_int_equal(result, HF_UPSERT_UNCHANGED);
        SCRIPT(GONE, GONE, GONE, GONE, GONE);
        assert_int_equal(upsert("{\"a\":1}", NULL, NULL), HF_E_CONFLICT);
        assert_int_equal(f.status.error, HF_E_CONFLICT);
        assert_true(strncmp(f.status.message, "a: ", 3) == 0);
        SCRIPT({HF_VERB_GET, HF_E_NOT_FOUND, NULL, NULL},
               {HF_VERB_CREATE, HF_E_FORBIDDEN, NULL, "no"});
        assert_int_equal(upsert("{\"a\":1}", NULL, NULL), HF_E_FORBIDDEN);
        SCRIPT({HF_VERB_GET, HF_E_FORBIDDEN, NULL, "no"});
        assert_int_equal(upsert("{\"a\":1}", NULL, NULL), HF_E_FORBIDDEN);
        assert_string_equal(f.status.message, "no");
}

/* The body may name a resourceVersion or a uid. */
static void test_an_upsert_of_another_object_is_refused(void **state) {
        static const char *const bodies[] =
                {"{\"metadata\":{\"resourceVersion\":\"6\"}}", "{\"metadata\":{\"uid\":\"j\"}}",
                 "{\"metadata\":{\"uid\":\"i\",\"resourceVersion\":\"8\"}}"};

        for (size_t i = 0; i < 3; i++) {
                SCRIPT({HF_VERB_GET, 0, FOUND("u"), NULL});
                assert_int_equal(upsert(bodies[i], NULL, NULL), HF_E_CONFLICT);
                assert_string_equal(f.status.message,
                                    "a: the object and the body differ in uid or resourceVersion");
                SCRIPT({HF_VERB_GET, HF_E_NOT_FOUND, NULL, NULL});
                assert_int_equal(upsert(bodies[i], NULL, NULL), HF_E_CONFLICT);
        }
        SCRIPT({HF_VERB_GET, 0, FOUND("u"), NULL});
        assert_int_equal(upsert("{\"metadata\":{\"uid\":\"i\",\"resourceVersion\":\"7\"}}", NULL,
                                NULL),
                         0);
}

static void test_an_upsert_needs_an_object(void **state) {
        struct hf_request request = desired("{}");

        script(NULL, 0);
        assert_int_equal(upsert("[]", NULL, NULL), HF_E_INVALID);
        assert_true(strncmp(f.status.message, "a: the body is not a JSON object: ", 34) == 0);
        assert_int_equal(upsert("nonsense", NULL, NULL), HF_E_INVALID);
        assert_int_equal(upsert(NULL, NULL, NULL), -EINVAL);
        assert_string_equal(f.status.message, "an upsert needs a name and a body");
        assert_int_equal(hf_upsert(NULL, &request, f.token, NULL, NULL, NULL), -EINVAL);
        assert_int_equal(hf_upsert(&f.client, &request, NULL, NULL, NULL, NULL), -EINVAL);
        request.name = NULL;
        assert_int_equal(hf_upsert(&f.client, &request, f.token, NULL, NULL, NULL), -EINVAL);
}

/* ---- owned objects ---- */

static void test_an_owned_object_is_created_with_its_owner(void **state) {
        enum hf_upsert_result result = HF_UPSERT_UNCHANGED;

        SCRIPT({HF_VERB_GET, HF_E_NOT_FOUND, NULL, NULL}, {HF_VERB_CREATE, 0, "{}", NULL});
        assert_int_equal(owned_upsert("{\"spec\":{}}", OWNER, &result), 0);
        assert_int_equal(result, HF_UPSERT_CREATED);
        assert_string_equal(f.names[1], "-");
        assert_string_equal(f.sent[1],
                            "{\"spec\":{},\"metadata\":{\"name\":\"a\",\"namespace\":\"ns\","
                            "\"ownerReferences\":[{\"apiVersion\":\"v1\",\"kind\":\"Boss\","
                            "\"name\":\"o\",\"uid\":\"u\",\"controller\":true,"
                            "\"blockOwnerDeletion\":true}]}}");
}

/* A cluster-scoped object has a body without a namespace. */
static void test_an_owned_object_may_have_no_namespace(void **state) {
        for (int i = 0; i < 2; i++) {
                f.ns = i == 0 ? NULL : "";
                SCRIPT({HF_VERB_GET, HF_E_NOT_FOUND, NULL, NULL},
                       {HF_VERB_CREATE, 0, FOUND("u"), NULL});
                assert_int_equal(owned_upsert("{\"spec\":{}}", OWNER, NULL), 0);
                assert_non_null(strstr(f.sent[1], "\"name\":\"a\""));
                assert_null(strstr(f.sent[1], "\"namespace\""));
        }
}

/* Without a readable owner it is not known whether the owner has a uid. */
static void test_an_owner_that_cannot_be_read_is_refused(void **state) {
        char owner[200] = "{\"metadata\":{\"uid\":\"u\"},\"n\":";
        size_t n = strlen(owner);

        memset(owner + n, '1', 100); /* no number has so many digits */
        strcpy(owner + n + 100, "}");
        script(NULL, 0);
        assert_int_equal(owned_upsert("{}", owner, NULL), HF_E_TOO_LARGE);
        assert_true(strncmp(f.status.message, "a: ", 3) == 0);
        assert_null(strstr(f.status.message, "uid"));
}

static void test_a_request_of_the_wrong_size_is_refused(void **state) {
        struct hf_request request = desired("{}");

        request.size = 1;
        script(NULL, 0);
        assert_int_equal(hf_upsert(&f.client, &request, f.token, NULL, NULL, &f.status), -EINVAL);
        assert_non_null(strstr(f.status.message, "hf_request"));
        assert_int_equal(hf_owned_upsert(&f.client, &request, OWNER, strlen(OWNER), f.token, NULL,
                                         &f.status),
                         -EINVAL);
        assert_int_equal(hf_owned_delete(&f.client, &request, OWNER, strlen(OWNER), f.token,
                                         &f.status),
                         -EINVAL);
}

/* The write names the uid, so that it cannot change another object that got the same name
 * meanwhile. */
static void test_an_owned_object_is_changed_by_its_uid(void **state) {
        enum hf_upsert_result result = HF_UPSERT_UNCHANGED;

        SCRIPT({HF_VERB_GET, 0, FOUND("u"), NULL}, {HF_VERB_GET, 0, FOUND("u"), NULL},
               {HF_VERB_UPDATE, 0, "{}", NULL});
        assert_int_equal(owned_upsert("{\"spec\":{\"n\":2}}", OWNER, &result), 0);
        assert_int_equal(result, HF_UPSERT_UPDATED);
        assert_non_null(strstr(f.sent[2], "\"spec\":{\"n\":2}"));
        assert_non_null(strstr(f.sent[2], "\"uid\":\"i\""));
        SCRIPT({HF_VERB_GET, 0, FOUND("u"), NULL},
               {HF_VERB_GET, 0, "{\"metadata\":{\"uid\":\"later\"}}", NULL});
        assert_int_equal(owned_upsert("{\"spec\":{\"n\":2}}", OWNER, NULL), HF_E_CONFLICT);
}

/* A merge replaces lists, also the owner references. */
static void test_an_owned_object_keeps_its_owner(void **state) {
        static const char *const bodies[] =
                {"{\"metadata\":{\"ownerReferences\":[{\"uid\":\"w\"}]}}",
                 "{\"metadata\":{\"ownerReferences\":null}}"};

        for (size_t i = 0; i < 2; i++) {
                SCRIPT({HF_VERB_GET, 0, FOUND("u"), NULL}, {HF_VERB_GET, 0, FOUND("u"), NULL},
                       {HF_VERB_UPDATE, 0, "{}", NULL});
                assert_int_equal(owned_upsert(bodies[i], OWNER, NULL), 0);
                assert_non_null(strstr(f.sent[2], "\"uid\":\"u\",\"controller\":true"));
                assert_true(!strstr(f.sent[2], "\"uid\":\"w\"") == (i == 1));
        }
        SCRIPT({HF_VERB_GET, 0, FOUND("u"), NULL});
        assert_int_equal(owned_upsert("{\"metadata\":{\"ownerReferences\":[" OURS("w") "]}}", OWNER,
                                      NULL),
                         HF_E_CONFLICT);
}

static void test_an_object_of_another_is_left_alone(void **state) {
        SCRIPT({HF_VERB_GET, 0, FOUND("v"), NULL});
        assert_int_equal(owned_upsert("{}", OWNER, NULL), HF_E_EXISTS);
        assert_string_equal(f.status.message, "a has another controller");
        SCRIPT({HF_VERB_GET, 0, "{\"metadata\":{}}", NULL});
        assert_int_equal(owned_upsert("{}", OWNER, NULL), HF_E_EXISTS);
}

static void test_a_create_that_comes_second_is_tried_five_times(void **state) {
#define SECOND                                                                                     \
        {HF_VERB_GET, HF_E_NOT_FOUND, NULL, NULL}, {HF_VERB_CREATE, HF_E_EXISTS, NULL, "taken"}
        SCRIPT(SECOND, SECOND, SECOND, SECOND, SECOND);
        assert_int_equal(owned_upsert("{}", OWNER, NULL), HF_E_EXISTS);
        assert_string_equal(f.status.message, "taken");
        SCRIPT(SECOND, {HF_VERB_GET, HF_E_UNAVAILABLE, NULL, NULL});
        assert_int_equal(owned_upsert("{}", OWNER, NULL), HF_E_UNAVAILABLE);
        assert_int_equal(f.status.error, HF_E_UNAVAILABLE);
        SCRIPT(SECOND, {HF_VERB_GET, HF_E_NOT_FOUND, NULL, NULL}, {HF_VERB_CREATE, 0, "{}", NULL});
        assert_int_equal(owned_upsert("{}", OWNER, NULL), 0);
        assert_int_equal(f.status.error, 0);
        assert_string_equal(f.status.message, "");
}

static void test_what_is_no_owned_object_is_refused(void **state) {
        struct hf_request request = desired("{}");
        size_t n = strlen(OWNER);

        script(NULL, 0);
        assert_int_equal(owned_upsert(NULL, OWNER, NULL), -EINVAL);
        assert_string_equal(f.status.message, "a: an owned object needs a body");
        assert_int_equal(owned_upsert("{}", NULL, NULL), -EINVAL);
        assert_string_equal(f.status.message, "an owned object needs a name and an owner");
        assert_int_equal(owned_upsert("{}", "{}", NULL), HF_E_INVALID);
        assert_string_equal(f.status.message, "a: the owner has no uid");
        assert_int_equal(owned_upsert("{}", "nonsense", NULL), HF_E_INVALID);
        assert_string_equal(f.status.message, "a: the owner has no uid");
        assert_int_equal(hf_owned_upsert(NULL, &request, OWNER, n, f.token, NULL, NULL), -EINVAL);
        assert_int_equal(hf_owned_upsert(&f.client, &request, OWNER, n, NULL, NULL, &f.status),
                         -EINVAL);
        assert_string_equal(f.status.message, "an owned object needs a name and an owner");
        request.subresource = "status";
        assert_int_equal(hf_owned_upsert(&f.client, &request, OWNER, n, f.token, NULL, &f.status),
                         -EINVAL);
        assert_string_equal(f.status.message, "a: an owned object has no subresource");
        SCRIPT({HF_VERB_GET, HF_E_NOT_FOUND, NULL, NULL}, {HF_VERB_CREATE, 0, "{}", NULL});
        request.subresource = "";
        assert_int_equal(hf_owned_upsert(&f.client, &request, OWNER, n, f.token, NULL, &f.status),
                         0);
        script(NULL, 0);
        request.name = NULL;
        assert_int_equal(hf_owned_upsert(&f.client, &request, OWNER, n, f.token, NULL, NULL),
                         -EINVAL);
        SCRIPT({HF_VERB_GET, HF_E_NOT_FOUND, NULL, NULL});
        assert_int_equal(owned_upsert("[]", OWNER, NULL), HF_E_INVALID);
        assert_true(strncmp(f.status.message, "a: ", 3) == 0);
        SCRIPT({HF_VERB_GET, 0, FOUND("u"), NULL});
        assert_int_equal(owned_upsert("[]", OWNER, NULL), HF_E_INVALID);
        SCRIPT({HF_VERB_GET, HF_E_NOT_FOUND, NULL, NULL});
        assert_int_equal(owned_upsert("nonsense", OWNER, NULL), HF_E_INVALID);
        SCRIPT({HF_VERB_GET, 0, "nonsense", NULL});
        assert_int_equal(owned_upsert("{}", OWNER, NULL), HF_E_INVALID);
        assert_int_equal(f.status.error, HF_E_INVALID);
        assert_true(strncmp(f.status.message, "a: ", 3) == 0);
}

static void test_a_deletion_names_what_was_read(void **state) {
        SCRIPT({HF_VERB_GET, 0, FOUND("u"), NULL}, {HF_VERB_DELETE, 0, "{}", NULL});
        assert_int_equal(owned_delete(OWNER), 0);
        assert_string_equal(f.names[1], "a");
        assert_string_equal(f.sent[1],
                            "{\"preconditions\":{\"uid\":\"i\",\"resourceVersion\":\"7\"}}");
        SCRIPT({HF_VERB_GET, 0, FOUND("u"), NULL}, {HF_VERB_DELETE, HF_E_CONFLICT, NULL, "other"});
        assert_int_equal(owned_delete(OWNER), HF_E_CONFLICT);
        assert_string_equal(f.status.message, "other");
        SCRIPT({HF_VERB_GET, 0, FOUND("u"), NULL}, {HF_VERB_DELETE, HF_E_NOT_FOUND, NULL, "gone"});
        assert_int_equal(owned_delete(OWNER), 0);
        assert_string_equal(f.status.message, "");
        SCRIPT({HF_VERB_GET, HF_E_NOT_FOUND, NULL, NULL});
        assert_int_equal(owned_delete(OWNER), 0);
        SCRIPT({HF_VERB_GET, 0, FOUND("v"), NULL});
        assert_int_equal(owned_delete(OWNER), 0);
        SCRIPT({HF_VERB_GET, HF_E_FORBIDDEN, NULL, "no"});
        assert_int_equal(owned_delete(OWNER), HF_E_FORBIDDEN);
        script(NULL, 0);
        assert_int_equal(owned_delete("{}"), HF_E_INVALID);
}

#define TEST(name) cmocka_unit_test_setup_teardown(name, set_up, tear_down)

int main(void) {
        const struct CMUnitTest tests[] = {
                TEST(test_an_upsert_merges_members),
                TEST(test_an_upsert_that_changes_nothing_writes_nothing),
                TEST(test_an_upsert_creates_what_is_missing),
                TEST(test_an_upsert_tries_five_times),
                TEST(test_an_upsert_of_another_object_is_refused),
                TEST(test_an_upsert_needs_an_object),
                TEST(test_an_owned_object_is_created_with_its_owner),
                TEST(test_an_owned_object_may_have_no_namespace),
                TEST(test_an_owner_that_cannot_be_read_is_refused),
                TEST(test_a_request_of_the_wrong_size_is_refused),
                TEST(test_an_owned_object_is_changed_by_its_uid),
                TEST(test_an_owned_object_keeps_its_owner),
                TEST(test_an_object_of_another_is_left_alone),
                TEST(test_a_create_that_comes_second_is_tried_five_times),
                TEST(test_what_is_no_owned_object_is_refused),
                TEST(test_a_deletion_names_what_was_read),
        };
        return cmocka_run_group_tests(tests, NULL, NULL);
}

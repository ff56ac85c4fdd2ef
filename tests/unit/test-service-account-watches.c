/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Watches end when an object on which their token depends is deleted, or when the token expires.
 * The test moves the clock. The HTTP request is a fake one: this file has the functions of http.h
 * that are called.
 */
#undef NDEBUG
#include <setjmp.h>
#include <stdarg.h>
#include <stdatomic.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#include "api_fixture.h"
#include "base/json.h"
#include "base/sha256.h"
#include "hand_clock.h"
#include "patience.h"
#include "server/cacher/cacher.h"
#include "server/http/http.h"
#include "server/resources/rows/resource_table.h"
#include "server/service_accounts/account_watches.h"
#include "server/service_accounts/lookup.h"

static const struct hf_resource accounts = {.version = "v1", .plural = "serviceaccounts"},
                                secrets = {.version = "v1", .plural = "secrets"};

struct hfd_http_request {
        atomic_int refs;
};

struct hfd_http_request *hfd_http_request_ref(struct hfd_http_request *request) {
        atomic_fetch_add(&request->refs, 1);
        return request;
}

struct hfd_http_request *hfd_http_request_unref(struct hfd_http_request *request) {
        assert_true(atomic_fetch_sub(&request->refs, 1) > 0);
        return NULL;
}

/* A watch and its token. */
struct one {
        struct hfd_account_watch watch;
        struct hfd_http_request request;
        struct hfd_credential *credential;
        char uid[64], secret_uid[64];
        atomic_uint n_ends;
};

static void on_end(void *ctx) {
        struct one *one = ctx;

        assert_true(atomic_load(&one->request.refs) > 0);
        atomic_fetch_add(&one->n_ends, 1);
}

static void make(struct api_fixture *f, struct hf_resource resource, const char *name) {
        char body[300];

        (void)snprintf(body, sizeof body, "{\"metadata\":{\"name\":\"%s\"}}", name);
        api_fixture_make(f, resource, "default", body);
}

static void read_uid(struct api_fixture *f, struct hf_resource resource, const char *name,
                     char uid[64]) {
        struct hf__json *json = NULL;

        assert_int_equal(api_fixture_get(f, resource, "default", name), 0);
        assert_int_equal(hf__json_parse(f->last.body, strlen(f->last.body), &json, NULL), 0);
        (void)snprintf(uid, 64, "%s", hf__json_string(json, "metadata.uid"));
        hf__json_free(json);
}

/* A watch by a token that is valid for some seconds from now; secret NULL = not bound. */
static struct one *new_one(struct api_fixture *f, const char *account, const char *secret,
                           int64_t seconds) {
        struct one *one = calloc(1, sizeof *one);
        int64_t now = hand_clock.real(hand_clock.ctx) / HF_NSEC_PER_SEC;

        assert_non_null(one);
        read_uid(f, accounts, account, one->uid);
        if (secret)
                read_uid(f, secrets, secret, one->secret_uid);
        const struct hfd_credential credential = {.expires = now + seconds,
                                                  .ns = "default",
                                                  .account = account,
                                                  .account_uid = one->uid,
                                                  .secret = secret,
                                                  .secret_uid = secret ? one->secret_uid : NULL};
        one->credential = hfd_credential_new(&credential);
        assert_non_null(one->credential);
        one->watch = (struct hfd_account_watch){.credential = one->credential,
                                                .request = &one->request,
                                                .end = on_end,
                                                .ctx = one};
        return one;
}

static void free_one(struct one *one) {
        hfd_account_watches_untrack(&one->watch);
        PATIENCE_AWAIT(atomic_load(&one->request.refs) == 0);
        free(one->credential);
        free(one);
}

static struct hfd_account_watches *start(struct api_fixture *f) {
        struct hfd_account_watches *watches = NULL;

        assert_int_equal(hfd_account_watches_new(&f->host, f->cacher, &watches), 0);
        assert_int_equal(hfd_account_watches_start(watches), 0);
        return watches;
}

static void remove_object(struct api_fixture *f, struct hfd_account_watches *watches,
                          struct hf_resource resource, const char *name) {
        assert_int_equal(api_fixture_delete(f, resource, "default", name, NULL), 0);
        assert_int_equal(api_fixture_get(f, resource, "default", name), HF_E_NOT_FOUND);
        hfd_account_watches_changed(watches);
}

static void test_a_watch_ends_with_its_account_or_secret(void **state) {
        struct api_fixture *f = *state;
        struct hfd_account_watches *watches = start(f);
        struct one *ones[4];

        make(f, accounts, "gone");
        make(f, accounts, "kept");
        make(f, secrets, "gone");
        make(f, secrets, "kept");
        ones[0] = new_one(f, "gone", NULL, 1000);
        ones[1] = new_one(f, "kept", "gone", 1000);
        ones[2] = new_one(f, "kept", "kept", 1000);
        ones[3] = new_one(f, "kept", NULL, 1000);
        for (size_t i = 0; i < 4; i++)
                assert_true(hfd_account_watches_track(watches, &ones[i]->watch));
        remove_object(f, watches, accounts, "gone");
        PATIENCE_AWAIT(atomic_load(&ones[0]->n_ends) == 1);
        assert_int_equal(atomic_load(&ones[1]->n_ends), 0);
        remove_object(f, watches, secrets, "gone");
        PATIENCE_AWAIT(atomic_load(&ones[1]->n_ends) == 1);
        /* A new account or Secret of the same name does not make the old token valid. */
        make(f, accounts, "gone");
        make(f, secrets, "gone");
        assert_int_equal(api_fixture_get(f, accounts, "default", "gone"), 0);
        assert_int_equal(api_fixture_get(f, secrets, "default", "gone"), 0);
        for (size_t i = 0; i < 2; i++) {
                hfd_account_watches_untrack(&ones[i]->watch);
                assert_false(hfd_account_watches_track(watches, &ones[i]->watch));
        }
        assert_int_equal(atomic_load(&ones[0]->n_ends), 1);
        assert_int_equal(atomic_load(&ones[2]->n_ends), 0);
        assert_int_equal(atomic_load(&ones[3]->n_ends), 0);
        for (size_t i = 0; i < 4; i++)
                free_one(ones[i]);
        hfd_account_watches_free(watches);
}

/* Replaces the Secret "s", which holds the token "t", with one that has the label. */
static void put_label(struct api_fixture *f, const char *value) {
        char body[300];

        (void)snprintf(body, sizeof body,
                       "{\"metadata\":{\"name\":\"s\",\"labels\":{\"a\":\"b\","
                       "\"kubernetes.io/legacy-token-invalid-since\":\"%s\"}},"
                       "\"data\":{\"token\":\"dA==\"}}",
                       value);
        assert_int_equal(api_fixture_request(f, HF_VERB_UPDATE, secrets, "default", "s", NULL,
                                             body),
                         0);
        assert_int_equal(api_fixture_get(f, secrets, "default", "s"), 0);
}

static void test_a_token_ends_when_its_secret_marks_it_as_invalid(void **state) {
        struct api_fixture *f = *state;
        struct hfd_account_watches *watches = start(f);
        struct hf_status status = {0};
        struct one *one;

        make(f, accounts, "sa");
        api_fixture_make(f, secrets, "default",
                         "{\"metadata\":{\"name\":\"s\"},\"data\":{\"token\":\"dA==\"}}");
        one = new_one(f, "sa", NULL, 1000);
        struct hfd_credential credential = *one->credential;
        credential.secret = "s";
        credential.of_secret = true;
        hf__sha256("t", 1, credential.digest);
        struct hfd_credential *of_account = one->credential;
        one->credential = hfd_credential_new(&credential);
        assert_non_null(one->credential);
        free(of_account);
        one->watch.credential = one->credential;
        assert_true(hfd_account_watches_track(watches, &one->watch));
        put_label(f, "");
        assert_int_equal(hfd_account_lookup(f->cacher, one->credential, 0, &status), 0);
        put_label(f, "2026-11-30");
        assert_int_equal(hfd_account_lookup(f->cacher, one->credential, 0, &status),
                         HF_E_UNAUTHORIZED);
        assert_non_null(strstr(status.message, "has been marked invalid"));
        hfd_account_watches_changed(watches);
        PATIENCE_AWAIT(atomic_load(&one->n_ends) == 1);
        free_one(one);
        hfd_account_watches_free(watches);
}

/* The text of an account may have a megabyte. The test damages it after the first look-up. */
static void test_the_text_of_an_object_is_read_once(void **state) {
        struct api_fixture *f = *state;
        struct hfd_object *object;
        struct one *one;

        make(f, accounts, "sa");
        one = new_one(f, "sa", NULL, INT32_MAX);
        assert_int_equal(hfd_account_lookup(f->cacher, one->credential, 0, NULL), 0);
        object = hfd_cacher_get(f->cacher, hfd_resource_find("", "v1", "serviceaccounts"),
                                "default/sa");
        assert_non_null(object);
        char *uid = strstr(object->bytes->data, one->uid), first = *uid;
        *uid = '?';
        assert_int_equal(hfd_account_lookup(f->cacher, one->credential, 0, NULL), 0);
        *uid = first;
        hfd_object_unref(object);
        /* Another revision has another text. */
        assert_int_equal(api_fixture_delete(f, accounts, "default", "sa", NULL), 0);
        make(f, accounts, "sa");
        assert_int_equal(api_fixture_get(f, accounts, "default", "sa"), 0);
        assert_int_equal(hfd_account_lookup(f->cacher, one->credential, 0, NULL),
                         HF_E_UNAUTHORIZED);
        free_one(one);
}

/* The clock may have been moved during a round of checks, which makes the pause after it as long as
 * possible. So the clock has to move on until the pause is over. */
static void await_expiry(struct one *one) {
        for (int i = 0; i < 10000 && atomic_load(&one->n_ends) == 0; i++)
                hand_clock_move(HF_NSEC_PER_SEC);
        PATIENCE_AWAIT(atomic_load(&one->n_ends) == 1);
}

static void test_a_watch_ends_when_its_token_expires(void **state) {
        struct api_fixture *f = *state;
        struct hfd_account_watches *watches = start(f);
        const hf_nsec begin = hand_clock_now();
        struct one *late, *early, *none;

        make(f, accounts, "sa");
        late = new_one(f, "sa", NULL, 20000);
        early = new_one(f, "sa", NULL, 50);
        none = new_one(f, "sa", NULL, 0);
        assert_true(hfd_account_watches_track(watches, &late->watch));
        assert_true(hfd_account_watches_track(watches, &early->watch));
        assert_false(hfd_account_watches_track(watches, &none->watch));
        hand_clock_move(50 * HF_NSEC_PER_SEC);
        await_expiry(early);
        assert_int_equal(atomic_load(&late->n_ends), 0);
        /* Its expiry is further away than the longest sleep. */
        hand_clock_move(begin + 19999 * HF_NSEC_PER_SEC - hand_clock_now());
        assert_int_equal(hfd_account_lookup(f->cacher, late->credential,
                                            hand_clock.real(hand_clock.ctx) / HF_NSEC_PER_SEC,
                                            NULL),
                         0);
        hand_clock_move(HF_NSEC_PER_SEC);
        await_expiry(late);
        free_one(late);
        free_one(early);
        free_one(none);
        hfd_account_watches_free(watches);
}

static void test_many_watches_end_once(void **state) {
        enum { N = 200 };
        struct api_fixture *f = *state;
        struct hfd_account_watches *watches = start(f);
        struct one *ones[N];

        make(f, accounts, "odd");
        make(f, accounts, "even");
        for (size_t i = 0; i < N; i++) {
                ones[i] = new_one(f, i % 2 ? "odd" : "even", NULL, 1000);
                assert_true(hfd_account_watches_track(watches, &ones[i]->watch));
        }
        /* Some watches are untracked while the thread asks about others. */
        hfd_account_watches_changed(watches);
        for (size_t i = 0; i < N; i += 4)
                hfd_account_watches_untrack(&ones[i]->watch);
        remove_object(f, watches, accounts, "odd");
        for (size_t i = 1; i < N; i += 2)
                PATIENCE_AWAIT(atomic_load(&ones[i]->n_ends) == 1);
        remove_object(f, watches, accounts, "even");
        for (size_t i = 2; i < N; i += 4)
                PATIENCE_AWAIT(atomic_load(&ones[i]->n_ends) == 1);
        for (size_t i = 0; i < N; i++) {
                assert_int_equal(atomic_load(&ones[i]->n_ends), i % 4 == 0 ? 0 : 1);
                free_one(ones[i]);
        }
        hfd_account_watches_free(watches);
}

#define TIMED_TEST(name)                                                                           \
        cmocka_unit_test_setup_teardown(name, api_fixture_set_up_by_hand, api_fixture_tear_down)

int main(void) {
        const struct CMUnitTest tests[] = {
                TIMED_TEST(test_a_watch_ends_with_its_account_or_secret),
                TIMED_TEST(test_a_token_ends_when_its_secret_marks_it_as_invalid),
                TIMED_TEST(test_the_text_of_an_object_is_read_once),
                TIMED_TEST(test_a_watch_ends_when_its_token_expires),
                TIMED_TEST(test_many_watches_end_once),
        };
        return cmocka_run_group_tests(tests, NULL, NULL);
}

/* SPDX-License-Identifier: Apache-2.0 */
/* The API over values that cannot be decrypted. The server of this test has no encryption, so it
 * can read no encrypted value. */
#undef NDEBUG
#include <pthread.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <string.h>

#include <cmocka.h>

#include "api_fixture.h"
#include "client_watch.h"
#include "patience.h"
#include "server/cacher/state/cacher_state.h"
#include "server/cacher/sync/consistent_read.h"
#include "store_client.h"

#define BAD "/registry/configmaps/default/bad"
#define WHY                                                                                        \
        "Internal error occurred: unable to transform key \"" BAD                                  \
        "\": identity transformer tried to read encrypted data"
#define NAMED_BAD "{\"metadata\":{\"name\":\"bad\",\"namespace\":\"default\"}}"

/* value NULL deletes the key. Waits until the cache has the change. */
static void write_raw(struct api_fixture *f, const char *key, const char *value) {
        uint64_t revision =
                value ? store_client_put(f->store, key, value) : store_client_delete(f->store, key);

        assert_true(revision > 0);
        PATIENCE_AWAIT(hfd_cacher_revision(f->cacher) >= revision);
}

static void expect_sealed(struct api_fixture *f, int r) {
        assert_int_not_equal(r, 0);
        api_fixture_expect_failure(f, 500, "InternalError", WHY);
}

static int list(struct api_fixture *f, const char *ns, const char *query) {
        return api_fixture_request(f, HF_VERB_LIST, api_configmaps, ns, NULL, query, NULL);
}

static void expect_reads_fail(struct api_fixture *f) {
        expect_sealed(f, api_fixture_get(f, api_configmaps, "default", "bad"));
        expect_sealed(f, list(f, "default", NULL));
        expect_sealed(f, list(f, NULL, "limit=1"));
        expect_sealed(f, list(f, "default", "labelSelector=a%3Db"));
        expect_sealed(f, list(f, "default", "fieldSelector=metadata.name%3Dbad"));
        expect_sealed(f, api_fixture_request(f, HF_VERB_DELETE_COLLECTION, api_configmaps,
                                             "default", NULL, NULL, NULL));
}

static void test_reads_of_a_sealed_value_fail_and_others_do_not(void **state) {
        struct api_fixture *f = *state;

        api_fixture_make(f, api_configmaps, "default", "{\"metadata\":{\"name\":\"good\"}}");
        write_raw(f, BAD, "k8s:enc:aesgcm:v1:k:xyz");
        expect_reads_fail(f);
        assert_int_equal(api_fixture_get(f, api_configmaps, "default", "good"), 0);
        assert_int_equal(list(f, "kube-system", NULL), 0);
        assert_int_equal(list(f, "default", "fieldSelector=metadata.name%3Dgood"), 0);
        assert_int_equal(api_fixture_request(f, HF_VERB_LIST, api_workspaces, NULL, NULL, NULL,
                                             NULL),
                         0);
        pthread_mutex_lock(&f->cacher->mu); /* reads go to the store */
        f->cacher->reads->direct_until = HF_NSEC_NEVER;
        pthread_mutex_unlock(&f->cacher->mu);
        expect_sealed(f, api_fixture_get(f, api_configmaps, "default", "bad"));
        expect_sealed(f, list(f, "default", NULL));
        assert_int_equal(api_fixture_get(f, api_configmaps, "default", "good"), 0);
        expect_sealed(f, list(f, "default", "fieldSelector=metadata.name%3Dbad"));
        /* No object has this name, with which that of the sealed one begins. */
        assert_int_equal(list(f, "default", "fieldSelector=metadata.name%3Dba"), 0);
        assert_int_equal(api_fixture_count_at(f, "items"), 0);
}

static void test_writes_over_a_sealed_value_change_nothing(void **state) {
        struct api_fixture *f = *state;
        struct store_reply reply;

        write_raw(f, BAD, "k8s:enc:aesgcm:v1:k:xyz");
        expect_sealed(f, api_fixture_request(f, HF_VERB_CREATE, api_configmaps, "default", NULL,
                                             NULL, NAMED_BAD));
        expect_sealed(f, api_fixture_request(f, HF_VERB_UPDATE, api_configmaps, "default", "bad",
                                             NULL, NAMED_BAD));
        expect_sealed(f, api_fixture_patch(f, api_configmaps, "default", "bad", HFD_SUB_NONE,
                                           HFD_PATCH_MERGE, NULL, "{\"data\":{}}"));
        expect_sealed(f, api_fixture_delete(f, api_configmaps, "default", "bad", NULL));
        assert_int_equal(store_client_get(f->store, BAD, &reply), 0);
        assert_string_equal(store_reply_value(&reply, 0), "k8s:enc:aesgcm:v1:k:xyz");
        store_reply_deinit(&reply);
}

static struct client_watch *watch(struct api_fixture *f, const char *ns, const char *revision) {
        const struct hf_watch_spec spec = {.size = sizeof spec,
                                           .resource = api_configmaps,
                                           .ns = ns,
                                           .resource_version = revision};

        return client_watch_new(f->client, &spec);
}

/* A client that saw a DELETED event would believe that the object was deleted. */
static void test_a_watch_ends_without_a_deletion_and_none_begins(void **state) {
        struct api_fixture *f = *state;
        char before[32];

        api_fixture_make(f, api_configmaps, "default", NAMED_BAD);
        (void)snprintf(before, sizeof before, "%s",
                       api_fixture_text_at(f, "metadata.resourceVersion"));
        struct client_watch *seen = watch(f, "default", NULL);
        client_watch_await(seen, 1);
        write_raw(f, BAD, "k8s:enc:aesgcm:v1:k:xyz");
        assert_int_equal(client_watch_await_end(seen), HF_E_GONE);
        assert_int_equal(seen->n, 1);
        client_watch_free(seen);
        expect_reads_fail(f);
        seen = watch(f, "default", before);
        assert_int_not_equal(client_watch_await_end(seen), 0);
        assert_int_equal(seen->n, 0);
        client_watch_free(seen);
        /* When the value can be read again, a client must list: an earlier revision is too old for
         * a watch. */
        write_raw(f, BAD, NAMED_BAD);
        assert_int_equal(api_fixture_get(f, api_configmaps, "default", "bad"), 0);
        assert_int_equal(list(f, "default", NULL), 0);
        assert_int_equal(api_fixture_count_at(f, "items"), 1);
        seen = watch(f, "default", before);
        assert_int_equal(client_watch_await_end(seen), HF_E_GONE);
        client_watch_free(seen);
}

static void test_a_filling_finds_sealed_values_and_their_end(void **state) {
        struct api_fixture *f = *state;
        struct hf_cancel *token = NULL;

        api_fixture_make(f, api_configmaps, "default", "{\"metadata\":{\"name\":\"good\"}}");
        write_raw(f, BAD, "k8s:enc:aesgcm:v1:k:xyz");
        assert_int_equal(hf_cancel_new(NULL, hf_clock_system(), &token), 0);
        assert_int_equal(hfd_cacher_refill(f->cacher, token), 0);
        hf_cancel_unref(token);
        expect_reads_fail(f);
        assert_int_equal(api_fixture_get(f, api_configmaps, "default", "good"), 0);
        write_raw(f, BAD, NULL);
        assert_int_equal(list(f, "default", NULL), 0);
        assert_int_equal(api_fixture_count_at(f, "items"), 1);
        assert_int_equal(api_fixture_get(f, api_configmaps, "default", "bad"), HF_E_NOT_FOUND);
}

int main(void) {
        const struct CMUnitTest tests[] = {
                API_TEST(test_reads_of_a_sealed_value_fail_and_others_do_not),
                API_TEST(test_writes_over_a_sealed_value_change_nothing),
                API_TEST(test_a_watch_ends_without_a_deletion_and_none_begins),
                API_TEST(test_a_filling_finds_sealed_values_and_their_end),
        };
        return cmocka_run_group_tests(tests, NULL, NULL);
}

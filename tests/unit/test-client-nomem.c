/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Each allocation of the client's parts fails once. The function reports that or does its work, and
 * leaves nothing behind. test-client-nomem-work.c has informers and REST clients while they work.
 */
#undef NDEBUG
#include <assert.h>
#include <errno.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include <cmocka.h>

#include <holdfast/client_port.h>
#include <holdfast/informer.h>
#include <holdfast/metrics.h>
#include <holdfast/workqueue.h>

#include "client/key_index.h"
#include "client/kubeconfig.h"
#include "client/yaml.h"
#include "client/yaml_body.h"
#include "client/yaml_duplicates.h"
#include "failing_memory.h"
#include "fake_api_client.h"

static const struct hf_host silent = {.size = sizeof silent};

/* Asserts that r says whether an allocation has failed since `failing_memory_arm`. */
static void assert_honest(int r) {
        failing_memory_disarm();
        if (failing_memory_hit())
                assert_true(is_shortage(r));
        else
                assert_int_equal(r, 0);
}

/* ---- work queues ---- */

static void queue_life(int n) {
        struct hf_host host = {.size = sizeof host};
        struct hf_workqueue *queue = NULL;

        assert_int_equal(hf_metrics_new(&host.metrics), 0);
        failing_memory_arm(n);
        int r = hf_workqueue_new(&host, "q", &queue);
        failing_memory_disarm();
        assert_true(r == 0 || is_shortage(r));
        assert_true((r == 0) == (queue != NULL));
        hf_workqueue_free(queue);
        hf_metrics_free(host.metrics);
}

static void queue_add_life(int n) {
        struct hf_workqueue *queue;

        assert_int_equal(hf_workqueue_new(&silent, "q", &queue), 0);
        failing_memory_arm(n);
        int r = hf_workqueue_add(queue, "a");
        r = r != 0 ? r : hf_workqueue_retry(queue, "b");
        r = r != 0 ? r : hf_workqueue_add_after(queue, "c", HF_NSEC_PER_SEC);
        assert_honest(r);
        hf_workqueue_free(queue);
}

static void test_a_queue_takes_a_key_or_says_no(void **state) {
        failing_memory_try_all(queue_life, 1);
        failing_memory_try_all(queue_add_life, 3);
}

/* ---- indexes ---- */

struct item {
        struct hf__keyed keyed; /* first */
        char key[8];
};

static void key_index_life(int n) {
        static struct item items[100];
        struct hf__key_index index = {0};
        int n_in = 0, n_failed = 0;

        failing_memory_arm(n);
        for (int i = 0; i < 100; i++) {
                (void)snprintf(items[i].key, sizeof items[i].key, "k%d", i);
                items[i].keyed = (struct hf__keyed){.key = items[i].key};
                int r = hf__key_index_insert(&index, &items[i].keyed);
                assert_true(r >= 0 || is_shortage(r));
                n_failed += r < 0;
                n_in += r >= 0;
                /* an added key stays in the index, even if the index could not grow */
                assert_true((hf__key_index_find(&index, items[i].key) != NULL) == (r >= 0));
        }
        failing_memory_disarm();
        assert_int_equal(n_failed, failing_memory_hit());
        assert_int_equal(index.n, n_in);
        hf__key_index_done(&index);
}

static void test_a_key_index_keeps_what_it_has(void **state) {
        failing_memory_try_all(key_index_life, 1);
}

/* ---- informers ---- */

static void index_by_all(void *ctx, const char *ns, const char *name, const char *object, size_t n,
                         struct hf_informer_values *values) {
        static unsigned n_calls;
        char value[16];

        /* A failed attempt must leave none of its values in the index. */
        (void)snprintf(value, sizeof value, "c%u", n_calls++);
        (void)hf_informer_values_add(values, value);
        for (int i = 0; i < 4; i++) {
                (void)snprintf(value, sizeof value, "v%d", i);
                (void)hf_informer_values_add(values, value);
        }
}
static void ignore_event(void *ctx, enum hf_event_type type, const char *ns, const char *name,
                         const char *object, size_t n) {}

/* Creates an informer without running it. Each failure is reported. */
static void informer_life(int n) {
        struct hf_client client = {.host = &silent};
        const struct hf_informer_config config = {.size = sizeof config,
                                                  .client = &client,
                                                  .resource = {"apps", "v1", "things"},
                                                  .ns = "default",
                                                  .query = "labelSelector=a"};
        struct hf_informer *informer = NULL;
        struct hf_informer_handler *handler;

        failing_memory_arm(n);
        int r = hf_informer_new(&silent, &config, &informer);
        assert_true((r == 0) == (informer != NULL));
        r = r != 0 ? r : hf_informer_add_index(informer, "i", index_by_all, NULL);
        r = r != 0 ? r : hf_informer_add_handler(informer, ignore_event, NULL, &handler);
        assert_honest(r);
        hf_informer_free(informer);
}

/* Does the same with a thread that informers share. */
static void informer_thread_life(int n) {
        struct hf_informer_thread *thread = NULL;

        failing_memory_arm(n);
        int r = hf_informer_thread_new(&silent, &thread);
        assert_true((r == 0) == (thread != NULL));
        assert_honest(r);
        hf_informer_thread_free(thread);
}

static void count_object(void *ctx, const char *ns, const char *name, const char *object,
                         size_t n) {
        (*(int *)ctx)++;
}

/* Runs an informer. Failed steps are repeated, and store and index agree in the end. */
static void running_life(int n) {
        struct fake_api *api = fake_api_new();
        struct fake_api_client *client = fake_api_client_new(api);
        const struct hf_informer_config config = {.size = sizeof config,
                                                  .client = &client->base,
                                                  .resource = {"", "v1", "things"},
                                                  .metadata_only = n % 2 == 1};
        struct hf_informer *informer = NULL;
        struct hf_cancel *guard = NULL;
        char revision[24], name[8], *object = NULL;
        uint64_t put = 0;

        assert_int_equal(hf_cancel_new(NULL, NULL, &guard), 0);
        hf_cancel_set_deadline(guard, hf_now(hf_clock_system()) + 20 * HF_NSEC_PER_SEC);
        fake_api_set_page(api, 2);
        for (int i = 0; i < 2; i++) {
                (void)snprintf(name, sizeof name, "n%d", i);
                (void)fake_api_put_thing(api, "a", name, "1");
        }
        (void)fake_api_put_thing(api, "a", "n\\\"2", "1"); /* a name with an escape */
        assert_int_equal(hf_informer_new(&api->host, &config, &informer), 0);
        assert_int_equal(hf_informer_add_index(informer, "i", index_by_all, NULL), 0);
        /* Before the start, because the informer's thread allocates at once. */
        failing_memory_arm(n);
        int r = hf_informer_start(informer);
        if (r != 0) {
                assert_true(is_shortage(r));
                r = hf_informer_start(informer);
        }
        assert_int_equal(r, 0);
        assert_int_equal(hf_informer_wait(informer, NULL, guard), 0);
        put = fake_api_put_thing(api, "a", "n1", "2");
        (void)snprintf(revision, sizeof revision, "%llu", (unsigned long long)put);
        assert_int_equal(hf_informer_wait(informer, revision, guard), 0);
        r = hf_informer_get(informer, "a", "n1", &object, NULL);
        assert_true(r == 0 || is_shortage(r));
        assert_true((r == 0) == (object != NULL));
        failing_memory_disarm();
        assert_int_equal(hf_informer_count(informer), 3);
        for (int i = 0; i < 4; i++) {
                int n_found = 0;
                (void)snprintf(name, sizeof name, "v%d", i);
                assert_int_equal(hf_informer_by_index(informer, "i", name, count_object, &n_found),
                                 0);
                assert_int_equal(n_found, 3);
        }
        free(object);
        hf_informer_free(informer);
        hf_cancel_unref(guard);
        hf_client_free(&client->base);
        fake_api_free(api);
}

static void test_an_informer_reports_or_repeats_what_fails(void **state) {
        failing_memory_try_all(informer_life, 5);
        failing_memory_try_all(informer_thread_life, 2);
        failing_memory_try_all(running_life, 20);
}

static void wait_for_many_life(int n) {
        struct hf_client client = {.host = &silent};
        const struct hf_informer_config config = {.size = sizeof config,
                                                  .client = &client,
                                                  .resource = {"", "v1", "things"}};
        struct hf_informer *informers[6];
        struct hf_cancel *token;

        for (int i = 0; i < 6; i++)
                assert_int_equal(hf_informer_new(&silent, &config, &informers[i]), 0);
        assert_int_equal(hf_cancel_new(NULL, NULL, &token), 0);
        hf_cancel_fire(token, HF_CANCEL_STOPPING);
        failing_memory_arm(n);
        int r = hf_informer_wait_all(informers, 6, NULL, token);
        failing_memory_disarm();
        assert_int_equal(r, failing_memory_hit() ? -ENOMEM : HF_E_CANCELED);
        /* Up to four of them need no memory. */
        failing_memory_arm(0);
        assert_int_equal(hf_informer_wait_all(informers, 4, NULL, token), HF_E_CANCELED);
        failing_memory_arm(n);
        if (hf_informer_wait_all(informers, 5, NULL, token) == -ENOMEM)
                assert_true(failing_memory_hit());
        failing_memory_disarm();
        for (int i = 0; i < 6; i++)
                hf_informer_free(informers[i]);
        hf_cancel_unref(token);
}

static void test_a_wait_for_many_informers_reports_a_shortage(void **state) {
        failing_memory_try_all(wait_for_many_life, 1);
}

/* ---- requests that wait, and texts ---- */

static void do_life(int n) {
        struct fake_api *api = fake_api_new();
        struct fake_api_client *client = fake_api_client_new(api);
        const struct hf_request request = {.size = sizeof request,
                                           .verb = HF_VERB_GET,
                                           .resource = {"", "v1", "things"},
                                           .ns = "a",
                                           .name = "one"};
        struct hf_status status = {0};
        char *body = NULL;
        size_t n_body = 0;

        (void)fake_api_put_thing(api, "a", "one", "1");
        failing_memory_arm(n);
        int r = hf_client_do(&client->base, &request, hf_cancel_never(), &body, &n_body, &status);
        assert_honest(r);
        assert_true((r == 0) == (body != NULL));
        assert_int_equal(status.error, r);
        if (body)
                assert_int_equal(strlen(body), n_body);
        free(body);
        hf_client_free(&client->base);
        fake_api_free(api);
}

static void test_a_request_that_waits_reports_a_shortage(void **state) {
        failing_memory_try_all(do_life, 1);
}

static int refuse_request(struct hf_client *self, const struct hf_request *request,
                          hf_response_fn done, void *ctx, uint64_t *ret_id) {
        return HF_E_CLOSED;
}
static void test_a_request_that_never_begins_leaves_nothing(void **state) {
        static const struct hf_client_ops ops = {.size = sizeof ops, .request = refuse_request};
        struct hf_client client = {.ops = &ops, .host = &silent};
        const struct hf_request request = {.size = sizeof request,
                                           .verb = HF_VERB_LIST,
                                           .resource = {"", "v1", "things"}};
        size_t before = failing_memory_n_live();

        assert_int_equal(hf_client_do(&client, &request, hf_cancel_never(), NULL, NULL, NULL),
                         HF_E_CLOSED);
        assert_int_equal(failing_memory_n_live(), before);
}

/* ---- files ---- */

/* A name for each anchor is memory, too. */
#define YAML "a: &x [1, {b: '2'}]\nc: *x\nd: 3\nd: 4\n"

static void yaml_life(int n) {
        struct hf__strbuf out = {0};
        struct hf_status status = {0};

        failing_memory_arm(n);
        int r = hf__yaml_body_to_json(YAML, strlen(YAML), &out, &status);
        assert_honest(r);
        assert_int_equal(status.error, r);
        if (r == 0)
                assert_string_equal(out.data,
                                    "{\"a\":[1,{\"b\":\"2\"}],\"c\":[1,{\"b\":\"2\"}],\"d\":3,"
                                    "\"d\":4}");
        hf__strbuf_done(&out);
}

static void duplicates_life(int n) {
        struct hf__strbuf out = {0};

        failing_memory_arm(n);
        int r = hf__yaml_duplicates(YAML, strlen(YAML), 3, &out);
        assert_honest(r != 0 ? r : out.error);
        if (r == 0 && out.error == 0)
                assert_string_equal(out.data, "yaml: unmarshal errors:"
                                              "\n  line 4: key \"d\" already set in map");
        hf__strbuf_done(&out);
}

static void test_a_text_is_converted_whole_or_not_at_all(void **state) {
        failing_memory_try_all(yaml_life, 3);
        failing_memory_try_all(duplicates_life, 3);
}

/* Every file of a kubeconfig, and every text in it, is there or the kubeconfig is refused. */
static void kubeconfig_of_files_life(int n) {
        static const char format[] =
                "current-context: c\ncontexts: [{name: c, context: {cluster: k, user: u}}]\n"
                "clusters: [{name: k, cluster: {server: 'https://h:1', tls-server-name: s,\n"
                "  certificate-authority: %s}}]\n"
                "users: [{name: u, user: {tokenFile: t, client-certificate-data: Yw==,\n"
                "  client-key-data: aw==}}]\n";
        char path[] = "/tmp/holdfast-nomem-XXXXXX", text[512];
        struct hf__kubeconfig config = {0};
        struct hf_status status = {0};
        int fd = mkstemp(path);

        assert_true(fd >= 0);
        assert_int_equal(write(fd, "CA", 2), 2);
        (void)close(fd);
        (void)snprintf(text, sizeof text, format, strrchr(path, '/') + 1);
        failing_memory_arm(n);
        int r = hf__kubeconfig_parse(text, strlen(text), "/tmp", "file", &config, &status);
        assert_honest(r);
        assert_int_equal(status.error, r);
        if (r == 0) {
                assert_string_equal(config.rest.server, "https://h:1");
                assert_string_equal(config.rest.server_name, "s");
                assert_string_equal(config.rest.ca_pem, "CA");
                assert_string_equal(config.rest.token_file, "/tmp/t");
                assert_string_equal(config.rest.cert_pem, "c");
                assert_string_equal(config.rest.key_pem, "k");
                hf__kubeconfig_done(&config);
        }
        assert_int_equal(unlink(path), 0);
}

static void token_file_life(int n) {
        char path[] = "/tmp/holdfast-nomem-XXXXXX";
        const struct hf_rest_config config = {.size = sizeof config,
                                              .server = "http://127.0.0.1:1",
                                              .token_file = path};
        struct hf_client *client = NULL;
        int fd = mkstemp(path);

        assert_true(fd >= 0);
        assert_int_equal(write(fd, "t", 1), 1);
        (void)close(fd);
        failing_memory_arm(n);
        int r = hf_rest_client_new(&silent, &config, &client, NULL);
        assert_honest(r);
        assert_int_equal(r == 0, client != NULL);
        hf_client_free(client);
        assert_int_equal(unlink(path), 0);
}

static void test_a_client_without_its_token_is_not_made(void **state) {
        failing_memory_try_all(token_file_life, 5);
}

static void kubeconfig_life(int n) {
        static const char text[] =
                "apiVersion: v1\nkind: Config\ncurrent-context: c\ncontexts:\n- name: c\n"
                "  context: {cluster: k, user: u}\nclusters:\n- name: k\n"
                "  cluster: {server: 'http://127.0.0.1:1'}\nusers:\n- name: u\n"
                "  user: {token: t}\n";
        char path[] = "/tmp/holdfast-nomem-XXXXXX";
        struct hf_client *client = NULL;
        struct hf_status status = {0};
        int fd = mkstemp(path);

        assert_true(fd >= 0);
        assert_int_equal(write(fd, text, sizeof text - 1), sizeof text - 1);
        /* Longer than the first read of the file. */
        static char comment[9000];
        memset(comment, '#', sizeof comment - 1);
        assert_int_equal(write(fd, comment, sizeof comment - 1), sizeof comment - 1);
        (void)close(fd);
        failing_memory_arm(n);
        int r = hf_rest_client_from_kubeconfig(&silent, path, &client, &status);
        (void)unlink(path);
        assert_honest(r);
        assert_true((r == 0) == (client != NULL));
        hf_client_free(client);
}

static void test_a_kubeconfig_is_read_whole_or_not_at_all(void **state) {
        failing_memory_try_all(kubeconfig_life, 10);
        failing_memory_try_all(kubeconfig_of_files_life, 10);
}

int main(void) {
        const struct CMUnitTest tests[] = {
                cmocka_unit_test(test_a_queue_takes_a_key_or_says_no),
                cmocka_unit_test(test_a_key_index_keeps_what_it_has),
                cmocka_unit_test(test_an_informer_reports_or_repeats_what_fails),
                cmocka_unit_test(test_a_wait_for_many_informers_reports_a_shortage),
                cmocka_unit_test(test_a_request_that_waits_reports_a_shortage),
                cmocka_unit_test(test_a_request_that_never_begins_leaves_nothing),
                cmocka_unit_test(test_a_text_is_converted_whole_or_not_at_all),
                cmocka_unit_test(test_a_client_without_its_token_is_not_made),
                cmocka_unit_test(test_a_kubeconfig_is_read_whole_or_not_at_all),
        };
        fake_api_shield = (struct fake_api_shield){.enter = failing_memory_enter,
                                                   .leave = failing_memory_leave};
        return cmocka_run_group_tests(tests, NULL, NULL);
}

/* SPDX-License-Identifier: Apache-2.0 */
/* A store that encrypts, over the store in memory: the values that its users see, and the values in
 * the inner store.
 */
#undef NDEBUG
#include <errno.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stdatomic.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#include "server/encryption/decrypt.h"
#include "server/encryption/encrypted_store.h"
#include "server/storage/memory/store.h"
#include "store_client.h"
#include "watch_recorder.h"

#define SECRET "/registry/secrets/default/a"
#define MAP    "/registry/configmaps/default/a"
#define WIDGET "/registry/example.com/widgets/default/a"
#define PLAIN  "{\"password\":\"opensesame\"}"

struct fixture {
        struct hf_host host;
        struct hfd_store *inner, *store;
};

static atomic_int n_nonces;
static atomic_bool no_random;

static int count_bytes(uint8_t *ret_bytes, size_t n) {
        if (atomic_load(&no_random))
                return -EIO;
        memset(ret_bytes, atomic_fetch_add(&n_nonces, 1) + 1, n);
        return 0;
}

/* The key of this name encrypts. The key of `other` decrypts too, unless it is NULL, and plain
 * values can be read. */
static struct hfd_encryption *make_encryption(const char *name, const char *other) {
        struct hfd_encryption *encryption = hfd_encryption_new(name, strlen(name));
        struct hfd_encryption_rule *rule = NULL;
        uint8_t key[32] = {0};

        assert_int_equal(hfd_encryption_add_rule(encryption, &rule), 0);
        assert_int_equal(hfd_encryption_add_resource(rule, "secrets", ""), 0);
        assert_int_equal(hfd_encryption_add_resource(rule, "widgets", "example.com"), 0);
        key[0] = (uint8_t)name[0];
        assert_int_equal(hfd_encryption_add_key(rule, HFD_AES_GCM, name, key, sizeof key), 0);
        if (other) {
                key[0] = (uint8_t)other[0];
                assert_int_equal(hfd_encryption_add_key(rule, HFD_AES_GCM, other, key, sizeof key),
                                 0);
        }
        assert_int_equal(hfd_encryption_add_identity(rule), 0);
        return encryption;
}

static int set_up(void **state) {
        struct fixture *f = calloc(1, sizeof *f);
        struct hfd_encryption *encryption = make_encryption("k", NULL);

        f->host = (struct hf_host){.size = sizeof f->host, .clock = hf_clock_system()};
        atomic_store(&no_random, false);
        assert_int_equal(hfd_memory_store_new(&f->host, &f->inner), 0);
        assert_int_equal(hfd_encrypted_store_new(f->inner, "/registry", encryption, count_bytes,
                                                 &f->store),
                         0);
        (void)hfd_encryption_unref(encryption);
        *state = f;
        return 0;
}

static int tear_down(void **state) {
        struct fixture *f = *state;

        f->store->ops->free(f->store);
        free(f);
        return 0;
}

static void expect_at(struct hfd_store *store, const char *key, const char *expected) {
        struct store_reply reply;

        assert_int_equal(store_client_get(store, key, &reply), 0);
        assert_int_equal(reply.n_kvs, 1);
        assert_string_equal(store_reply_value(&reply, 0), expected);
        store_reply_deinit(&reply);
}

/* Asserts how the stored value begins, and returns a reference to it. */
static struct hf__buf *expect_stored(struct fixture *f, const char *key, const char *beginning) {
        struct store_reply reply;

        assert_int_equal(store_client_get(f->inner, key, &reply), 0);
        assert_int_equal(reply.n_kvs, 1);
        struct hf__buf *value = hf__buf_ref(reply.kvs[0].value);
        assert_memory_equal(value->data, beginning, strlen(beginning));
        store_reply_deinit(&reply);
        return value;
}

/* The store does not need to know their definition. */
static void test_custom_resources_are_encrypted(void **state) {
        static const char *const others[] = {"/registry/example.com/gadgets/default/a",
                                             "/registry/other.example.com/widgets/default/a",
                                             "/registry/example.com/widgets/a/b/c"};
        struct fixture *f = *state;

        assert_true(store_client_put(f->store, WIDGET, PLAIN) > 0);
        hf__buf_unref(expect_stored(f, WIDGET, "k8s:enc:aesgcm:v1:k:"));
        expect_at(f->store, WIDGET, PLAIN);
        for (size_t i = 0; i < sizeof others / sizeof others[0]; i++) {
                assert_true(store_client_put(f->store, others[i], PLAIN) > 0);
                expect_at(f->inner, others[i], PLAIN);
        }
}

static void test_only_covered_keys_are_encrypted(void **state) {
        struct fixture *f = *state;
        struct store_reply reply;

        assert_true(store_client_put(f->store, SECRET, PLAIN) > 0);
        assert_true(store_client_put(f->store, MAP, PLAIN) > 0);
        assert_true(store_client_put(f->store, "/registry/leases/a/b", PLAIN) > 0);
        assert_true(store_client_put(f->store, "/registry.holdfast/terms/a/b", "x\n-") > 0);
        struct hf__buf *value = expect_stored(f, SECRET, "k8s:enc:aesgcm:v1:k:");
        assert_null(memmem(value->data, value->n, "opensesame", 10));
        hf__buf_unref(value);
        expect_at(f->inner, MAP, PLAIN);
        expect_at(f->inner, "/registry/leases/a/b", PLAIN);
        expect_at(f->inner, "/registry.holdfast/terms/a/b", "x\n-");
        expect_at(f->store, SECRET, PLAIN);
        assert_int_equal(store_client_list(f->store, "/registry", NULL, 0, 0, false, &reply), 0);
        assert_int_equal(reply.n_kvs, 4);
        for (size_t i = 0; i < 4; i++)
                assert_null(strstr(store_reply_value(&reply, i), "k8s:enc"));
        store_reply_deinit(&reply);
        assert_int_equal(store_client_list(f->store, "/registry/", NULL, 0, 0, true, &reply), 0);
        assert_int_equal(reply.n_kvs, 3);
        assert_null(reply.kvs[0].value);
        store_reply_deinit(&reply);
}

static void test_each_write_has_a_new_nonce(void **state) {
        struct fixture *f = *state;

        assert_true(store_client_put(f->store, SECRET, PLAIN) > 0);
        struct hf__buf *first = expect_stored(f, SECRET, "k8s:enc:");
        assert_true(store_client_put(f->store, SECRET, PLAIN) > 0);
        struct hf__buf *second = expect_stored(f, SECRET, "k8s:enc:");
        assert_int_equal(first->n, second->n);
        assert_memory_not_equal(first->data, second->data, first->n);
        hf__buf_unref(first);
        hf__buf_unref(second);
}

static void test_events_are_decrypted(void **state) {
        static struct watch_recorder recorder;
        struct fixture *f = *state;
        struct hf__buf *value = hf__buf_copy(PLAIN, strlen(PLAIN));
        const struct hfd_op ops[] = {{HFD_PUT, MAP, value}, {HFD_PUT, SECRET, value}};
        const struct hfd_txn txn = {.ops = ops, .n_ops = 2};
        struct store_reply reply;

        assert_int_equal(watch_recorder_start(&recorder, f->store, "/registry", "/registry0", 1),
                         0);
        assert_int_equal(store_client_txn(f->store, &txn, &reply), 0);
        store_reply_deinit(&reply);
        assert_true(store_client_delete(f->store, SECRET) > 0);
        watch_recorder_await(&recorder, 3);
        assert_string_equal(recorder.events[0].value->data, PLAIN);
        assert_string_equal(recorder.events[1].value->data, PLAIN);
        assert_int_equal(recorder.events[0].batch, recorder.events[1].batch);
        assert_null(recorder.events[2].value);
        hf__buf_unref(expect_stored(f, MAP, "{"));
        watch_recorder_stop(&recorder);
        hf__buf_unref(value);
}

int __real_hfd_decrypt_events(const struct hfd_covered *covered,
                              const struct hfd_watch_event *events, size_t n,
                              struct hfd_watch_event **ret_events);
int __wrap_hfd_decrypt_events(const struct hfd_covered *covered,
                              const struct hfd_watch_event *events, size_t n,
                              struct hfd_watch_event **ret_events);
static atomic_bool out_of_memory;

int __wrap_hfd_decrypt_events(const struct hfd_covered *covered,
                              const struct hfd_watch_event *events, size_t n,
                              struct hfd_watch_event **ret_events) {
        return atomic_load(&out_of_memory)
                       ? -ENOMEM
                       : __real_hfd_decrypt_events(covered, events, n, ret_events);
}

/* The receiver of such an event lists everything again. */
static void test_without_memory_an_event_has_no_value(void **state) {
        static struct watch_recorder recorder;
        struct fixture *f = *state;
        struct hf__buf *value = hf__buf_copy(PLAIN, strlen(PLAIN));
        const struct hfd_op ops[] = {{HFD_PUT, MAP, value}, {HFD_PUT, SECRET, value}};
        const struct hfd_txn txn = {.ops = ops, .n_ops = 2};
        struct store_reply reply;

        assert_int_equal(watch_recorder_start(&recorder, f->store, "/registry", "/registry0", 1),
                         0);
        atomic_store(&out_of_memory, true);
        assert_int_equal(store_client_txn(f->store, &txn, &reply), 0);
        store_reply_deinit(&reply);
        watch_recorder_await(&recorder, 1);
        atomic_store(&out_of_memory, false);
        assert_int_equal(recorder.n, 1);
        assert_string_equal(recorder.events[0].key, SECRET);
        assert_null(recorder.events[0].value);
        watch_recorder_stop(&recorder);
        hf__buf_unref(value);
}

/* The flags of the key-value pairs, which the helpers of tests do not copy. */
struct seen {
        struct store_reply reply;
        char sealed[80];
        bool stale;
};

static void note_flags(void *ctx, const struct hfd_store_reply *reply) {
        struct seen *seen = ctx;

        if (reply->n_kvs > 0) {
                (void)snprintf(seen->sealed, sizeof seen->sealed, "%s",
                               reply->kvs[0].sealed ? reply->kvs[0].sealed : "");
                seen->stale = reply->kvs[0].stale;
        }
        store_reply_fill(&seen->reply, reply);
}

static void expect_flags(struct fixture *f, const char *key, const char *sealed, bool stale) {
        struct seen seen = {.stale = false};

        store_reply_init(&seen.reply);
        assert_int_equal(f->store->ops->get(f->store, key, false,
                                            hf_now(hf_clock_system()) + 20 * HF_NSEC_PER_SEC,
                                            note_flags, &seen),
                         0);
        assert_int_equal(store_reply_wait(&seen.reply), 0);
        assert_string_equal(seen.sealed, sealed);
        assert_int_equal(seen.stale, stale);
        store_reply_deinit(&seen.reply);
}

static void test_a_rotation_makes_values_stale_and_then_sealed(void **state) {
        struct fixture *f = *state;
        struct hfd_encryption *both = make_encryption("n", "k"),
                              *new_only = make_encryption("o", "n");

        assert_true(store_client_put(f->inner, SECRET, PLAIN) > 0);
        expect_flags(f, SECRET, "", true); /* the provider identity reads the plain value */
        assert_true(store_client_put(f->store, SECRET, PLAIN) > 0);
        expect_flags(f, SECRET, "", false);
        assert_true(hfd_encrypted_store_set(f->store, both));
        assert_false(hfd_encrypted_store_set(f->store, both));
        expect_flags(f, SECRET, "", true);
        expect_at(f->store, SECRET, PLAIN);
        assert_true(hfd_encrypted_store_set(f->store, new_only));
        expect_flags(f, SECRET, "no matching prefix found", false);
        hf__buf_unref(expect_stored(f, SECRET, "k8s:enc:aesgcm:v1:k:"));
        (void)hfd_encryption_unref(both);
        (void)hfd_encryption_unref(new_only);
}

static void test_a_moved_value_is_sealed(void **state) {
        struct fixture *f = *state;
        static const char moved[] = "/registry/secrets/default/b";

        assert_true(store_client_put(f->store, SECRET, PLAIN) > 0);
        struct hf__buf *value = expect_stored(f, SECRET, "k8s:enc:");
        const struct hfd_op put = {HFD_PUT, moved, value};
        const struct hfd_txn txn = {.ops = &put, .n_ops = 1};
        struct store_reply reply;
        assert_int_equal(store_client_txn(f->inner, &txn, &reply), 0);
        store_reply_deinit(&reply);
        expect_flags(f, moved, "cipher: message authentication failed", false);
        hf__buf_unref(value);
}

static void test_a_failed_transaction_returns_plain_values(void **state) {
        struct fixture *f = *state;
        const char *const keys[] = {SECRET};
        const struct hfd_compare missing = {.kind = HFD_MOD_EQUALS, .key = SECRET};
        const struct hfd_op op = {HFD_DELETE, SECRET, NULL};
        struct hfd_txn txn = {.compares = &missing,
                              .n_compares = 1,
                              .ops = &op,
                              .n_ops = 1,
                              .get_on_failure = keys,
                              .n_get_on_failure = 1};
        struct store_reply reply;

        assert_true(store_client_put(f->store, SECRET, PLAIN) > 0);
        assert_int_equal(store_client_txn(f->store, &txn, &reply), HF_E_CONFLICT);
        assert_int_equal(reply.n_kvs, 1);
        assert_string_equal(store_reply_value(&reply, 0), PLAIN);
        store_reply_deinit(&reply);
}

static void test_a_compare_of_an_encrypted_value_is_misuse(void **state) {
        struct fixture *f = *state;
        struct hfd_compare compare = {.kind = HFD_VALUE_EQUALS,
                                      .key = SECRET,
                                      .value = PLAIN,
                                      .n_value = strlen(PLAIN)};
        const struct hfd_txn txn = {.compares = &compare, .n_compares = 1};
        struct store_reply reply;

        assert_int_equal(store_client_txn(f->store, &txn, &reply), -EINVAL);
        store_reply_deinit(&reply);
        compare.key = MAP;
        assert_true(store_client_put(f->store, MAP, PLAIN) > 0);
        assert_int_equal(store_client_txn(f->store, &txn, &reply), 0);
        store_reply_deinit(&reply);
}

static void test_without_random_bytes_nothing_is_written(void **state) {
        struct fixture *f = *state;

        atomic_store(&no_random, true);
        assert_int_equal(store_client_put(f->store, SECRET, PLAIN), 0);
        assert_int_equal(store_client_mod_revision(f->inner, SECRET), 0);
        assert_true(store_client_put(f->store, MAP, PLAIN) > 0);
}

#define TEST(name) cmocka_unit_test_setup_teardown(name, set_up, tear_down)

int main(void) {
        const struct CMUnitTest tests[] = {
                TEST(test_custom_resources_are_encrypted),
                TEST(test_only_covered_keys_are_encrypted),
                TEST(test_each_write_has_a_new_nonce),
                TEST(test_events_are_decrypted),
                TEST(test_without_memory_an_event_has_no_value),
                TEST(test_a_rotation_makes_values_stale_and_then_sealed),
                TEST(test_a_moved_value_is_sealed),
                TEST(test_a_failed_transaction_returns_plain_values),
                TEST(test_a_compare_of_an_encrypted_value_is_misuse),
                TEST(test_without_random_bytes_nothing_is_written),
        };
        return cmocka_run_group_tests(tests, NULL, NULL);
}

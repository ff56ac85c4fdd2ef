/* SPDX-License-Identifier: Apache-2.0 */
/* Ciphers and rules of encryption at rest, without a file and a store. */
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

#include <holdfast/error.h>

#include "failing_memory.h"
#include "server/encryption/decrypt.h"
#include "server/resources/rows/resource_table.h"
#include "server/storage/sealed.h"

#define KEY_A "/registry/secrets/default/a"
#define KEY_B "/registry/secrets/default/b"
#define PLAIN "{\"a\":1}"

/* 0, 1, 2, ...: the bytes of keys and nonces. */
static const uint8_t counted[32] = {0,  1,  2,  3,  4,  5,  6,  7,  8,  9,  10, 11, 12, 13, 14, 15,
                                    16, 17, 18, 19, 20, 21, 22, 23, 24, 25, 26, 27, 28, 29, 30, 31};
static const uint8_t other[32] = {7};

static const struct hfd_resource *resource(const char *group, const char *version,
                                           const char *plural) {
        const struct hfd_resource *found = hfd_resource_find(group, version, plural);

        assert_non_null(found);
        return found;
}

/* ---- ciphers ---- */

static void expect_bytes(enum hfd_cipher_kind kind, size_t n_key, const char *hex) {
        struct hf__buf *plain = hf__buf_copy(PLAIN, strlen(PLAIN)), *sealed = NULL, *opened = NULL;
        size_t n_nonce = kind == HFD_AES_GCM ? 12 : 16;
        struct hfd_cipher *cipher = NULL;
        const char *why = NULL;
        char text[128] = "";

        assert_int_equal(hfd_cipher_new(kind, counted, n_key, &cipher), 0);
        assert_int_equal(hfd_cipher_seal(cipher, counted, KEY_A, plain, "p:", 2, &sealed), 0);
        assert_memory_equal(sealed->data, "p:", 2);
        assert_memory_equal(sealed->data + 2, counted, n_nonce);
        for (size_t i = 2 + n_nonce; i < sealed->n; i++)
                (void)snprintf(text + 2 * (i - 2 - n_nonce), 3, "%02x", (uint8_t)sealed->data[i]);
        assert_string_equal(text, hex);
        assert_int_equal(hfd_cipher_open(cipher, KEY_A, sealed->data + 2, sealed->n - 2, &opened,
                                         &why),
                         0);
        assert_int_equal(opened->n, plain->n);
        assert_memory_equal(opened->data, PLAIN, strlen(PLAIN) + 1);
        hf__buf_unref(plain);
        hf__buf_unref(sealed);
        hf__buf_unref(opened);
        (void)hfd_cipher_free(cipher);
}

/* The values come from another implementation, Python's package cryptography. */
static void test_the_bytes_are_those_of_other_implementations(void **state) {
        expect_bytes(HFD_AES_GCM, 16, "e84ec6ec5c2a8a304268bf46d60de63c1944f7a26cfa65");
        expect_bytes(HFD_AES_GCM, 24, "9ddb43b9a388b4d11273909bb90437d3aa2bfc252961b8");
        expect_bytes(HFD_AES_GCM, 32, "3c20b739ffd4bf123fd2089456d754c6fc25f421e3a960");
        expect_bytes(HFD_AES_CBC, 16, "92cffad6b99b83be1caba81b76297e8b");
        expect_bytes(HFD_AES_CBC, 24, "8cc5eb2559188274ebc4697881fe4604");
        expect_bytes(HFD_AES_CBC, 32, "2820f89f7df4664ae3f5764aecaaf12f");
}

static void test_a_key_has_one_of_three_lengths(void **state) {
        struct hfd_cipher *cipher = NULL;

        for (size_t n = 0; n <= 32; n++) {
                int expected = n == 16 || n == 24 || n == 32 ? 0 : -EINVAL;
                assert_int_equal(hfd_cipher_new(HFD_AES_GCM, counted, n, &cipher), expected);
                if (expected == 0)
                        (void)hfd_cipher_free(cipher);
        }
}

/* GCM detects every changed bit and every truncation. */
static void test_a_changed_value_is_refused(void **state) {
        struct hf__buf *plain = hf__buf_copy(PLAIN, strlen(PLAIN)), *sealed = NULL, *opened = NULL;
        struct hfd_cipher *cipher = NULL;
        const char *why = NULL;

        assert_int_equal(hfd_cipher_new(HFD_AES_GCM, counted, 32, &cipher), 0);
        assert_int_equal(hfd_cipher_seal(cipher, counted, KEY_A, plain, "", 0, &sealed), 0);
        for (size_t i = 0; i < 8 * sealed->n; i++) {
                sealed->data[i / 8] = (char)(sealed->data[i / 8] ^ (1 << i % 8));
                assert_int_equal(hfd_cipher_open(cipher, KEY_A, sealed->data, sealed->n, &opened,
                                                 &why),
                                 HF_E_INVALID);
                assert_string_equal(why, "cipher: message authentication failed");
                sealed->data[i / 8] = (char)(sealed->data[i / 8] ^ (1 << i % 8));
        }
        for (size_t n = 0; n < sealed->n; n++)
                assert_int_equal(hfd_cipher_open(cipher, KEY_A, sealed->data, n, &opened, &why),
                                 HF_E_INVALID);
        hf__buf_unref(plain);
        hf__buf_unref(sealed);
        (void)hfd_cipher_free(cipher);
}

static void test_blocks_of_cbc_are_checked(void **state) {
        struct hf__buf *opened = NULL;
        struct hfd_cipher *cipher = NULL;
        const char *why = NULL;
        char data[48] = {0};

        assert_int_equal(hfd_cipher_new(HFD_AES_CBC, counted, 32, &cipher), 0);
        assert_int_equal(hfd_cipher_open(cipher, KEY_A, data, 16, &opened, &why), HF_E_INVALID);
        assert_string_equal(why, "the stored data was shorter than the required size");
        assert_int_equal(hfd_cipher_open(cipher, KEY_A, data, 47, &opened, &why), HF_E_INVALID);
        assert_string_equal(why, "invalid block size");
        assert_int_equal(hfd_cipher_open(cipher, KEY_A, data, 48, &opened, &why), HF_E_INVALID);
        assert_string_equal(why, "invalid padding on input");
        (void)hfd_cipher_free(cipher);
}

/* ---- rules ---- */

/* The letters of `keys` are its providers: g and h are keys of AES-GCM, c is one of AES-CBC, i is
 * identity. */
static struct hfd_encryption *make_encryption(const char *keys,
                                              const struct hfd_encryption_rule **ret_rule) {
        struct hfd_encryption *encryption = hfd_encryption_new(keys, strlen(keys));
        struct hfd_encryption_rule *rule = NULL;

        assert_int_equal(hfd_encryption_add_rule(encryption, &rule), 0);
        assert_int_equal(hfd_encryption_add_resource(rule, "secrets", ""), 0);
        for (; *keys; keys++) {
                const char name[] = {*keys, '\0'};
                enum hfd_cipher_kind kind = *keys == 'c' ? HFD_AES_CBC : HFD_AES_GCM;
                const uint8_t *key = *keys == 'g' ? counted : other;
                int r = *keys == 'i' ? hfd_encryption_add_identity(rule)
                                     : hfd_encryption_add_key(rule, kind, name, key, 32);
                assert_int_equal(r, 0);
        }
        *ret_rule = hfd_encryption_rule(encryption, resource("", "v1", "secrets"));
        assert_non_null(*ret_rule);
        return encryption;
}

/* Encrypts PLAIN for KEY_A with the keys `writer`, and decrypts it under `key` with the keys
 * `reader`. why: the message of the failure; NULL = success. */
static void expect_read(const char *writer, const char *reader, const char *key, const char *prefix,
                        const char *why, bool stale) {
        const struct hfd_encryption_rule *from = NULL, *to = NULL;
        struct hfd_encryption *a = make_encryption(writer, &from),
                              *b = make_encryption(reader, &to);
        struct hf__buf *plain = hf__buf_copy(PLAIN, strlen(PLAIN)), *sealed = NULL;
        struct hfd_opened opened;

        assert_int_equal(hfd_encryption_seal(from, KEY_A, counted, plain, &sealed), 0);
        assert_memory_equal(sealed->data, prefix, strlen(prefix));
        assert_int_equal(hfd_encryption_open(to, key, sealed, &opened), 0);
        if (why) {
                assert_string_equal(opened.why, why);
                assert_ptr_equal(opened.value, sealed);
        } else {
                assert_null(opened.why);
                assert_string_equal(opened.value->data, PLAIN);
                assert_int_equal(opened.stale, stale);
        }
        hf__buf_unref(opened.value);
        hf__buf_unref(plain);
        hf__buf_unref(sealed);
        (void)hfd_encryption_unref(a);
        (void)hfd_encryption_unref(b);
}

static void test_the_first_key_writes_and_all_read(void **state) {
        expect_read("g", "g", KEY_A, "k8s:enc:aesgcm:v1:g:", NULL, false);
        expect_read("gh", "hg", KEY_A, "k8s:enc:aesgcm:v1:g:", NULL, true);
        expect_read("c", "gc", KEY_A, "k8s:enc:aescbc:v1:c:", NULL, true);
        expect_read("ig", "gi", KEY_A, "{", NULL, true);
        expect_read("gi", "ig", KEY_A, "k8s:enc:aesgcm:v1:g:", NULL, true);
        expect_read("i", "i", KEY_A, "{", NULL, false);
}

static void test_what_no_key_reads_has_a_reason(void **state) {
        expect_read("g", "h", KEY_A, "k8s:enc:", "no matching prefix found", false);
        expect_read("g", "i", KEY_A, "k8s:enc:", "no matching prefix found", false);
        expect_read("i", "g", KEY_A, "{", "no matching prefix found", false);
        expect_read("g", "g", KEY_B, "k8s:enc:", "cipher: message authentication failed", false);
        /* AES-CBC authenticates nothing, as in Kubernetes. */
        expect_read("c", "c", KEY_B, "k8s:enc:", NULL, false);
}

static void test_a_name_is_unique_among_the_keys_of_a_provider(void **state) {
        const struct hfd_encryption_rule *rule = NULL;
        struct hfd_encryption *encryption = make_encryption("gc", &rule);
        struct hfd_encryption_rule *other_rule = NULL;

        assert_int_equal(hfd_encryption_add_rule(encryption, &other_rule), 0);
        assert_int_equal(hfd_encryption_add_key(other_rule, HFD_AES_GCM, "g", counted, 16), 0);
        assert_int_equal(hfd_encryption_add_key(other_rule, HFD_AES_GCM, "g", other, 16),
                         HF_E_CONFLICT);
        assert_int_equal(hfd_encryption_add_key(other_rule, HFD_AES_CBC, "g", other, 16), 0);
        (void)hfd_encryption_unref(encryption);
}

static void test_wildcards_cover_groups_but_never_leases(void **state) {
        struct hfd_encryption *encryption = hfd_encryption_new("", 0);
        struct hfd_encryption_rule *rules[4] = {NULL};
        static const char *const entries[4][2] = {{"configmaps", ""},
                                                  {"*", ""},
                                                  {"*", "rbac.authorization.k8s.io"},
                                                  {"*", "*"}};

        for (size_t i = 0; i < 4; i++) {
                assert_int_equal(hfd_encryption_add_rule(encryption, &rules[i]), 0);
                assert_int_equal(hfd_encryption_add_resource(rules[i], entries[i][0],
                                                             entries[i][1]),
                                 0);
        }
        assert_ptr_equal(hfd_encryption_rule(encryption, resource("", "v1", "configmaps")),
                         rules[0]);
        assert_ptr_equal(hfd_encryption_rule(encryption, resource("", "v1", "secrets")), rules[1]);
        assert_ptr_equal(hfd_encryption_rule(encryption,
                                             resource("rbac.authorization.k8s.io", "v1", "roles")),
                         rules[2]);
        assert_ptr_equal(hfd_encryption_rule(encryption, resource("tenancy.holdfast.dev",
                                                                  "v1alpha1", "workspaces")),
                         rules[3]);
        assert_null(
                hfd_encryption_rule(encryption, resource("coordination.k8s.io", "v1", "leases")));
        assert_string_equal(hfd_encryption_find_entry(encryption, "configmaps", ""), "configmaps");
        assert_string_equal(hfd_encryption_find_entry(encryption, "pods", ""), "*.");
        assert_string_equal(hfd_encryption_find_entry(encryption, "pods", "x"), "*.*");
        (void)hfd_encryption_unref(encryption);
}

/* ---- memory ---- */

static void rules_life(int n) {
        struct hf__buf *plain = hf__buf_copy(PLAIN, strlen(PLAIN)), *sealed = NULL;
        struct hfd_encryption_rule *rule = NULL;
        struct hfd_opened opened = {0};

        failing_memory_arm(n);
        struct hfd_encryption *encryption = hfd_encryption_new("", 0);
        int r = encryption ? hfd_encryption_add_rule(encryption, &rule) : -ENOMEM;
        if (r == 0)
                r = hfd_encryption_add_resource(rule, "secrets", "");
        if (r == 0)
                r = hfd_encryption_add_key(rule, HFD_AES_GCM, "g", counted, 32);
        if (r == 0)
                r = hfd_encryption_seal(rule, KEY_A, counted, plain, &sealed);
        if (r == 0)
                r = hfd_encryption_open(rule, KEY_A, sealed, &opened);
        failing_memory_disarm();
        assert_true(r == 0 || r == -ENOMEM);
        assert_int_equal(r != 0, failing_memory_hit());
        hf__buf_unref(plain);
        hf__buf_unref(sealed);
        hf__buf_unref(opened.value);
        (void)hfd_encryption_unref(encryption);
}

/* Two key-value pairs, of which one is encrypted: either both are delivered, or none. */
static void kvs_life(int n) {
        const struct hfd_encryption_rule *rule = NULL;
        struct hfd_encryption *encryption = make_encryption("g", &rule);
        struct hf__buf *plain = hf__buf_copy(PLAIN, strlen(PLAIN)), *sealed = NULL;
        struct hfd_kv *opened = NULL;
        struct hfd_watch_event *events = NULL;

        assert_int_equal(hfd_encryption_seal(rule, KEY_A, counted, plain, &sealed), 0);
        const struct hfd_covered covered = {"/registry", encryption};
        const struct hfd_kv kvs[] = {{.key = "/registry/configmaps/a/b", .value = plain},
                                     {.key = KEY_A, .value = sealed}};
        const struct hfd_watch_event stored[] = {{.type = HFD_WATCH_PROGRESS},
                                                 {.type = HFD_WATCH_PUT, .kv = kvs[0]},
                                                 {.type = HFD_WATCH_PUT, .kv = kvs[1]},
                                                 {.type = HFD_WATCH_DELETE, .kv = {.key = KEY_B}}};
        failing_memory_arm(n);
        int r = hfd_decrypt_kvs(&covered, kvs, 2, &opened);
        if (r == 0)
                r = hfd_decrypt_events(&covered, stored, 4, &events);
        failing_memory_disarm();
        assert_int_equal(r, failing_memory_hit() ? -ENOMEM : 0);
        if (r == 0) {
                assert_ptr_equal(opened[0].value, plain);
                assert_string_equal(opened[1].value->data, PLAIN);
                assert_ptr_equal(events[1].kv.value, plain);
                assert_string_equal(events[2].kv.value->data, PLAIN);
                hfd_decrypt_events_free(events, 4);
        } else {
                assert_null(events);
        }
        hfd_decrypt_kvs_free(opened, 2);
        hf__buf_unref(plain);
        hf__buf_unref(sealed);
        (void)hfd_encryption_unref(encryption);
}

static void test_without_memory_nothing_is_encrypted_or_lost(void **state) {
        failing_memory_try_all(rules_life, 0);
        failing_memory_try_all(kvs_life, 0);
}

/* ---- detection of encrypted values ---- */

static void test_an_encrypted_value_is_recognized_without_keys(void **state) {
        static const struct {
                const char *text;
                bool sealed;
        } values[] = {{"k8s:enc:aesgcm:v1:g:", true},
                      {"k8s:enc:", true},
                      {"k8s:enc", false},
                      {"{}", false},
                      {"", false}};

        for (size_t i = 0; i < sizeof values / sizeof values[0]; i++) {
                struct hf__buf *value = hf__buf_copy(values[i].text, strlen(values[i].text));
                struct hfd_kv kv = {.key = KEY_A, .value = value};
                assert_int_equal(hfd_is_sealed(value), values[i].sealed);
                assert_int_equal(hfd_kv_sealed(&kv) != NULL, values[i].sealed);
                kv.sealed = "why";
                assert_string_equal(hfd_kv_sealed(&kv), "why");
                hf__buf_unref(value);
        }
}

int main(void) {
        const struct CMUnitTest tests[] = {
                cmocka_unit_test(test_the_bytes_are_those_of_other_implementations),
                cmocka_unit_test(test_a_key_has_one_of_three_lengths),
                cmocka_unit_test(test_a_changed_value_is_refused),
                cmocka_unit_test(test_blocks_of_cbc_are_checked),
                cmocka_unit_test(test_the_first_key_writes_and_all_read),
                cmocka_unit_test(test_what_no_key_reads_has_a_reason),
                cmocka_unit_test(test_a_name_is_unique_among_the_keys_of_a_provider),
                cmocka_unit_test(test_wildcards_cover_groups_but_never_leases),
                cmocka_unit_test(test_without_memory_nothing_is_encrypted_or_lost),
                cmocka_unit_test(test_an_encrypted_value_is_recognized_without_keys),
        };
        return cmocka_run_group_tests(tests, NULL, NULL);
}

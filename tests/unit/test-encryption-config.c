/* SPDX-License-Identifier: Apache-2.0 */
/* Which EncryptionConfigurations are accepted, and the messages of refusals. */
#undef NDEBUG
#include <errno.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include <cmocka.h>

#include <holdfast/error.h>

#include "base/json.h"
#include "server/encryption/encryption_config.h"
#include "server/resources/rows/resource_table.h"

#define K16  "AAECAwQFBgcICQoLDA0ODw=="
#define K32  "AAECAwQFBgcICQoLDA0ODxAREhMUFRYXGBkaGxwdHh8="
#define HEAD "\"kind\":\"EncryptionConfiguration\",\"apiVersion\":\"apiserver.config.k8s.io/v1\","
#define GCM  "{\"aesgcm\":{\"keys\":[{\"name\":\"a\",\"secret\":\"" K32 "\"}]}}"

static struct hfd_encryption *parse(const char *text) {
        struct hfd_encryption *encryption = NULL;
        struct hf_status status = {0};

        if (hfd_encryption_parse(text, strlen(text), &encryption, &status) != 0)
                fail_msg("%s", status.message);
        return encryption;
}

/* The linker redirects hf__json_check_unique here. */
static bool memory_is_short;
int __real_hf__json_check_unique(const struct hf__json *json, const char **reterr_key);
int __wrap_hf__json_check_unique(const struct hf__json *json, const char **reterr_key);
int __wrap_hf__json_check_unique(const struct hf__json *json, const char **reterr_key) {
        return memory_is_short ? -ENOMEM : __real_hf__json_check_unique(json, reterr_key);
}

static bool covers(const struct hfd_encryption *encryption, const char *plural) {
        const struct hfd_resource *found = hfd_resource_find("", "v1", plural);

        assert_non_null(found);
        return hfd_encryption_rule(encryption, found) != NULL;
}

static void test_yaml_and_json_are_read(void **state) {
        static const char *const texts[] =
                {"apiVersion: apiserver.config.k8s.io/v1\n"
                 "kind: EncryptionConfiguration\n"
                 "resources:\n"
                 "  - resources:\n"
                 "      - secrets # a comment\n"
                 "    providers:\n"
                 "      - aesgcm:\n"
                 "          keys:\n"
                 "            - name: key1\n"
                 "              secret: " K16 "\n"
                 "            - name: key2\n"
                 "              secret: " K32 "\n"
                 "      - aescbc:\n"
                 "          keys:\n"
                 "            - {name: key1, secret: " K32 "}\n"
                 "      - identity: {}\n",
                 "{" HEAD "\"resources\":[{\"resources\":[\"secrets\"],\"providers\":[" GCM
                 ",{\"identity\":{}}]}]}"};

        for (size_t i = 0; i < 2; i++) {
                struct hfd_encryption *encryption = parse(texts[i]), *same = parse(texts[i]);
                assert_true(covers(encryption, "secrets"));
                assert_false(covers(encryption, "configmaps"));
                assert_true(hfd_encryption_is_same(encryption, same));
                (void)hfd_encryption_unref(encryption);
                (void)hfd_encryption_unref(same);
        }
}

/* Resources of groups that are not served may be served later. */
static void test_resources_are_names_or_wildcards(void **state) {
        struct hfd_encryption *encryption =
                parse("{" HEAD "\"resources\":[{\"resources\":[\"widgets.example.com\","
                      "\"configmaps\",\"*.example.com\"],\"providers\":[" GCM "]},"
                      "{\"resources\":[\"*.*\"],\"providers\":[{\"identity\":{}}]}]}");

        assert_true(covers(encryption, "configmaps") && covers(encryption, "secrets"));
        assert_ptr_equal(hfd_encryption_rule_of(encryption, "widgets", "example.com"),
                         hfd_encryption_rule_of(encryption, "gadgets", "example.com"));
        assert_ptr_not_equal(hfd_encryption_rule_of(encryption, "widgets", "example.com"),
                             hfd_encryption_rule_of(encryption, "widgets", "example.org"));
        (void)hfd_encryption_unref(encryption);
}

static void expect_refusal(const char *text, const char *message) {
        struct hfd_encryption *encryption = NULL;
        struct hf_status status = {0};

        assert_int_equal(hfd_encryption_parse(text, strlen(text), &encryption, &status),
                         HF_E_INVALID);
        assert_string_equal(status.message, message);
        assert_null(strchr(status.message, '\n'));
        assert_null(strstr(status.message, "AAECAw"));
        assert_null(encryption);
}

/* resources and providers: the elements of both lists. */
static void expect_rule_refused(const char *resources, const char *providers, const char *message) {
        char text[2048];

        (void)snprintf(text, sizeof text,
                       "{" HEAD "\"resources\":[{\"resources\":[%s],\"providers\":[%s]}]}",
                       resources, providers);
        expect_refusal(text, message);
}

static void expect_key_refused(const char *key, const char *message) {
        char providers[512], whole[512];

        (void)snprintf(providers, sizeof providers,
                       "{\"identity\":{}},{\"aesgcm\":{\"keys\":[{\"name\":\"x\",\"secret\":\"" K16
                       "\"},%s]}}",
                       key);
        (void)snprintf(whole, sizeof whole, "resources[0].providers[1].aesgcm.keys[1]: %s",
                       message);
        expect_rule_refused("\"secrets\"", providers, whole);
}

static void test_faults_of_keys_are_named(void **state) {
        expect_key_refused("{\"name\":\"y\",\"secret\":\"AAECAw==\"}",
                           "secret is not of the expected length, got 4, expected one of "
                           "[16 24 32]");
        expect_key_refused("{\"name\":\"x\",\"secret\":\"" K32 "\"}",
                           "the name \"x\" is given twice");
        expect_key_refused("{\"name\":\"y\",\"secret\":\"AAECAw?\"}",
                           "secrets must be base64 encoded");
        expect_key_refused("{\"name\":\"y\"}", "a key must have a secret");
        expect_key_refused("{\"secret\":\"" K32 "\"}", "a key must have a name");
        expect_key_refused("{\"name\":\"a:b\",\"secret\":\"" K32 "\"}",
                           "the name \"a:b\" must not contain a colon");
        expect_key_refused("{\"name\":\"y\",\"secret\":\"" K32 "\",\"more\":1}",
                           "unknown field \"more\"");
        expect_key_refused("7", "must be an object");
}

static void test_faults_of_providers_are_named(void **state) {
        static const char r[] = "\"secrets\"";

        expect_rule_refused(r, "", "resources[0].providers: at least one provider is required");
        expect_rule_refused(r, "{}",
                            "resources[0].providers[0]: must have one of aesgcm, aescbc and "
                            "identity");
        expect_rule_refused(r, "{\"identity\":{},\"aesgcm\":{}}",
                            "resources[0].providers[0]: has more than one provider");
        expect_rule_refused(r, "{\"aescbc\":{}}",
                            "resources[0].providers[0].aescbc: at least one key is required");
        expect_rule_refused(r, "{\"secretbox\":{\"keys\":[]}}",
                            "resources[0].providers[0].secretbox: secretbox is not supported "
                            "(XSalsa20 is not in OpenSSL): use aesgcm");
        expect_rule_refused(r, "{\"kms\":{\"name\":\"a\"}}",
                            "resources[0].providers[0].kms: kms is not supported: use aesgcm");
        expect_rule_refused(r, "{\"rot13\":{}}",
                            "resources[0].providers[0].rot13: there is no such provider: use "
                            "aesgcm, aescbc or identity");
        expect_rule_refused(r, "{\"identity\":{\"a\":1}}",
                            "resources[0].providers[0].identity: unknown field \"a\"");
}

static void test_faults_of_resources_are_named(void **state) {
        expect_rule_refused("", GCM, "resources[0].resources: at least one resource is required");
        expect_rule_refused("7", GCM, "resources[0].resources[0]: must be a string");
        expect_rule_refused("\"secret\"", GCM,
                            "resources[0].resources[0]: there is no resource \"secret\"");
        expect_rule_refused("\"Secrets\"", GCM,
                            "resources[0].resources[0]: resource name should be lowercase: "
                            "\"Secrets\"");
        expect_rule_refused("\"*\"", GCM,
                            "resources[0].resources[0]: use '*.' to encrypt all the resources in "
                            "core API group or *.* to encrypt all resources");
        expect_rule_refused("\"sec*\"", GCM,
                            "resources[0].resources[0]: \"sec*\": a wildcard is one of *.<group>, "
                            "*. and *.*");
        expect_rule_refused("\"secrets\",\"secrets\"", GCM,
                            "resources[0].resources[1]: resource \"secrets\" is masked by earlier "
                            "rule \"secrets\"");
        expect_rule_refused("\"*.\",\"secrets\"", GCM,
                            "resources[0].resources[1]: resource \"secrets\" is masked by earlier "
                            "rule \"*.\"");
        expect_rule_refused("\"leases.coordination.k8s.io\"", GCM,
                            "resources[0].resources[0]: Leases cannot be encrypted: they have no "
                            "secrets, and `holdfastd release` reads them without a key");
}

static void test_faults_of_the_whole_are_named(void **state) {
        expect_refusal("", "must be an object");
        expect_refusal("a: b: c", "mapping values are not allowed in this context");
        expect_refusal("{" HEAD "\"resources\":[]}", "resources: at least one rule is required");
        expect_refusal("{\"kind\":\"EncryptionConfiguration\",\"apiVersion\":\"v1\"}",
                       "it is not of apiVersion apiserver.config.k8s.io/v1 and kind "
                       "EncryptionConfiguration");
        expect_refusal("{" HEAD "\"x\":1}", "unknown field \"x\"");
        expect_refusal("{" HEAD "\"kind\":\"EncryptionConfiguration\"}",
                       "the field \"kind\" is given twice in one object");
}

static void test_a_file_is_read_if_nobody_else_can_change_it(void **state) {
        char path[] = "/tmp/test-encryption-config-XXXXXX";
        static const char text[] = "{" HEAD "\"resources\":[{\"resources\":[\"secrets\"],"
                                   "\"providers\":[" GCM "]}]}";
        struct hfd_encryption *encryption = NULL;
        struct hf_status status = {0};
        int fd = mkstemp(path);

        assert_true(fd >= 0);
        assert_int_equal(write(fd, text, strlen(text)), strlen(text));
        assert_int_equal(hfd_encryption_read(path, &encryption, &status), 0);
        (void)hfd_encryption_unref(encryption);
        assert_int_equal(fchmod(fd, 0666), 0);
        assert_int_equal(hfd_encryption_read(path, &encryption, &status), HF_E_INVALID);
        assert_non_null(strstr(status.message, "can be written by other users"));
        assert_int_equal(fchmod(fd, 0600), 0);
        assert_int_equal(ftruncate(fd, 3), 0);
        assert_int_equal(hfd_encryption_read(path, &encryption, &status), HF_E_INVALID);
        assert_non_null(strstr(status.message, "cannot use /tmp/test-encryption-config-"));
        assert_int_equal(close(fd), 0);
        assert_int_equal(unlink(path), 0);
        assert_int_equal(hfd_encryption_read(path, &encryption, &status), HF_E_NOT_FOUND);
}

/* The administrator must not search a good file for a mistake. */
static void test_a_shortage_of_memory_is_not_a_mistake_in_the_file(void **state) {
        static const char text[] = "{" HEAD "\"resources\":[{\"resources\":[\"secrets\"],"
                                   "\"providers\":[" GCM "]}]}";
        struct hfd_encryption *encryption = NULL;
        struct hf_status status = {0};

        memory_is_short = true;
        int r = hfd_encryption_parse(text, sizeof text - 1, &encryption, &status);
        memory_is_short = false;
        assert_int_equal(r, -ENOMEM);
        assert_string_equal(status.message, "out of memory");
        (void)hfd_encryption_unref(parse(text));
}

int main(void) {
        const struct CMUnitTest tests[] = {
                cmocka_unit_test(test_yaml_and_json_are_read),
                cmocka_unit_test(test_a_shortage_of_memory_is_not_a_mistake_in_the_file),
                cmocka_unit_test(test_resources_are_names_or_wildcards),
                cmocka_unit_test(test_faults_of_keys_are_named),
                cmocka_unit_test(test_faults_of_providers_are_named),
                cmocka_unit_test(test_faults_of_resources_are_named),
                cmocka_unit_test(test_faults_of_the_whole_are_named),
                cmocka_unit_test(test_a_file_is_read_if_nobody_else_can_change_it),
        };
        return cmocka_run_group_tests(tests, NULL, NULL);
}

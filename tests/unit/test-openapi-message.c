/* SPDX-License-Identifier: Apache-2.0 */
/* OpenAPI documents as protobuf: each form of a field, and all documents of the built-in kinds. */
#undef NDEBUG
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#include "base/buf.h"
#include "base/json.h"
#include "base/strbuf.h"
#include "failing_memory.h"
#include "server/handlers/openapi/message/message.h"
#include "server/handlers/openapi/openapi.h"
#include "server/resources/custom/served_rows.h"
#include "server/resources/rows/resource_table.h"

static const struct hfd_message outer;

static const struct hfd_message_field choice_fields[] = {
        {"ref", 1, HFD_FORM_YAML, .when = HFD_WHEN_REFERENCE},
        {"body", 2, .message = &outer, .when = HFD_WHEN_IN},
        {"text", 3, HFD_FORM_TEXT, .when = HFD_WHEN_TEXT},
        {"flag", 4, HFD_FORM_BOOLEAN, .when = HFD_WHEN_BOOLEAN},
        {"number", 5, HFD_FORM_NUMBER, .when = HFD_WHEN_NUMBER},
};
static const struct hfd_message choice = {HFD_MESSAGE_FIELDS(choice_fields), .is_oneof = true};

static const struct hfd_message_field map_fields[] = {{"own", 1, .message = &choice}};
static const struct hfd_message map = {HFD_MESSAGE_FIELDS(map_fields), .pairs = 2,
                                       .values = &choice};

static const struct hfd_message_field outer_fields[] = {
        {"text", 1, HFD_FORM_TEXT},
        {"flag", 2, HFD_FORM_BOOLEAN},
        {"count", 3, HFD_FORM_INTEGER},
        {"size", 4, HFD_FORM_NUMBER},
        {"any", 5, HFD_FORM_YAML},
        {"all", 6, HFD_FORM_YAMLS},
        {"inner", 7, .message = &outer},
        {"choice", 8, .message = &choice},
        {"whole", 10, .message = &choice, .whole = true},
        {"map", 20, .message = &map},
};
static const struct hfd_message outer = {HFD_MESSAGE_FIELDS(outer_fields), .extensions = 9};

/* The caller frees the result with hf__strbuf_done. */
static struct hf__strbuf message_of(const struct hfd_message *message, const char *text, size_t n) {
        struct hf__json *json = NULL;
        struct hf__strbuf s = {0};

        assert_int_equal(hf__json_parse(text, n, &json, NULL), 0);
        hfd_message_put(&s, message, json);
        assert_int_equal(s.error, 0);
        hf__json_free(json);
        return s;
}

static void check_bytes(const char *text, const char *bytes, size_t n) {
        struct hf__strbuf s = message_of(&outer, text, strlen(text));

        assert_int_equal(s.n, n);
        if (n > 0)
                assert_memory_equal(s.data, bytes, n);
        hf__strbuf_done(&s);
}

/* bytes: a literal */
#define CHECK(text, bytes) check_bytes((text), (bytes), sizeof(bytes) - 1)

static void test_a_member_becomes_a_field(void **state) {
        CHECK("{}", "");
        CHECK("{\"text\":\"ab\"}", "\x0a\x02"
                                   "ab");
        CHECK("{\"text\":[\"a\",\"b\"]}", "\x0a\x01"
                                          "a\x0a\x01"
                                          "b");
        CHECK("{\"flag\":true}", "\x10\x01");
        CHECK("{\"flag\":false}", "\x10\0");
        CHECK("{\"count\":300}", "\x18\xac\x02");
        CHECK("{\"count\":-1}", "\x18\xff\xff\xff\xff\xff\xff\xff\xff\xff\x01");
        CHECK("{\"size\":0.5}", "\x21\0\0\0\0\0\0\xe0\x3f");
        CHECK("{\"any\":[1,\"x\"]}", "\x2a\x09\x12\x07[1,\"x\"]");
        CHECK("{\"all\":[1,\"x\"]}", "\x32\x03\x12\x01"
                                     "1\x32\x05\x12\x03\"x\"");
        CHECK("{\"inner\":{\"flag\":true,\"inner\":{}}}", "\x3a\x04\x10\x01\x3a\0");
        CHECK("{\"x-a\":null,\"y-a\":1}", "\x4a\x0d\x0a\x03x-a\x12\x06\x12\x04null");
        /* Values that do not fit into the message are left out. */
        CHECK("{\"text\":1,\"flag\":\"t\",\"count\":\"1\",\"size\":null,\"other\":{\"text\":\"a\"}"
              "}",
              "");
}

static void test_a_value_decides_on_the_field_of_a_oneof(void **state) {
        CHECK("{\"choice\":{\"$ref\":1}}", "\x42\x0e\x0a\x0c\x12\x0a{\"$ref\":1}");
        CHECK("{\"choice\":{\"in\":\"body\",\"flag\":true}}", "\x42\x04\x12\x02\x10\x01");
        CHECK("{\"choice\":\"a\"}", "\x42\x03\x1a\x01"
                                    "a");
        CHECK("{\"choice\":true}", "\x42\x02\x20\x01");
        CHECK("{\"choice\":1}", "\x42\x09\x29\0\0\0\0\0\0\xf0\x3f");
        CHECK("{\"choice\":null}", "\x42\0");
        CHECK("{\"choice\":[true,null]}", "\x42\x02\x20\x01\x42\0");
        CHECK("{\"whole\":\"a\"}", "\x52\x03\x1a\x01"
                                   "a");
        CHECK("{\"whole\":[\"a\",true]}", "\x52\0"); /* no row is for arrays */
}

static void test_a_map_becomes_pairs(void **state) {
        CHECK("{\"map\":{\"x-a\":true,\"\":false,\"own\":true}}",
              "\xa2\x01\x17\x12\x09\x0a\x03x-a\x12\x02\x20\x01\x12\x06\x0a\0\x12\x02\x20\0"
              "\x0a\x02\x20\x01");
}

/* JSON allows characters that YAML does not allow, or that end a line there. */
static void test_yaml_has_no_special_characters(void **state) {
        CHECK("{\"any\":\"a\x7f\xc2\x85\xc2\xa0\xe2\x80\xa8\xe2\x80\xa9\xe2\x80\xaa\"}",
              "\x2a\x22\x12\x20\"a\\u007f\\u0085\xc2\xa0\\u2028\\u2029\xe2\x80\xaa\"");
        CHECK("{\"any\":{\"\xef\xbb\xbf\":\"\xef\xbf\xbd\xef\xbf\xbf\"}}",
              "\x2a\x18\x12\x16{\"\\ufeff\":\"\xef\xbf\xbd\\uffff\"}");
}

static uint64_t varint(const unsigned char **at) {
        uint64_t value = 0;
        unsigned shift = 0;

        for (; **at & 128; (*at)++, shift += 7)
                value |= (uint64_t)(**at & 127) << shift;
        return value | (uint64_t) * (*at)++ << shift;
}

/* The length of an inner message has as many bytes as it needs. */
static void test_messages_are_nested_deeply(void **state) {
        enum { DEPTH = 95, N_TEXT = 20000 };
        struct hf__strbuf text = {0};

        for (int i = 0; i < DEPTH; i++)
                hf__strbuf_puts(&text, "{\"inner\":");
        hf__strbuf_puts(&text, "{\"text\":\"");
        for (int i = 0; i < N_TEXT; i++)
                hf__strbuf_putc(&text, 'a');
        hf__strbuf_puts(&text, "\"}");
        for (int i = 0; i < DEPTH; i++)
                hf__strbuf_puts(&text, ",\"flag\":true}");
        struct hf__strbuf s = message_of(&outer, text.data, text.n);
        const unsigned char *at = (const unsigned char *)s.data, *end = at + s.n;
        for (int i = 0; i < DEPTH; i++) {
                assert_int_equal(*at++, 7 << 3 | 2);
                size_t n = varint(&at);
                assert_int_equal(at + n + 2, end);
                assert_memory_equal(at + n, "\x10\x01", 2);
                end -= 2;
        }
        assert_int_equal(*at++, 1 << 3 | 2);
        assert_int_equal(varint(&at), N_TEXT);
        assert_int_equal(at + N_TEXT, end);
        hf__strbuf_done(&s);
        hf__strbuf_done(&text);
}

static void check_document(const char *text, size_t n, const struct hfd_message *message) {
        struct hf__buf *json = hf__buf_copy(text, n);
        struct hf__buf *split = hfd_message_document(message, json);
        struct hf__strbuf whole = message_of(message, text, n);

        assert_int_equal(split->n, whole.n);
        assert_memory_equal(split->data, whole.data, whole.n);
        hf__strbuf_done(&whole);
        hf__buf_unref(split);
        hf__buf_unref(json);
}

/* A document is read member by member: the message is that of the whole document. */
static void test_documents_are_read_in_pieces(void **state) {
        static const char text[] =
                "{\"openapi\":\"3.0.0\",\"info\":{\"title\":\"}\\\\\\\"{\"},\"paths\":{},"
                "\"components\":{\"schemas\":{\"a\":{\"description\":\"\\\"}],\",\"enum\":[[]]},"
                "\"b\":{\"properties\":{\"x-c\":{\"type\":\"string\"}}}}},\"other\":{\"a\":[]}}";

        check_document(text, sizeof text - 1, &hfd_message_v3);
        check_document("{}", 2, &hfd_message_v3);
        check_document("{\"paths\":{\"x\":{}}}", 18, &hfd_message_v2);
}

static void check_rendered(const struct hfd_served_rows *rows,
                           const struct hfd_openapi_document *document) {
        struct hf__buf *json = hfd_openapi_render(rows, document, NULL, NULL);
        bool v2 = document->kind == HFD_OPENAPI_V2;

        check_document(json->data, json->n, v2 ? &hfd_message_v2 : &hfd_message_v3);
        hf__buf_unref(json);
}

/* A default that is a list is no value of the message that v3 has for defaults. */
static void test_a_list_is_one_default(void **state) {
        static const char text[] = "{\"components\":{\"schemas\":{\"a\":{\"default\":[\"x\"]}}}}";
        struct hf__strbuf s = message_of(&hfd_message_v3, text, sizeof text - 1);

        assert_int_equal(s.n, 16);
        assert_memory_equal(s.data,
                            "\x2a\x0e\x0a\x0c\x0a\x0a\x0a\x01"
                            "a\x12\x05\x0a\x03\x8a\x02\0",
                            16);
        hf__strbuf_done(&s);
}

/* The text of the document of the core group; NULL = of v2. The caller frees it. */
static struct hf__buf *core_document(const struct hfd_served_rows *rows, bool v2) {
        size_t first = hfd_served_find_version(rows, "", "v1");
        struct hfd_openapi_document document = {.kind = HFD_OPENAPI_V3,
                                                .first = first,
                                                .end = hfd_served_version_end(rows, first)};

        if (v2)
                document = (struct hfd_openapi_document){.kind = HFD_OPENAPI_V2, .end = rows->n};
        return hfd_openapi_render(rows, &document, NULL, NULL);
}

#define QUANTITY      "io.k8s.apimachinery.pkg.api.resource.Quantity"
#define INT_OR_STRING "io.k8s.apimachinery.pkg.util.intstr.IntOrString"

/* A port and a quantity may be numbers. OpenAPI v2 cannot say so. */
static void test_values_of_two_types_have_the_definitions_of_kubernetes(void **state) {
        static const struct {
                const char *name, *v2, *v3;
        } all[] = {{QUANTITY, "{\"type\":\"string\"}",
                    "{\"oneOf\":[{\"type\":\"string\"},{\"type\":\"number\"}]}"},
                   {INT_OR_STRING, "{\"type\":\"string\",\"format\":\"int-or-string\"}",
                    "{\"oneOf\":[{\"type\":\"integer\"},{\"type\":\"string\"}],"
                    "\"format\":\"int-or-string\"}"}};

        hfd_resources_add_workloads();
        struct hfd_served_rows *rows = hfd_served_rows_new(NULL);
        for (int v2 = 0; v2 < 2; v2++) {
                struct hf__buf *text = core_document(rows, v2);
                struct hf__json *json = NULL;
                assert_int_equal(hf__json_parse(text->data, text->n, &json, NULL), 0);
                struct hf__json *definitions =
                        v2 ? hf__json_get(json, "definitions")
                           : hf__json_get(hf__json_get(json, "components"), "schemas");
                for (size_t i = 0; i < sizeof all / sizeof all[0]; i++) {
                        const char *wanted = v2 ? all[i].v2 : all[i].v3;
                        struct hf__json *is = hf__json_get(definitions, all[i].name), *good = NULL;
                        assert_non_null(is);
                        assert_non_null(hf__json_string(is, "description"));
                        hf__json_remove(is, "description");
                        assert_int_equal(hf__json_parse(wanted, strlen(wanted), &good, NULL), 0);
                        assert_true(hf__json_equal(is, good));
                        hf__json_free(good);
                }
                assert_non_null(strstr(text->data,
                                       v2 ? "\"$ref\":\"#/definitions/" INT_OR_STRING "\""
                                          : "\"$ref\":\"#/components/schemas/" INT_OR_STRING "\""));
                assert_non_null(
                        strstr(text->data, v2 ? "\"additionalProperties\":{\"$ref\":"
                                                "\"#/definitions/" QUANTITY "\""
                                              : "\"additionalProperties\":{\"allOf\":[{\"$ref\":"
                                                "\"#/components/schemas/" QUANTITY "\"}]"));
                hf__json_free(json);
                hf__buf_unref(text);
        }
        hfd_served_rows_free(rows);
}

static void test_all_documents_are_messages(void **state) {
        hfd_resources_add_workloads();
        struct hfd_served_rows *rows = hfd_served_rows_new(NULL);
        struct hfd_openapi_document document = {.kind = HFD_OPENAPI_V2, .end = rows->n};

        check_rendered(rows, &document);
        document.kind = HFD_OPENAPI_V3;
        for (size_t i = 0; i < rows->n; i = document.end) {
                document.first = i;
                document.end = hfd_served_version_end(rows, i);
                check_rendered(rows, &document);
        }
        hfd_served_rows_free(rows);
}

/* ---- shortage of memory ---- */

static struct hf__buf *message_of_version(struct hfd_served_rows *rows) {
        size_t first = hfd_served_find_version(rows, "scheduling.k8s.io", "v1");
        const struct hfd_openapi_document document = {.kind = HFD_OPENAPI_V3,
                                                      .first = first,
                                                      .end = hfd_served_version_end(rows, first)};
        struct hf__buf *json = hfd_openapi_render(rows, &document, NULL, NULL);
        struct hf__buf *message = json ? hfd_openapi_to_protobuf(&document, json) : NULL;

        hf__buf_unref(json);
        return message;
}

static struct hf__buf *expected;

/* Without memory there is no document; a part of one is never returned. */
static void life(int n) {
        failing_memory_arm(n);
        struct hfd_served_rows *rows = hfd_served_rows_new(NULL);
        struct hf__buf *message = rows ? message_of_version(rows) : NULL;
        failing_memory_disarm();
        assert_true(message || failing_memory_hit());
        if (message) {
                assert_int_equal(message->n, expected->n);
                assert_memory_equal(message->data, expected->data, expected->n);
        }
        hf__buf_unref(message);
        hfd_served_rows_free(rows);
}

static void test_a_document_is_whole_or_not_made(void **state) {
        struct hfd_served_rows *rows = hfd_served_rows_new(NULL);

        expected = message_of_version(rows);
        failing_memory_try_all(life, 20);
        hf__buf_unref(expected);
        hfd_served_rows_free(rows);
}

int main(void) {
        const struct CMUnitTest tests[] = {
                cmocka_unit_test(test_a_member_becomes_a_field),
                cmocka_unit_test(test_a_value_decides_on_the_field_of_a_oneof),
                cmocka_unit_test(test_a_map_becomes_pairs),
                cmocka_unit_test(test_yaml_has_no_special_characters),
                cmocka_unit_test(test_messages_are_nested_deeply),
                cmocka_unit_test(test_documents_are_read_in_pieces),
                cmocka_unit_test(test_a_document_is_whole_or_not_made),
                cmocka_unit_test(test_a_list_is_one_default),
                cmocka_unit_test(test_values_of_two_types_have_the_definitions_of_kubernetes),
                cmocka_unit_test(test_all_documents_are_messages),
        };

        return cmocka_run_group_tests(tests, NULL, NULL);
}

/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Protobuf answers are byte for byte those of Kubernetes' own encoder, whose bytes are recorded in
 * protobuf_samples.h; the decoder of bodies and the encoder are each other's mirror; and the header
 * Accept is read as kube-apiserver reads it.
 */
#undef NDEBUG
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#include <holdfast/error.h>

#include "base/base64.h"
#include "base/json.h"
#include "base/strbuf.h"
#include "protobuf_samples.h"
#include "server/handlers/negotiation.h"
#include "server/handlers/protobuf_body.h"
#include "server/resources/objects/protobuf_response.h"
#include "server/resources/rows/resource_table.h"
#include "server/schema/common.h"
#include "server/schema/protobuf_encode.h"

/* ---- recorded bytes ---- */

static const struct hfd_resource *find(const char *kind) {
        for (size_t i = 0; i < hfd_resources_count(); i++)
                if (strcmp(hfd_resource_at(i)->kind, kind) == 0)
                        return hfd_resource_at(i);
        return NULL;
}

/* The resource of a sample: an object or a list. For other answers any resource will do. */
static const struct hfd_resource *resource_of(const struct hf__json *json) {
        char kind[80];

        (void)snprintf(kind, sizeof kind, "%s", hf__json_string(json, "kind"));
        const struct hfd_resource *resource = find(kind);
        size_t n = strlen(kind);
        if (!resource && n > 4 && strcmp(kind + n - 4, "List") == 0) {
                kind[n - 4] = '\0';
                resource = find(kind);
        }
        return resource ? resource : hfd_resource_namespaces();
}

static struct hf__json *parse(const char *text) {
        struct hf__json *json = NULL;

        assert_int_equal(hf__json_parse(text, strlen(text), &json, NULL), 0);
        return json;
}

static void assert_bytes(const struct hf__buf *found, const char *base64, const char *name) {
        char *data = NULL;
        size_t n = 0;

        assert_int_equal(hf__base64_decode(base64, strlen(base64), &data, &n), 0);
        if (found->n != n || memcmp(found->data, data, n) != 0)
                fail_msg("other bytes than Kubernetes': %s", name);
        free(data);
}

static void test_answers_are_those_of_kubernetes(void **state) {
        for (size_t i = 0; i < PROTOBUF_SAMPLES; i++) {
                const char *text = protobuf_samples[i].json;
                struct hf__json *json = parse(text);
                struct hf__buf *from = hf__buf_copy(text, strlen(text)), *answer = NULL;

                assert_int_equal(hfd_protobuf_convert(resource_of(json), from, &answer), 0);
                assert_bytes(answer, protobuf_samples[i].base64, text);
                hf__buf_unref(answer);
                hf__buf_unref(from);
                hf__json_free(json);
        }
}

static void test_what_a_client_sends_is_encoded_to_the_same_bytes(void **state) {
        for (size_t i = 0; i < PROTOBUF_SAMPLES; i++) {
                struct hf__json *json = parse(protobuf_samples[i].json), *decoded = NULL;
                const struct hfd_resource *resource = find(hf__json_string(json, "kind"));
                struct hf__strbuf text = {0};
                struct hf__buf *answer = NULL;
                char *data = NULL;
                size_t n = 0;
                const char *base64 = protobuf_samples[i].base64;

                hf__json_free(json);
                if (!resource)
                        continue;
                assert_int_equal(hf__base64_decode(base64, strlen(base64), &data, &n), 0);
                assert_int_equal(hfd_protobuf_to_json(resource, false, data, n, &decoded), 0);
                hf__json_print(decoded, &text);
                struct hf__buf *from = hf__strbuf_to_buf(&text);
                assert_int_equal(hfd_protobuf_convert(resource, from, &answer), 0);
                assert_bytes(answer, base64, text.data);
                hf__buf_unref(answer);
                hf__buf_unref(from);
                hf__strbuf_done(&text);
                hf__json_free(decoded);
                free(data);
        }
}

/* Printed, the keys of the first one would be the same. */
static void test_texts_that_are_not_utf8_are_refused(void **state) {
        static const struct {
                const char *base64;
                int r;
        } cases[] = {{"azhzAAoMCgJ2MRIGU2VjcmV0EjAKEQoBcxIAGgAiADgyAAAAKkIAEgoKAdUSBWhlbGxvEgUKAfUS"
                      "ABoGT3BhcXVlKAEaACIA",
                      HF_E_INVALID},
                     {"azhzAAoMCgJ2MRIGU2VjcmV0EjAKEQoBcxIAGgAiADgyAAAAKkIAEgoKAWESBWhlbGxvEgUKAWIS"
                      "ABoGT3BhcXVlKAEaACIA",
                      0}};

        for (size_t i = 0; i < 2; i++) {
                struct hf__json *json = NULL;
                char *data = NULL;
                size_t n = 0;
                const char *base64 = cases[i].base64;

                assert_int_equal(hf__base64_decode(base64, strlen(base64), &data, &n), 0);
                assert_int_equal(hfd_protobuf_to_json(find("Secret"), false, data, n, &json),
                                 cases[i].r);
                hf__json_free(json);
                free(data);
        }
}

static void test_an_event_of_a_watch_is_enclosed(void **state) {
        const char *text = "{\"type\":\"ADDED\",\"object\":{\"kind\":\"ConfigMap\",\"apiVersion\":"
                           "\"v1\",\"metadata\":{}}}\n";
        struct hf__buf *from = hf__buf_copy(text, strlen(text)), *converted = NULL;
        struct hf__json *json = parse(text);
        struct hf__strbuf s = {0};

        /* The first sample is the encoding of this object. */
        char *data = NULL;
        size_t n = 0;
        const char *base64 = protobuf_samples[0].base64;
        assert_int_equal(hf__base64_decode(base64, strlen(base64), &data, &n), 0);
        assert_true(n < 120);
        assert_int_equal(hfd_protobuf_convert_frame(find("ConfigMap"), from, &converted), 0);
        assert_int_equal(converted->n, 4 + 7 + 2 + 2 + n);
        assert_memory_equal(converted->data, "\0\0\0", 3);
        assert_int_equal(converted->data[3], converted->n - 4);
        assert_memory_equal(converted->data + 4,
                            "\x0a\x05"
                            "ADDED\x12",
                            8);
        assert_int_equal(converted->data[12], n + 2);
        assert_int_equal(converted->data[13], 0x0a);
        assert_int_equal(converted->data[14], n);
        assert_memory_equal(converted->data + 15, data, n);
        hfd_protobuf_put_frame(&s, "ADDED", find("ConfigMap"), false, hf__json_get(json, "object"));
        assert_int_equal(s.n, converted->n);
        assert_memory_equal(s.data, converted->data, s.n);
        hf__strbuf_done(&s);
        free(data);
        hf__buf_unref(from);
        hf__buf_unref(converted);
        hf__json_free(json);
}

static void test_what_has_no_form_is_not_converted(void **state) {
        static const char *const texts[] =
                {"",
                 "[]",
                 "{}",
                 "{\"kind\":\"ConfigMap\"}",
                 "{\"kind\":\"Table\",\"apiVersion\":\"meta.k8s.io/v1\"}",
                 "{\"kind\":\"ConfigMapX\",\"apiVersion\":\"v1\"}"};

        for (size_t i = 0; i < sizeof texts / sizeof texts[0]; i++) {
                struct hf__buf *from = hf__buf_copy(texts[i], strlen(texts[i])), *answer = NULL;

                assert_int_equal(hfd_protobuf_convert(find("ConfigMap"), from, &answer),
                                 HF_E_INVALID);
                assert_int_equal(hfd_protobuf_convert_frame(find("ConfigMap"), from, &answer),
                                 HF_E_INVALID);
                assert_null(answer);
                hf__buf_unref(from);
        }
}

/* A store may contain any JSON. The encoder ignores values of wrong types. */
static void test_members_of_another_type_count_as_absent(void **state) {
        const char *text = "{\"metadata\":{\"name\":7,\"labels\":[\"x\"],\"generation\":\"x\","
                           "\"creationTimestamp\":\"soon\",\"finalizers\":{\"a\":\"b\"}},"
                           "\"data\":\"x\",\"binaryData\":{\"k\":\"?\",\"n\":null},"
                           "\"immutable\":null}";
        const char *same = "{\"metadata\":{},\"binaryData\":{\"k\":\"\",\"n\":null}}";
        struct hf__json *strange = parse(text), *plain = parse(same);
        struct hf__strbuf a = {0}, b = {0};

        hfd_protobuf_encode(&a, find("ConfigMap")->schema, strange);
        hfd_protobuf_encode(&b, find("ConfigMap")->schema, plain);
        assert_int_equal(a.error, 0);
        assert_int_equal(a.n, b.n);
        assert_memory_equal(a.data, b.data, a.n);
        hf__strbuf_done(&a);
        hf__strbuf_done(&b);
        hf__json_free(strange);
        hf__json_free(plain);
}

/* ---- random objects ---- */

static uint64_t seed = UINT64_C(0x9E3779B97F4A7C15);

static uint64_t random_below(uint64_t n) {
        seed ^= seed << 13;
        seed ^= seed >> 7;
        seed ^= seed << 17;
        return seed % n;
}

static const char *random_text(char text[24]) {
        static const char *const parts[] = {"", "a", "b/c", "\xc3\xbc", "\"", "\n", "zz"};
        size_t n = (size_t)random_below(4);

        text[0] = '\0';
        for (size_t i = 0; i < n; i++)
                strcat(text, parts[random_below(sizeof parts / sizeof parts[0])]);
        return text;
}

static struct hf__json *of_text(const char *text) {
        struct hf__json *array = hf__json_array();

        assert_int_equal(hf__json_append_string(array, text), 0);
        struct hf__json *value = hf__json_detach(array, hf__json_first(array));
        hf__json_free(array);
        return value;
}

static struct hf__json *random_struct(const struct hfd_schema *schema);
static struct hf__json *random_list(const struct hfd_schema *schema);

/* A value that is not the zero value, unless zero is set. */
static struct hf__json *random_value(const struct hfd_schema *schema, bool zero) {
        static const char *const times[] = {"1969-12-31T23:59:59Z", "2026-01-02T03:04:05Z",
                                            "9999-12-31T23:59:59Z"};
        static const char *const micro_times[] = {"1969-12-31T23:59:59.999999Z",
                                                  "0001-01-01T00:00:00.000001Z",
                                                  "2026-01-02T03:04:05.000000Z"};
        char text[32];

        switch (schema->type) {
        case HFD_SCHEMA_TEXT: (void)random_text(text); return of_text(*text || zero ? text : "t");
        case HFD_SCHEMA_BOOLEAN: return parse(zero && random_below(2) ? "false" : "true");
        case HFD_SCHEMA_INT32:
                (void)snprintf(text, sizeof text, "%d",
                               (int)(int32_t)(random_below(UINT32_MAX) | !zero));
                return parse(text);
        case HFD_SCHEMA_INT64:
                (void)snprintf(text, sizeof text, "%lld",
                               (long long)(random_below(UINT64_MAX) | !zero));
                return parse(text);
        case HFD_SCHEMA_TIME: return of_text(times[random_below(3)]);
        case HFD_SCHEMA_MICRO_TIME: return of_text(micro_times[random_below(3)]);
        case HFD_SCHEMA_BYTES: {
                static const char *const all[] = {"", "AA==", "/+8=", "aGVsbG8="};
                return of_text(all[random_below(4)]);
        }
        case HFD_SCHEMA_ANY: return parse("{\"f:a\":{\".\":{}}}");
        case HFD_SCHEMA_STRUCT: return random_struct(schema);
        case HFD_SCHEMA_MAP:
        case HFD_SCHEMA_LIST: break;
        case HFD_SCHEMA_NUMBER: {
                static const char *const all[] = {"1.5", "-0.1", "1e+300", "7", "0"};
                return parse(all[random_below(zero ? 5 : 4)]);
        }
        case HFD_SCHEMA_EITHER:
                if (schema->other->type == HFD_SCHEMA_BOOLEAN)
                        return random_below(2) ? random_value(schema->items, true)
                                               : random_value(schema->other, true);
                return random_below(2) ? random_value(schema->items, true)
                                       : random_list(schema->other);
        case HFD_SCHEMA_INT_OR_STRING:
                if (random_below(2) == 0)
                        return of_text(random_text(text));
                (void)snprintf(text, sizeof text, "%d",
                               (int)(int32_t)(random_below(UINT32_MAX) | !zero));
                return parse(text);
        case HFD_SCHEMA_QUANTITY: {
                static const char *const all[] = {"1k", "500m", "64Mi", "0"};
                return of_text(all[random_below(zero ? 4 : 3)]);
        }
        }
        fail(); /* the encoder has no such values */
        return NULL;
}

static struct hf__json *random_map(const struct hfd_schema *schema) {
        struct hf__json *map = hf__json_object();
        size_t n = 1 + (size_t)random_below(3);

        for (size_t i = 0; i < n; i++) {
                char key[40], text[24];
                struct hf__json *value;

                (void)snprintf(key, sizeof key, "%s%zu", random_text(text), i);
                if (schema->items->type == HFD_SCHEMA_LIST) {
                        value = hf__json_array();
                        for (size_t k = 0; k < i; k++)
                                hf__json_append_string(value, random_text(text));
                } else {
                        value = random_value(schema->items, true);
                }
                assert_int_equal(hf__json_add(map, key, value), 0);
        }
        return map;
}

static struct hf__json *random_list(const struct hfd_schema *schema) {
        struct hf__json *list = hf__json_array();
        size_t n = 1 + (size_t)random_below(3);

        for (size_t i = 0; i < n; i++)
                assert_int_equal(hf__json_append(list, random_value(schema->items, true)), 0);
        return list;
}

static bool is_scalar(const struct hfd_schema *schema) {
        return schema->type != HFD_SCHEMA_STRUCT && schema->type != HFD_SCHEMA_EITHER &&
               !schema->items;
}

/* A random object. It has no zeros and no empty messages in fields that are not pointers in Go,
 * because the decoder leaves these out. */
static struct hf__json *random_struct(const struct hfd_schema *schema) {
        static int depth; /* of a schema that contains itself */
        bool again = strcmp(hfd_schema_struct_name(schema), "JSONSchemaProps") == 0;
        struct hf__json *object = hf__json_object();

        for (size_t i = 0; i < schema->n_fields; i++) {
                const struct hfd_schema_field *f = &schema->fields[i];
                bool pointer = (f->flags & HFD_FIELD_POINTER) != 0;
                struct hf__json *value;

                if (f->protobuf_tag == 0 || random_below(3) == 0)
                        continue;
                if (again && !is_scalar(f->schema) && (depth > 3 || random_below(6) != 0))
                        continue;
                depth += again;
                if (f->schema->type == HFD_SCHEMA_LIST)
                        value = random_list(f->schema);
                else if (f->schema->type == HFD_SCHEMA_MAP)
                        value = random_map(f->schema);
                else
                        value = random_value(f->schema, pointer);
                if (f->schema->type == HFD_SCHEMA_STRUCT && !pointer && hf__json_count(value) == 0)
                        hf__json_free(value);
                else
                        assert_int_equal(hf__json_put(object, f->name, value), 0);
                depth -= again;
        }
        return object;
}

static void check_random(const struct hfd_resource *resource) {
        struct hf__json *object = random_struct(resource->schema), *decoded = NULL;
        char version[HFD_API_VERSION_MAX];
        struct hf__strbuf text = {0}, found = {0};
        struct hf__buf *answer = NULL;

        hfd_resource_api_version(resource, version);
        assert_int_equal(hf__json_set_string(object, "kind", resource->kind), 0);
        assert_int_equal(hf__json_set_string(object, "apiVersion", version), 0);
        hf__json_print(object, &text);
        struct hf__buf *from = hf__strbuf_to_buf(&text);
        assert_int_equal(hfd_protobuf_convert(resource, from, &answer), 0);
        assert_int_equal(hfd_protobuf_to_json(resource, false, answer->data, answer->n, &decoded),
                         0);
        if (!hf__json_equal(object, decoded)) {
                hf__json_print(decoded, &found);
                fail_msg("%s became %s", text.data, found.data);
        }
        hf__buf_unref(from);
        hf__buf_unref(answer);
        hf__strbuf_done(&text);
        hf__json_free(object);
        hf__json_free(decoded);
}

static void test_a_random_object_survives_both_ways(void **state) {
        for (size_t i = 0; i < hfd_resources_count(); i++)
                for (int round = 0; round < 300 && hfd_protobuf_has_form(hfd_resource_at(i));
                     round++)
                        check_random(hfd_resource_at(i));
}

enum { ALL_OF = 25, NOT = 28 };

/* A CustomResourceDefinition with a schema in n others, as a body. field: which holds the next. */
static void put_nested(struct hf__strbuf *s, size_t n, unsigned field) {
        enum { OBJECT_SPEC = 2, SPEC_VERSIONS = 7, VERSION_SCHEMA = 4, PROPS = 1, RAW = 2 };

        hf__strbuf_add(s, "k8s\0", 4);
        for (size_t i = 0; i < n; i++)
                hfd_protobuf_wrap(s, field, 4);
        hfd_protobuf_wrap(s, PROPS, 4);
        hfd_protobuf_wrap(s, VERSION_SCHEMA, 4);
        hfd_protobuf_wrap(s, SPEC_VERSIONS, 4);
        hfd_protobuf_wrap(s, OBJECT_SPEC, 4);
        hfd_protobuf_wrap(s, RAW, 4);
        assert_int_equal(s->error, 0);
}

/* A client must not decide how much stack a thread needs. */
static void test_a_schema_is_not_nested_without_end(void **state) {
        const struct hfd_resource *definitions = find("CustomResourceDefinition");
        static const struct {
                size_t n;
                int result;
        } cases[] = {{0, 0}, {900, 0}, {1100, HF_E_INVALID}, {20000, HF_E_INVALID}};

        for (size_t i = 0; i < sizeof cases / sizeof cases[0]; i++) {
                struct hf__strbuf body = {0};
                struct hf__json *json = NULL;
                put_nested(&body, cases[i].n, NOT);
                assert_int_equal(hfd_protobuf_to_json(definitions, false, body.data, body.n, &json),
                                 cases[i].result);
                hf__json_free(json);
                hf__strbuf_done(&body);
        }
}

/* An element of a list is in two JSON values, and in one message. */
static void test_what_is_stored_can_be_parsed_again(void **state) {
        const struct hfd_resource *definitions = find("CustomResourceDefinition");

        for (size_t n = 490; n <= 500; n++) {
                struct hf__strbuf body = {0}, text = {0};
                struct hf__json *json = NULL;
                put_nested(&body, n, ALL_OF);
                int r = hfd_protobuf_to_json(definitions, false, body.data, body.n, &json);
                assert_int_equal(r, 2 * n + 6 <= HF__JSON_DEPTH_MAX ? 0 : HF_E_INVALID);
                hf__json_print(json, &text);
                hf__json_free(json);
                if (r == 0)
                        assert_int_equal(hf__json_parse(text.data, text.n, &json, NULL), 0);
                if (r == 0)
                        hf__json_free(json);
                hf__strbuf_done(&text);
                hf__strbuf_done(&body);
        }
}

/* ---- Accept ---- */

#define PB      "application/vnd.kubernetes.protobuf"
#define PARTIAL ";as=PartialObjectMetadata;g=meta.k8s.io;v=v1"
#define LIST    ";as=PartialObjectMetadataList;g=meta.k8s.io;v=v1"
#define TABLE   ";as=Table;g=meta.k8s.io;v=v1"

static void test_the_order_of_accept_is_that_of_kubernetes(void **state) {
        enum { JSON, PROTOBUF, REFUSED };
        static const struct {
                const char *accept;
                const char *kind;
                enum hfd_verb verb;
                int answer;
                enum hfd_format format;
        } cases[] = {
                {NULL, "ConfigMap", HFD_GET, JSON, HFD_AS_JSON},
                {PB, "ConfigMap", HFD_GET, PROTOBUF, HFD_AS_JSON},
                {PB ",application/json", "ConfigMap", HFD_CREATE, PROTOBUF, HFD_AS_JSON},
                {"application/json," PB, "ConfigMap", HFD_LIST, JSON, HFD_AS_JSON},
                {"application/json;q=0.5, " PB ";q=0.9", "ConfigMap", HFD_LIST, PROTOBUF,
                 HFD_AS_JSON},
                {PB ";q=0.5, application/json", "ConfigMap", HFD_LIST, JSON, HFD_AS_JSON},
                {PB ";q=x, application/json;q=0.1", "ConfigMap", HFD_LIST, JSON, HFD_AS_JSON},
                {"*/*, " PB, "ConfigMap", HFD_GET, PROTOBUF, HFD_AS_JSON},
                {"application/*, " PB ";q=0.1", "ConfigMap", HFD_GET, PROTOBUF, HFD_AS_JSON},
                {"*/*", "ConfigMap", HFD_GET, JSON, HFD_AS_JSON},
                {"text/plain, " PB, "ConfigMap", HFD_GET, PROTOBUF, HFD_AS_JSON},
                {PB ";stream=watch", "ConfigMap", HFD_WATCH, PROTOBUF, HFD_AS_JSON},
                {PB ";stream=x,application/json", "ConfigMap", HFD_WATCH, JSON, HFD_AS_JSON},
                {PB, "Workspace", HFD_GET, REFUSED, HFD_AS_JSON},
                {PB ",application/json", "Workspace", HFD_GET, JSON, HFD_AS_JSON},
                {PB PARTIAL, "Workspace", HFD_GET, PROTOBUF, HFD_AS_PARTIAL},
                {PB LIST ",application/json", "Workspace", HFD_LIST, PROTOBUF, HFD_AS_PARTIAL},
                {PB PARTIAL, "ConfigMap", HFD_WATCH, PROTOBUF, HFD_AS_PARTIAL},
                {PB LIST, "ConfigMap", HFD_GET, REFUSED, HFD_AS_JSON},
                {PB TABLE, "ConfigMap", HFD_GET, REFUSED, HFD_AS_JSON},
                {PB TABLE ",application/json" TABLE, "ConfigMap", HFD_GET, JSON, HFD_AS_TABLE},
                {PB, "SelfSubjectReview", HFD_CREATE, PROTOBUF, HFD_AS_JSON},
                {"application/cbor", "ConfigMap", HFD_GET, REFUSED, HFD_AS_JSON},
        };

        for (size_t i = 0; i < sizeof cases / sizeof cases[0]; i++) {
                struct hfd_request request = {.verb = cases[i].verb,
                                              .resource = find(cases[i].kind)};
                struct hfd_response response = {0};
                bool good = hfd_negotiate_format(&request, cases[i].accept, &response);

                if (good != (cases[i].answer != REFUSED) ||
                    request.protobuf != (cases[i].answer == PROTOBUF) ||
                    request.format != cases[i].format)
                        fail_msg("%s", cases[i].accept);
                assert_int_equal(response.code, good ? 0 : 406);
                hfd_response_done(&response);
        }
}

int main(void) {
        const struct CMUnitTest tests[] = {
                cmocka_unit_test(test_answers_are_those_of_kubernetes),
                cmocka_unit_test(test_what_a_client_sends_is_encoded_to_the_same_bytes),
                cmocka_unit_test(test_texts_that_are_not_utf8_are_refused),
                cmocka_unit_test(test_an_event_of_a_watch_is_enclosed),
                cmocka_unit_test(test_what_has_no_form_is_not_converted),
                cmocka_unit_test(test_members_of_another_type_count_as_absent),
                cmocka_unit_test(test_a_random_object_survives_both_ways),
                cmocka_unit_test(test_a_schema_is_not_nested_without_end),
                cmocka_unit_test(test_what_is_stored_can_be_parsed_again),
                cmocka_unit_test(test_the_order_of_accept_is_that_of_kubernetes),
        };
        return cmocka_run_group_tests(tests, NULL, NULL);
}

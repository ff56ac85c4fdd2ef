/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The decoder brings objects into the form of their schema, reports what a strict decoder would
 * refuse, and names a wrong type as Kubernetes does.
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

#include <cmocka.h>

#include <holdfast/error.h>

#include "base/json.h"
#include "failing_memory.h"
#include "server/schema/common.h"
#include "server/schema/decode.h"
#include "server/schema/values/quantity.h"

static const struct hfd_schema_field part_fields[] = {{"bytes", &hfd_schema_bytes},
                                                      {"count", &hfd_schema_int32},
                                                      {"name", &hfd_schema_text}};
static const struct hfd_schema part = {HFD_STRUCT("io.example.v1.Part", part_fields)};
static const struct hfd_schema any_part = {HFD_STRUCT("io.example.v1.AnyPart", part_fields),
                                           .preserve_unknown = true};
static const struct hfd_schema map_of_parts = {.type = HFD_SCHEMA_MAP, .items = &part};
static const struct hfd_schema type_text = {.type = HFD_SCHEMA_TEXT,
                                            .definition = "io.example.v1.ThingType"};
static const struct hfd_schema_field inner_fields[] = {
        {"one", &hfd_schema_text, .protobuf_tag = 1, .embedded_tag = 3},
        {"two", &hfd_schema_list_of_texts, .protobuf_tag = 1,
         .embedded_tag = HFD_EMBEDDED_IN(3, 2)},
};
static const struct hfd_schema inner = {HFD_STRUCT("io.example.v1.Inner", inner_fields),
                                        .embedded = "Outermost.Innermost"};
static const struct hfd_schema keyed = {.type = HFD_SCHEMA_MAP,
                                        .items = &hfd_schema_quantity,
                                        .definition = "map[v1.Name]resource.Quantity"};
static const struct hfd_schema_field thing_fields[] = {
        {"amount", &hfd_schema_quantity},
        {"amounts", &hfd_schema_resource_list},
        HFD_FIELD_API_VERSION,
        {"big", &hfd_schema_int64},
        {"data", &hfd_schema_map_of_texts},
        {"emptied", &hfd_schema_map_of_texts, .protobuf_tag = 1},
        {"emptiedList", &hfd_schema_list_of_texts, .protobuf_tag = 2},
        {"emptiedPart", &part, .protobuf_tag = 3},
        {"extra", HFD_MAP_OF_LISTS("io.example.v1.Extra")},
        {"free", &any_part},
        {"inner", &inner},
        {"keptEmpty", &hfd_schema_list_of_texts, .protobuf_tag = 4, .flags = HFD_FIELD_KEEPS_EMPTY},
        {"keyed", &keyed},
        HFD_FIELD_KIND,
        {"list", HFD_LIST_OF(&part)},
        {"map", &map_of_parts},
        HFD_FIELD_METADATA,
        {"on", &hfd_schema_boolean},
        {"part", &part},
        {"required", &hfd_schema_list_of_texts, .protobuf_tag = 5, .flags = HFD_FIELD_REQUIRED},
        {"share", &hfd_schema_int_or_string},
        {"texts", &hfd_schema_list_of_texts},
        {"type", &type_text},
        {"when", &hfd_schema_time},
        {"whenMicro", &hfd_schema_micro_time},
        {"wild", &hfd_schema_any},
};
static const struct hfd_schema thing = {HFD_STRUCT("io.example.v1.Thing", thing_fields)};

/* Decodes text. The result, printed, is in result; the lines of strict are in lines. */
static char result[2000], lines[9000], reason[400];

static int decode_by(const char *text, int (*fn)(const struct hfd_schema *, struct hf__json *,
                                                 struct hfd_strict *, char *, size_t)) {
        struct hfd_strict strict = {0};
        struct hf__strbuf out = {0};
        struct hf__json *json;

        assert_int_equal(hf__json_parse(text, strlen(text), &json, NULL), 0);
        assert_int_equal(hfd_strict_drop_duplicates(json, NULL, &strict), 0);
        int r = fn(&thing, json, &strict, reason, sizeof reason);
        hf__json_print(json, &out);
        (void)snprintf(result, sizeof result, "%s", out.data);
        (void)snprintf(lines, sizeof lines, "%s", strict.lines.data ? strict.lines.data : "");
        hf__strbuf_done(&out);
        hf__strbuf_done(&strict.lines);
        hf__json_free(json);
        return r;
}

static int decode(const char *text) { return decode_by(text, hfd_schema_decode); }

static void test_unknown_fields_are_dropped_and_reported(void **state) {
        assert_int_equal(decode("{\"x\":1,\"part\":{\"name\":\"a\",\"y\":{\"z\":1}},"
                                "\"list\":[{},{\"v\":2}],\"map\":{\"k.1\":{\"w\":3}},"
                                "\"metadata\":{\"lables\":{}},\"data\":{\"anything\":\"b\"}}"),
                         0);
        assert_string_equal(result, "{\"part\":{\"name\":\"a\"},\"list\":[{},{}],"
                                    "\"map\":{\"k.1\":{}},\"metadata\":{},"
                                    "\"data\":{\"anything\":\"b\"}}");
        assert_string_equal(lines, "unknown field \"x\"\nunknown field \"part.y\"\n"
                                   "unknown field \"list[1].v\"\nunknown field \"map.k.1.w\"\n"
                                   "unknown field \"metadata.lables\"");
}

static void test_a_path_in_a_report_cannot_start_a_header(void **state) {
        assert_int_equal(decode("{\"a\\r\\nSet-Cookie: x\\\"\\\\\":1}"), 0);
        assert_string_equal(lines, "unknown field \"a??Set-Cookie: x??\"");
}

static void test_reports_are_bounded(void **state) {
        char text[3000] = "{";
        size_t n = 1, n_lines = 1;

        for (int i = 0; i < 150; i++)
                n += (size_t)snprintf(text + n, sizeof text - n, "%s\"u%d\":0", i ? "," : "", i);
        (void)snprintf(text + n, sizeof text - n, "}");
        assert_int_equal(decode(text), 0);
        assert_string_equal(result, "{}");
        for (const char *at = lines; *at; at++)
                n_lines += *at == '\n';
        assert_int_equal(n_lines, HFD_STRICT_MAX);
}

static void test_what_preserves_unknown_fields_keeps_them(void **state) {
        const char *text =
                "{\"free\":{\"x\":null,\"name\":\"a\"},\"wild\":{\"y\":[null,{\"z\":1}]}}";

        assert_int_equal(decode(text), 0);
        assert_string_equal(result, text);
        assert_string_equal(lines, "");
}

static void test_null_is_the_absent_value(void **state) {
        assert_int_equal(decode("{\"part\":null,\"on\":null,\"data\":{\"a\":null},"
                                "\"texts\":[null,\"b\"],\"list\":[null],\"map\":{\"k\":null}}"),
                         0);
        assert_string_equal(result, "{\"data\":{\"a\":\"\"},\"texts\":[\"\",\"b\"],\"list\":[{}],"
                                    "\"map\":{\"k\":{}}}");
}

static void test_empty_lists_and_maps_are_absent_values(void **state) {
        static const char text[] =
                "{\"emptied\":{},\"emptiedList\":[],\"emptiedPart\":{},\"keptEmpty\":[],"
                "\"required\":[],\"data\":{},\"metadata\":{\"labels\":{},\"finalizers\":[]}}";

        assert_int_equal(decode(text), 0);
        assert_string_equal(result, "{\"emptiedPart\":{},\"keptEmpty\":[],\"required\":[],"
                                    "\"data\":{},\"metadata\":{}}");
        assert_int_equal(decode("{\"emptied\":{\"a\":null},\"emptiedList\":[null]}"), 0);
        assert_string_equal(result, "{\"emptied\":{\"a\":\"\"},\"emptiedList\":[\"\"]}");
        assert_int_equal(decode("{\"emptied\":[]}"), HF_E_INVALID);
        assert_int_equal(decode_by(text, hfd_schema_decode_config), 0);
        assert_string_equal(result, text);
}

static void test_the_last_of_duplicate_fields_wins(void **state) {
        assert_int_equal(decode("{\"on\":true,\"data\":{\"a\":\"1\",\"b\":\"x\",\"a\":\"2\","
                                "\"a\":\"3\"},\"list\":[{\"name\":\"x\",\"name\":\"y\"}],"
                                "\"on\":false}"),
                         0);
        assert_string_equal(result, "{\"data\":{\"b\":\"x\",\"a\":\"3\"},"
                                    "\"list\":[{\"name\":\"y\"}],\"on\":false}");
        assert_string_equal(lines, "duplicate field \"data.a\"\n"
                                   "duplicate field \"list[0].name\"\nduplicate field \"on\"");
}

/* Reports by the schema of a thing, without decoding. *ret_result: what the function returns. */
static void report(const char *text, int *ret_result) {
        struct hfd_strict strict = {0};
        struct hf__json *json;

        assert_int_equal(hf__json_parse(text, strlen(text), &json, NULL), 0);
        *ret_result = hfd_strict_drop_duplicates(json, &thing, &strict);
        (void)snprintf(lines, sizeof lines, "%s", strict.lines.data ? strict.lines.data : "");
        assert_int_equal(hf__json_check_unique(json, NULL), 0);
        hf__strbuf_done(&strict.lines);
        hf__json_free(json);
}

static void test_mistakes_have_the_order_of_the_body(void **state) {
        static const struct {
                const char *text, *lines;
        } cases[] = {
                {"{\"x\":1,\"on\":true,\"on\":false,\"part\":{\"y\":1},\"data\":{\"a\":\"\",\"a\":"
                 "\"\"}}",
                 "unknown field \"x\"\nduplicate field \"on\"\nunknown field \"part.y\"\n"
                 "duplicate field \"data.a\""},
                /* of an unknown field nothing else is reported, and each mistake once */
                {"{\"x\":{\"y\":1,\"y\":2},\"x\":3,\"on\":true,\"on\":true,\"on\":true}",
                 "unknown field \"x\"\nduplicate field \"on\""},
                {"{\"part\":{\"name\":\"\",\"name\":\"\"},\"z\":1,\"part\":{\"name\":\"\",\"name\":"
                 "\"\"}}",
                 "duplicate field \"part.name\"\nunknown field \"z\"\nduplicate field \"part\""},
                {"{\"list\":[{},{\"v\":2,\"name\":\"\",\"name\":\"\"}],\"map\":{\"k\":{\"w\":1},"
                 "\"k\":{}}}",
                 "unknown field \"list[1].v\"\nduplicate field \"list[1].name\"\n"
                 "unknown field \"map.k.w\"\nduplicate field \"map.k\""},
                /* what has no schema has no mistakes */
                {"{\"wild\":{\"a\":1,\"a\":2},\"free\":{\"b\":1,\"b\":2}}", ""},
        };
        int r;

        for (size_t i = 0; i < sizeof cases / sizeof cases[0]; i++) {
                report(cases[i].text, &r);
                assert_int_equal(r, 1);
                assert_string_equal(lines, cases[i].lines);
        }
        report("{\"x\":1}", &r); /* without duplicate fields decoding reports the others */
        assert_int_equal(r, 0);
        assert_string_equal(lines, "");
}

/* Their paths are long, and each repeats one of the others. */
static void test_mistakes_that_repeat_others_cost_little(void **state) {
        enum { DEPTH = 900, N = 20000 };
        struct hf__strbuf text = {0};
        struct hfd_strict strict = {0};
        struct hf__json *json;

        for (int i = 0; i < DEPTH; i++)
                hf__strbuf_puts(&text, "{\"a-key-of-some-length\":");
        hf__strbuf_putc(&text, '[');
        for (int i = 0; i < N; i++)
                hf__strbuf_puts(&text,
                                i ? ",{\"p\":{\"x\":1,\"x\":1}}" : "{\"p\":{\"x\":1,\"x\":1}}");
        hf__strbuf_putc(&text, ']');
        for (int i = 0; i < DEPTH; i++)
                hf__strbuf_putc(&text, '}');
        assert_int_equal(hf__json_parse(text.data, text.n, &json, NULL), 0);
        assert_int_equal(hfd_strict_drop_duplicates(json, NULL, &strict), 0);
        assert_in_range(strict.n, 1, HFD_STRICT_MAX);
        assert_true(strict.lines.n < (size_t)5 << 20);
        assert_int_equal(hf__json_check_unique(json, NULL), 0);
        hf__strbuf_done(&strict.lines);
        hf__json_free(json);
        hf__strbuf_done(&text);
}

static void test_times_have_one_form(void **state) {
        assert_int_equal(decode("{\"when\":\"2026-11-22T23:00:00.75+01:00\","
                                "\"whenMicro\":\"2026-11-22T23:00:00.750000+00:00\"}"),
                         0);
        assert_string_equal(result, "{\"when\":\"2026-11-22T22:00:00Z\","
                                    "\"whenMicro\":\"2026-11-22T23:00:00.750000Z\"}");
        assert_int_equal(decode("{\"when\":\"2026-11-22T3:00:00,5-24:60\","
                                "\"whenMicro\":\"2024-02-29T23:00:00,+00001Z\"}"),
                         0);
        assert_string_equal(result, "{\"when\":\"2026-11-23T04:00:00Z\","
                                    "\"whenMicro\":\"2024-02-29T23:00:00.000001Z\"}");
        assert_int_equal(decode("{\"when\":\"0001-01-01T01:00:00.5+01:00\","
                                "\"whenMicro\":\"0001-01-01T00:00:00.000000Z\"}"),
                         0);
        assert_string_equal(result, "{}");
}

static void test_spaces_around_a_quantity_do_not_count(void **state) {
        char digits[HFD_QUANTITY_INPUT_MAX + 1], text[4 * sizeof digits];

        assert_int_equal(decode("{\"amount\":\" \\t1000m\\r\\n\"}"), 0);
        assert_string_equal(result, "{\"amount\":\"1\"}");
        /* A text that is too long, of which the part that fits would be a quantity. */
        memset(digits, '1', sizeof digits);
        digits[sizeof digits - 1] = '\0';
        (void)snprintf(text, sizeof text, "{\"amount\":\"%s x\"}", digits);
        assert_int_equal(decode(text), HF_E_INVALID);
        (void)snprintf(text, sizeof text, "{\"amount\":\"%s1\"}", digits);
        assert_int_equal(decode(text), HF_E_INVALID);
        (void)snprintf(text, sizeof text, "{\"amount\":\"%*s%s%*s\"}", (int)sizeof digits, "",
                       digits, (int)sizeof digits, "");
        assert_int_equal(decode(text), 0);
}

static void test_bytes_have_no_line_breaks(void **state) {
        assert_int_equal(decode("{\"list\":[{\"bytes\":\"YWJj\\r\\nZGVm\\n\"},{\"bytes\":\"\\n\"},"
                                "{\"bytes\":\"YQ==\"},{\"bytes\":\"\"}]}"),
                         0);
        assert_string_equal(result, "{\"list\":[{\"bytes\":\"YWJjZGVm\"},{\"bytes\":\"\"},"
                                    "{\"bytes\":\"YQ==\"},{\"bytes\":\"\"}]}");
}

struct wrong {
        const char *text, *reason;
};

static void expect_reasons(const struct wrong *cases, size_t n) {
        for (size_t i = 0; i < n; i++) {
                assert_int_equal(decode(cases[i].text), HF_E_INVALID);
                assert_string_equal(reason, cases[i].reason);
        }
}

static void test_a_wrong_type_is_named_as_kubernetes_names_it(void **state) {
        static const struct wrong cases[] = {
                {"{\"on\":\"yes\"}",
                 "json: cannot unmarshal string into Go struct field Thing.on of type bool"},
                {"{\"part\":[]}",
                 "json: cannot unmarshal array into Go struct field Thing.part of type v1.Part"},
                {"{\"part\":{\"count\":1.5}}",
                 "json: cannot unmarshal number 1.5 into Go struct field Part.part.count of type "
                 "int32"},
                {"{\"part\":{\"count\":3000000000}}",
                 "json: cannot unmarshal number 3000000000 into Go struct field Part.part.count of "
                 "type int32"},
                {"{\"big\":\"1\"}",
                 "json: cannot unmarshal string into Go struct field Thing.big of type int64"},
                {"{\"list\":{}}",
                 "json: cannot unmarshal object into Go struct field Thing.list of type []v1.Part"},
                {"{\"list\":[{\"name\":\"a\"},7]}",
                 "json: cannot unmarshal number into Go struct field Thing.list of type v1.Part"},
                {"{\"list\":[{\"name\":true}]}",
                 "json: cannot unmarshal bool into Go struct field Part.list.name of type string"},
                {"{\"data\":[]}",
                 "json: cannot unmarshal array into Go struct field Thing.data of type "
                 "map[string]string"},
                {"{\"data\":{\"a\":1}}",
                 "json: cannot unmarshal number into Go struct field Thing.data of type string"},
                {"{\"metadata\":{\"labels\":{\"a\":1}}}",
                 "json: cannot unmarshal number into Go struct field ObjectMeta.metadata.labels of "
                 "type string"},
                {"{\"part\":{\"bytes\":\"abc\"}}", "illegal base64 data at input byte 0"},
                {"{\"part\":{\"bytes\":\"admin\"}}", "illegal base64 data at input byte 4"},
                {"{\"part\":{\"bytes\":\"Zm=v\"}}", "illegal base64 data at input byte 2"},
                {"{\"share\":1.5}", "json: cannot unmarshal number 1.5 into Go struct field "
                                    "Thing.share of type int32"},
                {"{\"kind\":1}", "json: cannot unmarshal number into Go struct field "
                                 "Thing.TypeMeta.kind of type string"},
                {"{\"metadata\":{\"uid\":1}}", "json: cannot unmarshal number into Go struct field "
                                               "ObjectMeta.metadata.uid of type types.UID"},
                {"{\"inner\":{\"one\":1}}", "json: cannot unmarshal number into Go struct field "
                                            "Inner.inner.Outermost.one of type string"},
                {"{\"inner\":{\"two\":[1]}}", "json: cannot unmarshal number into Go struct field "
                                              "Inner.inner.Outermost.Innermost.two of type string"},
                {"{\"amounts\":1}", "json: cannot unmarshal number into Go struct field "
                                    "Thing.amounts of type v1.ResourceList"},
                {"{\"extra\":{\"a\":1}}", "json: cannot unmarshal number into Go struct field "
                                          "Thing.extra of type v1.Extra"},
                {"{\"extra\":[]}", "json: cannot unmarshal array into Go struct field "
                                   "Thing.extra of type map[string]v1.Extra"},
                {"{\"keyed\":[]}", "json: cannot unmarshal array into Go struct field "
                                   "Thing.keyed of type map[v1.Name]resource.Quantity"},
        };

        expect_reasons(cases, sizeof cases / sizeof cases[0]);
}

/* Kubernetes makes an object of the patched map without JSON. */
static void test_a_wrong_type_after_a_strategic_patch_has_other_words(void **state) {
        static const struct wrong cases[] = {
                {"{\"on\":\"yes\"}", "unrecognized type: bool"},
                {"{\"on\":1}", "unrecognized type: bool"},
                {"{\"big\":\"1\"}", "unrecognized type: int64"},
                {"{\"part\":{\"count\":\"1\"}}", "unrecognized type: int32"},
                {"{\"part\":{\"count\":{}}}", "unrecognized type: int32"},
                {"{\"part\":{\"count\":1.5}}", "cannot convert float64 to int32"},
                {"{\"part\":{\"count\":2147483648}}", "cannot convert int64 to int32"},
                {"{\"part\":{\"count\":-2147483649}}", "cannot convert int64 to int32"},
                {"{\"part\":{\"count\":1e300}}", "cannot convert float64 to int32"},
                {"{\"big\":1e300}", "cannot convert float64 to int64"},
                {"{\"part\":{\"name\":1}}", "cannot convert int64 to string"},
                {"{\"part\":{\"name\":1.5}}", "unrecognized type: string"},
                {"{\"part\":{\"name\":true}}", "unrecognized type: string"},
                {"{\"part\":{\"name\":[]}}", "unrecognized type: string"},
                {"{\"type\":1}", "cannot convert int64 to v1.ThingType"},
                {"{\"part\":[]}", "cannot restore struct from: slice"},
                {"{\"part\":\"a\"}", "cannot restore struct from: string"},
                {"{\"list\":{}}", "cannot restore slice from map"},
                {"{\"list\":[7]}", "cannot restore struct from: int64"},
                {"{\"data\":true}", "cannot restore map from bool"},
                {"{\"data\":{\"a\":1}}", "cannot convert int64 to string"},
                {"{\"part\":{\"bytes\":1}}", "cannot restore slice from int64"},
                {"{\"part\":{\"bytes\":\"abc\"}}",
                 "error decoding from json: illegal base64 data at input byte 0"},
                {"{\"share\":true}", "json: cannot unmarshal bool into Go value of type int32"},
                {"{\"when\":7}", "json: cannot unmarshal number into Go value of type string"},
        };

        for (size_t i = 0; i < sizeof cases / sizeof cases[0]; i++) {
                assert_int_equal(decode_by(cases[i].text, hfd_schema_decode_patched), HF_E_INVALID);
                assert_string_equal(reason, cases[i].reason);
        }
        assert_int_equal(decode_by("{\"emptied\":{},\"on\":true,\"x\":1}",
                                   hfd_schema_decode_patched),
                         0);
        assert_string_equal(result, "{\"on\":true}");
        assert_string_equal(lines, "unknown field \"x\"");
}

static void test_a_wrong_time_is_named_as_kubernetes_names_it(void **state) {
        static const struct wrong cases[] = {
                {"{\"when\":7}",
                 "json: cannot unmarshal number into Go struct field Thing.when of type string"},
                {"{\"when\":\"\"}", "parsing time \"\" as \"2006-01-02T15:04:05Z07:00\": cannot "
                                    "parse \"\" as \"2006\""},
                {"{\"when\":\"2026-11-22\"}",
                 "parsing time \"2026-11-22\" as \"2006-01-02T15:04:05Z07:00\": cannot parse \"\" "
                 "as \"T\""},
                {"{\"when\":\"2026-11-22T10:00:00\"}",
                 "parsing time \"2026-11-22T10:00:00\" as \"2006-01-02T15:04:05Z07:00\": cannot "
                 "parse \"\" as \"Z07:00\""},
                {"{\"whenMicro\":\"2026-11-22T10:00:00Z\"}",
                 "parsing time \"2026-11-22T10:00:00Z\" as \"2006-01-02T15:04:05.000000Z07:00\": "
                 "cannot parse \"Z\" as \".000000\""},
                {"{\"when\":\"2026-13-22T10:00:00Z\"}",
                 "parsing time \"2026-13-22T10:00:00Z\": month out of range"},
                {"{\"when\":\"2026-02-29T10:00:00Z\"}",
                 "parsing time \"2026-02-29T10:00:00Z\": day out of range"},
                {"{\"when\":\"2026-11-22T24:00:00Z\"}",
                 "parsing time \"2026-11-22T24:00:00Z\": hour out of range"},
                {"{\"when\":\"2026-11-22T23:60:00Z\"}",
                 "parsing time \"2026-11-22T23:60:00Z\": minute out of range"},
                {"{\"when\":\"2026-11-22T23:59:60Z\"}",
                 "parsing time \"2026-11-22T23:59:60Z\": second out of range"},
                {"{\"when\":\"2026-11-22T10:00:00+25:00\"}",
                 "parsing time \"2026-11-22T10:00:00+25:00\": time zone offset hour out of range"},
                {"{\"when\":\"2026-11-22T10:00:00+00:61\"}",
                 "parsing time \"2026-11-22T10:00:00+00:61\": time zone offset minute out of "
                 "range"},
                {"{\"whenMicro\":\"2026-11-22T10:00:00.-00001Z\"}",
                 "parsing time \"2026-11-22T10:00:00.-00001Z\": fractional second out of range"},
                {"{\"when\":\"2026-11-22T10:00:00.Z\"}",
                 "parsing time \"2026-11-22T10:00:00.Z\" as \"2006-01-02T15:04:05Z07:00\": cannot "
                 "parse \".Z\" as \"Z07:00\""},
                {"{\"when\":\"\\u00e9\\\"\"}",
                 "parsing time \"\\xc3\\xa9\\\"\" as \"2006-01-02T15:04:05Z07:00\": cannot parse "
                 "\"\\xc3\\xa9\\\"\" as \"2006\""},
                {"{\"when\":\"2026-11-22T10:00:00Zx\"}",
                 "parsing time \"2026-11-22T10:00:00Zx\": extra text: \"x\""},
        };

        expect_reasons(cases, sizeof cases / sizeof cases[0]);
}

/* ---- shortage of memory ---- */

static const struct wrong *current; /* reason NULL = it is decoded */

static void life(int n) {
        struct hf__json *json;

        reason[0] = '\0';
        assert_int_equal(hf__json_parse(current->text, strlen(current->text), &json, NULL), 0);
        failing_memory_arm(n);
        int r = hfd_schema_decode(&thing, json, NULL, reason, sizeof reason);
        failing_memory_disarm();
        hf__json_free(json);
        if (failing_memory_hit()) {
                assert_int_equal(r, -ENOMEM);
                return;
        }
        assert_int_equal(r, current->reason ? HF_E_INVALID : 0);
        assert_string_equal(reason, current->reason ? current->reason : "");
}

static void test_a_shortage_of_memory_is_no_wrong_value(void **state) {
        static const struct wrong cases[] = {
                {"{\"amount\":1500}", NULL},
                {"{\"amount\":true}", "quantities must match the regular expression "
                                      "'^([+-]?[0-9.]+)([eEinumkKMGTP]*[-+]?[0-9]*)$'"},
                {"{\"when\":7}",
                 "json: cannot unmarshal number into Go struct field Thing.when of type string"},
                {"{\"on\":7}",
                 "json: cannot unmarshal number into Go struct field Thing.on of type bool"},
                {"{\"part\":{\"bytes\":\"YW\\nJj\"}}", NULL},
        };

        for (size_t i = 0; i < sizeof cases / sizeof cases[0]; i++) {
                current = &cases[i];
                failing_memory_try_all(life, 1);
        }
}

static void test_fields_are_found_by_name_and_by_tag(void **state) {
        assert_ptr_equal(hfd_schema_of_member(&thing, "part"), &part);
        assert_ptr_equal(hfd_schema_of_member(&map_of_parts, "any"), &part);
        assert_null(hfd_schema_of_member(&thing, "nothing"));
        assert_null(hfd_schema_of_member(&hfd_schema_any, "x"));
        assert_string_equal(hfd_schema_field_by_tag(&hfd_schema_object_meta, 0, 11)->name,
                            "labels");
        assert_null(hfd_schema_field_by_tag(&hfd_schema_object_meta, 0, 99));
        assert_null(hfd_schema_field_by_tag(&thing, 0, 0));
}

int main(void) {
        const struct CMUnitTest tests[] = {
                cmocka_unit_test(test_unknown_fields_are_dropped_and_reported),
                cmocka_unit_test(test_a_path_in_a_report_cannot_start_a_header),
                cmocka_unit_test(test_reports_are_bounded),
                cmocka_unit_test(test_what_preserves_unknown_fields_keeps_them),
                cmocka_unit_test(test_null_is_the_absent_value),
                cmocka_unit_test(test_empty_lists_and_maps_are_absent_values),
                cmocka_unit_test(test_the_last_of_duplicate_fields_wins),
                cmocka_unit_test(test_mistakes_have_the_order_of_the_body),
                cmocka_unit_test(test_mistakes_that_repeat_others_cost_little),
                cmocka_unit_test(test_times_have_one_form),
                cmocka_unit_test(test_spaces_around_a_quantity_do_not_count),
                cmocka_unit_test(test_bytes_have_no_line_breaks),
                cmocka_unit_test(test_a_wrong_type_is_named_as_kubernetes_names_it),
                cmocka_unit_test(test_a_wrong_type_after_a_strategic_patch_has_other_words),
                cmocka_unit_test(test_a_wrong_time_is_named_as_kubernetes_names_it),
                cmocka_unit_test(test_a_shortage_of_memory_is_no_wrong_value),
                cmocka_unit_test(test_fields_are_found_by_name_and_by_tag),
        };
        return cmocka_run_group_tests(tests, NULL, NULL);
}

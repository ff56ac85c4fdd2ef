/* SPDX-License-Identifier: Apache-2.0 */
/* How policies use the values of expressions: as JSON, as changes of objects, and in checks of
 * types; and which names of objects they may have. */
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

#include "base/json.h"
#include "base/strbuf.h"
#include "server/admission/expressions/expression_run.h"
#include "server/admission/expressions/value_json.h"
#include "server/admission/policy/mutation.h"
#include "server/admission/policy/types/type_check.h"
#include "server/resources/causes.h"
#include "server/resources/resource.h"
#include "server/resources/rows/resource_table.h"
#include "server/resources/strategies/admission/match_schema.h"
#include "server/resources/strategies/strategies.h"
#include "server/schema/common.h"

#define FEATURES (HFD_EXPRESSION_PATCH | HFD_EXPRESSION_VARIABLES)

static struct hf__json *parse(const char *text) {
        struct hf__json *json = NULL;

        assert_int_equal(hf__json_parse(text, strlen(text), &json, NULL), 0);
        return json;
}

static void assert_json(const struct hf__json *json, const char *text) {
        struct hf__json *wanted = parse(text);
        struct hf__strbuf is = {0};

        hf__json_print(json, &is);
        if (!hf__json_equal(json, wanted))
                fail_msg("%s is not %s", is.data, text);
        hf__strbuf_done(&is);
        hf__json_free(wanted);
}

/* One evaluation. Its value lives until end(). */
struct evaluation {
        struct hfd_expressions *set;
        struct hfd_expression_input input;
        struct hfd_expression_run run;
        struct hf__cel_value value;
};

static void begin_set(struct evaluation *e) {
        assert_int_equal(hfd_expressions_new(FEATURES, NULL, NULL, &e->set), 0);
}

static void evaluate(struct evaluation *e, const char *text, const struct hf__json *object) {
        const struct hfd_expression *expression;

        assert_int_equal(hfd_expressions_compile(e->set, text, FEATURES, HFD_RESULT_ANY,
                                                 &expression),
                         0);
        if (!expression->program)
                fail_msg("%s: %s", text, expression->error);
        e->input = (struct hfd_expression_input){.object = object};
        hfd_expression_run_init(&e->run, e->set, &e->input, HFD_EXPRESSIONS_BUDGET);
        assert_int_equal(hfd_expression_eval(&e->run, expression, &e->value, NULL), 0);
}

static void begin(struct evaluation *e, const char *text, const struct hf__json *object) {
        begin_set(e);
        evaluate(e, text, object);
}

static void end(struct evaluation *e) {
        hfd_expression_run_done(&e->run);
        hfd_expressions_free(e->set);
}

static void test_values_become_json(void **state) {
        static const struct {
                const char *expression, *json;
        } cases[] = {
                {"[dyn(1), dyn(-2.5), dyn('\\u00e9\"'), dyn(null), dyn(true), dyn(7u)]",
                 "[1,-2.5,\"\\u00e9\\\"\",null,true,7]"},
                {"{'a': [1], 'b': []}", "{\"a\":[1],\"b\":[]}"},
                {"b'abc'", "\"YWJj\""},
                {"[duration('90s')]", "[\"90s\"]"},
                {"timestamp('2024-01-02T03:04:05Z')", "\"2024-01-02T03:04:05Z\""},
                {"Object{a: Object.a{b: 1}}", "{\"a\":{\"b\":1}}"},
        };

        for (size_t i = 0; i < sizeof cases / sizeof cases[0]; i++) {
                struct hf__strbuf message = {0};
                struct hfd_value_room room = HFD_VALUE_ROOM;
                struct hf__json *json = NULL;
                struct evaluation e;

                begin(&e, cases[i].expression, NULL);
                assert_int_equal(hfd_value_to_json(e.value, &room, &json, &message), 0);
                assert_json(json, cases[i].json);
                hf__json_free(json);
                end(&e);
        }
}

static void test_values_without_a_form_in_json_are_refused(void **state) {
        static const char *const cases[] = {"{1: 'a'}", "double('NaN')",          "optional.of(1)",
                                            "[int]",    "{'a': [ip('1.2.3.4')]}", "['a\\u0000b']"};

        for (size_t i = 0; i < sizeof cases / sizeof cases[0]; i++) {
                struct hf__strbuf message = {0};
                struct hfd_value_room room = HFD_VALUE_ROOM;
                struct hf__json *json = NULL;
                struct evaluation e;

                begin(&e, cases[i], NULL);
                assert_int_equal(hfd_value_to_json(e.value, &room, &json, &message), HF_E_INVALID);
                assert_true(message.n > 0);
                hf__strbuf_done(&message);
                end(&e);
        }
}

/* Twenty nested lists: each contains the previous one twice, so together they stand for 2^20
 * parts. */
static void test_a_value_that_shares_its_parts_has_a_limit(void **state) {
        struct hf__cel_value items[20][2];
        struct hf__cel_list lists[20];
        struct hf__strbuf message = {0};
        struct hfd_value_room room = HFD_VALUE_ROOM;
        struct hf__json *json = NULL;
        struct hf__cel_value value = hf__cel_int(1);

        for (size_t i = 0; i < 20; i++) {
                items[i][0] = items[i][1] = value;
                lists[i] = (struct hf__cel_list){.n = 2, .items = items[i]};
                value = hf__cel_list_value(&lists[i]);
        }
        assert_int_equal(hfd_value_to_json(value, &room, &json, &message), HF_E_TOO_MANY);
        assert_string_equal(message.data, "the value is too large");
        hf__strbuf_done(&message);
}

/* Changes an object of a kind. The result must be `wanted`. "! message": the change is refused,
 * and the object has not changed. */
static void assert_change(const char *group, const char *plural, bool apply, const char *expression,
                          const char *object, const char *wanted) {
        const struct hfd_resource *row = hfd_resource_find(group, "v1", plural);
        struct hfd_mutation_room room = HFD_MUTATION_ROOM;
        struct hf__json *json = parse(object);
        struct hf__strbuf message = {0};
        struct evaluation e;
        int r;

        begin(&e, expression, json);
        r = hfd_mutation_apply(row, apply, e.value, &room, &json, &message);
        end(&e);
        if (wanted[0] == '!') {
                assert_int_equal(r, HF_E_INVALID);
                assert_string_equal(message.data, wanted + 2);
                assert_json(json, object);
        } else {
                if (r != 0)
                        fail_msg("%s: %s", expression, message.data);
                assert_json(json, wanted);
        }
        hf__strbuf_done(&message);
        hf__json_free(json);
}

#define MAP                                                                                        \
        "{\"apiVersion\":\"v1\",\"kind\":\"ConfigMap\",\"metadata\":{\"name\":\"a\"},\"data\":{"   \
        "\"x\":\"1\"}}"

static void test_an_apply_configuration_is_merged(void **state) {
        assert_change("", "configmaps", true, "Object{data: {'y': object.data.x + '2'}}", MAP,
                      "{\"apiVersion\":\"v1\",\"kind\":\"ConfigMap\",\"metadata\":{\"name\":\"a\"},"
                      "\"data\":{\"x\":\"1\",\"y\":\"12\"}}");
        assert_change("", "configmaps", true,
                      "Object{metadata: Object.metadata{?labels: optional.none()}}", MAP, MAP);
        assert_change("", "configmaps", true, "Object{data: Object.other{}}", MAP,
                      "! type mismatch: unexpected type name \"Object.other\", expected "
                      "\"Object.data\", which matches field name path from root Object type");
        assert_change("", "configmaps", true, "has(object.data.z) ? Object{} : null", MAP,
                      "! unsupported return type from ApplyConfiguration expression: null_type");
        assert_change("coordination.k8s.io", "leases", true,
                      "Object{spec: Object.spec{leaseDurationSeconds: 'x'}}",
                      "{\"metadata\":{\"name\":\"a\"}}",
                      "! error applying patch: failed to convert patch object to typed object: "
                      "json: "
                      "cannot unmarshal string into Go struct field "
                      "LeaseSpec.spec.leaseDurationSeconds of type int32");
        assert_change("rbac.authorization.k8s.io", "clusterroles", true,
                      "Object{rules: [Object.rules{verbs: ['get']}]}",
                      "{\"metadata\":{\"name\":\"a\"}}",
                      "! error applying patch: invalid ApplyConfiguration: may not mutate atomic "
                      "arrays, maps or structs: .rules, .rules[0].verbs");
}

/* A type with a field of its own type, whose name has 100 bytes; and a kind with such values. */
#define TEN    "aaaaaaaaaa"
#define LONG   TEN TEN TEN TEN TEN TEN TEN TEN TEN TEN
#define ATOMIC HFD_LIST_OF(&hfd_schema_text, .list_type = HFD_LIST_ATOMIC)
static const struct hfd_schema deep_schema;
static const struct hfd_schema_field deep_fields[] = {
        {LONG, &deep_schema},
        {"list", ATOMIC},
};
static const struct hfd_schema deep_schema = {HFD_STRUCT(NULL, deep_fields)};
static const struct hfd_schema map_schema = {.type = HFD_SCHEMA_MAP, .items = &deep_schema};
static const struct hfd_schema_field root_fields[] = {
        HFD_FIELD_API_VERSION, /* sorted by name */
        {"deep", &deep_schema}, HFD_FIELD_KIND, {"map", &map_schema}, HFD_FIELD_METADATA,
};
static const struct hfd_schema root_schema = {HFD_STRUCT(NULL, root_fields)};

/* The list is 60 levels down, so that its path has 6,000 bytes. */
static void test_atomic_values_are_found_at_any_depth_but_not_in_maps(void **state) {
        static const struct hfd_resource row = {.group = "example.com",
                                                .version = "v1",
                                                .kind = "Deep",
                                                .schema = &root_schema};
        struct hfd_mutation_room room = HFD_MUTATION_ROOM;
        struct hf__strbuf text = {0}, message = {0};
        struct evaluation e;

        hf__strbuf_puts(&text, "{\"x\":");
        for (int i = 0; i < 60; i++)
                hf__strbuf_puts(&text, "{\"" LONG "\":");
        hf__strbuf_puts(&text, "{\"list\":[\"a\"]}");
        for (int i = 0; i < 60; i++)
                hf__strbuf_puts(&text, "}");
        hf__strbuf_puts(&text, "}");
        struct hf__json *object = parse(text.data);
        begin(&e, "Object{deep: object.x}", object);
        assert_int_equal(hfd_mutation_apply(&row, true, e.value, &room, &object, &message),
                         HF_E_INVALID);
        end(&e);
        assert_non_null(
                strstr(message.data, "may not mutate atomic arrays, maps or structs: .deep"));
        hf__strbuf_done(&message);
        hf__json_free(object);
        object = parse("{\"map\":{}}");
        begin(&e, "Object{map: {'k': Object.map{list: ['a']}}}", object);
        int r = hfd_mutation_apply(&row, true, e.value, &room, &object, &message);
        if (r != 0)
                fail_msg("%s", message.data);
        end(&e);
        assert_true(hf__json_is_array(hf__json_path(object, "map.k.list")));
        hf__json_free(object);
        hf__strbuf_done(&text);
        hf__strbuf_done(&message);
}

static void test_a_json_patch_is_applied_or_its_test_fails(void **state) {
        assert_change("", "configmaps", false,
                      "[JSONPatch{op: 'add', path: '/data/' + jsonpatch.escapeKey('a/b~'), value: "
                      "'2'},"
                      " JSONPatch{op: 'move', from: '/data/x', path: '/data/z'}]",
                      MAP,
                      "{\"apiVersion\":\"v1\",\"kind\":\"ConfigMap\",\"metadata\":{\"name\":\"a\"},"
                      "\"data\":{\"a/b~\":\"2\",\"z\":\"1\"}}");
        assert_change("", "configmaps", false,
                      "[JSONPatch{op: 'remove', path: '/data'}, JSONPatch{op: 'test', path: "
                      "'/metadata/name', value: 'b'}]",
                      MAP, MAP);
        /* What ends like the message of a test is none. */
        assert_change("", "configmaps", false,
                      "[JSONPatch{op: 'test failed', path: '/data', value: 'b'}]", MAP,
                      "! JSON Patch: Unexpected kind: test failed");
        assert_change("", "configmaps", false,
                      "[JSONPatch{op: 'add', path: '/metadata', value: Object.metadata{labels: "
                      "Object.labels{}}}]",
                      MAP,
                      "! type mismatch: unexpected type name \"Object.labels\", expected "
                      "\"Object.metadata.labels\", which matches field name path from root Object "
                      "type");
        assert_change("", "configmaps", false, "[has(object.data.z) ? JSONPatch{} : null]", MAP,
                      "! type mismatch: JSONPatchType.expression should evaluate to array of "
                      "JSONPatch: type conversion error from 'null_type' to "
                      "'*mutation.JSONPatchVal'");
        assert_change("", "configmaps", false,
                      "[JSONPatch{op: 'remove', path: '/data'}] + dyn([Object{}])", MAP,
                      "! type mismatch: JSONPatchType.expression should evaluate to array of "
                      "JSONPatch: type conversion error from 'Object' to "
                      "'*mutation.JSONPatchVal'");
}

/* Nobody has read the variables before the change is made, so they are evaluated then. The value
 * that contains them has more than one piece of memory, and must survive that. */
static void check_variables(bool apply, const char *expression, const char *place,
                            const char *wanted) {
        const struct hfd_resource *row = hfd_resource_find("", "v1", "configmaps");
        struct hfd_mutation_room room = HFD_MUTATION_ROOM;
        struct hf__json *object = parse(MAP);
        struct hf__strbuf message = {0};
        const struct hfd_expression *added;
        struct evaluation e;

        begin_set(&e);
        assert_int_equal(hfd_expressions_add_variable(e.set, "a", "object.data.x + '2'", &added),
                         0);
        assert_int_equal(hfd_expressions_add_variable(e.set, "b",
                                                      "lists.range(300).map(i, variables.a + "
                                                      "string(i))[299]",
                                                      &added),
                         0);
        evaluate(&e, expression, object);
        if (hfd_mutation_apply(row, apply, e.value, &room, &object, &message) != 0)
                fail_msg("%s: %s", expression, message.data);
        assert_json(hf__json_path(object, place), wanted);
        assert_true(e.run.kept_bytes > 0 && e.run.kept_bytes < e.run.bytes);
        end(&e);
        hf__strbuf_done(&message);
        hf__json_free(object);
}

#define VARIABLES "{\"a\":\"12\",\"b\":\"12299\"}"

static void test_a_change_may_contain_all_variables(void **state) {
        check_variables(true, "Object{metadata: Object.metadata{annotations: variables}}",
                        "metadata.annotations", VARIABLES);
        check_variables(false, "[JSONPatch{op: 'add', path: '/data', value: variables}]", "data",
                        VARIABLES);
        check_variables(false,
                        "[JSONPatch{op: 'add', path: '/data', value: {'a': dyn(variables), 'b': "
                        "dyn(1), 'c': dyn(variables)}}]",
                        "data", "{\"a\":" VARIABLES ",\"b\":1,\"c\":" VARIABLES "}");
        check_variables(false,
                        "lists.range(200).map(i, JSONPatch{op: 'add', path: '/data/x', value: i < "
                        "199 ? dyn({string(i): variables}) : dyn('last' + variables.a)})",
                        "data.x", "\"last12\"");
}

/* The object has one long text, which the patch puts into each of its 100 other keys: in one value,
 * in the key of a map, or in operations of their own. The rest of the object stays small. */
static void test_a_long_text_is_not_put_everywhere(void **state) {
        static const char *const changes[] = {
                "[JSONPatch{op: 'add', path: '/data', value: object.data.keys.split(',')"
                ".map(k, object.data.long)}]",
                "[JSONPatch{op: 'add', path: '/data', value: object.data.keys.split(',')"
                ".map(k, {object.data.long: k})}]",
                "object.data.keys.split(',').map(k, JSONPatch{op: 'add', path: '/data/' + k, "
                "value: object.data.long})",
        };
        const struct hfd_resource *row = hfd_resource_find("", "v1", "configmaps");
        const size_t n_long = (size_t)1 << 20;
        char *text = malloc(n_long + 1);

        assert_non_null(text);
        memset(text, 'x', n_long);
        text[n_long] = 0;
        for (size_t i = 0; i < sizeof changes / sizeof changes[0]; i++) {
                struct hf__json *object = parse("{\"data\":{}}");
                struct hf__json *data = hf__json_get(object, "data");
                struct hf__strbuf keys = {0}, message = {0};
                struct hfd_mutation_room room = HFD_MUTATION_ROOM;
                struct evaluation e;

                for (int k = 0; k < 100; k++)
                        hf__strbuf_printf(&keys, "%sk%d", k > 0 ? "," : "", k);
                assert_int_equal(hf__json_put_string(data, "keys", keys.data), 0);
                assert_int_equal(hf__json_put_string(data, "long", text), 0);
                begin(&e, changes[i], object);
                assert_int_equal(hfd_mutation_apply(row, false, e.value, &room, &object, &message),
                                 HF_E_TOO_MANY);
                end(&e);
                assert_non_null(strstr(message.data, "the value is too large"));
                hf__strbuf_done(&message);
                hf__strbuf_done(&keys);
                hf__json_free(object);
        }
        free(text);
}

/* Each mutation stays within its own limits, but all of them together do not. */
static void test_the_mutations_of_a_request_share_a_limit(void **state) {
        const struct hfd_resource *row = hfd_resource_find("", "v1", "configmaps");
        struct hfd_mutation_room room = HFD_MUTATION_ROOM;
        const size_t n_long = (size_t)5 << 20;
        char *text = malloc(n_long + 1);
        struct hf__json *object = parse("{\"data\":{}}");
        struct hf__strbuf message = {0};
        struct evaluation e;
        int n = 0;
        int r = 0;

        assert_non_null(text);
        memset(text, 'x', n_long);
        text[n_long] = 0;
        assert_int_equal(hf__json_set_string(object, "data.long", text), 0);
        while (r == 0 && n < 100) {
                begin(&e, "[JSONPatch{op: 'add', path: '/data/copy', value: object.data.long}]",
                      object);
                r = hfd_mutation_apply(row, false, e.value, &room, &object, &message);
                end(&e);
                n += r == 0;
        }
        assert_int_equal(r, HF_E_TOO_MANY);
        assert_int_equal(n, 4);
        assert_non_null(strstr(message.data, "the value is too large"));
        hf__strbuf_done(&message);
        hf__json_free(object);
        free(text);
}

/* The object is nested as deeply as JSON may be. The patch puts a part of it two levels deeper, as
 * it is, or in lists of its own, or by a copy. */
static void test_a_change_that_is_nested_too_deeply_is_a_limit(void **state) {
        static const char *const changes[] = {
                "[JSONPatch{op: 'add', path: '/data/x/y', value: object.data}]",
                "[JSONPatch{op: 'add', path: '/x', value: [[[[[object.data]]]]]}]",
                "[JSONPatch{op: 'copy', from: '/data', path: '/data/x/y'}]",
        };
        const struct hfd_resource *row = hfd_resource_find("", "v1", "configmaps");
        struct hf__strbuf text = {0};

        hf__strbuf_puts(&text, "{\"data\":{\"x\":{},\"deep\":");
        for (int i = 0; i < HF__JSON_DEPTH_MAX - 2; i++)
                hf__strbuf_putc(&text, '[');
        for (int i = 0; i < HF__JSON_DEPTH_MAX - 2; i++)
                hf__strbuf_putc(&text, ']');
        hf__strbuf_puts(&text, "}}");
        for (size_t i = 0; i < sizeof changes / sizeof changes[0]; i++) {
                struct hf__json *object = parse(text.data);
                struct hf__strbuf message = {0};
                struct hfd_mutation_room room = HFD_MUTATION_ROOM;
                struct evaluation e;

                begin(&e, changes[i], object);
                assert_int_equal(hfd_mutation_apply(row, false, e.value, &room, &object, &message),
                                 HF_E_TOO_MANY);
                end(&e);
                assert_non_null(strstr(message.data, "nested too deeply"));
                hf__strbuf_done(&message);
                hf__json_free(object);
        }
        hf__strbuf_done(&text);
}

static void test_the_patches_of_a_request_share_their_steps(void **state) {
        const struct hfd_resource *row = hfd_resource_find("", "v1", "configmaps");
        struct hfd_mutation_room room = HFD_MUTATION_ROOM;
        struct hf__json *object = parse("{\"data\":{\"a\":\"b\"}}");
        struct hf__strbuf message = {0};
        struct evaluation e;

        room.steps = 1;
        begin(&e, "[JSONPatch{op: 'copy', from: '/data', path: '/copy'}]", object);
        assert_int_equal(hfd_mutation_apply(row, false, e.value, &room, &object, &message),
                         HF_E_TOO_MANY);
        end(&e);
        assert_string_equal(message.data, "JSON Patch: the policies change too much");
        assert_null(hf__json_get(object, "copy"));
        hf__strbuf_done(&message);
        hf__json_free(object);
}

/* Appends n expressions with names, whose patterns take some 100 KB of memory each. */
static void append_dear(struct hf__strbuf *out, int n) {
        for (int i = 0; i < n; i++)
                hf__strbuf_printf(out,
                                  "%s{\"name\":\"c%d\",\"expression\":\"'a'.matches('%d[a-z]{1000}"
                                  "[a-z]{1000}[a-z]{1000}[a-z]{1000}')\"}",
                                  i > 0 ? "," : "", i, i);
}

static void assert_too_dear(void (*validate)(const struct hf__json *object,
                                             const struct hf__json *old, struct hfd_causes *causes),
                            struct hf__strbuf *text, bool changed) {
        static const char detail[] = "Forbidden: the expressions take more than 10,000,000 steps";
        struct hf__json *object = parse(text->data);
        struct hfd_causes causes;
        bool found = false;

        hfd_causes_init(&causes);
        validate(object, changed ? NULL : object, &causes);
        for (size_t i = 0; i < causes.n; i++)
                found = found || strncmp(causes.items[i].text, detail, sizeof detail - 1) == 0;
        assert_int_equal(found, changed);
        hf__json_free(object);
}

/* As in Kubernetes, the spaces around the expression do not count. */
static void test_the_length_of_an_annotation_is_measured_without_spaces(void **state) {
        static struct hfd_causes causes;
        char spaces[5200], text[6000];

        (void)state;
        memset(spaces, ' ', sizeof spaces);
        for (int trailing = 0; trailing < 2; trailing++) {
                (void)snprintf(text, sizeof text,
                               "{\"metadata\":{\"name\":\"a\"},\"spec\":{\"matchConstraints\":{"
                               "\"matchPolicy\":\"Exact\",\"resourceRules\":[{\"apiGroups\":["
                               "\"\"],\"apiVersions\":[\"v1\"],\"operations\":[\"*\"],"
                               "\"resources\":[\"pods\"]}]},\"failurePolicy\":\"Fail\","
                               "\"auditAnnotations\":[{\"key\":\"k\",\"valueExpression\":"
                               "\"%.*s'a'%.*s\"}]}}",
                               trailing ? 1 : 5200, spaces, trailing ? 5200 : 1, spaces);
                struct hf__json *policy = parse(text);
                hfd_causes_init(&causes);
                hfd_validating_policy_validate(policy, NULL, &causes);
                assert_int_equal(causes.n, 0);
                hf__json_free(policy);
        }
}

static void test_the_expressions_of_an_object_share_a_limit(void **state) {
        struct hf__strbuf text = {0};

        (void)state;
        hf__strbuf_puts(&text, "{\"metadata\":{\"name\":\"a\"},\"spec\":{\"validations\":[");
        append_dear(&text, 400);
        hf__strbuf_puts(&text, "]}}");
        assert_too_dear(hfd_validating_policy_validate, &text, true);
        /* What is stored and has not changed has no limit: its finalizers must be removable. */
        assert_too_dear(hfd_validating_policy_validate, &text, false);
        hf__strbuf_reset(&text);
        hf__strbuf_puts(&text, "{\"metadata\":{\"name\":\"a\"},\"spec\":{\"variables\":[");
        append_dear(&text, 400);
        hf__strbuf_puts(&text, "]}}");
        assert_too_dear(hfd_mutating_policy_validate, &text, true);
        hf__strbuf_reset(&text);
        hf__strbuf_puts(&text, "{\"metadata\":{\"name\":\"a\"},\"webhooks\":[");
        for (int i = 0; i < 14; i++) {
                hf__strbuf_printf(&text,
                                  "%s{\"name\":\"w%d.example.com\",\"failurePolicy\":\"Fail\","
                                  "\"matchPolicy\":\"Exact\",\"sideEffects\":\"None\","
                                  "\"timeoutSeconds\":5,\"clientConfig\":{\"url\":"
                                  "\"https://a.example.com/"
                                  "\"},\"admissionReviewVersions\":[\"v1\"],"
                                  "\"matchConditions\":[",
                                  i > 0 ? "," : "", i);
                append_dear(&text, 30);
                hf__strbuf_puts(&text, "]}");
        }
        hf__strbuf_puts(&text, "]}");
        assert_too_dear(hfd_webhooks_validate_object, &text, true);
        hf__strbuf_done(&text);
}

static void test_types_are_checked_with_the_schemas_of_kinds(void **state) {
        struct hf__json *policy = parse(
                "{\"spec\":{\"matchConstraints\":{\"resourceRules\":[{\"apiGroups\":[\"\",\"x\"],"
                "\"apiVersions\":[\"v1\"],\"resources\":[\"secrets\",\"configmaps\",\"secrets\","
                "\"*\"]},{\"apiGroups\":[\"*\"],\"apiVersions\":[\"v1\"],\"resources\":"
                "[\"events\"]}]},\"variables\":[{\"name\":\"n\",\"expression\":"
                "\"object.metadata.name\"}],\"validations\":[{\"expression\":"
                "\"object.immutable > 1\"},{\"expression\":\"variables.n == "
                "object.metadata.namespace\"},{\"expression\":\"object.stringData.size() > "
                "0\"}]}}");
        struct hf__json *checking = NULL;

        assert_int_equal(hfd_policy_type_check(policy, NULL, &checking), 0);
        assert_json(checking,
                    "{\"expressionWarnings\":[{\"fieldRef\":\"spec.validations[0].expression\","
                    "\"warning\":\"/v1, Kind=ConfigMap: ERROR: <input>:1:18: found no matching "
                    "overload for '_>_' applied to '(bool, int)'\\n | object.immutable > 1\\n | "
                    ".................^\\n\\n/v1, Kind=Secret: ERROR: <input>:1:18: found no "
                    "matching "
                    "overload for '_>_' applied to '(bool, int)'\\n | object.immutable > 1\\n | "
                    ".................^\\n\"},{\"fieldRef\":\"spec.validations[2].expression\","
                    "\"warning\":\"/v1, Kind=ConfigMap: ERROR: <input>:1:7: undefined field "
                    "'stringData'\\n | object.stringData.size() > 0\\n | ......^\\n\"}]}");
        hf__json_free(checking);
        hf__json_free(policy);
}

/* Params are of the kind ConfigMap, as the objects, or of a kind that is not served. */
static void test_types_of_params_are_checked_too(void **state) {
        static const char policy_text[] =
                "{\"spec\":{\"paramKind\":{\"apiVersion\":\"v1\",\"kind\":\"%s\"},"
                "\"matchConstraints\":{\"resourceRules\":[{\"apiGroups\":[\"\"],\"apiVersions\":"
                "[\"v1\"],\"resources\":[\"configmaps\"]}]},\"validations\":[{\"expression\":"
                "\"params.spec.x > 1\"},{\"expression\":\"object.data == params.data\"},"
                "{\"expression\":\"params == null || params.metadata.name == 'a'\"}]}}";
        static const struct {
                const char *kind, *checking;
        } cases[] = {
                {"ConfigMap", "{\"expressionWarnings\":[{\"fieldRef\":\"spec.validations[0]."
                              "expression\",\"warning\":\"/v1, Kind=ConfigMap: ERROR: "
                              "<input>:1:7: undefined field 'spec'\\n | params.spec.x > 1\\n | "
                              "......^\\n\"}]}"},
                {"Nothing", "{}"},
        };

        for (size_t i = 0; i < sizeof cases / sizeof cases[0]; i++) {
                struct hf__json *checking = NULL;
                char text[1000];

                (void)snprintf(text, sizeof text, policy_text, cases[i].kind);
                struct hf__json *policy = parse(text);
                assert_int_equal(hfd_policy_type_check(policy, NULL, &checking), 0);
                assert_json(checking, cases[i].checking);
                hf__json_free(checking);
                hf__json_free(policy);
        }
}

/* The types of every kind can be built, even of kinds that contain themselves. */
static void test_all_kinds_have_types(void **state) {
        for (size_t i = 0; i < hfd_resources_count(); i++) {
                const struct hfd_resource *row = hfd_resource_at(i);
                struct hf__json *checking = NULL;
                struct hf__json *policy;
                char text[600];

                snprintf(text, sizeof text,
                         "{\"spec\":{\"matchConstraints\":{\"resourceRules\":[{\"apiGroups\":"
                         "[\"%s\"],\"apiVersions\":[\"%s\"],\"resources\":[\"%s\"]}]},"
                         "\"validations\":[{\"expression\":\"object.kind != '' && "
                         "object.metadata.labels.size() > 0\"}]}}",
                         row->group, row->version, row->plural);
                policy = parse(text);
                assert_int_equal(hfd_policy_type_check(policy, NULL, &checking), 0);
                if (!row->is_review)
                        assert_json(checking, "{}");
                hf__json_free(checking);
                hf__json_free(policy);
        }
}

/* Each forbidden character has a cause of its own, in rules as in bindings. */
/* The text is the list of resources of a rule. Returns how many of them are refused. */
static size_t count_refused(const char *resources) {
        static struct hfd_causes causes;
        struct hf__strbuf text = {0};

        hf__strbuf_printf(&text,
                          "{\"operations\":[\"*\"],\"apiGroups\":[\"*\"],\"apiVersions\":"
                          "[\"*\"],\"resources\":[%s]}",
                          resources);
        struct hf__json *rule = parse(text.data);
        hfd_causes_init(&causes);
        hfd_match_rule_validate(rule, "rule", &causes);
        assert_int_equal(causes.error, 0);
        for (size_t i = 0; i < causes.n; i++)
                assert_non_null(strstr(causes.items[i].text, "is present, must not specify "));
        hf__json_free(rule);
        hf__strbuf_done(&text);
        return causes.n;
}

#define A25  "aaaaaaaaaaaaaaaaaaaaaaaaa"
#define A100 A25 A25 A25 A25

/* A wider element before it makes an element superfluous, also if their names are long and begin in
 * the same way. */
static void test_a_resource_that_is_included_is_refused(void **state) {
        assert_int_equal(count_refused("\"pods/*\",\"pods/status\""), 1);
        assert_int_equal(count_refused("\"*/status\",\"pods/status\""), 1);
        assert_int_equal(count_refused("\"pods/status\",\"pods/*\",\"*/status\""), 0);
        assert_int_equal(count_refused("\"" A100 "/*\",\"" A100 "/status\""), 1);
        assert_int_equal(count_refused("\"" A100 "/*\",\"" A100 "a/status\""), 0);
        assert_int_equal(count_refused("\"" A100 "a/*\",\"" A100 "a/status\""), 1);
        assert_int_equal(count_refused("\"*/" A100 "\",\"pods/" A100 "a\""), 0);
        assert_int_equal(count_refused("\"*/" A100 "a\",\"pods/" A100 "a\""), 1);
}

/* The cause of a name that is too long says so; one that has wrong characters, too, has both rules.
 */
static void test_the_kind_of_params_may_be_too_long(void **state) {
#define A50       A25 A25
#define LONG_RULE "must be no more than 63 characters"
        static const struct {
                const char *version, *kind, *causes[2]; /* the ends of their texts */
        } cases[] = {
                {"a.b/v1", "Kind", {NULL}},
                {"a.b/v1", A50 "AAAAAAAAAAAAA", {NULL}},
                {"a.b/v1", A50 "AAAAAAAAAAAAAA", {"otherwise match: " LONG_RULE}},
                {"a.b/v1",
                 A50 "AAAAAAAAAAAAA-",
                 {"otherwise match: " LONG_RULE ",a DNS-1035 label"}},
                {A50 "bbbbbbbbbbbbbb",
                 "1",
                 {"\": " LONG_RULE, "otherwise match: a DNS-1035 label"}},
                {A50 "bbbbbbbbbbbbbB", "k", {"\": " LONG_RULE ",a DNS-1035 label"}},
                {A50 A50 A50 A50 A50 "aaaa/v1", "k", {"\": must be no more than 253 characters"}},
        };
        static struct hfd_causes causes;
        char text[1000];

        for (size_t i = 0; i < sizeof cases / sizeof cases[0]; i++) {
                size_t n = 0;
                (void)snprintf(text, sizeof text,
                               "{\"spec\":{\"paramKind\":{\"apiVersion\":\"%s\",\"kind\":\"%s\"},"
                               "\"matchConstraints\":{\"matchPolicy\":\"Exact\",\"resourceRules\":"
                               "[{\"apiGroups\":[\"\"],\"apiVersions\":[\"v1\"],\"operations\":"
                               "[\"*\"],\"resources\":[\"pods\"]}]},\"failurePolicy\":\"Fail\","
                               "\"validations\":[{\"expression\":\"true\"}]}}",
                               cases[i].version, cases[i].kind);
                struct hf__json *policy = parse(text);
                hfd_causes_init(&causes);
                hfd_validating_policy_validate(policy, NULL, &causes);
                while (n < 2 && cases[i].causes[n])
                        n++;
                assert_int_equal(causes.n, n);
                for (size_t k = 0; k < n; k++)
                        assert_non_null(strstr(causes.items[k].text, cases[i].causes[k]));
                hf__json_free(policy);
        }
}

static void test_names_of_objects_are_segments_of_paths(void **state) {
        static const char *const wanted[] = {"may not contain '/'", "may not contain '%'",
                                             "may not be '..'"};
        struct hf__json *policy = parse(
                "{\"spec\":{\"matchConstraints\":{\"matchPolicy\":\"Exact\",\"resourceRules\":"
                "[{\"apiGroups\":[\"\"],\"apiVersions\":[\"v1\"],\"operations\":[\"*\"],"
                "\"resources\":[\"pods\"],\"resourceNames\":[\"a/%\",\"..\",\"b\"]}]},"
                "\"failurePolicy\":\"Fail\",\"validations\":[{\"expression\":\"true\"}]}}");
        struct hf__json *binding =
                parse("{\"spec\":{\"policyName\":\"p\",\"paramRef\":{\"name\":\"a/%\","
                      "\"parameterNotFoundAction\":\"Deny\"},\"validationActions\":[\"Deny\"]}}");
        static struct hfd_causes causes;

        hfd_causes_init(&causes);
        hfd_validating_policy_validate(policy, NULL, &causes);
        assert_int_equal(causes.n, 3);
        for (size_t i = 0; i < 3; i++)
                assert_non_null(strstr(causes.items[i].text, wanted[i]));
        assert_string_equal(causes.items[2].field,
                            "spec.matchConstraints.resourceRules[0].resourceNames[1]");
        hfd_causes_init(&causes);
        hfd_validating_binding_validate(binding, NULL, &causes);
        assert_int_equal(causes.n, 2);
        for (size_t i = 0; i < 2; i++) {
                assert_non_null(strstr(causes.items[i].text, wanted[i]));
                assert_string_equal(causes.items[i].field, "spec.paramRef.name");
        }
        hf__json_free(binding);
        hf__json_free(policy);
}

int main(void) {
        const struct CMUnitTest tests[] = {
                cmocka_unit_test(test_values_become_json),
                cmocka_unit_test(test_values_without_a_form_in_json_are_refused),
                cmocka_unit_test(test_a_value_that_shares_its_parts_has_a_limit),
                cmocka_unit_test(test_an_apply_configuration_is_merged),
                cmocka_unit_test(test_a_json_patch_is_applied_or_its_test_fails),
                cmocka_unit_test(test_atomic_values_are_found_at_any_depth_but_not_in_maps),
                cmocka_unit_test(test_a_long_text_is_not_put_everywhere),
                cmocka_unit_test(test_a_change_may_contain_all_variables),
                cmocka_unit_test(test_the_mutations_of_a_request_share_a_limit),
                cmocka_unit_test(test_a_change_that_is_nested_too_deeply_is_a_limit),
                cmocka_unit_test(test_the_patches_of_a_request_share_their_steps),
                cmocka_unit_test(test_the_length_of_an_annotation_is_measured_without_spaces),
                cmocka_unit_test(test_the_expressions_of_an_object_share_a_limit),
                cmocka_unit_test(test_types_are_checked_with_the_schemas_of_kinds),
                cmocka_unit_test(test_types_of_params_are_checked_too),
                cmocka_unit_test(test_all_kinds_have_types),
                cmocka_unit_test(test_a_resource_that_is_included_is_refused),
                cmocka_unit_test(test_the_kind_of_params_may_be_too_long),
                cmocka_unit_test(test_names_of_objects_are_segments_of_paths),
        };

        return cmocka_run_group_tests(tests, NULL, NULL);
}

/* SPDX-License-Identifier: Apache-2.0 */
/* CustomResourceDefinitions: their defaults, their status and how schemas are decoded. */
#undef NDEBUG
#include <assert.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#include "api_fixture.h"
#include "base/json.h"
#include "base/strbuf.h"
#include "server/resources/resource.h"
#include "server/resources/rows/resource_table.h"
#include "server/schema/decode.h"

static const struct hf_resource definitions = {"apiextensions.k8s.io", "v1",
                                               "customresourcedefinitions"};

#define NAME "crontabs.stable.example.com"
/* A version with this schema. */
#define VERSION(name, storage, schema)                                                             \
        "{\"name\":\"" name "\",\"served\":true,\"storage\":" storage                              \
        ",\"schema\":{\"openAPIV3Schema\":" schema "}}"
#define OBJECT "{\"type\":\"object\"}"
#define SPEC(versions)                                                                             \
        "\"spec\":{\"group\":\"stable.example.com\",\"scope\":\"Namespaced\",\"names\":{"          \
        "\"plural\":\"crontabs\",\"kind\":\"CronTab\"},\"versions\":[" versions "]}"
#define BODY(versions, more) "{\"metadata\":{\"name\":\"" NAME "\"}," SPEC(versions) more "}"

static int create(struct api_fixture *f, const char *body) {
        return api_fixture_request(f, HF_VERB_CREATE, definitions, NULL, NULL, NULL, body);
}

static int merge(struct api_fixture *f, enum hfd_subresource subresource, const char *body) {
        return api_fixture_patch(f, definitions, NULL, NAME, subresource, HFD_PATCH_MERGE, NULL,
                                 body);
}

/* Asserts that the member at this path of the last response equals `wanted`; NULL = it is absent.
 */
static void expect_at(struct api_fixture *f, const char *path, const char *wanted) {
        struct hf__json *object = NULL;
        struct hf__strbuf text = {0};

        assert_int_equal(hf__json_parse(f->last.body, strlen(f->last.body), &object, NULL), 0);
        hf__json_print(hf__json_path(object, path), &text);
        if (wanted)
                assert_string_equal(text.data, wanted);
        else
                assert_int_equal(text.n, 0);
        hf__strbuf_done(&text);
        hf__json_free(object);
}

static void test_defaults_are_those_of_kubernetes(void **state) {
        struct api_fixture *f = *state;

        assert_int_equal(create(f, BODY(VERSION("v1", "true", OBJECT),
                                        ",\"status\":{\"storedVersions\":[\"v9\"]}")),
                         0);
        expect_at(f, "spec.names",
                  "{\"plural\":\"crontabs\",\"kind\":\"CronTab\",\"singular\":\"crontab\","
                  "\"listKind\":\"CronTabList\"}");
        expect_at(f, "spec.conversion", "{\"strategy\":\"None\"}");
        expect_at(f, "status",
                  "{\"conditions\":null,\"acceptedNames\":{\"plural\":\"\",\"kind\":\"\"},"
                  "\"storedVersions\":[\"v1\"]}");
        expect_at(f, "metadata.generation", "1");
}

/* An update that leaves out the default names keeps those from the create. */
static void test_a_default_that_is_left_out_is_no_change(void **state) {
        struct api_fixture *f = *state;
        char body[600];

        assert_int_equal(create(f, BODY(VERSION("v1", "true", OBJECT), "")), 0);
        (void)snprintf(body, sizeof body,
                       "{\"metadata\":{\"name\":\"" NAME
                       "\",\"resourceVersion\":\"%s\"}," SPEC(VERSION("v1", "true", OBJECT)) "}",
                       api_fixture_text_at(f, "metadata.resourceVersion"));
        assert_int_equal(api_fixture_request(f, HF_VERB_UPDATE, definitions, NULL, NAME, NULL,
                                             body),
                         0);
        expect_at(f, "metadata.generation", "1");
        expect_at(f, "spec.names.listKind", "\"CronTabList\"");
        assert_int_equal(merge(f, HFD_SUB_NONE, "{\"spec\":{\"names\":{\"shortNames\":[\"c\"]}}}"),
                         0);
        expect_at(f, "metadata.generation", "2");
}

static void test_the_storage_version_is_remembered(void **state) {
        struct api_fixture *f = *state;

        assert_int_equal(create(f, BODY(VERSION("v1", "true", OBJECT), "")), 0);
        assert_int_equal(merge(f, HFD_SUB_NONE,
                               "{" SPEC(VERSION("v1", "false",
                                                OBJECT) "," VERSION("v2", "true",
                                                                    OBJECT)) ",\"status\":null}"),
                         0);
        expect_at(f, "status.storedVersions", "[\"v1\",\"v2\"]");
        /* After a migration of the objects, a client removes the old version from the status. */
        assert_int_equal(merge(f, HFD_SUB_STATUS,
                               "{\"status\":{\"storedVersions\":[\"v2\"]},\"spec\":null}"),
                         0);
        expect_at(f, "status.storedVersions", "[\"v2\"]");
        expect_at(f, "spec.scope", "\"Namespaced\"");
        assert_int_equal(merge(f, HFD_SUB_STATUS, "{\"status\":null}"), 0);
        expect_at(f, "status.storedVersions", "[\"v2\"]");
}

static void test_unknown_fields_of_a_schema_are_dropped(void **state) {
        static const struct {
                const char *sent, *kept;
        } cases[] = {
                {"{\"properties\":{\"a\":{\"type\":\"string\",\"x\":1},\"b\":null}}",
                 "{\"properties\":{\"a\":{\"type\":\"string\"},\"b\":{}}}"},
                {"{\"items\":{\"items\":{\"type\":\"string\",\"x\":1}}}",
                 "{\"items\":{\"items\":{\"type\":\"string\"}}}"},
                {"{\"items\":[{\"x\":1}],\"not\":{\"items\":5}}", "{\"items\":[{}],\"not\":{}}"},
                {"{\"additionalProperties\":{\"x\":1}}", "{\"additionalProperties\":{}}"},
                {"{\"additionalProperties\":false}", "{\"additionalProperties\":false}"},
                {"{\"dependencies\":{\"a\":[\"b\"],\"c\":{\"x\":1},\"d\":7}}",
                 "{\"dependencies\":{\"a\":[\"b\"],\"c\":{}}}"},
                {"{\"default\":{\"a\":null,\"x\":[1]},\"example\":null,\"enum\":[\"a\",1,null]}",
                 "{\"default\":{\"a\":null,\"x\":[1]},\"enum\":[\"a\",1,null]}"},
                {"{\"maximum\":1.5,\"minimum\":-1,\"maxLength\":3}",
                 "{\"maximum\":1.5,\"minimum\":-1,\"maxLength\":3}"},
        };

        for (size_t i = 0; i < sizeof cases / sizeof cases[0]; i++) {
                const struct hfd_resource *row =
                        hfd_resource_find(definitions.group, definitions.version,
                                          definitions.plural);
                struct hf__json *object = NULL;
                struct hf__strbuf body = {0}, found = {0};
                char reason[300];

                hf__strbuf_printf(&body, BODY(VERSION("v1", "true", "%s"), ""), cases[i].sent);
                assert_int_equal(hf__json_parse(body.data, body.n, &object, NULL), 0);
                assert_int_equal(hfd_schema_decode(row->schema, object, NULL, reason,
                                                   sizeof reason),
                                 0);
                const struct hf__json *version =
                        hf__json_first(hf__json_path(object, "spec.versions"));
                hf__json_print(hf__json_path(version, "schema.openAPIV3Schema"), &found);
                assert_string_equal(found.data, cases[i].kept);
                hf__strbuf_done(&body);
                hf__strbuf_done(&found);
                hf__json_free(object);
        }
}

static void test_wrong_types_in_a_schema_are_refused(void **state) {
        static const char head[] =
                "CustomResourceDefinition in version \"v1\" cannot be handled as a "
                "CustomResourceDefinition: ";
        static const struct {
                const char *schema, *reason;
        } cases[] = {
                {"{\"additionalProperties\":\"yes\"}", "boolean or JSON schema expected"},
                {"{\"properties\":{\"a\":{\"type\":1}}}",
                 "json: cannot unmarshal number into Go struct field "
                 "JSONSchemaProps.spec.versions.schema.openAPIV3Schema.properties.type of type "
                 "string"},
                {"{\"items\":{\"maximum\":\"1\"}}",
                 "json: cannot unmarshal string into Go struct field "
                 "JSONSchemaProps.spec.versions.schema.openAPIV3Schema.items.maximum of type "
                 "float64"},
        };
        struct api_fixture *f = *state;

        for (size_t i = 0; i < sizeof cases / sizeof cases[0]; i++) {
                struct hf__strbuf body = {0}, message = {0};

                hf__strbuf_printf(&body, BODY(VERSION("v1", "true", "%s"), ""), cases[i].schema);
                hf__strbuf_printf(&message, "%s%s", head, cases[i].reason);
                assert_int_equal(create(f, body.data), HF_E_INVALID);
                api_fixture_expect_failure(f, 400, "BadRequest", message.data);
                hf__strbuf_done(&body);
                hf__strbuf_done(&message);
        }
}

static void expect_absent(struct api_fixture *f) {
        assert_int_equal(api_fixture_get(f, definitions, NULL, NAME), HF_E_NOT_FOUND);
}

/* A controller deletes the objects of the resource, and then removes the finalizer. */
static void test_a_delete_waits_for_the_objects(void **state) {
        struct api_fixture *f = *state;

        assert_int_equal(create(f, BODY(VERSION("v1", "true", OBJECT), "")), 0);
        expect_at(f, "metadata.finalizers", NULL);
        assert_int_equal(api_fixture_delete(f, definitions, NULL, NAME,
                                            "{\"propagationPolicy\":\"Foreground\"}"),
                         0);
        assert_int_equal(api_fixture_get(f, definitions, NULL, NAME), 0);
        expect_at(f, "metadata.finalizers", "[\"customresourcecleanup.apiextensions.k8s.io\"]");
        expect_at(f, "metadata.generation", "1");
        expect_at(f, "metadata.deletionGracePeriodSeconds", NULL);
        assert_string_not_equal(api_fixture_text_at(f, "metadata.deletionTimestamp"), "");
        struct hf__json *object = NULL;
        assert_int_equal(hf__json_parse(f->last.body, strlen(f->last.body), &object, NULL), 0);
        const struct hf__json *condition =
                hf__json_first(hf__json_path(object, "status.conditions"));
        assert_true(hf__json_has_text(condition, "type", "Terminating"));
        assert_true(hf__json_has_text(condition, "status", "True"));
        assert_true(hf__json_has_text(condition, "reason", "InstanceDeletionPending"));
        assert_true(hf__json_has_text(condition, "message",
                                      "CustomResourceDefinition marked for deletion; "
                                      "CustomResource deletion will begin soon"));
        assert_string_equal(hf__json_string(condition, "lastTransitionTime"),
                            hf__json_string(object, "metadata.deletionTimestamp"));
        hf__json_free(object);
        /* A second delete changes nothing. */
        assert_int_equal(api_fixture_delete(f, definitions, NULL, NAME, NULL), 0);
        assert_int_equal(api_fixture_get(f, definitions, NULL, NAME), 0);
        assert_int_equal(merge(f, HFD_SUB_NONE, "{\"metadata\":{\"finalizers\":null}}"), 0);
        expect_absent(f);
}

static void test_a_write_of_the_status_is_not_a_write_of_the_spec(void **state) {
        struct api_fixture *f = *state;

        assert_int_equal(create(f, BODY(VERSION("v1", "true", OBJECT), "")), 0);
        assert_int_equal(merge(f, HFD_SUB_STATUS,
                               "{\"spec\":{\"group\":\"y.org\"},\"status\":{\"storedVersions\":["
                               "\"v0\",\"v1\"],\"acceptedNames\":{\"plural\":\"crontabs\","
                               "\"kind\":\"CronTab\"}}}"),
                         0);
        expect_at(f, "spec.group", "\"stable.example.com\"");
        expect_at(f, "status.acceptedNames.plural", "\"crontabs\"");
        expect_at(f, "metadata.generation", "1");
        assert_int_equal(merge(f, HFD_SUB_STATUS,
                               "{\"status\":{\"acceptedNames\":{\"plural\":\"A\"}}}"),
                         HF_E_INVALID);
        assert_int_equal(merge(f, HFD_SUB_NONE, "{\"spec\":{\"group\":\"y.org\"}}"), HF_E_INVALID);
        assert_non_null(strstr(api_fixture_text_at(f, "message"),
                               "spec.group: Invalid value: \"y.org\": field is immutable"));
        assert_non_null(strstr(api_fixture_text_at(f, "message"),
                               "status.storedVersions[0]: Invalid value: \"v0\": missing from "
                               "spec.versions; "));
}

int main(void) {
        const struct CMUnitTest tests[] = {
                API_TEST(test_defaults_are_those_of_kubernetes),
                API_TEST(test_a_default_that_is_left_out_is_no_change),
                API_TEST(test_the_storage_version_is_remembered),
                cmocka_unit_test(test_unknown_fields_of_a_schema_are_dropped),
                API_TEST(test_a_delete_waits_for_the_objects),
                API_TEST(test_a_write_of_the_status_is_not_a_write_of_the_spec),
                API_TEST(test_wrong_types_in_a_schema_are_refused),
        };

        return cmocka_run_group_tests(tests, NULL, NULL);
}

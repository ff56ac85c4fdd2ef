/* SPDX-License-Identifier: Apache-2.0 */
/* Custom resources without a server: slots, the order of versions, JSON paths, the rows of a kind
 * that is made from its definition, and selectors over its objects. */
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

#include "base/buf.h"
#include "base/json.h"
#include "base/strbuf.h"
#include "custom_schema_fixture.h"
#include "gadget_definition.h"
#include "server/resources/custom/custom_selectable.h"
#include "server/resources/custom/custom_table.h"
#include "server/resources/custom/custom_version_order.h"
#include "server/resources/custom/json_path.h"
#include "server/resources/custom/served_rows.h"
#include "server/resources/objects/object.h"
#include "server/resources/objects/object_key.h"
#include "server/resources/rows/resource_table.h"
#include "server/resources/selection/selector.h"
#include "server/schema/schema.h"

/* ---- slots ---- */

static const struct hfd_resource *slot_of(struct hfd_custom_table *table, const char *key,
                                          const char *path) {
        const char *found;
        const struct hfd_resource *row = hfd_object_key_parse("/registry", table, key, &found);

        if (row)
                assert_string_equal(found, path);
        return row;
}

static void test_a_slot_belongs_to_group_and_plural(void **state) {
        struct hfd_custom_table *table = hfd_custom_table_new();
        const struct hfd_resource *gadget, *widget;

        assert_non_null(table);
        assert_int_equal(hfd_custom_table_slots(table), HFD_RESOURCES_MAX);
        gadget = slot_of(table, "/registry/example.com/gadgets/default/a", "default/a");
        widget = slot_of(table, "/registry/example.com/widgets/a", "a");
        assert_int_equal(hfd_resource_index(gadget), HFD_RESOURCES_MAX);
        assert_int_equal(hfd_resource_index(widget), HFD_RESOURCES_MAX + 1);
        assert_ptr_equal(slot_of(table, "/registry/example.com/gadgets/b", "b"), gadget);
        assert_string_equal(gadget->group, "example.com");
        assert_string_equal(gadget->plural, "gadgets");
        assert_string_equal(gadget->storage, "example.com/gadgets");
        assert_int_equal(hfd_custom_table_slots(table), HFD_RESOURCES_MAX + 2);
        hfd_custom_table_free(table);
}

static void test_other_keys_get_no_slot(void **state) {
        static const char *const keys[] = {"/registry/nodot/things/a",
                                           "/registry/example.com/gadgets",
                                           "/registry/example.com/gadgets/",
                                           "/registry/example.com/gadgets/a/b/c",
                                           "/registry/example.com/gadgets//a",
                                           "/registry/example.com//a",
                                           "/registry/example.com/gadgets/a/",
                                           "/other/example.com/gadgets/a"};
        struct hfd_custom_table *table = hfd_custom_table_new();
        const char *path;

        for (size_t i = 0; i < sizeof keys / sizeof keys[0]; i++) {
                assert_null(hfd_object_key_parse("/registry", table, keys[i], &path));
                assert_non_null(path);
        }
        assert_int_equal(hfd_custom_table_slots(table), HFD_RESOURCES_MAX);
        assert_null(hfd_object_key_parse("/registry", NULL, GADGET "a", &path));
        /* A built-in kind below a group has no slot of its own. */
        const struct hfd_resource *workspaces =
                slot_of(table, "/registry/tenancy.holdfast.dev/workspaces/a", "a");
        assert_true(hfd_resource_index(workspaces) < HFD_RESOURCES_MAX);
        hfd_custom_table_free(table);
}

static void test_there_are_no_more_than_1024_slots(void **state) {
        struct hfd_custom_table *table = hfd_custom_table_new();
        const struct hfd_resource *slot;
        char plural[40];

        for (size_t i = 0; i <= HFD_CUSTOM_SLOTS_MAX; i++) {
                (void)snprintf(plural, sizeof plural, "things%zu", i);
                assert_int_equal(hfd_custom_table_slot(table, "example.com", plural, &slot), 0);
                assert_true((slot != NULL) == (i < HFD_CUSTOM_SLOTS_MAX));
        }
        assert_int_equal(hfd_custom_table_slot(table, "example.com", "things7", &slot), 0);
        assert_int_equal(hfd_resource_index(slot), HFD_RESOURCES_MAX + 7);
        hfd_custom_table_free(table);
}

/* ---- pure parts ---- */

static void test_versions_are_ordered_as_in_kubernetes(void **state) {
        /* A number with a zero before it counts, but not one that does not fit. */
        static const char *const sorted[] = {"v10",       "v2",        "v01",
                                             "v1",        "v0",        "v11beta2",
                                             "v10beta3",  "v3beta1",   "v0beta1",
                                             "v12alpha1", "v11alpha2", "v1alpha0",
                                             "foo1",      "foo10",     "v99999999999999999999"};

        for (size_t i = 0; i < sizeof sorted / sizeof sorted[0]; i++)
                for (size_t k = 0; k < sizeof sorted / sizeof sorted[0]; k++) {
                        int order = hfd_version_order(sorted[i], sorted[k]);
                        assert_true(i == k ? order == 0 : (order < 0) == (i < k));
                }
}

static void test_a_json_path_finds_the_first_value(void **state) {
        static const char document[] = "{\"a\":{\"b\":[{\"t\":\"x\",\"v\":1},{\"t\":\"y\",\"v\":2}]"
                                       ",\"c.d\":3,\"n\":null}}";
        static const struct {
                const char *path, *value; /* NULL = none */
        } cases[] = {{".a.b[0].v", "1"},
                     {".a.b[-1].v", "2"},
                     {".a.b[2].v", NULL},
                     {".a.b[?(@.t==\"y\")].v", "2"},
                     {".a.b[?(@.t == 'x')].v", "1"},
                     {".a.b[?( @.t==\"y\")].v", "2"},
                     {".a.b[?(\t @.t==\"y\" )].v", "2"},
                     {".a.b[?( @.v)].t", "\"x\""},
                     {".a.b[?( @.z)].t", NULL},
                     {".a.b[?( )].t", NULL},
                     {".a.b[?(@.v==2)].t", "\"y\""},
                     {".a.b[?(@.v!=1)].t", "\"y\""},
                     {".a.b[?(@.z)].t", NULL},
                     {".a.b[*].v", "1"},
                     {".a.b[*].t", "\"x\""},
                     {".a['c.d']", "3"},
                     {".a.c\\.d", "3"},
                     {".a.n", "null"},
                     {".a.x.y", NULL},
                     {"a", NULL},
                     {".a.b[", NULL},
                     {".a.b[?(@.t", NULL},
                     {"", document}};
        struct hf__json *json;

        assert_int_equal(hf__json_parse(document, sizeof document - 1, &json, NULL), 0);
        for (size_t i = 0; i < sizeof cases / sizeof cases[0]; i++) {
                const struct hf__json *found = hfd_json_path_first(json, cases[i].path);
                struct hf__json *wanted = NULL;
                if (!cases[i].value) {
                        assert_null(found);
                        continue;
                }
                assert_int_equal(hf__json_parse(cases[i].value, strlen(cases[i].value), &wanted,
                                                NULL),
                                 0);
                assert_non_null(found);
                assert_true(hf__json_equal(found, wanted));
                hf__json_free(wanted);
        }
        hf__json_free(json);
}

/* ---- kinds ---- */

static void test_a_kind_has_a_row_for_each_version(void **state) {
        static const char text[] =
                DEFINITION(VERSION("v1", "true", "a") "," VERSION("v2", "false", "b"));
        struct hfd_custom_table *table = hfd_custom_table_new();
        const struct hfd_resource *slot;
        struct hfd_custom_kind *kind;
        struct hf__json *json;

        assert_int_equal(hf__json_parse(text, sizeof text - 1, &json, NULL), 0);
        assert_true(hfd_custom_kind_is_established(json));
        assert_int_equal(hfd_custom_table_slot(table, "example.com", "gadgets", &slot), 0);
        assert_int_equal(hfd_custom_kind_new(json, NULL, slot, 1, &kind), 0);
        assert_int_equal(kind->n_versions, 2);
        assert_string_equal(kind->versions[0].row.version, "v2");
        assert_string_equal(kind->storage->row.version, "v1");
        assert_true(hfd_resource_same(&kind->versions[0].row, slot));
        assert_string_equal(kind->storage->row.schema->definition, "com.example.v1.Gadget");
        hfd_custom_kind_unref(kind);
        hf__json_remove(json, "status.acceptedNames");
        assert_int_equal(hfd_custom_kind_new(json, NULL, slot, 1, &kind), HF_E_INVALID);
        hf__json_free(json);
        hfd_custom_table_free(table);
}

/* A definition that an older API version has stored may keep unknown fields. When it no longer
 * does, cached objects must be pruned, although the schema is the same. */
static void test_a_kind_that_begins_to_prune_has_another_form(void **state) {
        static const char text[] = DEFINITION(VERSION("v1", "true", "a"));
        struct hfd_custom_table *table = hfd_custom_table_new();
        const struct hfd_resource *slot;
        struct hfd_custom_kind *keeps, *prunes, *same;
        struct hf__json *json;

        assert_int_equal(hf__json_parse(text, sizeof text - 1, &json, NULL), 0);
        assert_int_equal(hfd_custom_table_slot(table, "example.com", "gadgets", &slot), 0);
        assert_int_equal(hfd_custom_kind_new(json, NULL, slot, 1, &prunes), 0);
        assert_int_equal(hf__json_set_bool(json, "spec.preserveUnknownFields", false), 0);
        assert_int_equal(hfd_custom_kind_new(json, NULL, slot, 2, &same), 0);
        assert_int_equal(hf__json_set_bool(json, "spec.preserveUnknownFields", true), 0);
        assert_int_equal(hfd_custom_kind_new(json, NULL, slot, 3, &keeps), 0);
        assert_true(hfd_custom_same_form(&same->storage->row, &prunes->storage->row));
        assert_false(hfd_custom_same_form(&keeps->storage->row, &prunes->storage->row));
        hfd_custom_kind_unref(keeps);
        hfd_custom_kind_unref(prunes);
        hfd_custom_kind_unref(same);
        hf__json_free(json);
        hfd_custom_table_free(table);
}

/* ---- selectors ---- */

static bool selects(const struct hfd_resource *row, const struct hf__json *json, bool fields,
                    const char *text) {
        struct hf__strbuf stored = {0};
        struct hfd_selector selector;
        char reason[320] = "";
        bool matches;

        hf__json_print(json, &stored);
        assert_int_equal(stored.error, 0);
        struct hf__buf *bytes = hf__buf_copy(stored.data, stored.n);
        struct hfd_object *object = hfd_object_new(row, "default/a", 1, bytes);
        assert_non_null(object);
        if (hfd_selector_parse(text, fields, row, &selector, reason, sizeof reason) != 0)
                fail_msg("%s: %s", text, reason);
        assert_int_equal(hfd_selector_matches(&selector, object, &matches), 0);
        hfd_selector_done(&selector);
        hfd_object_unref(object);
        hf__buf_unref(bytes);
        hf__strbuf_done(&stored);
        return matches;
}

/* Two versions of a definition may say different things about one member, and a kind may have a
 * member that is named like the labels. */
static void test_selectable_fields_and_labels_do_not_mix(void **state) {
        struct hf__json *json =
                json_of("{'kind':'Gadget','apiVersion':'example.com/v1','metadata':{'name':'a',"
                        "'namespace':'default','labels':{'app':'x'}},'labels':{'app':'y'},"
                        "'spec':{'color':'red'}}");
        static const char text[] =
                DEFINITION(VERSION("v2", "false", "a") "," VERSION("v1", "true", "a"));
        struct hf__json *definition = json_of(text);
        struct hfd_custom_table *table = hfd_custom_table_new();
        struct hf__json *versions = hf__json_path(definition, "spec.versions");
        const struct hfd_resource *slot;
        struct hfd_custom_kind *kind;

        assert_int_equal(hf__json_set(hf__json_first(versions), "selectableFields",
                                      json_of("[{'jsonPath':'.spec'},{'jsonPath':'.labels'}]")),
                         0);
        assert_int_equal(hf__json_set(hf__json_next(hf__json_first(versions)), "selectableFields",
                                      json_of("[{'jsonPath':'.spec.color'},"
                                              "{'jsonPath':'.labels.app'}]")),
                         0);
        assert_int_equal(hfd_custom_table_slot(table, "example.com", "gadgets", &slot), 0);
        assert_int_equal(hfd_custom_kind_new(definition, NULL, slot, 1, &kind), 0);
        const struct hfd_resource *v1 = &kind->storage->row, *v2 = &kind->versions[0].row;
        assert_true(selects(v1, json, true, "spec.color=red"));
        assert_true(selects(v1, json, true, "labels.app=y"));
        assert_false(selects(v1, json, true, "labels.app=x"));
        assert_true(selects(v1, json, false, "app=x"));
        assert_false(selects(v1, json, false, "app=y"));
        hf__json_remove(json, "metadata.labels");
        assert_false(selects(v1, json, false, "app"));
        assert_int_equal(hf__json_set_string(json, "labels", "z"), 0);
        assert_int_equal(hf__json_set_string(json, "metadata.labels.app", "x"), 0);
        assert_true(selects(v1, json, false, "app=x"));
        assert_true(selects(v1, json, true, "labels.app="));
        assert_true(selects(v2, json, true, "labels=z"));
        hfd_custom_kind_unref(kind);
        hf__json_free(definition);
        hf__json_free(json);
        hfd_custom_table_free(table);
}

/* 200 versions name the same field, and each of them one more. */
static void test_an_object_keeps_only_the_fields_that_it_has(void **state) {
        struct hf__json *object = json_of("{'spec':{'color':'red','f7':7,'f8':{}}}"),
                        *selectable = hf__json_object();
        struct hf__strbuf versions = {0}, text = {0};
        struct hfd_custom_table *table = hfd_custom_table_new();
        const struct hfd_resource *slot;
        struct hfd_custom_kind *kind;

        for (int i = 1; i <= 200; i++)
                hf__strbuf_printf(&versions,
                                  "%s{'name':'v%d','served':true,'storage':%s,'selectableFields':[{"
                                  "'jsonPath':'.spec.color'},{'jsonPath':'.spec.f%d'}]}",
                                  i > 1 ? "," : "", i, i == 1 ? "true" : "false", i);
        hf__strbuf_puts(&text, "{'spec':{'scope':'Namespaced','versions':[");
        hf__strbuf_puts(&text, versions.data);
        hf__strbuf_puts(&text, "]},'status':{'acceptedNames':{'kind':'Gadget','plural':"
                               "'gadgets'}}}");
        struct hf__json *definition = json_of(text.data);
        assert_int_equal(hfd_custom_table_slot(table, "example.com", "gadgets", &slot), 0);
        assert_int_equal(hfd_custom_kind_new(definition, NULL, slot, 1, &kind), 0);
        assert_int_equal(kind->n_selectable, 201);
        assert_int_equal(hfd_custom_selectable(kind, object, selectable), 0);
        assert_int_equal(hf__json_count(selectable), 2);
        assert_string_equal(hfd_custom_selectable_text(selectable, "spec.color"), "red");
        assert_string_equal(hfd_custom_selectable_text(selectable, "spec.f7"), "7");
        assert_null(hfd_custom_selectable_text(selectable, "spec.f8"));
        hfd_custom_kind_unref(kind);
        hf__strbuf_done(&versions);
        hf__strbuf_done(&text);
        hf__json_free(definition);
        hf__json_free(selectable);
        hf__json_free(object);
        hfd_custom_table_free(table);
}

int main(void) {
        const struct CMUnitTest tests[] = {
                cmocka_unit_test(test_a_slot_belongs_to_group_and_plural),
                cmocka_unit_test(test_other_keys_get_no_slot),
                cmocka_unit_test(test_there_are_no_more_than_1024_slots),
                cmocka_unit_test(test_versions_are_ordered_as_in_kubernetes),
                cmocka_unit_test(test_a_json_path_finds_the_first_value),
                cmocka_unit_test(test_a_kind_has_a_row_for_each_version),
                cmocka_unit_test(test_a_kind_that_begins_to_prune_has_another_form),
                cmocka_unit_test(test_selectable_fields_and_labels_do_not_mix),
                cmocka_unit_test(test_an_object_keeps_only_the_fields_that_it_has),
        };
        return cmocka_run_group_tests(tests, NULL, NULL);
}

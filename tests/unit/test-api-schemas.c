/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The tables of all kinds are well formed: bisection finds each field, no number of protobuf occurs
 * twice, and lists are merged by fields that their elements have.
 */
#undef NDEBUG
#include <assert.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <string.h>

#include <cmocka.h>

#include "server/resources/resource.h"
#include "server/resources/rows/resource_table.h"
#include "server/schema/bodies.h"
#include "server/schema/common.h"
#include "server/schema/protobuf_encode.h"

static void check_schema(const struct hfd_schema *schema, int depth);

/* OpenAPI has one definition of each name. Returns false if this one, and all below it, was checked
 * before. */
static bool check_definition(const struct hfd_schema *schema) {
        static const struct hfd_schema *seen[512];
        static size_t n;
        size_t i = 0;

        if (!schema->definition || schema->type != HFD_SCHEMA_STRUCT)
                return true;
        while (i < n && strcmp(seen[i]->definition, schema->definition) != 0)
                i++;
        assert_true(i < 512);
        if (i < n) {
                assert_ptr_equal(seen[i], schema);
                return false;
        }
        seen[n++] = schema;
        return true;
}

/* A value with several possible types must show by its JSON type which one it has. */
static void check_either(const struct hfd_schema *either) {
        assert_non_null(either->definition);
        assert_int_equal(either->items->type, HFD_SCHEMA_STRUCT);
        assert_true(either->other->type == HFD_SCHEMA_BOOLEAN ||
                    either->other->type == HFD_SCHEMA_LIST);
}

static void check_list(const struct hfd_schema *list) {
        assert_int_equal(list->list_keys != NULL, list->list_type == HFD_LIST_MAP);
        for (const char *const *key = list->list_keys; key && *key; key++) {
                assert_non_null(hfd_schema_field(list->items, *key));
                if (key[1])
                        assert_true(strcmp(*key, key[1]) < 0);
        }
        if (list->list_type == HFD_LIST_SET)
                assert_true(list->items->type == HFD_SCHEMA_TEXT ||
                            list->items->type == HFD_SCHEMA_INT32);
}

/* Fields of other types cannot be encoded in protobuf. */
static void check_protobuf(const struct hfd_schema_field *field) {
        const struct hfd_schema *value = field->schema;

        assert_true(field->protobuf_tag < HFD_PROTOBUF_TAGS);
        if (value->type == HFD_SCHEMA_MAP) {
                value = value->items;
                assert_true(value->type == HFD_SCHEMA_TEXT || value->type == HFD_SCHEMA_BYTES ||
                            value->type == HFD_SCHEMA_LIST || value->type == HFD_SCHEMA_QUANTITY ||
                            value->type == HFD_SCHEMA_STRUCT || value->type == HFD_SCHEMA_EITHER);
        }
        if (value->type == HFD_SCHEMA_LIST)
                value = value->items;
        assert_true(value->type != HFD_SCHEMA_LIST && value->type != HFD_SCHEMA_MAP);
}

/* The schemas of the workload kinds have no descriptions. */
static bool with_descriptions = true;

static void check_field(const struct hfd_schema *schema, size_t i, int depth) {
        const struct hfd_schema_field *field = &schema->fields[i];

        assert_ptr_equal(hfd_schema_field(schema, field->name), field);
        /* Kubernetes describes the metadata of all kinds but CertificateSigningRequest. */
        assert_true(!with_descriptions || field->description ||
                    field->schema == &hfd_schema_object_meta);
        if (field->protobuf_tag != 0) {
                assert_ptr_equal(hfd_schema_field_by_tag(schema, field->embedded_tag,
                                                         field->protobuf_tag),
                                 field);
                check_protobuf(field);
        }
        /* The number of an inner message differs from those of all fields. */
        if (field->embedded_tag != 0) {
                assert_true(field->embedded_tag < HFD_PROTOBUF_TAGS);
                unsigned outer = field->embedded_tag % HFD_EMBEDDED_MAX;
                unsigned inner = field->embedded_tag / HFD_EMBEDDED_MAX;

                assert_null(hfd_schema_field_by_tag(schema, 0, outer));
                assert_true(hfd_schema_embeds(schema, 0, outer));
                assert_true(inner == 0 || hfd_schema_embeds(schema, outer, inner));
                assert_non_null(schema->embedded); /* messages name the embedded struct */
                assert_true(inner == 0 || strchr(schema->embedded, '.'));
        }
        if ((field->flags & HFD_FIELD_MERGE) != 0) {
                assert_int_equal(field->schema->type, HFD_SCHEMA_LIST);
                if (field->merge_key)
                        assert_non_null(hfd_schema_field(field->schema->items, field->merge_key));
        }
        check_schema(field->schema, depth + 1);
}

static void check_schema(const struct hfd_schema *schema, int depth) {
        assert_true(depth < 20); /* a schema contains itself only through a definition */
        if (!check_definition(schema))
                return;
        assert_int_equal(schema->other != NULL, schema->type == HFD_SCHEMA_EITHER);
        if (schema->type == HFD_SCHEMA_EITHER) {
                check_either(schema);
                check_schema(schema->items, depth + 1);
                check_schema(schema->other, depth + 1);
        }
        if (schema->type == HFD_SCHEMA_LIST)
                check_list(schema);
        if (schema->type == HFD_SCHEMA_LIST || schema->type == HFD_SCHEMA_MAP)
                check_schema(schema->items, depth + 1);
        assert_true(schema->type == HFD_SCHEMA_STRUCT || schema->n_fields == 0);
        for (size_t i = 0; i < schema->n_fields; i++)
                check_field(schema, i, depth);
}

static void test_tables_are_well_formed(void **state) {
        for (size_t i = 0; i < hfd_resources_count(); i++) {
                const struct hfd_resource *row = hfd_resource_at(i);
                const struct hfd_schema *schema = row->schema;

                assert_int_equal(hfd_resource_index(row), i);
                check_schema(schema, 0);
                assert_string_equal(hfd_schema_struct_name(schema), row->kind);
                assert_ptr_equal(hfd_schema_of_member(schema, "metadata"), &hfd_schema_object_meta);
                assert_ptr_equal(hfd_schema_of_member(schema, "apiVersion"), &hfd_schema_text);
                assert_ptr_equal(hfd_schema_of_member(schema, "kind"), &hfd_schema_text);
        }
        check_schema(&hfd_schema_delete_options, 0);
        check_schema(&hfd_schema_condition, 0);
        check_schema(&hfd_schema_status, 0);
        check_schema(&hfd_schema_watch_event, 0);
}

static void test_tables_of_workloads_are_well_formed(void **state) {
        size_t n_before = hfd_resources_count();

        hfd_resources_add_workloads();
        assert_true(hfd_resources_count() > n_before);
        assert_true(hfd_resources_count() <= HFD_RESOURCES_MAX);
        with_descriptions = false;
        test_tables_are_well_formed(state);
}

int main(void) {
        const struct CMUnitTest tests[] = {
                cmocka_unit_test(test_tables_are_well_formed),
                cmocka_unit_test(test_tables_of_workloads_are_well_formed),
        };
        return cmocka_run_group_tests(tests, NULL, NULL);
}

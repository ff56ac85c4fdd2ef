/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Prints JSON values as Go does.
 *
 * Invariant: hfd_go_value_print prints a text as it is, without quotes, so its output cannot be
 * parsed again. That of hfd_go_fields_print is JSON.
 */
#include "server/resources/go_value.h"

#include <ctype.h>

#include "base/json.h"
#include "server/schema/schema.h"

void hfd_go_value_print(struct hf__strbuf *s, const struct hf__json *value) {
        const char *separator = "";
        bool is_object = hf__json_is_object(value);

        if (hf__json_is_string(value)) {
                hf__strbuf_puts(s, hf__json_text(value));
        } else if (is_object || hf__json_is_array(value)) {
                hf__strbuf_puts(s, is_object ? "map[" : "[");
                for (const struct hf__json *m = hf__json_first(value); m; m = hf__json_next(m)) {
                        hf__strbuf_puts(s, separator);
                        if (is_object)
                                hf__strbuf_printf(s, "%s:", hf__json_key(m));
                        hfd_go_value_print(s, m);
                        separator = " ";
                }
                hf__strbuf_putc(s, ']');
        } else if (hf__json_is_null(value)) {
                hf__strbuf_puts(s, "<nil>");
        } else {
                hf__json_print(value, s);
        }
}

/* ---- fields of structs ---- */

/* The zero value of a field that is absent. Types that are not in the table have nil, as pointers
 * do. */
static const char *zero_of(const struct hfd_schema_field *field) {
        static const struct {
                enum hfd_schema_type type;
                const char *zero;
        } zeros[] = {{HFD_SCHEMA_TEXT, "\"\""},     {HFD_SCHEMA_QUANTITY, "\"0\""},
                     {HFD_SCHEMA_BOOLEAN, "false"}, {HFD_SCHEMA_INT32, "0"},
                     {HFD_SCHEMA_INT64, "0"},       {HFD_SCHEMA_STRUCT, "{}"}};

        for (size_t i = 0; i < sizeof zeros / sizeof zeros[0]; i++)
                if (zeros[i].type == field->schema->type && !(field->flags & HFD_FIELD_POINTER))
                        return zeros[i].zero;
        return "null";
}

static void print_field(struct hf__strbuf *s, const struct hfd_schema_field *field,
                        const struct hf__json *object) {
        const struct hf__json *value = hf__json_get(object, field->name);

        hf__strbuf_printf(s, "\"%c%s\":", toupper((unsigned char)field->name[0]), field->name + 1);
        if (value)
                hfd_go_fields_print(s, field->schema, value);
        else
                hf__strbuf_puts(s, zero_of(field));
}

/* Takes quadratic time in the number of the schema's fields, which is small. */
static void print_struct(struct hf__strbuf *s, const struct hfd_schema *schema,
                         const struct hf__json *value) {
        size_t n = 0;

        hf__strbuf_putc(s, '{');
        for (unsigned tag = 1; n < schema->n_fields && tag < 100; tag++) {
                const struct hfd_schema_field *field = hfd_schema_field_by_tag(schema, 0, tag);
                if (!field)
                        continue;
                hf__strbuf_puts(s, n++ > 0 ? "," : "");
                print_field(s, field, value);
        }
        hf__strbuf_putc(s, '}');
}

void hfd_go_fields_print(struct hf__strbuf *s, const struct hfd_schema *schema,
                         const struct hf__json *value) {
        size_t n = 0;

        if (!value) {
                hf__strbuf_puts(s, "null");
        } else if (schema->type == HFD_SCHEMA_STRUCT && hf__json_is_object(value)) {
                print_struct(s, schema, value);
        } else if (schema->type == HFD_SCHEMA_LIST && hf__json_is_array(value)) {
                hf__strbuf_putc(s, '[');
                for (const struct hf__json *m = hf__json_first(value); m; m = hf__json_next(m)) {
                        hf__strbuf_puts(s, n++ > 0 ? "," : "");
                        hfd_go_fields_print(s, schema->items, m);
                }
                hf__strbuf_putc(s, ']');
        } else {
                hf__json_print(value, s);
        }
}

/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Fuzzes the schemas of custom kinds: the first line is an openAPIV3Schema, the rest an object. A
 * schema that no rule refuses can be compiled. Pruning and defaulting twice is the same as once,
 * and changes nothing of a text that hfd_custom_schema_is_formed accepts. An object that replaces
 * an equal one is valid, unless the schema has parts that do not ratchet.
 */
#undef NDEBUG
#include <assert.h>
#include <errno.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#include <holdfast/error.h>

#include "base/json.h"
#include "base/strbuf.h"
#include "server/resources/causes.h"
#include "server/resources/custom/schema/compile/effort.h"
#include "server/resources/custom/schema/custom_schema.h"
#include "server/resources/custom/schema/structural.h"
#include "server/resources/objects/object.h"
#include "server/schema/schema.h"
#include "server/schema/strict.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t n);

/* A value without duplicate keys, as all that the server stores. NULL = there is none. */
static struct hf__json *parse(const char *data, size_t n) {
        struct hf__json *json = NULL;

        if (hf__json_parse(data, n, &json, NULL) == 0 && hf__json_check_unique(json, NULL) == 0)
                return json;
        return hf__json_free(json);
}

static size_t prune(const struct hfd_custom_schema *schema, struct hf__json *object) {
        struct hfd_strict strict = {0};
        size_t n_lines = 1;

        assert(hfd_custom_schema_prune(schema, object, &strict) == 0);
        assert(strict.lines.error == 0 && strict.n <= HFD_STRICT_MAX);
        for (size_t i = 0; i < strict.lines.n; i++)
                n_lines += strict.lines.data[i] == '\n';
        assert(strict.n == 0 || strict.n == n_lines);
        hf__strbuf_done(&strict.lines);
        return strict.n;
}

static void check_fields(const struct hfd_schema *fields) {
        assert(fields && (fields->type != HFD_SCHEMA_LIST || fields->items));
        for (size_t i = 0; i < fields->n_fields; i++) {
                assert(i == 0 || strcmp(fields->fields[i - 1].name, fields->fields[i].name) < 0);
                if (!fields->fields[i].schema->definition)
                        check_fields(fields->fields[i].schema);
        }
        if (fields->items)
                check_fields(fields->items);
}

static void check_causes(const struct hfd_causes *causes) {
        assert(causes->n <= HFD_CAUSES_MAX);
        for (size_t i = 0; i < causes->n; i++)
                assert(*causes->items[i].reason && *causes->items[i].text);
}

static void check_object(const struct hfd_custom_schema *schema, struct hf__json *object,
                         bool ratchets) {
        static struct hfd_causes causes;
        struct hf__json *copy;

        (void)prune(schema, object);
        assert(prune(schema, object) == 0);
        if (hfd_custom_schema_default(schema, object) != 0)
                return;
        copy = hf__json_dup(object);
        assert(copy && hfd_custom_schema_default(schema, copy) == 0);
        assert(hf__json_equal(copy, object));
        hfd_causes_init(&causes);
        hfd_custom_schema_validate(schema, object, NULL, &causes);
        check_causes(&causes);
        hfd_causes_init(&causes);
        hfd_custom_schema_validate(schema, object, copy, &causes);
        check_causes(&causes);
        assert(causes.n == 0 || !ratchets);
        hf__json_free(copy);
}

static const struct hfd_resource row = {.group = "g", .version = "v", .kind = "K"};

/* The printed object, as it is stored. */
static struct hf__buf *print(const struct hf__json *object) {
        struct hf__buf *bytes = hfd_object_encode(&row, object);

        assert(bytes);
        return bytes;
}

static void check_form(const struct hfd_custom_schema *schema, const struct hf__buf *text) {
        struct hf__json *object = NULL;

        if (!hfd_object_has_head(&row, text) ||
            !hfd_custom_schema_is_formed(schema, text->data, text->n))
                return;
        assert(hf__json_parse(text->data, text->n, &object, NULL) == 0);
        assert(prune(schema, object) == 0);
        assert(hfd_custom_schema_default(schema, object) == 0);
        struct hf__buf *formed = print(object);
        hf__json_free(object);
        assert(formed->n == text->n && memcmp(formed->data, text->data, text->n) == 0);
        hf__buf_unref(formed);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t n) {
        static struct hfd_causes causes;
        const char *text = (const char *)data, *end = n > 0 ? memchr(text, '\n', n) : NULL;
        struct hfd_custom_schema *schema = NULL;
        struct hfd_schema_effort effort = {0};

        if (!end)
                return 0;
        size_t n_props = (size_t)(end - text);
        struct hf__json *props = parse(text, n_props), *object = parse(end + 1, n - n_props - 1);
        if (props) {
                hfd_causes_init(&causes);
                hfd_structural_validate(props, "schema", &effort, &causes);
                check_causes(&causes);
                int r = hfd_custom_schema_new(props, &schema);
                assert(r == 0 || r == HF_E_INVALID);
                assert(r == 0 || causes.n > 0 || hf__json_is_null(props));
                assert((r == 0) == (schema != NULL));
        }
        if (schema) {
                check_fields(hfd_custom_schema_fields(schema));
                assert(hfd_custom_schema_memory(schema) > 0);
        }
        if (schema && hf__json_is_object(object)) {
                struct hf__buf *written = hf__buf_copy(end + 1, n - n_props - 1),
                               *printed = print(object);
                assert(written);
                check_form(schema, written);
                check_form(schema, printed);
                hf__buf_unref(written);
                hf__buf_unref(printed);
                check_object(schema, object,
                             !memmem(text, n_props, "embedded-resource",
                                     strlen("embedded-resource")));
                printed = print(object);
                check_form(schema, printed);
                hf__buf_unref(printed);
        }
        hfd_custom_schema_free(schema);
        hf__json_free(props);
        hf__json_free(object);
        return 0;
}

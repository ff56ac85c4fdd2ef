/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The decoder (decode.h). It walks through the object and its schema at the same time.
 *
 * Invariants:
 *
 *  - The walk visits each value once, and finds a field by bisection. So the time is in proportion
 *    to the size of the body.
 *  - The recursion is as deep as the value is nested, which the JSON parser limits.
 *  - The walk stops at the first wrong value. The message is that of Go's decoder, because clients
 *    show it, and some search it for the field. Kubernetes turns the result of a strategic merge
 *    patch into an object without JSON; its messages then name no field.
 */
#include "server/schema/decode.h"

#include <assert.h>
#include <errno.h>
#include <stdint.h>
#include <stdio.h>
#include <string.h>

#include <holdfast/error.h>

#include "base/base64.h"
#include "base/json.h"
#include "base/time_format.h"
#include "server/schema/place.h"
#include "server/schema/values/quantity.h"
#include "server/schema/values/time_text.h"

struct decoder {
        struct hfd_strict *strict; /* NULL = unknown fields are not reported */
        char *reason;
        size_t max_reason;
        bool keeps_empty; /* empty lists and maps stay */
        bool patched;     /* the object is the result of a strategic merge patch */
};

static int decode_member(struct decoder *d, const struct hfd_schema *schema,
                         struct hf__json *container, struct hf__json *member,
                         const struct hfd_place *place);

/* ---- wrong types ---- */

/* How Go's decoder names a JSON value: "string", "object", "number 1.5". */
static void put_value_name(struct hf__strbuf *out, const struct hfd_schema *schema,
                           const struct hf__json *value) {
        bool is_integer = schema->type == HFD_SCHEMA_INT32 || schema->type == HFD_SCHEMA_INT64 ||
                          schema->type == HFD_SCHEMA_INT_OR_STRING;

        if (hf__json_is_object(value))
                hf__strbuf_puts(out, "object");
        else if (hf__json_is_array(value))
                hf__strbuf_puts(out, "array");
        else if (hf__json_is_string(value))
                hf__strbuf_puts(out, "string");
        else if (hf__json_is_bool(value))
                hf__strbuf_puts(out, "bool");
        else
                hf__strbuf_puts(out, "number");
        /* Like Go's decoder, show a number that does not fit into an integer field. */
        if (is_integer && hf__json_is_number(value)) {
                hf__strbuf_putc(out, ' ');
                hf__json_print(value, out);
        }
}

/* How Go names the kind of a value in a map that was read from JSON. */
static const char *kind_name(const struct hf__json *value) {
        int64_t number;

        if (hf__json_is_object(value))
                return "map";
        if (hf__json_is_array(value))
                return "slice";
        if (hf__json_is_string(value))
                return "string";
        if (hf__json_is_bool(value))
                return "bool";
        return hf__json_integer(value, &number) ? "int64" : "float64";
}

/*
 * The message for a value of a patched object. Kubernetes converts such a value from a Go map, and
 * the message depends on the types of the value and the field. "cannot convert" is for types that
 * Go itself can convert to each other: two types of numbers, and a whole number to a text.
 */
static void put_not_converted(struct hf__strbuf *out, const struct hfd_schema *schema,
                              const struct hf__json *value) {
        static const char *const containers[] = {[HFD_SCHEMA_STRUCT] = "struct from:",
                                                 [HFD_SCHEMA_MAP] = "map from",
                                                 [HFD_SCHEMA_LIST] = "slice from",
                                                 [HFD_SCHEMA_BYTES] = "slice from"},
                                 *const scalars[] = {[HFD_SCHEMA_TEXT] = "string",
                                                     [HFD_SCHEMA_BOOLEAN] = "bool",
                                                     [HFD_SCHEMA_INT32] = "int32",
                                                     [HFD_SCHEMA_INT64] = "int64",
                                                     [HFD_SCHEMA_NUMBER] = "float64"};
        bool is_integer = schema->type == HFD_SCHEMA_INT32 || schema->type == HFD_SCHEMA_INT64;
        const char *kind = kind_name(value);
        char type[HFD_GO_TYPE_MAX];

        hfd_schema_go_type(schema, type);
        if (schema->type < sizeof containers / sizeof containers[0] && containers[schema->type])
                hf__strbuf_printf(out, "cannot restore %s %s", containers[schema->type], kind);
        else if ((is_integer && hf__json_is_number(value)) ||
                 (schema->type == HFD_SCHEMA_TEXT && strcmp(kind, "int64") == 0))
                hf__strbuf_printf(out, "cannot convert %s to %s", kind, type);
        else
                hf__strbuf_printf(out, "unrecognized type: %s", scalars[schema->type]);
}

static bool is_time(const struct hfd_schema *schema) {
        return schema->type == HFD_SCHEMA_TIME || schema->type == HFD_SCHEMA_MICRO_TIME;
}

/* The message for a value that Go's decoder of JSON refuses. place NULL: it decodes this value
 * alone, so it knows no field. */
static void put_not_decoded(struct hf__strbuf *out, const struct hfd_schema *schema,
                            const struct hf__json *value, const struct hfd_place *place) {
        const struct hfd_schema *in = place ? hfd_place_struct(place) : NULL;
        char type[HFD_GO_TYPE_MAX];

        if (schema->type == HFD_SCHEMA_INT_OR_STRING)
                (void)snprintf(type, sizeof type, "int32");
        else if (is_time(schema))
                (void)snprintf(type, sizeof type, "string");
        else
                hfd_schema_go_type(schema, type);
        hf__strbuf_puts(out, "json: cannot unmarshal ");
        put_value_name(out, schema, value);
        if (place) {
                hf__strbuf_printf(out, " into Go struct field %s.",
                                  in ? hfd_schema_struct_name(in) : "");
                hfd_place_put_fields(place, out);
        } else {
                hf__strbuf_puts(out, " into Go value");
        }
        hf__strbuf_printf(out, " of type %s", type);
}

/* Writes the message for a value of the wrong type. Kubernetes decodes each IntOrString and each
 * time from JSON even in the result of a patch. HF_E_INVALID or -ENOMEM. */
static int wrong_type(struct decoder *d, const struct hfd_schema *schema,
                      const struct hf__json *value, const struct hfd_place *place) {
        struct hf__strbuf text = {0};

        if (!d->patched)
                put_not_decoded(&text, schema, value, place);
        else if (schema->type == HFD_SCHEMA_INT_OR_STRING || is_time(schema))
                put_not_decoded(&text, schema, value, NULL);
        else
                put_not_converted(&text, schema, value);
        int r = text.error != 0 ? -ENOMEM : HF_E_INVALID;
        if (r == HF_E_INVALID)
                (void)snprintf(d->reason, d->max_reason, "%s", text.data);
        hf__strbuf_done(&text);
        return r;
}

/* ---- scalars ---- */

static int decode_time(struct decoder *d, const struct hfd_schema *schema, struct hf__json *value) {
        bool micro = schema->type == HFD_SCHEMA_MICRO_TIME;
        char text[HF__MICROTIME_MAX];

        const char *sent = hf__json_text(value);
        if (!hfd_time_text_normalize(sent, micro, text, d->reason, d->max_reason))
                return HF_E_INVALID;
        return strcmp(sent, text) == 0 ? 0 : hf__json_set_text(value, text);
}

/* Go's decoder ignores line breaks, which are in many manifests, and its encoder writes none. */
static int drop_line_breaks(struct hf__json *value) {
        static const char breaks[] = "\r\n";
        struct hf__strbuf rest = {0};

        for (const char *at = hf__json_text(value); *at; at += strspn(at, breaks)) {
                size_t n = strcspn(at, breaks);
                hf__strbuf_add(&rest, at, n);
                at += n;
        }
        const char *text = rest.data ? rest.data : "";
        int r = rest.error != 0 ? -ENOMEM : hf__json_set_text(value, text);
        hf__strbuf_done(&rest);
        return r;
}

static int decode_bytes(struct decoder *d, struct hf__json *value) {
        size_t at;

        if (hf__base64_check(hf__json_text(value), &at))
                return strpbrk(hf__json_text(value), "\r\n") ? drop_line_breaks(value) : 0;
        (void)snprintf(d->reason, d->max_reason, "%sillegal base64 data at input byte %zu",
                       d->patched ? "error decoding from json: " : "", at);
        return HF_E_INVALID;
}

/* Copies text without the spaces around it. What does not fit is left out; then the copy is too
 * long for a quantity, as the text is. */
static void trim_quantity(const char *text, char trimmed[HFD_QUANTITY_INPUT_MAX + 2]) {
        static const char spaces[] = " \t\r\n";

        text += strspn(text, spaces);
        size_t n = strlen(text);
        while (n > 0 && strchr(spaces, text[n - 1]))
                n--;
        n = n <= HFD_QUANTITY_INPUT_MAX ? n : HFD_QUANTITY_INPUT_MAX + 1;
        memcpy(trimmed, text, n);
        trimmed[n] = '\0';
}

/* Parses a quantity from a text or, as Go does, from the JSON text of another value. 0; -ENOMEM; or
 * HF_E_INVALID with the reason. */
static int parse_quantity(struct decoder *d, const struct hf__json *value,
                          struct hfd_quantity *ret_quantity) {
        /* Only an object or an array can be longer. The part of its text that is printed is no
         * quantity either. */
        struct hf__strbuf printed = {.max = HFD_QUANTITY_INPUT_MAX + 1};
        const char *text = hf__json_text(value), *wrong = NULL;
        char trimmed[HFD_QUANTITY_INPUT_MAX + 2];
        int r = 0;

        if (!text) {
                hf__json_print(value, &printed);
                text = printed.data ? printed.data : "";
        }
        if (printed.error == -ENOMEM) {
                r = -ENOMEM;
        } else {
                trim_quantity(text, trimmed);
                wrong = hfd_quantity_parse(trimmed, ret_quantity);
        }
        if (wrong) {
                (void)snprintf(d->reason, d->max_reason, "%s", wrong);
                r = HF_E_INVALID;
        }
        hf__strbuf_done(&printed);
        return r;
}

/* Replaces a quantity by its canonical text, so that equal quantities of one form are equal texts.
 * A number in container becomes a string. in_list: the container is a ResourceList. */
static int decode_quantity(struct decoder *d, struct hf__json *container, struct hf__json *value,
                           bool in_list) {
        char text[HFD_QUANTITY_TEXT_MAX];
        struct hfd_quantity quantity;
        int r = parse_quantity(d, value, &quantity);

        if (r != 0)
                return r;
        /* Kubernetes' defaulting rounds the amounts in each ResourceList. */
        if (in_list)
                hfd_quantity_round_to_thousandths(&quantity);
        hfd_quantity_format(&quantity, text);
        if (hf__json_is_string(value))
                return strcmp(hf__json_text(value), text) == 0 ? 0 : hf__json_set_text(value, text);
        struct hf__json *list = hf__json_array();
        r = list ? hf__json_append_string(list, text) : -ENOMEM;
        if (r == 0) {
                struct hf__json *string = hf__json_detach(list, hf__json_first(list));
                r = hf__json_replace(container, value, string);
        }
        hf__json_free(list);
        return r;
}

static bool is_int32(const struct hf__json *value) {
        int64_t number;

        return hf__json_integer(value, &number) && number >= INT32_MIN && number <= INT32_MAX;
}

/* Whether the value has the JSON type that the schema's type needs. True for ANY, and for
 * quantities and EITHER, which are checked elsewhere. */
static bool has_type(enum hfd_schema_type type, const struct hf__json *value) {
        int64_t number;

        switch (type) {
        case HFD_SCHEMA_TEXT:
        case HFD_SCHEMA_TIME:
        case HFD_SCHEMA_MICRO_TIME:
        case HFD_SCHEMA_BYTES: return hf__json_is_string(value);
        case HFD_SCHEMA_BOOLEAN: return hf__json_is_bool(value);
        case HFD_SCHEMA_INT32: return is_int32(value);
        case HFD_SCHEMA_INT64: return hf__json_integer(value, &number);
        case HFD_SCHEMA_NUMBER: return hf__json_is_number(value);
        case HFD_SCHEMA_INT_OR_STRING: return hf__json_is_string(value) || is_int32(value);
        case HFD_SCHEMA_STRUCT:
        case HFD_SCHEMA_MAP: return hf__json_is_object(value);
        case HFD_SCHEMA_LIST: return hf__json_is_array(value);
        case HFD_SCHEMA_ANY:
        case HFD_SCHEMA_QUANTITY:
        case HFD_SCHEMA_EITHER: break;
        }
        return true;
}

/* ---- containers ---- */

/* The zero of Go's types of times, which its encoder writes as null. */
static bool is_zero_time(const char *text) {
        return strcmp(text, "0001-01-01T00:00:00Z") == 0 ||
               strcmp(text, "0001-01-01T00:00:00.000000Z") == 0;
}

/* Whether a decoded member of a STRUCT counts as absent: it is an empty list or map, or the zero of
 * a time. */
static bool counts_as_absent(const struct decoder *d, const struct hfd_schema_field *field,
                             const struct hf__json *member) {
        enum hfd_schema_type type = field->schema->type;

        if (is_time(field->schema))
                return is_zero_time(hf__json_text(member));
        return !d->keeps_empty && field->protobuf_tag != 0 &&
               (type == HFD_SCHEMA_LIST || type == HFD_SCHEMA_MAP) && !hf__json_first(member) &&
               (field->flags & (HFD_FIELD_REQUIRED | HFD_FIELD_KEEPS_EMPTY)) == 0;
}

static int decode_struct(struct decoder *d, const struct hfd_schema *schema,
                         struct hf__json *object, const struct hfd_place *place) {
        struct hf__json *next;
        int r = 0;

        for (struct hf__json *m = hf__json_first(object); m && r == 0; m = next) {
                const struct hfd_schema_field *field = hfd_schema_field(schema, hf__json_key(m));
                const struct hfd_place member = {.up = place,
                                                 .key = field ? field->name : hf__json_key(m),
                                                 .in = schema};
                next = hf__json_next(m); /* m may be removed below */
                if (!field && schema->preserve_unknown)
                        continue;
                if (!field && d->strict)
                        hfd_strict_add(d->strict, "unknown", &member);
                if (!field || hf__json_is_null(m)) {
                        hf__json_free(hf__json_detach(object, m));
                        continue;
                }
                r = decode_member(d, field->schema, object, m, &member);
                /* If the field is a QUANTITY or an EITHER, m may be freed now. counts_as_absent
                 * looks at m only if the field is a LIST, a MAP or a time. */
                if (r == 0 && counts_as_absent(d, field, m))
                        hf__json_free(hf__json_detach(object, m));
        }
        return r;
}

/* The value that Go's decoder stores for a null in a map or a list: the zero of its type, which is
 * null for maps, lists, times and an EITHER. NULL = out of memory. */
static struct hf__json *make_zero(const struct hfd_schema *schema) {
        static const char *const zeros[] = {
                [HFD_SCHEMA_STRUCT] = "{}",      [HFD_SCHEMA_TEXT] = "\"\"",
                [HFD_SCHEMA_BOOLEAN] = "false",  [HFD_SCHEMA_INT32] = "0",
                [HFD_SCHEMA_INT64] = "0",        [HFD_SCHEMA_NUMBER] = "0",
                [HFD_SCHEMA_BYTES] = "\"\"",     [HFD_SCHEMA_INT_OR_STRING] = "0",
                [HFD_SCHEMA_QUANTITY] = "\"0\"",
        };
        const char *text =
                schema->type < sizeof zeros / sizeof zeros[0] ? zeros[schema->type] : NULL;
        struct hf__json *value = NULL;

        text = text ? text : "null";
        return hf__json_parse(text, strlen(text), &value, NULL) == 0 ? value : NULL;
}

/* Decodes the values of a MAP or the elements of a LIST. */
static int decode_items(struct decoder *d, const struct hfd_schema *schema,
                        struct hf__json *container, const struct hfd_place *place) {
        bool is_map = schema->type == HFD_SCHEMA_MAP;
        struct hf__json *next;
        size_t i = 0;
        int r = 0;

        for (struct hf__json *m = hf__json_first(container); m && r == 0; m = next) {
                const struct hfd_place item = {.up = place,
                                               .key = is_map ? hf__json_key(m) : NULL,
                                               .index = i++};
                next = hf__json_next(m);
                if (hf__json_is_null(m) && schema->items->type != HFD_SCHEMA_ANY)
                        r = hf__json_replace(container, m, make_zero(schema->items));
                else if (schema->items->type == HFD_SCHEMA_QUANTITY)
                        r = decode_quantity(d, container, m, schema == &hfd_schema_resource_list);
                else
                        r = decode_member(d, schema->items, container, m, &item);
        }
        return r;
}

/* Decodes a value in place. It is not null, unless the schema is ANY. */
static int decode_value(struct decoder *d, const struct hfd_schema *schema, struct hf__json *value,
                        const struct hfd_place *place) {
        if (!has_type(schema->type, value))
                return wrong_type(d, schema, value, place);
        if (schema->type == HFD_SCHEMA_STRUCT)
                return decode_struct(d, schema, value, place);
        if (schema->type == HFD_SCHEMA_MAP || schema->type == HFD_SCHEMA_LIST)
                return decode_items(d, schema, value, place);
        if (is_time(schema))
                return decode_time(d, schema, value);
        return schema->type == HFD_SCHEMA_BYTES ? decode_bytes(d, value) : 0;
}

/*
 * Decodes a value that is an object or of another type. Go has special code for these types: it
 * does not report unknown fields of the object, it ignores a value that should be a list and is
 * not, and it reports a value that should be a boolean and is not.
 */
static int decode_either(struct decoder *d, const struct hfd_schema *schema,
                         struct hf__json *container, struct hf__json *member,
                         const struct hfd_place *place) {
        struct decoder quiet = *d;

        quiet.strict = NULL;
        if (hf__json_is_object(member))
                return decode_value(&quiet, schema->items, member, place);
        if (has_type(schema->other->type, member))
                return decode_value(&quiet, schema->other, member, place);
        if (schema->other->type == HFD_SCHEMA_LIST) {
                hf__json_free(hf__json_detach(container, member));
                return 0;
        }
        (void)snprintf(d->reason, d->max_reason, "boolean or JSON schema expected");
        return HF_E_INVALID;
}

/* Decodes a member of an object or an array. The container is needed because the member may have to
 * be replaced in it, or removed. */
static int decode_member(struct decoder *d, const struct hfd_schema *schema,
                         struct hf__json *container, struct hf__json *member,
                         const struct hfd_place *place) {
        if (schema->type == HFD_SCHEMA_EITHER)
                return decode_either(d, schema, container, member, place);
        if (schema->type == HFD_SCHEMA_QUANTITY)
                return decode_quantity(d, container, member, false);
        return decode_value(d, schema, member, place);
}

static int decode_object(struct decoder *d, const struct hfd_schema *schema,
                         struct hf__json *object) {
        const struct hfd_place root = {0};

        assert(schema->type == HFD_SCHEMA_STRUCT && hf__json_is_object(object));
        int r = decode_struct(d, schema, object, &root);
        return r == 0 && d->strict && d->strict->lines.error != 0 ? -ENOMEM : r;
}

int hfd_schema_decode(const struct hfd_schema *schema, struct hf__json *object,
                      struct hfd_strict *strict, char *reason, size_t max_reason) {
        struct decoder d = {.strict = strict, .reason = reason, .max_reason = max_reason};

        return decode_object(&d, schema, object);
}

int hfd_schema_decode_config(const struct hfd_schema *schema, struct hf__json *config,
                             struct hfd_strict *strict, char *reason, size_t max_reason) {
        struct decoder d = {.strict = strict,
                            .reason = reason,
                            .max_reason = max_reason,
                            .keeps_empty = true};

        return decode_object(&d, schema, config);
}

int hfd_schema_decode_patched(const struct hfd_schema *schema, struct hf__json *object,
                              struct hfd_strict *strict, char *reason, size_t max_reason) {
        struct decoder d = {.strict = strict,
                            .reason = reason,
                            .max_reason = max_reason,
                            .patched = true};

        return decode_object(&d, schema, object);
}

/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Encodes messages as Kubernetes' generated code (gogo-protobuf) does. Its rules differ from those
 * of other encoders:
 *
 *  - Fields are in the order of their numbers, and the entries of a map in the order of their keys.
 *  - A field that is not a pointer in Go is always written, even if it is 0, "" or an empty
 *    message. A pointer (HFD_FIELD_POINTER) is written if the object has the member. Nothing is
 *    written for an absent or empty list or map, nor for an absent []byte or ANY (schema.h).
 *  - A time is a message with seconds and nanoseconds. Go's zero time is an empty message. Only a
 *    MicroTime has a fraction, of whole microseconds.
 *
 * A message follows the number of its field and its own length. The encoder appends the message
 * first, and then moves it by the bytes that these two need. Objects are rarely nested more than a
 * dozen levels deep, and the JSON parser limits the nesting (HF__JSON_DEPTH_MAX). So moving the
 * messages is cheaper than a first pass that computes all lengths.
 */
#include "server/schema/protobuf_encode.h"

#include <assert.h>
#include <errno.h>
#include <limits.h>
#include <stdlib.h>
#include <string.h>

#include "base/base64.h"
#include "base/json.h"
#include "base/strbuf.h"
#include "base/time_format.h"

#define VARINT_MAX    10 /* bytes of 64 bits, seven in a byte */
#define USEC_PER_SEC  INT64_C(1000000)
#define ZERO_TIME     (-INT64_C(62135596800)) /* 0001-01-01T00:00:00Z */
#define NSEC_PER_USEC 1000

/* The wire types, which are in the low three bits of the number that precedes a field. */
enum { VARINT = 0, FIXED64 = 1, LENGTH_DELIMITED = 2 };

/* ---- the wire format ---- */

static size_t write_varint(uint64_t value, char text[VARINT_MAX]) {
        size_t n = 0;

        for (; value > 127; value >>= 7)
                text[n++] = (char)(value | 128);
        text[n++] = (char)value;
        return n;
}

void hfd_protobuf_put_varint(struct hf__strbuf *s, uint64_t value) {
        char text[VARINT_MAX];

        hf__strbuf_add(s, text, write_varint(value, text));
}

static void put_number(struct hf__strbuf *s, unsigned number, uint64_t value) {
        hfd_protobuf_put_varint(s, number << 3 | VARINT);
        hfd_protobuf_put_varint(s, value);
}

/* A double, lowest byte first. */
static void put_double(struct hf__strbuf *s, unsigned number, double value) {
        uint64_t bits;

        _Static_assert(sizeof bits == sizeof value, "a double has 64 bits");
        memcpy(&bits, &value, sizeof bits);
        hfd_protobuf_put_varint(s, number << 3 | FIXED64);
        for (unsigned i = 0; i < sizeof bits; i++)
                hf__strbuf_putc(s, (char)(bits >> 8 * i));
}

static void put_bytes(struct hf__strbuf *s, unsigned number, const void *data, size_t n) {
        hfd_protobuf_put_varint(s, number << 3 | LENGTH_DELIMITED);
        hfd_protobuf_put_varint(s, n);
        hf__strbuf_add(s, data, n);
}

void hfd_protobuf_put_text(struct hf__strbuf *s, unsigned number, const char *text) {
        put_bytes(s, number, text, strlen(text));
}

void hfd_protobuf_wrap(struct hf__strbuf *s, unsigned number, size_t start) {
        char head[2 * VARINT_MAX];
        size_t n = s->n - start;
        size_t n_head = write_varint(number << 3 | LENGTH_DELIMITED, head);

        n_head += write_varint(n, head + n_head);
        hf__strbuf_add(s, head, n_head); /* only makes room; the next two calls put it in place */
        if (s->error != 0)
                return;
        memmove(s->data + start + n_head, s->data + start, n);
        memcpy(s->data + start, head, n_head);
}

/* ---- values; value NULL, or of a wrong type = the zero value ---- */

static void put_value(struct hf__strbuf *s, unsigned number, const struct hfd_schema *schema,
                      const struct hf__json *value);

static void put_base64(struct hf__strbuf *s, unsigned number, const char *text) {
        char *data = NULL;
        size_t n = 0;
        int r = hf__base64_decode(text, strlen(text), &data, &n);

        if (r == -ENOMEM)
                s->error = r;
        else
                put_bytes(s, number, r == 0 ? data : "", r == 0 ? n : 0);
        free(data);
}

/* False: text is NULL, not a time, or Go's zero time. */
static bool parse_time(const struct hfd_schema *schema, const char *text, int64_t *ret_usec) {
        int64_t seconds;

        if (!text)
                return false;
        if (schema->type == HFD_SCHEMA_MICRO_TIME)
                return hf__microtime_parse(text, ret_usec) == 0 &&
                       *ret_usec != ZERO_TIME * USEC_PER_SEC;
        if (hf__time_parse(text, &seconds) != 0 || seconds == ZERO_TIME)
                return false;
        *ret_usec = seconds * USEC_PER_SEC;
        return true;
}

static void put_time(struct hf__strbuf *s, unsigned number, const struct hfd_schema *schema,
                     const char *text) {
        size_t start = s->n;
        int64_t usec;

        if (parse_time(schema, text, &usec)) {
                int64_t fraction = usec % USEC_PER_SEC;
                if (fraction < 0)
                        fraction += USEC_PER_SEC;
                put_number(s, 1, (uint64_t)((usec - fraction) / USEC_PER_SEC));
                put_number(s, 2, (uint64_t)fraction * NSEC_PER_USEC);
        }
        hfd_protobuf_wrap(s, number, start);
}

static void put_elements(struct hf__strbuf *s, unsigned number, const struct hfd_schema *list,
                         const struct hf__json *value) {
        if (!hf__json_is_array(value))
                return;
        for (const struct hf__json *m = hf__json_first(value); m; m = hf__json_next(m))
                put_value(s, number, list->items, m);
}

/* A message {1: value as JSON}, as in FieldsV1. For null, and for value NULL, an empty message. */
static void put_any_value(struct hf__strbuf *s, unsigned number, const struct hf__json *value) {
        size_t start = s->n;

        if (value && !hf__json_is_null(value)) {
                hf__json_print(value, s);
                hfd_protobuf_wrap(s, 1, start);
        }
        hfd_protobuf_wrap(s, number, start);
}

/*
 * A message {1: an object, 2: a list} if the schema's `other` is a LIST, or {1: a boolean, 2: an
 * object} if it is a BOOLEAN. In the second case the boolean is always written: an object counts as
 * true, and a value of another type as false.
 */
static void put_either(struct hf__strbuf *s, unsigned number, const struct hfd_schema *schema,
                       const struct hf__json *value) {
        bool is_object = hf__json_is_object(value),
             with_bool = schema->other->type == HFD_SCHEMA_BOOLEAN;
        size_t start = s->n;

        if (with_bool)
                put_number(s, 1, is_object || hf__json_is_true(value));
        if (is_object)
                put_value(s, with_bool ? 2 : 1, schema->items, value);
        else if (!with_bool)
                put_elements(s, 2, schema->other, value);
        hfd_protobuf_wrap(s, number, start);
}

/* {1: 1 for a text and 0 for a number, 2: number, 3: text}. */
static void put_int_or_string(struct hf__strbuf *s, unsigned number, const struct hf__json *value) {
        const char *text = hf__json_text(value);
        size_t start = s->n;
        int64_t integer = 0;

        (void)hf__json_integer(value, &integer);
        put_number(s, 1, text != NULL);
        put_number(s, 2, (uint64_t)integer);
        hfd_protobuf_put_text(s, 3, text ? text : "");
        hfd_protobuf_wrap(s, number, start);
}

static void put_value(struct hf__strbuf *s, unsigned number, const struct hfd_schema *schema,
                      const struct hf__json *value) {
        const char *text = hf__json_text(value);
        size_t start = s->n;
        int64_t integer;

        switch (schema->type) {
        case HFD_SCHEMA_TEXT: hfd_protobuf_put_text(s, number, text ? text : ""); break;
        case HFD_SCHEMA_BOOLEAN: put_number(s, number, hf__json_is_true(value)); break;
        case HFD_SCHEMA_INT32:
        case HFD_SCHEMA_INT64:
                put_number(s, number, hf__json_integer(value, &integer) ? (uint64_t)integer : 0);
                break;
        case HFD_SCHEMA_BYTES:
                if (text) /* otherwise a nil slice */
                        put_base64(s, number, text);
                break;
        case HFD_SCHEMA_TIME:
        case HFD_SCHEMA_MICRO_TIME: put_time(s, number, schema, text); break;
        case HFD_SCHEMA_STRUCT:
                hfd_protobuf_encode(s, schema, value);
                hfd_protobuf_wrap(s, number, start);
                break;
        case HFD_SCHEMA_LIST: /* the value of a map: Go's ExtraValue, a message with the list */
                put_elements(s, 1, schema, value);
                hfd_protobuf_wrap(s, number, start);
                break;
        case HFD_SCHEMA_QUANTITY: /* {1: text} */
                hfd_protobuf_put_text(s, 1, text ? text : "0");
                hfd_protobuf_wrap(s, number, start);
                break;
        case HFD_SCHEMA_ANY: put_any_value(s, number, value); break;
        case HFD_SCHEMA_INT_OR_STRING: put_int_or_string(s, number, value); break;
        case HFD_SCHEMA_EITHER: put_either(s, number, schema, value); break;
        case HFD_SCHEMA_NUMBER: put_double(s, number, hf__json_number(value)); break;
        case HFD_SCHEMA_MAP: break; /* no list or map has such a value */
        }
}

/* ---- maps ---- */

static int compare_keys(const void *a, const void *b) {
        const struct hf__json *const *x = a, *const *y = b;

        return strcmp(hf__json_key(*x), hf__json_key(*y));
}

static void put_map(struct hf__strbuf *s, const struct hfd_schema_field *f,
                    const struct hf__json *map) {
        size_t n = hf__json_is_object(map) ? hf__json_count(map) : 0, i = 0;

        if (n == 0)
                return;
        const struct hf__json **entries = calloc(n, sizeof(struct hf__json *));
        if (!entries) {
                s->error = -ENOMEM;
                return;
        }
        for (const struct hf__json *m = hf__json_first(map); m; m = hf__json_next(m))
                entries[i++] = m;
        qsort(entries, n, sizeof entries[0], compare_keys);
        for (i = 0; i < n; i++) {
                size_t start = s->n;
                hfd_protobuf_put_text(s, 1, hf__json_key(entries[i]));
                put_value(s, 2, f->schema->items, entries[i]);
                hfd_protobuf_wrap(s, f->protobuf_tag, start);
        }
        free(entries);
}

/* ---- messages ---- */

/* Whether the field is written even if the object does not have it. Lists and maps are handled by
 * put_field. */
static bool has_zero(const struct hfd_schema_field *f) {
        return (f->flags & HFD_FIELD_POINTER) == 0 && f->schema->type != HFD_SCHEMA_BYTES &&
               f->schema->type != HFD_SCHEMA_ANY;
}

static void put_field(struct hf__strbuf *s, const struct hfd_schema_field *f,
                      const struct hf__json *value) {
        if (hf__json_is_null(value))
                value = NULL;
        if (f->schema->type == HFD_SCHEMA_LIST)
                put_elements(s, f->protobuf_tag, f->schema, value);
        else if (f->schema->type == HFD_SCHEMA_MAP)
                put_map(s, f, value);
        else if (value || has_zero(f))
                put_value(s, f->protobuf_tag, f->schema, value);
}

/* Appends the fields of the message itself (embedded_tag 0), or of the inner message with that
 * number. */
static void put_fields(struct hf__strbuf *s, const struct hfd_schema *schema, unsigned embedded_tag,
                       const struct hf__json *json) {
        /* 1 + the index of the field, or 0. A byte each, because the stack has such an array for
         * each level of nested messages. */
        unsigned char by_tag[HFD_PROTOBUF_TAGS] = {0};

        assert(schema->n_fields < UCHAR_MAX);
        for (size_t i = 0; i < schema->n_fields; i++) {
                const struct hfd_schema_field *f = &schema->fields[i];
                assert(f->protobuf_tag < HFD_PROTOBUF_TAGS);
                if (f->embedded_tag == embedded_tag)
                        by_tag[f->protobuf_tag] = (unsigned char)(i + 1);
        }
        for (unsigned tag = 1; tag < HFD_PROTOBUF_TAGS; tag++) {
                size_t start = s->n;
                if (by_tag[tag] > 0) {
                        const struct hfd_schema_field *f = &schema->fields[by_tag[tag] - 1];
                        put_field(s, f, hf__json_get(json, f->name));
                }
                if (!hfd_schema_embeds(schema, embedded_tag, tag))
                        continue;
                put_fields(s, schema, HFD_EMBEDDED_IN(embedded_tag, tag), json);
                hfd_protobuf_wrap(s, tag, start);
        }
}

void hfd_protobuf_encode(struct hf__strbuf *s, const struct hfd_schema *schema,
                         const struct hf__json *json) {
        assert(schema->type == HFD_SCHEMA_STRUCT);
        put_fields(s, schema, 0, json);
}
